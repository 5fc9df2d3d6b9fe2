"""Every law notices a codec that breaks it, and says nothing about one that keeps it."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.core.testing.toy_dialect import (
    CUT_OFF,
    TOY,
    Reader,
    ToyTap,
    Writer,
    frame,
    glance,
    parse_error,
    wire,
)
from tests.tiers import rows
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.surface import AnswerGlance
from wireglot_core.ir.content import Extra, Message, Text, ToolCall
from wireglot_core.ir.errors import ApiError, ClientFault, Unsupported, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request, Sampling, Tool
from wireglot_core.ir.stream import (
    BrokenGrammar,
    Delta,
    Event,
    Failure,
    Finish,
    ForeignEvent,
    PartEnd,
    PartStart,
    Start,
    unfold,
)
from wireglot_core.testing import codec_laws as laws

REQUEST = Request("m", (Message("user", (Text("hello"),)),), (Tool("look"),), sampling=Sampling(seed=1))
RESPONSE = Response(
    "id-1",
    "m",
    (Text("hello there"), ToolCall("call_1", "look", '{"at":1}')),
    Stop("tool_calls", "tool_use"),
    Usage(input=3, output=4),
    created=5,
)
ASKED: dict[str, Any] = msgspec.to_builtins(REQUEST)
ANSWERED: dict[str, Any] = msgspec.to_builtins(RESPONSE)
EVENTS = list(unfold(RESPONSE))
STREAM = wire(EVENTS)
REFUSED = ApiError("rate_limit", "slow down", status=429)
FAILING = [EVENTS[0], Failure(REFUSED)]
DROPPED = Loss("$.seed", "sampling.seed", "dropped")
EMULATED = Loss("$.tools[0]", "tool.name", "emulated")


def broken(**parts: Any) -> Dialect:
    return replace(TOY, **parts)


def parsing(change: Callable[[Any], Any]) -> Callable[[Any, Context], Any]:
    """A parser of requests or responses whose value is changed."""

    def parse(body: Any, context: Context) -> Any:
        whole = TOY.parse_request if "messages" in body else TOY.parse_response
        return change(whole(body, context))

    return parse


def rendering(change: Callable[[Any], Any] = lambda value: value, *losses: Loss) -> Callable[..., Any]:
    def render(value: Any, *_: object) -> Rendered[Any]:
        return Rendered(msgspec.to_builtins(change(value)), losses)

    return render


def writing(reported: Callable[[Event], Event], *losses: Loss) -> type[Writer]:
    class Other(Writer):
        def __init__(self, context: Context, request: Request | None = None, /) -> None:
            super().__init__(context, request)
            self.losses = list(losses)

        def report(self, event: Event) -> Event:
            return reported(event)

    return Other


def as_it_is(value: Any) -> Any:
    return value


def greedy(body: Any, context: Context) -> Any:
    """A parser that takes its input apart."""
    value = parsing(as_it_is)(dict(body), context)
    body.pop("model")
    return value


def breaks(law: Callable[..., object], *arguments: Any, match: str | None = None) -> None:
    with pytest.raises(AssertionError, match=match):
        law(*arguments)


def numbered() -> Callable[[Any], Any]:
    """A change that is another one each time."""
    count = 0

    def change(request: Request) -> Request:
        nonlocal count
        count += 1
        return replace(request, user=str(count))

    return change


# --- identity


def test_the_toy_keeps_every_law():
    laws.request_comes_back(TOY, ASKED)
    laws.response_comes_back(TOY, ANSWERED)
    laws.error_comes_back(TOY, {"error": msgspec.to_builtins(REFUSED)}, 429)
    laws.request_is_honest(TOY, REQUEST)
    laws.response_is_honest(TOY, RESPONSE)
    laws.plain_request_loses_nothing(TOY, REQUEST)
    laws.twice_is_equal(TOY, ASKED)
    laws.glance_sees_what_the_parser_reads(TOY, ANSWERED)
    laws.stream_folds_to_its_twin(TOY, STREAM, ANSWERED)
    for events in (EVENTS, FAILING):
        laws.stream_comes_back(TOY, wire(events))
        laws.cutting_does_not_change_events(TOY, wire(events))
        laws.events_one_by_one_are_the_same_bytes(TOY, events)
        laws.events_follow_the_grammar(TOY, wire(events))
        laws.cut_is_noticed(TOY, wire(events))
        laws.tap_hears_what_the_reader_reads(TOY, wire(events))
        laws.cut_is_heard(TOY, wire(events))
        laws.ping_does_not_show(TOY, wire(events))
    laws.stream_is_honest(TOY, EVENTS)


DOCUMENTS = pytest.mark.parametrize(
    ("law", "body", "parser", "renderer"),
    [
        (laws.request_comes_back, ASKED, "parse_request", "render_request"),
        (laws.response_comes_back, ANSWERED, "parse_response", "render_response"),
    ],
)


@DOCUMENTS
def test_a_document_that_comes_back_otherwise_is_noticed(law, body, parser, renderer):
    breaks(law, broken(**{parser: parsing(lambda value: replace(value, model="other"))}), body)
    breaks(law, broken(**{renderer: rendering(lambda value: replace(value, model="other"))}), body)


@DOCUMENTS
def test_a_loss_toward_its_own_dialect_is_noticed(law, body, parser, renderer):
    breaks(law, broken(**{renderer: rendering(as_it_is, DROPPED)}), body)


@DOCUMENTS
def test_a_parser_that_changes_its_input_is_noticed(law, body, parser, renderer):
    breaks(law, broken(**{parser: greedy}), dict(body), match="the input was changed")


@DOCUMENTS
def test_another_spelling_is_forgiven_where_the_dialect_says_so(law, body, parser, renderer):
    loud = broken(**{renderer: rendering(lambda value: replace(value, model=value.model.upper()))})
    breaks(law, loud, body)
    law(loud, body, lambda document: {**document, "model": document["model"].lower()})


def test_an_error_under_200_is_no_response():
    """Neither law has anything to say of it, whatever the parser of responses does."""

    def refuse(body: Any, context: Context) -> Response:
        raise AssertionError("it was read as a response")

    body = {"error": msgspec.to_builtins(REFUSED)}
    laws.response_comes_back(broken(parse_response=refuse), body)
    laws.glance_sees_what_the_parser_reads(broken(parse_response=refuse), body)


def test_an_error_that_is_not_seen_or_comes_back_otherwise_is_noticed():
    body = {"error": msgspec.to_builtins(REFUSED)}
    deaf = broken(parse_error=lambda body, status=0: None)
    breaks(laws.error_comes_back, deaf, body, 429, match="no error under status 429")
    other = broken(render_error=lambda error, context: Rendered({"error": {"message": "other"}}))
    breaks(laws.error_comes_back, other, body, 429)
    # A proxy's own form need not come back: clients of the dialect would not understand it.
    laws.error_comes_back(other, {"detail": "bad gateway"}, 502)
    breaks(laws.error_comes_back, other, ["bad gateway"], 502)
    breaks(laws.error_comes_back, deaf, {"detail": "bad gateway"}, 502, match="no error under status 502")


def test_the_status_of_an_error_is_reported_to_its_parser():
    def by_status(body: Any, status: int = 0, /) -> ApiError | None:
        return parse_error(body) if status == 429 else None

    laws.error_comes_back(broken(parse_error=by_status), {"error": msgspec.to_builtins(REFUSED)}, 429)


def on(kind: type[Event], **fields: Any) -> Callable[[Event], Event]:
    """A writer's defect: the fields of one kind of event are others."""
    return lambda event: replace(event, **fields) if isinstance(event, kind) else event


def other_words(event: Event) -> Event:
    return replace(event, text=event.text.upper()) if isinstance(event, Delta) else event


def failing(event: Event) -> Event:
    return CUT_OFF if isinstance(event, Finish) else event


@rows(
    ("reported", "match"),
    [
        (other_words, "HELLO THERE"),
        (failing, "it ends in another way"),
        (on(Start, model="other"), "'m' != 'other'"),
        (on(Start, created=6), "5 != 6"),
        (on(Start, id="other"), "'id-1' != 'other'"),
        (on(Start, id="id-1-b"), "'id-1' != 'id-1-b'"),
        (on(Finish, stop=Stop("tool_calls", "other")), "'tool_use' != 'other'"),
        (on(Finish, stop=Stop("end", "tool_use")), "reason"),
        (on(Finish, usage=Usage(input=4, output=4)), "3 != 4"),
    ],
)
def test_a_stream_that_comes_back_otherwise_is_noticed(reported, match):
    breaks(laws.stream_comes_back, broken(stream_writer=writing(reported)), STREAM, match=match)


def test_a_failed_stream_must_come_back_as_a_failed_one():
    def fine(event: Event) -> Event:
        return Finish(Stop("end")) if isinstance(event, Failure) else event

    breaks(laws.stream_comes_back, broken(stream_writer=writing(fine)), wire(FAILING), match="another way")
    breaks(laws.events_follow_the_grammar, broken(stream_writer=writing(fine)), wire(FAILING))
    breaks(laws.events_follow_the_grammar, broken(stream_writer=writing(failing)), STREAM)


def test_what_an_upstream_did_wrong_may_be_repaired_on_the_way_back():
    # It never said why it stopped, or gave no id, or one without the beginning that clients look for.
    nameless = [*EVENTS[:-1], Finish(Stop("tool_calls"), RESPONSE.usage)]
    named = writing(on(Finish, stop=Stop("end", "end_turn")))
    laws.stream_comes_back(broken(stream_writer=named), wire(nameless))
    laws.stream_comes_back(broken(stream_writer=writing(on(Start, id="msg_id-1"))), STREAM)
    for feature in ("tool_call.id", "tool_call.arguments", "stop_reason"):
        loss = Loss("$", feature, "approximated")
        laws.stream_comes_back(broken(stream_writer=writing(as_it_is, loss)), STREAM)
    breaks(laws.stream_comes_back, broken(stream_writer=writing(as_it_is, DROPPED)), STREAM)
    both = writing(as_it_is, Loss("$", "stop_reason", "approximated"), DROPPED)
    breaks(laws.stream_comes_back, broken(stream_writer=both), STREAM)


def calling(id: str, arguments: str) -> list[Event]:
    return list(unfold(replace(RESPONSE, content=(ToolCall(id, "look", arguments),))))


def test_only_ids_that_their_wire_forbids_may_come_back_as_others():
    def renamed(event: Event) -> Event:
        new = ToolCall("call_9", "look", "")
        return replace(event, part=new) if isinstance(event, PartStart) else event

    codec = broken(stream_writer=writing(renamed))
    for id in ("functions.Bash:0", "a.b", "a:b"):
        laws.stream_comes_back(codec, wire(calling(id, "{}")))
    breaks(laws.stream_comes_back, codec, wire(calling("call_1", "{}")))


def test_only_broken_arguments_may_come_back_closed_and_only_when_declared():
    def closed(event: Event) -> Event:
        return replace(event, text='{"_raw":"{"}') if isinstance(event, Delta) else event

    repaired = Loss("$", "tool_call.arguments", "approximated")
    stream = wire(calling("call_1", "{"))
    laws.stream_comes_back(broken(stream_writer=writing(closed, repaired)), stream)
    breaks(laws.stream_comes_back, broken(stream_writer=writing(closed)), stream)
    breaks(laws.stream_comes_back, broken(stream_writer=writing(other_words, repaired)), STREAM)


# --- honesty


@pytest.mark.parametrize(
    ("law", "value", "renderer"),
    [
        (laws.request_is_honest, REQUEST, "render_request"),
        (laws.response_is_honest, RESPONSE, "render_response"),
    ],
)
def test_silence_about_a_change_and_a_false_alarm_are_noticed(law, value, renderer):
    def changed(value: Any) -> Any:
        return replace(value, extra=Extra("toy", {"more": 1}))

    breaks(law, broken(**{renderer: rendering(changed)}), value)
    breaks(law, broken(**{renderer: rendering(as_it_is, DROPPED)}), value, match="nothing changed")
    breaks(law, broken(**{renderer: rendering(as_it_is, EMULATED, DROPPED)}), value, match="nothing changed")
    law(broken(**{renderer: rendering(changed, DROPPED)}), value)
    # What travels in another form may come back as it was.
    law(broken(**{renderer: rendering(as_it_is, EMULATED)}), value)


def test_a_request_that_cannot_be_said_is_no_dishonesty():
    def refuse(request: Request, context: Context) -> Rendered[Any]:
        raise Unsupported("no words for it")

    laws.request_is_honest(broken(render_request=refuse), REQUEST)


def test_the_laws_of_honesty_know_the_time():
    """An answer without a date gets one where its dialect demands it: the clock of a law stands still."""
    seen: list[int] = []

    def render(value: Any, context: Context, *_: object) -> Rendered[Any]:
        seen.append(context.now)
        return Rendered(msgspec.to_builtins(value))

    codec = broken(render_request=render, render_response=render)
    laws.request_is_honest(codec, REQUEST)
    laws.response_is_honest(codec, RESPONSE)
    laws.plain_request_loses_nothing(codec, REQUEST)
    assert seen == [laws.DATED.now] * 3
    assert laws.DATED.now > 0


def test_a_stream_that_tells_something_else_must_say_so():
    other = writing(other_words)
    breaks(laws.stream_is_honest, broken(stream_writer=other), EVENTS)
    laws.stream_is_honest(broken(stream_writer=writing(other_words, DROPPED)), EVENTS)
    breaks(laws.stream_is_honest, broken(stream_writer=writing(as_it_is, DROPPED)), EVENTS)


def with_event(type: str, **value: Any) -> list[Event]:
    return [EVENTS[0], ForeignEvent("toy", type, value), *EVENTS[1:]]


def test_an_event_of_an_extension_is_part_of_what_a_stream_tells():
    def deaf(event: Event) -> Event:
        return replace(event, value={}) if isinstance(event, ForeignEvent) else event

    codec = broken(stream_writer=writing(deaf))
    breaks(laws.stream_is_honest, codec, with_event("x_note", text="a"))
    # Events that accompany parts are reported by the parts, and their numbers by their order.
    laws.stream_is_honest(codec, with_event("progress", text="a"))
    laws.stream_is_honest(codec, with_event("x_note", sequence_number=7))


def test_a_plain_request_may_lose_only_what_not_everybody_has():
    for feature in ("max_tokens", "tool_result.error", "tool_result.media", "content.empty"):
        codec = broken(render_request=rendering(as_it_is, Loss("$", feature, "approximated")))
        laws.plain_request_loses_nothing(codec, REQUEST)
    breaks(laws.plain_request_loses_nothing, broken(render_request=rendering(as_it_is, DROPPED)), REQUEST)


# --- streams


class Forgetful(Reader):
    """Takes every piece for whole frames."""

    def read(self, data: bytes) -> list[Event]:
        self.waiting = b""
        return super().read(data)


def test_a_reader_that_depends_on_how_its_input_arrives_is_noticed():
    breaks(laws.cutting_does_not_change_events, broken(stream_reader=Forgetful), STREAM)


def test_streams_are_cut_at_random_as_often_as_asked():
    """One reader for each way to cut it: the more is asked, the more are tried."""
    made: list[Reader] = []

    def reader(context: Context) -> Reader:
        made.append(Reader(context))
        return made[-1]

    long = wire([EVENTS[0], PartStart(0, Text("")), Delta(0, "x" * 500), PartEnd(0), EVENTS[-1]])
    laws.cutting_does_not_change_events(broken(stream_reader=reader), long, 0)
    few = len(made)
    laws.cutting_does_not_change_events(broken(stream_reader=reader), long)
    assert len(made) == 2 * few + 4


def test_a_writer_that_depends_on_how_events_arrive_is_noticed():
    class Batched(Writer):
        def write(self, events: Iterable[Event]) -> bytes:
            return super().write(events) + b": batch\n\n"

    class Grumbling(Writer):
        def write(self, events: Iterable[Event]) -> bytes:
            self.losses.append(DROPPED)
            return super().write(events)

    for writer in (Batched, Grumbling):
        breaks(laws.events_one_by_one_are_the_same_bytes, broken(stream_writer=writer), EVENTS)


def test_events_out_of_order_are_noticed():
    class Startless(Reader):
        def event(self, frame: bytes) -> Iterable[Event]:
            return (event for event in super().event(frame) if not isinstance(event, Start))

    codec = broken(stream_reader=Startless)
    for law in (laws.events_follow_the_grammar, laws.stream_comes_back, laws.cutting_does_not_change_events):
        with pytest.raises(BrokenGrammar):
            law(codec, STREAM)


def test_a_stream_that_amounts_to_something_else_than_its_twin_is_noticed():
    breaks(laws.stream_folds_to_its_twin, TOY, STREAM, {**ANSWERED, "content": []})
    breaks(laws.stream_folds_to_its_twin, TOY, wire(unfold(replace(RESPONSE, usage=None))), ANSWERED)


class Content(Reader):
    """Takes the end of the bytes for the end of the answer."""

    finish = Finish(RESPONSE.stop, RESPONSE.usage)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.started: list[Event] = []

    def read(self, data: bytes) -> list[Event]:
        self.started += super().read(data)
        return []

    def end(self) -> list[Event]:
        if self.over or not self.started:
            return [*self.started, *super().end()]
        live = {event.index for event in self.started if isinstance(event, PartStart)}
        live -= {event.index for event in self.started if isinstance(event, PartEnd)}
        return [*self.started, *(PartEnd(index) for index in sorted(live)), self.finish]


def test_a_silent_stop_is_noticed():
    breaks(laws.cut_is_noticed, broken(stream_reader=Content), STREAM, match="cut at")
    breaks(laws.cut_is_noticed, broken(stream_reader=Content), wire(FAILING), match="the whole stream fails")


@pytest.mark.parametrize("size", [1, 100, 700])
def test_a_short_stream_is_cut_at_every_byte(size):
    assert cuts(b"x" * size, more=0) == list(range(size))


def test_a_long_stream_is_cut_at_the_end_and_here_and_there():
    data = b"x" * 3000
    assert cuts(data, more=0) == list(range(2300, 3000))
    some = cuts(data, more=50)[700:]
    assert len(some) == 50
    assert len(cuts(data)) > 700
    assert all(0 <= at < 3000 for at in some)
    assert min(some) < 2300


def cuts(data: bytes, **more: int) -> list[int]:
    """Where a stream is cut: each reader behind the first is given the bytes up to there."""
    seen: list[int] = []

    class Counting(Reader):
        def read(self, data: bytes) -> list[Event]:
            seen.append(len(data))
            return []

    laws.cut_is_noticed(broken(stream_reader=Counting), data, **more)
    assert seen[0] == len(data)
    return seen[1:]


# --- garbage


@pytest.mark.parametrize(
    ("law", "parser", "fault", "other"),
    [
        (laws.strange_request_is_the_clients_fault, "parse_request", ClientFault, UpstreamFault),
        (laws.strange_request_is_the_clients_fault, "parse_request", Unsupported, KeyError),
        (laws.strange_response_is_the_upstreams_fault, "parse_response", UpstreamFault, ClientFault),
    ],
)
def test_only_a_fault_that_names_its_place_answers_garbage(law, parser, fault, other):
    def raising(problem: Exception) -> Dialect:
        def parse(body: Any, context: Context) -> Any:
            raise problem

        return broken(**{parser: parse})

    assert law(raising(fault("not a list", "$.messages")), {}) is None
    breaks(law, raising(fault("not a list", "messages")), {})
    breaks(law, raising(fault("", "$.messages")), {})
    with pytest.raises(other):
        law(raising(other("not a list")), {})


def test_what_can_be_read_is_given_back():
    assert laws.strange_request_is_the_clients_fault(TOY, ASKED) == REQUEST
    assert laws.strange_response_is_the_upstreams_fault(TOY, ANSWERED) == RESPONSE


def test_a_strange_response_must_not_upset_the_parser_of_errors():
    def upset(body: Any, status: int = 0, /) -> ApiError | None:
        raise KeyError("error") if status == 500 else AssertionError("another status")

    with pytest.raises(KeyError):
        laws.strange_response_is_the_upstreams_fault(broken(parse_error=upset), ANSWERED)


def test_a_refusal_without_an_error_is_noticed():
    deaf = broken(parse_error=lambda body, status=0: None)
    breaks(laws.any_body_is_an_error_or_none, deaf, None, 400)
    laws.any_body_is_an_error_or_none(deaf, None, 399)
    laws.any_body_is_an_error_or_none(deaf, None, 0)


def test_every_error_can_be_reported():
    def dumb(error: ApiError, context: Context) -> Rendered[Any]:
        raise KeyError(error.kind)

    with pytest.raises(KeyError):
        laws.any_body_is_an_error_or_none(broken(render_error=dumb), "odd", 500)
    laws.any_body_is_an_error_or_none(broken(render_error=dumb), "odd", 200)


# --- twice


def test_a_codec_that_answers_otherwise_the_second_time_is_noticed():
    breaks(laws.twice_is_equal, broken(render_request=rendering(numbered())), ASKED)
    breaks(laws.twice_is_equal, broken(parse_request=parsing(numbered())), ASKED)
    reported: list[Loss] = []

    def grumbling(request: Request, context: Context) -> Rendered[Any]:
        reported.append(DROPPED)
        return Rendered(msgspec.to_builtins(request), tuple(reported))

    breaks(laws.twice_is_equal, broken(render_request=grumbling), ASKED)

    def marking(body: Any, context: Context) -> Request:
        request = TOY.parse_request({**body}, context)
        body["seen"] = True
        return request

    breaks(laws.twice_is_equal, broken(parse_request=marking), dict(ASKED), match="the input was changed")


# --- over HTTP


def tapped(at_the_end: Callable[[ToyTap], None]) -> Dialect:
    class Other(ToyTap):
        def close(self) -> None:
            at_the_end(self)

    return broken(surface=replace(TOY.surface, tap=Other))


def hears(**heard: Any) -> Dialect:
    def change(tap: ToyTap) -> None:
        for name, value in heard.items():
            setattr(tap, name, value)

    return tapped(change)


@rows(
    ("heard", "events", "match"),
    [
        ({"complete": False}, EVENTS, "the tap says that it is not"),
        ({"complete": False}, FAILING, "the tap says that it is not"),
        ({"error": None}, FAILING, "has not heard it"),
        ({"error": ApiError("server", "slow down")}, FAILING, None),
        ({"error": REFUSED}, EVENTS, None),
        ({"usage": None}, EVENTS, "usage: None"),
        ({"usage": Usage(input=3)}, EVENTS, None),
        ({"usage": Usage(input=3)}, list(unfold(replace(RESPONSE, usage=None))), "usage: "),
        ({"stop": "tool_use"}, EVENTS, "no reason to stop"),
    ],
)
def test_a_tap_that_hears_something_else_is_noticed(heard, events, match):
    breaks(laws.tap_hears_what_the_reader_reads, hears(**heard), wire(events), match=match)


def test_a_tap_may_tell_less_of_the_end_and_keep_the_numbers_as_they_came():
    raw = Usage(input=3, output=4, raw=Extra("toy", {"prompt": 3}))
    laws.tap_hears_what_the_reader_reads(hears(usage=raw), STREAM)
    laws.tap_hears_what_the_reader_reads(hears(stop=""), STREAM)
    laws.tap_hears_what_the_reader_reads(hears(stop="refused"), STREAM)
    laws.tap_hears_what_the_reader_reads(TOY, wire(unfold(replace(RESPONSE, usage=None))))
    heard = replace(REFUSED, message="other words")
    laws.tap_hears_what_the_reader_reads(hears(error=heard), wire(FAILING))


def test_a_tap_is_fed_all_of_the_stream_in_two_pieces_and_notified_of_its_end():
    fed: list[bytes] = []
    closed: list[int] = []

    class Listening(ToyTap):
        def feed(self, data: bytes) -> None:
            fed.append(data)
            super().feed(data)

        def close(self) -> None:
            closed.append(len(fed))

    codec = broken(surface=replace(TOY.surface, tap=Listening))
    laws.tap_hears_what_the_reader_reads(codec, STREAM)
    assert b"".join(fed) == STREAM
    assert [len(piece) for piece in fed] == [len(STREAM) // 2, len(STREAM) - len(STREAM) // 2]
    assert closed == [2]
    fed.clear()
    laws.cut_is_heard(codec, STREAM)
    assert [len(piece) for piece in fed] == [0, len(STREAM) // 3, len(STREAM) // 2]
    assert closed == [2, 1, 2, 3]


def test_a_tap_that_takes_a_part_for_the_whole_is_noticed():
    breaks(laws.cut_is_heard, hears(complete=True), STREAM)
    # Whole is also what ended in an error, when that was heard.
    laws.cut_is_heard(hears(complete=True, error=REFUSED), STREAM)
    laws.cut_is_heard(hears(complete=False), STREAM)
    early = broken(surface=hears(complete=True).surface, stream_reader=Content)
    short = wire([*EVENTS[:1], EVENTS[-1]]) + b": " + b"x" * 2000 + b"\n\n"
    with pytest.raises(AssertionError):  # nothing was read at all, and the tap calls it whole
        laws.cut_is_heard(early, short)


def pinged(ping: bytes) -> Dialect:
    client = replace(TOY.surface.client, pings={"sse": ping})
    return broken(surface=replace(TOY.surface, client=client))


def test_a_ping_that_shows_in_a_stream_is_noticed():
    visible = pinged(frame(ForeignEvent("toy", "ping", {})))
    with pytest.raises(AssertionError):
        laws.ping_does_not_show(visible, STREAM)
    with pytest.raises(AssertionError):  # also where lines end otherwise
        laws.ping_does_not_show(visible, STREAM.replace(b"\n\n", b"\r\n\r\n"))
    # A ping that is reported before the first event would be out of order; one between two events shows.
    between = pinged(b"data: ~\n\n")
    breaks(laws.ping_does_not_show, between, STREAM)


def test_a_ping_stands_between_all_events_however_their_lines_end():
    for gap in (b"\n\n", b"\r\n\r\n"):
        seen: list[bytes] = []

        class Listening(Reader):
            def read(self, data: bytes, seen: list[bytes] = seen) -> list[Event]:
                seen.append(data)
                return super().read(data)

        data = STREAM.replace(b"\n\n", gap)
        laws.ping_does_not_show(replace(pinged(b": p\n\n"), stream_reader=Listening), data)
        assert seen == [data, b": p\n\n" + data.replace(gap, gap + b": p\n\n")]


@rows("start", [b"event: a\n", b"data: 1\n\n", b": hello\n\n", b"id: 1\n", b"\n\ndata: 1\n\n"])
def test_streams_of_events_are_pinged(start):
    def refuse(context: Context) -> Reader:
        raise LookupError

    with pytest.raises(LookupError):
        laws.ping_does_not_show(broken(stream_reader=refuse), start)


def test_a_json_array_is_no_stream_of_events():
    def refuse(context: Context) -> Reader:
        raise LookupError

    laws.ping_does_not_show(broken(stream_reader=refuse), b'[{"a": 1}]')


def glancing(change: Callable[[AnswerGlance], AnswerGlance]) -> Dialect:
    return broken(surface=replace(TOY.surface, glance=lambda body: change(glance(body))))


def test_a_glance_that_sees_something_else_is_noticed():
    law = laws.glance_sees_what_the_parser_reads
    breaks(law, glancing(lambda seen: replace(seen, usage=None)), ANSWERED, match="usage: None")
    breaks(law, glancing(lambda seen: replace(seen, usage=Usage(input=1))), ANSWERED)
    breaks(law, glancing(lambda seen: replace(seen, stop="tool_use")), ANSWERED, match="no reason to stop")
    free = msgspec.to_builtins(replace(RESPONSE, usage=None))
    breaks(law, glancing(lambda seen: replace(seen, usage=Usage(input=1))), free, match="!= None")
    law(TOY, free)
    raw = Usage(input=3, output=4, raw=Extra("toy", {"prompt": 3}))
    law(glancing(lambda seen: replace(seen, usage=raw, stop="")), ANSWERED)
