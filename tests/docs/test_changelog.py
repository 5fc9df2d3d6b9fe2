"""The changelog is for people who upgrade: its newest part stays short enough to be read."""

import re
from pathlib import Path
from typing import Final

_TEXT: Final = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
NEWEST: Final = next(
    part.strip() for part in re.split(r"^## .*\n", _TEXT, flags=re.MULTILINE)[1:] if part.strip()
)
"""What is unreleased, or else the last version."""


def test_what_is_new_can_be_read_in_minutes() -> None:
    assert len(NEWEST.encode()) < 12_000


def test_it_begins_with_what_an_upgrade_needs() -> None:
    assert "To upgrade" in NEWEST.partition("\n\n")[0]


def test_each_change_is_a_line_or_two() -> None:
    lists = NEWEST.partition("\n### ")[2]
    items = [item.partition("\n\n")[0] for item in lists.split("\n- ")[1:]]
    assert len(items) > 1
    assert [item for item in items if len(item.split()) > 60] == []
