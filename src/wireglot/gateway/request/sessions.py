"""The names that clients give their conversations: one that we hold for them, or one that groups requests."""

from __future__ import annotations

from typing import Any, Final

from wireglot.dialects.base import ClientSide
from wireglot.gateway.errors import RequestError
from wireglot.http.application import Head
from wireglot.wire.splice import Outline

_HELD_HEADER: Final = "x-wireglot-session"
_SESSION_HEADERS: Final = ("x-session-affinity", "x-session-id", "session-id", "session_id")
"""They group requests, and no more: agents send whole histories, and side questions, under one such name."""
_NAME_MAX: Final = 256


def conversation_name(head: Head, outline: Outline, field: str) -> str:
    """By header, or in this field of the body: a name, or an object with an id. "": none."""
    name: Any = head.headers.get(_HELD_HEADER, "").strip()
    place = _HELD_HEADER
    if field in outline.members:
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


def grouping_name(head: Head, outline: Outline, client: ClientSide) -> str:
    """The client's own name for its session: by header, or where its body has one."""
    for header in (*client.session_headers, *_SESSION_HEADERS):
        name = head.headers.get(header)
        if name:
            return name
    return client.session(outline) if client.session is not None else ""
