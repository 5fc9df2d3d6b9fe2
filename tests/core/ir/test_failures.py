"""Why an attempt failed: who is to blame for it, and what the client is sent."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.tiers import rows
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.ir.failures import (
    COUNTED,
    HELPED_BY_RETRY,
    AttemptFailed,
    Blame,
    ConnectionProblem,
    connection_error,
    is_counted,
    no_answer,
    of_connection,
    of_error,
    of_stream,
    unreadable,
)
from wireglot_core.ir.verdict import VERDICTS

Failed = tuple[ErrorKind, int, str, float | None]

DOWN: Failed = ("server", 503, "upstream_unavailable", 2.0)
BAD: Failed = ("server", 502, "upstream_error", None)
LATE: Failed = ("timeout", 504, "upstream_timeout", None)
SHED: Failed = ("overloaded", 503, "server_is_overloaded", 2.0)
PROBLEMS: dict[ConnectionProblem, tuple[Blame, Failed]] = {
    "dns": ("connection", DOWN),
    "connect": ("connection", DOWN),
    "tls": ("timeout", DOWN),
    "broken": ("connection", BAD),
    "protocol": ("connection", BAD),
    "too_large": ("timeout", BAD),
    "first_byte_timeout": ("timeout", LATE),
    "idle_timeout": ("timeout", LATE),
    "total_timeout": ("timeout", LATE),
    "busy": ("gateway", SHED),
}
BLAMES: dict[ErrorKind, Blame] = {
    "invalid_request": "request",
    "context_overflow": "request",
    "content_policy": "request",
    "too_large": "request",
    "conflict": "request",
    "auth": "credential",
    "permission": "credential",
    "billing": "quota",
    "not_found": "model",
    "rate_limit": "rate",
    "overloaded": "upstream",
    "server": "upstream",
    "timeout": "upstream",
}


def test_every_problem_and_every_kind_is_in_the_tables() -> None:
    assert PROBLEMS.keys() == set(get_args(ConnectionProblem))
    assert BLAMES.keys() == set(get_args(ErrorKind))


@rows("problem", PROBLEMS)
def test_a_failed_exchange_has_its_blame_status_code_and_wait(problem: ConnectionProblem) -> None:
    blame, reported = PROBLEMS[problem]
    failed = of_connection(problem, "line\nend")
    error = failed.error
    assert (failed.blame, (error.kind, error.status, error.code, failed.reported_wait)) == (blame, reported)
    assert (error.message, str(failed)) == ("line\\nend", "line\\nend")
    assert (failed.wait, failed.body, failed.status, failed.fix) == (None, None, 0, "")
    assert failed.is_outage == (error.status == 503)
    assert connection_error(problem, "openai: it broke").message == "openai: it broke"


@rows("kind", BLAMES)
def test_an_error_of_an_upstream_has_its_blame(kind: ErrorKind) -> None:
    failed = of_error(ApiError(kind, "no", retry_after=3.0), 418, body=b"{}")
    assert failed.blame == BLAMES[kind]
    assert (failed.error.status, failed.status, failed.body) == (418, 418, b"{}")
    assert (failed.wait, failed.reported_wait) == (3.0, 3.0)
    assert is_counted(ApiError(kind, "no")) == (BLAMES[kind] == "upstream")


def test_a_status_of_the_error_itself_and_an_advised_wait_hold() -> None:
    failed = of_error(ApiError("overloaded", "no", status=529, retry_after=3.0), 200, wait=0.0)
    assert (failed.error.status, failed.status, failed.wait) == (529, 200, 0.0)
    assert of_error(ApiError("server", "no"), 0).error.status == 0


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ApiError("server", "no"), 502, "upstream_error"),
        (ApiError("server", "no", status=500), 500, "upstream_error"),
        (ApiError("server", "no", code="own"), 502, "own"),
        (ApiError("server", "no", status=500, code="own"), 500, "own"),
        (ApiError("overloaded", "no"), 0, ""),
    ],
)
def test_an_error_in_place_of_a_stream_is_the_upstreams(error: ApiError, status: int, code: str) -> None:
    failed = of_stream(error)
    assert (failed.error.status, failed.error.code, failed.status) == (status, code, status)


def test_what_answers_nothing_is_paid_for_and_what_is_no_answer_is_the_upstreams() -> None:
    error = ApiError("server", "nothing came")
    assert (no_answer(error).blame, no_answer(error).error) == ("answer", error)
    page = unreadable("a page of HTML")
    assert page.blame == "upstream"
    assert page.error == ApiError("server", "a page of HTML", status=502, code="upstream_error")


def test_a_verdict_of_ours_counts_for_no_breaker() -> None:
    for code in VERDICTS:
        assert not is_counted(ApiError("server", "no", code=code))
    assert {"rate", "upstream", "connection"} == HELPED_BY_RETRY
    assert {"upstream", "connection", "timeout"} == COUNTED


@rows(
    ("kind", "status", "outage"),
    [("overloaded", 200, True), ("server", 503, True), ("server", 529, True), ("server", 500, False)],
)
def test_an_outage_asks_the_client_to_come_later(kind: ErrorKind, status: int, outage: bool) -> None:
    assert AttemptFailed(ApiError(kind, "no", status=status), "upstream").is_outage is outage
