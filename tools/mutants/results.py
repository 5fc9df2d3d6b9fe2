"""How many deliberate defects the tests of each package notice: the counts, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from tools.blocks import table
from tools.mutants.packages import PACKAGES, ROOT

_FILE = ROOT / "docs" / "results" / "mutants.json"


def add(package: str, seed: int, made: int, noticed: int) -> None:
    """Replace the counts of one sample of one package."""
    counts = _read()
    count = {"made": made, "noticed": noticed, "day": f"{datetime.now(UTC):%Y-%m-%d}"}
    samples = {**counts.get(package, {}), str(seed): count}
    counts[package] = dict(sorted(samples.items()))
    _FILE.write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n", encoding="utf-8")


def body() -> Iterator[str]:
    """The part of docs/reference/judges.md about our own tests."""
    counts = {package.name: _read().get(package.name, {}) for package in PACKAGES}
    yield "`make mutants` makes small defects in the code, one at a time: a comparison reversed, a constant"
    yield "changed, a statement removed. It runs the tests of the package and counts the defects that a test"
    yield "notices. A sample is random with a fixed seed; a defect without effect counts as not noticed."
    yield "Wording is left alone: sentences are for people, and most of them are in generated pages."
    yield ""
    yield table(
        ("package", "samples", "defects", "noticed", "share", "day"),
        [(f"`{name}`", *_cells(samples)) for name, samples in counts.items()],
    )


def _cells(samples: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    if not samples:
        return ("", "", "", "not measured", "")
    made = sum(sample["made"] for sample in samples.values())
    noticed = sum(sample["noticed"] for sample in samples.values())
    day = max(sample["day"] for sample in samples.values())
    return (str(len(samples)), str(made), str(noticed), f"{100 * noticed / made:.0f} %", day)


def _read() -> dict[str, Any]:
    if not _FILE.exists():
        return {}
    counts: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return counts
