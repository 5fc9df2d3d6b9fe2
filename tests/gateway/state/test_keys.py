"""Stored client keys: what the table in memory opens, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from tests.gateway.kit import head, match, settings
from tests.tiers import rows
from tests.waiting import until
from wireglot.gateway.entry.callers import LOCAL, Gatekeeper
from wireglot.gateway.errors import RequestError
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.settings import ClientKey, Group, Secret, ServerSettings
from wireglot.gateway.state.keys.ring import (
    KeyRefused,
    Keyring,
    Taken,
    Unknown,
    described,
    digest_of,
    new_key,
)
from wireglot.gateway.state.keys.table import TRUSTED_SECONDS, KeyTable
from wireglot.stores.base import StoreDown
from wireglot.stores.memory.engine import MemoryKeys
from wireglot.stores.records import KeyQuotas, KeyRow

DAY = 86_400


class Flaky(MemoryKeys):
    """A store that can be switched off."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self.reads = 0
        self.rows_read = 0
        """Of those that have changed."""

    async def version(self) -> int:
        if self.down:
            raise StoreDown("switched off")
        return await super().version()

    async def all(self) -> list[KeyRow]:
        if self.down:
            raise StoreDown("switched off")
        self.reads += 1
        return await super().all()

    async def changed(self, since: int) -> list[KeyRow] | None:
        rows = await super().changed(since)
        self.rows_read += len(rows or ())
        return rows


class House:
    """A table over a store, with clocks of its own."""

    def __init__(self) -> None:
        self.keys = Flaky()
        self.clock = 1000.0
        self.wall = 1_800_000_000.0
        self.notes: list[str] = []
        self.table = KeyTable(
            self.keys,
            lambda level, event, **fields: self.notes.append(event),
            clock=lambda: self.clock,
            wall=lambda: self.wall,
        )
        self.ring = Keyring(self.keys, {"configured"}, {"eng"}, wall=lambda: self.wall)

    async def create(self, name: str = "me", **fields: Any) -> str:
        _, key = await self.ring.create(name, fields)
        await self.table.refresh()
        return key

    def opens(self, key: str) -> bool:
        return self.table.find(digest_of(key)) is not None


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_key_is_256_random_bits_and_only_its_digest_is_kept() -> None:
    """THREATS T8: shown once, six letters of it kept."""
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith("wg-") and len(key) == 3 + 43 for key in keys)

    async def work() -> None:
        house = House()
        key = await house.create(requests_per_minute=5)
        (row,) = await house.keys.all()
        assert (row.digest, row.prefix) == (digest_of(key), key[:6])
        assert key not in repr(row)
        assert key not in repr(described(row, 0))
        assert row.digest not in repr(described(row, 0))

    run(work())


def test_a_new_key_opens_and_a_revoked_one_does_not() -> None:
    """FAULTS 90, THREATS T6: as soon as the table has looked, which it does every second."""

    async def work() -> None:
        house = House()
        key = await house.create()
        assert house.opens(key)
        assert not house.opens(new_key())
        await house.ring.revoke("me")
        await house.table.refresh()
        assert not house.opens(key)
        assert house.table.required, "the door does not open again with the last key"

    run(work())


def test_nothing_is_read_where_nothing_has_changed() -> None:
    async def work() -> None:
        house = House()
        await house.create()
        before = house.keys.reads
        for _ in range(5):
            await house.table.refresh()
        assert house.keys.reads == before

    run(work())


def test_of_many_keys_only_the_one_that_changed_is_read() -> None:
    """A new key among 100,000 stopped the loop for a third of a second."""

    async def go() -> None:
        house = House()
        for number in range(2000):
            await house.keys.put(KeyRow(f"key-{number}", f"{number:064}", "wg-", 1))
        await house.table.refresh()
        assert (house.keys.reads, house.keys.rows_read) == (1, 0)
        key = await house.create()
        assert house.opens(key)
        assert (house.keys.reads, house.keys.rows_read) == (1, 2)  # with the one before it
        other = await house.create("other")
        assert (house.keys.reads, house.keys.rows_read) == (1, 4)
        _, newer = await house.ring.rotate("me", 60)
        await house.table.refresh()
        assert (house.keys.reads, house.keys.rows_read) == (1, 6)
        assert house.opens(key)
        assert house.opens(newer)
        await house.ring.revoke("other")
        await house.table.refresh()
        assert not house.opens(other)
        assert house.opens(key)
        assert house.table.find(f"{1999:064}") is not None
        assert (house.keys.reads, house.keys.rows_read) == (1, 8)
        await house.ring.revoke("me")
        await house.table.refresh()
        assert not house.opens(key)
        assert not house.opens(newer)
        assert house.keys.reads == 1
        await house.keys.delete("key-7")
        await house.table.refresh()
        assert house.table.find(f"{7:064}") is None
        assert house.table.find(f"{8:064}") is not None
        assert house.keys.reads == 2

    run(go())


def test_a_store_that_was_restored_is_read_again() -> None:
    """A replica that took over, or a backup, has other changes under the numbers that were read."""

    async def go() -> None:
        house, restored = House(), Flaky()
        for keys in (house.keys, restored):
            await keys.put(KeyRow("a", "a" * 64, "wg-", 1))
            await keys.put(KeyRow("b", "b" * 64, "wg-", 1))
        await house.keys.put(KeyRow("lost", "c" * 64, "wg-", 1))
        await house.table.refresh()
        assert house.table.find("c" * 64) is not None
        await restored.put(KeyRow("a", "a" * 64, "wg-", 1, revoked=5))
        await restored.put(KeyRow("new", "d" * 64, "wg-", 1))
        house.table._keys = restored
        await house.table.refresh()
        assert house.table.find("a" * 64) is None
        assert house.table.find("c" * 64) is None
        assert house.table.find("d" * 64) is not None

    run(go())


def test_a_key_whose_digest_another_row_has_too_still_opens() -> None:
    async def go() -> None:
        house = House()
        await house.keys.put(KeyRow("one", "d" * 64, "wg-", 1))
        await house.table.refresh()
        await house.keys.put(KeyRow("two", "d" * 64, "wg-", 1))
        await house.table.refresh()
        await house.keys.put(KeyRow("one", "d" * 64, "wg-", 1, revoked=5))
        await house.table.refresh()
        found = house.table.find("d" * 64)
        assert found is not None
        assert found.name == "two"

    run(go())


def test_keys_are_required_from_the_first_one_on() -> None:
    async def work() -> None:
        house = House()
        await house.table.refresh()
        assert not house.table.required
        await house.create()
        assert house.table.required

    run(work())


def test_a_key_opens_until_it_expires() -> None:
    async def work() -> None:
        house = House()
        key = await house.create(expires="2027-01-31")
        request = head("POST", "/v1/messages", x_api_key=key)
        keeper = Gatekeeper(lambda: 0.0, house.table, wall=lambda: house.wall)
        assert keeper.caller(request, match(request), settings()).name == "me"
        house.wall = 1_801_353_600.0  # the beginning of that day
        with pytest.raises(RequestError) as refused:
            keeper.caller(request, match(request), settings())
        assert refused.value.error.status == 401

    run(work())


def test_a_key_of_the_configuration_expires_too() -> None:
    key = ClientKey("team", digest_of("secret"), expires=5_000)
    request = head("POST", "/v1/messages", x_api_key="secret")
    at = [4.0]
    keeper = Gatekeeper(lambda: 0.0, wall=lambda: at[0])
    assert keeper.caller(request, match(request), settings(keys=(key,))).name == "team"
    at[0] = 5.0
    with pytest.raises(RequestError):
        keeper.caller(request, match(request), settings(keys=(key,)))


def test_the_old_key_opens_for_the_overlap_and_no_longer() -> None:
    async def work() -> None:
        house = House()
        old = await house.create(concurrent=3)
        row, new = await house.ring.rotate("me", 3600)
        await house.table.refresh()
        assert house.opens(old)
        assert house.opens(new)
        found = house.table.find(digest_of(old))
        assert found is not None
        assert (found.name, found.limits) == ("me", row.limits), "the same caller, the same limits"
        house.wall += 3600
        assert not house.opens(old)
        assert house.opens(new)
        _, newest = await house.ring.rotate("me")
        await house.table.refresh()
        assert not house.opens(new), "without an overlap the old one ends at once"
        assert house.opens(newest)

    run(work())


def test_while_the_store_is_down_the_last_table_serves_on_for_a_minute() -> None:
    """FAULTS 101: and then nobody knows who was revoked."""

    async def work() -> None:
        house = House()
        key = await house.create()
        house.keys.down = True
        house.clock += TRUSTED_SECONDS
        await house.table.refresh()
        assert house.opens(key)
        house.clock += 1
        await house.table.refresh()
        await house.table.refresh()
        with pytest.raises(RequestError) as refused:
            house.opens(key)
        assert (refused.value.error.status, refused.value.error.code) == (503, "storage_unavailable")
        assert house.notes == ["client keys not available"], "said once"
        configured = ClientKey("team", digest_of("secret"))
        both = head("POST", "/v1/messages", authorization=f"Bearer {key}", x_api_key="secret")
        keeper = Gatekeeper(lambda: 0.0, house.table)
        found = keeper.caller(both, match(both), settings(keys=(configured,)))
        assert found.name == "team", "keys of the configuration go on"
        house.keys.down = False
        await house.table.refresh()
        assert house.opens(key)
        assert house.notes[-1] == "client keys available again"

    run(work())


def test_a_store_that_is_down_at_the_start_means_that_keys_are_required() -> None:
    """FAULTS 101"""

    async def work() -> None:
        house = House()
        house.keys.down = True
        await house.table.start()
        try:
            assert house.table.required
            with pytest.raises(RequestError) as refused:
                house.opens(new_key())
            assert refused.value.error.code == "storage_unavailable"
            house.keys.down = False
            await house.table.refresh()
            assert not house.table.required
        finally:
            await house.table.close()

    run(work())


def test_the_table_looks_by_itself() -> None:
    """FAULTS 90: a key that another process revoked."""

    async def work() -> None:
        house = House()
        key = await house.create()
        await house.table.start()
        try:
            await house.ring.revoke("me")
            await until(lambda: not house.opens(key))
        finally:
            await house.table.close()

    run(work())


def test_unknown_revoked_and_expired_keys_are_refused_alike() -> None:
    """THREATS T7, FAULTS 88: anyone who guesses learns nothing from the answer."""

    async def work() -> None:
        house = House()
        revoked = await house.create("revoked")
        await house.ring.revoke("revoked")
        expired = await house.create("expired", expires="2027-01-31")
        house.wall += 1000 * DAY
        keeper = Gatekeeper(lambda: 0.0, house.table, wall=lambda: house.wall)
        answers = set()
        for key in (revoked, expired, new_key(), "' OR 1=1 --", "x\x00y", "é"):
            request = head("POST", "/v1/messages", x_api_key=key)
            with pytest.raises(RequestError) as refused:
                keeper.caller(request, match(request), settings())
            answers.add(repr(refused.value.error))
        assert len(answers) == 1

    run(work())


def test_a_name_is_never_given_twice() -> None:
    """THREATS T19: anyone who had it has data under it."""

    async def work() -> None:
        house = House()
        await house.create("me")
        await house.ring.revoke("me")
        for name in ("me", "configured"):
            with pytest.raises(Taken):
                await house.ring.create(name, {})
        with pytest.raises(Taken, match="revoked"):
            await house.ring.rotate("me")
        with pytest.raises(Taken, match="revoked"):
            await house.ring.update("me", {"concurrent": 1})
        with pytest.raises(Unknown):
            await house.ring.revoke("nobody")

    run(work())


@rows(
    ("fields", "field", "said"),
    [
        ({"requests_per_minute": -1}, "requests_per_minute", "a whole number from 0"),
        ({"concurrent": 1.5}, "concurrent", "a whole number"),
        ({"concurrent": True}, "concurrent", "a whole number"),
        ({"cost_per_day": "2.50"}, "cost_per_day", "an amount of money"),
        ({"cost_per_day": float("nan")}, "cost_per_day", "an amount of money"),
        ({"expires": "tomorrow"}, "expires", "a date or a time"),
        ({"expires": "2001-01-01"}, "expires", "a time in the future"),
        ({"models": "gpt-*"}, "models", "a list of model names"),
        ({"losses": "never"}, "losses", "one of"),
        ({"request_per_minute": 1}, "request_per_minute", "did you mean requests_per_minute?"),
    ],
)
def test_what_is_wrong_with_a_key_is_reported_by_its_field(
    fields: dict[str, Any], field: str, said: str
) -> None:
    async def work() -> None:
        house = House()
        with pytest.raises(KeyRefused, match=said.replace("?", r"\?")) as refused:
            await house.ring.create("me", fields)
        assert refused.value.field == field
        assert await house.ring.all() == []

    run(work())


@rows("name", ["", "a/b", "../x", "x" * 65, "é", "admin", "local", None, 5, "a\x00b"])
def test_a_name_that_could_mean_something_else_is_refused(name: object) -> None:
    async def work() -> None:
        with pytest.raises(KeyRefused) as refused:
            await House().ring.create(name, {})
        assert refused.value.field == "name"

    run(work())


def test_a_revocation_wins_however_often_others_are_quicker() -> None:
    """FAULTS 90"""

    async def work() -> None:
        house = House()
        key = await house.create()
        put, turns = house.keys.put, iter(range(100))

        async def busy(row: KeyRow, *, new: bool = False, over: KeyRow | None = None) -> bool:
            turn = next(turns, None)
            if turn is not None:
                assert over is not None
                await put(msgspec.structs.replace(over, prefix=f"wg-{turn}"))
            return await put(row, new=new, over=over)

        house.keys.put = busy  # type: ignore[method-assign]  # a script that never stops
        assert (await house.ring.revoke("me")).revoked
        await house.table.refresh()
        assert not house.opens(key)

    run(work())


def test_an_update_changes_what_it_names_and_null_takes_it_off() -> None:
    async def work() -> None:
        house = House()
        await house.create(
            models=["a"], concurrent=2, cost_per_day=2.5, expires="2027-01-31", losses="strict"
        )
        row = await house.ring.update("me", {"concurrent": None, "tokens_per_day": 7})
        assert (row.limits.concurrent, row.limits.tokens_per_day, row.limits.cost_per_day) == (
            0,
            7,
            2_500_000,
        )
        assert (row.models, row.losses, bool(row.expires)) == (("a",), "strict", True)
        row = await house.ring.update("me", {"models": None, "losses": None, "expires": None})
        assert (row.models, row.losses, row.expires) == ((), "", 0)

    run(work())


def test_nobody_locks_the_owner_out_with_wrong_admin_secrets() -> None:
    """[A8] FAULTS 89: guessing is slowed down for its address, which may be that of a proxy before everybody: who
    has the secret gets in from there."""
    on = settings(
        server=ServerSettings(admin_secret=Secret("the-secret-of-the-owner")),
        limits=ProcessLimits(auth_failures=3),
    )
    now = [0.0]
    keeper = Gatekeeper(lambda: now[0])

    def ask(secret: str, peer: str = "10.0.0.1") -> int:
        try:
            keeper.admin(head("GET", "/v1/admin/keys", peer=peer, authorization=f"Bearer {secret}"), on)
        except RequestError as fault:
            return fault.error.status
        return 200

    assert [ask("wrong") for _ in range(4)] == [401, 401, 401, 429]
    assert ask("the-secret-of-the-owner") == 200
    assert ask("wrong") == 429
    assert ask("wrong", "10.0.0.2") == 401
    now[0] = 61.0
    assert ask("wrong") == 401


def test_without_an_admin_secret_there_is_no_admin_api() -> None:
    with pytest.raises(RequestError) as refused:
        Gatekeeper(lambda: 0.0).admin(head("GET", "/v1/admin/keys", authorization="Bearer "), settings())
    assert refused.value.error.status == 404


def test_without_any_key_everyone_is_local() -> None:
    async def work() -> None:
        house = House()
        await house.table.refresh()
        request = head("POST", "/v1/messages", x_api_key="anything")
        assert Gatekeeper(lambda: 0.0, house.table).caller(request, match(request), settings()) is LOCAL
        required = settings(server=ServerSettings(require_key=True))
        with pytest.raises(RequestError):
            Gatekeeper(lambda: 0.0, house.table).caller(request, match(request), required)

    run(work())


def test_a_stored_key_has_what_it_leaves_out_from_its_group_as_the_configuration_has_it_now() -> None:
    async def work() -> None:
        house = House()
        house.table.groups = {"eng": Group("eng", models=("fast",), limits=KeyQuotas(concurrent=3))}
        key = await house.create(group="eng", owner="ada", requests_per_minute=7)
        found = house.table.find(digest_of(key))
        assert found is not None
        assert (found.models, found.group, found.owner) == (("fast",), "eng", "ada")
        assert found.limits == KeyQuotas(requests_per_minute=7, concurrent=3)
        house.table.groups = {"eng": Group("eng", models=("slow",))}
        await house.table.refresh()
        found = house.table.find(digest_of(key))
        assert found is not None
        assert (found.models, found.limits) == (("slow",), KeyQuotas(requests_per_minute=7))
        reads = house.keys.reads
        await house.table.refresh()
        assert house.keys.reads == reads, "nothing has changed"

    run(work())


def test_a_stored_key_without_its_group_is_rejected_and_reported_once() -> None:
    """Its limits are the group's: without it there would be none."""

    async def work() -> None:
        house = House()
        house.table.groups = {"eng": Group("eng")}
        key = await house.create(group="eng")
        assert house.opens(key)
        house.table.groups = {}
        await house.table.refresh()
        await house.create("other")
        assert not house.opens(key)
        assert house.notes == ["key without group"]
        house.table.groups = {"eng": Group("eng")}
        await house.table.refresh()
        assert house.opens(key)

    run(work())


@rows(
    ("fields", "field"),
    [
        ({"group": "egn"}, "group"),
        ({"group": 3}, "group"),
        ({"owner": "a\nb"}, "owner"),
        ({"owner": "a" * 201}, "owner"),
    ],
)
def test_a_group_and_an_owner_are_checked(fields: dict[str, Any], field: str) -> None:
    async def work() -> None:
        with pytest.raises(KeyRefused) as refused:
            await House().ring.create("me", fields)
        assert refused.value.field == field

    run(work())


def test_a_key_is_gone_once_it_is_revoked_deleted_or_anothers() -> None:
    async def work() -> None:
        house = House()
        key = house.table.find(digest_of(await house.create()))
        assert key is not None
        assert not house.table.is_gone(key)
        assert not house.table.is_gone(None)
        assert not house.table.is_gone(ClientKey("configured", digest_of("x"))), "it is in no store"
        row = await house.keys.get("me")
        assert row is not None
        for changed in (
            msgspec.structs.replace(row, revoked=5),
            msgspec.structs.replace(row, created=row.created + 1),
        ):
            await house.keys.put(changed)
            await house.table.refresh()
            assert house.table.is_gone(key)
        await house.keys.put(row)
        await house.table.refresh()
        assert not house.table.is_gone(key)
        await house.keys.delete("me")
        await house.table.refresh()
        assert house.table.is_gone(key)

    run(work())
