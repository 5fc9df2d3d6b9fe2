"""Reads a Dockerfile of the plain kind: stages of instructions, and what the last stage says of its process.

Only what can be carried out without an engine is read (`root.py` does that). Anything else is refused by
name, so that a Dockerfile that was tried is tried whole.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

DONE_IN_ORDER: Final = frozenset({"ENV", "WORKDIR", "RUN", "COPY", "USER"})
_REPORTED: Final = frozenset({"VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"})


class Unreadable(ValueError):
    """Says which line, and why it cannot be carried out here."""


@dataclass(frozen=True)
class Instruction:
    name: str
    value: str
    flags: dict[str, str] = field(default_factory=dict)

    def words(self) -> list[str]:
        """The JSON list of an exec form, or the words of a line."""
        if self.value.startswith("["):
            return [str(word) for word in json.loads(self.value)]
        return shlex.split(self.value)

    def pairs(self) -> dict[str, str]:
        """Of ENV: every `NAME=value`."""
        found = [word.partition("=") for word in shlex.split(self.value)]
        if not all(equals for _, equals, _ in found) or "$" in self.value:
            raise Unreadable(f"ENV {self.value}: expected NAME=value without variables")
        return {name: value for name, _, value in found}


@dataclass
class Stage:
    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)

    def last(self, name: str) -> Instruction | None:
        return next((each for each in reversed(self.instructions) if each.name == name), None)

    @property
    def environment(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for each in self.instructions:
            if each.name == "ENV":
                found |= each.pairs()
        return found

    @property
    def user(self) -> tuple[int, int]:
        """The numbers of USER: names would need the image's own list."""
        said = self.last("USER")
        numbers = re.fullmatch(r"(\d+):(\d+)", said.value) if said else None
        if numbers is None:
            raise Unreadable("USER: expected two numbers, UID:GID")
        return int(numbers[1]), int(numbers[2])

    @property
    def volumes(self) -> list[PurePosixPath]:
        said = [each for each in self.instructions if each.name == "VOLUME"]
        return [PurePosixPath(word) for each in said for word in each.words()]

    @property
    def directory(self) -> PurePosixPath:
        said = self.last("WORKDIR")
        return PurePosixPath(said.value if said else "/")

    def command(self, *instead: str) -> list[str]:
        """ENTRYPOINT, and CMD or what is given instead. Both in exec form: a shell would swallow signals."""
        entry, usual = self.last("ENTRYPOINT"), self.last("CMD")
        for each in (entry, usual):
            if each is not None and not each.value.startswith("["):
                raise Unreadable(f'{each.name} {each.value}: expected a list, ["word", "word"]')
        start = entry.words() if entry else []
        return [*start, *(instead or (usual.words() if usual else []))]

    @property
    def health_command(self) -> list[str]:
        said = self.last("HEALTHCHECK")
        if said is None or not said.value.startswith("CMD ["):
            raise Unreadable('HEALTHCHECK: expected CMD ["word", "word"]')
        return Instruction("CMD", said.value.removeprefix("CMD ")).words()


def parse(text: str) -> list[Stage]:
    """The stages, in order. Every one but the last has a name."""
    stages: list[Stage] = []
    for line in _lines(text):
        name, _, rest = line.partition(" ")
        name = name.upper()
        flags, value = _flags(rest.strip())
        if name == "FROM":
            base, _, alias = value.partition(" AS ")
            stages.append(Stage(base.strip(), alias.strip()))
        elif not stages:
            raise Unreadable(f"{line}: before any FROM")
        elif name in DONE_IN_ORDER | _REPORTED:
            stages[-1].instructions.append(Instruction(name, value, flags))
        else:
            raise Unreadable(f"{line}: {name} is not carried out without an engine")
    if not stages:
        raise Unreadable("no FROM")
    return stages


def _lines(text: str) -> list[str]:
    """Without comments, also not those between continued lines."""
    kept = (line.rstrip() for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"[ \t]*\\\n\s*", " ", "\n".join(kept))
    return [line.strip() for line in joined.splitlines() if line.strip()]


def _flags(rest: str) -> tuple[dict[str, str], str]:
    flags: dict[str, str] = {}
    while match := re.match(r"--([a-z-]+)=(\S+)\s+", rest):
        flags[match[1]] = match[2]
        rest = rest[match.end() :]
    return flags, rest
