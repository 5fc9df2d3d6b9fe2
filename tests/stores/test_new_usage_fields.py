"""A token count is declared in one place: one more line there, and every engine, sum, report and metric has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wireglot
import wireglot_core
from tests.stores.conftest import MEMORY, POSTGRES, SQLITE, Run
from wireglot.stores import open_engine
from wireglot.stores.journal.files import orphans
from wireglot.stores.records import UsageQuery, UsageRow

PROGRAM = Path(__file__).with_name("new_usage_fields.py")
BEFORE = "    output: Annotated["
DECLARED = '    audio: Annotated[int, Count("input", ("input",), heading="heard")] = 0\n'
AFTER = "    flags: tuple[str, ...] = ()\n"
FIELDS = """\
    region: str = "r"
    tier: Literal["slow", "fast"] = "slow"
    batched: bool = False
    tags: tuple[str, ...] = ()
    weight: int | None = None
"""


@pytest.fixture(scope="module")
def tomorrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with one more line for the count, and a few for fields of a row that are no counts."""
    root = tmp_path_factory.mktemp("tomorrow")
    for package in (wireglot, wireglot_core):
        (path,) = package.__path__
        shutil.copytree(path, root / package.__name__, ignore=shutil.ignore_patterns("__pycache__"))
    file = root / "wireglot_core" / "ir" / "usage.py"
    source = file.read_text()
    assert source.count(BEFORE) == 1
    file.write_text(source.replace(BEFORE, DECLARED + BEFORE))
    file = root / "wireglot" / "stores" / "records.py"
    source = file.read_text()
    assert source.count(AFTER) == 1
    file.write_text(source.replace(AFTER, AFTER + FIELDS))
    return root


@pytest.fixture(params=[MEMORY, SQLITE, POSTGRES])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    match request.param:
        case "memory":
            yield "memory:"
        case "sqlite":
            yield f"sqlite://{tmp_path}/store.db"
        case _:
            from tests.stores.servers import postgres_url

            yield postgres_url()


@pytest.mark.sampled
def test_a_count_that_is_declared_once_is_stored_summed_priced_and_reported(
    tomorrow: Path, url: str, tmp_path: Path, run: Run[Any]
) -> None:
    old = UsageRow("old", "alice", 1, "gone", session="s", outcome="ok", finished=2, output=3, cost=0)

    async def today() -> dict[str, UsageRow]:
        """As a process of today's version that is still running, or is started again."""
        engine = await open_engine(url)
        await engine.ledger.apply([old])
        rows = await engine.ledger.rows(UsageQuery(), limit=10)
        await engine.close()
        return {row.id: row for row in rows}

    assert run(today()) == {"old": old}
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), url, str(tmp_path / "journal")],
        env=os.environ | {"PYTHONPATH": str(tomorrow)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    reported = json.loads(ran.stdout)
    remembered = {} if url == "memory:" else {"old": 0}
    assert (reported["row"], reported["journal"]) == (7, [7])
    assert reported["rows"] == reported["copied"] == remembered | {"new": 7}
    before = {} if url == "memory:" else {"old": ["r", "slow", False, [], None]}
    assert reported["fields"] == before | {"new": ["a\\b", "fast", True, ["x", "y"], 3]}
    output = 2 if url == "memory:" else 5
    sums = {"input": 1, "cache_read": 0, "cache_write": 0, "audio": 7, "output": output, "reasoning": 0}
    assert reported["total"] == sums
    assert reported["spent"] == [8 + output, 8]
    assert reported["session"] == 8 + output
    assert reported["report"]["audio_tokens"] == 7
    assert reported["report"]["total_input_tokens"] == 8
    assert reported["report"]["total_tokens"] == 8 + output
    assert reported["table"][:5] == ["key", "requests", "input", "heard", "output"]
    assert reported["metrics"] == [
        'wireglot_tokens_total{provider="p",model="m",kind="audio"} 7',
        'wireglot_key_tokens_total{key="alice",kind="audio"} 7',
    ]
    assert reported["log"]["audio"] == 7
    assert reported["cost"] == 8

    # Both versions at once: today's reads what tomorrow's has written, in the store and in the journal.
    known = run(today())
    assert known["old"] == old
    if url != "memory:":
        assert (known["new"].input, known["new"].output, known["new"].cost) == (1, 2, 8)
    (orphan,) = orphans(tmp_path / "journal", "today")
    assert [(row.id, row.input) for rows in orphan.rows() for row in rows] == [("new", 1)]
    orphan.release()
