"""Which rows are asked for: filters of the list, a stretch of time, a page of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from wireglot.traces.trace import Row

_HUNDREDS: Final = re.compile(r"([1-5])xx")
_GRADES: Final = ("serious", "degraded", "harmless")
_SEARCHED: Final = (
    "id", "client", "agent", "dialect", "operation", "path", "key", "session", "asked", "provider", "model",
    "upstream_dialect", "stop", "error", "purpose", "agent_name", "agent_id",
)  # fmt: skip


class Wanted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """JSON as it stands, for sibling workers. "" and 0: whatever it is."""

    client: str = ""
    dialect: str = ""
    model: str = ""
    provider: str = ""
    status: str = ""
    """A number, `2xx`, or a state."""
    loss: str = ""
    """A grade, a feature, or `any`."""
    key: str = ""
    session: str = ""
    purpose: str = ""
    agent: str = ""
    """The name of a sub-agent, or its id."""
    since: float = 0.0
    until: float = 0.0
    before: tuple[float, str] | None = None
    """`at` and id of the last row that was seen."""
    limit: int = 0
    only_key: str | None = None
    """What anyone who looks may see: the rows of this key alone."""
    only_since: float = 0.0

    def matches(self, row: Row) -> bool:
        return (
            (not self.client or row.client == self.client)
            and (not self.dialect or row.dialect == self.dialect)
            and (not self.model or self.model in (row.asked, row.model, f"{row.provider}/{row.model}"))
            and (not self.provider or row.provider == self.provider)
            and (not self.key or row.key == self.key)
            and (not self.session or row.session == self.session)
            and (not self.purpose or row.purpose == self.purpose)
            and (not self.agent or self.agent in (row.agent_name, row.agent_id))
            and (not self.status or _is_status(row, self.status))
            and (not self.loss or _has_loss(row, self.loss))
            and row.at >= self.since
            and (not self.until or row.at < self.until)
            and (self.before is None or (row.at, row.id) < self.before)
            and (self.only_key is None or (row.key == self.only_key and row.at >= self.only_since))
        )

    def page(self, rows: Iterable[Row]) -> list[Row]:
        """Those that match, the newest first, one of each exchange, as many as are wanted."""
        found: dict[str, Row] = {}
        for row in rows:
            if self.matches(row):
                before = found.get(row.id)
                if before is None or before.state == "running":
                    found[row.id] = row
        page = sorted(found.values(), key=newest, reverse=True)
        return page[: self.limit] if self.limit else page


def newest(row: Row) -> tuple[float, str]:
    """By which rows are sorted."""
    return row.at, row.id


def _is_status(row: Row, status: str) -> bool:
    if status.isascii() and status.isdigit():
        return row.status == int(status[:4])
    hundreds = _HUNDREDS.fullmatch(status)
    return row.status // 100 == int(hundreds[1]) if hundreds else row.state == status


def _has_loss(row: Row, loss: str) -> bool:
    if loss in _GRADES:
        return row.losses is not None and getattr(row.losses, loss) > 0
    return row.losses is not None if loss == "any" else loss in row.features


def holds(row: Row, text: str) -> bool:
    """Whether any of its words holds the text, in small letters."""
    words: list[str] = [getattr(row, name) for name in _SEARCHED]
    return any(text in word.lower() for word in (*words, *row.features))
