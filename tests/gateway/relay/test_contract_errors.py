"""The table of errors of Claude Code's contract (`claude gateway` 2.1.326, `GET /protocol`), on every route."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.gateway.faults.faults_kit import ONCE, UPSTREAMS, Answered, every_dialect, post
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

MESSAGES: Final = ("/v1/messages", "/anthropic/v1/messages", "/v1/messages?beta=true")
COUNTS: Final = ("/v1/messages/count_tokens", "/anthropic/v1/messages/count_tokens")
PAGES: Final = ("/v1/models", "/v1/models/m1", "/anthropic/v1/models", "/api/oauth/usage")
BODY_LIMIT: Final = 100_000
KEYS: Final = {
    "good": "",
    "narrow": 'models = ["claude-*"]',
    "spent": "tokens_per_day = 1",
    **{f"slow-{number}": "requests_per_minute = 1" for number in range(len(MESSAGES) + len(COUNTS))},
    "old": "expires = 2020-01-01",
}
JSON: Final = (("content-type", "application/json"),)


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[LiveGateway, ScriptedUpstream]]:
    with ScriptedUpstream() as upstream:
        toml = f"[limits]\nanthropic_body = {BODY_LIMIT}\nauth_failures = 1000\n{every_dialect(upstream)}"
        dead = '[providers.dead]\ndialect = "anthropic"\nbase_url = "http://127.0.0.1:1"\napi_key = "k-0123456789"\n'
        toml += f"{dead}{ONCE}"
        for name, lines in KEYS.items():
            toml += f'[keys.{name}]\nhash = "sha256:{hashlib.sha256(name.encode()).hexdigest()}"\n{lines}\n'
        with LiveGateway(toml) as gateway:
            yield gateway, upstream


@pytest.fixture(autouse=True)
def _fresh(stage: Any) -> None:
    stage[1].reset()
    health = stage[0].process.gateway.health
    for each in (health.budgets, health._rejected, health._cool):
        each.clear()


def send(stage: Any, path: str, key: str, body: object, headers: Mapping[str, str] = {}) -> Answered:
    data = body if isinstance(body, bytes) else encode(body)
    bearer = {"authorization": f"Bearer {key}"} if key else {}
    return post(stage[0].port, path, data, {"anthropic-version": "2023-06-01", **bearer, **headers})


def fetch(stage: Any, path: str, key: str) -> Answered:
    headers = {"anthropic-version": "2023-06-01", **({"authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(stage[0].url + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return Answered(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
    except urllib.error.HTTPError as refused:
        return Answered(refused.code, {k.lower(): v for k, v in refused.headers.items()}, refused.read())


def question(model: str = "anthropic-up/m1", **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 16, "messages": [{"role": "user", "content": "hi"}], **more}


def check(answered: Answered, status: int, type: str, *, final: bool = False) -> None:
    document = answered.json
    assert (answered.status, document["type"], document["error"]["type"]) == (status, "error", type), answered
    assert isinstance(document["error"]["message"], str)
    assert document.get("request_id") in (answered.headers["request-id"], None), (
        "none in what passes as it came"
    )
    assert answered.headers.get("x-should-retry") == ("false" if final else None), answered
    assert ("retry-after" in answered.headers) == (status in (429, 503, 529)), answered


@pytest.mark.parametrize("key", ["", "wrong", "old"])
def test_401_on_every_route(stage: Any, key: str) -> None:
    for path in (*MESSAGES, *COUNTS):
        check(send(stage, path, key, question()), 401, "authentication_error", final=True)
        check(send(stage, path, key, question(stream=True)), 401, "authentication_error", final=True)
    for path in PAGES:
        check(fetch(stage, path, key), 401, "authentication_error", final=True)


@pytest.mark.parametrize("path", [*MESSAGES, *COUNTS])
def test_requests_that_are_refused_here(stage: Any, path: str) -> None:
    malformed: tuple[object, ...] = (b"{", b"[]", b'"text"', b"", {"model": 7}, {"messages": []}, b"\xff")
    for body in malformed:
        check(send(stage, path, "good", body), 400, "invalid_request_error")
    check(send(stage, path, "narrow", question()), 400, "invalid_request_error")
    check(send(stage, path, "narrow", question(stream=True)), 400, "invalid_request_error")
    check(send(stage, path, "good", question("nobody/m1")), 404, "not_found_error")
    check(send(stage, path, "good", b" " * (BODY_LIMIT + 1)), 413, "request_too_large")
    assert not stage[1].requests


def test_a_denied_model_is_named(stage: Any) -> None:
    error = send(stage, MESSAGES[0], "narrow", question()).json["error"]
    assert error["message"] == "this key may not use the model 'anthropic-up/m1'"


def test_throttled_requests(stage: Any) -> None:
    for number, path in enumerate((*MESSAGES, *COUNTS)):
        key = f"slow-{number}"
        assert send(stage, path, key, question()).status == 200
        check(send(stage, path, key, question()), 429, "rate_limit_error")


def test_spent_budgets(stage: Any) -> None:
    assert send(stage, MESSAGES[0], "spent", question()).status == 200
    for path in MESSAGES:
        check(send(stage, path, "spent", question()), 429, "billing_error", final=True)
    for path in COUNTS:
        assert send(stage, path, "spent", question()).status == 200


UPSTREAM: Final = {
    400: (400, "invalid_request_error", False),
    401: (500, "api_error", True),
    402: (402, "billing_error", True),
    403: (500, "api_error", True),
    404: (404, "not_found_error", False),
    413: (413, "request_too_large", False),
    429: (429, "rate_limit_error", False),
    500: (500, "api_error", False),
    501: (501, "not_supported", True),
    502: (502, "api_error", False),
    503: (529, "overloaded_error", False),
    504: (504, "timeout_error", False),
    529: (529, "overloaded_error", False),
}
"""A key or an account of the operator's that is refused is no 401 of the client's: it would sign out."""


@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_errors_of_providers(stage: Any, dialect: str) -> None:
    bad = []
    for status, (expected, type, final) in UPSTREAM.items():
        if status == 402 and dialect in ("gemini", "code-assist"):
            continue  # Google has no such status
        for stream in (False, True):
            stage[1].reset()
            health = stage[0].process.gateway.health
            health._rejected.clear()
            health._cool.clear()
            stage[1].otherwise = Behaviour(error=status)
            got = send(stage, MESSAGES[0], "good", question(f"{dialect}-up/m1", stream=stream))
            try:
                check(got, expected, type, final=final)
            except (AssertionError, KeyError) as failed:
                bad.append(
                    (
                        status,
                        stream,
                        got.status,
                        got.headers.get("x-should-retry"),
                        got.body,
                        str(failed)[:80],
                    )
                )
    assert not bad, bad


def test_providers_that_are_away(stage: Any) -> None:
    check(send(stage, MESSAGES[0], "good", question("dead/m1")), 503, "api_error")
    for fault in ("reset", "close"):
        stage[1].otherwise = Behaviour(fault=fault)
        got = send(stage, MESSAGES[0], "good", question())
        assert (got.status, got.json["error"]["type"]) in {(502, "api_error"), (503, "api_error")}
        assert "x-should-retry" not in got.headers


def test_a_count_is_answered_wherever_it_can_be_estimated(stage: Any) -> None:
    """The contract's 501 makes a client send the prompt as a billed request: an estimate is better."""
    for dialect in UPSTREAMS:
        for status in (404, 500, 501, 529):
            stage[1].otherwise = Behaviour(error=status)
            got = send(stage, COUNTS[0], "good", question(f"{dialect}-up/m1"))
            assert (got.status, got.headers.get("x-wireglot-estimate")) == (200, "true"), (
                dialect,
                status,
                got,
            )
            assert got.json["input_tokens"] > 0


RECOVERY: Final = {
    "prompt is too long: 210000 tokens > 200000 maximum": "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000": (
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"
    ),
    "Input is too long.": "Input is too long.",
    "The request size (30037042 bytes) exceeds 30.000MB limit.": "Input is too long.",
    "The message size (31457281 bytes) exceeds 30.000MB limit.": "Input is too long.",
}


@pytest.mark.parametrize("stream", [False, True])
def test_recovery_sentences_are_the_whole_message(stage: Any, stream: bool) -> None:
    """From Bedrock's body, from Google's, and in Anthropic's own envelope."""
    bodies = {
        "anthropic-up": lambda said: {"message": said},
        "gemini-up": lambda said: {"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}},
        "openai-chat-up": lambda said: {"error": {"message": said, "type": "invalid_request_error"}},
    }
    for provider, body in bodies.items():
        for said, expected in RECOVERY.items():
            stage[1].otherwise = Behaviour(status=400, body=encode(body(said)), headers=JSON)
            got = send(stage, MESSAGES[0], "good", question(f"{provider}/m1", stream=stream))
            check(got, 400, "invalid_request_error")
            assert got.json["error"]["message"] == expected, provider
    said = "prompt is too long: 210000 tokens > 200000 maximum"
    for status, type in ((400, "invalid_request_error"), (413, "request_too_large")):
        envelope = {"type": "error", "error": {"type": type, "message": said}, "request_id": "req_theirs"}
        stage[1].otherwise = Behaviour(status=status, body=encode(envelope), headers=JSON)
        got = send(stage, MESSAGES[0], "good", question(stream=stream))
        assert (got.status, got.json) == (status, envelope)
