"""Output of commands for people: lines on standard error, losses, colours; and their exit statuses."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TextIO, TypeVar

if TYPE_CHECKING:
    from wireglot_core.ir.loss import Loss


def complain(text: object, *, fit: bool = True) -> None:
    """An error with its fix: one line, wrapped in a terminal."""
    say(f"wireglot: {text}", fit=fit)


def say(text: str, *, fit: bool = True) -> None:
    """Without a terminal the exit status is enough. `fit` False: for a command that is to be copied."""
    with contextlib.suppress(OSError, ValueError):
        print(fitted(text, sys.stderr) if fit else text, file=sys.stderr, flush=True)


def fitted(text: str, stream: TextIO, indent: str = "  ") -> str:
    """Wrapped between words if it is wider than the terminal; unchanged for other streams. `indent`: of
    continued lines."""
    if not stream.isatty():
        return text
    columns = shutil.get_terminal_size().columns
    return "\n".join(_broken(line, columns, indent) for line in text.split("\n"))


def _broken(line: str, columns: int, indent: str) -> str:
    if _width(line) <= columns:
        return line
    start = " " * (len(line) - len(line.lstrip(" "))) + indent
    head, colon, fix = line.rpartition(": ")
    # A fix is often a command: it is copied as a whole.
    if " " not in head.strip() or _width(start + fix) > columns:
        head, colon, fix = line, "", ""
    lines, last = list[str](), ""
    for word in re.findall(r"(?<! ) *+(?:(?:`[^`]*`|[^ `])+|`)", head + colon.rstrip()):
        if last.strip() and _width(last + word) > columns:
            lines.append(last)
            last = start + word.lstrip(" ")
        else:
            last += word
    return "\n".join([*lines, last, start + fix] if fix else [*lines, last])


def _width(text: str) -> int:
    """Without colour codes."""
    return len(re.sub(r"\x1b\[[\d;]*m", "", text))


OK: Final = 0
FAILED: Final = 1
"""It was tried and failed: no server answers, a key is rejected, a port is taken, a check failed. For `demo`
and `smoke` the status is the number of failures."""
UNUSABLE: Final = 2
"""Nothing was tried: the command line, the configuration, a file or the output cannot be used."""
NOT_EXECUTABLE: Final = 126  # what a shell reports for a program that cannot be run
NOT_FOUND: Final = 127  # and for one that is not there
HUNG_UP: Final = 129  # and for SIGHUP
INTERRUPTED: Final = 130  # for SIGINT
PIPE_CLOSED: Final = 141  # for SIGPIPE
TERMINATED: Final = 143  # for SIGTERM
MAX_FAILURES: Final = 100
"""Failures that an exit status counts: higher ones have other meanings for a shell."""


class CommandError(Exception):
    """Ends a command with one line on standard error, its message, and a status."""

    status = FAILED


class Failed(CommandError):
    """It was tried and failed."""


class Unusable(CommandError):
    """Nothing was tried: the input cannot be used."""

    status = UNUSABLE


_COLOURS = {
    "dropped": "31",
    "approximated": "33",
    "emulated": "36",
    "invented": "35",
    "serious": "31",
    "degraded": "33",
    "harmless": "2",
    "ok": "32",
    "bold": "1",
    "dim": "2",
}


class Paint:
    """Colours for one output stream; none if it is no terminal or NO_COLOR is set (https://no-color.org)."""

    def __init__(self, stream: TextIO) -> None:
        self._on = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def __call__(self, text: str, colour: str) -> str:
        code = _COLOURS[colour]  # a wrong name raises without a terminal, too
        return f"\x1b[{code}m{text}\x1b[0m" if self._on else text


class _Graded(Protocol):
    """A loss, of a translation or of a trace."""

    @property
    def grade(self) -> str: ...
    @property
    def feature(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def detail(self) -> str: ...


_L = TypeVar("_L", bound=_Graded)


def grouped(losses: Iterable[_L]) -> list[list[_L]]:
    """Losses of one kind and reason together, in the order of the first of each. Harmless ones are grouped by
    the feature alone."""
    groups: dict[tuple[str, ...], list[_L]] = {}
    for loss in losses:
        reason = "" if loss.grade == "harmless" else loss.detail
        groups.setdefault((loss.grade, loss.feature, loss.action, reason), []).append(loss)
    return list(groups.values())


def what(group: Sequence[_Graded]) -> str:
    """The feature and its count: `cache_marker x3`."""
    return group[0].feature + (f" x{len(group)}" if len(group) > 1 else "")


def why(group: Sequence[_Graded]) -> str:
    """The reason, if it is the same for all."""
    details = {loss.detail for loss in group}
    return one_line(group[0].detail) if len(details) == 1 else ""


def loss_lines(losses: Sequence[Loss], paint: Paint) -> list[str]:
    """One line for each kind of loss, the worst first: its grade, the action, the feature, the first place,
    the reason."""
    from wireglot_core.ir.loss import worst_first  # each command needs this file, but few report losses

    groups = grouped(worst_first(losses))
    width = max((len(what(group)) for group in groups), default=0)
    lines = []
    for group in groups:
        loss, reason = group[0], why(group)
        lines.append(
            f"  {paint(loss.grade.ljust(8), loss.grade)} {paint(loss.action.ljust(12), loss.action)}"
            f" {what(group).ljust(width)}  {one_line(loss.path)}"
            + (f"  {paint(reason, 'dim')}" if reason else "")
        )
    return lines


def columns_of(stream: TextIO) -> int:
    """What a line may be wide: a pipe has room for any."""
    return shutil.get_terminal_size().columns if stream.isatty() else sys.maxsize


def laid_out(rows: Sequence[Sequence[str]], columns: int, indent: str = "") -> list[list[str]]:
    """The lines of each row: a table where it fits, else the cells of each row one below the other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [indent + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    if max(map(len, lines)) <= columns:
        return [[line] for line in lines]
    wrapper = textwrap.TextWrapper(
        columns,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [
        [wrapper.fill(first), *(wrapper.fill(f"  {cell}") for cell in others if cell)]
        for first, *others in rows
    ]


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def one_line(text: str) -> str:
    """Without line breaks and control characters: paths and details can contain names from the document."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def at_home(text: str) -> str:
    """Paths with the home abbreviated."""
    home = os.environ.get("HOME", "").rstrip("/")
    return text.replace(f"{home}/", "~/") if home else text
