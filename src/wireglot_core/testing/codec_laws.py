"""The laws for a single dialect, each as a function that fails with an AssertionError.

They take a `Dialect`, so they apply to a custom one as well: `check_dialect` runs all of them. The laws for
pairs of dialects are those of `wireglot_core.translate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any, get_args

from msgspec.structs import replace

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.ir.errors import ClientFault, Unsupported, UpstreamFault, WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, StopReason
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Failure, Finish, ForeignEvent, StreamFailed, fold
from wireglot_core.testing.laws import differences, ending, every_cut, opened, read_stream, write_stream
from wireglot_core.traces.canonical import canonical_events, canonical_request, canonical_response
from wireglot_core.wire.json import encode

Spelling = Callable[[Any], Any]
"""A document with equivalent spellings made the same."""

CONTEXT = Context()
DATED = Context(now=1760000000)

PLAIN_LOSSES = frozenset(
    {"max_tokens", "tool_result.error", "tool_result.media", "content.empty", "system.position"}
)
"""Allowed losses of a conversation with only common features. Several system texts become one if the wire has
one string for them."""

_UPSTREAMS_FAULT = frozenset({"tool_call.id", "tool_call.arguments", "stop_reason"})
"""Faults that a stream may have though its own dialect forbids them: bad ids, broken arguments, no stop
reason."""
_SHORT = 700
_STOPS = frozenset(("", *get_args(StopReason)))
"""A tap need not distinguish a refusal from an end: it does not read the text."""


def as_it_is(document: Any) -> Any:
    """The spelling of most dialects: nothing can be written in two ways."""
    return document


# --- identity: in the same dialect `render(parse(x)) == x`, unknown fields included


def request_comes_back(codec: Dialect, body: Any, spelling: Spelling = as_it_is) -> None:
    before = deepcopy(body)
    rendered = codec.render_request(codec.parse_request(body, CONTEXT), CONTEXT)
    _same(before, body, rendered, spelling)


def response_comes_back(codec: Dialect, body: Any, spelling: Spelling = as_it_is) -> None:
    if codec.parse_error(body) is not None:
        return  # an error with status 200
    before = deepcopy(body)
    rendered = codec.render_response(codec.parse_response(body, CONTEXT), CONTEXT)
    _same(before, body, rendered, spelling)


def _same(before: Any, body: Any, rendered: Rendered[dict[str, Any]], spelling: Spelling) -> None:
    assert body == before, "the input was changed"
    assert rendered.losses == ()
    found = differences(spelling(body), spelling(rendered.value))
    assert not found, found


def error_comes_back(codec: Dialect, body: Any, status: int) -> None:
    error = codec.parse_error(body, status)
    assert error is not None, f"no error under status {status}"
    if isinstance(body, dict) and "error" not in body:
        return  # a proxy's own form, which clients of the dialect would not understand
    found = differences(body, codec.render_error(error, CONTEXT).value)
    assert not found, found


def stream_comes_back(codec: Dialect, data: bytes) -> None:
    events = read_stream(codec, [data])
    written = write_stream(codec, events)
    again = read_stream(codec, [written.value])
    assert ending(again) is ending(events), "it ends in another way"
    if ending(events) is Finish:
        before, after = fold(events), fold(again)
        assert not [loss for loss in written.losses if loss.feature not in _UPSTREAMS_FAULT], written.losses
        if not before.stop.raw:  # it never had a stop reason
            after = replace(after, stop=before.stop)
        if after.id.endswith(before.id):  # some hosts omit it, or its prefix that clients expect
            after = replace(after, id=before.id)
        found = differences(_spoken(before), _spoken(after))
        # Kimi's ids (`functions.Bash:0`) are not legal on the wire they come from; clients get legal ones.
        # Arguments that break off midway are closed, with the raw text inside, and that is declared.
        bent = {loss.feature for loss in written.losses}
        allowed = r"\]\.id: '[^']*[.:][^']*' !="
        if "tool_call.arguments" in bent:
            allowed += r"|\]\.arguments: .* != .*_raw"
        strange = [line for line in found if not re.search(allowed, line, re.DOTALL)]
        assert not strange, strange


def _spoken(response: Response) -> tuple[object, ...]:
    """The content for comparison, including addresses and raw words that equality ignores between
    dialects."""
    whole = opened(response)
    return canonical_response(whole), whole.id, whole.model, whole.created, whole.stop.raw


# --- silence means identity, and no false alarm: losses are reported if and only if something changed


def request_is_honest(codec: Dialect, request: Request) -> None:
    try:
        rendered = codec.render_request(request, DATED)
    except Unsupported:
        return
    again = codec.parse_request(rendered.value, DATED)
    _honest(canonical_request(request), canonical_request(again), rendered.losses)


def response_is_honest(codec: Dialect, response: Response) -> None:
    rendered = codec.render_response(response, DATED)
    again = opened(codec.parse_response(rendered.value, DATED))
    _honest(canonical_response(response), canonical_response(again), rendered.losses)


def stream_is_honest(codec: Dialect, events: list[Event]) -> None:
    written = write_stream(codec, events, DATED)
    again = read_stream(codec, [written.value], DATED)
    # A client joins the chunks to one message: losses of the whole answer are its losses too.
    whole: tuple[Loss, ...] = ()
    if ending(events) is Finish:
        whole = codec.render_response(fold(events), DATED).losses
    _honest(_reported(events), _reported(again), written.losses, whole)


def plain_request_loses_nothing(codec: Dialect, request: Request) -> None:
    """Features of every dialect (text, images, tools, results) are translated without any loss."""
    rendered = codec.render_request(request, DATED)
    losses = [loss for loss in rendered.losses if loss.feature not in PLAIN_LOSSES]
    assert losses == []


def _honest(before: object, after: object, losses: tuple[Loss, ...], true: tuple[Loss, ...] = ()) -> None:
    """An emulated feature may come back unchanged: the loss says that it is sent in another form. Losses that
    are known to be `true` need no proof."""
    found = differences(before, after)
    if not losses:
        assert not found, found
    elif any(loss.action != "emulated" and loss not in true for loss in losses):
        assert found, f"nothing changed, but it says {losses}"


def _reported(events: list[Event]) -> tuple[Response, list[ForeignEvent]]:
    """The content of a stream: the answer, and the events that are not part of it."""
    foreign = [
        replace(event, value={key: item for key, item in event.value.items() if key != "sequence_number"})
        for event in events
        if isinstance(event, ForeignEvent) and "x_" in event.type  # others accompany parts of the answer
    ]
    return canonical_response(opened(fold(events))), foreign


# --- streams: chunking, grammar, fold, truncation


def cutting_does_not_change_events(codec: Dialect, data: bytes, random_cuts: int = 4) -> None:
    whole, *others = every_cut(data, random_cuts)
    expected = read_stream(codec, whole)
    for pieces in others:
        assert read_stream(codec, pieces) == expected


def events_one_by_one_are_the_same_bytes(codec: Dialect, events: list[Event]) -> None:
    at_once, one_by_one = (codec.stream_writer(CONTEXT) for _ in range(2))
    assert b"".join(one_by_one.write([event]) for event in events) == at_once.write(events)
    assert one_by_one.losses == at_once.losses


def events_follow_the_grammar(codec: Dialect, data: bytes) -> None:
    """And a stream written from them ends in the same way."""
    events = read_stream(codec, [data])
    again = read_stream(codec, [write_stream(codec, events).value])
    assert ending(again) is ending(events), "it ends in another way"


def stream_folds_to_its_twin(codec: Dialect, data: bytes, response: Any) -> None:
    streamed = canonical_events(read_stream(codec, [data]))
    whole = canonical_response(codec.parse_response(response, CONTEXT))
    found = differences(whole, streamed)
    assert not found, found


def cut_is_noticed(codec: Dialect, data: bytes, more: int = 60) -> None:
    """A stream cut anywhere ends in an error or is complete; never a silent stop."""
    try:
        whole = fold(read_stream(codec, [data])).content
    except StreamFailed:
        whole = None
    for at in _places(data, more):
        events = read_stream(codec, [data[:at]])
        if ending(events) is Finish:
            assert whole is not None, f"cut at {at}: finished, though the whole stream fails"
            assert not differences(fold(events).content, whole), f"cut at {at}"


def _places(data: bytes, more: int) -> Iterator[int]:
    """Every byte of a short stream and of the last part of a long one, and some places in between."""
    yield from range(max(0, len(data) - _SHORT), len(data))
    random = Random(len(data))
    for _ in range(more):
        yield random.randrange(len(data))


# --- garbage: a fault of ours that names its place, or a value; nothing else


def strange_request_is_the_clients_fault(codec: Dialect, body: dict[str, Any]) -> Request | None:
    try:
        return codec.parse_request(body, CONTEXT)
    except (ClientFault, Unsupported) as fault:
        names_a_place(fault)
        return None


def strange_response_is_the_upstreams_fault(codec: Dialect, body: dict[str, Any]) -> Response | None:
    codec.parse_error(body, 500)
    try:
        return codec.parse_response(body, CONTEXT)
    except UpstreamFault as fault:
        names_a_place(fault)
        return None


def any_body_is_an_error_or_none(codec: Dialect, body: Any, status: int) -> None:
    error = codec.parse_error(body, status)
    assert (error is not None) or status < 400
    if error is not None:
        codec.render_error(error, CONTEXT)


def names_a_place(fault: WireglotError) -> None:
    assert fault.path.startswith("$"), fault.path
    assert fault.message


# --- twice: the same input gives equal bytes, and is not changed


def twice_is_equal(codec: Dialect, body: dict[str, Any]) -> None:
    before = deepcopy(body)
    request = codec.parse_request(body, CONTEXT)
    first, second = (codec.render_request(request, CONTEXT) for _ in range(2))
    assert encode(first.value) == encode(second.value)
    assert first.losses == second.losses
    assert codec.parse_request(body, CONTEXT) == request
    assert body == before, "the input was changed"


# --- over HTTP


def tap_hears_what_the_reader_reads(codec: Dialect, data: bytes) -> None:
    """The usage of a stream that passes through equals that of a translated one."""
    tap = codec.surface.tap(CONTEXT.max_frame)
    for piece in (data[: len(data) // 2], data[len(data) // 2 :]):
        tap.feed(piece)
    tap.close()
    events = read_stream(codec, [data])
    last = events[-1]
    assert tap.complete, "the stream is whole, and the tap says that it is not"
    if isinstance(last, Failure):
        assert tap.error is not None, "the stream fails, and the tap has not heard it"
        assert tap.error.kind == last.error.kind
        return
    assert isinstance(last, Finish)
    assert tap.error is None
    heard, read = tap.usage, fold(events).usage
    if heard is None or read is None:
        assert heard is read, f"usage: {heard} != {read}"
    else:
        found = differences(replace(read, raw=None), replace(heard, raw=None))
        assert not found, found
    assert tap.stop in _STOPS, f"{tap.stop!r} is no reason to stop"


def cut_is_heard(codec: Dialect, data: bytes) -> None:
    """A tap does not take a part of a stream for all of it."""
    for at in (0, len(data) // 3, len(data) // 2):
        tap = codec.surface.tap(CONTEXT.max_frame)
        tap.feed(data[:at])
        tap.close()
        if tap.complete:
            assert ending(read_stream(codec, [data[:at]])) in (Finish, Failure)
            assert not isinstance(read_stream(codec, [data[:at]])[-1], Failure) or tap.error is not None


def ping_does_not_show(codec: Dialect, data: bytes) -> None:
    """Keep-alives written while an upstream is silent do not change a stream."""
    ping = codec.surface.client.pings["sse"]
    if not data.lstrip().startswith((b"event:", b"data:", b":", b"id:")):
        return  # no stream of events
    expected = read_stream(codec, [data])
    gap = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
    pinged = data.replace(gap, gap + ping)
    assert read_stream(codec, [ping + pinged]) == expected


def glance_sees_what_the_parser_reads(codec: Dialect, body: Any) -> None:
    if codec.parse_error(body) is not None:
        return
    seen, read = codec.surface.glance(encode(body)), codec.parse_response(body, CONTEXT)
    assert (seen.usage is None) is (read.usage is None), f"usage: {seen.usage} != {read.usage}"
    if seen.usage is not None and read.usage is not None:
        found = differences(replace(read.usage, raw=None), replace(seen.usage, raw=None))
        assert not found, found
    assert seen.stop in _STOPS, f"{seen.stop!r} is no reason to stop"
