"""`wireglot usage`: R-DE-07, R-DE-12."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from wireglot.cli import main
from wireglot.cli.usage import chart_lines, table_lines
from wireglot.gateway.state.ledger.report import query_of, report
from wireglot.stores import open_engine
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import UsageRow
from wireglot.testing.live_gateway import LiveGateway

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()
HOUR = 3_600_000


def row(number: int, hours_ago: int, **more: Any) -> UsageRow:
    started = int(NOW * 1000) - hours_ago * HOUR
    usual: dict[str, Any] = {
        "id": f"r{number}",
        "started": started,
        "caller": "alice",
        "provider": "anthropic",
        "upstream_model": "claude-opus-4-5",
        "outcome": "ok",
        "finished": started + 1500 + number,
        "input": 1000 * number,
        "output": 200 * number,
        "cost": 10_000 * number,
    }
    return UsageRow(**(usual | more))


ROWS = [
    row(1, 1),
    row(2, 2, cache_read=12_345, reasoning=77),
    row(3, 26, outcome="error", input=0, output=0, cost=None),
    row(4, 30, caller="bob", provider="kimi", upstream_model="kimi-k3", cost=None),
    row(5, 98, caller="bob", cost=12),
    row(6, 3, outcome="", finished=0, input=0, output=0, cost=None),
]

TABLE = """\
day         model            requests  failed   input  cached  output  reasoning  p50 ms  cost USD
2026-11-11  claude-opus-4-5         1       0   5,000       0   1,000          0   1,505   <0.0001
2026-11-14  claude-opus-4-5         1       1       0       0       0          0   1,503    0.0000
2026-11-14  kimi-k3                 1       0   4,000       0     800          0   1,504  unpriced
2026-11-15  claude-opus-4-5         3       0   3,000  12,345     600         77   1,501    0.0300
total                               6       1  12,000  12,345   2,400         77   1,503   0.0300+

1 request of models without a known price: see [prices] in the configuration
1 request not finished yet
"""

CHART = """\
tokens per day
2026-11-11  ████████████████████▏                                    6,000
2026-11-12                                                               0
2026-11-13                                                               0
2026-11-14  ████████████████▏                                        4,800
2026-11-15  ██████████████████████████████████████████████████████  16,022
"""


def reported(rows: Sequence[UsageRow] = ROWS, **asked: str) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        engine = MemoryEngine()
        await engine.ledger.apply(rows)
        return await report(engine.ledger, query_of(asked, NOW), "USD")

    return asyncio.run(work())


def stream(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


def text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_the_table_is_aligned_and_has_totals() -> None:
    assert text(table_lines(reported(), stream("utf-8"))) == TABLE


def test_a_mean_duration_is_rounded() -> None:
    ended = [row(1, 1), row(2, 1), row(2, 1, id="r3")]
    assert reported(ended)["total"]["mean_ms"] == round((1501 + 1502 + 1502) / 3) == 1502


def test_groups_are_in_the_order_that_was_asked_for() -> None:
    lines = table_lines(reported(group_by="key,provider"), stream("utf-8"))
    assert [line.split()[:2] for line in lines[:4]] == [
        ["key", "provider"],
        ["alice", "anthropic"],
        ["bob", "anthropic"],
        ["bob", "kimi"],
    ]


def test_no_usage_is_said() -> None:
    assert table_lines(reported(key="nobody"), stream("utf-8")) == ["no usage"]
    assert chart_lines(reported(key="nobody", group_by="day"), stream("utf-8")) == []


def test_the_chart_is_as_wide_as_the_terminal_and_shows_days_without_usage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "74")
    assert text(chart_lines(reported(group_by="day"), stream("utf-8"))) == CHART


def test_a_terminal_without_blocks_gets_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = chart_lines(reported(group_by="day"), stream("ascii"))
    assert lines[-1] == "2026-11-15  ####################  16,022"
    assert lines[1] == "2026-11-11  #######                6,000"
    assert all(line.isascii() for line in lines)


def test_names_of_clients_cannot_draw_on_the_terminal() -> None:
    async def work() -> dict[str, Any]:
        engine = MemoryEngine()
        await engine.ledger.apply([row(1, 1, session="\x1b[31mred\nline")])
        return await report(engine.ledger, query_of({"group_by": "session"}, NOW), "USD")

    assert "\x1b" not in text(table_lines(asyncio.run(work()), stream("utf-8")))


def _configured(folder: Path) -> tuple[str, ...]:
    path = folder / "wireglot.toml"
    path.write_text('[store]\nurl = "sqlite:usage.db"\n')

    async def work() -> None:
        engine = await open_engine(f"sqlite://{folder / 'usage.db'}")
        await engine.ledger.apply(ROWS)
        await engine.close()

    asyncio.run(work())
    return "usage", "--config", str(path), "--since", "2026-11-01", "--until", "2026-11-15"


def test_the_store_of_a_configuration_is_read(tmp_path: Path) -> None:
    asked = _configured(tmp_path)
    done = run(*asked)
    assert done.returncode == 0
    assert done.stderr.decode().startswith("wireglot: no running gateway found, using the store ")
    assert done.stdout.decode() == TABLE, "no chart and no colour where nobody looks"
    charted = run(*asked, "--by", "day", "--chart")
    assert "tokens per day" in charted.stdout.decode()
    document = json.loads(run(*asked, "--json", "--key", "bob", "--by", "model").stdout)
    assert document["group_by"] == ["model"]
    assert document["total"]["requests"] == 2


def test_a_wrong_option_is_named(tmp_path: Path) -> None:
    asked = _configured(tmp_path)
    for option, value in (("--by", "colour"), ("--since", "once"), ("--until", "later")):
        done = run(*asked, option, value)
        assert done.returncode == 2
        assert done.stderr.decode().startswith(f"wireglot: {option}: ")
    done = run("usage", "--url", "gopher://x")
    assert (done.returncode, done.stderr.decode()) == (
        2,
        "wireglot: --url: expected http://HOST:PORT, got 'gopher://x'\n",
    )
    done = run("usage", "--url", "http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith("wireglot: http://127.0.0.1:1: connection refused")


def test_a_running_gateway_is_asked_and_its_store_can_be_read_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.gateway.state.usage_kit import ask

    toml = '[server]\nadmin_secret = "admin-secret-0123456789"\n[store]\nurl = "sqlite:usage.db"\n[providers.demo]\n'
    with LiveGateway(toml, folder=tmp_path) as gateway:
        ask(gateway, "openai-chat", "demo", False)
        there = run("usage", "--url", gateway.url, "--by", "model")
        assert (there.returncode, there.stderr) == (0, b"")
        assert there.stdout.decode().splitlines()[1].split()[:2] == ["demo", "1"]
        here = run("usage", "--config", str(tmp_path / "wireglot.toml"), "--by", "model")
        assert here.stdout == there.stdout
        monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", "admin-secret-0123456789")
        done = run("usage", "--url", gateway.url, "--admin", "--by", "key", "--json")
        assert json.loads(done.stdout)["data"][0]["key"] == "local"
        monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", "no")
        wrong = run("usage", "--url", gateway.url, "--admin")
        assert (wrong.returncode, b"rejects the key" in wrong.stderr) == (1, True)


def test_only_the_admin_secret_shows_the_usage_of_another_key(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --admin a gateway would tell of the caller's own usage, as if it were that key's."""
    assert main(["usage", "--url", "http://127.0.0.1:9", "--api-key", "wg-mine", "--key", "other"]) == 2
    assert capsys.readouterr().err == "wireglot: --key: --admin is required to see the usage of other keys\n"
