"""Code that a provider has run, and its result: parts of one dialect in the form of another."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from wireglot_core.dialects.capabilities import CodeForm
from wireglot_core.ir.content import Foreign
from wireglot_core.ir.hosted import RanCall
from wireglot_core.ir.loss import Loss


class CodeConverter(Struct, eq=False):
    """The parts of one conversation or answer, in order. `new_id` makes the id of a call from its number and
    the id that it has, "" if it has none."""

    source: CodeForm
    target: CodeForm
    new_id: Callable[[int, str], str]
    _ids: dict[str, str] = {}
    """The new id of each call; of those without an id the last one's."""
    _calls: int = 0

    def convert(self, part: Foreign, path: str, losses: list[Loss]) -> Foreign | None:
        """Returns None for any other part, and for a result without its call."""
        found = self.source.read(part)
        if found is None:
            return None
        call = found.call
        if call is not None:
            self._calls += 1
            self._ids[found.id] = id = self.new_id(self._calls, found.id)
            return self.target.render(RanCall(id, replace(call, id=id)), path, losses)
        known = self._ids.get(found.id)
        return None if known is None else self.target.render(replace(found, id=known), path, losses)
