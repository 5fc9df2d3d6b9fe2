"""An exchange as a viewer with a client key sees it: what happened to its document, without its target and
the account that paid. This applies to recorded and running exchanges and to previews."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from wireglot.gateway.request.account_details import (
    holds_account,
    names_account,
    shown_model,
    without_account_text,
)
from wireglot.gateway.settings import Provider
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceMessage

HIDDEN: Final = "[hidden from client keys: it names the provider's account]"
_HEADERS_SHOWN: Final = frozenset(
    {"accept", "accept-encoding", "content-encoding", "content-length", "content-type", "date", "retry-after",
     "user-agent"}
)  # fmt: skip
"""Headers of messages to and from a provider that are shown: others may name the account."""

Providers = Mapping[str, Provider]

_replace = msgspec.structs.replace


def own_row(row: Row, providers: Providers) -> Row:
    """Returns the same row if there is nothing to hide."""
    model, error = shown_model(row.model), row.error
    if error:
        error = without_account_text(error, providers.get(row.provider))
    return row if model == row.model and error == row.error else _replace(row, model=model, error=error)


def own_trace(trace: Trace, providers: Providers) -> Trace:
    known = (None, *providers.values())
    notes = [
        HIDDEN if any(without_account_text(note, each) != note for each in known) else note
        for note in trace.notes
    ]
    row, attempts = own_row(trace.row, providers), own_attempts(trace.attempts, providers)
    return _replace(trace, row=row, attempts=attempts, notes=list(dict.fromkeys(notes)))


def own_attempts(attempts: list[Attempt], providers: Providers) -> list[Attempt]:
    return [_own_attempt(each, providers.get(each.provider)) for each in attempts]


def _own_attempt(attempt: Attempt, provider: Provider | None) -> Attempt:
    url = attempt.request.url if attempt.request is not None else ""
    model, known = shown_model(attempt.model), attempt.model

    def names(text: str) -> bool:
        return holds_account(text, provider, url) or (not model and known in text)

    return _replace(
        attempt,
        model=model,
        request=_own_message(attempt.request, names) if attempt.request is not None else None,
        answer=_own_message(attempt.answer, names) if attempt.answer is not None else None,
        error=without_account_text(attempt.error, provider) if attempt.error else "",
        limits={name: value for name, value in attempt.limits.items() if name != "account"},
    )


def _own_message(message: TraceMessage, names: Callable[[str], bool]) -> TraceMessage:
    headers = [each for each in message.headers if each[0].lower() in _HEADERS_SHOWN]
    said = message.body + message.folded + "".join(frame.data for frame in message.frames)
    message = _replace(message, url="", headers=headers)
    # A provider's error message may name accounts that the configuration does not know.
    if not names(said) and not (message.status >= 400 and names_account(said)):
        return message
    frames = [_replace(frame, data="") for frame in message.frames]
    return _replace(message, body=HIDDEN, base64=False, frames=frames, folded="", stops="")
