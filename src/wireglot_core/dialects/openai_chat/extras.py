"""Fields that any object on the wire may have: unknown ones, and cache markers."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.openai_shared import BREAKPOINT, TTLS, Ttl, breakpoint_value
from wireglot_core.dialects.unknown_fields import UnknownFields
from wireglot_core.ir.content import CacheMark, Extra
from wireglot_core.ir.loss import Loss, losses_of_extra

NAME = "openai-chat"
DONE: Final = b"data: [DONE]\n\n"
"""The last frame of a stream."""

_TTLS: dict[str, Ttl] = {**TTLS, "5m": "short", "1h": "long"}

UNKNOWN = UnknownFields(NAME, deep=True)
keep, put_back = UNKNOWN.keep, UNKNOWN.put_back


# Cache marks


def parse_cache(part: dict[str, Any]) -> CacheMark | None:
    """OpenAI's `prompt_cache_breakpoint`; Anthropic's spelling is accepted because routers made it common."""
    for key in (BREAKPOINT, "cache_control"):
        raw = part.get(key)
        if type(raw) is dict:
            ttl = _ttl(raw)
            if key == BREAKPOINT and raw == breakpoint_value(ttl):
                return CacheMark(ttl)
            return CacheMark(ttl, Extra(NAME, {}, {"key": key, "raw": raw}))
    return None


def parse_stray_cache(holder: dict[str, Any]) -> CacheMark | None:
    """The same after a tool or a call, where Chat documents no marker: it is returned to its writer, and its
    spelling is kept to distinguish it from another dialect's."""
    mark = parse_cache(holder)
    if mark is None or mark.extra is not None:
        return mark
    return CacheMark(mark.ttl, Extra(NAME, {}, {"key": BREAKPOINT, "raw": holder[BREAKPOINT]}))


def parse_message_cache(message: dict[str, Any]) -> CacheMark | None:
    """A marker of a whole message, which clients of routers write: it belongs after the last part."""
    raw = message.get("cache_control")
    if type(raw) is not dict or not raw:
        return None
    return CacheMark(_ttl(raw), Extra(NAME, {}, {"key": "cache_control", "raw": raw, "message": True}))


def is_of_message(mark: CacheMark | None) -> bool:
    """Whether the marker is written to the message rather than to its part."""
    return mark is not None and mark.extra is not None and bool(own_form(mark.extra, NAME).get("message"))


def put_message_cache(out: dict[str, Any], mark: CacheMark | None) -> None:
    if mark is not None and is_of_message(mark):
        out["cache_control"] = dict(own_form(mark.extra, NAME)["raw"])


def cache_key(mark: CacheMark | None) -> str:
    """The field a marker was read from, which must not be kept as unknown too."""
    if mark is None:
        return ""
    return str(own_form(mark.extra, NAME).get("key", BREAKPOINT))


def put_cache(out: dict[str, Any], mark: CacheMark | None, path: str, losses: list[Loss]) -> None:
    if mark is None:
        return
    if mark.extra is None:
        out[BREAKPOINT] = breakpoint_value(mark.ttl)
        return
    if is_of_message(mark):
        return
    losses_of_extra(mark.extra, NAME, f"{path}.cache", losses)
    form = own_form(mark.extra, NAME)
    raw = form.get("raw")
    if raw is not None and _ttl(raw) == mark.ttl:
        out[form["key"]] = dict(raw)
    else:
        out[BREAKPOINT] = breakpoint_value(mark.ttl)


def _ttl(raw: dict[str, Any]) -> Ttl:
    ttl = raw.get("ttl")
    return _TTLS.get(ttl, "") if type(ttl) is str else ""
