"""Build wheel and sdist twice, from two copies of the committed files with other paths, dates and file modes.

    python -m tools.release.wheel [--core] [--out dist]

The core is a wheel of its own, `wireglot-core`.

Both must be the same bytes: anyone who has the commit can check that what was published holds nothing else. A
wheel that runs something when it is installed or when Python starts (`.pth`) is refused. Exit status 1
otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NATIVE = "wireglot_core/wire/_scan.abi3.so"
_UMASKS = (0o022, 0o077)
_BUILD = """
import os, sys
import hatchling.build as backend
os.makedirs(sys.argv[1])
backend.build_wheel(sys.argv[1])
if os.path.isdir("src"):
    backend.build_sdist(sys.argv[1])
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release.wheel", description=__doc__)
    parser.add_argument("--core", action="store_true", help="wireglot-core instead of wireglot")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    arguments = parser.parse_args()
    out: Path = arguments.out
    project = "core" if arguments.core else "."
    with tempfile.TemporaryDirectory(prefix="wheel-") as work:
        first, second = (_built(Path(work) / f"copy-{umask:o}" / "tree", project, umask) for umask in _UMASKS)
        if first != second:
            print(f"not reproducible: {sorted(first)} {sorted(second)}", file=sys.stderr)
            return 1
        (wheel,) = (content for name, content in first.items() if name.endswith(".whl"))
        if odd := _runs_by_itself(wheel):
            print(f"runs something when it is installed: {odd}", file=sys.stderr)
            return 1
    out.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(first.items()):
        (out / name).write_bytes(content)
        print(f"{out / name}\nsha256 {hashlib.sha256(content).hexdigest()}: the same twice")
    return 0


def _built(tree: Path, project: str, umask: int) -> dict[str, bytes]:
    """What was made, by its names. By the backend itself: nothing is fetched, and its version is pinned."""
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    before = os.umask(umask)
    try:
        subprocess.run(["tar", "-x", "-m"], cwd=tree, input=archive, check=True)
        words = [sys.executable, "-c", _BUILD, str(tree.parent / "made")]
        subprocess.run(words, cwd=tree / project, check=True)
    finally:
        os.umask(before)
    return {path.name: path.read_bytes() for path in (tree.parent / "made").iterdir()}


def _runs_by_itself(wheel: bytes) -> list[str]:
    """Whatever is neither ours nor about us, and what Python loads unasked."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as opened:
        names = opened.namelist()
    return [
        name
        for name in names
        if name.endswith(".pth")
        or (name.endswith(".so") and name != _NATIVE)
        or not name.startswith("wireglot")
    ]


if __name__ == "__main__":
    sys.exit(main())
