"""What each dialect's clients and upstreams send: requests, schemas, whole answers and streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.laws.bounded import Row
from tests.laws.bounded_rows.schemas import SCHEMAS
from tests.laws.entry_points import answer_of, request_of, schema_of, stream_of, takes_tools
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, DialectName, dialect
from wireglot_core.ir.content import Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start
from wireglot_core.translate import StreamTranslator, translate_request, translate_response

Body = dict[str, Any]


def partner(name: str) -> DialectName:
    return "anthropic" if name == "openai-chat" else "openai-chat"


def turns(n: int) -> Request:
    said = (Message(("user", "assistant")[at % 2], (Text(f"say {at}"),)) for at in range(2 * n + 1))
    return Request("m", tuple(said))


def parts(n: int) -> Request:
    return Request("m", (Message("user", tuple(Text(f"say {at}") for at in range(n))),))


def calls(n: int) -> Request:
    made: tuple[Part, ...] = tuple(ToolCall(f"c{at}", "f", '{"a":1}') for at in range(n))
    results: tuple[Part, ...] = tuple(ToolResult(f"c{at}", (Text("r"),)) for at in range(n))
    messages = (Message("user", (Text("go"),)), Message("assistant", made), Message("user", results))
    return Request("m", messages, tools=(Tool("f", "", {"type": "object"}),))


def schema(name: str, n: int) -> Request:
    tool = Tool("f", "d", SCHEMAS[name](n))
    return Request("m", (Message("user", (Text("go"),)),), tools=(tool,))


def asked(name: str, grow: Callable[[int], Request], n: int) -> Body:
    return dialect(name).render_request(grow(n), Context()).value


def both_ways(name: DialectName, body: Body) -> None:
    there = translate_request(body, source=name, target=partner(name)).value
    translate_request(there, source=partner(name), target=name)


def texts_and_calls(name: str, n: int) -> tuple[Part, ...]:
    texts = tuple(Text(f"say {at} ") for at in range(n))
    return (*texts, *(ToolCall(f"c{at}", "f", '{"a":1}') for at in range(n))) if takes_tools(name) else texts


def answered(name: str, n: int) -> Body:
    response = Response("r", "m", texts_and_calls(name, n), Stop("end"))
    return dialect(name).render_response(response, Context()).value


def answer(name: DialectName, body: Body) -> None:
    there = translate_response(body, source=name, target=partner(name)).value
    translate_response(there, source=partner(name), target=name)


def streamed(name: DialectName, n: int) -> list[bytes]:
    """In pieces: a long text, and calls."""
    events: list[Event] = [Start("r", "m"), PartStart(0, Text("")), *[Delta(0, "word ")] * n, PartEnd(0)]
    for at, part in enumerate(texts_and_calls(name, n)[n:], 1):
        events += (PartStart(at, part), PartEnd(at))
    plain = dialect(partner(name)).stream_writer(Context())
    translator = StreamTranslator(source=partner(name), target=name)
    pieces = [translator.feed(plain.write([event])) for event in (*events, Finish(Stop("end")))]
    return [piece for piece in (*pieces, translator.close()) if piece]


def stream(name: DialectName, pieces: list[bytes]) -> None:
    translator = StreamTranslator(source=name, target=partner(name))
    for piece in pieces:
        translator.feed(piece)
    translator.close()


def rows(name: DialectName) -> list[Row]:
    made = [
        Row(
            f"{name}: parts",
            partial(asked, name, parts),
            partial(both_ways, name),
            15,
            entry=request_of(name),
        ),
        Row(f"{name}: turns", partial(asked, name, turns), partial(both_ways, name), 15),
        Row(f"{name}: an answer", partial(answered, name), partial(answer, name), 15, entry=answer_of(name)),
        Row(f"{name}: a stream", partial(streamed, name), partial(stream, name), 15, entry=stream_of(name)),
    ]
    if takes_tools(name):
        made.append(Row(f"{name}: calls", partial(asked, name, calls), partial(both_ways, name), 15))
        made += (
            Row(
                f"{name}: a schema, {what}",
                partial(asked, name, partial(schema, what)),
                partial(both_ways, name),
                15,
                entry=schema_of(name),
            )
            for what in ("properties", "properties that must be absent", "objects in objects")
        )
    return made


ROWS = [row for name in NAMES for row in rows(name)]
