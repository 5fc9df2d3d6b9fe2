"""One case of the published list, and the themes that cases stand under."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from wireglot.probe.talk import Talk

Level = Literal["must", "should"]
"""must: clients break where it does not hold. should: they can do without."""

Cost = Literal["free", "small", "medium", "large"]
"""free: no tokens are spent by a good endpoint. small: one short answer or two. medium: several. large: only
where it is asked for."""

DIALECTS: Final = ("anthropic", "openai-chat", "openai-responses", "gemini")
WEIGHTS: Final[dict[Level, int]] = {"must": 3, "should": 1}


class ProbeCase(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    sends: str
    expects: str
    why: str
    """What breaks otherwise, and where it is written."""
    check: Callable[[Talk], None]
    level: Level = "must"
    cost: Cost = "small"
    dialects: tuple[str, ...] = DIALECTS
    excuses: tuple[str, ...] = ()
    """What an answer may say it left out: then the case does not apply, as if it had been refused."""

    @property
    def theme(self) -> str:
        return self.id.partition(".")[0]

    @property
    def weight(self) -> int:
        return WEIGHTS[self.level]


class Theme:
    """Cases in the order in which they are declared."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.cases: list[ProbeCase] = []

    def case(
        self,
        name: str,
        title: str,
        *,
        sends: str,
        expects: str,
        why: str,
        level: Level = "must",
        cost: Cost = "small",
        dialects: tuple[str, ...] = DIALECTS,
        excuses: tuple[str, ...] = (),
    ) -> Callable[[Callable[[Talk], None]], Callable[[Talk], None]]:
        def declare(check: Callable[[Talk], None]) -> Callable[[Talk], None]:
            self.cases.append(
                ProbeCase(
                    id=f"{self.name}.{name}",
                    title=title,
                    sends=sends,
                    expects=expects,
                    why=why,
                    check=check,
                    level=level,
                    cost=cost,
                    dialects=dialects,
                    excuses=excuses,
                )
            )
            return check

        return declare
