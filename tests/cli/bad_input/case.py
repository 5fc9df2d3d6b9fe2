"""What a cell of the table of bad input holds: a command line, what it answers, and how it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

COLUMNS: Final = {
    "typo": "a word that is not known: command, option, model, provider, value",
    "missing file": "a file that is not there, is a folder, cannot be read, or holds something else",
    "wrong key": "a client key, a provider's key or an admin secret that is missing, wrong or cannot be sent",
    "dead host": "nobody listens, no such name, silence, another protocol",
    "port in use": "an address that cannot be listened on",
    "no terminal": "no terminal at either end, no TERM, 20 columns",
    "broken pipe": "an output that is closed, full or left by its reader",
    "ctrl-c": "SIGINT, SIGTERM and SIGHUP, at the start, at work, while waiting",
}

How = Literal["here", "process", "pipe left", "disk full", "output closed"]
"""`here`: in this process, where a process of its own would do the same. The others are real processes; in
`make full` all are."""


@dataclass(frozen=True)
class Case:
    """`says`: all of standard error, without the `wireglot: ` before it; "" for silence. `line` and `says` may
    name what the world holds, in braces. `out`: what standard output begins with, None for anything.
    `note`: what is said is no complaint, and stands there as it is."""

    line: str
    status: int = 2
    says: str = ""
    out: str | None = ""
    env: Mapping[str, str] = field(default_factory=dict)
    given: str = ""
    how: How = "here"
    at: str = ""
    """The module at whose import the process gets `signal`."""
    signal: str = "SIGINT"
    while_asking: bool = False
    """The process gets the signal once it waits for the silent host."""
    until: str = ""
    """The process gets the signal once it has said this."""
    before: tuple[str, ...] = ()
    """Commands that make what this one is about."""
    note: bool = False


Cell = tuple[Case, ...] | str
"""Cases, or why the column does not apply."""


def interrupted(line: str, at: str, **more: str) -> tuple[Case, ...]:
    """Ctrl-C when the work begins: the module that does it is just being loaded."""
    return (Case(line, 130, "interrupted", out=None, how="process", at=at, env=more),)


def reader_leaves(line: str, says: str = "", *, before: tuple[str, ...] = ()) -> tuple[Case, ...]:
    """`| head -1`, at the worst moment."""
    return (Case(line, 141, says, out=None, how="pipe left", before=before),)
