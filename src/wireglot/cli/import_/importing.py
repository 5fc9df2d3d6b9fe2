"""Reads the source, writes the new configuration, keeps keys and reports the result: all the I/O of an
import."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from wireglot.cli.import_.ccr import convert as convert_ccr
from wireglot.cli.import_.draft import Draft, ImportReport, format_counts, written
from wireglot.cli.import_.litellm import convert as convert_litellm
from wireglot.cli.import_.litellm import with_included
from wireglot.cli.import_.source import UnreadableSource, read_json5, read_yaml
from wireglot.cli.init import check_place, write
from wireglot.cli.terminal import FAILED, OK, Unusable, one_line, say
from wireglot.gateway.config import ConfigError, load
from wireglot.gateway.config.kept_keys import keep, kept_file, read_kept

# Bytes of a configuration that is imported.
_MAX_SOURCE_BYTES: Final = 4 * 1024 * 1024
_STANDARD: Final = "-"
_KEEPABLE_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_KEEPABLE: Final = re.compile(r"[\x21-\x7e]+")


def run(wanted: argparse.Namespace) -> int:
    place = kept_file(os.environ)
    known = {name: secret.value for name, secret in read_kept(place, []).items()}
    known |= {name: value for name, value in os.environ.items() if value.strip()}
    try:
        if wanted.output != _STANDARD:
            check_place(Path(wanted.output), force=wanted.force)
        draft, report = CONVERTERS[wanted.program](wanted.source, known)
        text = written(draft, report, f"wireglot import {wanted.program} {Path(wanted.source).name}")
        kept = _keep(draft, place) if wanted.keep_keys else []
        if wanted.output == _STANDARD:
            print(text, end="", flush=True)
        else:
            write(Path(wanted.output), text, force=wanted.force)
    except Unusable as reason:
        raise Unusable(one_line(str(reason))) from None
    except UnreadableSource as fault:
        raise Unusable(f"{one_line(wanted.source)}: {one_line(str(fault))}") from None
    for warning in report.warnings:
        _say(f"{wanted.source}: {warning}")
    _say(format_counts(report))
    _tell_variables(draft, kept, known)
    return _tell_whether_it_loads(draft, text, wanted.output)


def _litellm(source: str, known: Mapping[str, str]) -> tuple[Draft, ImportReport]:
    folder = Path() if source == _STANDARD else Path(source).parent
    root, overridden = read_yaml(_text(source))
    root, more = with_included(root, lambda name: read_yaml(_text(str(folder / name)), name))
    return convert_litellm(root, known, [*overridden, *more])


def _ccr(source: str, known: Mapping[str, str]) -> tuple[Draft, ImportReport]:
    return convert_ccr(read_json5(_text(source)), known)


CONVERTERS: Final[dict[str, Callable[[str, Mapping[str, str]], tuple[Draft, ImportReport]]]] = {
    "litellm": _litellm,
    "ccr": _ccr,
}


def _text(source: str) -> str:
    try:
        if source == _STANDARD:
            content = sys.stdin.buffer.read(_MAX_SOURCE_BYTES + 1)
        else:
            with open(source, "rb") as file:
                content = file.read(_MAX_SOURCE_BYTES + 1)
    except (OSError, ValueError) as fault:  # ValueError: a name that no file can have
        reason = fault.strerror if isinstance(fault, OSError) else "invalid file name"
        raise UnreadableSource(reason or "cannot be read") from None
    if len(content) > _MAX_SOURCE_BYTES:
        raise UnreadableSource("too large for a configuration")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise UnreadableSource(f"line {line}: not text in UTF-8") from None


def _keep(draft: Draft, place: Path | None) -> list[str]:
    """Keep the keys in the source; returns the names they are kept under."""
    if place is None:
        raise Unusable("keys cannot be stored: the environment contains no home folder")
    kept = []
    for name in draft.secrets.needed:
        value = draft.secrets.literal.get(name, "")
        if not _KEEPABLE.fullmatch(value) or not _KEEPABLE_NAME.fullmatch(name):
            continue
        try:
            keep(place, name, value)
        except OSError as fault:
            raise Unusable(f"{place}: {fault.strerror or fault}") from None
        kept.append(name)
    return kept


def _tell_variables(draft: Draft, kept: list[str], known: Mapping[str, str]) -> None:
    needed = [name for name in draft.secrets.needed if name not in known and name not in kept]
    here = [name for name in needed if name in draft.secrets.literal]
    if kept:
        _say(f"stored for the gateway: {', '.join(kept)}")
    if needed:
        _say(f"before starting it, set {', '.join(needed)}")
    if here:
        _say(f"the source contains {', '.join(here)}; --keep-keys stores them for the gateway")
    for hint in draft.hints:
        _say(hint)


def _tell_whether_it_loads(draft: Draft, text: str, output: str) -> int:
    problems, notes = _loaded(draft, text)
    for problem in problems:
        _say(f"it does not load yet: {problem}")
    for note in notes:
        _say(note)
    if not draft.rules and draft.discover is False:
        _say("no model was carried over")
        return FAILED
    if output != _STANDARD:
        _say(f"wrote {output}; read the list at its end, then run: wireglot config check {output}")
    return FAILED if problems else OK


def _say(line: str) -> None:
    """On standard error, since standard output may be the file: one line for a pipe, wrapped lines for a
    terminal."""
    said = f"wireglot: {one_line(line)}"
    if sys.stderr.isatty():
        columns = shutil.get_terminal_size().columns
        said = textwrap.fill(
            said, columns, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
    say(said)


def _loaded(draft: Draft, text: str) -> tuple[list[str], list[str]]:
    """The loader's messages about the result, once its variables are set: problems if a file or a package is
    missing here, and notes on retired models."""
    environ = {"HOME": os.environ.get("HOME", "")}
    for number, name in enumerate(draft.secrets.needed):
        stand_in = f"http://stand-in-{number}:1" if "PROXY" in name else f"stand-in-{number}"
        environ[name] = draft.secrets.value(name) or stand_in
    try:
        settings = load(Path("wireglot.toml"), environ=environ, create_secret=False, content=text.encode())
    except ConfigError as error:
        return [str(problem) for problem in error.problems], []
    return [], [note for note in settings.notes if note.startswith("models:")]
