"""What was recorded, for machines on which the same code takes the same number of instructions."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.metadata
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

DIRECTORY = Path(__file__).with_name("baselines")
C_LIBRARIES = ("msgspec",)
"""What the core calls that is not Python: another version takes other counts."""
TOLERANCE = 0.03
"""Of a recorded count. Where things happen to lie in memory moves most counts by less than one percent; one,
of a body of 100 KB, was seen to move by six, so CI allows more (`.ci/run`)."""

_PROCESSOR_FIELDS = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")

Key = dict[str, str]


def key() -> Key:
    """Everything that the counts depend on, except our own code."""
    return {
        "machine": platform.machine(),
        "python": f"{platform.python_implementation().lower()} {platform.python_version()}",
        "build": f"{' '.join(platform.python_build())}; {platform.python_compiler()}",
        "libc": " ".join(platform.libc_ver()),
        "processor": processor(),
        **{name: importlib.metadata.version(name) for name in C_LIBRARIES},
        "form": form(),
    }


def processor(told: Path = Path("/proc/cpuinfo")) -> str:
    """Which one it is: the C library copies and searches with other instructions on others."""
    try:
        lines = told.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    first: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        first.setdefault(name.strip(), value.strip())
    return " ".join(filter(None, map(first.get, _PROCESSOR_FIELDS)))


def form() -> str:
    """Whether the core that is imported is plain Python or compiled."""
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    files = [getattr(module, "__file__", "") or "" for name, module in sys.modules.items() if _is_ours(name)]
    return "compiled" if any(file.endswith(suffixes) for file in files) else "pure"


def _is_ours(name: str) -> bool:
    return name == "wireglot" or name.startswith("wireglot.")


def path_of(key: Key, directory: Path = DIRECTORY) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:8]
    return directory / f"{key['machine']}-{key['python'].replace(' ', '-')}-{key['form']}-{digest}.json"


def read(path: Path) -> dict[str, int] | None:
    """The recorded counts; None where there are none."""
    if not path.exists():
        return None
    counts: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["instructions"]
    return counts


def write(path: Path, key: Key, counts: Mapping[str, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"key": key, "instructions": counts}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


class Verdict(NamedTuple):
    """Each a list of sentences about a path."""

    slower: list[str]
    faster: list[str]
    unknown: list[str]
    """Counted and not recorded, or recorded and no longer there."""


def compare(
    counts: Mapping[str, int],
    recorded: Mapping[str, int],
    tolerance: float = TOLERANCE,
    *,
    whole: bool = True,
) -> Verdict:
    """`whole`: all paths were counted, so one that is only recorded is gone."""
    found = Verdict([], [], [])
    for name, count in counts.items():
        if name not in recorded:
            found.unknown.append(f"{name}: {count:,} instructions, not recorded yet")
            continue
        change = count / recorded[name] - 1
        told = f"{name}: {abs(change):.1%} {{}} ({recorded[name]:,} -> {count:,} instructions)"
        if change > tolerance:
            found.slower.append(told.format("more"))
        elif change < -tolerance:
            found.faster.append(told.format("fewer"))
    gone = [f"{name}: recorded, but no longer counted" for name in recorded if name not in counts]
    return found._replace(unknown=found.unknown + gone) if whole else found
