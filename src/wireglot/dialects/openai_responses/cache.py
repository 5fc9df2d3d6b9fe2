"""Prompt-cache breakpoints on content parts."""

from __future__ import annotations

from typing import Any

from wireglot.dialects.fields import Fields
from wireglot.dialects.openai_responses.spelling import NAME, keep, put_back
from wireglot.dialects.unknown_fields import WITHOUT
from wireglot.ir.content import CacheMark
from wireglot.ir.loss import Loss, losses_of_extra

BREAKPOINT = "prompt_cache_breakpoint"
_KEYS = frozenset({"mode", "ttl"})
_TTLS = {"short": "30m", "long": "12h"}


def parse_cache(part: Fields) -> CacheMark | None:
    mark = part.object_or_none(BREAKPOINT)
    if mark is None:
        return None
    form: dict[str, Any] = {}
    if mark.value.get("mode") != "explicit":
        form["mode"] = mark.value.get("mode")
    match mark.value.get("ttl"):
        case "30m":
            return CacheMark("short", keep(mark.value, _KEYS, form, always=("mode",)))
        case "12h":
            return CacheMark("long", keep(mark.value, _KEYS, form, always=("mode",)))
        case _:
            return CacheMark("", keep(mark.value, frozenset({"mode"}), form, always=("mode",)))


def render_cache(mark: CacheMark, path: str, losses: list[Loss]) -> dict[str, Any]:
    losses_of_extra(mark.extra, NAME, f"{path}.cache", losses)
    form = mark.extra.form if mark.extra is not None and mark.extra.dialect == NAME else {}
    value: dict[str, Any] = {}
    if "mode" not in form.get(WITHOUT, ()):
        value["mode"] = form.get("mode", "explicit")
    if mark.ttl:
        value["ttl"] = _TTLS[mark.ttl]
    return put_back(value, mark.extra)
