"""What is counted: the core's work on one request, one answer, one event, for several pairs of dialects.

`python -m tools.guard.hot_paths` runs them all under valgrind's callgrind, which is told to begin a new count
at every call of `getppid`: nothing else here calls it. Each path is run a few times first, so that the
interpreter has specialised its code and all tables are made; what is prepared for a run is not counted.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import permutations
from typing import Any, NamedTuple

from tools.bench.bodies import body
from tools.bench.streams import EMPTY_MESSAGE, MODELS, stream
from wireglot import StreamTranslator, translate_request, translate_response
from wireglot.dialects.base import Context
from wireglot.dialects.registry import DialectName, dialect
from wireglot.translate import plan
from wireglot.wire.json import decode, encode
from wireglot.wire.sse import SseDecoder

MARK = "getppid"
"""The function of the C library whose call begins a new count."""

LARGE_PAIRS: tuple[tuple[DialectName, DialectName], ...] = (
    ("anthropic", "openai-chat"),
    ("anthropic", "gemini"),
    ("openai-chat", "anthropic"),
    ("openai-responses", "openai-chat"),
    ("gemini", "anthropic"),
)
EVENTS = 50
"""Of one kind in a counted stream."""
_FIRST_EVENTS = 10

_QUOTED = "“quoted”".encode()
"""Stands in every prompt and in every description of a tool: see bodies.py."""
_COUNTED_WORD = re.compile(rb"word (\d+) of it")

Run = Callable[[], object]


class HotPath(NamedTuple):
    name: str
    prepare: Callable[[int], Run]
    """The number of the turn -> what is counted. No two turns have the same bytes, as first-time callers."""
    warm: int
    turns: int
    units: int = 1
    """What one run works on: so many events."""


def hot_paths() -> Iterator[HotPath]:
    for source in MODELS:
        yield HotPath(f"decode and parse a request of 100 KB: {source}", partial(_parse, source), 2, 2)
    for source, target in LARGE_PAIRS:
        pair = f"{source} > {target}"
        yield HotPath(f"fit 100 KB: {pair}", partial(_fit, source, target), 2, 2)
        yield HotPath(f"render and encode 100 KB: {pair}", partial(_render, source, target), 2, 2)
        yield HotPath(f"a request of 100 KB: {pair}", partial(_request, source, target, "100k"), 1, 2)
    for source, target in permutations(MODELS, 2):
        pair = f"{source} > {target}"
        yield HotPath(f"a request of 2 KB: {pair}", partial(_request, source, target, "2k"), 6, 6)
        yield HotPath(f"a whole answer: {pair}", partial(_answer, source, target), 6, 6)
        yield HotPath(f"begin and end a stream: {pair}", partial(_short_stream, source, target), 6, 6)
        yield HotPath(f"a text event: {pair}", partial(_events, source, target, "text"), 2, 2, EVENTS)
        # A Gemini call is one event.
        if target != "gemini":
            call = partial(_events, source, target, "call")
            yield HotPath(f"an event of a call's arguments: {pair}", call, 2, 2, EVENTS)
    yield HotPath("cut a read of events: 16 KB", _cut, 2, 4)


# Requests


def _body(name: DialectName, size: str, turn: int) -> bytes:
    """As somebody sends it who was never here: neither the prompt nor the tools were seen before."""
    return _common_body(name, size).replace(_QUOTED, f"“{turn:06}”".encode())


@cache
def _common_body(name: DialectName, size: str) -> bytes:
    return body(name, size, MODELS[name], stream=True)


def _parse(source: DialectName, turn: int) -> Run:
    content, parse, context = _body(source, "100k", turn), dialect(source).parse_request, Context()
    return lambda: parse(decode(content), context)


def _fit(source: DialectName, target: DialectName, turn: int) -> Run:
    request = dialect(source).parse_request(decode(_body(source, "100k", turn)), Context())
    return lambda: plan(request, source=source, target=target, model=MODELS[target])


def _render(source: DialectName, target: DialectName, turn: int) -> Run:
    request = dialect(source).parse_request(decode(_body(source, "100k", turn)), Context())
    planned = plan(request, source=source, target=target, model=MODELS[target])
    render = dialect(target).render_request
    return lambda: encode(render(planned.upstream, planned.context).value)


def _request(source: DialectName, target: DialectName, size: str, turn: int) -> Run:
    content = _body(source, size, turn)
    return lambda: encode(
        translate_request(content, source=source, target=target, model=MODELS[target]).value
    )


# Answers: an Anthropic one, told in the upstream's dialect, back to the client's


def _answer(client: DialectName, upstream: DialectName, turn: int) -> Run:
    content = _told_answer(upstream).replace(b"toolu_0000", b"toolu_%04d" % turn)
    asked = _body(client, "2k", turn)
    return lambda: encode(
        translate_response(
            content, source=upstream, target=client, request=asked, model=MODELS[upstream]
        ).value
    )


@cache
def _told_answer(name: DialectName) -> bytes:
    if name == "anthropic":
        return encode(_ANSWER)
    return encode(translate_response(_ANSWER, source="anthropic", target=name).value)


def _calls(number: int) -> dict[str, Any]:
    arguments = {
        "path": f"src/module_{number}.py",
        "edits": [{"line": 3, "text": "a = 1\n"}],
        "dry_run": True,
    }
    return {"type": "tool_use", "id": f"toolu_000{number}", "name": "tool_0", "input": arguments}


_ANSWER: dict[str, Any] = {
    **EMPTY_MESSAGE,
    "content": [{"type": "text", "text": "I read the file again. " * 40}, _calls(0), _calls(1)],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1000, "output_tokens": 300},
}


# Streams


def _short_stream(client: DialectName, upstream: DialectName, turn: int) -> Run:
    frames, asked = _stream(upstream, "text", 2), _body(client, "2k", turn)

    def run() -> None:
        translator = _translator(client, upstream, asked)
        for frame in frames:
            translator.feed(frame)
        translator.close()

    return run


def _events(client: DialectName, upstream: DialectName, kind: str, turn: int) -> Run:
    """In the midst of a stream: its first events warm it up."""
    frames = _stream(upstream, kind, _FIRST_EVENTS + EVENTS)
    start = next(index for index, frame in enumerate(frames) if _word(frame) == _FIRST_EVENTS)
    begun, middle = frames[:start], frames[start : start + EVENTS]
    translator = _translator(client, upstream, _body(client, "2k", turn))
    for frame in begun:
        translator.feed(frame)

    def run() -> None:
        feed = translator.feed
        for frame in middle:
            feed(frame)

    return run


def _word(frame: bytes) -> int | None:
    found = _COUNTED_WORD.search(frame)
    return int(found[1]) if found else None


def _translator(client: DialectName, upstream: DialectName, asked: bytes) -> StreamTranslator:
    return StreamTranslator(source=upstream, target=client, request=asked, model=MODELS[upstream])


@cache
def _stream(name: DialectName, kind: str, events: int) -> list[bytes]:
    if kind == "text":
        words = [{"type": "text_delta", "text": f" word {number} of it"} for number in range(events)]
        return stream(name, {"type": "text", "text": ""}, words, stop="end_turn", tokens=events * 5)
    call = {"type": "tool_use", "id": "toolu_0000", "name": "tool_0", "input": {}}
    pieces = ['{"path": "', *(f"word {number} of it, " for number in range(events)), '"}']
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return stream(name, call, deltas, stop="tool_use", tokens=events * 5)


def _cut(turn: int) -> Run:
    data = b"".join(_stream("openai-chat", "text", 100 + turn))[: 16 * 1024]
    return lambda: list(SseDecoder().feed(data))


def run(paths: Iterator[HotPath]) -> None:
    """One count for everything up to a path's own runs, and one for these."""
    # A collection in the midst of a run would be counted to whoever was there.
    gc.disable()
    for path in paths:
        for turn in range(path.warm):
            path.prepare(turn)()
        runs = [path.prepare(path.warm + turn) for turn in range(path.turns)]
        os.getppid()
        for counted in runs:
            counted()
        os.getppid()
        gc.collect()


def main() -> None:
    wanted = sys.argv[1:]
    run(path for path in hot_paths() if not wanted or any(text in path.name for text in wanted))


if __name__ == "__main__":
    main()
