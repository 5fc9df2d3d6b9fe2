"""Fresh stores of every kind. A test that asks for one runs once for each kind; those whose server is not here
are skipped. All run on one event loop of the test's own: `run(engine.check())`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from wireglot.stores.base import Counters, Documents, Engine, Vault
from wireglot.stores.memory import MemoryCounters, MemoryEngine
from wireglot.stores.sqlite import SqliteCounters, SqliteEngine

try:
    from tests.stores import servers
except ImportError:  # the fleet's clients are not installed
    HAVE_POSTGRES = HAVE_REDIS = CAN_START_PGBOUNCER = False
else:
    HAVE_POSTGRES, HAVE_REDIS = servers.HAVE_POSTGRES, servers.HAVE_REDIS
    CAN_START_PGBOUNCER = servers.CAN_START_PGBOUNCER

T = TypeVar("T")

MEMORY = pytest.param("memory", id="memory")
SQLITE = pytest.param("sqlite", id="sqlite")
POSTGRES = pytest.param(
    "postgres",
    id="postgres",
    marks=pytest.mark.skipif(not HAVE_POSTGRES, reason="no PostgreSQL here: make test-fleet"),
)
POOLED = pytest.param(
    "pgbouncer",
    id="pgbouncer",
    marks=pytest.mark.skipif(not CAN_START_PGBOUNCER, reason="no PgBouncer here: make test-fleet"),
)
REDIS = pytest.param(
    "redis", id="redis", marks=pytest.mark.skipif(not HAVE_REDIS, reason="no Redis here: make test-fleet")
)

Run = Callable[[Coroutine[Any, Any, T]], T]


@pytest.fixture
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(params=[MEMORY, SQLITE, POSTGRES, POOLED])
def engine(request: pytest.FixtureRequest, run: Run[Any], tmp_path) -> Iterator[Engine]:
    opened = run(open_engine(request.param, tmp_path))
    yield opened
    run(opened.close())


@pytest.fixture
def documents(engine: Engine) -> Documents:
    return engine.documents


@pytest.fixture(params=[MEMORY, SQLITE, REDIS])
def counters(request: pytest.FixtureRequest, run: Run[Any], tmp_path) -> Iterator[Counters]:
    opened = run(open_counters(request.param, tmp_path))
    yield opened
    run(opened.close())


@pytest.fixture(params=[MEMORY, SQLITE, POSTGRES, REDIS])
def vault(request: pytest.FixtureRequest, run: Run[Any], tmp_path) -> Iterator[Vault]:
    if request.param == "redis":
        counters, opened = run(servers.redis_counters())
        yield opened
        run(counters.close())
    else:
        engine = run(open_engine(request.param, tmp_path))
        yield engine.vault
        run(engine.close())


async def open_engine(kind: str, tmp_path) -> Engine:
    match kind:
        case "memory":
            return MemoryEngine()
        case "sqlite":
            return await SqliteEngine.open(str(tmp_path / "store.db"))
        case "pgbouncer":
            return await servers.pooled_engine()
    return await servers.postgres_engine()


async def open_counters(kind: str, tmp_path) -> Counters:
    match kind:
        case "memory":
            return MemoryCounters()
        case "sqlite":
            return await SqliteCounters.open(str(tmp_path / "counters.db"))
    return (await servers.redis_counters())[0]
