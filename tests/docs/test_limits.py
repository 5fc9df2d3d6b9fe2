"""Every bound of the source is on docs/limits.md, with what it bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import limits_page
from tools.limits_page import Bound, bounds, bounds_of, shown
from tools.structure import Module, nodes_of


def test_every_bound_says_what_it_bounds() -> None:
    found = bounds()
    assert len(found) > 200
    page = "\n".join(limits_page.page())
    assert all(f"`{each.file}` `{each.name}`" in page for each in found)


def test_the_comment_of_a_bound_is_above_it_or_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "made.py"
    file.write_text(
        "import sys\n"
        "# Above, on\n# two lines.\nMAX_ONE: int = 1\n"
        'TWO_MOST = 2.5\n"""Below."""\n'
        "_MAX_THREE = 3  # beside it\n"
        "MAX_FOUR = 4\n"
        "MAX_NAMES = ()\n"
        "_ARENA_MAX = 5\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(Module, "file", "made.py")
    module = Module("made", file, tuple(nodes_of(file.read_text())))
    assert list(bounds_of(module)) == [
        Bound("made.py", "MAX_ONE", 1, "Above, on two lines."),
        Bound("made.py", "TWO_MOST", 2.5, "Below."),
        Bound("made.py", "_MAX_THREE", 3, "Beside it."),
        Bound("made.py", "MAX_FOUR", 4, ""),
    ]
    monkeypatch.setattr(limits_page, "modules", lambda: {"made": module})
    with pytest.raises(limits_page.Undescribed, match="MAX_FOUR has no comment"):
        bounds()


def test_sizes_are_shown_in_their_unit() -> None:
    for name, value, text in (
        ("MAX_BYTES", 3 << 20, "3 MiB"),
        ("_MAX_BODY", 64 << 10, "64 KiB"),
        ("_MAX_BYTES", 84, "84"),
        ("MAX_NODES", 4096, "4,096"),
    ):
        assert shown(Bound("f", name, value, "")) == text
