"""The examples as a reader has them: a copy of the folder, an empty home, the commands that the pages show."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
_SECONDS = 240
_PROGRAMS = {
    "python": "",
    "wireglot": "-m wireglot",
    "pytest": "-m pytest -p no:cacheprovider",
}
_COMMAND = re.compile(r"^(?:#? {4,5})((?:python|wireglot|sed|export|pip|pytest) .+)$", re.MULTILINE)


def commands(example: str) -> list[str]:
    """Those of an example's head, in their order."""
    text = (EXAMPLES / example).read_text(encoding="utf-8")
    head = text.split('"""')[1] if example.endswith(".py") else text
    return _COMMAND.findall(head)


def shell_block(page: str) -> list[str]:
    """The commands of a page's one shell block, without their remarks."""
    (block,) = re.findall(r"```sh\n(.*?)```", (EXAMPLES / page).read_text(encoding="utf-8"), re.DOTALL)
    return [re.sub(r"\s+# .*", "", line) for line in block.splitlines()]


def table() -> dict[str, str]:
    """The commands of examples/README.md, by what they run."""
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| \[(\S+)\]\(.*\| `(.*)` \|$", page, re.MULTILINE))


class Reader:
    """Who follows the pages, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        skipped = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(EXAMPLES, self.folder / "examples", ignore=skipped)
        shutil.copy(ROOT / "README.md", self.folder)
        self._home, programs = folder / "home", folder / "bin"
        self._home.mkdir()
        programs.mkdir()
        for name, rest in _PROGRAMS.items():
            (programs / name).write_text(
                f'#!/bin/sh\nexec "{sys.executable}" {rest} "$@"\n', encoding="utf-8"
            )
            (programs / name).chmod(0o755)
        self._path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
        self.packages = folder / "packages"
        """Where what is installed goes."""

    def run(self, command: str, **variables: str) -> str:
        """What it prints; it must end well."""
        done = self.start(command, variables)
        said, reported = done.communicate(timeout=_SECONDS)
        assert done.returncode == 0, f"{command}\n{said}\n{reported}"
        return said

    def start(self, command: str, variables: Mapping[str, str]) -> subprocess.Popen[str]:
        found = (str(self.packages), str(ROOT / "src"))
        environ = {
            "HOME": str(self._home),
            "PATH": self._path,
            "PYTHONPATH": os.pathsep.join(found),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LANG": "C.UTF-8",
            "NO_PROXY": "*",
            **variables,
        }
        return subprocess.Popen(
            ["sh", "-c", command],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
