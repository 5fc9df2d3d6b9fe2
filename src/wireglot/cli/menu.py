"""A choice among rows, in a terminal: with the arrow keys, a number, or a part of a name."""

from __future__ import annotations

import codecs
import os
import re
import select
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from wireglot.cli.terminal import Paint, one_line

try:
    import termios
    import tty
except ImportError:  # Windows: rows are chosen by typing a line
    termios = None  # type: ignore[assignment]  # Windows has none

_ROWS: Final = 12
_UP, _DOWN, _ENTER, _CANCEL, _BACK, _INTERRUPT = "up", "down", "enter", "cancel", "back", "interrupt"
_KEYS: Final = {
    "\x1b[A": _UP,
    "\x1bOA": _UP,
    "\x10": _UP,
    "\x1b[B": _DOWN,
    "\x1bOB": _DOWN,
    "\x0e": _DOWN,
    "\t": _DOWN,
    "\r": _ENTER,
    "\n": _ENTER,
    "\x7f": _BACK,
    "\x08": _BACK,
    "\x03": _INTERRUPT,
    "\x04": _CANCEL,
    "\x1b": _CANCEL,
}
_KEY: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|.", re.DOTALL)
"""The bytes of one key. Several come in one read if they are pressed quickly, or over a slow connection."""
_CUT_KEY: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
_REST_SECONDS: Final = 0.1
"""The rest of a key comes sooner than that; Escape alone has none."""


def pick(question: str, rows: Sequence[str]) -> int | None:
    """The index of the chosen row; None if the user cancelled. Check `can_ask` first. Raises
    KeyboardInterrupt."""
    if os.name != "posix" or os.environ.get("TERM", "dumb") == "dumb":
        return _typed(question, rows)
    return _drawn(question, rows)


class Selection:
    """The typed text, the matching rows, and the marked one."""

    def __init__(self, rows: Sequence[str]) -> None:
        self._rows = rows
        self._typed = ""
        self._at = 0

    @property
    def typed(self) -> str:
        return self._typed

    def fitting(self) -> list[int]:
        """For a number or a name the row with it; for other words the rows that contain all of them."""
        number = int(self._typed) if re.fullmatch("[0-9]{1,9}", self._typed) else 0
        if 1 <= number <= len(self._rows):
            return [number - 1]
        named = [
            index for index, row in enumerate(self._rows) if self._typed and row.split()[:1] == [self._typed]
        ]
        if named:
            return named
        words = self._typed.lower().split()
        return [index for index, row in enumerate(self._rows) if all(word in row.lower() for word in words)]

    @property
    def chosen(self) -> int | None:
        fitting = self.fitting()
        return fitting[min(self._at, len(fitting) - 1)] if fitting else None

    def press(self, key: str) -> None:
        if key in (_UP, _DOWN):
            count = max(1, len(self.fitting()))
            self._at = (self._at + (1 if key == _DOWN else -1)) % count
        elif key == _BACK:
            self._typed, self._at = self._typed[:-1], 0
        elif key.isprintable():
            self._typed, self._at = self._typed + key, 0

    def lines(self, rows: int, columns: int) -> list[tuple[bool, str]]:
        """The rows around the marked one, each with whether it is that one."""
        fitting, chosen = self.fitting(), self.chosen
        at = fitting.index(chosen) if chosen is not None else 0
        first = max(0, min(at - rows // 2, len(fitting) - rows))
        width = len(str(len(self._rows)))
        shown = [
            (
                index == chosen,
                f"{'>' if index == chosen else ' '} {index + 1:{width}} {one_line(self._rows[index])}",
            )
            for index in fitting[first : first + rows]
        ]
        if more := len(fitting) - len(shown):
            shown.append((False, f"  {'':{width}} {more} more: type part of the name"))
        return [(marked, text[: columns - 1]) for marked, text in shown]


def _drawn(question: str, rows: Sequence[str]) -> int | None:
    selection, paint, above = Selection(rows), Paint(sys.stderr), 0
    with _keys() as keys:
        for key in keys:
            if key in (_ENTER, _CANCEL, _INTERRUPT):
                break
            selection.press(key)
            size = shutil.get_terminal_size()
            lines = selection.lines(max(1, min(_ROWS, size.lines - 3)), size.columns)
            texts = [paint(text, "bold") if marked else text for marked, text in lines]
            head = f"{question} {selection.typed}"[: size.columns - 1]
            _draw([*(texts or ["  no name contains that"]), head], above)
            above = max(1, len(texts))
        else:
            key = _CANCEL
    chosen = selection.chosen if key == _ENTER else None
    _draw([f"{question} {one_line(rows[chosen]) if chosen is not None else ''}"], above)
    if key == _INTERRUPT:  # raw mode has kept the terminal from sending it
        raise KeyboardInterrupt
    print(file=sys.stderr, flush=True)
    return chosen


def _draw(lines: Sequence[str], above: int) -> None:
    """Redraws: the first line drawn before is `above` lines up."""
    up = f"\x1b[{above}A" if above else ""
    print(f"\r{up}\x1b[J" + "\r\n".join(lines), end="", file=sys.stderr, flush=True)


@contextmanager
def _keys() -> Iterator[Iterator[str]]:
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield _pressed(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _pressed(descriptor: int) -> Iterator[str]:
    yield ""  # so that the rows are drawn
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    while raw := os.read(descriptor, 64):
        text = decoder.decode(raw)
        while _CUT_KEY.search(text) and select.select([descriptor], [], [], _REST_SECONDS)[0]:
            if not (raw := os.read(descriptor, 64)):
                break
            text += decoder.decode(raw)
        for key in _KEY.findall(text):
            yield _KEYS.get(key, key if len(key) == 1 else "")


def _typed(question: str, rows: Sequence[str]) -> int | None:
    for number, row in enumerate(rows, 1):
        print(f"{number:3} {one_line(row)}", file=sys.stderr)
    while True:
        print(f"{question} (number or name, Enter to cancel) ", end="", file=sys.stderr, flush=True)
        said = sys.stdin.readline().strip()
        if not said:
            return None
        selection = Selection(rows)
        for letter in said:
            selection.press(letter)
        fitting = selection.fitting()
        if len(fitting) == 1:
            return fitting[0]
        print("no match" if not fitting else f"{len(fitting)} matches: enter a number", file=sys.stderr)
