"""Colours only where a terminal shows them."""

import io

import pytest

from tests.tiers import rows
from wireglot.cli.terminal import Paint


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@rows(
    ("stream", "variables", "painted"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "0"}, False),
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    stream: io.StringIO, variables: dict[str, str], painted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown = Paint(stream)("text", "bold")
    assert (shown == "\x1b[1mtext\x1b[0m") is painted
    assert (shown == "text") is not painted
