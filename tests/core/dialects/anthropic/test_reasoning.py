"""Signatures: whose they are, how they travel through a client of this dialect, and who gets them back.

Group DA; PAINS A1, A2, A3.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.dialects.anthropic.support import CONTEXT, ask, blocks, features, parse, read, write
from tests.tiers import rows
from wireglot_core.dialects.anthropic import DIALECT
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import UNREADABLE, seal, unseal
from wireglot_core.ir.content import Message, Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start, fold, unfold

OURS = Signature("S1", Origin("anthropic", model="m"))
GEMINI = Signature("G1", Origin("gemini", "google", "gemini-3", "acct"))
OPENAI = Signature("E1", Origin("openai-responses"), "rs_1")


def answer(*parts: Part) -> Response:
    return Response("msg_1", "m", parts, Stop("end"))


def reported(*parts: Part) -> Any:
    rendered = DIALECT.render_response(answer(*parts), CONTEXT)
    assert rendered.losses == ()
    return rendered.value["content"]


def echoed(*parts: Part) -> Any:
    """What comes back when the client sends the answer as history."""
    return parse(ask(messages=[{"role": "assistant", "content": reported(*parts)}])).messages[0].content


def sent(*parts: Part, context: Context = CONTEXT) -> tuple[Any, list]:
    request = Request("m", (Message("user", (Text("?"),)), Message("assistant", parts)), max_tokens=5)
    rendered = DIALECT.render_request(request, context)
    content = rendered.value["messages"][-1]["content"] if len(rendered.value["messages"]) > 1 else []
    return content, features(rendered.losses)


def test_our_own_signature_reaches_the_client_as_it_is():
    assert reported(Reasoning("hm", OURS)) == [{"type": "thinking", "thinking": "hm", "signature": "S1"}]
    assert reported(Reasoning("", Signature("D", Origin("anthropic")), redacted=True)) == [
        {"type": "redacted_thinking", "data": "D"}
    ]


def test_redacted_thinking_comes_back_byte_for_byte():
    """R-DA-10"""
    data = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpPkNRj2YfWXGmKDxH4mPnZ5sQ7vB9URj2pLmN3=="
    body = ask(
        messages=[
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [{"type": "redacted_thinking", "data": data}]},
        ]
    )
    assert DIALECT.render_request(parse(body), CONTEXT).value == body


@rows(
    "parts",
    [
        (Reasoning("hm", GEMINI),),
        (Reasoning("", OPENAI),),
        (Reasoning("", OPENAI, redacted=True),),
        (Reasoning("hm"), ToolCall("a", "f", "{}", signature=GEMINI)),
        (
            Text("words", signature=GEMINI),
            ToolCall("a", "f", "{}", signature=GEMINI),
            ToolCall("b", "f", "{}"),
        ),
    ],
)
def test_foreign_state_travels_through_the_client_and_returns_to_its_part(parts):
    """R-DA-01..04, mapping 7d"""
    assert tuple(_plain(part) for part in echoed(*parts)) == parts


def _plain(part: Part) -> Part:
    """Without its spelling: `citations: null` and the like."""
    return replace(part, extra=None) if isinstance(part, Reasoning | Text | ToolCall) else part


def test_the_state_of_a_call_stands_in_a_thinking_block_directly_before_it():
    carrier, call = reported(ToolCall("a", "f", "{}", signature=GEMINI))
    assert (carrier["type"], carrier["thinking"], call["type"]) == ("thinking", "", "tool_use")
    sealed = unseal(carrier["signature"], CONTEXT.secret)
    assert sealed is not None
    assert (sealed.signature, sealed.holder) == (GEMINI, "call")


def test_unsigned_reasoning_gets_an_envelope_that_says_so():
    """R-DA-08: never an empty signature."""
    (block,) = reported(Reasoning("hm"))
    assert block["signature"]
    (part,) = echoed(Reasoning("hm"))
    assert _plain(part) == Reasoning("hm")


def test_a_carrier_with_nothing_behind_it_is_dropped():
    content = reported(ToolCall("a", "f", "{}", signature=GEMINI))
    body = ask(messages=[{"role": "assistant", "content": content[:1]}])
    assert parse(body).messages[0].content == ()


def test_an_envelope_of_another_secret_is_nobodys_state():
    content = DIALECT.render_response(answer(Reasoning("hm", GEMINI)), Context(secret=b"other")).value[
        "content"
    ]
    (part,) = parse(ask(messages=[{"role": "assistant", "content": content}])).messages[0].content
    assert isinstance(part, Reasoning)
    assert part.signature == Signature(content[0]["signature"], Origin(UNREADABLE))


def test_the_upstream_gets_back_only_what_it_signed():
    """R-DA-09; "Invalid signature in thinking block" after a switch of provider."""
    assert sent(Reasoning("hm", OURS), Text("x"))[0][0] == {
        "type": "thinking",
        "thinking": "hm",
        "signature": "S1",
    }
    content, losses = sent(Reasoning("hm", GEMINI), Text("x"))
    assert content == "x"
    assert losses == [
        ("$.messages[1].content[0].signature", "reasoning.signature", "dropped"),
        ("$.messages[1].content[0]", "reasoning.text", "dropped"),
    ]
    account = Signature("S1", Origin("anthropic", account="one"))
    assert sent(Reasoning("hm", account), Text("x"), context=Context(account="two"))[0] == "x"
    assert sent(Reasoning("", OPENAI, redacted=True), Text("x"))[1] == [
        ("$.messages[1].content[0]", "reasoning.redacted", "dropped")
    ]


def test_unsigned_thinking_of_another_dialect_is_not_sent():
    content, losses = sent(Reasoning("hm"), Text("x"))
    assert content == "x"
    assert losses == [("$.messages[1].content[0]", "reasoning.text", "dropped")]


def test_unsigned_thinking_of_our_own_client_is_sent_without_the_field():
    """R-DA-08; Kimi and Ollama never sign."""
    block = {"type": "thinking", "thinking": "hm", "signature": ""}
    body = ask(messages=[{"role": "user", "content": "?"}, {"role": "assistant", "content": [block]}])
    rendered = DIALECT.render_request(parse(body), CONTEXT)
    assert rendered.value["messages"][1]["content"] == [{"type": "thinking", "thinking": "hm"}]
    assert rendered.losses == ()


def test_answers_are_stamped_with_who_gave_them():
    context = Context(provider="anthropic", account="a1")
    body = {
        "id": "msg_1",
        "model": "claude-x",
        "content": [{"type": "thinking", "thinking": "", "signature": "S"}],
    }
    (part,) = DIALECT.parse_response(body, context).content
    assert isinstance(part, Reasoning)
    assert part.signature == Signature("S", Origin("anthropic", "anthropic", "claude-x", "a1"))


@pytest.mark.parametrize("signature", [OURS, GEMINI, None])
def test_streams_carry_signatures_like_whole_answers(signature):
    parts = (Reasoning("hm", signature), Text("x"), ToolCall("a", "f", '{"b":1}', signature=GEMINI))
    wire, losses = write(unfold(answer(*parts)))
    thinking, text, carrier, call = blocks(wire)
    assert thinking["deltas"][-1]["type"] == "signature_delta"
    assert sum(delta["type"] == "signature_delta" for delta in thinking["deltas"]) == 1
    assert (text["type"], carrier["type"], call["type"]) == ("text", "thinking", "tool_use")
    assert losses == []
    data = DIALECT.stream_writer(CONTEXT).write(unfold(answer(*parts)))
    found = tuple(_plain(part) for part in fold(read(data)).content)
    assert found == parts


def test_a_signature_that_comes_after_its_text_was_sent_is_declared():
    """Gemini signs the last text when it is over; a trailing thinking block would be refused next turn."""
    events: list[Event] = [
        Start("i", "m"),
        PartStart(0, Text("")),
        Delta(0, "x"),
        PartEnd(0, GEMINI),
        Finish(Stop("end")),
    ]
    wire, losses = write(events)
    assert [block["type"] for block in blocks(wire)] == ["text"]
    assert features(losses) == [("$.content[0].signature", "reasoning.signature", "dropped")]


@pytest.mark.parametrize("at", range(3))
def test_state_finds_its_call_wherever_in_the_turn_it_stands(at: int) -> None:
    """[L7] Qwen Code has moved thinking to the front of the turn."""
    call = ToolCall("toolu_1", "f", "{}", signature=GEMINI)
    text, carrier, used = reported(Text("Let me see."), call)
    assert carrier["type"] == "thinking"
    moved = [text, used]
    moved.insert(at, carrier)
    content = parse(ask(messages=[{"role": "assistant", "content": moved}])).messages[0].content
    assert tuple(_plain(part) for part in content) == (Text("Let me see."), call)


def test_thoughts_that_a_client_made_one_of_are_distinguished() -> None:
    """[L7] Qwen Code: the signatures of neighbouring thoughts stand one behind the other."""
    call = ToolCall("toolu_1", "f", "{}", signature=GEMINI)
    thought, carrier, used = reported(Reasoning("hm", OPENAI), call)
    one = {**thought, "signature": thought["signature"] + carrier["signature"]}
    content = parse(ask(messages=[{"role": "assistant", "content": [one, used]}])).messages[0].content
    assert tuple(_plain(part) for part in content) == (Reasoning("hm", OPENAI), call)


def test_the_signature_of_a_picture_comes_back_to_the_picture() -> None:
    """Gemini signs what it draws; a call behind it is not what was signed."""
    envelope = {"type": "thinking", "thinking": "", "signature": seal(GEMINI, "media", CONTEXT.secret)}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}

    def signatures(*content: Any) -> list[Signature | None]:
        (message,) = parse(ask(messages=[{"role": "assistant", "content": [*content]}])).messages
        return [getattr(part, "signature", None) for part in message.content]

    assert signatures(envelope, picture) == [GEMINI]
    assert GEMINI not in signatures(envelope, call)[-1:]
