"""One constant says how Wireglot is installed; pages follow it, and what they say works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release.test_package import tree as tree
from tests.tiers import rows
from tools import install_lines
from tools.install_lines import rewritten
from wireglot import __version__
from wireglot_core import extras

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

LINES = {
    "pip install wireglot": "pip install .",
    "pipx install wireglot": "pipx install .",
    "`pip install 'wireglot[web]'`.": "`pip install '.[web]'`.",
    "pip install --no-deps wireglot msgspec": "pip install --no-deps . msgspec",
    "uv tool install --force 'wireglot[web,mcp]'": "uv tool install --force '.[web,mcp]'",
    "pip install dist/*.whl": "pip install dist/*.whl",
    "pip install ./examples/own_dialect": "pip install ./examples/own_dialect",
    "pip install wireglot-plugin": "pip install wireglot-plugin",
    "The extra `wireglot[web]`.": "The extra `wireglot[web]`.",
}


@rows("line", LINES)
def test_a_page_names_what_an_installer_finds(line: str) -> None:
    assert rewritten(line) == LINES[line]


def test_pages_follow_the_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    published = "wireglot"
    monkeypatch.setattr(install_lines, "requirement", lambda extra="": extras.requirement(extra, published))
    for line, source in LINES.items():
        assert rewritten(source) == (line if "wireglot" in line and "dist" not in line else source)


def test_no_page_names_anything_else() -> None:
    assert [str(path) for path, _ in install_lines.pages()] == []


def test_no_text_of_the_program_and_its_page_names_anything_else() -> None:
    sources = [path for name in ("src/wireglot", "page/src") for path in sorted((ROOT / name).rglob("*.*"))]
    texts = {
        path: path.read_text(encoding="utf-8") for path in sources if path.suffix in {".py", ".ts", ".tsx"}
    }
    assert [str(path) for path, text in texts.items() if rewritten(text) != text] == []


@pytest.mark.sampled
def test_the_line_of_the_readme_installs_the_command(tree: Path, tmp_path: Path) -> None:
    """Without an index: what the package depends on, and what builds it, is here already."""
    found = re.search(r"`pipx install (\S+)`", README)
    assert found is not None
    words = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(tmp_path), found[1]]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *words],
        cwd=tree, env={**os.environ, "WIREGLOT_PURE": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    reported = subprocess.run(
        [tmp_path / "bin" / "wireglot", "--version"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert __version__ in reported.stdout
    assert (tmp_path / "wireglot" / "__init__.py").exists()
