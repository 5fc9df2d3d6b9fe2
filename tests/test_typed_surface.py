"""What a type checker tells the users of the library."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import wireglot
from wireglot_core.dialects import registry

PROGRAM = """
import wireglot
from wireglot import kimi
from wireglot_core.dialects.registry import register

out = wireglot.translate_request({}, source="anthropic", target="gemini", model="m")
body: dict[str, object] = out.value
first: str = out.losses[0].feature
acme = wireglot.OwnDialect("acme")
wireglot.translate_response(b"{}", source=acme, target="openai-chat")
wireglot.StreamTranslator(source=wireglot.dialect_name(input()), target=acme)
name: wireglot.DialectName = "openai-responses"
kimi.default_model
wireglot.kimi.KimiError
wireglot.history.Assistant

wireglot.translate_requst({}, source="anthropic", target="gemini")  # wrong: a misspelt function
wireglot.translate_request({}, source="antropic", target="gemini")  # wrong: a misspelt dialect
wireglot.translate_request({}, source=input(), target="gemini")  # wrong: any text
wireglot.histroy  # wrong: a misspelt module
wireglot.kimi.KimiEror  # wrong: a misspelt class
number: int = out.losses[0].feature  # wrong: another type
"""


def test_a_checker_finds_what_is_misspelt_and_nothing_else(tmp_path: Path) -> None:
    """[M8] `wireglot.translate_requst` is an error under `mypy --strict`, and so is a dialect nobody speaks."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    wrong = {n for n, line in enumerate(PROGRAM.splitlines(), start=1) if "# wrong" in line}
    source = str(Path(wireglot.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program)],
        capture_output=True,
        text=True,
        env={"MYPYPATH": source, "PATH": "/usr/bin:/bin"},
        check=False,
    )
    found = {int(line) for line in re.findall(r"program\.py:(\d+): error", done.stdout)}
    assert found == wrong, done.stdout + done.stderr


def test_the_names_that_a_checker_knows_are_those_that_there_are() -> None:
    """[M8]"""
    assert tuple(get_args(registry._Ours)) == registry.NAMES == tuple(registry._HOMES)


def test_nothing_is_loaded_that_nobody_named() -> None:
    """[M8] Typed or not, `import wireglot` stays light."""
    code = "import sys, wireglot; print([m for m in ('kimi', 'history', 'http') if f'wireglot.{m}' in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
