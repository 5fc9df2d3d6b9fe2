"""A turn in which nothing was said is a turn: it is sent, or reported at its place, and no other turn changes its
meaning. Nothing is said in the client's name without a loss that names the words."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core import ClientFault, translate_request
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Message, Role, Text
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.request import Request
from wireglot_core.traces.canonical import empty_turns

CONTEXT = Context()
DIALECTS: tuple[DialectName, ...] = (
    "anthropic",
    "openai-chat",
    "openai-responses",
    "gemini",
    "gemini-interactions",
    "ollama",
)
PAIRS = [pair for pair in product(DIALECTS, repeat=2) if pair[0] != pair[1]]
TO: dict[DialectName, list[tuple[str, str | None]]] = {
    "anthropic": [("claude-opus-4-8", None), ("claude-sonnet-4", None)],
    "openai-chat": [("gpt-5", None), ("kimi-k2-thinking", "kimi"), ("some-model", "vllm")],
}
"""Models of each target whose limits differ in what they accept and continue, and their providers."""
TAKES_EMPTY = ("openai-responses", "ollama")

SAID: list[list[tuple[Role, str]]] = [
    [("user", "")],
    [("user", "hello"), ("assistant", "hi"), ("user", "")],
    [("user", ""), ("assistant", "hi"), ("user", "go on")],
    [("user", "a"), ("assistant", ""), ("user", "b")],
    [("user", "a"), ("assistant", "b"), ("user", ""), ("assistant", "c"), ("user", "d")],
    [("system", "s"), ("user", "")],
    [("user", "a"), ("user", "")],
    [("user", ""), ("user", "a")],
]


def conversations(source: DialectName) -> Iterator[tuple[list[tuple[Role, str]], dict[str, Any]]]:
    """Each conversation with its body, with the empty turns in each spelling of the dialect."""
    for said in SAID:
        for nothing in ("text", "list", "part"):
            if (body := _body(source, said, nothing)) is not None:
                yield said, body


def _body(source: DialectName, said: list[tuple[Role, str]], nothing: str) -> dict[str, Any] | None:
    turns = [(role, text, "" if text or nothing == "text" else nothing) for role, text in said]
    system = "\n".join(text for role, text in said if role == "system")
    spoken = [turn for turn in turns if turn[0] != "system"]
    match source:
        case "anthropic":
            messages = [{"role": role, "content": _content(text, how, "text")} for role, text, how in spoken]
            return {
                "model": "m",
                "max_tokens": 99,
                "messages": messages,
                **({"system": system} if system else {}),
            }
        case "openai-chat":
            messages = [{"role": role, "content": _content(text, how, "text")} for role, text, how in turns]
            return {"model": "m", "messages": messages}
        case "openai-responses":
            listed = [
                {
                    "role": role,
                    "content": _content(text, how, "output_text" if role == "assistant" else "input_text"),
                }
                for role, text, how in turns
            ]
            return {"model": "m", "input": listed}
        case "gemini":
            if nothing == "text":
                return None
            contents = [
                {
                    "role": "model" if role == "assistant" else role,
                    "parts": [] if how == "list" else [{"text": text}],
                }
                for role, text, how in spoken
            ]
            rules = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
            return {"contents": contents, **rules}
        case "gemini-interactions":
            if nothing == "text":
                return None
            steps = [
                {
                    "type": "model_output" if role == "assistant" else "user_input",
                    "content": [] if how == "list" else [{"type": "text", "text": text}],
                }
                for role, text, how in spoken
            ]
            return {"model": "m", "input": steps, **({"system_instruction": system} if system else {})}
        case _:
            if nothing != "text":
                return None
            return {"model": "m", "messages": [{"role": role, "content": text} for role, text, _ in turns]}


def _content(text: str, how: str, kind: str) -> Any:
    return text if not how else [] if how == "list" else [{"type": kind, "text": ""}]


def _turns(request: Request) -> list[Role]:
    """The roles of the turns, neighbours of one role once."""
    roles: list[Role] = []
    for message in request.messages:
        if message.role != "system" and (not roles or roles[-1] != message.role):
            roles.append(message.role)
    return roles


def _words(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for message in messages for part in message.content if type(part) is Text and part.text]


@rows(("source", "target"), PAIRS)
def test_an_empty_turn_is_sent_or_reported_where_it_was(source: DialectName, target: DialectName) -> None:
    for said, body in conversations(source):
        asked = dialect(source).parse_request(body, CONTEXT)
        for model, provider in TO.get(target, [("m", None)]):
            sent = translate_request(body, source=source, target=target, model=model, provider=provider)
            found = dialect(target).parse_request(sent.value, CONTEXT)
            losses = [loss for loss in sent.losses if loss.feature == "content.empty"]
            # No other turn changes its meaning.
            assert found.messages[-1].role == "user", (said, sent.value)
            assert "prefill" not in [loss.feature for loss in sent.losses]
            assert "partial" not in str(sent.value)
            before, after = _turns(asked), _turns(found)
            left_out = [role for role in before if role == "assistant"] != [
                role for role in after if role == "assistant"
            ]
            if left_out:  # only an empty turn of the model: the user's around it are still two
                assert any(loss.action == "dropped" for loss in losses)
                assert sum(message.role == "user" for message in found.messages) == before.count("user")
            else:
                assert after == before
            # It is there, or reported.
            empty = [asked.messages[index].role for index in empty_turns(asked.messages)]
            kept = [found.messages[index].role for index in empty_turns(found.messages)]
            assert kept == empty or losses, (said, sent.value)
            # No words but the client's, and those that a loss names.
            invented = [text for text in _words(found.messages) if text not in str(body)]
            assert all(
                any(text in loss.detail and loss.grade == "degraded" for loss in losses) for text in invented
            )
            if target in TAKES_EMPTY or model == "gpt-5":
                assert not invented


@rows(("source", "target"), PAIRS)
def test_a_loss_of_an_empty_turn_names_its_place(source: DialectName, target: DialectName) -> None:
    for said, body in conversations(source):
        if said != SAID[1]:
            continue
        sent = translate_request(body, source=source, target=target, model="m")
        places = [loss.path for loss in sent.losses if loss.feature == "content.empty"]
        assert all("[2]" in place for place in places), places


ALONE: dict[DialectName, dict[str, Any]] = {
    "openai-chat": {"model": "m", "messages": [{"role": "system", "content": "Say hello."}]},
    "openai-responses": {"model": "m", "input": [{"role": "developer", "content": "Say hello."}]},
    "ollama": {"model": "m", "messages": [{"role": "system", "content": "Say hello."}]},
}
"""A system text alone, where the vendor answers one."""
REFUSED: list[tuple[DialectName, dict[str, Any], str]] = [
    ("anthropic", {"model": "m", "max_tokens": 9, "system": "Say hello.", "messages": []}, "$.messages"),
    ("openai-responses", {"model": "m", "instructions": "Say hello."}, "$.input"),
    ("openai-responses", {"model": "m", "instructions": "Say hello.", "input": []}, "$.input"),
    ("gemini", {"systemInstruction": {"parts": [{"text": "Say hello."}]}, "contents": []}, "$.contents"),
    ("gemini-interactions", {"model": "m", "system_instruction": "Say hello.", "input": []}, "$.input"),
]
"""A system text alone, where the vendor answers 400. Gemini's answer is recorded; for Responses see the comment in
`openai_responses/parse_request.py`."""


@rows(("source", "target"), [pair for pair in PAIRS if pair[0] in ALONE])
def test_of_a_system_text_alone_only_its_words_are_said(source: DialectName, target: DialectName) -> None:
    sent = translate_request(ALONE[source], source=source, target=target, model="m")
    found = dialect(target).parse_request(sent.value, CONTEXT)
    assert _words(found.messages) == ["Say hello."]
    losses = [loss for loss in sent.losses if loss.feature == "message.role"]
    if found.messages[0].role == "user":
        assert [(loss.action, loss.grade) for loss in losses] == [("approximated", "degraded")]
    else:
        assert not losses


@pytest.mark.parametrize(("source", "body", "path"), REFUSED)
def test_a_system_text_alone_is_refused_where_its_vendor_refuses_it(
    source: DialectName, body: dict[str, Any], path: str
) -> None:
    for target in DIALECTS:
        with pytest.raises(ClientFault) as refused:
            translate_request(body, source=source, target=target, model="m")
        assert refused.value.path == path


UNKNOWN: dict[DialectName, dict[str, Any]] = {
    "openai-responses": {"model": "m", "input": [{"type": "newer_item", "content": "x"}]},
    "gemini-interactions": {"model": "m", "input": [{"type": "newer_step", "content": "x"}]},
}


@rows(("source", "target"), [pair for pair in PAIRS if pair[0] in UNKNOWN])
def test_an_input_that_only_its_dialect_knows_is_refused_elsewhere(
    source: DialectName, target: DialectName
) -> None:
    with pytest.raises(Unsupported) as refused:
        translate_request(UNKNOWN[source], source=source, target=target, model="m")
    assert refused.value.path == "$.input[0]"


def test_a_turn_of_another_dialects_parts_is_no_reason_to_continue_the_models() -> None:
    turns = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    newer = {"role": "user", "content": [{"type": "newer_block", "data": "x"}]}
    body = {"model": "m", "max_tokens": 9, "messages": [*turns, newer]}
    for target in DIALECTS[1:]:
        sent = translate_request(body, source="anthropic", target=target, model="m")
        found = dialect(target).parse_request(sent.value, CONTEXT)
        assert found.messages[-1].role == "user"
        assert {(loss.feature, loss.grade) for loss in sent.losses if "[2]" in loss.path} == {
            ("foreign_part", "serious"),
            ("content.empty", "degraded"),
        }


HELLO: list[tuple[Role, str]] = [("user", "hello"), ("assistant", "hi")]
ORPHANS: dict[DialectName, dict[str, Any]] = {
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "1"}]},
    "openai-chat": {"role": "tool", "tool_call_id": "x", "content": "1"},
    "openai-responses": {"type": "function_call_output", "call_id": "x", "output": "1"},
    "gemini": {"role": "user", "parts": [{"functionResponse": {"name": "t", "response": {"output": "1"}}}]},
    "gemini-interactions": {"type": "function_result", "call_id": "x", "name": "t", "result": "1"},
    "ollama": {"role": "tool", "tool_name": "t", "content": "1"},
}
"""A turn of the user that has only a result without its call."""
TURNS: dict[DialectName, str] = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "openai-responses": "input",
    "gemini": "contents",
    "gemini-interactions": "input",
    "ollama": "messages",
}


def _with_turns(source: DialectName, said: list[tuple[Role, str]], *more: dict[str, Any]) -> dict[str, Any]:
    body = _body(source, said, "text") or _body(source, said, "list")
    assert body is not None
    body[TURNS[source]] += more
    return body


def _assert_the_user_is_last(body: dict[str, Any], source: DialectName, target: DialectName) -> None:
    for model, provider in TO.get(target, [("m", None)]):
        sent = translate_request(body, source=source, target=target, model=model, provider=provider)
        found = dialect(target).parse_request(sent.value, CONTEXT)
        assert found.messages[-1].role == "user", sent.value
        assert "prefill" not in [loss.feature for loss in sent.losses]
        assert "partial" not in str(sent.value)
        invented = [text for text in _words(found.messages) if text not in str(body)]
        named = " ".join(loss.detail for loss in sent.losses)
        assert all(
            text in named or (text.startswith("[") and "replaced by a note" in named) for text in invented
        )


@rows(("source", "target"), PAIRS)
def test_a_last_turn_of_results_without_calls_stays_a_turn_of_the_user(
    source: DialectName, target: DialectName
) -> None:
    _assert_the_user_is_last(_with_turns(source, HELLO, ORPHANS[source]), source, target)


@rows(("source", "target"), PAIRS)
def test_two_turns_of_the_model_stay_two_around_results_without_calls(
    source: DialectName, target: DialectName
) -> None:
    body = _with_turns(source, HELLO, ORPHANS[source])
    body[TURNS[source]] += _with_turns(source, [("assistant", "more"), ("user", "go on")])[TURNS[source]]
    sent = translate_request(body, source=source, target=target, model="m")
    found = dialect(target).parse_request(sent.value, CONTEXT)
    assert _turns(found) == ["user", "assistant", "user", "assistant", "user"]


CALLED: dict[DialectName, tuple[dict[str, Any], ...]] = {
    "anthropic": (
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": name, "name": "t", "input": {}} for name in ("x", "y")],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "1"}]},
        {"role": "assistant", "content": "waiting"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "y", "content": "2"}]},
    ),
    "openai-chat": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": name, "type": "function", "function": {"name": "t", "arguments": "{}"}}
                for name in ("x", "y")
            ],
        },
        {"role": "tool", "tool_call_id": "x", "content": "1"},
        {"role": "assistant", "content": "waiting"},
        {"role": "tool", "tool_call_id": "y", "content": "2"},
    ),
    "openai-responses": (
        {"type": "function_call", "call_id": "x", "name": "t", "arguments": "{}"},
        {"type": "function_call", "call_id": "y", "name": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "x", "output": "1"},
        {"role": "assistant", "content": "waiting"},
        {"type": "function_call_output", "call_id": "y", "output": "2"},
    ),
}
"""The second result comes after the model spoke again: it is moved to its call."""


@rows(("source", "target"), [pair for pair in PAIRS if pair[0] in CALLED])
def test_a_last_turn_whose_results_are_moved_to_their_calls_stays_a_turn_of_the_user(
    source: DialectName, target: DialectName
) -> None:
    _assert_the_user_is_last(_with_turns(source, HELLO[:1], *CALLED[source]), source, target)


@rows(("source", "target"), [pair for pair in PAIRS if pair[0] in ALONE])
def test_an_empty_system_text_at_the_end_lets_the_model_answer(
    source: DialectName, target: DialectName
) -> None:
    for text in ("", " "):
        body = _with_turns(source, HELLO, {"role": "system", "content": text})
        for model, provider in TO.get(target, [("m", None)]):
            sent = translate_request(body, source=source, target=target, model=model, provider=provider)
            found = dialect(target).parse_request(sent.value, CONTEXT)
            assert found.messages[-1].role != "assistant", sent.value
            assert "partial" not in str(sent.value)
            assert "<system-reminder>" not in str(sent.value)
            if found.messages[-1].role == "user":
                assert "degraded" in [loss.grade for loss in sent.losses if "[2]" in loss.path]


def test_parts_of_another_dialect_beside_an_empty_text_are_no_reason_to_continue_the_models() -> None:
    newer = {"type": "newer_block", "data": "x"}
    empty = {"type": "text", "text": ""}
    for last in (
        [{"role": "user", "content": [newer, empty]}],
        [{"role": "user", "content": [newer]}, {"role": "user", "content": ""}],
    ):
        body = _with_turns("anthropic", HELLO, *last)
        for target in DIALECTS[1:]:
            _assert_the_user_is_last(body, "anthropic", target)


def test_two_turns_of_the_user_stay_two_around_a_turn_that_only_its_dialect_knows() -> None:
    newer = {"role": "assistant", "content": [{"type": "newer_block", "data": "x"}]}
    body = _with_turns("anthropic", [("user", "a")], newer, {"role": "user", "content": "b"})
    for target in DIALECTS[1:]:
        sent = translate_request(body, source="anthropic", target=target, model="m")
        found = dialect(target).parse_request(sent.value, CONTEXT)
        assert [message.role for message in found.messages] == ["user", "user"], sent.value


def test_words_that_ask_a_model_to_continue_are_named() -> None:
    body = _with_turns("anthropic", HELLO)
    sent = translate_request(body, source="anthropic", target="openai-chat", model="gpt-5")
    words = sent.value["messages"][-1]["content"]
    assert [words in loss.detail for loss in sent.losses if loss.feature == "prefill"] == [True]


PICTURES: list[tuple[DialectName, dict[str, Any], DialectName]] = [
    (
        "gemini",
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/heic", "data": "AAAA"}}]},
        "anthropic",
    ),
    ("ollama", {"role": "user", "content": "", "images": ["enp6enp6enp6enp6"]}, "anthropic"),
    (
        "gemini",
        {"role": "user", "parts": [{"fileData": {"mimeType": "audio/mp3", "fileUri": "https://x/a.mp3"}}]},
        "openai-chat",
    ),
    (
        "openai-chat",
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]},
        "ollama",
    ),
]
"""A last turn that has only a picture or a sound of a form that the target does not take."""


@rows("which", range(len(PICTURES)))
def test_a_picture_that_cannot_be_sent_leaves_a_note_in_its_turn(which: int) -> None:
    source, turn, target = PICTURES[which]
    body = _with_turns(source, HELLO, turn)
    _assert_the_user_is_last(body, source, target)
    sent = translate_request(body, source=source, target=target, model="m")
    assert "left out: this model cannot take it]" in str(sent.value)
    assert any(loss.action == "dropped" and loss.grade == "serious" for loss in sent.losses)
