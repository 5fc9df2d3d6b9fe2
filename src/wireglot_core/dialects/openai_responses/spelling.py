"""The name of this dialect, its unknown fields, and its cache marks: how values keep their spelling."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.openai_shared import BREAKPOINT, TTLS, breakpoint_value
from wireglot_core.dialects.unknown_fields import WITHOUT, UnknownFields
from wireglot_core.ir.content import CacheMark
from wireglot_core.ir.loss import Loss, losses_of_extra

NAME = "openai-responses"

_UNKNOWN = UnknownFields(NAME, over_blanks=True)
keep, put_back = _UNKNOWN.keep, _UNKNOWN.put_back

_MODE = frozenset({"mode"})
_KEYS = _MODE | {"ttl"}


def parse_cache(part: Fields) -> CacheMark | None:
    mark = part.object_or_none(BREAKPOINT)
    if mark is None:
        return None
    form: dict[str, Any] = {}
    if mark.value.get("mode") != "explicit":
        form["mode"] = mark.value.get("mode")
    stated = mark.value.get("ttl")
    ttl = TTLS.get(stated, "") if type(stated) is str else ""
    return CacheMark(ttl, keep(mark.value, _KEYS if ttl else _MODE, form, always=("mode",)))


def render_cache(mark: CacheMark, path: str, losses: list[Loss]) -> dict[str, Any]:
    losses_of_extra(mark.extra, NAME, f"{path}.cache", losses)
    form = own_form(mark.extra, NAME)
    value = breakpoint_value(mark.ttl, form.get("mode", "explicit"))
    if "mode" in form.get(WITHOUT, ()):
        del value["mode"]
    return put_back(value, mark.extra)
