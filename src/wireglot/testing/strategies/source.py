"""One draw in progress: chances, choices, and what may appear in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from hypothesis import strategies as st

from wireglot.ir.content import CacheMark, Extra, Foreign, Signature
from wireglot.testing.strategies import samples

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]

# No surrogates: they are not text, and the JSON layer has mended them before a dialect looks.
_ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
_TEXTS = st.one_of(st.sampled_from(samples.TEXTS), st.sampled_from(samples.TEXTS), _ANY_TEXT)
_DIGIT = st.integers(0, 9)


class Source:
    """One draw in progress, and what may appear in it."""

    def __init__(self, draw: Draw, plain: bool, origins: Sequence[str]) -> None:
        self.draw = draw
        self.plain = plain
        self.origins = tuple(origins)

    def chance(self, of_ten: int) -> bool:
        """True in `of_ten` cases of ten; shrinks to False."""
        return self.digit() >= 10 - of_ten

    def digit(self) -> int:
        return cast(int, self.draw(_DIGIT))

    def rare(self, of_ten: int = 1) -> bool:
        """Like `chance`, and never in plain draws."""
        return not self.plain and self.chance(of_ten)

    def one(self, options: Sequence[T]) -> T:
        return cast(T, self.draw(st.sampled_from(options)))

    def text(self) -> str:
        text = cast(str, self.draw(_TEXTS))
        return text if text.strip() or not self.plain else "Hello"  # not everyone takes blank text

    def maybe(self, make: Callable[[], T], of_ten: int = 1) -> T | None:
        return make() if self.rare(of_ten) else None

    def extra(self, place: str) -> Extra | None:
        homes = [name for name in self.origins if place in samples.EXTRA_HOMES.get(name, ())]
        if not homes or not self.rare():
            return None
        return Extra(self.one(homes), {"x_future": self.one(samples.UNKNOWN)})

    def cache(self) -> CacheMark | None:
        return self.maybe(lambda: CacheMark(self.one(("", "short", "long"))))

    def known(self, options: Sequence[Foreign]) -> list[Foreign]:
        return [option for option in options if option.dialect in self.origins]

    def signatures(self, options: Sequence[Signature]) -> list[Signature]:
        return [option for option in options if option.origin.dialect in self.origins]

    def part_signature(self) -> Signature | None:
        allowed = self.signatures((samples.PART_SIGNATURE,))
        return allowed[0] if allowed and self.rare(2) else None
