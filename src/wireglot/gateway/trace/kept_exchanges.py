"""Whether an exchange that is over is kept with its bodies, as [trace] says."""

from __future__ import annotations

import re
from functools import lru_cache

from wireglot.gateway.observe.record import Record
from wireglot.gateway.setting_tables.trace import TraceSettings


def is_kept(record: Record, trace: TraceSettings) -> bool:
    if trace.routes and not any(_pattern(each).fullmatch(record.model) for each in trace.routes):
        return False
    match trace.mode:
        case "all":
            return True
        case "errors":
            return _failed(record)
        case "off":  # it was turned off meanwhile
            return False


def _failed(record: Record) -> bool:
    """A client that leaves is none: people press Esc."""
    if record.outcome == "client_abort":
        return False
    return (
        record.outcome != "ok"
        or record.status >= 400
        or any(loss.grade == "serious" for loss in record.losses)
    )


@lru_cache(256)
def _pattern(text: str) -> re.Pattern[str]:
    """`*` stands for anything, as in [models]."""
    return re.compile(".*".join(re.escape(piece) for piece in text.split("*")), re.DOTALL)
