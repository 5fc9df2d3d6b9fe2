"""Group H: system text, from wherever a client puts it to wherever an upstream wants it."""

import pytest

from tests.requirements.wire import MAIN, asked, chat, gemini, messages, responses

BLOCKS = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]


@pytest.mark.parametrize("target", MAIN)
def test_blocks_stay_blocks_where_the_target_has_them(target):
    """R-A-10, R-H-01, R-C-05, C5, C6: in order, none joined, and nothing but parts in Gemini's instruction."""
    body = asked(messages(system=BLOCKS), "anthropic", target)
    match target:
        case "anthropic":
            assert body["system"] == BLOCKS
        case "openai-chat":
            assert body["messages"][0] == {"role": "system", "content": BLOCKS}
        case "openai-responses":
            first = body["input"][0]
            assert [part["text"] for part in first["content"]] == ["One.", "Two."]
        case "gemini":
            assert body["systemInstruction"] == {"parts": [{"text": "One."}, {"text": "Two."}]}


@pytest.mark.parametrize("target", MAIN[1:])
def test_blocks_are_blocks_again_after_a_round_trip(target):
    """R-H-03: count and kind are kept, without a word of ours on the wire."""
    there = asked(messages(system=BLOCKS), "anthropic", target)
    assert asked(there, target, "anthropic")["system"] == BLOCKS


def test_a_string_is_as_good_as_a_block():
    """R-A-04, C32: both shorthands of the dialect."""
    body = asked(messages({"role": "user", "content": "hi"}, system="One."), "anthropic", "gemini")
    assert body["systemInstruction"]["parts"] == [{"text": "One."}]
    assert body["contents"][0]["parts"] == [{"text": "hi"}]


def test_chat_gets_a_message_and_never_a_field():
    """R-H-04"""
    body = asked(messages(system="One."), "anthropic", "openai-chat")
    assert body["messages"][0] == {"role": "system", "content": "One."}
    assert "system" not in body


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_instructions_are_system_text_and_not_the_users(target):
    """R-H-05, R-Z-03, C23"""
    body = asked(responses(instructions="Be brief."), "openai-responses", target)
    match target:
        case "anthropic":
            assert body["system"] in ("Be brief.", [{"type": "text", "text": "Be brief."}])
            assert "Be brief" not in str(body["messages"])
        case "openai-chat":
            assert [turn["role"] for turn in body["messages"]] in (["system", "user"], ["developer", "user"])
        case "gemini":
            assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_and_developer_are_one_for_others(role):
    """R-H-06, R-AC-02"""
    turns = [{"role": role, "content": "Be brief."}, {"role": "user", "content": "hi"}]
    body = asked(chat(messages=turns), "openai-chat", "gemini")
    assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]


def test_code_assist_has_it_inside_the_request():
    """R-H-07"""
    body = asked(messages(system="One."), "anthropic", "code-assist", model="gemini-3-pro")
    assert body["request"]["systemInstruction"]["parts"] == [{"text": "One."}]
    assert "systemInstruction" not in body


def test_geminis_own_instruction_reaches_the_others():
    """R-H-01: of several parts, several blocks."""
    instruction = {"parts": [{"text": "One."}, {"text": "Two."}]}
    body = asked(gemini(systemInstruction=instruction), "gemini", "anthropic", model="m")
    assert body["system"] == BLOCKS
