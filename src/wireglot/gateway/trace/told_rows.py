"""A request's record as a row of the list, and rows as they are told: without secrets, cut to a length."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from wireglot.gateway.observe.record import Record
from wireglot.gateway.trace.client_names import client_name
from wireglot.http.redaction import Redactor
from wireglot.ir.errors import legible
from wireglot.ir.loss import Loss, worst_first
from wireglot.ir.outcome import Usage
from wireglot.traces.trace import Row, State, TracedLoss
from wireglot.wire.json import mend_text

_NAME_LETTERS: Final = 128
_TEXT_LETTERS: Final = 256
_ERROR_LETTERS: Final = 500
_FEATURES_MOST: Final = 24
_BEGINNING_LETTERS: Final = 16
BEGINS: Final = "begins-"
"""How the session of a client is called that names none: by what its conversation begins with."""
_FREE_TEXTS: Final = ("agent", "path", "session", "asked", "model", "stop", "error")
"""Which others wrote."""


def row_fields(record: Record, worker: str) -> dict[str, Any]:
    """The row of a request as far as it has come, by the names of its fields, but for what is not known.
    Texts are as the client or the provider wrote them: see `told`.

    A dictionary, and no `Row`: a call with so many names would take longer than all else here.
    """
    started, finished, first = record.started, record.finished, record.first_byte
    fields: dict[str, Any] = {
        "id": record.id,
        "at": round(time.time() - (time.monotonic() - started), 3),
        "worker": worker,
        "dialect": record.dialect,
        "operation": record.operation,
        "path": record.path[:_TEXT_LETTERS],
        "key": record.caller,
        "asked": record.model[:_NAME_LETTERS],
        "provider": record.provider,
        "model": record.upstream_model[:_NAME_LETTERS],
        "upstream_dialect": record.upstream_dialect,
        "status": record.status,
        "stop": record.stop,
        "attempts": record.attempts,
    }
    if finished:
        fields["state"] = _state(record)
        fields["total_ms"] = _ms(finished - started)
    if first is not None:
        fields["first_ms"] = _ms(first - started)
    if record.agent:
        fields["client"] = client_name(record.agent)
        fields["agent"] = record.agent[:_TEXT_LETTERS]
    if record.session:
        fields["session"] = record.session[:_TEXT_LETTERS]
    elif record.beginning:
        fields["session"] = f"{BEGINS}{record.beginning[:_BEGINNING_LETTERS]}"
    if record.asked_as or record.within:
        fields["belongs_to"] = record.asked_as or record.within
    if record.stream:
        fields["stream"] = True
    if record.passthrough:
        fields["passthrough"] = True
    if record.error_message:
        fields["error"] = record.error_message[:_ERROR_LETTERS]
    if record.usage is not None:
        fields["tokens"] = _tokens(record.usage, record.usage_source)
    if record.cost is not None:
        fields["cost"] = record.cost
    if record.losses:
        fields["losses"], fields["features"] = _counted(record.losses)
    if record.recorded:
        fields["recorded"] = True
    if record.booked:
        fields["booked"] = True
    return fields


def row_of(record: Record, worker: str) -> Row:
    return msgspec.convert(row_fields(record, worker), Row)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


def _state(record: Record) -> State:
    if record.outcome == "client_abort":
        return "left"
    return "done" if record.outcome == "ok" and record.status < 400 else "failed"


def _tokens(usage: Usage, source: str) -> dict[str, Any]:
    return {
        "input": usage.total_input,
        "output": usage.total_output,
        "cached": usage.cache_read,
        "cache_written": usage.cache_write + usage.cache_write_long,
        "reasoning": usage.reasoning or 0,
        "source": source,
    }


def _counted(losses: Sequence[Loss]) -> tuple[dict[str, int], list[str]]:
    grades = {"serious": 0, "degraded": 0, "harmless": 0}
    for loss in losses:
        grades[loss.grade] += 1
    features: list[str] = list(dict.fromkeys(str(loss.feature) for loss in worst_first(losses)))
    return grades, features[:_FEATURES_MOST]


def mended(row: Row) -> Row:
    """Its texts without halves of characters, which cannot be written down."""
    texts = {name: value for name in _FREE_TEXTS if (value := getattr(row, name))}
    return msgspec.structs.replace(row, **{name: mend_text(value) for name, value in texts.items()})


def told(row: Row, redactor: Redactor) -> Row:
    """What others may see of it."""
    texts = {name: _clean(value, redactor) for name in _FREE_TEXTS if (value := getattr(row, name))}
    changed = {name: value for name, value in texts.items() if value != getattr(row, name)}
    return msgspec.structs.replace(row, **changed) if changed else row


def told_losses(losses: Sequence[Loss], redactor: Redactor) -> list[TracedLoss]:
    """The worst first."""
    return [
        TracedLoss(
            feature=loss.feature,
            action=loss.action,
            grade=loss.grade,
            document=loss.document,
            path=_clean(loss.path, redactor),
            detail=_clean(loss.detail, redactor),
        )
        for loss in worst_first(losses)
    ]


def _clean(text: str, redactor: Redactor) -> str:
    return legible(redactor.text(mend_text(text)))
