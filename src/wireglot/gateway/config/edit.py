"""Edits the configuration file from the inspector's page: shown without its secrets, changed with comments
and order preserved, and written atomically."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.gateway.config import read
from wireglot.gateway.config.environment import CONFIG_FILE, CONFIG_VARIABLE, config_dir, variables
from wireglot.gateway.config.kept_keys import one_at_a_time
from wireglot.gateway.config.problems import ConfigError, key_path
from wireglot.http.redaction import Redactor

# Bytes of a configuration that the inspector's page edits.
MAX_BYTES: Final = 1024 * 1024
_MASK: Final = "[hidden]"
"""Replaces hidden text."""
_NAME: Final = (
    r"(?i:api_keys?|secrets?|token|password|metrics_key|access_key"
    r"|-key|-auth|authorization|cookie)"  # like names of headers
)
_FIELD: Final = r"""((?:^[\s#]*+|[{,]\s*+)["']?[\w.-]*""" + _NAME + r"""["']?\s*=\s*)"""
_REFERENCE: Final = "(?!env:|file:)"
_NAMED: Final = re.compile(
    _FIELD
    + rf"""("{{3}}{_REFERENCE}(?:[^"\\]|\\.|"(?!""))++"{{3}}|'{{3}}{_REFERENCE}(?:[^']|'(?!''))++'{{3}}"""
    rf"""|"(?!"){_REFERENCE}(?:[^"\\]|\\.)++\\?"?|'(?!'){_REFERENCE}[^']++'?)"""
)
"""A field that contains a secret by its name, on one line: also in a comment, in a table on that line, or
with a quote that is never closed."""
_LISTED: Final = re.compile(_FIELD + r"""\[[^\[\]]*["'](?!env:|file:|[\s,\]])[^\[\]]*""")
"""The same, for a list of values."""
_OPENED: Final = re.compile(_FIELD + r"""(\[|"{3}|'{3})""")
"""A field whose value may continue on the next line."""
_TOKEN: Final = re.compile(r"""'[^']*+'?|"(?:[^"\\]|\\.)*+"?|#|[\[\]]""")
_TEXT_END: Final = re.compile(r"""(?:[^"\\]|\\.|"(?!""))*+\"{3}""")
_TEXT: Final = re.compile(r"""(["'])(?!env:|file:|\1|[\s,\]#])(?:(?!\1).)++(?:\1|$)""")
_PASSWORD: Final = re.compile(r"(://[^/\s:@\"']*+:)(?:(?!://)[^@\s\"'])++@")
"""It ends before the next URL: otherwise, with many URLs, each would be scanned to the end of the line."""
_HEADER: Final = re.compile(r"^\s*\[")
_PLACE: Final = re.compile(r"([-+])(\d+)")
_SECRET_KEY: Final = re.compile(_NAME + r"\Z")
# Lines of a configuration that are compared with the previous ones to show a change: comparing takes the
# product of both in the worst case. In a longer one all changes are shown as one block.
MAX_COMPARED_LINES: Final = 1000
_FREE: Final = frozenset({"models", "prices", "currency", "losses"})
"""Tables that contain no host, file or variable, and grant no access."""
_FREE_OF_PROVIDER: Final = frozenset({"models", "title"})


class EditRefused(Exception):
    """Nothing was written. `code`: of the error that reports it."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ConfigSource(msgspec.Struct, frozen=True):
    """Where the configuration of a process comes from."""

    path: Path | None = None
    environ: Mapping[str, str] = {}
    overrides: Mapping[str, Any] = {}
    why_fixed: str = ""
    """Why the process would not load a change; "": it does."""
    why_not: Callable[[bytes], str] | None = None
    """Why content must not be loaded, or ""."""
    approve: Callable[[Path, bytes], None] | None = None
    """Called before content is written that needs its user's approval."""
    reload: Callable[[], None] = lambda: None
    bound: Callable[[], Iterable[str]] = tuple
    """The addresses that the process listens on."""

    @property
    def effective(self) -> Path | None:
        """The file that is loaded, if there is one."""
        later = later_file(self.environ) if self.path is None else None
        return later if later is not None and later.is_file() else self.path

    def file(self) -> Path | None:
        """The file in effect, or the one that would be created: in the user's own configuration folder."""
        return self.path or later_file(self.environ)

    def variables(self) -> list[str]:
        """The settings of the file that are overridden, by variables and on the command line."""
        found = [
            f"{setting.env} sets {key_path(table, setting.name)}"
            for table, setting in variables()
            if self.environ.get(setting.env)
        ]
        for table, given in self.overrides.items():
            names = [key_path(table, name) for name in given] if isinstance(given, Mapping) else [table]
            found += [f"the command line sets {name}" for name in names]
        return found


def later_file(environ: Mapping[str, str]) -> Path | None:
    """The file that a gateway without a configuration loads once it exists."""
    home = config_dir(environ)
    return home / CONFIG_FILE if home is not None and not environ.get(CONFIG_VARIABLE) else None


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def content_of(path: Path) -> bytes:
    """b"" if there is no file yet. Raises EditRefused."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as fault:
        raise EditRefused(f"{path} cannot be read: {fault.strerror}", "file_unreadable") from None
    if len(content) > MAX_BYTES:
        raise EditRefused(f"{path} is too large to be edited here", "file_unreadable")
    try:
        content.decode()
    except UnicodeDecodeError:
        raise EditRefused(f"{path} is not text in UTF-8", "file_unreadable") from None
    return content


def why_unwritable(path: Path) -> str:
    """The reason why it cannot be written now, keeping its mode and owner; "" if it can."""
    target = Path(os.path.realpath(path))
    if not target.exists():
        return _why_uncreatable(target)
    if not os.access(target, os.W_OK):
        return f"{target} is read-only for the gateway"
    if not os.access(target.parent, os.W_OK):
        return f"{target.parent} is read-only for the gateway, and a file is written by replacing it"
    about = target.stat()
    if os.name == "posix" and about.st_uid != os.geteuid() and os.geteuid() != 0:
        return f"{target} belongs to another user, and writing it would change its owner"
    return ""


def _why_uncreatable(target: Path) -> str:
    folder = next(each for each in target.parents if each.exists())
    return "" if os.access(folder, os.W_OK) else f"{folder} is read-only for the gateway"


class HiddenLines:
    """A text without its secrets, and the way back: a line with a secret may stay in place or be removed."""

    def __init__(self, text: str, redactor: Redactor) -> None:
        self._redactor = redactor
        self._lines = text.split("\n")
        self._shown = _shown_text(text, redactor)

    @property
    def text(self) -> str:
        return "\n".join(self._shown)

    def restored(self, text: str) -> str:
        """An edited text with the hidden parts restored. Raises EditRefused."""
        lines = text.split("\n")
        tables, wanted = _tables(self._shown), _tables(lines)
        alike = Counter(zip(tables, self._shown, strict=True))
        given = Counter(zip(wanted, lines, strict=True))
        at = 0
        for number, line in enumerate(lines):
            if _MASK not in line:
                continue
            places = range(at, len(self._shown))
            found = next(
                (each for each in places if self._shown[each] == line and tables[each] == wanted[number]), -1
            )
            if found < 0:
                raise EditRefused(
                    f"line {number + 1}: a line with {_MASK} must stay unchanged in its place; or write "
                    'a new value, "env:NAME" or "file:PATH" instead',
                    "hidden_value_moved",
                )
            if alike[tables[found], line] not in (1, given[wanted[number], line]):
                raise EditRefused(
                    f"line {number + 1}: equal lines with {_MASK} must all be kept or all be removed; write "
                    'new values, "env:NAME" or "file:PATH" instead',
                    "hidden_value_moved",
                )
            lines[number] = self._lines[found]
            at = found + 1
        return "\n".join(lines)

    def difference(self, text: str) -> list[str]:
        """A unified diff in lines, without secrets. A change of only a secret is marked."""
        after = _shown_text(text, self._redactor)
        before = list(self._shown)
        if before == after and text.split("\n") != self._lines:
            after = [
                f"{line}  # changed" if mine != its else line
                for line, mine, its in zip(after, self._lines, text.split("\n"), strict=True)
            ]
        return _difference(before, after)


def _difference(before: list[str], after: list[str]) -> list[str]:
    around = 3
    head = _equal(before, after)
    tail = _equal(before[head:][::-1], after[head:][::-1])
    if max(len(before), len(after)) - head - tail <= MAX_COMPARED_LINES:
        start, end = max(0, head - around), max(0, tail - around)
        lines = difflib.unified_diff(
            before[start : len(before) - end], after[start : len(after) - end], lineterm="", n=around
        )
        return [_moved(line, start) for line in list(lines)[2:]]
    removed, added = before[head : len(before) - tail], after[head : len(after) - tail]
    return [
        f"@@ -{head + 1},{len(removed)} +{head + 1},{len(added)} @@",
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
    ]


def _equal(first: list[str], second: list[str]) -> int:
    """How many lines at the beginning are equal."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))


def _moved(line: str, by: int) -> str:
    """A line of a difference; in a header, with line numbers of the whole texts."""
    if not by or not line.startswith("@@"):
        return line
    return _PLACE.sub(lambda found: f"{found[1]}{int(found[2]) + by}", line)


def _shown_text(text: str, redactor: Redactor) -> list[str]:
    """The lines without what their names say is secret, and without the values that the parsed document has
    under such names, however it spells them."""
    try:
        values = list(_secrets_in(read.parse(text.encode("utf-8", "surrogatepass"), "")))
    except ConfigError:
        values = []
    return _shown_lines(text.split("\n"), redactor.knowing(values) if values else redactor)


def _secrets_in(value: Any, named: bool = False) -> Iterator[str]:
    match value:
        case str() if named and not value.startswith(("env:", "file:")):
            yield value
        case list():
            for one in value:
                yield from _secrets_in(one, named)
        case dict():
            for key, one in value.items():
                yield from _secrets_in(one, _SECRET_KEY.search(key) is not None)


def _shown(line: str, redactor: Redactor) -> str:
    named = _LISTED.sub(rf"\1[{_MASK}", _NAMED.sub(_masked, line))
    named = _PASSWORD.sub(rf"\1{_MASK}@", named)
    return redactor.text(named).replace("[redacted]", _MASK)


def _masked(found: re.Match[str]) -> str:
    field, value = found.group(1, 2)
    quote = value[:3] if value[:3] in ('"""', "'''") else value[0]
    return f"{field}{quote}{_MASK}{quote if value.endswith(quote) else ''}"


def _shown_lines(lines: Sequence[str], redactor: Redactor) -> list[str]:
    """A value of several lines is hidden to its end, or to that of the text."""
    found: list[str] = []
    ends, depth = "", 0  # what ends the open value, and the depth of nested lists
    for line in lines:
        if ends:
            place, depth = _end_of(line, ends, depth)
            after = line[place:] if place >= 0 else ""
            # A list may have comments with old values in them, and references, which are shown.
            shown = _TEXT.sub(rf"\1{_MASK}\1", line) if ends == "]" else f"{_MASK}{after}"
            found.append(redactor.text(shown).replace("[redacted]", _MASK))
            ends = "" if place >= 0 else ends
            continue
        found.append(_shown(line, redactor))
        place = 0
        for opened in _OPENED.finditer(line):
            if opened.start() < place:  # within the value before it
                continue
            ends = "]" if opened[2] == "[" else opened[2]
            place, depth = _end_of(line, ends, 1, opened.end())
            if place < 0:
                if ends != "]":
                    found[-1] = f"{_shown(line[: opened.start()], redactor)}{opened[0]}{_MASK}"
                break
            ends = ""
    return found


def _end_of(line: str, ends: str, depth: int, start: int = 0) -> tuple[int, int]:
    """Where a value ends (-1: not on this line), and the depth of nested lists there."""
    if ends == '"""':  # quotes in it may be escaped
        found = _TEXT_END.match(line, start)
        return found.end() - len(ends) if found is not None else -1, 0
    if ends != "]":
        return line.find(ends, start), 0
    if not start:
        start = len(line) - len(line.lstrip("# \t"))  # the whole line may be a comment
    for token in _TOKEN.finditer(line, start):
        if token[0].startswith("#"):
            break
        depth += {"[": 1, "]": -1}.get(token[0], 0)
        if not depth:
            return token.start(), 0
    return -1, depth


def _tables(lines: Sequence[str]) -> list[str]:
    """The table header above each line."""
    found, header = [], ""
    for line in lines:
        if _HEADER.match(line):
            header = line.strip()
        found.append(header)
    return found


def changed_text(text: str, changes: Sequence[tuple[Sequence[str], Any]]) -> str:
    """The text with values set at paths (None: removed); everything else, including comments, is preserved.
    Raises EditRefused."""
    # Only needed here, for writing; Python has the reader.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        for path, value in changes:
            table: Any = document
            for name in path[:-1]:
                if name not in table:
                    if value is None:
                        break
                    table[name] = tomlkit.table(is_super_table=name == "providers")
                table = table[name]
            else:
                if value == {}:  # an existing one is kept
                    table.setdefault(path[-1], tomlkit.table())
                elif value is not None:
                    table[path[-1]] = value
                elif path[-1] in table:
                    del table[path[-1]]
        return tomlkit.dumps(document)
    except (TOMLKitError, TypeError, ValueError, AttributeError) as problem:
        place = key_path(changes[0][0][0], changes[0][0][-1])
        why = f"the file cannot be changed at {place} ({type(problem).__name__}): edit its text"
        raise EditRefused(why, "not_editable") from None


def beyond_models(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The tables that differ, except those that contain no host, file or variable and grant no access."""
    found = [
        name
        for name in dict.fromkeys((*before, *after))
        if name not in _FREE and name != "providers" and before.get(name) != after.get(name)
    ]
    old, new = before.get("providers", {}), after.get("providers", {})
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return [*found, *(["providers"] if old != new else [])]
    for name in dict.fromkeys((*old, *new)):
        mine, its = old.get(name, {}), new.get(name, {})
        if (name in new) == (name in old) and mine == its:
            continue
        if name not in new or not isinstance(mine, Mapping) or not isinstance(its, Mapping):
            found.append(key_path("providers", name))
            continue
        fields = {*mine, *its} - _FREE_OF_PROVIDER
        if any(mine.get(each) != its.get(each) for each in fields):
            found.append(key_path("providers", name))
    return found


def changed_meanwhile(path: Path) -> EditRefused:
    return EditRefused(
        f"{path} was changed by another program in the meantime: load it again", "file_changed"
    )


def write(source: ConfigSource, path: Path, before: str, content: bytes) -> None:
    """Replace the content that has the digest `before`, keeping the file's mode and owner. Raises
    EditRefused."""
    target = Path(os.path.realpath(path))  # a symbolic link stays one
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with one_at_a_time(target.parent):
            if digest_of(content_of(target)) != before:
                raise changed_meanwhile(path)
            if source.approve is not None:
                source.approve(path, content)
            _replace(target, content)
    except OSError as fault:
        raise EditRefused(f"{path} cannot be written: {fault.strerror or fault}", "file_unwritable") from None


def _replace(target: Path, content: bytes) -> None:
    about = target.stat() if target.exists() else None
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if about is not None and os.name == "posix":
                if (about.st_uid, about.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), about.st_uid, about.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(about.st_mode))
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def parsed(content: bytes, path: Path) -> dict[str, Any]:
    """Raises ConfigError."""
    return read.parse(content, str(path))
