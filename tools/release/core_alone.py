"""Prove the core's wheel in an environment that has msgspec and nothing else.

    python -m tools.release.core_alone [--wheel dist/wireglot_core-X.whl]

The samples of every dialect in every other one: requests, answers, streams; `examples/translate.py`; then,
with pytest and hypothesis beside it, the laws. Exit status 1 where one fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_OURS: Final = re.compile("WIREGLOT_|PYTHON|VIRTUAL_ENV|XDG_")
_PAIRS: Final = """
import importlib.util, sys
from contextlib import suppress
from pathlib import Path
from wireglot_core import StreamTranslator, Unsupported, translate_request, translate_response
from wireglot_core.testing import samples_in

for name in ("wireglot", "hypothesis", "httptools", "uvloop", "apsw"):
    assert importlib.util.find_spec(name) is None, name
fixtures = Path(sys.argv[1])
dialects = [name for name in sys.argv[2:]]
done = 0
for source in dialects:
    samples = samples_in(fixtures / source)
    for target in dialects:
        carried = 0
        for asked in samples.requests:
            with suppress(Unsupported):  # what runs at its own provider only
                carried += bool(translate_request(asked, source=source, target=target, model="m").value)
        assert carried, (source, target)
        for answer in samples.responses:
            assert translate_response(answer, source=source, target=target).value, (source, target)
        for frames in samples.streams:
            stream = StreamTranslator(source=source, target=target)
            assert stream.feed(frames) + stream.close(), (source, target)
        done += carried + len(samples.responses) + len(samples.streams)
print(f"{len(dialects) ** 2} pairs of dialects: {done:,} documents and streams")
"""
_LAWS: Final = (
    "check_dialect",
    "identity",
    "pairs",
    "fold",
    "chunking",
    "grammar",
    "truncation",
    "garbage",
    "twice",
)
"""Those that need no SDK of a vendor."""
_DIALECTS: Final = (
    *("anthropic", "openai-chat", "openai-responses"),
    *("gemini", "gemini-interactions", "ollama"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release.core_alone", description=__doc__)
    parser.add_argument("--wheel", type=Path)
    wheel: Path = (parser.parse_args().wheel or _newest()).resolve()
    fixtures = str(ROOT / "tests" / "fixtures")
    with tempfile.TemporaryDirectory(prefix="core-") as work:
        folder = Path(work) / "environment"
        venv.create(folder, with_pip=True)
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        _install(python, Path(work), str(wheel))
        _run([python, "-m", "pip", "check"], Path(work))
        print(_run([python, "-c", _PAIRS, fixtures, *_DIALECTS], Path(work)), end="")
        _run([python, ROOT / "examples" / "translate.py"], Path(work))
        print("examples/translate.py")
        _install(python, Path(work), "pytest", "hypothesis")
        laws = [f"tests/core/laws/test_{name}.py" for name in _LAWS]
        said = _run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *laws], Path(work), ROOT)
        print(f"the laws: {said.splitlines()[-1]}")
    return 0


def _newest() -> Path:
    found = sorted((ROOT / "dist").glob("wireglot_core-*.whl"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit("no wheel of the core in dist/: make artifacts")
    return found[-1]


def _install(python: Path, work: Path, *what: str) -> None:
    pinned: list[str | Path] = ["-c", ROOT / "constraints.txt", "--only-binary", ":all:"]
    _run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *pinned, *what], work)


def _run(command: list[str | Path], work: Path, folder: Path | None = None) -> str:
    kept = {name: value for name, value in os.environ.items() if not _OURS.match(name)}
    environment = {**kept, "HOME": str(work), "PYTHONDONTWRITEBYTECODE": "1", "WIREGLOT_CORE_ALONE": "1"}
    done = subprocess.run(
        command, cwd=folder or work, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        shown = " ".join(str(word) for word in command[:3])
        raise SystemExit(f"{shown} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
