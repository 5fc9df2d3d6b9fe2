"""Signing in to a fleet: each step may be answered by another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from proofs.served import keys_table
from proofs.servers import PostgresServer, RedisServer
from tests.fleet.fleet_kit import Fleet
from tests.gateway.login.login_kit import Browser, Device, ask
from tests.stores.servers import needs_own_postgres, needs_own_redis
from tests.waiting import wait_until

pytestmark = [needs_own_postgres, needs_own_redis]
ADA = "wg-the-key-of-ada-0123456789"


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("shared", ["PostgreSQL and Redis", "PostgreSQL alone"])
def test_any_machine_answers_any_step_and_knows_a_token_at_once(tmp_path: Path, shared: str):
    with PostgresServer() as postgres, RedisServer() as redis:
        counters = redis.url if "Redis" in shared else ""
        fleet = Fleet(tmp_path, postgres.url, counters, f"[login]\n{keys_table({'ada': ADA})}")
        with fleet.running():
            one, two = fleet.machines
            device, browser = Device(one), Browser(two)
            device.begin()
            assert Device(two).form("/oauth/token", {"grant_type": "x"}).status == 400
            # Their cookies are named by port: a person stays with one machine, as behind a balancer's name.
            browser.get("/device")
            assert browser.post({"action": "code", "user_code": device.user_code}).status == 200
            assert browser.post({"action": "key", "key": ADA}).status == 200
            granted = device.poll().json()
            for machine in (two, one):
                assert ask(machine, granted["access_token"]).status == 200
            renewed = Device(two).renew(granted["refresh_token"]).json()
            for machine in (one, two):
                assert ask(machine, renewed["access_token"]).status == 200
            assert Device(two).revoke(renewed["refresh_token"]).status == 200
            assert ask(two, renewed["access_token"]).status == 401
            wait_until(lambda: ask(one, renewed["access_token"]).status == 401)
            assert Device(one).renew(renewed["refresh_token"]).status == 401
