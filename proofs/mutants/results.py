"""How many deliberate defects the tests of each package notice: the counts, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from proofs.mutants.packages import PACKAGES, ROOT
from tools.blocks import table

_FILE = ROOT / "docs" / "results" / "mutants.json"


def add(package: str, seed: int, made: int, noticed: int) -> None:
    """Replace the counts of one sample of one package."""
    counts = _read()
    now = datetime.now(UTC)
    count = {"made": made, "noticed": noticed, "day": f"{now:%Y-%m-%d}", "time": f"{now:%H:%M}"}
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
    yield "The newest sample is the figure for the tests as they are: the package had not had its seed"
    yield "before. The last column adds all samples, those of earlier versions of the code and the tests"
    yield "included: many defects that were not noticed then have a test by now, and still count as not"
    yield "noticed."
    yield ""
    yield table(
        ("package", "newest sample", "noticed", "day", "all samples"),
        [(f"`{name}`", *_cells(samples)) for name, samples in counts.items()],
    )


def _cells(samples: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    if not samples:
        return ("not measured", "", "", "")
    _, newest = max(samples.items(), key=lambda each: (each[1]["day"], each[1].get("time", ""), int(each[0])))
    made = sum(sample["made"] for sample in samples.values())
    noticed = sum(sample["noticed"] for sample in samples.values())
    return (
        f"{newest['noticed']} of {newest['made']}",
        _share(newest["noticed"], newest["made"]),
        newest["day"],
        f"{noticed} of {made} ({_share(noticed, made)}) in {len(samples)}",
    )


def _share(noticed: int, made: int) -> str:
    return f"{100 * noticed / made:.0f} %"


def _read() -> dict[str, Any]:
    if not _FILE.exists():
        return {}
    counts: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return counts
