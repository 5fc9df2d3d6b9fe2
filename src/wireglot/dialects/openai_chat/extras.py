"""What hangs on any object of the wire: fields no one knows, and cache marks."""

from __future__ import annotations

from typing import Any, Literal

from wireglot.dialects.fields import own_form
from wireglot.ir.content import CacheMark, Extra
from wireglot.ir.loss import Loss, is_blank, losses_of_extra

NAME = "openai-chat"

_TTLS: dict[str, Literal["", "short", "long"]] = {"30m": "short", "12h": "long", "5m": "short", "1h": "long"}
_TTL_NAMES = {"short": "30m", "long": "12h"}


# Unknown fields. A key with a dot stands for a field of a nested object: `image_url.x_new`.


def is_hollow(value: Any) -> bool:
    """Whether there is nothing in it at any depth: some servers print every field of their schema."""
    if type(value) is dict:
        return all(is_hollow(item) for item in value.values())
    if type(value) is list:
        return all(is_hollow(item) for item in value)
    return is_blank(value)


def rest(
    value: dict[str, Any],
    taken: frozenset[str] | set[str],
    form: dict[str, Any] | None = None,
    **inner: tuple[dict[str, Any], frozenset[str]],
) -> Extra | None:
    """What was not taken of an object and of the objects inside it."""
    if not form and not inner and value.keys() <= taken and None not in value.values():
        return None
    fields: dict[str, Any] = {}
    hollow: dict[str, Any] = {}
    _sift(value, taken, "", fields, hollow)
    for key, (nested, nested_taken) in inner.items():
        _sift(nested, nested_taken, f"{key}.", fields, hollow)
    if hollow:
        form = {**(form or {}), "rest": hollow}
    return Extra(NAME, fields, form or {}) if fields or form else None


def _sift(
    value: dict[str, Any],
    taken: frozenset[str] | set[str],
    prefix: str,
    fields: dict[str, Any],
    hollow: dict[str, Any],
) -> None:
    for key, item in value.items():
        if key not in taken or item is None:
            (hollow if item and is_hollow(item) else fields)[prefix + key] = item


def put_back(out: dict[str, Any], extra: Extra | None) -> None:
    """Add what `rest` kept, behind everything that was rendered."""
    if extra is None or extra.dialect != NAME:
        return
    for key, value in extra.fields.items():
        _put(out, key, value)
    for key, value in extra.form.get("rest", {}).items():
        _put(out, key, value)


def _put(out: dict[str, Any], key: str, value: Any) -> None:
    head, dot, tail = key.partition(".")
    if dot and type(out.get(head)) is dict:
        _put(out[head], tail, value)
    else:
        out.setdefault(key, value)


# Cache marks


def parse_cache(part: dict[str, Any]) -> CacheMark | None:
    """OpenAI's `prompt_cache_breakpoint`; Anthropic's spelling is accepted because routers made it common."""
    for key in ("prompt_cache_breakpoint", "cache_control"):
        raw = part.get(key)
        if type(raw) is dict:
            mark = CacheMark(_ttl(raw))
            if key == "prompt_cache_breakpoint" and raw == _breakpoint(mark):
                return mark
            return CacheMark(mark.ttl, Extra(NAME, {}, {"key": key, "raw": raw}))
    return None


def cache_key(mark: CacheMark | None) -> str:
    """The field a mark was read from: the one that must not be kept as unknown too."""
    if mark is None:
        return ""
    return str(own_form(mark.extra, NAME).get("key", "prompt_cache_breakpoint"))


def put_cache(out: dict[str, Any], mark: CacheMark | None, path: str, losses: list[Loss]) -> None:
    if mark is None:
        return
    losses_of_extra(mark.extra, NAME, f"{path}.cache", losses)
    form = own_form(mark.extra, NAME)
    raw = form.get("raw")
    if raw is not None and _ttl(raw) == mark.ttl:
        out[form["key"]] = dict(raw)
    else:
        out["prompt_cache_breakpoint"] = _breakpoint(mark)


def _ttl(raw: dict[str, Any]) -> Literal["", "short", "long"]:
    ttl = raw.get("ttl")
    return _TTLS.get(ttl, "") if type(ttl) is str else ""


def _breakpoint(mark: CacheMark) -> dict[str, Any]:
    value = {"mode": "explicit"}
    if mark.ttl:
        value["ttl"] = _TTL_NAMES[mark.ttl]
    return value


def lose_cache(mark: CacheMark | None, path: str, losses: list[Loss]) -> None:
    if mark is not None:
        losses.append(Loss(f"{path}.cache", "cache_marker", "dropped", "Chat marks content parts only"))
