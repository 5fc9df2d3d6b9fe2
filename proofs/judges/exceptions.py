"""Where our documents differ from a vendor's schema on purpose, with the evidence: exceptions.toml."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dialects: tuple[str, ...]
    match: str
    why: str
    recorded: tuple[str, ...] = ()

    def covers(self, dialect: str, problem: str) -> bool:
        return dialect in self.dialects and re.fullmatch(self.match, problem) is not None


@cache
def rules() -> tuple[Rule, ...]:
    path = Path(__file__).with_name("exceptions.toml")
    table: Any = tomllib.loads(path.read_text(encoding="utf-8"))["exceptions"]
    return msgspec.convert(table, tuple[Rule, ...])


@cache
def of(dialect: str, problem: str) -> Rule | None:
    """The exception that covers a problem ("KIND PLACE: RULE")."""
    return next((rule for rule in rules() if rule.covers(dialect, problem)), None)
