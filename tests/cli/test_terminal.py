"""Colours, and lines that fit, only where a terminal shows them."""

import io

import pytest

from tests.tiers import rows
from wireglot.cli.terminal import Paint, fitted


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


@rows(
    ("text", "shown"),
    [
        ("one two three", "one two three"),
        ("one two three four five", "one two three four\n  five"),
        ("  one two three four five", "  one two three\n    four five"),
        ("short\nhttp://127.0.0.1:8484/inspector/enter/abc it is", "short\nhttp://127.0.0.1:8484/inspector/enter/abc\n  it is"),
        ("\x1b[31mone\x1b[0m two three four", "\x1b[31mone\x1b[0m two three four"),
        ("it is off: npm i -g x", "it is off:\n  npm i -g x"),
        ("wg: one two three four", "wg: one two three\n  four"),
        ("one: two three four: five six seven eight", "one: two three\n  four: five six\n  seven eight"),
        ("try one of `wg keys on` now", "try one of\n  `wg keys on` now"),
        ("a ` alone in the text", "a ` alone in the\n  text"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_is_wider_than_a_terminal_is_broken_between_words(
    text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "18")
    assert fitted(text, Terminal()) == shown
    assert fitted(text, io.StringIO()) == text, "one line for who reads it by program"
