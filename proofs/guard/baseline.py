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
TOLERANCE = 0.05
"""Of a recorded count of instructions; where it comes from is reported in the Makefile."""
OTHER_TOLERANCES = {"calls, ": 0.03, "files, ": 0.03, "gateway, an event": 0.15}
"""By how a name begins. Calls and files depend on our code and Python's version only. An event in the gateway
is the difference of two streams, and costs less where a busy machine has it read together with the next."""

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


def processor(reported: Path = Path("/proc/cpuinfo")) -> str:
    """Which one it is: the C library copies and searches with other instructions on others."""
    try:
        lines = reported.read_text(encoding="utf-8", errors="replace").splitlines()
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
    return name.partition(".")[0] in ("wireglot", "wireglot_core")


def path_of(key: Key, directory: Path = DIRECTORY) -> Path:
    """Counts of another machine are in another file, so that several may be recorded."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:8]
    return directory / f"{key['machine']}-{key['python'].replace(' ', '-')}-{key['form']}-{digest}.json"


class Recorded(NamedTuple):
    key: Key
    counts: dict[str, int]
    path: Path


def nearest(key: Key, directory: Path = DIRECTORY) -> Recorded | None:
    """What was recorded on this machine, or else where most is the same.

    Valgrind shows every program the same processor, whichever it runs on, so counts of another model compare.
    Those of another architecture, another minor version of Python or a compiled core do not.
    """
    found = [_read(path) for path in sorted(directory.glob("*.json"))]
    usable = [one for one in found if _comparable(one.key) == _comparable(key)]
    return max(usable, key=lambda one: sum(one.key.get(name) == key[name] for name in key), default=None)


def _comparable(key: Key) -> tuple[str, str, str]:
    return key["machine"], key["python"].rpartition(".")[0], key["form"]


def _read(path: Path) -> Recorded:
    found = json.loads(path.read_text(encoding="utf-8"))
    return Recorded(found["key"], found["counts"], path)


def differences(key: Key, recorded: Key) -> list[str]:
    return [f"{name} {recorded.get(name)}" for name in key if key[name] != recorded.get(name)]


def write(path: Path, key: Key, counts: Mapping[str, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"key": key, "counts": counts}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


class Verdict(NamedTuple):
    """Each a list of sentences about a figure."""

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
    """`whole`: everything was counted, so what is only recorded is gone."""
    found = Verdict([], [], [])
    for name, count in counts.items():
        if name not in recorded:
            found.unknown.append(f"{name}: {count:,}, not recorded yet")
            continue
        change = count / recorded[name] - 1
        allowed = next((own for start, own in OTHER_TOLERANCES.items() if name.startswith(start)), tolerance)
        line = f"{name}: {abs(change):.1%} {{}} ({recorded[name]:,} -> {count:,})"
        if change > allowed:
            found.slower.append(line.format("more"))
        elif change < -allowed:
            found.faster.append(line.format("fewer"))
    gone = [f"{name}: recorded, but no longer counted" for name in recorded if name not in counts]
    return found._replace(unknown=found.unknown + gone) if whole else found
