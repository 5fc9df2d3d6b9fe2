"""What the pools of PostgreSQL and Redis do when a connection fails, without any server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest
from redis import exceptions as faults

from tests.tiers import rows
from wireglot.stores.base import StoreDown, StoreUnusable
from wireglot.stores.postgres import pool as postgres
from wireglot.stores.postgres.address import read_address as postgres_address
from wireglot.stores.records import Budget, Denied, Rate
from wireglot.stores.redis import counters, pool
from wireglot.stores.redis.address import read_address as redis_address
from wireglot.stores.redis.counters import RedisCounters, RedisVault
from wireglot.stores.redis.log import _entries

# --- PostgreSQL


def fault(state: str, text: str = "secret host") -> asyncpg.PostgresError:
    found = asyncpg.PostgresError(text)
    found.sqlstate = state
    return found


STATES = {
    "25006": "it is read-only",
    "28P01": "it refuses the user or the password",
    "3D000": "there is no such database",
    "40001": "other writers were always in the way",
    "42704": "it does not know an option of the URL",
    "42501": "the user lacks a right",
    "53100": "its disk is full",
    "53200": "it is out of memory",
    "53300": "it has too many connections",
    "57014": "it does not answer in time",
    "57P03": "it is starting or stopping",
    "08006": "the connection was lost",
    "XX000": "it refused the request (XX000)",
}


@rows("state", STATES)
def test_what_postgresql_says_is_said_in_our_own_words(state: str) -> None:
    down = postgres.down(fault(state))
    assert (type(down), str(down)) == (StoreDown, f"PostgreSQL: {STATES[state]}")
    at_open = postgres.down(fault(state), at_open=True)
    if state[:2] == "28" or state in ("3D000", "42501", "42704"):
        assert type(at_open) is StoreUnusable
        assert str(at_open) == f"store.url: PostgreSQL cannot be used: {STATES[state]}"
    else:
        assert type(at_open) is StoreDown


PROBLEMS: list[tuple[BaseException, bool, type, str]] = [
    (TimeoutError(), False, StoreDown, "PostgreSQL does not answer in time"),
    (ConnectionRefusedError(), True, StoreDown, "PostgreSQL cannot be reached"),
    (asyncpg.InterfaceError("x"), True, StoreDown, "PostgreSQL: the connection was lost"),
    (
        asyncpg.TargetServerAttributeNotMatched("x"),
        False,
        StoreDown,
        "PostgreSQL: none of the hosts takes writes",
    ),
    (
        ConnectionError("PostgreSQL server at x rejected SSL upgrade"),
        True,
        StoreUnusable,
        "store.url: PostgreSQL: it does not speak TLS, and sslmode asks for it",
    ),
    (
        ConnectionError("rejected SSL upgrade"),
        False,
        StoreDown,
        "PostgreSQL: it does not speak TLS, and sslmode asks for it",
    ),
    (
        fault("08P01", "unsupported startup parameter: jit"),
        True,
        StoreUnusable,
        "store.url: what answers is PgBouncer: add pooler=transaction to the URL",
    ),
    (fault("08P01", "other"), True, StoreDown, "PostgreSQL: the connection was lost"),
    (
        fault("08P01", "unsupported startup parameter: jit"),
        False,
        StoreDown,
        "PostgreSQL: the connection was lost",
    ),
]


@rows(("problem", "at_open", "kind", "words"), PROBLEMS)
def test_what_is_wrong_with_a_server_is_one_line(
    problem: BaseException, at_open: bool, kind: type, words: str
) -> None:
    found = postgres.down(problem, at_open=at_open)
    assert (type(found), str(found)) == (kind, words)


JUDGED: list[tuple[BaseException, bool, bool, bool]] = [
    # the problem, whether it is ours, whether the connection is lost, whether another try helps
    *((fault(state), False, True, True) for state in ("08000", "57P01", "57P02", "57P03", "25006")),
    *((fault(state), False, False, True) for state in ("40001", "40P01", "53300", "55P03", "0A000")),
    (fault("23505"), False, False, False),
    (fault("22003"), True, False, False),
    (OSError(), False, True, True),
    (TimeoutError(), False, False, False),
    (asyncpg.InterfaceError("x"), False, True, True),
    (ValueError(), True, True, True),
    (ssl.SSLCertVerificationError(), False, True, False),
]


@rows(("problem", "ours", "lost", "again"), JUDGED)
def test_a_problem_is_tried_again_where_that_may_help(
    problem: BaseException, ours: bool, lost: bool, again: bool
) -> None:
    assert postgres._is_ours(problem) is ours
    assert postgres._is_lost(problem) is lost
    assert postgres._worth_another(problem) is again


class Driver:
    """The driver's pool, and its only connection."""

    def __init__(self) -> None:
        self.steps: list[Any] = []

    async def acquire(self, timeout: float) -> Driver:
        self.steps.append(("acquire", timeout))
        return self

    async def release(self, connection: Any, timeout: float) -> None:
        self.steps.append("release")
        raise OSError("it is gone")

    async def expire_connections(self) -> None:
        self.steps.append("expire")

    def terminate(self) -> None:
        self.steps.append("terminate")

    def transaction(self) -> Driver:
        return self

    async def start(self) -> None:
        self.steps.append("start")

    async def commit(self) -> None:
        self.steps.append("commit")

    async def rollback(self) -> None:
        self.steps.append("rollback")

    async def execute(self, query: str, *values: Any, timeout: float | None = None) -> str:
        self.steps.append(query)
        return "UPDATE 3"


def made(url: str = "postgresql://h/d") -> tuple[postgres.PostgresPool, Driver]:
    driver = Driver()
    return postgres.PostgresPool(driver, 5.0, postgres_address(url)), driver


def failing(*problems: BaseException | None) -> Callable[[Any, int], Awaitable[str]]:
    left = list(problems)

    async def work(connection: Any, turn: int) -> str:
        problem = left.pop(0)
        if problem is not None:
            raise problem
        return f"turn {turn}"

    return work


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What was waited between tries, in the middle of its range."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(round(seconds, 3))

    monkeypatch.setattr(postgres.asyncio, "sleep", sleep)  # type: ignore[attr-defined]  # as the module uses it
    monkeypatch.setattr(postgres.random, "uniform", lambda low, high: (low + high) / 2)  # type: ignore[attr-defined]  # likewise
    return found


def test_work_is_tried_four_times_where_that_may_help(waits: list[float]) -> None:
    one, driver = made()
    assert asyncio.run(one.run(failing(OSError(), fault("40001"), None))) == "turn 2"
    assert waits == [0.02, 0.1]
    assert driver.steps.count("expire") == 1, "after the lost connection"
    assert driver.steps.count("terminate") == 1
    assert driver.steps.count("release") == 3
    waits.clear()
    with pytest.raises(StoreDown, match="cannot be reached"):
        asyncio.run(made()[0].run(failing(*[OSError()] * 4)))
    assert waits == [0.02, 0.1, 0.3]
    assert postgres.TRIES == 4


def test_work_is_not_tried_again_where_that_would_not_help(waits: list[float]) -> None:
    for problem, kind in (
        (TimeoutError(), StoreDown),
        (fault("23505"), StoreDown),
        (fault("22003"), asyncpg.PostgresError),
    ):
        with pytest.raises(kind):
            asyncio.run(made()[0].run(failing(problem)))
    assert waits == []


def test_behind_a_pooler_each_piece_of_work_is_a_transaction(waits: list[float]) -> None:
    one, driver = made("postgresql://h/d?pooler=transaction&schema=mine")
    asyncio.run(one.run(failing(None)))
    assert driver.steps == [
        ("acquire", 5.0),
        "start",
        'SET LOCAL search_path = "mine"',
        "commit",
        "release",
    ]
    for problem, ends in (
        (fault("23505"), ["rollback", "release"]),
        (TimeoutError(), ["terminate", "release"]),
    ):
        one, driver = made("postgresql://h/d?pooler=transaction")
        with pytest.raises(StoreDown):
            asyncio.run(one.run(failing(problem)))
        assert driver.steps[-2:] == ends


def test_rows_that_were_touched_are_counted() -> None:
    assert [postgres.touched(status) for status in ("UPDATE 3", "INSERT 0 12", "DELETE 0")] == [3, 12, 0]
    one, driver = made()
    assert asyncio.run(one.execute("UPDATE x", 5)) == 3
    assert driver.steps[1] == "UPDATE x"


# --- Redis

REASONS: list[tuple[faults.RedisError, str]] = [
    (faults.TimeoutError(), "does not answer in time"),
    (faults.BusyLoadingError(), "is starting"),
    (faults.AuthenticationError(), "refuses the user or the password"),
    (faults.AuthorizationError(), "refuses the user or the password"),
    (faults.ConnectionError(), "cannot be reached"),
    (faults.NoPermissionError(), "does not let the user do this"),
    (faults.ReadOnlyError(), "is read-only"),
    (faults.OutOfMemoryError(), "is out of memory"),
    (faults.ResponseError("WRONGTYPE of secret"), "refused the request (WRONGTYPE)"),
    (faults.ResponseError("secret host"), "refused the request"),
    (faults.ResponseError("ERR1 x"), "refused the request"),
]


@rows(("problem", "words"), REASONS)
def test_what_redis_says_is_said_in_our_own_words(problem: faults.RedisError, words: str) -> None:
    assert pool._reason(problem) == words


class Client:
    """Redis, as far as it is called: answers in their order."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.disconnected: list[bool] = []

    async def disconnect(self, inuse_connections: bool) -> None:
        self.disconnected.append(inuse_connections)

    async def work(self) -> Any:
        return await self._answer("work")

    async def _answer(self, *given: Any) -> Any:
        self.asked.append(given)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def evalsha(self, *given: Any) -> Any:
        return await self._answer("evalsha", *given)

    async def eval(self, *given: Any) -> Any:
        return await self._answer("eval", *given)

    async def mget(self, names: list[str]) -> Any:
        return await self._answer("mget", names)

    async def set(self, *given: Any, **options: Any) -> Any:
        return await self._answer("set", *given, options)

    async def ping(self) -> Any:
        return await self._answer("ping")

    async def info(self, part: str) -> Any:
        return await self._answer("info", part)

    async def execute_command(self, *given: Any) -> Any:
        return await self._answer(*given)


def pooled(client: Client) -> pool.RedisPool:
    found = pool.RedisPool(redis_address("redis://h"), connect_seconds=1.0, call_seconds=1.0)
    anything: Any = client
    found.client = found._pool = anything
    return found


@rows(
    ("answers", "again", "outcome"),
    [
        (["ok"], True, "ok"),
        ([faults.ConnectionError(), "ok"], True, "ok"),
        ([faults.ConnectionError()], False, "Redis cannot be reached"),
        ([faults.ConnectionError(), faults.ConnectionError()], True, "Redis cannot be reached"),
        ([faults.TimeoutError()], True, "Redis does not answer in time"),
        ([faults.BusyLoadingError()], True, "Redis is starting"),
        ([faults.AuthenticationError()], True, "Redis refuses the user or the password"),
        ([faults.ReadOnlyError(), "ok"], False, "ok"),
        ([faults.ReadOnlyError(), faults.ReadOnlyError()], True, "Redis is read-only"),
        ([OSError()], True, "Redis cannot be reached"),
    ],
)
def test_a_lost_connection_to_redis_is_replaced_where_that_does_no_harm(
    answers: list[Any], again: bool, outcome: str
) -> None:
    client = Client(*answers)

    async def test() -> str:
        try:
            return str(await pooled(client).run(client.work, again=again))
        except StoreDown as down:
            return str(down)

    assert asyncio.run(test()) == outcome
    assert client.answers == []
    assert client.disconnected == ([False] if isinstance(answers[0], faults.ReadOnlyError) else [])


def test_a_script_is_sent_whole_where_the_server_does_not_know_it() -> None:
    script = pool.RedisScript("return 1")
    client = Client(faults.NoScriptError(), 7)
    assert asyncio.run(pooled(client).script(script, ["k"], [1, "v"])) == 7
    assert client.asked == [("evalsha", script.digest, 1, "k", 1, "v"), ("eval", "return 1", 1, "k", 1, "v")]


def test_a_connection_has_its_options() -> None:
    plain = pool.connection_options(tls=None, connect_seconds=2.0, call_seconds=3.0)
    assert (plain["socket_connect_timeout"], plain["socket_timeout"]) == (2.0, 3.0)
    assert (plain["socket_keepalive"], plain["encoding_errors"], plain["protocol"]) == (
        True,
        "surrogatepass",
        2,
    )
    assert plain["connection_class"] is pool.RedisConnection
    assert plain["retry"]._retries == 0
    asking = pool.Sentinels(
        redis_address("redis+sentinel://a:1/mine?sentinel_username=u&sentinel_password=p"), seconds=1.5
    )
    given = asking._clients[0].connection_pool.connection_kwargs
    assert (given["host"], given["port"], given["username"], given["password"]) == ("a", 1, "u", "p")
    assert (given["socket_connect_timeout"], given["socket_timeout"]) == (1.5, 1.5)
    coded = pool.connection_options(tls=ssl.create_default_context(), connect_seconds=2.0, call_seconds=3.0)
    assert coded["socket_connect_timeout"] == 8.0


def sentinels(*answers: Any) -> tuple[pool.Sentinels, list[Client]]:
    made = pool.Sentinels(redis_address("redis+sentinel://a,b,c/mine"), seconds=1.0)
    clients = [Client(answer) for answer in answers]
    made._clients = clients  # type: ignore[assignment]  # as far as they are called
    return made, clients


@rows(
    ("answers", "found"),
    [
        ([(b"h", b"7"), None, None], ("h", 7)),
        ([faults.ConnectionError(), ("h", 7), None], ("h", 7)),
        ([OSError(), None, [b"h", b"7"]], ("h", 7)),
    ],
)
def test_the_first_sentinel_that_knows_the_primary_is_believed(
    answers: list[Any], found: tuple[str, int]
) -> None:
    made, clients = sentinels(*answers)
    assert asyncio.run(made.primary()) == found
    assert clients[0].asked == [("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine")]


@rows(
    ("answers", "kind", "words"),
    [
        ([None, None, None], StoreUnusable, "know no primary of this name"),
        (
            [None, faults.AuthenticationError(), OSError()],
            StoreUnusable,
            "want another password, or are no Sentinels",
        ),
        ([None, faults.ResponseError(), None], StoreUnusable, "want another password, or are no Sentinels"),
        ([None, OSError(), None], StoreDown, "no Sentinel can be reached that names a primary"),
    ],
)
def test_why_no_sentinel_names_a_primary(answers: list[Any], kind: type[Exception], words: str) -> None:
    made, _ = sentinels(*answers)
    with pytest.raises(kind, match=words):
        asyncio.run(made.meet())


def counting(client: Client) -> RedisCounters:
    shared = pooled(client)
    return RedisCounters(shared, "p:", RedisVault(shared, "p:"))


def test_claims_are_sent_with_their_kinds_and_milliseconds() -> None:
    client = Client([b"2", b"1500"], None)
    claims: list[Rate | Budget] = [Rate("r", 1, 10, 60), Budget("b", 5, 100, 9_000)]
    made = counting(client)
    assert asyncio.run(made.take(claims)) == Denied("b", 1.5)
    assert asyncio.run(made.take(claims)) is None
    assert client.asked[0][2:] == (
        2,
        "p:rate:r",
        "p:budget:b",
        "rate",
        1,
        10,
        60_000,
        "budget",
        5,
        100,
        9_000,
    )
    assert asyncio.run(made.take([])) is None
    asyncio.run(made.settle([]))
    assert asyncio.run(made.known([])) == {}
    assert len(client.asked) == 2, "nothing is asked about nothing"


def test_what_is_known_of_budgets_is_a_number() -> None:
    client = Client([b"7", None], True)
    made = counting(client)
    assert asyncio.run(made.known(["a", "b"])) == {"a": 7}
    asyncio.run(made.seed("a", 5, 0))
    assert client.asked == [
        ("mget", ["p:budget:a", "p:budget:b"]),
        ("set", "p:budget:a", 5, {"nx": True, "pxat": 1}),
    ]


def test_places_locks_and_rests_are_named_and_in_milliseconds() -> None:
    client = Client(1, 0, 1, [b"x", b"250"], None)
    made = counting(client)
    assert asyncio.run(made.enter("n", "me", 3, 1.5)) is True
    assert asyncio.run(made.lock("n", "me", 0.0001)) is False
    assert asyncio.run(made.lock("n", "me", 2.0001)) is True
    assert asyncio.run(made.cooling()) == {"x": 0.25}
    asyncio.run(made.cool({"x": 0.5}))
    asyncio.run(made.cool({}))
    assert [each[2:] for each in client.asked] == [
        (1, "p:places:n", "me", 3, 1500.0),
        (1, "p:lock:n", "me", 1),
        (1, "p:lock:n", "me", 2001),
        (1, "p:cooling:"),
        (1, "p:cooling:", "x", 500.0),
    ]


@rows(
    ("reported", "outcome"),
    [
        ({"redis_version": "6.2.1"}, ""),
        ({"redis_version": "7.4"}, ""),
        ({"redis_version": "6.0.9"}, "Redis 6.2 or newer is needed"),
        ({"redis_version": "5"}, "Redis 6.2 or newer is needed"),
        ({}, ""),
        ({"redis_version": "7.0.0", "redis_mode": "cluster"}, "a Redis Cluster is not supported"),
        (faults.ResponseError("no"), ""),
    ],
)
def test_an_old_redis_and_a_cluster_are_refused(reported: Any, outcome: str) -> None:
    shared = pooled(Client(True, reported))
    if outcome:
        with pytest.raises(StoreUnusable, match=f"store.shared: {outcome}"):
            asyncio.run(counters._meet(shared))
    else:
        asyncio.run(counters._meet(shared))
    refused = pooled(Client(faults.AuthenticationError()))
    with pytest.raises(StoreUnusable, match=r"store\.shared: Redis refuses the user or the password"):
        asyncio.run(counters._meet(refused))


def test_a_vault_names_its_values_by_their_owner() -> None:
    client = Client([b"1", None])
    vault = RedisVault(pooled(client), "p:")
    assert asyncio.run(vault.recall("me", ["a", "b"])) == {"a": b"1"}
    ((_, names),) = client.asked
    assert [name.rpartition(":")[2] for name in names] == ["a", "b"]
    assert names[0].startswith("p:v:")
    assert len(names[0]) == len("p:v:") + 32 + len(":a")
    assert asyncio.run(vault.recall("me", [])) == {}
    asyncio.run(vault.keep("me", {}, 5))
    assert vault._start("me") != vault._start("you")


def test_entries_of_a_log_have_their_place_and_moment() -> None:
    found = _entries([(b"1700000000123-4", {b"body": b"x"}), (b"5-0", {})])
    assert [tuple(getattr(each, name) for name in each.__struct_fields__) for each in found] == [
        ("1700000000123-4", 1700000000123, b"x"),
        ("5-0", 5, b""),
    ]
