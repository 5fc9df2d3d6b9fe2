"""Finds, asks, writes, tells."""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from wireglot.cli.ask_providers import ask_providers
from wireglot.cli.exit_status import OK, UNUSABLE
from wireglot.cli.init.candidates import Found, find_candidates, provider_environment
from wireglot.cli.init.place import CannotWrite, check_place, place_for, write
from wireglot.cli.init.report import Report, document
from wireglot.cli.init.written_config import config_text
from wireglot.cli.telling import complain
from wireglot.cli.trust import trust
from wireglot.gateway import config

_STANDARD_OUTPUT: Final = "-"


class Wanted(msgspec.Struct, frozen=True):
    """What the command line asks for."""

    output: str = ""
    user: bool = False
    force: bool = False
    offline: bool = False
    json: bool = False


def set_up(wanted: Wanted) -> int:
    try:
        return _set_up(wanted)
    except (CannotWrite, config.ConfigError) as problem:
        complain(problem)
        return UNUSABLE


def _set_up(wanted: Wanted) -> int:
    printed = wanted.output == _STANDARD_OUTPUT
    if printed and wanted.json:
        raise CannotWrite("--json and --output - exclude each other")
    place = place_for(wanted.output, user=wanted.user, environ=os.environ)
    if not printed:
        check_place(place, force=wanted.force)
    before = config.find()
    report = Report(sys.stderr if printed else sys.stdout)
    found = find_candidates(os.environ)
    if not wanted.json:
        report.before(found, offline=wanted.offline)
    if not wanted.offline:
        found = _asked(found)
    text = config_text(found, date.today())
    # What is written must load, whatever names a catalog or an answer brings.
    config.load(place, environ=provider_environment(os.environ), create_secret=False, content=text.encode())
    if not wanted.json:
        report.after(found)
    if printed:
        print(text, end="")
        return OK
    write(place, text, force=wanted.force)
    trust(place)
    if wanted.json:
        print(msgspec.json.encode(document(found, str(place))).decode())
    else:
        report.end(place, _shadowed(before, place))
    return OK


def _asked(found: Found) -> Found:
    answers = {each.provider: each for each in ask_providers([each.provider for each in found.candidates])}
    return msgspec.structs.replace(
        found,
        candidates=tuple(
            msgspec.structs.replace(each, answered=answers.get(each.name)) for each in found.candidates
        ),
    )


def _shadowed(before: Path | None, place: Path) -> Path | None:
    """A file of before that would not be found any more."""
    now = config.find()
    if before is None or now is None or before == now:
        return None
    return before if now.absolute() == place.absolute() else None
