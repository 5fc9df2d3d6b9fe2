"""Redis and PostgreSQL that are alive and silent (SIGSTOP): a few requests wait for them, the rest do not, and
nothing that was bought is thrown away.

FAULTS 100, 101.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

import pytest

from tests.fleet.fleet_kit import OwnFleet, chat, fleet
from tests.stores.servers import needs_own_postgres, needs_own_redis
from tests.waiting import wait_until
from wireglot.stores.bounded import FAILURES_TO_OPEN

KEY = "a-key-of-the-configuration"
THINKING = {
    "model": "demo-gemini",
    "messages": [
        {"role": "user", "content": "[[demo:think]] hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "[[demo:think]] again"},
    ],
}
TURNS = 5 * FAILURES_TO_OPEN

pytestmark = [needs_own_postgres, needs_own_redis]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnFleet]:
    own = f'[keys]\nme = "sha256:{sha256(KEY.encode()).hexdigest()}"\n'
    with fleet(tmp_path_factory.mktemp("silent"), own) as found:
        yield found


def measured(running: OwnFleet, name: str, labels: str) -> int:
    text = running.admin(0, "GET", "/metrics").body.decode()
    found = re.search(rf"^{name}\{{{labels}\}} (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def is_ready(running: OwnFleet) -> bool:
    return bool(running.ask(0, "GET", "/readyz").json()["status"] == "ready")


def test_turns_to_a_thinking_model_do_not_wait_for_a_redis_that_hangs(running: OwnFleet) -> None:
    """[A7] FAULTS 100: it was four seconds for each turn, for the whole outage."""
    wait_until(lambda: is_ready(running))
    assert running.ask(0, "POST", "/v1/chat/completions", THINKING, key=KEY).status == 200
    running.redis.pause()
    try:
        for _ in range(TURNS):
            assert running.ask(0, "POST", "/v1/chat/completions", THINKING, key=KEY).status == 200
        for calls in ("reads", "writes"):
            labels = f'part="shared",calls="{calls}"'
            assert measured(running, "wireglot_store_breaker_open", labels) == 1
            # All but the first few were not asked at all: each turn recalls once, and keeps once.
            refused = measured(running, "wireglot_store_refused_total", labels)
            assert refused >= TURNS - FAILURES_TO_OPEN
        assert not is_ready(running)
        # What must be kept lies elsewhere.
        stored = running.ask(0, "POST", "/v1/responses", {"model": "demo-gemini", "input": "hi"}, key=KEY)
        assert (stored.status, stored.json()["store"]) == (200, True)
    finally:
        running.redis.resume()
    wait_until(lambda: is_ready(running))
    refused = measured(running, "wireglot_store_refused_total", 'part="shared",calls="reads"')
    assert running.ask(0, "POST", "/v1/chat/completions", THINKING, key=KEY).status == 200
    assert measured(running, "wireglot_store_refused_total", 'part="shared",calls="reads"') == refused


@pytest.mark.parametrize("stream", [False, True])
def test_answers_are_delivered_while_postgres_hangs(running: OwnFleet, stream: bool) -> None:
    """[A7] FAULTS 101: they took ten seconds and more, and ended in 503."""
    wait_until(lambda: is_ready(running))
    body = {"model": "demo-gemini", "input": "[[demo:echo]] bought-word", "stream": stream}
    kept = running.ask(0, "POST", "/v1/responses", {**body, "stream": False}, key=KEY).json()
    assert kept["store"] is True
    running.postgres.pause()
    try:
        bought = running.ask(0, "POST", "/v1/responses", {**body, "store": True}, key=KEY)
        assert bought.status == 200
        assert b"bought-word" in bought.body
        last = bought.body.rpartition(b"event: response.completed")[2] if stream else bought.body
        assert b'"store":false' in last
        found = re.search(rb'"id":"(resp_[0-9a-f]+)"', last)
        assert found is not None
        missing = running.ask(0, "GET", f"/v1/responses/{found[1].decode()}", key=KEY)
        assert missing.status == 404  # known without the store
        assert b"store: false" in missing.body
        for _ in range(TURNS):
            assert running.ask(0, "POST", "/v1/responses", body, key=KEY).status == 200
        assert running.ask(0, "POST", "/v1/chat/completions", chat("demo", "hi"), key=KEY).status == 200
    finally:
        running.postgres.resume()
    wait_until(lambda: is_ready(running))
    again = running.ask(0, "POST", "/v1/responses", {**body, "stream": False}, key=KEY).json()
    assert again["store"] is True
    for machine in (0, 1):
        id = found[1].decode()
        assert running.ask(machine, "GET", f"/v1/responses/{id}", key=KEY).status == 404
        for there in (kept["id"], again["id"]):
            assert running.ask(machine, "GET", f"/v1/responses/{there}", key=KEY).status == 200


def booked(running: OwnFleet) -> int:
    """Requests in the books to a model that only one test asks; none while the store is not back."""
    rows = running.ask(0, "GET", "/v1/usage?group_by=model", key=KEY).json().get("data", [])
    return sum(row["requests"] for row in rows if row["model"] == "demo-openai-chat")


@pytest.mark.whole
def test_a_machine_ends_in_good_order_while_its_stores_hang(running: OwnFleet) -> None:
    """[A7] What is not in the books yet lies in the journal of the machine, which writes it after its start."""
    wait_until(lambda: is_ready(running))
    machine = running.machines[1]
    body = chat("demo-openai-chat", "hi")
    assert running.ask(1, "POST", "/v1/chat/completions", body, key=KEY).status == 200
    wait_until(lambda: booked(running) == 1)
    running.postgres.pause()
    running.redis.pause()
    try:
        assert running.ask(1, "POST", "/v1/chat/completions", body, key=KEY).status == 200
        assert machine.stop() == 0
    finally:
        running.redis.resume()
        running.postgres.resume()
    machine.start()
    wait_until(lambda: booked(running) == 2)
