"""Record the README's terminal again: `make recording`.

    python -m tools.recording [--write docs/pictures/recording.svg]

Two real terminals: in the upper one a gateway, in the lower one clients from clients/.installed, in an empty
home, on the demo model. What they show is drawn as one SVG; waits are shortened, nothing else is changed.
Needs pyte, which plays the terminal.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from clients.install import node_path
from clients.packages import CLAUDE_CODE, GEMINI_CLI, Package
from tools.recording.picture import Pane, picture
from tools.recording.screen import frames, shortened
from tools.recording.script import COMMANDS, SERVE, TITLE
from tools.recording.terminal import Stuck, Terminal

ROOT: Final = Path(__file__).parents[2]
_COLUMNS: Final = 100
_LINES_ABOVE, _LINES_BELOW = 15, 17
_SECONDS: Final = 180.0
_PAUSE_SECONDS: Final = 1.0


def _environment(home: Path) -> dict[str, str]:
    """Nothing of the one that records, but the programs."""
    packages: tuple[Package, ...] = (CLAUDE_CODE, GEMINI_CLI)
    programs = [str(Path(sys.executable).parent), *(str(package.binaries) for package in packages)]
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join([*programs, node_path(packages[0])]),
        "LANG": "C.UTF-8",
        "COLORTERM": "truecolor",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
    }


def record(folder: Path) -> str:
    home, project = folder / "home", folder / "project"
    for one in (home, project):
        one.mkdir()
    (project / "notes.txt").write_text("Milk, bread, and a gateway.\n", encoding="utf-8")
    env = _environment(home)
    above = Terminal(_COLUMNS, _LINES_ABOVE, project, env)
    below = Terminal(_COLUMNS, _LINES_BELOW, project, env)
    try:
        above.type(SERVE)
        above.wait_text("listening", _SECONDS)
        time.sleep(_PAUSE_SECONDS)
        for command in COMMANDS:
            below.run(command, _SECONDS)
            time.sleep(_PAUSE_SECONDS)
        shown = shortened([list(above.written), list(below.written)])
    finally:
        below.close()
        above.close()
    names = ("the gateway", "your terminal")
    return picture(
        TITLE,
        [
            Pane(name, one.columns, one.lines, frames(written, one.columns, one.lines))
            for name, one, written in zip(names, (above, below), shown, strict=True)
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Record the README's terminal.")
    parser.add_argument("--write", type=Path, default=ROOT / "docs" / "pictures" / "recording.svg")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recording-") as folder:
        try:
            text = record(Path(folder).resolve())
        except Stuck as problem:
            print(f"recording: a command did not end. It showed:\n{problem}", file=sys.stderr)
            return 1
    given.write.parent.mkdir(parents=True, exist_ok=True)
    given.write.write_text(text, encoding="utf-8")
    print(f"{given.write}: {len(text.encode()) // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
