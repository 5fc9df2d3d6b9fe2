"""Errors, retries, the log, and what must never be reported in any of them."""

import asyncio
import json
import sys
import traceback
from pathlib import Path

import pytest

from tests.kimi.kit import KEY, Http, Lines, Sleeps, ask, error, message, streamed
from wireglot import kimi
from wireglot.gateway.config.providers import RETRIES
from wireglot.http.transport import TransportFault
from wireglot.kimi.attempts import POLICIES


def failing(http, **options):
    with pytest.raises(kimi.KimiApiError) as caught:
        ask(http, **options)
    return caught.value


@pytest.mark.parametrize(
    ("status", "type_name", "kind"),
    [
        (400, "invalid_request_error", "invalid_request"),
        (401, "invalid_authentication_error", "auth"),
        (403, "permission_denied_error", "permission"),
        (403, "access_terminated_error", "permission"),
        (404, "resource_not_found_error", "not_found"),
        (408, "timeout_error", "timeout"),
        (307, "", "server"),
        (600, "", "server"),
    ],
)
def test_any_other_status_ends_the_call_at_once(status, type_name, kind):
    """R-R-02, R-P-07: everything but 429 and 5xx is terminal by the contract."""
    http, sleeps = Http((status, error(type_name, "because"))), Sleeps()
    problem = failing(http, sleep=sleeps)
    assert (problem.code, problem.status, problem.kind) == ("KIMI_API_ERROR", status, kind)
    assert "because" in str(problem)
    assert (len(http.requests), sleeps) == (1, [])


def test_retries_are_exhausted_after_four_attempts():
    """R-R-03, R-R-13, R-R-14: the last status is the one that is reported."""
    http, sleeps = Http((500, {}), (503, {}), (429, {}), (502, {}), message()), Sleeps()
    problem = failing(http, sleep=sleeps)
    assert (problem.code, problem.status, problem.attempts) == ("KIMI_RETRIES_EXHAUSTED", 502, 4)
    assert sleeps == [0.1, 0.2, 0.4]


def test_every_status_of_the_server_and_429_is_tried_again():
    """R-R-02: up to the last one that is such."""
    for status in (429, 500, 599):
        assert ask(Http((status, {}), message())).text == "Hello."


def test_a_terminal_status_between_retries_ends_them():
    """R-R-02, R-R-03."""
    problem = failing(Http((500, {}), (401, {}), message()))
    assert (problem.code, problem.status, problem.attempts) == ("KIMI_API_ERROR", 401, 2)


def test_the_schedule_is_the_gateways_preset_of_the_same_name():
    """R-R-13: one contract, one schedule."""
    assert POLICIES["fixed-100ms"] == RETRIES["fixed-100ms"]
    assert POLICIES["modern"] == RETRIES["default"]


def test_the_fixed_schedule_ignores_retry_after_and_the_modern_one_does_not():
    """R-R-13: C13."""
    refusal = (429, {"Retry-After": "2"}, json.dumps(error("rate_limit_reached_error")).encode())
    sleeps = Sleeps()
    ask(Http(refusal, message()), sleep=sleeps)
    assert sleeps == [0.1]
    sleeps = Sleeps()
    ask(Http(refusal, message()), sleep=sleeps, retry="modern")
    assert 2 <= sleeps[0] <= 2.25


def test_the_modern_preset_backs_off_with_jitter(monkeypatch):
    monkeypatch.setattr("random.random", lambda: 0.5)
    sleeps = Sleeps()
    problem = failing(Http((503, {})), sleep=sleeps, retry="modern")
    assert sleeps == [0.25, 0.5]
    assert (problem.code, problem.attempts) == ("KIMI_RETRIES_EXHAUSTED", 3)


def test_the_modern_preset_tries_lost_connections_again_and_the_contracts_does_not():
    """R-R-15: C13."""
    lost = TransportFault("connect", "could not connect to the upstream", sent=False)
    assert failing(Http(lost, message())).status is None
    assert ask(Http(lost, message()), retry="modern").text == "Hello."
    assert failing(Http(ConnectionResetError()), retry="modern").code == "KIMI_RETRIES_EXHAUSTED"


def test_no_preset_shows_the_key_to_a_stranger_twice():
    http = Http(TransportFault("tls", "upstream TLS verification failed", sent=False))
    assert failing(http, retry="modern").attempts == 1


def test_an_empty_balance_is_not_tried_again_by_the_modern_preset():
    refusal = (429, error("exceeded_current_quota_error"))
    assert failing(Http(refusal), retry="modern").attempts == 1
    assert failing(Http(refusal)).attempts == 4  # the contract goes by the status


@pytest.mark.parametrize("retry", ["fixed-100ms", "modern"])
def test_overload_comes_as_429_and_is_tried_again(retry):
    assert ask(Http((429, error("engine_overloaded_error")), message()), retry=retry).text == "Hello."


def test_nothing_is_tried_again_once_the_answer_began():
    async def half():
        yield b'{"id'
        raise ConnectionResetError

    http = Http((200, {}, half()), message())
    problem = failing(http, retry="modern")
    assert (problem.status, problem.attempts, len(http.requests)) == (None, 1, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"id":"x"}',
        b'{"choices":[]}',
        b'{"choices":[7]}',
        b"<html><title>Down</title>",
    ],
)
def test_an_answer_that_is_none_is_an_api_error(body):
    """R-R-02."""
    problem = failing(Http((200, {}, body)))
    assert (problem.code, problem.status) == ("KIMI_API_ERROR", 200)


def test_an_error_inside_a_good_status_is_an_error():
    problem = failing(Http((200, error("engine_overloaded_error", "busy"))))
    assert (problem.kind, problem.status) == ("overloaded", 200)
    assert "busy" in str(problem)


# The log


def test_the_line_is_written_after_the_answer_was_understood():
    """R-R-16: an answer that is none leaves a line about the failure instead (C45)."""
    lines = Lines()
    failing(Http((200, {}, b"{")), log=lines)
    assert [line.split("latency_ms")[0] for line in lines] == [
        "[kimi] error=KIMI_API_ERROR class=server status=200 attempts=1 model=kimi-k3 "
    ]


def test_the_logged_model_is_the_answers():
    """R-R-17: or `unknown`."""
    lines = Lines()
    ask(Http({**message(), "model": "kimi-k3-0901"}), log=lines)
    ask(Http({key: value for key, value in message().items() if key != "model"}), log=lines)
    assert [line.split()[1] for line in lines] == ["model=kimi-k3-0901", "model=unknown"]


def test_the_latency_is_that_of_the_http_call(monkeypatch):
    """R-R-18: of the attempt that was answered, waits not counted."""
    clock = iter([10.0, 20.0, 20.5])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    lines = Lines()
    result = ask(Http((500, {}), message()), log=lines)
    assert result.latency_ms == 500
    assert lines[0].endswith("latency_ms=500")


def test_a_failure_has_one_line_with_class_attempts_and_trace_id():
    """R-R-16, R-R-20: C45."""
    lines = Lines()
    headers = {"X-Trace-Id": "trace 7\n"}
    failing(Http((429, headers, json.dumps(error("rate_limit_reached_error")).encode())), log=lines)
    failing(Http(OSError("down")), log=lines)
    reported = [
        " ".join(word for word in line.split() if not word.startswith("latency_ms=")) for line in lines
    ]
    assert reported == [
        "[kimi] error=KIMI_RETRIES_EXHAUSTED class=rate_limit status=429 attempts=4 model=kimi-k3 trace_id=trace_7\\n",
        "[kimi] error=KIMI_API_ERROR class=network status=none attempts=1 model=kimi-k3 trace_id=unknown",
    ]


def test_failures_go_to_stderr_too(capsys):
    """R-R-19."""
    with pytest.raises(kimi.KimiApiError):
        asyncio.run(kimi.complete("Hi", api_key=KEY, transport=Http((400, {}))))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("[kimi] error=KIMI_API_ERROR class=invalid_request status=400 ")


def test_a_log_that_fails_costs_no_answer(monkeypatch):
    """R-K-06."""

    def broken(line):
        raise OSError("disk full")

    assert ask(Http(), log=broken).text == "Hello."
    monkeypatch.setattr(sys, "stderr", None)
    assert ask(Http(), log=None).text == "Hello."


# Secrets


@pytest.mark.parametrize(
    "answer",
    [
        (401, error("invalid_authentication_error", f"Incorrect API key provided: {KEY}")),
        (401, {}, f"Bearer {KEY} is not known".encode()),
        (429, {"x-trace-id": KEY}, b"{}"),
        ConnectionError(f"Illegal header value 'Bearer {KEY}'"),
        TransportFault("protocol", f"odd {KEY}"),
        {**message(), "model": KEY},
        streamed(b'{"error":{"message":"' + KEY.encode() + b'"}}'),
    ],
)
def test_the_key_is_in_no_error_and_in_no_log(answer):
    lines = Lines()
    try:
        ask(Http(answer), log=lines)
    except kimi.KimiApiError as problem:
        lines.append(f"{traceback.format_exception(problem)} {vars(problem)}")
    assert any(line.startswith("[kimi] ") for line in lines)
    assert KEY not in "".join(lines)


# Determinism


def test_the_same_answers_give_the_same_result():
    """R-R-21, R-R-22, R-R-23, R-R-24: scripted network, listening log, clock without waits."""
    outcomes = []
    for _ in range(2):
        http, lines, sleeps = Http((503, {}), message("Hi.", reasoning_content="Hm.")), Lines(), Sleeps()
        result = ask(http, log=lines, sleep=sleeps)
        reported = [line.split(" latency_ms")[0] for line in lines]
        fields = {name: getattr(result, name) for name in result.__struct_fields__ if name != "latency_ms"}
        outcomes.append((http.requests, reported, list(sleeps), fields))
    assert outcomes[0] == outcomes[1]


def test_the_contracts_acceptance_is_part_of_every_change():
    """R-R-25, R-R-26: twenty parity tests (five to ten were asked for) run with build, lint and types."""
    root = Path(__file__).parents[2]
    steps = (root / ".ci" / "run").read_text()
    assert "make lint types" in steps
    assert "make test" in steps
    invariants = (Path(__file__).parent / "test_invariants.py").read_text()
    assert all(f"def test_I{number}_" in invariants for number in range(1, 21))


async def endless():
    while True:
        yield b"x" * 10_000


async def cut():
    yield b'{"error"'
    raise ConnectionResetError


@pytest.mark.parametrize(("status", "body"), [(403, endless()), (403, cut()), (307, b""), (204, b"")])
def test_a_status_is_reported_even_where_its_explanation_is_lost(status, body):
    """R-R-07."""
    problem = failing(Http((status, {}, body)))
    assert (problem.status, problem.attempts) == (status, 1)
    assert str(status) in str(problem)
