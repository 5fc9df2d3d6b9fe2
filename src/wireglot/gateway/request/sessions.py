"""By which name a client means its conversation: one that we hold for it, or one that groups its requests."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot.gateway.errors import RequestError
from wireglot.http.application import Head
from wireglot.wire.json import BadJson, decode
from wireglot.wire.splice import Outline

_HOLDING_HEADER: Final = "x-wireglot-session"
_SESSION_HEADERS: Final = (
    "x-claude-code-session-id",
    "x-session-affinity",
    "x-session-id",
    "session-id",
    "session_id",
)
"""They group requests, and no more: agents send whole histories, and side questions, under one such name."""
_NAME_MAX: Final = 256
_IN_USER: Final = re.compile(r"_session_([A-Za-z0-9-]{8,64})$")
"""How Claude Code names its session inside `metadata.user_id`, where that is no JSON."""


def conversation_name(head: Head, outline: Outline, field: str) -> str:
    """By header, or in this field of the body: a name, or an object with an id. "": none."""
    name: Any = head.headers.get(_HOLDING_HEADER, "").strip()
    place = _HOLDING_HEADER
    if field and field in outline:
        said = outline.get(field)
        if said is not None:
            name, place = said.get("id") if isinstance(said, dict) else said, field
            if type(name) is not str or not name:
                raise RequestError(
                    "bad",
                    f"{field}: expected a name, or an object with an id",
                    code="invalid_type",
                    param=field,
                )
    if len(name) > _NAME_MAX or not name.isprintable() or name in (".", ".."):
        raise RequestError("bad", f"{place}: expected at most {_NAME_MAX} printable characters", param=place)
    return str(name)


def grouping_name(head: Head, outline: Outline) -> str:
    """The client's own name for its session: by header, or where its body tells it."""
    for header in _SESSION_HEADERS:
        name = head.headers.get(header)
        if name:
            return name
    if "metadata" in outline:
        name = _in_metadata(outline.get("metadata"))
        if name:
            return name
    key = outline.get("prompt_cache_key") if "prompt_cache_key" in outline else None
    return key[:_NAME_MAX] if type(key) is str else ""


def _in_metadata(metadata: object) -> str:
    if not isinstance(metadata, dict):
        return ""
    named = metadata.get("session_id")
    if type(named) is str:
        return named[:_NAME_MAX]
    user = metadata.get("user_id")
    if type(user) is not str:
        return ""
    if user.startswith("{"):
        try:
            inner = decode(user)
        except BadJson:
            return ""
        named = inner.get("session_id") if isinstance(inner, dict) else None
        return named[:_NAME_MAX] if type(named) is str else ""
    found = _IN_USER.search(user)
    return found[1] if found else ""
