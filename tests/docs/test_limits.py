"""Every bound of the source is on docs/limits.md, with what it bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import limits_page
from tools.limits_page import Bound, bounds, bounds_of, shown
from tools.structure import Module, modules, nodes_of


def test_every_bound_says_what_it_bounds() -> None:
    found = bounds()
    assert len(found) > 200
    page = "\n".join(limits_page.page())
    assert all(f"[`{each.name.lstrip('_')}`](../src/{each.file})" in page for each in found)


@pytest.mark.parametrize(
    "text", ["Callers.", "For one field of a tool.", "Maximum number in memory only.", "Limit for `_met`."]
)
def test_a_bound_begins_with_what_it_counts(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = next(iter(modules().values()))
    monkeypatch.setattr(limits_page, "modules", lambda: {"made": module})
    monkeypatch.setattr(
        limits_page, "bounds_of", lambda _: [Bound("wireglot_core/ir/errors.py", "MAX_ONE", 1, text)]
    )
    with pytest.raises(limits_page.Undescribed, match="begin with what is counted"):
        bounds()


def test_no_two_bounds_are_described_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    two = [
        Bound("wireglot_core/ir/errors.py", name, 1, "Characters of a text.")
        for name in ("MAX_ONE", "MAX_TWO")
    ]
    module = next(iter(modules().values()))
    monkeypatch.setattr(limits_page, "modules", lambda: {"made": module})
    monkeypatch.setattr(limits_page, "bounds_of", lambda _: two)
    with pytest.raises(limits_page.Undescribed, match="2 bounds are described alike"):
        bounds()


def test_a_bound_is_in_the_section_of_its_package() -> None:
    assert limits_page.area("gateway/hosted/loop.py") == limits_page.area("web/fetch.py") == "Hosted tools"
    assert limits_page.area("gateway/supervisor.py") == limits_page.area("gateway/websockets.py")
    assert limits_page.area("dialects/schema/walk.py") != limits_page.area("dialects/body.py")


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
        ("MAX_SECONDS", 600.0, "600"),
        ("MAX_SHARE", 0.5, "0.5"),
    ):
        assert shown(Bound("f", name, value, "")) == text
    assert shown(Bound("f", "MAX_LINE", 1 << 20, "Bytes of a line.")) == "1 MiB"
