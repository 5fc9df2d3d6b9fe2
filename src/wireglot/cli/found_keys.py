"""Which providers the keys that are there are for: one entry a key and address, and what others lack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from wireglot.gateway.settings import Provider
from wireglot.providers.spec import ProviderSpec

_NAME: Final = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")


class Lacking(NamedTuple):
    """A provider that is off although its key is there."""

    provider: str
    variable: str
    """Of its key."""
    wanted: str
    """Variables that it needs beside it; "" where the key itself is none."""

    @property
    def told(self) -> str:
        return f"{self.wanted} is not" if self.wanted else "holds no key that could be sent"


def without_covered(providers: Iterable[Provider]) -> tuple[Provider, ...]:
    """Without those of which another one, with the same key, speaks the dialects at the same addresses."""
    known = tuple(providers)
    return tuple(
        each
        for each in known
        if not any(_covers(other.spec, each.spec) for other in known if other is not each)
    )


def _covers(other: ProviderSpec, spec: ProviderSpec) -> bool:
    if not spec.api_key_env or other.api_key_env != spec.api_key_env:
        return False
    return len(other.dialects) > len(spec.dialects) and all(
        dialect in other.dialects and _base(other, dialect) == _base(spec, dialect)
        for dialect in spec.dialects
    )


def _base(spec: ProviderSpec, dialect: str) -> str:
    return spec.base_urls.get(dialect, spec.base_url)


def lacking(notes: Iterable[str]) -> Iterator[Lacking]:
    """As a configuration notes it: `provider azure is off: its key is in env:NAME, but it lacks ...`."""
    for note in notes:
        head, is_off, why = note.partition(" is off: ")
        if not is_off or not head.startswith("provider "):
            continue
        names = _NAME.findall(why)
        variable, wanted = (names[0], " and ".join(names[1:])) if names else ("", "")
        yield Lacking(head.removeprefix("provider "), variable, wanted)
