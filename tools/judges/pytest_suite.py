"""Runs tests of others with pytest, in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tools.judges import environments

_SECONDS: Final = 1200
_PROBLEMS: Final = ("failure", "error", "skipped")


def run(
    interpreter: Path, folder: Path, arguments: Sequence[str], environ: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """The name of each test and its problem, empty if it passed. Nothing is written to the folder."""
    with tempfile.TemporaryDirectory(prefix="wireglot-judge-") as temporary:
        report = Path(temporary, "report.xml")
        command = [
            *(str(interpreter), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"),
            *arguments,
        ]
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environ or {})},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if not report.is_file():
            raise environments.Missing(f"{' '.join(command)}: {(done.stderr or done.stdout)[-2000:]}")
        return [
            (
                f"{str(case.get('classname')).rpartition('.')[2]} {case.get('name')}",
                next((f"{each.tag}: {each.get('message')}" for each in case if each.tag in _PROBLEMS), ""),
            )
            for case in ElementTree.parse(report).iter("testcase")
        ]
