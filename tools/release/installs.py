"""Install the wheel into clean environments of every Python that is here, and run it there.

    python -m tools.release.installs [--wheel dist/wireglot-X.whl] [--only 3.13]

Each with an empty HOME, in an empty folder: the whole, the library alone (`--no-deps` and msgspec), and with
the newest Python also through `pipx` and `uvx`. Versions are those of constraints.txt. Exit status 1 where
one fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
_OURS: Final = re.compile(r"WIREGLOT_|PYTHON|VIRTUAL_ENV|XDG_|[A-Z_]+_API_KEY$")
_TRANSLATE: Final = """
import wireglot
request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
out = wireglot.translate_request(request, source="anthropic", target="gemini", model="gemini-2.5-pro")
assert out.value["contents"][0]["parts"] == [{"text": "hi"}], out.value
"""


class Failed(Exception):
    """A step, and what it said."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release.installs", description=__doc__)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--only", choices=VERSIONS)
    arguments = parser.parse_args()
    wheel: Path = (arguments.wheel or _newest_wheel()).resolve()
    found = {version: path for version in VERSIONS if (path := python(version)) is not None}
    wanted = [arguments.only] if arguments.only else list(found)
    try:
        for version in wanted:
            with tempfile.TemporaryDirectory(prefix="installs-") as work:
                _whole(wheel, found[version], Path(work))
                _alone(wheel, found[version], Path(work))
            print(f"Python {version}: the whole, and the library alone", flush=True)
        with tempfile.TemporaryDirectory(prefix="installs-") as work:
            _tools(wheel, found[wanted[-1]], Path(work))
        print(f"pipx and uvx, with Python {wanted[-1]}", flush=True)
    except Failed as problem:
        print(problem, file=sys.stderr)
        return 1
    absent = [version for version in VERSIONS if version not in found]
    print(f"not here: {', '.join(absent)}" if absent else "every version was here")
    return 0


def python(version: str) -> Path | None:
    """On the path or among pyenv's; a shim of pyenv for a version that is not switched on does not start."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for name in (f"python{version}", *map(str, sorted(pyenv.glob(f"{version}.*/bin/python{version}")))):
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return Path(found)
    return None


def _newest_wheel() -> Path:
    found = sorted((ROOT / "dist").glob("wireglot-*.whl"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit("no wheel in dist/: make wheel")
    return found[-1]


def _whole(wheel: Path, python: Path, work: Path) -> None:
    bin = _environment(python, work / "whole")
    _pip(bin, work, str(wheel))
    _do([bin / "wireglot", "--version"], work)
    _do([bin / "wireglot", "demo"], work)
    _do([bin / "python", "-m", "wireglot.cli", "config", "check"], work)
    _do([bin / "python", "-m", "pip", "check"], work)


def _alone(wheel: Path, python: Path, work: Path) -> None:
    bin = _environment(python, work / "alone")
    _pip(bin, work, "--no-deps", str(wheel), "msgspec")
    _do([bin / "python", "-c", _TRANSLATE], work)
    _do([bin / "wireglot", "pairs"], work)


def _tools(wheel: Path, python: Path, work: Path) -> None:
    bin = _environment(python, work / "tools")
    _pip(bin, work, "pipx", "uv")
    _do([bin / "pipx", "install", "--python", python, wheel], work)
    _do([work / "home/.local/bin/wireglot", "--version"], work)
    _do(
        [bin / "uvx", "--python", python, "--from", wheel, "wireglot", "--version"],
        work,
        {"UV_PYTHON_DOWNLOADS": "never"},
    )


def _environment(python: Path, folder: Path) -> Path:
    _do([python, "-m", "venv", folder], folder.parent)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def _pip(bin: Path, work: Path, *words: str) -> None:
    said = [
        "-q",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        "-c",
        str(ROOT / "constraints.txt"),
    ]
    _do([bin / "python", "-m", "pip", "install", *said, *words], work)


def _do(command: list[str | Path], work: Path, more: Mapping[str, str] = {}) -> None:
    home = work / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not _OURS.match(name)}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=home, env={**kept, "HOME": str(home), **more}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
