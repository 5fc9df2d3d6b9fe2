"""Whether there is anybody to be put to the test: before the first case, and while cases run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from wireglot.cli.paint import one_line
from wireglot.probe.endpoint import Got
from wireglot.probe.question import ask
from wireglot.probe.run import Finding
from wireglot.probe.talk import Talk
from wireglot.probe.verdict import Broken, Inconclusive, NotApplicable
from wireglot.wire.json import BadJson, decode

_PAUSE_SECONDS: Final = 2.0
_SILENT_CASES: Final = 3
"""So many cases in a row without one answer: each waits for minutes where an endpoint hangs."""


class NoUse(Exception):
    """In words for people: it was asked, and does not answer as it should."""


def first_model(talk: Talk, root: str) -> str:
    try:
        got = talk.get(talk.path("models"))
        if got.status != 200:
            ask_for = "is the key right? Or name" if got.status in (401, 403) else "name"
            raise NoUse(f"{root}: it lists no models (status {got.status}): {ask_for} one with --model")
        names = talk.wire.models(talk.document(got))
    except Inconclusive as fault:
        raise NoUse(f"{root}: {fault}") from None
    except (Broken, NotApplicable) as fault:
        raise NoUse(
            f"{root}: its list of models cannot be read ({one_line(str(fault))}): name one with --model"
        ) from None
    if not names:
        raise NoUse(f"{root}: it lists no models: name one with --model")
    return names[0]


def check_answers(talk: Talk, root: str) -> None:
    """One question before all others: where it is not answered at all, a hundred more would not be. A refusal
    of the question itself is for the cases to judge. Raises NoUse."""
    got = _asked(talk, root)
    if got.status == 429 or got.status >= 500:
        time.sleep(_PAUSE_SECONDS)
        got = _asked(talk, root)
    words = f"{root}: {one_line(_words(talk, got))}"
    if got.status in (401, 403, 404):
        raise NoUse(f"{words}: are address, key and model right?")
    if got.status == 429 or got.status >= 500:
        raise NoUse(f"{words}: nothing can be tested before it answers")
    if 300 <= got.status < 400:
        raise NoUse(
            f"{words}: it leads to {one_line(got.headers.get('location', 'nowhere'))}: give that address"
        )
    if got.status == 200 and not _is_json(got.body):
        kind = one_line(got.headers.get("content-type", "")) or "something without a type"
        raise NoUse(f"{root}: it answers with {kind}, which is no JSON: is the address right?")


def is_silent(findings: Sequence[Finding]) -> bool:
    last = findings[-_SILENT_CASES:]
    return len(last) == _SILENT_CASES and all(
        finding.verdict == "inconclusive"
        and finding.exchanges
        and all(exchange.status == 0 for exchange in finding.exchanges)
        for finding in last
    )


def _asked(talk: Talk, root: str) -> Got:
    try:
        return talk.send(ask("Say hello in one short sentence."))
    except Inconclusive as fault:
        raise NoUse(f"{root}: {fault}") from None


def _words(talk: Talk, got: Got) -> str:
    try:
        kind, message = talk.wire.error(talk.document(got), got.status)
    except Broken:
        return f"status {got.status}"
    return f"status {got.status} ({kind}): {message[:300]}"


def _is_json(body: bytes) -> bool:
    try:
        decode(body)
    except BadJson:
        return False
    return True
