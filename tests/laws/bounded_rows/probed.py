"""Streams of an endpoint that is probed: it may be anybody's."""

from __future__ import annotations

from functools import partial

from tests.laws.bounded import Row
from tests.laws.entry_points import probed
from wireglot.probe.question import ProbeQuestion
from wireglot.probe.run import WIRES
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Part, Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Stop
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start

PARTS: dict[str, tuple[Part, str]] = {
    "text": (Text(""), "w" * 100),
    "thoughts": (Reasoning(), "w" * 100),
    "arguments": (ToolCall("c1", "f", ""), '"w": ' + "1" * 100),
}


def streamed(name: str, kind: str, n: int) -> bytes:
    part, piece = PARTS[kind]
    pieces: list[Event] = [Delta(0, piece) for _ in range(n)]
    events: list[Event] = [Start("r", "m"), PartStart(0, part), *pieces, PartEnd(0), Finish(Stop("end"))]
    writer = dialect(name).stream_writer(Context())
    return b"".join(writer.write([event]) for event in events)


def judged(name: str, data: bytes) -> object:
    wire = WIRES[name]
    reply = wire.stream_reader(ProbeQuestion(turns=())).read(wire.frames(data))
    return reply.text, reply.state


ROWS = [
    Row(f"{name}: {kind}", partial(streamed, name, kind), partial(judged, name), n=600, entry=probed(name))
    for name in WIRES
    for kind in PARTS
]
