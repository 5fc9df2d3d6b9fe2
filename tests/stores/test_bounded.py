"""Every call to a store has a budget, and where a few have failed nobody waits for the next."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.stores.troubled import Troubled
from tests.waiting import DEADLINE_SECONDS, until
from wireglot.stores import StoreDown
from wireglot.stores.base import Counters, Documents, Engine, Keys, Ledger, Shared, Vault, VaultApart
from wireglot.stores.bounded import (
    FAILURES_TO_OPEN,
    SHORT_SECONDS,
    BoundedDocuments,
    BoundedEngine,
    BoundedShared,
    BoundedVault,
    Bounds,
    bounded,
)
from wireglot.stores.memory import MemoryCounters, MemoryEngine
from wireglot.stores.records import Document

QUICK_SECONDS = 0.01


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*values: Any, **named: Any) -> None:
        asyncio.run(test(*values, **named))

    return run


class Stage:
    def __init__(self, seconds: float = QUICK_SECONDS) -> None:
        self.behind: Any = MemoryEngine()
        self.documents = self.behind.documents = Troubled(self.behind.documents)
        self.vault = self.behind.vault = Troubled(self.behind.vault)
        self.ledger = self.behind.ledger = Troubled(self.behind.ledger)
        self.keys = self.behind.keys = Troubled(self.behind.keys)
        self.engine = BoundedEngine(self.behind, seconds)

    def open_breakers(self) -> list[str]:
        return [sort for sort, breaker in self.engine.bounds.breakers.items() if breaker.why]


DOCUMENT = Document("alice", "response", "resp_1", b"x")


def public(protocol: type) -> list[str]:
    return [name for name, value in vars(protocol).items() if callable(value) and not name.startswith("_")]


CALLS = [
    (part, name)
    for part, protocol in (("documents", Documents), ("vault", Vault), ("ledger", Ledger), ("keys", Keys))
    for name in public(protocol)
]


def test_each_call_declares_how_it_is_waited_for() -> None:
    """[A7] A forgotten one is reported when the class is made, and not by a wrong wait years later."""

    class Forgetful:
        async def find(self, name: str) -> str:
            return name

    with pytest.raises(TypeError, match=r"Forgetful\.find declares no kind"):
        bounded(Forgetful.find)
    reads, long, unattended = set(), set(), set()
    for protocol in (Documents, Vault, VaultApart, Ledger, Keys, Counters, Engine):
        for name in public(protocol):
            kind = vars(vars(protocol)[name]).get("kind")
            if kind is None:
                assert name in {"check", "close", "export", "lacks", "kept_mark"}
                continue
            reads |= {name} if kind.sort == "reads" else set()
            long |= {name} if kind.is_long else set()
            unattended |= {name} if kind.is_unattended else set()
    assert reads == {
        *("get", "pieces", "recent", "recall", "totals", "rows", "spent", "sessions", "version", "all"),
        *("stats", "changed", "losses"),
    }
    assert long == {
        *("apply", "close_open", "totals", "rows", "sessions", "forget_session", "stats", "sweep", "wipe"),
        *("load", "forget", "losses", "sum_up"),
    }
    assert unattended == {
        *("apply", "close_open", "beat", "version", "sweep", "cool", "cooling", "amounts", "sum_up"),
    }


@pytest.mark.parametrize(("part", "name"), CALLS)
@in_a_loop
async def test_no_call_of_a_store_that_hangs_is_waited_for_without_end(
    part: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A7]"""
    monkeypatch.setattr("wireglot.stores.bounded.LONG_SECONDS", QUICK_SECONDS)
    stage = Stage()
    getattr(stage, part).hangs.add(name)
    with pytest.raises(StoreDown, match="does not answer within"):
        await getattr(getattr(stage.engine, part), name)()


@pytest.mark.parametrize("name", [name for name in public(Counters) if name not in ("close",)])
@in_a_loop
async def test_no_call_of_counters_that_hang_is_waited_for_without_end(name: str) -> None:
    """[A7]"""
    counters: Any = Troubled(MemoryCounters())
    counters.hangs.add(name)
    shared = BoundedShared(Shared(counters, None), QUICK_SECONDS)
    with pytest.raises(StoreDown, match="does not answer within"):
        await getattr(shared.counters, name)()


@pytest.mark.parametrize("name", ["check", "sweep", "wipe", "stats", "load"])
@in_a_loop
async def test_no_call_of_an_engine_that_hangs_is_waited_for_without_end(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A7]"""
    monkeypatch.setattr("wireglot.stores.bounded.LONG_SECONDS", QUICK_SECONDS)
    stage = Stage()

    async def hang(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    setattr(stage.behind, name, hang)
    calls: dict[str, Callable[[], Any]] = {
        "sweep": lambda: stage.engine.sweep(0, usage_before=0, dead_before=0, kinds={}),
        "wipe": lambda: stage.engine.wipe("alice"),
        "load": lambda: stage.engine.load([]),
    }
    with pytest.raises(StoreDown, match="does not answer within"):
        await calls.get(name, getattr(stage.engine, name))()


@pytest.mark.parametrize("how", ["hangs", "fails"])
@in_a_loop
async def test_after_a_few_failures_nobody_asks_until_a_check_goes_well(how: str) -> None:
    """[A7]"""
    stage = Stage()
    getattr(stage.documents, how).add("put")
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(StoreDown):
            await stage.engine.documents.put([DOCUMENT])
    assert stage.open_breakers() == ["writes"]
    asked = len(stage.documents.asked)
    for _ in range(5):
        with pytest.raises(StoreDown):
            await stage.engine.documents.put([DOCUMENT])
        with pytest.raises(StoreDown):
            await stage.engine.vault.keep("alice", {"a": b"b"}, 60)
    assert len(stage.documents.asked) == asked
    assert stage.vault.asked == []
    assert stage.engine.bounds.breakers["writes"].refused == 10
    assert stage.engine.bounds.trouble
    # What it has is read as ever: a locked database answers, it only takes nothing.
    assert await stage.engine.documents.get("alice", "response", ["resp_1"]) == []

    getattr(stage.documents, how).clear()
    with pytest.raises(StoreDown):  # nobody has looked yet
        await stage.engine.documents.put([DOCUMENT])
    await stage.engine.check()
    assert stage.engine.bounds.trouble == ""
    assert await stage.engine.documents.put([DOCUMENT])


@in_a_loop
async def test_a_check_that_fails_opens_writes_and_closes_nothing() -> None:
    """[A7]"""
    stage = Stage()

    async def fail() -> None:
        raise StoreDown("the disk is full")

    stage.behind.check = fail
    for _ in range(FAILURES_TO_OPEN + 1):
        with pytest.raises(StoreDown, match="full"):
            await stage.engine.check()
    assert stage.open_breakers() == ["writes"]


@in_a_loop
async def test_a_failure_now_and_then_opens_nothing() -> None:
    """[A7]"""
    stage = Stage()
    for _ in range(4):
        stage.documents.fails.add("put")
        for _ in range(FAILURES_TO_OPEN - 1):
            with pytest.raises(StoreDown):
                await stage.engine.documents.put([DOCUMENT])
        stage.documents.fails.clear()
        assert await stage.engine.documents.put([DOCUMENT])
    assert stage.open_breakers() == []


@in_a_loop
async def test_the_books_and_the_keys_ask_on_and_close_no_breaker() -> None:
    """[A7] Nobody waits for them, and that they go well says nothing about what hung."""
    stage = Stage()
    stage.documents.fails |= {"put", "get"}
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(StoreDown):
            await stage.engine.documents.put([DOCUMENT])
        with pytest.raises(StoreDown):
            await stage.engine.documents.get("alice", "response", ["resp_1"])
    await stage.engine.ledger.apply([])
    await stage.engine.keys.version()
    assert stage.ledger.asked == ["apply"]
    assert stage.keys.asked == ["version"]
    assert stage.open_breakers() == ["reads", "writes"]


@in_a_loop
async def test_a_mistake_of_ours_is_no_failure_of_the_store() -> None:
    """[A7]"""
    bounds = Bounds(1.0)

    class Odd:
        async def put(self) -> None:
            raise ValueError("odd")

        async def get(self) -> None:
            raise TimeoutError("of somebody else")

    part: Any = BoundedDocuments(Odd, bounds)
    for _ in range(FAILURES_TO_OPEN + 1):
        with pytest.raises(ValueError, match="odd"):
            await part.put()
        with pytest.raises(TimeoutError, match="somebody else"):
            await part.get()
    assert bounds.trouble == ""


@in_a_loop
async def test_a_caller_that_leaves_is_no_failure_of_the_store() -> None:
    """[A7]"""
    stage = Stage(seconds=60.0)
    stage.documents.hangs.add("put")
    for _ in range(FAILURES_TO_OPEN + 1):
        task = asyncio.create_task(stage.engine.documents.put([DOCUMENT]))
        while not stage.documents.asked:
            await asyncio.sleep(0)
        stage.documents.asked.clear()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert stage.open_breakers() == []


def test_a_bounded_engine_is_an_engine() -> None:
    engine: Engine = BoundedEngine(MemoryEngine(), 1.0)
    assert engine.documents is engine.documents


class Far:
    """A shared server whose answers come when the test says so."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.ended = 0

    async def recall(self) -> str:
        try:
            await self.answers.wait()
        finally:
            self.ended += 1
        return "found"


@in_a_loop
async def test_a_request_does_not_use_up_the_time_of_a_call_to_a_shared_server() -> None:
    """FAULTS 100: the call has hours, and who made it has its answer all the same."""
    far = Far()
    bounds = Bounds(3600.0, answers_soon=True)
    part: Any = BoundedVault(lambda: far, bounds)
    async with asyncio.timeout(DEADLINE_SECONDS):
        for _ in range(FAILURES_TO_OPEN):
            with pytest.raises(StoreDown, match=r"does not answer within 0\.05 s"):
                await part.recall()
    assert bounds.trouble
    assert far.ended == 0, "the calls go on"
    far.answers.set()
    await until(lambda: far.ended == FAILURES_TO_OPEN)
    assert bounds.trouble, "a call of before closes nothing"

    async def check() -> None:
        pass

    await bounds.check(check)
    assert await part.recall() == "found"


@in_a_loop
async def test_a_call_that_comes_too_late_is_no_failure_in_a_row() -> None:
    """FAULTS 100: one that hangs is distinguished from one that is far away."""
    far = Far()
    bounds = Bounds(3600.0, answers_soon=True)
    part: Any = BoundedVault(lambda: far, bounds)
    for _ in range(2 * FAILURES_TO_OPEN):
        far.answers.clear()
        far.ended = 0
        with pytest.raises(StoreDown):
            await part.recall()
        far.answers.set()
        await until(lambda: far.ended)
        await asyncio.sleep(0)
        assert bounds.trouble == ""
    assert bounds.patience > SHORT_SECONDS, "the next request has more patience with it"


def test_requests_are_as_patient_as_a_shared_server_is_slow() -> None:
    """FAULTS 100"""
    bounds = Bounds(2.0, answers_soon=True)
    assert bounds.patience == SHORT_SECONDS
    bounds.learn(0.1)
    assert bounds.patience == pytest.approx(0.4)
    bounds.learn(100.0)
    assert bounds.patience == 2.0, "the setting is the maximum"
    for _ in range(100):
        bounds.learn(0.001)
    assert bounds.patience == SHORT_SECONDS


@in_a_loop
async def test_who_leaves_takes_a_call_to_a_shared_server_along() -> None:
    far = Far()
    part: Any = BoundedVault(lambda: far, Bounds(3600.0, answers_soon=True))
    task = asyncio.create_task(part.recall())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await until(lambda: far.ended == 1)


@in_a_loop
async def test_a_call_that_nobody_waits_for_ends_with_the_store() -> None:
    far: Any = Far()
    shared: Any = BoundedShared(Shared(MemoryCounters(), far), 3600.0, answers_soon=True)
    with pytest.raises(StoreDown):
        await shared.vault.recall()
    assert far.ended == 0
    await shared.counters.close()
    assert far.ended == 1
