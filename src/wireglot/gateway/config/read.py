"""The configuration file: its location, and its parsed document."""

from __future__ import annotations

import errno
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from wireglot.gateway.config.environment import CONFIG_FILE, CONFIG_VARIABLE, config_dir
from wireglot.gateway.config.problems import ConfigError, ConfigProblem

# Bytes of a configuration. A device has no end, and a file by mistake may have any size.
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
_MAX_DEPTH: Final = 32
"""Nesting of tables and lists in a configuration. No setting is deeper than five."""
_DOTTED: Final = re.compile(rb"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){%d}" % _MAX_DEPTH)
"""For a name with many thousand parts the parser takes minutes, before its result could be checked."""
_POSITION: Final = re.compile(r" ?\(at (line \d+, column \d+|end of document)\)$")


def find(environ: Mapping[str, str] = os.environ) -> Path | None:
    """$WIREGLOT_CONFIG (which must then exist), ./wireglot.toml, or the one in the user's configuration
    folder."""
    named = environ.get(CONFIG_VARIABLE, "")
    if named:
        return Path(named)
    here = Path(CONFIG_FILE)
    if here.is_file():
        return here
    directory = config_dir(environ)
    theirs = directory / CONFIG_FILE if directory else None
    return theirs if theirs is not None and theirs.is_file() else None


def document(path: Path) -> dict[str, Any]:
    """The parsed TOML file; a ConfigError if it cannot be read."""
    try:
        return parse(read_file(path), str(path))
    except OSError as fault:
        problem = ConfigProblem(str(path), "a file that can be read", fault.strerror or "an error")
        raise ConfigError([problem], str(path)) from None


def read_file(path: Path) -> bytes:
    """Raises OSError, also for a file that is too large."""
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, f"more than {MAX_FILE_BYTES >> 20} MiB", str(path))
    return content


def parse(content: bytes, source: str) -> dict[str, Any]:
    too_deep = ConfigProblem(source, "valid TOML", "tables or lists nested too deep")
    try:
        if _DOTTED.search(content):
            raise ConfigError([too_deep], source)
        document = tomllib.loads(content.decode("utf-8-sig"))
        if _is_flat(document):
            return document
        problem = too_deep
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        column = fault.start - content.rfind(b"\n", 0, fault.start)
        problem = ConfigProblem(f"line {line}, column {column}", "text in UTF-8", "other bytes")
    except tomllib.TOMLDecodeError as fault:
        message = str(fault)
        position = _POSITION.search(message)
        place = position[1] if position else source
        said = _POSITION.sub("", message)
        # The parser quotes no values; at most it quotes a name that is defined twice.
        if said.startswith("Expected "):
            problem = ConfigProblem(
                place, f"valid TOML, {said.removeprefix('Expected ')}", _character(content, place)
            )
        else:
            problem = ConfigProblem(place, "valid TOML", said[:1].lower() + said[1:])
    except RecursionError:
        problem = too_deep
    except ValueError:  # a number with more digits than Python accepts; a date that does not exist
        problem = ConfigProblem(source, "valid TOML", "a number or a date that cannot be read")
    raise ConfigError([problem], source) from None


def _character(content: bytes, place: str) -> str:
    """What is at a place that the parser names: a character, never a value, which may be a key."""
    at = re.fullmatch(r"line (\d+), column (\d+)", place)
    if at is None:
        return "the end of the file"
    line, column = int(at[1]), int(at[2])
    lines = content.decode("utf-8-sig").split("\n")
    text = lines[line - 1].rstrip("\r") if line <= len(lines) else ""
    if column > len(text):
        return "the end of the line" if line < len(lines) else "the end of the file"
    return f"the character {text[column - 1]!r}"


def _is_flat(document: dict[str, Any]) -> bool:
    """Whether it can be walked by recursion. Dotted names nest without any brackets."""
    level: list[Any] = [document]
    for _ in range(_MAX_DEPTH):
        inner = [one.values() if isinstance(one, dict) else one for one in level]
        level = [one for each in inner for one in each if isinstance(one, dict | list)]
        if not level:
            return True
    return False


def table_lines(path: Path, table: str) -> dict[str, int]:
    """The lines on which the tables inside a table begin, by their names. For display: tables written in
    another way are not found."""
    header = re.compile(rf'[ \t]*\[[ \t]*{re.escape(table)}[ \t]*\.[ \t]*"?([A-Za-z0-9._-]+)"?[ \t]*\]')
    try:
        lines = read_file(path).decode("utf-8-sig", "replace").splitlines()
    except OSError:
        return {}
    found = ((header.match(line), number) for number, line in enumerate(lines, start=1))
    return {match[1]: number for match, number in found if match is not None}


def with_overrides(below: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides are nested tables or dotted paths: {"server": {"port": 1}} or {"server.port": 1}."""
    merged = dict(below)
    for name, value in overrides.items():
        if value is None:
            continue
        head, dotted, rest = name.partition(".")
        if dotted:
            value = {rest: value}
        if isinstance(value, Mapping):
            under = merged.get(head)
            merged[head] = with_overrides(under if isinstance(under, Mapping) else {}, value)
        else:
            merged[head] = value
    return merged


def referred_files(value: Any, base: Path) -> Iterator[Path]:
    """The files of all `file:` references in a document."""
    match value:
        case str() if value.startswith("file:"):
            yield place(value[5:], base)
        case list():
            for one in value:
                yield from referred_files(one, base)
        case Mapping():
            for one in value.values():
                yield from referred_files(one, base)


def place(name: str, base: Path) -> Path:
    """The file that a reference names, relative to the configuration file."""
    try:
        return base / Path(name).expanduser()
    except RuntimeError:  # the home of a user that does not exist
        return base / name
