"""What each fixture is imported as, comments included: the file next to it.

`WIREGLOT_UPDATE=1 pytest tests/cli/import_/test_import_goldens.py` writes them again; read the difference.
"""

from __future__ import annotations

from pathlib import Path

from tests.cli.import_.kit import ALL, FIXTURES, imported
from tests.core.laws.test_pair_goldens import UPDATE
from tests.tiers import rows


def golden(file: Path) -> Path:
    return file.with_suffix(".toml")


@rows("file", ALL, ids=lambda file: file.stem)
def test_a_fixture_is_imported_as_before(file: Path) -> None:
    text = imported(file).text
    if UPDATE:
        golden(file).write_text(text, encoding="utf-8")
    assert golden(file).read_text(encoding="utf-8") == text


def test_each_golden_has_its_source() -> None:
    assert set(FIXTURES.rglob("*.toml")) == {golden(file) for file in ALL}
