"""Whatever a request ends with becomes one error for its caller: in our words, without secrets, once logged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.problems import error_of, is_final, redacted
from wireglot.http.redaction import Redactor
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed, Blame

SECRET = "Zq7rT0pL9vXw3KfJm2Hd8Bn5Cs1Gy6Ea"
REDACTOR = Redactor([SECRET])


def reported(problem: Exception) -> tuple[ApiError, list[tuple[str, str, dict[str, Any]]]]:
    notes: list[tuple[str, str, dict[str, Any]]] = []

    def note(level: str, event: str, **fields: Any) -> None:
        notes.append((level, event, fields))

    return error_of(problem, "req_1", REDACTOR, note), notes


def test_an_error_of_ours_stays_as_it_is() -> None:
    problem = RequestError("bad", "model: no such", param="model", retry_after=3.0)
    assert reported(problem) == (problem.error, [])


@rows(
    ("wait", "reported_wait", "said", "expected"),
    [(None, None, None, None), (None, None, 7.0, 7.0), (2.0, None, 7.0, 2.0), (None, 5.0, None, 5.0)],
)
def test_an_upstreams_error_says_how_long_the_client_should_wait(
    wait: float | None, reported_wait: float | None, said: float | None, expected: float | None
) -> None:
    error = ApiError("overloaded", f"not with {SECRET}", status=529, retry_after=said)
    shown, notes = reported(AttemptFailed(error, "upstream", wait=wait, reported_wait=reported_wait))
    assert (shown.kind, shown.status, shown.retry_after) == ("overloaded", 529, expected)
    assert SECRET not in shown.message
    assert notes == []


def test_a_bug_is_logged_with_its_place_and_not_shown() -> None:
    with pytest.raises(AttributeError) as bug:
        REDACTOR.text(None)  # type: ignore[arg-type]  # the bug
    shown, notes = reported(bug.value)
    assert (shown.status, shown.code) == (500, "internal_error")
    assert shown.message == "an internal error; it has been logged"
    ((level, event, fields),) = notes
    assert (level, event, fields["id"]) == ("error", "bug", "req_1")
    assert "redaction.py:" in fields["where"]


@rows(
    ("blame", "final"),
    [
        ("credential", True),
        ("quota", True),
        ("refused", True),
        ("request", False),
        ("rate", False),
        ("upstream", False),
        ("answer", False),
        ("model", False),
    ],
)
def test_a_client_is_asked_not_to_try_again_only_where_that_cannot_help(blame: Blame, final: bool) -> None:
    assert is_final(AttemptFailed(ApiError("server", "no"), blame)) is final


def test_an_error_of_ours_is_final_where_it_says_so_and_a_bug_never() -> None:
    assert is_final(RequestError("bad", "no", final=True))
    assert not is_final(RequestError("bad", "no"))
    assert not is_final(ValueError("no"))


@rows(
    "body",
    [
        b'{"message":"' + SECRET.encode() + b'"}',
        b'{"message":"' + "".join(f"\\u{ord(letter):04x}" for letter in SECRET).encode() + b'"}',
        b"no JSON: " + SECRET.encode(),
    ],
)
def test_no_spelling_of_a_secret_is_passed_on(body: bytes) -> None:
    shown = redacted(body, REDACTOR)
    assert SECRET.encode() not in shown
    assert b"\\u00" not in shown


def test_a_body_without_a_secret_keeps_its_bytes() -> None:
    body = b'{ "message" : "caf\\u00e9" }'
    assert redacted(body, REDACTOR) == body
