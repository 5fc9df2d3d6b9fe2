"""The doubles themselves: each gives out state, takes it back, and refuses what its provider refuses."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable

import pytest

from tests.gateway.state.doubles import SKIP, Claude, Double, Gemini, Kimi, OpenAi
from tests.gateway.state.doubles.histories import (
    Body,
    claude,
    claude_history,
    gemini_history,
    kimi_history,
    openai_history,
    post,
    refused,
    responses,
    signed,
    taken,
)
from tests.gateway.state.doubles.script import asked
from tests.gateway.state.driver import (
    AnthropicClient,
    Client,
    ForgetfulChatClient,
    GeminiClient,
    ResponsesClient,
)

# Gemini


def test_gemini_signs_the_first_call_of_each_step() -> None:
    with Gemini() as double:
        contents = gemini_history(double, 5)
        steps = [content["parts"] for content in contents if content["role"] == "model"]
        assert [sum("functionCall" in part for part in parts) for parts in steps] == [1, 2, 1, 0, 1]
        for parts in steps:
            calls = [part for part in parts if "functionCall" in part]
            assert ["thoughtSignature" in part for part in calls] == [True, False][: len(calls)]
            assert parts[0]["thought"] is True
        assert "thoughtSignature" in steps[3][-1]  # a signed answer
        assert len({part["thoughtSignature"] for part in signed(contents)}) == len(double.minted) == 5
        assert (double.violations, double.missing, double.changed, double.bypasses) == ([], [], [], [])


def test_gemini_refuses_a_call_of_the_current_turn_without_its_signature() -> None:
    with Gemini() as double:
        contents = gemini_history(double, 2)
        del signed(contents)[0]["thoughtSignature"]
        message = refused(double, {"contents": contents})
        assert message.startswith("Function call is missing a thought_signature in functionCall parts.")


def test_gemini_takes_old_turns_without_signatures_and_notes_it() -> None:
    with Gemini() as double:
        contents = gemini_history(double, 4)
        for part in signed(contents):
            del part["thoughtSignature"]
        taken(double, {"contents": contents})
        assert len(double.missing) == 3


def test_gemini_refuses_a_signature_in_another_place_or_account() -> None:
    with Gemini() as double:
        contents = gemini_history(double, 2)
        assert refused(double, {"contents": contents}, key="other") == "Corrupted thought signature."
        first, second = signed(contents)
        first["thoughtSignature"], second["thoughtSignature"] = (
            second["thoughtSignature"],
            first["thoughtSignature"],
        )
        assert refused(double, {"contents": contents}) == "Corrupted thought signature."


def test_gemini_refuses_a_signature_that_nobody_minted_or_that_was_forgotten() -> None:
    with Gemini() as double:
        contents = gemini_history(double, 1)
        (part,) = signed(contents)
        real = part["thoughtSignature"]
        part["thoughtSignature"] = base64.b64encode(b"made up").decode()
        assert refused(double, {"contents": contents}) == "Corrupted thought signature."
        part["thoughtSignature"] = base64.urlsafe_b64encode(base64.b64decode(real)).decode()
        taken(double, {"contents": contents})  # as google-genai spells it
        double.forget()
        assert refused(double, {"contents": contents}) == "Corrupted thought signature."


def test_gemini_counts_the_documented_bypass() -> None:
    with Gemini() as double:
        contents = gemini_history(double, 1)
        signed(contents)[0]["thoughtSignature"] = SKIP
        taken(double, {"contents": contents})
        assert len(double.bypasses) == 1


def test_gemini_refuses_results_that_do_not_match_their_calls() -> None:
    with Gemini() as double:
        contents = gemini_history(double, 2)
        fewer, swapped = copy.deepcopy(contents), copy.deepcopy(contents)
        fewer[-1]["parts"].pop()
        assert "number of function response parts" in refused(double, {"contents": fewer})
        swapped[-1]["parts"].reverse()
        assert "does not match" in refused(double, {"contents": swapped})


# Claude


def test_claude_signs_its_thinking_and_withholds_some_of_it() -> None:
    with Claude() as double:
        messages = claude_history(double, 8)
        kinds = [[block["type"] for block in message["content"]] for message in messages[1::2]]
        assert kinds[0] == ["thinking", "tool_use"]
        assert kinds[1] == ["thinking", "redacted_thinking", "tool_use", "tool_use"]
        assert kinds[6] == ["redacted_thinking", "text", "tool_use"]
        assert (double.violations, double.missing, double.changed) == ([], [], [])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda block: block.update(thinking=block["thinking"] + " "),
        lambda block: block.update(signature=base64.b64encode(b"made up").decode()),
        lambda block: block.update(signature=""),
    ],
    ids=["changed text", "unknown signature", "no signature"],
)
def test_claude_refuses_thinking_that_is_not_its_own_to_the_letter(spoil: Callable[[Body], None]) -> None:
    with Claude() as double:
        messages = claude_history(double, 1)
        spoil(messages[1]["content"][0])
        message = refused(double, claude(messages))
        assert message == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_claude_refuses_thinking_of_another_account_and_what_it_forgot() -> None:
    with Claude() as double:
        messages = claude_history(double, 1)
        assert "Invalid `signature`" in refused(double, claude(messages), key="other")
        double.forget()
        assert "Invalid `signature`" in refused(double, claude(messages))


def test_claude_refuses_a_changed_redacted_block() -> None:
    with Claude() as double:
        messages = claude_history(double, 2)
        messages[3]["content"][1]["data"] += "A"
        assert "Invalid `data` in `redacted_thinking` block" in refused(double, claude(messages))


def test_claude_refuses_some_of_the_thoughts_of_a_running_loop() -> None:
    with Claude() as double:
        messages = claude_history(double, 2)
        del messages[3]["content"][1]
        assert "cannot be modified" in refused(double, claude(messages))


def test_claude_demands_thinking_in_a_running_loop_only_while_it_thinks() -> None:
    with Claude() as double:
        messages = claude_history(double, 1)
        del messages[1]["content"][0]
        message = refused(double, claude(messages))
        assert message.startswith(
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"
        )
        answer = taken(double, claude(messages, {"type": "disabled"}))
        assert {block["type"] for block in answer["content"]} == {"tool_use"}
        assert double.missing


def test_claude_refuses_calls_without_results_and_results_without_calls() -> None:
    with Claude() as double:
        messages = claude_history(double, 2)
        fewer = copy.deepcopy(messages)
        fewer[-1]["content"].pop()
        assert "without `tool_result` blocks immediately after" in refused(double, claude(fewer))
        stranger = copy.deepcopy(messages)
        stranger[-1]["content"][0]["tool_use_id"] = "toolu_stranger"
        assert "unexpected `tool_use_id`" in refused(double, claude(stranger))
        twice = copy.deepcopy(messages)
        twice[3]["content"][2]["id"] = twice[1]["content"][1]["id"]
        assert "must be unique" in refused(double, claude(twice))
        illegal = copy.deepcopy(messages)
        illegal[1]["content"][1]["id"] = "functions.look_up:0"
        assert "should match pattern" in refused(double, claude(illegal))


# OpenAI


def test_openai_encrypts_its_reasoning_for_those_who_ask() -> None:
    with OpenAi() as double:
        items = openai_history(double, 6)
        reasoning = [item for item in items if item.get("type") == "reasoning"]
        assert len({item["encrypted_content"] for item in reasoning}) == len(reasoning) == 6
        plain = taken(double, responses(items[:1], include=[]))["output"]
        assert "encrypted_content" not in plain[0]
        assert (double.violations, double.missing, double.changed) == ([], [], [])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda item: item.update(encrypted_content=item["encrypted_content"] + "A"),
        lambda item: item.update(id="rs_" + "0" * 32),
    ],
    ids=["changed blob", "another item"],
)
def test_openai_refuses_reasoning_that_is_not_its_own(spoil: Callable[[Body], None]) -> None:
    with OpenAi() as double:
        items = openai_history(double, 1)
        spoil(items[1])
        status, answer = post(double, responses(items))
        assert (status, answer["error"]["code"]) == (400, "invalid_encrypted_content")


def test_openai_refuses_reasoning_of_another_account_and_what_it_forgot() -> None:
    with OpenAi() as double:
        items = openai_history(double, 1)
        assert "could not be verified" in refused(double, responses(items), key="other")
        double.forget()
        assert "could not be verified" in refused(double, responses(items))


def test_openai_knows_no_reasoning_that_it_should_have_kept() -> None:
    with OpenAi() as double:
        items = openai_history(double, 1)
        del items[1]["encrypted_content"]
        assert "Items are not persisted" in refused(double, responses(items))


def test_openai_refuses_reasoning_that_leads_nowhere() -> None:
    with OpenAi() as double:
        items = openai_history(double, 1)
        assert "without its required following item" in refused(
            double, responses([*items[:1], *items[2:], items[1]])
        )


def test_openai_demands_the_reasoning_of_a_call_that_names_its_item() -> None:
    with OpenAi() as double:
        items = openai_history(double, 1)
        del items[1]
        message = refused(double, responses(items))
        assert f"Item '{items[1]['id']}' of type 'function_call' was provided without its required" in message
        del items[1]["id"]
        taken(double, responses(items))
        assert len(double.missing) == 1


def test_openai_refuses_ids_of_another_make() -> None:
    with OpenAi() as double:
        items = openai_history(double, 1)
        items[2]["id"] = items[2]["call_id"]
        assert "Expected an ID that begins with 'fc'" in refused(double, responses(items))


def test_openai_refuses_calls_without_outputs_and_outputs_without_calls() -> None:
    with OpenAi() as double:
        items = openai_history(double, 1)
        assert "No tool output found" in refused(double, responses(items[:-1]))
        assert "No tool call found" in refused(double, responses([items[0], items[-1]]))


def test_openai_keeps_no_responses() -> None:
    with OpenAi() as double:
        items = openai_history(double, 0)
        status, answer = post(double, responses(items, previous_response_id="resp_1"))
        assert (status, answer["error"]["code"]) == (400, "previous_response_not_found")


# Kimi


def test_kimi_counts_its_calls_from_the_start_in_each_conversation() -> None:
    with Kimi() as double:
        ids = [
            [
                call["id"]
                for message in kimi_history(double, 3, name)
                for call in message.get("tool_calls", ())
            ]
            for name in ("a", "b")
        ]
        assert ids[0] == ids[1]
        assert ids[0][:2] == ["functions.look_up:0", "functions.measure:1"]
        assert (double.violations, double.changed) == ([], [])


def test_kimi_demands_reasoning_beside_calls_while_it_thinks() -> None:
    with Kimi() as double:
        messages = kimi_history(double, 1)
        del messages[1]["reasoning_content"]
        message = refused(double, {"model": "kimi-k2.6", "messages": messages})
        assert message.endswith("reasoning_content is missing in assistant tool call message at index 1")
        off = {"model": "kimi-k2.6", "messages": messages, "thinking": {"type": "disabled"}}
        assert "reasoning_content" not in taken(double, off)["choices"][0]["message"]


@pytest.mark.parametrize("reasoning", ["", "another thought"])
def test_kimi_notes_changed_reasoning(reasoning: str) -> None:
    with Kimi() as double:
        messages = kimi_history(double, 1)
        messages[1]["reasoning_content"] = reasoning
        taken(double, {"model": "kimi-k2.6", "messages": messages})
        assert len(double.changed) == 1


def test_kimi_refuses_empty_text_beside_calls() -> None:
    with Kimi() as double:
        messages = kimi_history(double, 1)
        messages[1]["content"] = ""
        assert refused(double, {"model": "kimi-k2.6", "messages": messages}) == "text content is empty"


def test_kimi_refuses_calls_without_results_and_results_without_calls() -> None:
    with Kimi() as double:
        messages = kimi_history(double, 1)
        assert "did not have response messages" in refused(double, {"messages": messages[:-1]})
        assert "is not found" in refused(double, {"messages": [messages[0], messages[-1]]})


# All of them


@pytest.mark.parametrize(
    ("double", "client"),
    [
        (Gemini, GeminiClient),
        (Claude, AnthropicClient),
        (OpenAi, ResponsesClient),
    ],
)
def test_the_sdk_of_its_dialect_breaks_no_rule(double: type[Double], client: type[Client]) -> None:
    """Without a gateway: what the drivers send back is right, streamed or whole."""
    with double() as upstream:
        talk = client("some-model", upstream.url)
        answer = talk.say(asked("a", 1), False)
        for number in range(1, 9):
            streaming = number % 3 != 0
            answer = (
                talk.give(answer.calls, streaming) if answer.calls else talk.say(asked("a", 2), streaming)
            )
            assert answer.text == upstream.said[-1].step.text
            assert tuple(call.id for call in answer.calls) == upstream.said[-1].ids
        assert (upstream.violations, upstream.missing, upstream.changed) == ([], [], [])


def test_a_forgetful_client_is_refused_by_kimi() -> None:
    with Kimi() as upstream:
        talk = ForgetfulChatClient("kimi-k2.6", upstream.url)
        answer = talk.say(asked("a", 1), False)
        with pytest.raises(Exception, match="reasoning_content is missing"):
            talk.give(answer.calls, True)


def test_an_answer_that_was_changed_in_the_history_is_noted() -> None:
    with Kimi() as double:
        messages = kimi_history(double, 4)
        messages[-2]["content"] += "!"
        taken(double, {"model": "kimi-k2.6", "messages": messages})
        assert len(double.changed) == 1
