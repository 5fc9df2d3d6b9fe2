"""`make live`: calls each vendor whose key is set, and reports where it differs from our scripted upstream.

Exit status 1: a scenario, a check of smoke or a case of the probe failed. Differences alone fail nothing: a
vendor may send more than we make up. Everything goes to .live/: recordings without secrets, and report.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from proofs.live.contact import MICRO, CostLimit, LiveRow, contact
from proofs.live.shapes import Difference
from proofs.live.vendors import MODELS, Unpriced, Vendor, vendor
from wireglot.probe.endpoint import UnusableEndpoint
from wireglot_core.providers.spec import provider

# Rows of a printed table: the file has all.
MAX_ROWS: Final = 60

_STEPS: Final = ("scenarios", "smoke", "probe")


def main(words: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    options = _parser().parse_args(words)
    try:
        vendors = _chosen(options, environ)
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        print(f"--out: {problem.strerror}: {options.out}", file=sys.stderr)
        return 2
    except (Unpriced, UnusableEndpoint, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 2
    if not vendors:
        print("No vendor's key is in the environment. Set one or more of:")
        for name in MODELS:
            print(f"  {' or '.join(provider(name).api_key_env):34} {name}")
        return 2
    limit = CostLimit(options.limit)
    rows: list[LiveRow] = []
    for number, each in enumerate(vendors):
        print(f"{each.name}, {each.model}: {', '.join(each.dialects)}", flush=True)
        part = limit.part(len(vendors) - number)
        for row in contact(each, part, options.out, steps=tuple(options.steps)):
            rows.append(row)
            words_of = f": {row.words}" if row.words else ""
            place = f"{row.dialect}, " if row.dialect else ""
            print(f"  {row.verdict:14} {place}{row.step}{words_of}", flush=True)
        limit.spent += part.spent
    table = differences_table(rows)
    report = options.out / "report.md"
    report.write_text(_report(rows, table, limit), encoding="utf-8")
    shown = table[:MAX_ROWS]
    print("\nDifferences between the vendor and the scripted upstream:\n\n" + "\n".join(_markdown(shown)))
    if len(table) > len(shown):
        print(f"\n{len(table) - len(shown)} more in {report}")
    money = f"{limit.spent / MICRO:.4f} of {limit.most / MICRO:.2f} USD"
    print(f"\n{_tally(rows)}; {money}; recordings: {options.out}")
    return 1 if any(row.verdict == "fail" for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make live", description="Call the vendors whose keys are set.")
    parser.add_argument(
        "--limit", type=_dollars, default=1.0, metavar="USD", help="limit of the cost of all calls"
    )
    parser.add_argument("--only", action="append", default=[], metavar="VENDOR", help="only this vendor")
    parser.add_argument(
        "--steps", nargs="+", choices=_STEPS, default=list(_STEPS), help="which parts are run; default: all"
    )
    parser.add_argument("--model", action="append", default=[], metavar="VENDOR=MODEL")
    parser.add_argument("--base-url", action="append", default=[], metavar="VENDOR=URL")
    parser.add_argument("--out", type=Path, default=Path(".live"), metavar="FOLDER")
    return parser


def _dollars(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
    if not 0 < amount <= 1_000:
        raise argparse.ArgumentTypeError(f"expected an amount between 0 and 1000, found {text!r}")
    return amount


def _pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not value or name not in MODELS:
            raise ValueError(
                f"{option}: expected VENDOR=..., with one of {', '.join(MODELS)}; found {text!r}"
            )
        pairs[name] = value
    return pairs


def _chosen(options: argparse.Namespace, environ: Mapping[str, str]) -> list[Vendor]:
    models, moved = _pairs("--model", options.model), _pairs("--base-url", options.base_url)
    for name in options.only:
        if name not in MODELS:
            raise ValueError(f"--only: expected one of {', '.join(MODELS)}; found {name!r}")
    found = (
        vendor(name, environ, model=models.get(name, ""), moved=moved.get(name, ""))
        for name in options.only or MODELS
    )
    chosen = [each for each in found if each is not None]
    for each in chosen:
        each.root(each.dialects[0])  # raises UnusableEndpoint
    return chosen


def differences_table(rows: Iterable[LiveRow]) -> list[tuple[str, str, Difference, int]]:
    """Vendor, dialect, difference, and in how many scenarios it was seen; what was seen most often first."""
    seen = Counter((row.vendor, row.dialect, each) for row in rows for each in row.differences)
    ordered = sorted(seen.items(), key=lambda item: (item[0][:2], -item[1], item[0][2]))
    return [(vendor, dialect, each, number) for (vendor, dialect, each), number in ordered]


def _markdown(table: Iterable[tuple[str, str, Difference, int]]) -> list[str]:
    lines = ["| vendor | dialect | place | vendor sends | we send | scenarios |", "|---|---|---|---|---|---|"]
    for name, dialect, each, number in table:
        theirs, ours = ", ".join(each.theirs) or "-", ", ".join(each.ours) or "-"
        cells = (name, dialect, f"`{each.place}`", theirs, ours, str(number))
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return lines


def _tally(rows: Iterable[LiveRow]) -> str:
    counts = Counter(row.verdict for row in rows)
    return ", ".join(f"{number} {verdict}" for verdict, number in counts.most_common())


def _report(rows: Sequence[LiveRow], table: list[tuple[str, str, Difference, int]], limit: CostLimit) -> str:
    lines = ["# First contact", "", f"{_tally(rows)}; {limit.spent / MICRO:.4f} USD.", "", "## Steps", ""]
    lines += ["| vendor | dialect | step | verdict | words |", "|---|---|---|---|---|"]
    for row in rows:
        cells = (row.vendor, row.dialect, row.step, row.verdict, row.words)
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    lines += ["", "## Differences from the scripted upstream", "", *_markdown(table), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
