"""A host's own form of a dialect: its version of the request, and its stream decoded from its own framing."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from wireglot.gateway.request.job import Job
from wireglot.gateway.targets.routing import Target
from wireglot.http.application import Headers
from wireglot.http.transport import Answer, TransportFault
from wireglot_core.dialects.surface import Unframer, UpstreamFraming
from wireglot_core.ir.loss import Loss
from wireglot_core.providers.spec import Form, HeaderField
from wireglot_core.wire.event_stream import BadFrame
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import Outline, splice, without

_EVENT_STREAM: Final = "text/event-stream"
_FRAMED: Final = "application/vnd.amazon.eventstream"
"""The framing that some hosts use for a dialect's streams."""


def in_form(form: Form | None, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    """The headers and body in a host's form: some headers move into the body, and fields that are in the path
    are left out."""
    if form is None:
        return headers, body
    reported = {name: value for name, value in headers if name in form.from_headers}
    for field in form.without:
        body = without(body, field)
    if reported:
        present = Outline(body)
        values = {
            into.field: encode(found)
            for name, into in form.from_headers.items()
            if name in reported
            and into.field not in present.members
            and (found := _value(into, reported[name]))
        }
        body = splice(body, values) if values else body
        headers = [header for header in headers if header[0] not in reported]
    return headers, body


def unsent(job: Job, target: Target) -> tuple[Loss, ...]:
    """Header values of the dialect that the host would refuse the whole request for."""
    form = target.provider.spec.forms.get(target.dialect)
    if form is None or target.dialect != job.dialect:
        return ()
    incoming = job.head.headers
    return tuple(
        Loss("$", "unknown_field", "dropped", f"{name}: {target.provider.name} takes no {each}")
        for name, into in form.from_headers.items()
        if into.known
        for each in map(str.strip, incoming.get(name, "").split(","))
        if each and not _is_known(into, into.values.get(each, each))
    )


def _is_known(into: HeaderField, value: str) -> bool:
    return not into.known or any(fnmatchcase(value, known) for known in into.known)


def _value(into: HeaderField, text: str) -> Any:
    """The value of the body field; empty if the host knows none of the header's values."""
    if not into.listed:
        return into.values.get(text, text)
    named = (into.values.get(each, each) for each in map(str.strip, text.split(",")) if each)
    return [each for each in named if _is_known(into, each)]


def unframing(job: Job, target: Target) -> Callable[[Answer], Answer] | None:
    """The wrapper that decodes the host's framing; None: the host streams like the dialect's vendor."""
    forms = target.provider.spec.forms
    form = forms.get(target.dialect) if forms else None
    upstream = target.upstream
    framing = upstream.framing
    if form is not None and form.framing:
        framing = UpstreamFraming(_FRAMED, upstream.framings[form.framing])
    return partial(_unframed, framing, job.settings.limits.event) if framing is not None else None


def _unframed(framing: UpstreamFraming, max_event: int, answer: Answer) -> Answer:
    if not answer.headers.get("content-type", "").startswith(framing.content_type):
        return answer
    return _UnframedAnswer(answer, framing.unframer(max_event))


class _UnframedAnswer:
    """Implements `Answer`: converts a stream in the host's framing to server-sent events. A broken frame
    breaks the connection: the events before it have been passed on."""

    def __init__(self, answer: Answer, unframer: Unframer) -> None:
        self.status = answer.status
        self.headers = {**answer.headers, "content-type": _EVENT_STREAM}
        self._answer = answer
        self._unframer = unframer

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        """Read an answer that is not a stream: an error, or an answer in one piece."""
        return await self._answer.read(limit, held)

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        unframer = self._unframer

        def unframed(data: bytes) -> None:
            try:
                events = unframer.feed(data)
            except BadFrame as fault:
                raise _broken(fault) from None
            if events:
                feed(events)
            if unframer.fault is not None:
                raise _broken(unframer.fault)

        await self._answer.pump(unframed)
        try:
            last = unframer.close()
        except BadFrame as fault:
            raise _broken(fault) from None
        if last:
            feed(last)

    def pause(self) -> None:
        self._answer.pause()

    def resume(self) -> None:
        self._answer.resume()

    def abort(self) -> None:
        self._answer.abort()


def _broken(fault: BadFrame) -> TransportFault:
    return TransportFault("broken", f"the upstream's stream is broken: {fault}")
