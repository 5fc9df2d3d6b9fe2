"""Two turns: an answer goes to a client of another dialect, and comes back to its upstream with the next
question, by way of the client alone or with what a gateway has remembered of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from proofs.fidelity.answer_probes import RESPONSES, state_probes
from proofs.fidelity.matrix import (
    DIRECTIONS,
    grade_response,
    grade_state,
    said_back,
    title,
)
from proofs.fidelity.necessary import why_needed
from wireglot.gateway.state.reasoning.names import read_history
from wireglot.gateway.state.reasoning.parts import restored, worth_keeping
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name, surface
from wireglot_core.ir.content import Message, Origin, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import Feature, Loss
from wireglot_core.ir.request import Request
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.laws import differences
from wireglot_core.testing.strategies.samples import MAIN
from wireglot_core.traces.canonical import canonical_request
from wireglot_core.translate import plan, translate_response

_CONTEXT = Context()
_CARRIED = ("kept", "side channel")
_UNSENT: frozenset[Feature] = frozenset({"usage.detail"})
"""Features of answers that no client sends back."""
Kept = dict[str, set[Feature]]


class RoundTrips(NamedTuple):
    trips: int
    same: int
    needed: int
    """Different, and reported so, in what the client's dialect has no place for."""
    avoidable: Counter[str]
    unsaid: list[str]


class Trip(NamedTuple):
    different: list[str]
    losses: tuple[Loss, ...]


def kept_answers() -> Kept:
    """Direction -> features of answers whose every probe is carried: a loss was not necessary."""
    kept: Kept = {}
    for client, upstream in DIRECTIONS:
        grades: dict[Feature, set[str]] = {}
        for probe in RESPONSES:
            grade: str = grade_response(probe, client, upstream)
            for feature in probe.features:
                grades.setdefault(feature, set()).add(grade)
        for state in state_probes(upstream):
            grade = grade_state(state, dialect_name(client), dialect_name(upstream))
            for feature in state.features:
                grades.setdefault(feature, set()).add(grade)
        kept[title(client, upstream)] = {name for name, found in grades.items() if found <= set(_CARRIED)}
    return kept


def round_trips(cases: Iterable[Case], kept: Kept, remembered: bool) -> RoundTrips:
    trips = same = needed = 0
    avoidable: Counter[str] = Counter()
    unsaid: list[str] = []
    for case in cases:
        for client in MAIN:
            trip = round_trip(case, dialect_name(client), remembered) if client != case.dialect else None
            if trip is None:
                continue
            trips += 1
            spared = {
                loss.feature
                for loss in trip.losses
                if loss.action == "dropped"
                and loss.feature in kept[title(client, case.dialect)] - _UNSENT
                and not why_needed(loss, case.body)
            }
            if not trip.different:
                same += 1
            elif not trip.losses:
                unsaid.append(f"{case.id} by {client}: {trip.different[0][:160]}")
            elif spared:
                avoidable.update([f"{title(client, case.dialect)} {' '.join(sorted(spared))}"])
            else:
                needed += 1
    return RoundTrips(trips, same, needed, avoidable, unsaid)


def round_trip(case: Case, client: DialectName, remembered: bool) -> Trip | None:
    """How the turn that comes back to its upstream by a client of another dialect differs from the one a
    client of its own would send, and what was declared on the way. None: there is nothing to send back."""
    upstream = dialect_name(case.dialect)
    codec = dialect(upstream)
    try:
        if codec.parse_error(case.body) is not None:
            return None
        content = codec.parse_response(case.body, _CONTEXT).content
        if not content:
            return None
        question = _question(content)
        if upstream == "gemini":  # some hosts leave the role out, and no client does
            case.body["candidates"][0]["content"].setdefault("role", "model")
        native = said_back(upstream, codec.render_request(question, _CONTEXT).value, case.body)
        there = translate_response(case.body, source=upstream, target=client)
        asked = dialect(client).render_request(question, _CONTEXT).value
        kept = _remembered(content, upstream) if remembered else None
        back = _crossed(said_back(client, asked, there.value), client, upstream, kept)
        before, after = (_turn(codec.parse_request(body, _CONTEXT)) for body in (native, back.value))
    except (WireglotError, KeyError, IndexError):
        return None
    return Trip(differences(before, after), (*there.losses, *back.losses))


def _question(content: tuple[Part, ...]) -> Request:
    """The turns around the answer; where it stood, a placeholder the answer replaces."""
    calls = [part for part in content if isinstance(part, ToolCall)]
    results = tuple(ToolResult(call.id, (Text("21"),), name=call.name, kind=call.kind) for call in calls)
    turns = (
        Message("user", (Text("?"),)),
        Message("assistant", (Text("-"),)),
        Message("user", results or (Text("!"),)),
    )
    return Request("model", turns, max_tokens=100)


def _remembered(content: tuple[Part, ...], upstream: DialectName) -> tuple[Part, ...]:
    """What the vault of a gateway keeps of an answer."""
    server = surface(upstream)
    takes = server.reasoning.takes_unsigned

    def minter(reasoning: Reasoning) -> Origin | None:
        return Origin(server.family, "upstream") if takes is not None and takes(reasoning) else None

    return worth_keeping(content, minter)


def _crossed(
    body: dict[str, Any], client: DialectName, upstream: DialectName, kept: tuple[Part, ...] | None
) -> Rendered[dict[str, Any]]:
    request = dialect(client).parse_request(body, _CONTEXT)
    messages = list(request.messages)
    for turn in read_history(messages).turns if kept is not None else ():
        again = restored(turn, kept or (), by_name=False)
        if again is not None and not again.renamed:
            messages[turn.start : turn.end] = [Message("assistant", again.content)]
            break
    request = msgspec.structs.replace(request, messages=tuple(messages))
    planned = plan(request, source=client, target=upstream, context=_CONTEXT)
    rendered = dialect(upstream).render_request(planned.upstream, planned.context)
    return Rendered(rendered.value, planned.losses + planned.retraced(rendered.losses))


def _turn(request: Request) -> Any:
    """What the model said, with ids of calls by their order: another dialect may have to rename them."""
    said = [message for message in canonical_request(request).messages if message.role == "assistant"]
    names: dict[str, str] = {}
    out = []
    for message in said:
        parts = []
        for part in message.content:
            if isinstance(part, ToolCall):
                identifier = names.setdefault(part.id, f"call_{len(names)}")
                part = msgspec.structs.replace(part, id=identifier)
            elif isinstance(part, Text):
                part = msgspec.structs.replace(part, logprobs=())  # no history holds them
            parts.append(part)
        out.append(Message(message.role, tuple(parts)))
    return out
