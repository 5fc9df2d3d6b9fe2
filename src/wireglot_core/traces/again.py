"""Translates a recorded exchange again, with the target information in the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.envelope import is_sealed
from wireglot_core.dialects.faults import is_unsent
from wireglot_core.dialects.places import RequestPlaces, answer_located
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Extra, Origin, Part, Reasoning
from wireglot_core.ir.errors import UpstreamFault, WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Folding
from wireglot_core.ir.verdict import NoAnswer, StreamVerdict, accept
from wireglot_core.providers.aliases import EventRestorer
from wireglot_core.providers.carried import MinterNamer, with_minter
from wireglot_core.providers.emulation import Emulator
from wireglot_core.providers.reasoning_filter import ReasoningFilter
from wireglot_core.traces.target import TraceTarget
from wireglot_core.translate import Plan, plan


class RequestAgain(msgspec.Struct, frozen=True):
    """A request that was translated again."""

    own: Request
    """The request that the client's body was parsed to."""
    read: Request
    """The request whose messages are used to find places of the body."""
    planned: Plan
    document: dict[str, Any]
    """The document sent upstream."""
    losses: tuple[Loss, ...]
    """Losses, with their places in the client's document."""
    context: Context


def ask_again(
    client: str, body: dict[str, Any], target: TraceTarget, context: Context | None = None
) -> RequestAgain:
    """Translates a request again. Raises the translation's errors: a `WireglotError`."""
    spoken = dialect(target.source or client)
    context = replace(
        context or Context(),
        provider=target.provider,
        model=target.model,
        account=target.account,
        emulates=target.emulates,
    )
    own = spoken.parse_request(body, context)
    asked = target.asked if target.asked is not None else own
    if target.stream is not None:
        asked = replace(asked, stream=target.stream)
    planned = plan(
        asked,
        source=spoken.name,
        target=target.dialect,
        model=target.model or None,
        provider=target.provider or None,
        limits=target.limits,
        context=context,
    )
    rendered = dialect(target.dialect).render_request(planned.upstream, planned.context)
    losses = planned.losses + planned.retraced(rendered.losses)
    # Items that only carried the state of a neighbour are no messages once they are unsealed. Messages beyond
    # those of the body are turns that the gateway stores, and come first.
    read = asked if len(asked.messages) <= len(own.messages) else own
    if losses and spoken.places is not None:
        losses = RequestPlaces(spoken.places, body, read).located(losses, asked)
    document = finished(rendered.value, target)
    return RequestAgain(own, read, planned, document=document, losses=losses, context=planned.context)


def finished(document: dict[str, Any], target: TraceTarget) -> dict[str, Any]:
    """An upstream's body after its provider's configuration has added and removed fields."""
    whole = {**document, **target.fields}
    return {name: value for name, value in whole.items() if name not in target.without}


class Amounted(msgspec.Struct, frozen=True):
    """The document that a stream adds up to."""

    document: dict[str, Any]
    """The answer as its dialect returns it when no stream is requested. For a stream without an end: what had
    arrived. An error sent in the middle is added as `error`."""
    stops: str = ""
    """Why this is not the whole answer, as text for users."""


def amounted(name: str, data: bytes) -> Amounted:
    """Raises UpstreamFault if not even the beginning of an answer has arrived."""
    spoken, context = dialect(name), Context()
    reader, folding = spoken.stream_reader(context), Folding()
    folding.add(reader.read(data))
    unreadable = folding.failure is not None
    folding.add(reader.end())
    failed = folding.failure
    if failed is None:
        return Amounted(spoken.render_response(folding.response(), context).value)
    sent = not is_unsent(failed)
    so_far = folding.so_far(_no_stop(name, "failed" if sent else "in_progress"))
    if not sent:
        if so_far is None:
            raise UpstreamFault("the stream ends before an answer begins")
        why = f"here: {failed.message}" if unreadable else "here, before its end"
        return Amounted(spoken.render_response(so_far, context).value, f"the stream stops {why}")
    reported = spoken.render_error(failed, context).value
    if so_far is not None and so_far.content:
        reported = {**spoken.render_response(so_far, context).value, "error": reported.get("error", reported)}
    return Amounted(reported, "the stream stops here, with an error")


def folded(name: str, data: bytes) -> dict[str, Any]:
    """A stream as the document that its dialect returns when no stream is requested."""
    return amounted(name, data).document


def without_error(document: dict[str, Any]) -> dict[str, Any]:
    """The answer before the error that a stream ended with."""
    return {name: value for name, value in document.items() if name != "error"}


def _no_stop(name: str, status: str) -> Stop:
    """What a dialect writes if the end was not reported: no reason, or a status."""
    raw = status if name == "openai-responses" else ""
    return Stop("other", raw, name, extra=Extra(name, {}, {"finishReason": "absent"}))


def as_shown(target: TraceTarget, client: str, document: dict[str, Any], asked: RequestAgain) -> TraceTarget:
    """The target, with `withholds` set if the gateway withheld reasoning: the client did not ask for it, and
    its answer shows none."""
    spoken = dialect(target.source or client)
    asks = spoken.surface.reasoning.asks_thinking
    if asks is None or asks(asked.planned.client):
        return target
    if spoken.surface.family == dialect(target.dialect).surface.family:
        return target
    try:
        shown = spoken.parse_response(without_error(document), Context()).content
    except WireglotError:  # an error, or none that can be read
        return target
    return target if any(type(part) is Reasoning for part in shown) else replace(target, withholds=True)


def withholding(target: TraceTarget, client: str, context: Context) -> ReasoningFilter | None:
    if not target.withholds:
        return None
    minter = Origin(dialect(target.dialect).surface.family, context.provider, context.model)
    return ReasoningFilter(minter, signs=dialect(target.source or client).surface.reasoning.signs_texts)


class StreamAgain:
    """The client's stream, made again from the upstream's events as a gateway makes it."""

    def __init__(self, client: str, target: TraceTarget, asked: RequestAgain) -> None:
        reported, answered = dialect(target.source or client), dialect(target.dialect)
        request, context, family = asked.planned.client, asked.context, answered.surface.family
        aliases = asked.planned.aliases
        self.writer = reported.stream_writer(context, request)
        self._steps: list[Callable[[list[Event]], list[Event]]] = []
        if asked.planned.emulation is not None:
            self._steps.append(Emulator(asked.planned.emulation).events)
        if reported is not answered or target.leaks_calls:
            watch = StreamVerdict(
                request,
                leaves_out=reported.surface.client.leaves_out_calls,
                leaks_calls=target.leaks_calls,
                renamed=aliases.functions,
            )
            self._steps.append(watch.pass_on)
        if aliases:
            self._steps.append(EventRestorer(aliases).events)
        if (hider := withholding(target, client, context)) is not None:
            self._steps.append(hider.events)
        if reported.surface.family != family:
            self._steps.append(MinterNamer(Origin(family, context.provider, context.model)).events)

    def events(self, events: list[Event]) -> list[Event]:
        """The events to pass to `writer`."""
        for step in self._steps:
            events = step(events)
        return events


UNREPORTED: Final = frozenset(
    {"id", "created", "created_at", "completed_at", "model", "modelVersion", "responseId", "createTime"}
)
"""Fields of an answer that belong to one exchange rather than to its content: addresses and times."""
USAGE: Final = frozenset({"usage", "usageMetadata"})


def are_made_up(one: str, other: str) -> bool:
    """Whether both are ids minted by Wireglot, or both are sealed with a secret that no trace contains."""
    return (is_minted(one) and is_minted(other)) or (is_sealed(one) and is_sealed(other))


class AnswerAgain(msgspec.Struct, frozen=True):
    """An answer that was translated again."""

    document: dict[str, Any]
    losses: tuple[Loss, ...] = ()


def answer_again(
    client: str, response: Response, target: TraceTarget, asked: RequestAgain | None, context: Context
) -> AnswerAgain:
    """The upstream's answer as reported to the client."""
    reported, answered = dialect(target.source or client), dialect(target.dialect)
    request = asked.planned.client if asked is not None else None
    losses: tuple[Loss, ...] = ()
    if asked is not None and asked.planned.emulation is not None:
        beside: list[Loss] = []
        response = asked.planned.emulation.response(response, beside)
        losses = tuple(beside)
    if (reported is not answered or target.leaks_calls) and response.stop.reason != "malformed_call":
        try:
            accepted = accept(
                response,
                request,
                may_be_empty=True,
                leaks_calls=target.leaks_calls,
                renamed=asked.planned.aliases.functions if asked is not None else {},
                cuts=target.emulates,
            )
        except NoAnswer as failed:
            return AnswerAgain(reported.render_error(failed.error, context).value)
        response, losses = accepted.response, losses + accepted.losses
    if asked is not None and asked.planned.aliases:
        aliases = asked.planned.aliases
        content: tuple[Part, ...] = tuple(aliases.restore(part) for part in response.content)
        response = replace(response, content=content)
    unseen: list[Loss] = []
    hider = withholding(target, client, context)
    if hider is not None:
        response = hider.response(response)
        unseen += hider.losses
    family = answered.surface.family
    if reported.surface.family != family:
        minter = Origin(family, context.provider, context.model or response.model)
        response = with_minter(response, minter, unseen)
    rendered = reported.render_response(response, context, request)
    every = (*losses, *unseen, *rendered.losses)
    return AnswerAgain(
        rendered.value,
        answer_located(reported.places, every, rendered.value, response.content) if every else (),
    )
