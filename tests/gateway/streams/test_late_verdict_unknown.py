"""Streams of a dialect without marks that pass through, and go wrong after their beginning: every frame is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.dialects import turned
from tests.gateway.faults.faults_kit import Answered, line_of, post
from tests.tiers import rows
from wireglot.gateway.streams import late_verdict
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, register, unregister
from wireglot_core.ir.content import Message, Part, Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Folding, StreamFailed, unfold
from wireglot_core.wire.json import decode, encode

Stage = tuple[ScriptedUpstream, LiveGateway]
SSE = (("content-type", "text/event-stream"),)
WHOLE, CUT = ToolCall("c1", "f", '{"a": 1}'), ToolCall("c2", "f", '{"path": "/tm')
CASES: dict[str, tuple[tuple[Part, ...], bool]] = {
    "a cut call": ((CUT,), False),
    "words and a cut call": ((Text("Let me see."), CUT), False),
    "thoughts and a cut call": ((Reasoning("Hm."), CUT), False),
    "a call and a cut one": ((WHOLE, CUT), False),
    "nothing but thoughts": ((Reasoning("Hm."),), False),
    "words": ((Text("Good day."),), True),
    "thoughts and words": ((Reasoning("Hm."), Text("Good day.")), True),
    "words and a call": ((Text("Let me see."), WHOLE), True),
}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    register(turned.DIALECT)
    try:
        with ScriptedUpstream() as upstream, LiveGateway.before(upstream, turned.NAME) as gateway:
            yield upstream, gateway
    finally:
        unregister(turned.NAME)


def ask(stage: Stage, content: tuple[Part, ...], *, stream: bool) -> tuple[Answered, bytes]:
    """What the client got, and what the upstream sent."""
    upstream, gateway = stage
    upstream.reset()
    spoken = dialect(turned.NAME)
    response = Response(
        "r", "m", content, Stop("tool_calls" if WHOLE in content or CUT in content else "end")
    )
    if stream:
        writer = spoken.stream_writer(Context(), None)
        pieces = tuple(filter(None, (writer.write([event]) for event in unfold(response))))
        sent, behaviour = b"".join(pieces), Behaviour(pieces=pieces, headers=SSE, gap=0.001)
    else:
        sent = encode(spoken.render_response(response, Context()).value)
        behaviour = Behaviour(body=sent)
    upstream.next(behaviour, behaviour)
    asked = Request("m", (Message("user", (Text("go"),)),), (Tool("f"),), stream=stream)
    body = encode(spoken.render_request(asked, Context()).value)
    return post(gateway.port, "/turned", body), sent


def said(data: bytes) -> Folding:
    reader, folding = dialect(turned.NAME).stream_reader(Context()), Folding()
    folding.add([*reader.read(data), *reader.end()])
    return folding


@rows(("content", "answers"), CASES.values(), ids=CASES)
def test_a_stream_is_judged_as_the_whole_answer_is(
    stage: Stage, content: tuple[Part, ...], answers: bool
) -> None:
    """[X7] Nothing of the wire is known but what the dialect's own reader says."""
    whole, sent = ask(stage, content, stream=False)
    assert whole.status == (200 if answers else 502)
    streamed, frames = ask(stage, content, stream=True)
    if answers:
        assert (whole.body, streamed.status, streamed.body) == (sent, 200, frames)
        return
    line = line_of(stage[1], streamed.headers["x-wireglot-request-id"])
    assert line["outcome"] == "error"
    if streamed.status == 200:
        with pytest.raises(StreamFailed):
            said(streamed.body).response()
    else:
        assert streamed.status == 502


def wire_words(name: str) -> set[str]:
    """All keys and values of a stream of this dialect, the names of its events, and what marks its end."""
    content = (Reasoning("Hm."), Text("Hi"), WHOLE)
    events = list(unfold(Response("r", "m", content, Stop("tool_calls"), Usage(input=3, output=4))))
    data = dialect(name).stream_writer(Context(), None).write(events)
    found: set[str] = set()
    for line in data.decode().splitlines():
        kind, _, said = line.partition(": ")
        if kind == "data" and said.startswith("{"):
            found.update(strings_in(decode(said)))
        elif kind:
            found.add(said)
    return found - {""}


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from strings_in(each)
    elif isinstance(value, str):
        yield value


def test_the_dialect_shares_no_word_with_a_vendor(stage: Stage) -> None:
    own = wire_words(turned.NAME)
    assert turned.END.decode() in own
    for name in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        assert own & wire_words(name) <= {"m"}  # the name of the model
    assert dialect(turned.NAME).surface.marks is None


def test_no_word_of_a_vendor_is_left_in_the_gateway() -> None:
    text = Path(late_verdict.__file__).read_text(encoding="utf-8")
    assert not re.findall(
        r"tool_calls|tool_use|function|MALFORMED|message_start|response\.|DONE|thinking", text
    )
