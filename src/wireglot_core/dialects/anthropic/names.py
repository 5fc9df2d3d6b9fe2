"""The name of this dialect, and helpers to write its values back unchanged."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.unknown_fields import UnknownFields
from wireglot_core.ir.content import CacheMark, Extra
from wireglot_core.ir.loss import Loss, losses_of_extra

NAME = "anthropic"

_CACHE = frozenset({"type", "ttl"})
_TTL_READ = {"5m": "short", "1h": "long"}
_TTL_WRITTEN = {"short": "5m", "long": "1h"}


def is_own(extra: Extra | None) -> bool:
    return extra is not None and extra.dialect == NAME


_UNKNOWN = UnknownFields(NAME)
keep, put_back = _UNKNOWN.keep, _UNKNOWN.put_back


def parse_cache(fields: Fields, key: str = "cache_control") -> CacheMark | None:
    if fields.value.get(key) is None:
        return None
    mark = fields.object(key)
    ttl = mark.value.get("ttl")
    known = _CACHE if ttl is None or ttl in ("5m", "1h") else _CACHE - {"ttl"}
    if mark.value.get("type") != "ephemeral":
        known = known - {"type"}
    short_or_long = _TTL_READ.get(ttl, "") if type(ttl) is str else ""
    extra = mark.rest(known, NAME, None if "type" in mark.value else {"type": "absent"})
    return CacheMark("short" if short_or_long == "short" else "long" if short_or_long else "", extra)


def render_cache(mark: CacheMark, path: str, losses: list[Loss]) -> dict[str, Any]:
    own = mark.extra if mark.extra is not None and mark.extra.dialect == NAME else None
    block: dict[str, Any] = {}
    if own is None or ("type" not in own.fields and "type" not in own.form):
        block["type"] = "ephemeral"
    if mark.ttl:
        block["ttl"] = _TTL_WRITTEN[mark.ttl]
    losses_of_extra(mark.extra, NAME, f"{path}.cache", losses)
    return put_back(block, mark.extra)
