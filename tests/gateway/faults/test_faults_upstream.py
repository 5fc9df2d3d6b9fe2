"""FAULTS 3d: what an upstream does wrong before the first byte of its answer, asked once."""

from __future__ import annotations

import itertools

import pytest

from tests.gateway.faults.faults_kit import (
    CLIENTS,
    KEY,
    ONCE,
    UPSTREAMS,
    Answered,
    Client,
    ask,
    every_dialect,
    is_complete,
    is_of,
    logged,
    model_at,
    provider,
    reported,
)
from tests.gateway.faults.faults_stages import (
    EVERY,
    PAIRED,
    SOME_PAIRS,
    A,
    C,
    G,
    R,
    Stage,
    behind,
    closed_port,
    pair_name,
    stage_behind,
)
from wireglot.testing.scripted_upstream import Behaviour, Fault, ScriptedUpstream
from wireglot_core.wire.json import encode

NUMBERS = itertools.count(1)
stage = stage_behind(every_dialect)


@pytest.fixture(autouse=True)
def _fresh(stage: Stage) -> None:
    stage[1].reset()


def fresh(source: str) -> str:
    """A model that no other test has had cooled down."""
    return model_at(source) + f"-{next(NUMBERS)}"


def foreign(client: Client) -> str:
    return "openai-chat" if client.dialect != "openai-chat" else "openai-responses"


NO_ANSWER: tuple[Fault, ...] = (
    "garbage", "interim-flood", "huge-headers", "html", "empty", "truncated-json", "short-body",
)  # fmt: skip


@pytest.mark.sampled("client.name", "source", each=2)
@PAIRED
@pytest.mark.parametrize("fault", NO_ANSWER)
def test_an_answer_that_is_none_is_a_bad_upstream(
    stage: Stage, fault: Fault, client: Client, source: str
) -> None:
    """FAULTS 61, 63, 64"""
    gateway, upstream = stage
    upstream.next(Behaviour(fault=fault, size=300_000 if fault == "huge-headers" else 0))
    answered = ask(gateway, client, model_at(source))
    is_of("upstream_bad", client, answered)
    assert logged(gateway, answered)["outcome"] == "error"


@pytest.mark.sampled("fault", each=8)
@PAIRED
@pytest.mark.parametrize("fault", ["html", "empty"])
def test_a_stream_that_is_none_is_a_bad_upstream(
    stage: Stage, fault: Fault, client: Client, source: str
) -> None:
    """FAULTS 61: the status is a true one, nothing had begun."""
    gateway, upstream = stage
    upstream.next(Behaviour(fault=fault))
    is_of("upstream_bad", client, ask(gateway, client, model_at(source), stream=True))


@pytest.mark.sampled("fault", "stream", each=6)
@PAIRED
@pytest.mark.parametrize("fault", ["gzip", "wrong-type", "unframed", "json-for-stream"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_that_can_be_read_is_one(
    stage: Stage, stream: bool, fault: Fault, client: Client, source: str
) -> None:
    """FAULTS 61, 66: compressed unasked, under another type, without a length, whole instead of streamed."""
    gateway, upstream = stage
    upstream.next(Behaviour(fault=fault))
    answered = ask(gateway, client, model_at(source), stream=stream)
    assert answered.status == 200
    assert is_complete(client, answered) or not stream
    assert upstream.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.sampled("client.name", each=2)
@EVERY
@pytest.mark.parametrize("status", [204, 301, 302, 307, 308])
def test_a_redirect_is_never_followed(stage: Stage, status: int, client: Client) -> None:
    """FAULTS 63: the key goes to no other host."""
    gateway, upstream = stage
    with ScriptedUpstream() as canary:
        location = (("location", f"{canary.url}/v1/messages"),)
        upstream.next(Behaviour(status=status, headers=location, body=b""))
        is_of("upstream_bad", client, ask(gateway, client, model_at(foreign(client))))
        assert not canary.connections


def test_a_switch_of_protocols_is_no_answer(stage: Stage) -> None:
    """FAULTS 63"""
    gateway, upstream = stage
    upstream.next(Behaviour(status=101, headers=(("upgrade", "h2c"), ("connection", "upgrade")), body=b""))
    answered = ask(gateway, A, model_at("openai-chat"))
    is_of("upstream_bad", A, answered)


STATUSES = {
    400: ((400, "invalid_request_error"), (400, "invalid_request_error"), (400, "INVALID_ARGUMENT")),
    402: ((402, "billing_error"), (402, "insufficient_quota"), (429, "RESOURCE_EXHAUSTED")),
    404: ((404, "not_found_error"), (404, "invalid_request_error"), (404, "NOT_FOUND")),
    413: ((413, "request_too_large"), (413, "invalid_request_error"), (413, "INVALID_ARGUMENT")),
    422: ((422, "invalid_request_error"), (422, "invalid_request_error"), (400, "INVALID_ARGUMENT")),
    429: ((429, "rate_limit_error"), (429, "rate_limit_error"), (429, "RESOURCE_EXHAUSTED")),
    500: ((500, "api_error"), (500, "server_error"), (500, "INTERNAL")),
    503: ((529, "overloaded_error"), (503, "server_error"), (503, "UNAVAILABLE")),
    529: ((529, "overloaded_error"), (503, "server_error"), (503, "UNAVAILABLE")),
}


@pytest.mark.sampled("client.name", "status")
@EVERY
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_status_of_the_upstream_is_reported_in_the_clients_words(
    stage: Stage, stream: bool, status: int, client: Client
) -> None:
    """FAULTS 53, 56, 57, 58, 59, 60"""
    gateway, upstream = stage
    upstream.next(Behaviour(error=status))
    answered = ask(gateway, client, fresh(foreign(client)), stream=stream)
    said = reported(client, answered)
    expected = STATUSES[status][{"A": 0, "C": 1, "R": 1, "G": 2}[client.family]]
    assert (answered.status, said.type) == expected
    assert len(upstream.requests) == 1
    assert answered.headers.get("x-should-retry") == ("false" if status == 402 else None)


@pytest.mark.sampled("status", each=3)
@pytest.mark.parametrize("client", [one for one in CLIENTS if one.dialect in UPSTREAMS], ids=pair_name)
@pytest.mark.parametrize("status", [400, 402, 404, 413, 422, 429, 500, 503, 529])
def test_an_error_in_the_clients_own_dialect_goes_on_as_it_came(
    stage: Stage, status: int, client: Client
) -> None:
    """FAULTS 53"""
    gateway, upstream = stage
    upstream.next(Behaviour(error=status))
    answered = ask(gateway, client, fresh(client.dialect))
    assert answered.status == status
    assert b"The scripted upstream was instructed to fail" in answered.body
    assert ("retry-after" in answered.headers) == (status in (429, 503, 529))


def test_what_an_upstream_says_of_its_limits_comes_with_its_refusal(stage: Stage) -> None:
    """[L1] Claude Code reads from these headers of a 429 when its account may ask again."""
    gateway, upstream = stage
    limits = (("anthropic-ratelimit-unified-reset", "1700000000"), ("x-secret", "no"))
    upstream.next(Behaviour(error=429, headers=limits))
    answered = ask(gateway, A, fresh("anthropic"))
    assert answered.status == 429
    assert answered.headers["anthropic-ratelimit-unified-reset"] == "1700000000"
    assert "x-secret" not in answered.headers


def test_what_an_upstream_says_of_our_key_is_not_reported(stage: Stage) -> None:
    """FAULTS 53, 54: not in the answer and not in the log."""
    gateway, upstream = stage
    for client in (A, C):
        body = encode({"error": {"message": f"bad thing for {KEY}\u001b[31m\n", "type": "x"}})
        upstream.next(Behaviour(status=400, body=body))
        answered = ask(gateway, client, fresh("openai-chat"))
        assert answered.status == 400
        assert KEY.encode() not in answered.body
        line = logged(gateway, answered)
        assert KEY not in str(line)
        assert "\x1b" not in str(line)


@EVERY
def test_a_prompt_that_is_too_long_is_a_bad_request(stage: Stage, client: Client) -> None:
    """FAULTS 58: not asked again, and clients that compact read it from these words."""
    gateway, upstream = stage
    body = encode(
        {
            "error": {
                "message": "This model's maximum context length is 100 tokens.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        }
    )
    upstream.next(Behaviour(status=400, body=body))
    answered = ask(gateway, client, fresh("openai-chat"))
    said = reported(client, answered) if client.dialect != "openai-chat" else None
    assert answered.status == 400
    if client.family == "A":
        assert said is not None
        assert said.type == "invalid_request_error"
        assert "prompt is too long" in said.message
    elif client.family in "CR":
        assert answered.json["error"]["code"] == "context_length_exceeded"
    assert len(upstream.requests) == 1


def wait_of(stage: Stage, client: Client, behaviour: Behaviour) -> int:
    upstream = stage[1]
    upstream.next(behaviour)
    answered = ask(stage[0], client, fresh(foreign(client)))
    assert answered.status == 429
    return int(answered.headers["retry-after"])


ADVICE: list[tuple[tuple[tuple[str, str], ...], int | None]] = [
    ((("retry-after", "2"),), 2),
    ((("retry-after", "119.4"),), None),
    ((("retry-after", "3600"),), 120),
    ((("retry-after", "0"),), 1),
    ((("retry-after", "-1"),), 1),
    ((("retry-after", "NaN"),), 1),
    ((("retry-after", "soon"),), 1),
    ((("retry-after", "1e999"),), 1),
    ((("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),), 1),
    ((("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT"),), None),
    ((("retry-after-ms", "2500"),), None),
    ((("retry-after-ms", "40000"), ("retry-after", "1")), 40),
]


@pytest.mark.parametrize(("headers", "seconds"), ADVICE, ids=str)
@pytest.mark.parametrize("client", [A, C, G], ids=lambda client: client.name)
def test_how_long_to_wait_is_reported_between_1_and_120(
    stage: Stage, headers: tuple[tuple[str, str], ...], seconds: int | None, client: Client
) -> None:
    """FAULTS 59: a longer one has OpenAI's SDK give up at once, none at all Codex."""
    reported_wait = wait_of(stage, client, Behaviour(error=429, headers=headers))
    assert 1 <= reported_wait <= 120
    if seconds is not None:
        assert reported_wait == seconds


def test_geminis_own_advice_counts_too(stage: Stage) -> None:
    """FAULTS 59: RetryInfo in the body."""
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "33s"}
    error = {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": [detail]}
    gateway, upstream = stage
    for client in (A, C, R, G):
        upstream.next(Behaviour(status=429, body=encode({"error": error})))
        answered = ask(gateway, client, fresh("gemini"))
        assert (answered.status, answered.headers["retry-after"]) == (429, "33")


@pytest.mark.sampled(each=9)
@PAIRED
def test_a_kept_connection_that_the_upstream_closed_is_nobodys_problem(
    stage: Stage, client: Client, source: str
) -> None:
    """FAULTS 51: one more try on a new one, since nothing of an answer had come."""
    gateway, upstream = stage
    assert ask(gateway, client, model_at(source)).status == 200
    used = upstream.requests[-1].connection
    upstream.next(Behaviour(fault="close"))
    answered = ask(gateway, client, model_at(source))
    assert answered.status == 200
    first, second = upstream.requests[-2:]
    assert first.connection == used != second.connection
    assert first.body == second.body


def test_a_new_connection_that_breaks_is_not_taken_for_an_old_one() -> None:
    """FAULTS 51: asked once, so its failure is reported."""
    faults: tuple[Fault, ...] = ("close", "reset")
    for fault in faults:
        with behind(every_dialect) as (gateway, upstream):
            upstream.next(Behaviour(fault=fault))
            is_of("upstream_bad", A, ask(gateway, A, model_at("openai-chat")))
            assert len(upstream.requests) == 1


def test_a_connection_is_not_used_again_after_a_half_read_answer(stage: Stage) -> None:
    """FAULTS 52"""
    gateway, upstream = stage
    faults: tuple[Fault, ...] = ("truncated-json", "error-midstream", "half-event", "html")
    for fault in faults:
        upstream.next(Behaviour(fault=fault))
        ask(gateway, A, model_at("openai-chat"), "[[demo:echo]] first", stream=True)
        answered: Answered = ask(gateway, A, model_at("openai-chat"), "[[demo:echo]] second", stream=True)
        assert is_complete(A, answered)
        assert b"first" not in answered.body


COLLECTED: tuple[Fault, ...] = ("no-terminal", "half-event", "close-midstream", "bad-json", "html", "empty")


@pytest.mark.sampled(each=2)
@pytest.mark.parametrize("fault", COLLECTED)
def test_a_stream_that_breaks_while_it_is_collected_was_never_begun(fault: Fault) -> None:
    """FAULTS 39, 61, 68: its client waits for one answer, so it is a true status, or tried again."""

    def toml(upstream: ScriptedUpstream) -> str:
        again = 'streams = "only"\nretry = { retries = 1, base = 0.001, cap = 0.002 }\n'
        return every_dialect(upstream, ONCE + 'streams = "only"\n') + every_dialect(upstream, again).replace(
            "-up]", "-again]"
        )

    with behind(toml) as (gateway, upstream):
        for client, source in SOME_PAIRS:
            upstream.next(Behaviour(fault=fault))
            is_of("upstream_bad", client, ask(gateway, client, model_at(source), "[[demo:text 8]]"))
        for client, source in SOME_PAIRS[:6]:
            gateway.process.gateway.health.budgets.clear()
            upstream.next(Behaviour(fault=fault))
            assert ask(gateway, client, f"{source}-again/m1", "[[demo:text 8]]").status == 200


@EVERY
def test_a_provider_that_is_down_is_left_for_the_next(stage: Stage, client: Client) -> None:
    """FAULTS 49"""
    port = closed_port()

    def toml(upstream: ScriptedUpstream) -> str:
        down = (
            f'[providers.down]\ndialect = "anthropic"\nbase_url = "http://127.0.0.1:{port}"\napi_key = "k"\n'
        )
        chain = '[models]\n"m" = ["down/a", "up/b"]\n'
        return down + "retry = { retries = 0 }\n" + provider("up", upstream, "gemini") + chain

    with behind(toml) as (gateway, upstream):
        for stream in (False, True):
            answered = ask(gateway, client, "m", stream=stream)
            assert answered.status == 200
            assert answered.headers["x-wireglot-route"] == "up/b"
            assert logged(gateway, answered)["fallbacks"] == ["down/a"]
        assert len(upstream.requests) == 2


@pytest.mark.sampled("padding", each=8)
@PAIRED
@pytest.mark.parametrize("padding", [0, 20_000], ids=["small", "large"])
def test_an_answer_that_is_nested_too_deeply_is_a_bad_upstream(
    stage: Stage, client: Client, source: str, padding: int
) -> None:
    """[A4] FAULTS 22: the rule holds for the one that answers too; the error names it."""
    gateway, upstream = stage
    upstream.next(Behaviour(body=b'{"x":"%b","deep":%b%b}' % (b"x" * padding, b"[" * 400, b"]" * 400)))
    answered = ask(gateway, client, fresh(source))
    is_of("upstream_bad", client, answered)
    assert "nested more than 128 deep" in reported(client, answered).message


@pytest.mark.sampled(each=9)
@PAIRED
def test_an_event_that_is_nested_too_deeply_is_a_bad_upstream(
    stage: Stage, client: Client, source: str
) -> None:
    """[A4] Unless it passes through unread: then nothing here is the deeper for it."""
    gateway, upstream = stage
    if client.dialect == source:
        return
    event = b'data: {"deep":%b%b}\n\n' % (b"[" * 400, b"]" * 400)
    upstream.next(Behaviour(body=event, headers=(("content-type", "text/event-stream"),)))
    is_of("upstream_bad", client, ask(gateway, client, fresh(source), stream=True))
