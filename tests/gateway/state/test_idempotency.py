"""One upstream call and one answer for each Idempotency-Key (FAULTS 40)."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.state.stored_forms import IDEMPOTENT
from wireglot.gateway.state.tasks import Pace
from wireglot.stores import StoreDown
from wireglot.stores.records import UsageQuery
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": (
        "/v1/messages",
        {"model": "m1", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]},
    ),
    "openai-chat": (
        "/v1/chat/completions",
        {"model": "m1", "messages": [{"role": "user", "content": "Hello"}]},
    ),
    "openai-responses": ("/v1/responses", {"model": "m1", "input": "Hello", "store": False}),
    "gemini": ("/v1beta/models/m1:generateContent", {"contents": [{"parts": [{"text": "Hello"}]}]}),
}
CHAT, HELLO = REQUESTS["openai-chat"]
ONCE = {"retry": "{retries = 0}", "breaker": "{consecutive = 1000000, minimum = 1000000}"}


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.body = answer.read()

    @property
    def replayed(self) -> bool:
        return self.headers.get("idempotent-replayed") == "true"


def post(gateway: LiveGateway, path: str, body: dict[str, Any], key: str, **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    try:
        sent = {"content-type": "application/json", "idempotency-key": key, **headers}
        connection.request("POST", path, json.dumps(body), sent)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def until_not_in_flight(gateway: LiveGateway, key: str) -> Answer:
    """The first answer that is not "being answered": a key is freed a moment after its request has ended."""

    def answered() -> Answer | None:
        answer = post(gateway, CHAT, HELLO, key)
        return None if answer.status == 409 else answer

    return wait_until(answered, "the key stays taken")


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    keys = "".join(
        f'[keys.{name}]\nhash = "sha256:{hashlib.sha256(f"wg-{name}-0123456789".encode()).hexdigest()}"\n'
        for name in ("one", "two")
    )
    with LiveGateway.before(upstream, "gemini", keys, **ONCE) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(upstream: ScriptedUpstream) -> None:
    upstream.reset()


ONE = {"authorization": "Bearer wg-one-0123456789"}
TWO = {"authorization": "Bearer wg-two-0123456789"}


@pytest.fixture(scope="module")
def open_gateway(upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    with LiveGateway.before(upstream, "gemini", **ONCE) as running:
        yield running


def test_fifty_parallel_posts_with_one_key_are_one_upstream_call(
    open_gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    """FAULTS 40: anyone who is not first is asked to wait, or gets the bytes of the first."""
    upstream.otherwise = Behaviour(delay=0.3)
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: post(open_gateway, CHAT, HELLO, "fifty"), range(50)))
    assert len(upstream.requests) == 1
    conflicts = [answer for answer in answers if answer.status == 409]
    whole = [answer for answer in answers if answer.status == 200]
    assert len(conflicts) + len(whole) == 50
    assert whole
    assert len([answer for answer in whole if not answer.replayed]) == 1
    for answer in conflicts:
        assert answer.headers["retry-after"] == "1"
        assert json.loads(answer.body)["error"]["code"] == "idempotency_conflict"
    assert len({answer.body for answer in whole}) == 1


def test_the_sdk_that_tries_again_gets_the_one_answer(
    open_gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    upstream.otherwise = Behaviour(delay=0.2)
    client = openai.OpenAI(base_url=f"{open_gateway.url}/v1", api_key="x", max_retries=4)

    def ask(_: int) -> str:
        said = client.chat.completions.create(**HELLO, extra_headers={"Idempotency-Key": "sdk"})
        return str(said.model_dump_json())

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 1
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", REQUESTS)
def test_the_same_request_again_gets_the_same_bytes_again(
    open_gateway: LiveGateway, upstream: ScriptedUpstream, dialect: str, streamed: bool
) -> None:
    path, body = REQUESTS[dialect]
    if streamed and dialect == "gemini":
        path = path.replace("generateContent", "streamGenerateContent?alt=sse")
    elif streamed:
        body = {**body, "stream": True}
    key = f"{dialect}-{streamed}"
    first = post(open_gateway, path, body, key)
    again = post(open_gateway, path, body, key)
    assert first.status == again.status == 200
    assert not first.replayed
    assert again.replayed
    assert again.body == first.body
    assert again.headers["content-type"] == first.headers["content-type"]
    assert again.headers["x-wireglot-request-id"] != first.headers["x-wireglot-request-id"]
    assert len(upstream.requests) == 1


def test_a_json_array_stream_is_another_request_than_its_events(
    open_gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    path = "/v1beta/models/m1:streamGenerateContent"
    first = post(open_gateway, path, REQUESTS["gemini"][1], "array")
    again = post(open_gateway, path, REQUESTS["gemini"][1], "array")
    assert again.replayed
    assert json.loads(again.body) == json.loads(first.body)
    assert post(open_gateway, f"{path}?alt=sse", REQUESTS["gemini"][1], "array").status == 409


def test_another_body_under_the_same_key_is_a_conflict(open_gateway: LiveGateway) -> None:
    """FAULTS 40."""
    assert post(open_gateway, CHAT, HELLO, "bodies").status == 200
    other = post(open_gateway, CHAT, {**HELLO, "temperature": 0.5}, "bodies")
    assert other.status == 409
    assert "another request" in json.loads(other.body)["error"]["message"]


def test_a_key_belongs_to_one_caller_and_one_dialect(
    gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    assert post(gateway, CHAT, HELLO, "shared", **ONE).status == 200
    other = post(gateway, CHAT, HELLO, "shared", **TWO)
    assert (other.status, other.replayed) == (200, False)
    path, body = REQUESTS["openai-responses"]
    assert post(gateway, path, body, "shared", **ONE).status == 200
    assert len(upstream.requests) == 3
    assert post(gateway, CHAT, HELLO, "shared", **ONE).replayed


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\tinside"], ids=["empty", "long", "control"])
def test_a_key_that_is_none_is_refused_by_name(
    open_gateway: LiveGateway, upstream: ScriptedUpstream, key: str
) -> None:
    """FAULTS 40: a key over 255 characters is a bad request."""
    answer = post(open_gateway, CHAT, HELLO, key)
    assert answer.status == 400
    assert "Idempotency-Key" in json.loads(answer.body)["error"]["message"]
    assert not upstream.requests


def test_a_key_of_255_characters_is_taken(open_gateway: LiveGateway) -> None:
    assert post(open_gateway, CHAT, HELLO, "y" * 255).status == 200
    assert post(open_gateway, CHAT, HELLO, "y" * 255).replayed


@pytest.mark.parametrize(
    "trouble",
    [
        Behaviour(error=500),
        Behaviour(error=400),
        Behaviour(fault="error-midstream"),
        Behaviour(fault="reset-midstream"),
    ],
    ids=["500", "400", "midstream", "reset"],
)
def test_an_error_frees_the_key(
    open_gateway: LiveGateway, upstream: ScriptedUpstream, trouble: Behaviour
) -> None:
    key, body = f"error-{trouble.error}-{trouble.fault}", {**HELLO, "stream": True}
    upstream.next(trouble)
    failed = post(open_gateway, CHAT, body, key)
    assert failed.status != 200 or b'"error"' in failed.body
    again = post(open_gateway, CHAT, body, key)
    assert (again.status, again.replayed) == (200, False)
    assert post(open_gateway, CHAT, body, key).replayed
    assert len(upstream.requests) == 2


def test_a_client_that_leaves_in_the_middle_frees_its_key(
    open_gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    upstream.next(Behaviour(fault="stall-midstream"))
    connection = http.client.HTTPConnection("127.0.0.1", open_gateway.port, timeout=DEADLINE_SECONDS)
    connection.request(
        "POST",
        CHAT,
        json.dumps({**HELLO, "stream": True}),
        {"content-type": "application/json", "idempotency-key": "left"},
    )
    answer = connection.getresponse()
    answer.readline()
    answer.close()
    connection.close()
    again = until_not_in_flight(open_gateway, "left")
    assert (again.status, again.replayed) == (200, False)


def test_an_answer_is_still_known_after_a_restart(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    toml = (
        f'[providers.mine]\ndialect = "gemini"\nbase_url = "{upstream.url}/v1beta"\napi_key = "k-0123456789"\n'
        '[models]\n"*" = "mine/*"\n'
    )
    with LiveGateway(toml, folder=tmp_path) as gateway:
        first = post(gateway, CHAT, HELLO, "restart")
    with LiveGateway(toml, folder=tmp_path) as gateway:
        again = post(gateway, CHAT, HELLO, "restart")
    assert again.replayed
    assert again.body == first.body
    assert len(upstream.requests) == 1
    assert b"Hello" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.db*")), (
        "answers are sealed at rest"
    )


def test_one_key_is_one_call_in_two_processes(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    """FAULTS 40, wherever a load balancer sends the second try."""
    upstream.otherwise = Behaviour(delay=0.2)
    toml = (
        f'[providers.mine]\ndialect = "gemini"\nbase_url = "{upstream.url}/v1beta"\napi_key = "k-0123456789"\n'
        '[models]\n"*" = "mine/*"\n'
    )
    with LiveGateway(toml, folder=tmp_path) as one, LiveGateway(toml, folder=tmp_path) as two:
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda n: post((one, two)[n % 2], CHAT, HELLO, "both"), range(20)))
        assert {answer.status for answer in answers} <= {200, 409}
        first = [answer for answer in answers if answer.status == 200 and not answer.replayed]
        assert len(first) == len(upstream.requests) == 1
        for gateway in (one, two):
            assert post(gateway, CHAT, HELLO, "both").body == first[0].body


def test_a_replay_is_no_second_row_in_the_books(open_gateway: LiveGateway) -> None:
    """FAULTS 40: one upstream call, one ledger row."""
    state = open_gateway.process.state

    def count() -> int:
        open_gateway.call(state.ledger.flush(DEADLINE_SECONDS))
        return len(open_gateway.call(state.engine.ledger.rows(UsageQuery(), limit=10_000)))

    before = count()
    for _ in range(3):
        assert post(open_gateway, CHAT, HELLO, "books").status == 200
    assert count() == before + 1


def test_a_claim_whose_process_says_nothing_is_free_after_its_lease(
    open_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(claim_lease_seconds=0.3, claim_beat_seconds=1000.0)
    monkeypatch.setattr(open_gateway.process.state.idempotency, "pace", pace)
    upstream.next(Behaviour(fault="stall"))
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", open_gateway.port)) as silent:
        silent.request(
            "POST", CHAT, json.dumps(HELLO), {"content-type": "application/json", "idempotency-key": "dead"}
        )
        upstream.wait_for(1)
        assert until_not_in_flight(open_gateway, "dead").status == 200
    assert len(upstream.requests) == 2


def test_a_claim_is_renewed_while_its_request_runs(
    open_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_gateway.process.state.idempotency, "pace", Pace(claim_beat_seconds=0.02))
    documents = open_gateway.process.state.documents
    upstream.next(Behaviour(fault="stall"))
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", open_gateway.port)) as silent:
        silent.request(
            "POST", CHAT, json.dumps(HELLO), {"content-type": "application/json", "idempotency-key": "beats"}
        )
        upstream.wait_for(1)
        seen: set[int] = set()

        def renewed() -> bool:
            claims = open_gateway.call(documents.recent("local", IDEMPOTENT, limit=1))
            seen.update(claim.expires for claim in claims)
            return len(seen) >= 3

        wait_until(renewed)
        assert post(open_gateway, CHAT, HELLO, "beats").status == 409


def test_an_answer_that_is_too_large_is_not_kept(
    open_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_gateway.process.state.idempotency, "max_answer_bytes", 16)
    assert post(open_gateway, CHAT, HELLO, "large").status == 200
    again = until_not_in_flight(open_gateway, "large")
    assert (again.status, again.replayed) == (200, False)
    text = "the answer is too large to be stored"
    wait_until(lambda: text in {line["detail"] for line in open_gateway.log("idempotency")})


class Unreachable:
    def __getattr__(self, name: str) -> Any:
        async def fail(*values: Any, **more: Any) -> Any:
            raise StoreDown("gone")

        return fail


def test_without_its_store_a_promise_cannot_be_made(
    open_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 93: what was asked for cannot be given, and that is said; other requests go on."""
    monkeypatch.setattr(open_gateway.process.state.idempotency, "documents", Unreachable())
    refused = post(open_gateway, CHAT, HELLO, "down")
    assert refused.status == 503
    assert json.loads(refused.body)["error"]["code"] == "storage_unavailable"
    assert not upstream.requests
