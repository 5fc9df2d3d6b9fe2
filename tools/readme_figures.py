"""The README's figures: what an event and a request cost beside nginx and other gateways, and their picture.

Made of docs/figures/peers.json (`make bench-peers`), or else of bench.json (`make bench`).
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Final

from tools.bench import charts
from tools.bench.results import BASE, OURS, Results, read
from tools.bench.scenarios import BY_KEY, Scenario
from tools.bench.standing import Ratio
from tools.bench.tables import NONE, number
from tools.blocks import table

FIGURES: Final = Path(__file__).parents[1] / "docs" / "figures"
ROWS: Final = {
    "P-cc": "an event of a stream, forwarded",
    "DP-ac": "an event of a stream, translated",
    "A-cc": "a request of 2 KB, forwarded",
    "D-ac": "a request of 2 KB, translated",
}


def results() -> Results:
    peers = FIGURES / "peers.json"
    return read(peers if peers.exists() else FIGURES / "bench.json")


def block(found: Results) -> str:
    """A table, and where it was measured."""
    servers = found.servers()
    rows = [
        (title, *(_cost(found, BY_KEY[key], server) for server in servers)) for key, title in ROWS.items()
    ]
    rows.append(("memory, idle", *(_memory(found, server) for server in servers)))
    versions = found.setting.get("versions", {})
    heads = [f"{server} {versions[server]}" if server in versions else server for server in servers]
    return "\n\n".join([table(("processor time of", *heads), rows), _where(found)])


def chart(found: Results) -> str:
    """Every server in every row it was measured in; a thin line is the range of the rounds."""
    bars = []
    for key, title in ROWS.items():
        for server in found.servers():
            costs = [reading.cost for reading in found.readings(BY_KEY[key], server)]
            if costs:
                label = f"{title}: {server}"
                bars.append(
                    charts.Bar(label, median(costs), min(costs), max(costs), None, _color(found, server))
                )
    return charts.bars("Processor time, microseconds (logarithmic)", bars, logarithmic=True)


def _color(found: Results, server: str) -> int:
    """Ours the first, nginx grey, the others as they come."""
    others = [name for name in found.servers() if name not in (BASE, OURS)]
    return {OURS: 0, BASE: 1}.get(server, 2 + others.index(server) % 2 if server in others else 1)


def _cost(found: Results, scenario: Scenario, server: str) -> str:
    costs = [reading.cost for reading in found.readings(scenario, server)]
    if not costs:
        return NONE
    told = f"{number(median(costs))} µs"
    ratio = found.ratio(scenario, server)
    return f"{told} ({number(ratio.value)} times)" if server != BASE and isinstance(ratio, Ratio) else told


def _memory(found: Results, server: str) -> str:
    used = found.idle.get(server, {}).get("rss")
    return f"{used:.0f} MiB" if used else NONE


def _where(found: Results) -> str:
    told = found.setting
    return (
        f"One worker on one core of {told['processor'].replace('(R)', '')}, {told['day']}, with client keys, "
        f"ledger and log on; beside {BASE}, which forwards and does not translate. {_other(found)}"
    ).rstrip()


def _other(found: Results) -> str:
    others = [server for server in found.servers() if server not in (BASE, OURS)]
    return f"{' and '.join(others)}: as they come from the package index, one worker." if others else ""
