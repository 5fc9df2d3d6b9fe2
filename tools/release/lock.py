"""Reads `requirements.lock`: what a container installs, each file by its hash. `make lock` writes it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"

_REQUIREMENT = re.compile(
    r"^([a-z0-9-]+)==([^\s;]+)[^\\]*((?:\\\n\s+--hash=sha256:[0-9a-f]{64}\s*?)+)$", re.MULTILINE
)


def locked(text: str) -> dict[str, str]:
    """Versions by project. Raises ValueError where a line is not one pinned version with its hashes."""
    found = {match[1]: match[2] for match in _REQUIREMENT.finditer(text)}
    rest = "\n".join(line for line in _REQUIREMENT.sub("", text).splitlines() if line and line[0] != "#")
    if rest.strip():
        raise ValueError(f"not a pinned version with hashes: {rest.strip()[:200]}")
    return found
