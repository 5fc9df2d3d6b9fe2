"""What became of a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ran", "compared", "checked", "not run", "left out", "failed"]
"""not run: the page says why. left out: not in this tier, or not on this machine."""


@dataclass(frozen=True)
class Result:
    page: str
    line: int
    language: str
    state: State
    detail: str = ""
