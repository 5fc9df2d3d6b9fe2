"""The README's badges, and its one sentence of figures: what events and requests cost.

Made of docs/figures/peers.json (`make bench-peers`), or else of bench.json (`make bench`).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from statistics import median
from typing import Final

from proofs.bench.results import BASE, OURS, Results, read
from proofs.bench.scenarios import BY_KEY, Scenario
from proofs.bench.tables import number

ROOT: Final = Path(__file__).parents[1]
FIGURES: Final = ROOT / "docs" / "figures"
_FORWARDED: Final = ("A-cc", "P-cc")
_TRANSLATED: Final = ("D-ac", "DP-ac")
"""A request of 2 KB, and an event of a stream."""


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


def sentence(found: Results) -> str:
    """What one core does, beside a server that only forwards, and where it was measured."""
    forwarded, translated = (
        [_cost(found, BY_KEY[key], OURS) for key in keys] for keys in (_FORWARDED, _TRANSLATED)
    )
    processor, day = found.setting["processor"].replace("(R)", ""), found.setting["day"]
    return (
        f"On one core of {processor} ({day}), with client keys, ledger and log on, a request of 2 KB takes "
        f"{forwarded[0]} of processor time forwarded and {translated[0]} translated, an event of a stream "
        f"{forwarded[1]} and {translated[1]} ({BASE}, which only forwards: "
        f"{_cost(found, BY_KEY[_FORWARDED[0]], BASE)} and {_cost(found, BY_KEY[_FORWARDED[1]], BASE)}); "
        f"idle it uses {found.idle[OURS]['rss']:.0f} MiB."
    )


def _cost(found: Results, scenario: Scenario, server: str) -> str:
    return f"{number(median(reading.cost for reading in found.readings(scenario, server)))} µs"
