"""What a compose file says of its services, with the variables of an `.env` put in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

_VARIABLE: Final = re.compile(r"\$\{([A-Z_]+)(?::([?-])([^}]*))?\}")


def interpolated(text: str, values: Mapping[str, str]) -> str:
    """`${NAME}`, `${NAME:?why it must be set}` and `${NAME:-default}`."""

    def value(match: re.Match[str]) -> str:
        name, how, rest = match.groups()
        found = values.get(name, "")
        if not found and how == "?":
            raise ValueError(f"{name} is not set: {rest}")
        return found or (rest if how == "-" else "")

    return _VARIABLE.sub(value, text)


def services(path: Path, values: Mapping[str, str]) -> dict[str, Any]:
    document = yaml.safe_load(interpolated(path.read_text(encoding="utf-8"), values))
    found: dict[str, Any] = document["services"]
    return found
