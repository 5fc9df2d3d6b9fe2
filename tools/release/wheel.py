"""Build the wheel twice, from two copies of the committed files at different paths, dates and file modes.

    python -m tools.release.wheel [--out dist]

Both must be the same bytes: whoever has the commit can check that a published wheel holds nothing else. A
wheel that runs something when it is installed or when Python starts (`.pth`) is refused. Exit status 1
otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
_UMASKS = (0o022, 0o077)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release.wheel", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out: Path = parser.parse_args().out
    with tempfile.TemporaryDirectory(prefix="wheel-") as work:
        wheels = [_built(Path(work) / f"copy-{umask:o}" / "tree", umask) for umask in _UMASKS]
        names = {wheel.name for wheel in wheels}
        sums = {hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels}
        if len(names) != 1 or len(sums) != 1:
            print(f"not reproducible: {sorted(names)} {sorted(sums)}", file=sys.stderr)
            return 1
        if odd := _runs_by_itself(wheels[0]):
            print(f"runs something when it is installed: {odd}", file=sys.stderr)
            return 1
        out.mkdir(parents=True, exist_ok=True)
        target = out / wheels[0].name
        target.write_bytes(wheels[0].read_bytes())
    print(f"{target}\nsha256 {sums.pop()}: the same twice")
    return 0


def _built(tree: Path, umask: int) -> Path:
    tree.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    before = os.umask(umask)
    try:
        subprocess.run(["tar", "-x", "-m"], cwd=tree, input=archive, check=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tree.parent), "."],
            cwd=tree,
            check=True,
            env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        )
    finally:
        os.umask(before)
    [wheel] = tree.parent.glob("*.whl")
    return wheel


def _runs_by_itself(wheel: Path) -> list[str]:
    """Whatever is neither ours nor about us, and what Python loads unasked."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    return [name for name in names if name.endswith((".pth", ".so")) or not name.startswith("wireglot")]


if __name__ == "__main__":
    sys.exit(main())
