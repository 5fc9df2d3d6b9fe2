"""Claude Code's auto mode: `safeguards` of a request, `safeguard_results` of its answer, both ways.

Seen in Claude Code 2.1.326 (beta `dangerous-tool-use-2026-09-03`). A check of a wrong type is
refused: no verdict would follow, and a client that gets a 400 with the name of the field checks by itself.
Results that are spelled otherwise than known here stay an unknown field, which returns to this dialect
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.safeguards import TOOL_CALLS, CallVerdict, Safeguard, SafeguardResult, by_id

ASKED: Final = "safeguards"
RESULTS: Final = "safeguard_results"
IN_DELTA: Final = frozenset({"container", RESULTS})
"""Fields that a stream sends at its end, next to the stop reason."""

_DANGEROUS: Final = "dangerous_tool_use"
_CONTEXT: Final = "classifier_context"
_KINDS: Final = {_DANGEROUS: TOOL_CALLS}
_TYPES: Final = {kind: name for name, kind in _KINDS.items()}


def parse_safeguards(body: Fields) -> tuple[Safeguard, ...]:
    """Empty if this dialect would write them differently."""
    parsed = tuple(map(_safeguard, body.objects(ASKED)))
    return parsed if render_safeguards(parsed, []) == body.value.get(ASKED) else ()


def render_safeguards(safeguards: tuple[Safeguard, ...], losses: list[Loss]) -> list[dict[str, Any]]:
    rendered = []
    for index, each in enumerate(safeguards):
        value: dict[str, Any] = {"type": _TYPES.get(each.kind, each.kind)}
        form = own_form(each.extra, NAME)
        if each.context or _CONTEXT in form:
            value[_CONTEXT] = each.context or form[_CONTEXT]
        losses_of_extra(each.extra, NAME, f"$.safeguards[{index}]", losses)
        rendered.append({**value, **own_fields(each.extra, NAME)})
    return rendered


def parse_results(value: Any) -> tuple[SafeguardResult, ...]:
    """Empty if any value in it is unknown."""
    if type(value) is not list:
        return ()
    parsed = tuple(found for item in value if type(item) is dict and (found := _result(item)) is not None)
    return parsed if render_results(parsed, str, []) == value else ()


def render_results(
    results: tuple[SafeguardResult, ...], call_id: Callable[[str], str], losses: list[Loss]
) -> list[dict[str, Any]]:
    """`call_id`: returns the id of a call as the client sees it."""
    rendered = []
    for index, each in enumerate(results):
        path = f"$.safeguard_results[{index}]"
        losses_of_extra(each.extra, NAME, path, losses)
        for id, verdict in each.calls.items():
            losses_of_extra(verdict.extra, NAME, f"{path}.calls.{id}", losses)
        status: dict[str, Any] = {"type": each.status}
        if each.status == "available":
            verdicts = by_id((call_id(id), verdict) for id, verdict in each.calls.items())
            status["tool_uses"] = {id: _verdict_value(verdict) for id, verdict in verdicts.items()}
        elif each.status == "unavailable":
            status["reason"] = each.reason
        own = own_fields(each.extra, NAME)
        rendered.append({"type": _TYPES.get(each.kind, each.kind), "status": status, **own})
    return rendered


def _safeguard(fields: Fields) -> Safeguard:
    kind, context = fields.text("type"), fields.dict_or_none(_CONTEXT) or {}
    form = {_CONTEXT: fields.value[_CONTEXT]} if _CONTEXT in fields.value and not context else {}
    return Safeguard(_KINDS.get(kind, kind), context, _rest(fields.value, "type", _CONTEXT, form=form))


def _result(value: dict[str, Any]) -> SafeguardResult | None:
    kind, status = value.get("type"), value.get("status")
    if type(kind) is not str or type(status) is not dict:
        return None
    kind, extra = _KINDS.get(kind, kind), _rest(value, "type", "status")
    match status:
        case {"type": "available", "tool_uses": dict(uses)}:
            verdicts = {id: _verdict(use) for id, use in uses.items() if type(use) is dict}
            calls = {id: verdict for id, verdict in verdicts.items() if verdict is not None}
            return SafeguardResult(kind, "available", calls, extra=extra)
        case {"type": "unavailable", "reason": str(reason)}:
            return SafeguardResult(kind, "unavailable", reason=reason, extra=extra)
        case {"type": "unsupported"}:
            return SafeguardResult(kind, "unsupported", extra=extra)
    return None


def _verdict(value: dict[str, Any]) -> CallVerdict | None:
    extra = _rest(value, "type", "outcome", "explanation", "reason")
    match value:
        case {"type": "evaluated", "outcome": "flagged" | "not_flagged" as outcome}:
            return CallVerdict(outcome, value.get("explanation") or "", extra)
        case {"type": "skipped"}:
            return CallVerdict("skipped", extra=extra)
        case {"type": "unavailable", "reason": str(reason)}:
            return CallVerdict("unavailable", reason, extra)
    return None


def _verdict_value(verdict: CallVerdict) -> dict[str, Any]:
    own = own_fields(verdict.extra, NAME)
    match verdict.outcome:
        case "skipped":
            return {"type": "skipped", **own}
        case "unavailable":
            return {"type": "unavailable", "reason": verdict.reason, **own}
        case outcome:
            value = {"type": "evaluated", "outcome": outcome}
            return {**value, **({"explanation": verdict.reason} if verdict.reason else {}), **own}


def _rest(value: dict[str, Any], *known: str, form: dict[str, Any] | None = None) -> Extra | None:
    fields = {key: item for key, item in value.items() if key not in known}
    return Extra(NAME, fields, form or {}) if fields or form else None
