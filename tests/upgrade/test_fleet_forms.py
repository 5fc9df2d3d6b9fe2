"""Two versions on one PostgreSQL and Redis: this tree's tables and keys are those of older ones.

`proofs.lab.rolling` has both versions run side by side; this compares what they leave in the servers.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from proofs.lab.fleet_forms import FleetForms
from proofs.lab.leave_behind import FLEET, leave_in_fleet
from tests.stores.servers import needs_own_postgres, needs_own_redis
from tests.upgrade.left_behind_kit import FIXTURES, RELEASED

_VAULT = "wireglot:v:"
pytestmark = [needs_own_postgres, needs_own_redis]


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> FleetForms:
    return asyncio.run(leave_in_fleet(tmp_path_factory.mktemp("fleet")))


_LATER_COLUMN = re.compile(r"revision|\b(?:purpose|agent|caller_group|client)\b|usage_sum")


@pytest.mark.parametrize("version", RELEASED)
def test_the_tables_in_postgresql_are_the_same(new: FleetForms, version: str) -> None:
    before = _read(version).postgres
    assert len(before) > 50
    # Older versions name the columns that they read and write, and leave out these.
    assert [line for line in new.postgres if not _LATER_COLUMN.search(line)] == before


@pytest.mark.parametrize("version", RELEASED)
def test_the_keys_in_redis_are_the_same(new: FleetForms, version: str) -> None:
    """The vault has more names than it had: those that older versions look under are among them. Limits are
    counted from a stored key's creation on, which stands in the names of its counters now; what is not there yet
    begins from the ledger, so that nothing spent is forgotten."""
    before = _read(version).redis
    assert {line.split(":")[1] for line in before} == {"budget", "cooling", "places", "rate", "v"}
    now = [re.sub(r"@0+(?=[: ])", "", line) for line in new.redis]
    assert [line for line in now if line in before or not line.startswith(_VAULT)] == before


def _read(version: str) -> FleetForms:
    path: Path = FIXTURES / version / FLEET
    return msgspec.json.decode(path.read_bytes(), type=FleetForms)
