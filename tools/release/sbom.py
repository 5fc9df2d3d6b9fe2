"""A bill of materials (CycloneDX) of what `requirements.lock` installs, compared with the lock.

    python -m tools.release.sbom --python ENVIRONMENT/bin/python --out dist/wireglot.cdx.json

The environment is one into which the lock and the package have been installed and nothing else. What is in it
and not in the lock, or the other way round, is reported. Exit status 1 then.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from tools.release.lock import LOCK, locked

_OURS = "wireglot"
_INSTALLERS = frozenset({"pip", "setuptools", "wheel"})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release.sbom", description=__doc__)
    parser.add_argument("--python", required=True, help="of the environment to describe")
    parser.add_argument("--out", type=Path, default=Path("dist/wireglot.cdx.json"))
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    made = [sys.executable, "-m", "cyclonedx_py", "environment", arguments.python, "--output-reproducible"]
    subprocess.run([*made, "--output-format", "JSON", "-o", str(arguments.out)], check=True)
    bill = msgspec.json.decode(arguments.out.read_bytes())
    described = {name(each["name"]): each["version"] for each in bill["components"]}
    problems = differences(described, locked(LOCK.read_text(encoding="utf-8")))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{arguments.out}: {len(described)} components")
    return 1 if problems else 0


def differences(described: dict[str, Any], lock: dict[str, str]) -> list[str]:
    """What the bill and the lock do not agree on. A lock may name what this platform does not need."""
    problems = []
    for component, version in sorted(described.items()):
        if component in _INSTALLERS or component == _OURS:
            continue
        if component not in lock:
            problems.append(f"{component} {version} is installed, but not locked")
        elif lock[component] != version:
            problems.append(f"{component} {version} is installed, {lock[component]} is locked")
    if _OURS not in described:
        problems.append(f"{_OURS} itself is missing")
    return problems


def name(written: str) -> str:
    """A project's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", written).lower()


if __name__ == "__main__":
    sys.exit(main())
