"""The README's badges, and its figures: what events and requests cost, compared with other servers.

Made of docs/figures/peers.json (`make bench-peers`), or else of bench.json (`make bench`).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from statistics import median
from typing import Final

from tools.bench.results import BASE, OURS, Results, read
from tools.bench.scenarios import BY_KEY, Scenario
from tools.bench.standing import Ratio
from tools.bench.tables import NONE, number
from tools.blocks import table

ROOT: Final = Path(__file__).parents[1]
FIGURES: Final = ROOT / "docs" / "figures"
ROWS: Final = {
    "P-cc": "an event of a stream, forwarded",
    "DP-ac": "an event of a stream, translated",
    "A-cc": "a request of 2 KB, forwarded",
    "D-ac": "a request of 2 KB, translated",
}


def badges() -> dict[str, str]:
    """File names and pictures, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    values = {
        "version": project["version"],
        "python": f"{project['requires-python'].removeprefix('>=')}+",
        "licence": project["license"],
    }
    return {f"{label}.svg": _badge(label, value) for label, value in values.items()}


def _badge(label: str, value: str) -> str:
    """The usual shape: a grey label, a blue value."""
    left, right = 10 + 7 * len(label), 10 + 7 * len(value)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">\n'
        f"<title>{label}: {value}</title>\n"
        "<style>text { font: 11px system-ui, sans-serif; fill: #fff; text-anchor: middle }</style>\n"
        f'<rect width="{left + right}" height="20" rx="3" fill="#0969da"/>\n'
        f'<path d="M3 0h{left - 3}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#555"/>\n'
        f'<text x="{left / 2}" y="14">{label}</text>\n'
        f'<text x="{left + right / 2}" y="14">{value}</text>\n'
        "</svg>\n"
    )


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
    return "\n\n".join([table(("processor time", *heads), rows), _where(found)])


def _cost(found: Results, scenario: Scenario, server: str) -> str:
    costs = [reading.cost for reading in found.readings(scenario, server)]
    if not costs:
        return NONE
    text = f"{number(median(costs))} µs"
    ratio = found.ratio(scenario, server)
    return f"{text} ({number(ratio.value)} times)" if server != BASE and isinstance(ratio, Ratio) else text


def _memory(found: Results, server: str) -> str:
    used = found.idle.get(server, {}).get("rss")
    return f"{used:.0f} MiB" if used else NONE


def _where(found: Results) -> str:
    processor, day = found.setting["processor"].replace("(R)", ""), found.setting["day"]
    return (
        f"One worker on one core of {processor}, {day}, with client keys, "
        f"ledger and log on, compared with {BASE}, which forwards without translating. {_other(found)}"
    ).rstrip()


def _other(found: Results) -> str:
    others = [server for server in found.servers() if server not in (BASE, OURS)]
    return f"{', '.join(others)}: as installed from the package index, one worker." if others else ""
