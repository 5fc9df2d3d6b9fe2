"""Values that may be references: `env:NAME`, `file:PATH`, or the value itself."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wireglot.gateway.config import read
from wireglot.gateway.config.problems import Problems, kind
from wireglot.gateway.settings import Secret

# Bytes of a file that a `file:` reference names.
_FILE_MAX_BYTES: Final = 64 * 1024
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]{0,63}|[a-z_][a-z0-9_]{0,63}")
EXPECTED: Final = '"env:NAME", "file:PATH" or the value itself'


class References:
    """Resolves references, and notes what a user should know about the files it read."""

    def __init__(
        self,
        environ: Mapping[str, str],
        base: Path,
        problems: Problems,
        notes: list[str],
        *,
        kept: Mapping[str, Secret] = {},
    ) -> None:
        """`kept`: keys that a user entered earlier, by the variables that they replace."""
        self.environ = environ
        self.kept = kept
        self.base = base
        self.problems = problems
        self.notes = notes
        self.unset: dict[int, str] = {}
        """Variables that are named but not set, by the index of their problem."""
        self.literal = False
        """Whether the configuration itself contains a secret."""

    def secret(self, value: object, path: str, min_length: int = 0) -> Secret | None:
        """Like `text`, for a secret; one that is too short is a problem."""
        found = self.text(value, path)
        if found is not None and len(found.value) < min_length:
            self.problems.add(
                path, f"a secret of {min_length} characters or more", f"one of {len(found.value)}"
            )
        if found is None or found.source != "config":
            return found
        variable = self.problems.origins.get(path)
        if variable is not None:
            return Secret(found.value, f"env:{variable}")
        self.literal = True
        return found

    def text(self, value: object, path: str) -> Secret | None:
        """None, and a problem, if there is no value. The value is never part of the problem."""
        if type(value) is not str or not value:
            self.problems.add(path, EXPECTED, kind(value))
            return None
        if value.startswith("env:"):
            return self._variable(value[4:], path)
        if value.startswith("file:"):
            return self._file(value[5:], path)
        return Secret(value, "config")

    def variable(self, *names: str) -> Secret | None:
        """The first of these that is set, or else the first kept one."""
        for name in names:
            value = self.environ.get(name, "").strip()
            if value:
                return Secret(value, f"env:{name}")
        return next((self.kept[name] for name in names if name in self.kept), None)

    def _variable(self, name: str, path: str) -> Secret | None:
        found = self.variable(name)
        if found is not None:
            return found
        if not _VARIABLE.fullmatch(name):  # perhaps the secret itself: it is not repeated
            self.problems.add(path, '"env:NAME", the name of an environment variable', "something else")
            return None
        text = "an empty one" if name in self.environ else "none"
        if name:
            self.unset[len(self.problems.found)] = name
        self.problems.add(path, f"the environment variable {name or 'that is named'} to be set", text)
        return None

    def _file(self, name: str, path: str) -> Secret | None:
        place = read.place(name, self.base)
        try:
            with place.open("rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read(_FILE_MAX_BYTES + 1)
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            self.problems.add(path, f"a text file at {place}", "bytes that are not text")
            return None
        except (OSError, ValueError) as fault:  # ValueError: an invalid file name
            reason = fault.strerror if isinstance(fault, OSError) else "an invalid file name"
            self.problems.add(path, f"a text file at {place}", reason or "an error")
            return None
        text = text.rstrip("\r\n")
        if not text or len(content) > _FILE_MAX_BYTES:
            self.problems.add(path, f"a key in {place}", "an empty file" if not text else "a file too large")
            return None
        self.warn_if_open(place, mode)
        return Secret(text, f"file:{name}")

    def warn_if_open(self, place: Path, mode: int) -> None:
        """A note, not an error: secrets that containers mount are often readable to all inside."""
        if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
            self.notes.append(f"{place} holds a secret and others on this machine can read it: chmod 600 it")


_DIGITS: Final = 10


def fingerprint(key: str) -> str:
    return hashlib.sha256(f"wireglot-account:{key}".encode()).hexdigest()[:_DIGITS]
