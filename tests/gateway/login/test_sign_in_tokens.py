"""Tokens and device codes by themselves: clocks, addresses, and several processes with one store."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from tests.gateway.inspector.inspector_kit import KEY
from tests.gateway.kit import settings
from tests.gateway.login.login_kit import Browser, Device, ask, gateway
from tests.waiting import wait_until
from wireglot.gateway.entry.callers import Gatekeeper
from wireglot.gateway.login import device_codes, tokens
from wireglot.gateway.login.device_codes import Decision, DeviceCodes, NotYet, TooMany, network_of
from wireglot.gateway.login.provider_grants import OFFLINE, ProviderGrants
from wireglot.gateway.login.tokens import Granted, Person, SignInRefused, SignInTokens
from wireglot.gateway.settings import ClientKey, LoginSettings, Settings
from wireglot.gateway.state.keys.ring import digest_of
from wireglot.gateway.state.keys.table import KeyTable
from wireglot.gateway.state.tasks import Pace
from wireglot.stores.memory import MemoryCounters
from wireglot.stores.memory.engine import MemoryDocuments, MemoryKeys
from wireglot.stores.seal import SealedDocuments, Sealer

HERE, ELSEWHERE = "192.0.2.1", "192.0.2.2"
HOUR = 3600.0
PARENT = digest_of(KEY)


class Desk:
    """Tokens of a store in memory, at a time that can be set."""

    def __init__(self, *keys: ClientKey, **login: Any) -> None:
        self.now = 1_800_000_000.0
        self.notes: list[str] = []
        self.keys = MemoryKeys()
        self.table = KeyTable(self.keys, self._note, clock=lambda: 0.0, wall=lambda: self.now)
        self.gatekeeper = Gatekeeper(lambda: self.now, self.table, wall=lambda: self.now)
        self.tokens = SignInTokens(
            self.keys, self.table, self.gatekeeper, self._note, self._recheck, wall=lambda: self.now
        )
        self.settings: Settings = settings(
            keys=keys or (ClientKey("ada", PARENT, owner="ada@example.com"),), login=LoginSettings(**login)
        )

    async def _recheck(self, grant: str, login: LoginSettings) -> Person | None:
        return None

    def _note(self, level: str, event: str, **fields: Any) -> None:
        self.notes.append(event)

    async def issue(self, address: str = HERE) -> Granted:
        return await self.tokens.issue(PARENT, "terminal", address, self.settings)

    async def renew(self, granted: Granted, address: str = HERE) -> Granted | None:
        return await self.tokens.renew(granted.refresh_token, address, self.settings)

    def opens(self, granted: Granted) -> str:
        key = self.gatekeeper.key_of(digest_of(granted.access_token), self.settings)
        return key.name if key is not None else ""


def test_a_refresh_token_that_two_machines_have_ends_the_sign_in():
    async def check() -> None:
        desk = Desk()
        first = await desk.issue()
        stolen = await desk.renew(first, ELSEWHERE)
        assert stolen is not None
        assert desk.opens(stolen) == "ada"
        assert await desk.renew(first, HERE) is None
        assert desk.opens(stolen) == ""
        assert await desk.renew(stolen, ELSEWHERE) is None
        assert "refresh token used twice" in desk.notes

    asyncio.run(check())


def test_a_thief_who_comes_late_ends_the_sign_in_too():
    async def check() -> None:
        desk = Desk()
        first = await desk.issue()
        second = await desk.renew(first)
        assert second is not None
        assert await desk.renew(first, ELSEWHERE) is None
        assert desk.opens(second) == ""

    asyncio.run(check())


def test_a_machine_may_change_its_address():
    async def check() -> None:
        desk = Desk()
        second = await desk.renew(await desk.issue(), ELSEWHERE)
        assert second is not None
        third = await desk.renew(second, HERE)
        assert third is not None
        assert desk.opens(third) == "ada"

    asyncio.run(check())


def test_an_access_token_and_a_sign_in_end_in_time():
    async def check() -> None:
        desk = Desk(token_hours=2.0, refresh_days=1.0)
        granted = await desk.issue()
        assert granted.seconds == 2 * HOUR
        desk.now += 2 * HOUR - 1
        assert desk.opens(granted) == "ada"
        desk.now += 2
        await desk.table.refresh()
        assert desk.opens(granted) == ""
        desk.now += 20 * HOUR
        renewed = await desk.renew(granted)
        assert renewed is not None
        assert renewed.seconds <= 2 * HOUR
        desk.now += 3 * HOUR
        assert await desk.renew(renewed) is None

    asyncio.run(check())


def test_renewing_does_not_prolong_a_sign_in():
    async def check() -> None:
        desk = Desk(token_hours=1.0, refresh_days=1.0)
        granted = await desk.issue()
        desk.now += 23.5 * HOUR
        renewed = await desk.renew(granted)
        assert renewed is not None
        assert renewed.seconds == pytest.approx(HOUR / 2, abs=1)
        desk.now += HOUR / 2 + 1
        await desk.table.refresh()
        assert desk.opens(renewed) == ""

    asyncio.run(check())


def test_a_token_does_not_outlive_a_key_that_expires():
    async def check() -> None:
        desk = Desk(ClientKey("ada", PARENT, expires=(1_800_000_000 + 600) * 1000))
        granted = await desk.issue()
        assert granted.seconds == 600
        desk.now += 601
        await desk.table.refresh()
        assert desk.opens(granted) == ""
        assert await desk.renew(granted) is None
        with pytest.raises(SignInRefused):
            await desk.issue()

    asyncio.run(check())


def test_sign_ins_that_are_over_are_deleted_and_those_of_a_key_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tokens, "MAX_SIGN_INS", 3)

    async def check() -> None:
        desk = Desk(refresh_days=1.0)
        granted = []
        for _ in range(4):
            granted.append(await desk.issue())
            desk.now += 1
        await desk.table.refresh()
        assert [desk.opens(each) for each in granted] == ["", "ada", "ada", "ada"]
        desk.now += 25 * HOUR
        await desk.issue()
        assert len(await desk.keys.all()) == 1

    asyncio.run(check())


def test_a_row_of_a_sign_in_is_no_key_for_a_version_that_knows_none():
    """Of an older version's fields there is no digest: it opens nothing there."""

    async def check() -> None:
        desk = Desk()
        await desk.issue()
        (row,) = await desk.keys.all()
        assert row.digest == ""

    asyncio.run(check())


def test_first_sign_ins_of_a_person_at_the_same_time_make_one_key():
    async def check() -> None:
        desk = Desk()
        person = Person("https://issuer.example\n1", "eve@example.com", "")
        rows = await asyncio.gather(*(desk.tokens.person(person, desk.settings) for _ in range(5)))
        assert {row.digest for row in rows} == {rows[0].digest}
        assert len(await desk.keys.all()) == 1

    asyncio.run(check())


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("Eve@Example.com", "eve@example.com"),
        ("eve+tag@example.com", "eve-tag@example.com-"),
        ("admin", "admin-"),
        ("login-0123456789ab", "login-0123456789ab-"),
        ("../../etc/passwd\n", "etc-passwd-"),
        ("é" * 300, "person-"),
        ("a" * 300, "a" * 48 + "-"),
    ],
)
def test_names_of_people_become_names_of_keys(owner: str, name: str):
    async def check() -> None:
        desk = Desk()
        row = await desk.tokens.person(Person("issuer\n1", owner, ""), desk.settings)
        assert row.name.startswith(name)
        assert (len(row.name) == len(name) + 12) == name.endswith("-")

    asyncio.run(check())


# Device codes.


def codes(now: list[int]) -> DeviceCodes:
    documents = SealedDocuments(MemoryDocuments(lambda: now[0]), Sealer(b"secret"), lambda kind: None)
    return DeviceCodes(documents, MemoryCounters(), lambda: now[0])


def test_a_code_expires():
    async def check() -> None:
        now = [1_800_000_000_000]
        desk = codes(now)
        device_code, request = await desk.begin("terminal", HERE)
        now[0] += 600_001
        assert await desk.find(request.user_code, HERE) is None
        assert not await desk.decide(request, Decision(PARENT))
        with pytest.raises(NotYet, match="expired_token"):
            await desk.poll(device_code)

    asyncio.run(check())


def test_open_codes_are_bounded_over_all_addresses(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(device_codes, "MAX_OPEN", 3)

    async def check() -> None:
        desk = codes([1_800_000_000_000])
        begun = [await desk.begin("", f"192.0.2.{number}") for number in range(3)]
        with pytest.raises(TooMany):
            await desk.begin("", "192.0.2.9")
        await desk.decide(begun[0][1], Decision(""))
        with pytest.raises(NotYet, match="access_denied"):
            await desk.poll(begun[0][0])
        await desk.begin("", "192.0.2.9")

    asyncio.run(check())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "", True),
    ],
)
def test_addresses_of_one_network(one: str, other: str, same: bool):
    assert (network_of(one) == network_of(other)) is same


def test_any_process_of_a_store_answers_any_step(tmp_path):
    store = f'[store]\nurl = "sqlite:///{tmp_path / "shared.db"}"\n'
    secret = 'secret = "the-same-on-every-machine"'
    pace = Pace(keys_look_seconds=0.05)
    with gateway("", store, server=secret).at(pace) as one, gateway("", store, server=secret).at(pace) as two:
        device = Device(one)
        device.begin()
        browser = Browser(two)
        browser.get("/device")
        browser.post({"action": "code", "user_code": device.user_code})
        assert browser.post({"action": "key", "key": KEY}).status == 200
        granted = device.poll().json()
        wait_until(lambda: ask(two, granted["access_token"]).status == 200)
        other = Device(two)
        renewed = other.renew(granted["refresh_token"]).json()
        wait_until(lambda: ask(one, renewed["access_token"]).status == 200)
        assert other.revoke(renewed["access_token"]).status == 200
        wait_until(lambda: ask(one, renewed["access_token"]).status == 401)


def test_a_check_at_the_provider_leaves_nothing_behind():
    checks: list[weakref.ref[Any]] = []

    class Provider:
        async def renewed(self, login: LoginSettings, refresh_token: str) -> tuple[Person | None, str]:
            checks.append(weakref.ref(asyncio.current_task()))
            return None, f"{refresh_token}+"

    async def go() -> None:
        documents = SealedDocuments(MemoryDocuments(lambda: 0), Sealer(b"secret"), lambda kind: None)
        login = LoginSettings(scopes=("openid", OFFLINE))
        grants = ProviderGrants(documents, MemoryCounters(), Provider())  # type: ignore[arg-type]  # a part of it
        id = await grants.keep("first", login)
        for _ in range(3):
            assert await grants.check(id, login) is None
        gc.collect()
        assert [check() for check in checks] == [None, None, None]

    asyncio.run(go())
