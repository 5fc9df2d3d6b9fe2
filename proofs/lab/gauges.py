"""The gateway's own numbers, as `/metrics` tells them."""

from __future__ import annotations

import re
from typing import Final
from urllib.request import Request, urlopen

_SAMPLE: Final = re.compile(r"^(wireglot_\w+)(?:\{.*\})? ([\d.e+-]+)$", re.MULTILINE)

LEFTOVERS: Final = (
    "wireglot_requests_in_flight",
    "wireglot_requests_waiting",
    "wireglot_permits",
    "wireglot_tasks",
)
"""What must be as it was once all clients have gone."""


def gauges(port: int, headers: dict[str, str] | None = None) -> dict[str, float]:
    """By name; of those with labels the last."""
    request = Request(f"http://127.0.0.1:{port}/metrics", headers={"connection": "close", **(headers or {})})
    with urlopen(request, timeout=10) as answer:
        return {name: float(number) for name, number in _SAMPLE.findall(answer.read().decode())}
