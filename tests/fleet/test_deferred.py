"""A fleet that starts before its stores: what needs no state is answered, and the stores are found when they come.

FAULTS 100, 101.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from proofs.servers import PostgresServer, RedisServer
from tests.fleet.fleet_kit import Fleet, chat
from tests.stores.servers import needs_own_postgres, needs_own_redis
from tests.waiting import wait_until

KEY = "a-key-of-the-configuration"

pytestmark = [needs_own_postgres, needs_own_redis]


@pytest.mark.whole
def test_a_gateway_starts_without_its_stores_and_finds_them_later(tmp_path: Path) -> None:
    with PostgresServer() as postgres, RedisServer() as redis:
        # Nobody can tell which keys are stored: only those of the configuration open.
        two = Fleet(
            tmp_path, postgres.url, redis.url, f'[keys]\nme = "sha256:{sha256(KEY.encode()).hexdigest()}"\n'
        )
        postgres.stop()
        redis.stop()
        try:
            two.machines[0].start()
            assert two.ask(0, "POST", "/v1/chat/completions", chat("demo", "hi"), key=KEY).status == 200
            stored = {"model": "demo-gemini", "input": "hi", "store": True}
            refused = two.ask(0, "POST", "/v1/responses", stored, key=KEY)
            assert refused.status == 503
            assert refused.json()["error"]["code"] == "storage_unavailable"
            wait_until(lambda: two.ask(0, "GET", "/readyz").json()["status"] == "degraded")
            postgres.start()
            redis.start()
            wait_until(lambda: two.ask(0, "GET", "/readyz").json()["status"] == "ready")
            assert two.ask(0, "POST", "/v1/responses", stored, key=KEY).status == 200
            # What was answered while nothing could be written is in the books all the same.
            wait_until(lambda: two.admin(0, "GET", "/v1/admin/usage").json()["total"]["requests"] == 2)
        finally:
            two.machines[0].kill()
