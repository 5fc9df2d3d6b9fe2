"""What `wireglot init` tells: who is on, who is off and why, and what comes next."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from wireglot.cli.ask_providers import Answered, first_question, host_of
from wireglot.cli.init.candidates import Candidate, Found
from wireglot.cli.paint import Paint, count, one_line
from wireglot.cli.run.clients import CLIENTS

_MODELS_SHOWN: Final = 3
_USUAL_CLIENT: Final = "claude"
_PIPE_COLUMNS: Final = 1000
_STATES: Final = {
    "on": "ok",
    "untested": "approximated",
    "no answer": "approximated",
    "trouble": "approximated",
    "wrong key": "dropped",
    "off": "dim",
}
"""With their colours."""


class Row(msgspec.Struct, frozen=True):
    """One provider of the table."""

    state: str
    name: str
    key: str
    why: str
    words: str = ""
    """The provider's own."""


def next_step() -> tuple[str, str]:
    """A command, and what has to be done before it."""
    here = [name for name in (_USUAL_CLIENT, *CLIENTS) if shutil.which(CLIENTS[name].program) is not None]
    client = here[0] if here else _USUAL_CLIENT
    return f"wireglot run {client}", "" if here else CLIENTS[client].install


def rows(found: Found) -> list[Row]:
    """Who can be asked first."""
    order = list(_STATES)
    return sorted(_rows(found), key=lambda row: order.index(row.state))


def _rows(found: Found) -> Iterator[Row]:
    for each in found.candidates:
        yield _row(each)
    for lack in found.lacking:
        yield Row("off", lack.provider, lack.variable, lack.told)
    for name, sign in found.logins:
        yield Row("off", name, sign, f"[providers.{name}] would sign in with it")
    if not any(each.is_written for each in found.candidates):
        yield Row("on", "demo", "", "a model inside this program: no key, nothing leaves this machine")


def _row(each: Candidate) -> Row:
    key = f"{each.variable}{' (kept)' if each.kept else ''}" or host_of(each.provider.spec.base_url)
    answered = each.answered
    if answered is None:
        return Row("off" if each.is_local else "untested", each.name, key, "not asked")
    if answered.is_on:
        return Row("on", each.name, key, _listed(answered))
    if each.is_local:
        there = answered.outcome != "silent"
        return Row("off", each.name, key, "something else answers there" if there else "nobody is there")
    match answered.outcome:
        case "refused":
            return Row("wrong key", each.name, key, "", answered.words)
        case "silent":
            return Row("no answer", each.name, key, f"{answered.host}: {answered.words}")
        case "forbidden":
            why = "it does not let this key ask, or only through clients that it knows"
        case "unpaid":
            why = "the key is taken, the account is not"
        case "busy":
            why = "it is busy, or the key has asked too much"
        case _:
            why = f"it answered with status {answered.status}"
    return Row("trouble", each.name, key, why, answered.words)


def _listed(answered: Answered) -> str:
    took = f"{answered.milliseconds} ms"
    if not answered.models:
        return f"answered in {took}"
    shown = ", ".join(answered.models[:_MODELS_SHOWN])
    more = ", ..." if len(answered.models) > _MODELS_SHOWN else ""
    return f"{count(len(answered.models), 'model')} in {took}: {shown}{more}"


class Report:
    """For people, on one stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._paint = Paint(stream)
        self._columns = shutil.get_terminal_size().columns if stream.isatty() else _PIPE_COLUMNS

    def before(self, found: Found, *, offline: bool) -> None:
        keys = sum(not each.is_local for each in found.candidates)
        self._say(f"Found {count(keys, 'key') if keys else 'no key'} of providers.", "bold")
        if offline:
            self._say("Nobody is asked (--offline).")
            return
        self._say("Each is asked once, and no tokens are spent (--offline asks nobody):")
        width = max((len(each.name) for each in found.candidates), default=0)
        for each in found.candidates:
            self._say(f"  {each.name.ljust(width)}  {first_question(each.provider)}", "dim")

    def after(self, found: Found) -> None:
        self._say("")
        table = rows(found)
        states = max(len(row.state) for row in table)
        names = max(len(row.name) for row in table)
        keys = max(len(row.key) for row in table)
        for row in table:
            head = f"{row.state.ljust(states)}  {row.name.ljust(names)}"
            start = f"  {head}  {row.key.ljust(keys)}  " if keys else f"  {head}  "
            self._row(row, start, states)
        if found.others:
            told = (
                f"{count(found.others, 'more provider')} can be on: `wireglot models` tells what they want."
            )
            self._say(f"\n{told}")

    def _row(self, row: Row, start: str, states: int) -> None:
        """What does not fit behind the row stands under it."""
        why = [*filter(None, [row.why, f"it says: {row.words}" if row.words else ""])]
        under = " " * (states + 4)
        if len(start) + max(map(len, map(one_line, why))) <= self._columns:
            lines = [start + one_line(why[0]), *(" " * len(start) + one_line(text) for text in why[1:])]
        else:
            lines = [start.rstrip()]
            for text in why:
                lines += textwrap.wrap(
                    one_line(text), self._columns, initial_indent=under, subsequent_indent=under,
                    break_long_words=False, break_on_hyphens=False,
                )  # fmt: skip
        state = row.state.ljust(states)
        first = lines[0].replace(f"  {state}", f"  {self._paint(state, _STATES[row.state])}", 1)
        for line in (first, *lines[1:]):
            self._say(line)

    def end(self, place: Path, shadowed: Path | None) -> None:
        command, install = next_step()
        self._say(f"\nWrote {self._paint(one_line(str(place)), 'bold')}: it names keys, and holds none.")
        if shadowed is not None:
            self._say(f"Here it is found before {one_line(str(shadowed))}.")
        if install:
            self._say(f"first: {install}")
        self._say(f"next: {self._paint(command, 'bold')}")

    def _say(self, text: str, colour: str = "") -> None:
        print(self._paint(text, colour) if colour else text, file=self._stream, flush=True)


def document(found: Found, place: str) -> dict[str, Any]:
    command, _ = next_step()
    by_name = {each.name: each for each in found.candidates}
    return {
        "written": place,
        "providers": [_entry(row, by_name.get(row.name)) for row in rows(found)],
        "others": found.others,
        "next": command,
    }


def _entry(row: Row, each: Candidate | None) -> dict[str, Any]:
    answered = each.answered if each is not None else None
    told: dict[str, Any] = {"name": row.name, "state": row.state, "why": row.why}
    if each is not None and each.variable:
        told |= {"key": each.variable, "kept": each.kept}
    if row.words:
        told["words"] = row.words
    if answered is not None:
        told |= {
            "asked": answered.question,
            "status": answered.status,
            "milliseconds": answered.milliseconds,
            "models": list(answered.models),
        }
    return told
