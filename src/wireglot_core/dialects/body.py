"""A client's body, inspected before it is parsed: its model, its stream flag, its limit for the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from wireglot_core.ir.errors import ClientFault
from wireglot_core.wire.json import BadJson, decode
from wireglot_core.wire.splice import Outline

MEDIA_MARKS: Final = (b"base64", b"inlineData", b"inline_data")
"""Byte sequences in a body that contains pictures or files, whose length says nothing about their tokens."""


class Body(Protocol):
    """A body, parsed only as far as needed; `document` decodes all of it, once."""

    @property
    def body(self) -> bytes: ...

    @property
    def outline(self) -> Outline: ...

    def document(self) -> dict[str, Any]: ...


class BadField(ClientFault):
    """A field that is wrong before the body is parsed. The message is reported unchanged, under this code."""

    def __init__(self, message: str, path: str, code: str = "invalid_type") -> None:
        super().__init__(message, path)
        self.code = code


class RequestGlance(msgspec.Struct, frozen=True):
    """The fields of a request that decide its route. `stream` None: not stated in the body."""

    model: str = ""
    stream: bool | None = None


def glance_body(body: Body) -> RequestGlance:
    """The model and stream flag, for dialects that have both in the body."""
    outline = body.outline
    stream = stated_stream(outline) if "stream" in outline.members else None
    return RequestGlance(stated_model(outline), stream)


def stated_model(outline: Outline) -> str:
    model = outline.get("model")
    if model is not None and type(model) is not str:
        raise BadField("model: expected a string", "$.model")
    return model or ""


def stated_stream(outline: Outline) -> bool | None:
    stream = outline.get("stream")
    if stream is not None and type(stream) is not bool:
        raise BadField("stream: expected true or false", "$.stream")
    return stream


# Characters of a name that is read from a body for logs and usage.
_NAME_MAX: Final = 256
_IN_USER: Final = re.compile(r"_session_([A-Za-z0-9-]{8,64})$")
"""Claude Code's session inside `metadata.user_id`, if that is not JSON."""


def session_in_metadata(outline: Outline) -> str:
    """The session that `metadata` names, as its `session_id` or inside its `user_id`."""
    metadata = outline.get("metadata") if "metadata" in outline.members else None
    if not isinstance(metadata, dict):
        return ""
    named = metadata.get("session_id")
    user = metadata.get("user_id")
    if type(named) is not str and type(user) is str:
        if not user.startswith("{"):
            found = _IN_USER.search(user)
            return found[1] if found else ""
        try:
            inner = decode(user)
        except BadJson:
            return ""
        named = inner.get("session_id") if isinstance(inner, dict) else None
    return named[:_NAME_MAX] if type(named) is str else ""


def session_by_cache_key(outline: Outline) -> str:
    """The same, or the key under which OpenAI's clients cache a conversation."""
    key = outline.get("prompt_cache_key") if "prompt_cache_key" in outline.members else None
    return session_in_metadata(outline) or (key[:_NAME_MAX] if type(key) is str else "")


def whole_number(value: object) -> int:
    """A count in a body, 0 if there is none."""
    return value if type(value) is int and value > 0 else 0


def stated_in(*names: str) -> Callable[[Body], int]:
    """A function that returns the first of these counts that a body states."""

    def stated(body: Body) -> int:
        for name in names:
            if number := whole_number(body.outline.get(name)):
                return number
        return 0

    return stated


def one_answer(body: Body) -> int:
    """For dialects in which a request has one answer."""
    return 1
