"""Any answer with state, shown to a client, forgotten by it as far as clients forget, and put back: the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.state.reasoning_kit import MODELS, Memory
from tests.tiers import rows
from wireglot.gateway.state.reasoning.names import visible
from wireglot.gateway.state.reasoning.parts import pack, unpack
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import fold, unfold
from wireglot_core.wire.json import encode_text

CONTEXT = Context(secret=b"of this gateway", seed="s")
MINTERS = {"gemini": "gemini", "anthropic": "anthropic", "openai": "openai-responses", "kimi": "openai-chat"}

words = st.text(min_size=1, max_size=12)
arguments = st.dictionaries(
    words, st.one_of(st.integers(), st.floats(-9, 9), words, st.lists(words)), max_size=3
)


@st.composite
def answers(draw: st.DrawFn, minter: str) -> tuple[Part, ...]:
    """Thoughts, texts and calls in any order that models give them in."""
    origin = Origin(MINTERS[minter], minter, "", "a")

    def signature(number: int) -> Signature:
        return Signature(f"c2lnbmVk{number}AA==", origin, f"rs_{number}" if minter == "openai" else "")

    parts: list[Part] = []
    for number in range(draw(st.integers(0, 2))):
        if minter == "kimi":
            parts.append(Reasoning(draw(words)))
        elif minter != "gemini":
            redacted = minter == "anthropic" and draw(st.booleans())
            parts.append(Reasoning("" if redacted else draw(words), signature(number), redacted))
        if draw(st.booleans()):
            parts.append(Text(draw(words)))
    heartbeats = minter == "gemini"
    for number in range(draw(st.integers(0, 3))):
        first = signature(9) if heartbeats and number == 0 else None
        call = ToolCall(f"a1b2c3d{number}", "look_up", encode_text(draw(arguments)), signature=first)
        parts.append(call)
    if heartbeats and not any(type(part) is ToolCall for part in parts):
        parts.append(Text(draw(words), signature=signature(8)))
    if not any(type(part) is Text or type(part) is ToolCall for part in parts):
        parts.append(Text(draw(words)))
    return tuple(parts)


def echoed(client: str, content: tuple[Part, ...], streamed: bool) -> dict[str, Any]:
    """The answer as a client has it in its history, without what clients drop."""
    response = Response("r", "m", content, Stop("end"))
    speaks = dialect(client)
    if streamed:
        data = speaks.stream_writer(CONTEXT, None).write(unfold(response))
        reader = speaks.stream_reader(CONTEXT)
        response = fold([*reader.read(data), *reader.end()])
    value = speaks.render_response(response, CONTEXT, None).value
    if client == "openai-chat":
        message = value["choices"][0]["message"]
        kept = {key: message[key] for key in ("role", "content", "tool_calls") if key in message}
        for call in kept.get("tool_calls", ()):
            call.pop("extra_content", None)
        return kept
    reported: dict[str, Any] = value["candidates"][0]["content"]
    parts = [part for part in reported["parts"] if not part.get("thought")]
    for part in parts:
        part.pop("thoughtSignature", None)
    return {"role": "model", "parts": parts}


def history(client: str, *turns: dict[str, Any]) -> dict[str, Any]:
    if client == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": "Go on."}]}, *turns]}
    return {"messages": [{"role": "user", "content": "Go on."}, *turns]}


@rows("streamed", [False, True], ids=["whole", "streamed"])
@rows(
    ("client", "minter"),
    [("openai-chat", name) for name in MINTERS] + [("gemini", name) for name in MINTERS if name != "gemini"],
)
@given(data=st.data())
def test_what_is_put_back_is_what_the_model_said(
    client: str, minter: str, streamed: bool, data: st.DataObject
) -> None:
    content = data.draw(answers(minter))
    memory = Memory()
    memory.answer(memory.ask(history(client), client, MODELS[minter]), *content)
    job = memory.ask(history(client, echoed(client, content, streamed)), client, MODELS[minter])
    if memory.vault.kept:
        assert job.request().messages[-1].content == content
    else:
        assert not any(type(part) is Reasoning or getattr(part, "signature", None) for part in content)


@given(data=st.data(), minter=st.sampled_from(list(MINTERS)))
def test_a_kept_turn_is_read_as_it_was_written(data: st.DataObject, minter: str) -> None:
    content = data.draw(answers(minter))
    body = pack(content)
    assert body is not None
    assert unpack(body) == content


def test_what_another_version_wrote_is_not_there() -> None:
    assert unpack(b"\x01") is None
    assert unpack(b"") is None


def test_what_msgpack_cannot_hold_is_not_kept() -> None:
    assert pack((Text("half \ud800"),)) is None


@rows(
    ("one", "other", "same"),
    [
        ('{"a":1,"b":[2,{"d":3,"c":4}]}', '{ "b": [2, {"c": 4, "d": 3}], "a": 1.0 }', True),
        ("", "{}", True),
        ('{"a":1}', '{"a":"1"}', False),
        ('{"a":[1,2]}', '{"a":[2,1]}', False),
        ('{"a":12345678901234567890}', '{"a":12345678901234567891}', False),
        ('{"half":', '{"half":  ', True),
        ('{"half":', '{"other":', False),
    ],
)
def test_arguments_are_the_same_where_they_mean_the_same(one: str, other: str, same: bool) -> None:
    both = [visible((ToolCall("a1b2c3d4", "f", text),)) for text in (one, other)]
    assert (both[0] == both[1]) is same
