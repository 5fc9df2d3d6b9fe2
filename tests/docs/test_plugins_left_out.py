"""A dialect of another package that is installed next to ours is in none of our generated pages."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOOK = """
from wireglot_core.plugins import load_dialects
from wireglot_core.dialects.registry import names
from tools.generate_docs import http_pages, leave_out_plugins
assert "acme" in load_dialects()
assert "acme" in names()
leave_out_plugins()
assert "acme" not in names()
assert not any("acme" in text for text in http_pages().values())
"""


def test_pages_are_about_this_package_alone(tmp_path: Path) -> None:
    installed = tmp_path / "acme_wireglot-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-wireglot\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[wireglot.dialects]\nacme = acme_wireglot:DIALECT\n")
    path = os.pathsep.join(map(str, (ROOT, tmp_path, ROOT / "examples" / "own_dialect" / "src")))
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
