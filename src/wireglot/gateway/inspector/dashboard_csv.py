"""A dashboard as a table for spreadsheets: a line for each step of each group."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any, Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""A spreadsheet takes a text that begins so for something to run: names of models and keys are anybody's."""


def as_csv(told: dict[str, Any]) -> bytes:
    by = told["by"]
    columns = list(told["series"])
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(["time", by, *columns])
    groups = [(group["name"] or "(none)", group["series"]) for group in told["groups"]]
    lines = [("", told["series"]), *groups]
    for name, series in lines:
        for place, at in enumerate(told["times"]):
            time = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
            writer.writerow([time, plain(name), *(_number(series[column][place]) for column in columns)])
    return out.getvalue().encode()


def plain(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    cleaned = "".join(letter if letter.isprintable() else " " for letter in text)
    return f"'{cleaned}" if cleaned.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else cleaned


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if type(value) is int else f"{value:.6f}".rstrip("0").rstrip(".")
