"""The tests of the core need no gateway: `make test-core` runs them where `wireglot` cannot be imported."""

import re
from pathlib import Path

CORE = Path(__file__).parent / "core"
GATEWAY = re.compile(r"^\s*(?:from|import) wireglot(?!_core)\b.*", re.MULTILINE)


def test_the_tests_of_the_core_import_nothing_of_the_gateway() -> None:
    files = sorted(CORE.rglob("*.py"))
    assert len(files) > 200
    found = [(file.name, line) for file in files for line in GATEWAY.findall(file.read_text("utf-8"))]
    assert found == []
    assert GATEWAY.findall("    from wireglot.http import retry\nimport wireglot\n")
