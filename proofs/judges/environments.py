"""Where judges are installed: `.judges/NAME`, an environment of its own for each, never the project's."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path
from typing import Final

FOLDER: Final = Path(os.environ.get("JUDGES_DIR", Path(__file__).parents[2] / ".judges"))


class Missing(Exception):
    """What a judge needs and this machine does not have, and how to get it."""


def python(name: str, *packages: str) -> Path:
    """The interpreter of an environment with these packages at their newest versions; made on first use."""
    folder = FOLDER / name
    program = folder / "bin" / "python"
    done = folder / ".installed"
    wanted = "\n".join(packages)
    if not done.is_file() or done.read_text(encoding="utf-8") != wanted:
        venv.create(folder, with_pip=True, clear=True)
        run(program, "-m", "pip", "install", "-q", "--disable-pip-version-check", "uv")
        # pip looks for versions of google-adk's hundred dependencies for a quarter of an hour.
        run(program, "-m", "uv", "pip", "install", "-q", "--python", str(program), *packages)
        done.write_text(wanted, encoding="utf-8")
    return program


def version(interpreter: Path, package: str) -> str:
    code = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    return run(interpreter, "-c", code, package).strip()


def checkout(name: str, repository: str) -> Path:
    """A working copy of a repository that no registry carries, put there by the user."""
    folder = Path(os.environ.get("JUDGES_CHECKOUTS", FOLDER / "checkouts")) / name
    if not folder.is_dir():
        raise Missing(f"git clone https://github.com/{repository} {folder}")
    return folder


def commit(folder: Path) -> str:
    return run(Path("git"), "-C", str(folder), "rev-parse", "--short=10", "HEAD").strip()


def run(program: Path, *arguments: str) -> str:
    """What it prints. One that fails is `Missing`."""
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{program.name} {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
    return done.stdout
