"""A dialect whose wire is the neutral conversation itself, as JSON: it loses nothing and keeps every law.

What the tests of the laws break, they break in a copy of it (`msgspec.structs.replace`), one thing at a time.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.registry import dialect
from wireglot_core.dialects.surface import AnswerGlance
from wireglot_core.ir.errors import ApiError, ClientFault, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Failure, Finish, Start, UsageReport

NAME = "toy"
CUT_OFF = Failure(ApiError("server", "cut off"))
_EVENT = msgspec.json.Decoder(Event)


def parse_request(body: Any, context: Context) -> Request:
    try:
        return msgspec.convert(body, Request)
    except msgspec.ValidationError as wrong:
        raise ClientFault(str(wrong)) from wrong


def parse_response(body: Any, context: Context) -> Response:
    try:
        return msgspec.convert(body, Response)
    except msgspec.ValidationError as wrong:
        raise UpstreamFault(str(wrong)) from wrong


def parse_error(body: Any, status: int = 0, /) -> ApiError | None:
    if isinstance(body, dict) and "error" in body:
        try:
            return msgspec.convert(body["error"], ApiError)
        except msgspec.ValidationError:
            pass
    return ApiError("server", "an error", status=status) if status >= 400 else None


def render(value: Request | Response, *_: object) -> Rendered[dict[str, Any]]:
    return Rendered(msgspec.to_builtins(value))


def render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    return Rendered({"error": msgspec.to_builtins(error)})


def frame(event: Event) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(event)


def wire(events: Iterable[Event]) -> bytes:
    return b"".join(map(frame, events))


class Reader:
    """Frames in, events out."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.waiting = b""
        self.over = False

    def read(self, data: bytes) -> list[Event]:
        *frames, self.waiting = (self.waiting + data).replace(b"\r\n", b"\n").split(b"\n\n")
        return [event for each in frames for event in self.event(each)]

    def event(self, frame: bytes) -> Iterable[Event]:
        if self.over or not frame.strip() or frame.startswith(b":"):
            return
        try:
            event: Event = _EVENT.decode(frame.removeprefix(b"data: "))
        except (msgspec.DecodeError, UnicodeDecodeError):
            event = CUT_OFF
        self.over = isinstance(event, Finish | Failure)
        yield event

    def end(self) -> list[Event]:
        return [] if self.over else [CUT_OFF]


class Writer:
    def __init__(self, context: Context, request: Request | None = None, /) -> None:
        self.context = context
        self.request = request
        self.losses: list[Loss] = []

    def write(self, events: Iterable[Event]) -> bytes:
        return wire(self.report(event) for event in events)

    def report(self, event: Event) -> Event:
        """For a broken one to tell something else."""
        return event


class ToyTap:
    """Listens with the reader's own ears."""

    ended = False
    next_event = settled = 0

    def __init__(self, max_frame: int) -> None:
        self.reader = Reader(Context(max_frame=max_frame))
        self.stop = ""
        self.complete = False
        self.error: ApiError | None = None
        self.usage: Usage | None = None

    def feed(self, data: bytes) -> None:
        for event in self.reader.read(data):
            match event:
                case Start(usage=usage) | UsageReport(usage=usage):
                    self.usage = usage
                case Finish():
                    self.usage = event.usage if event.usage is not None else self.usage
                    self.stop, self.complete = event.stop.reason, True
                case Failure():
                    self.error, self.complete = event.error, True
                case _:
                    pass

    def close(self) -> None:
        pass


def glance(body: bytes) -> AnswerGlance:
    response = msgspec.json.decode(body, type=Response)
    return AnswerGlance(response.usage, response.stop.reason)


def _toy() -> Dialect:
    chat = dialect("openai-chat")
    client = replace(chat.surface.client, pings={"sse": b": ping\n\n"})
    return Dialect(
        surface=replace(
            chat.surface, name=NAME, family=NAME, client=client, tap=ToyTap, glance=glance, counts=None
        ),
        parse_request=parse_request,
        render_response=render,
        render_error=render_error,
        stream_writer=Writer,
        render_request=render,
        parse_response=parse_response,
        parse_error=parse_error,
        stream_reader=Reader,
    )


TOY = _toy()
