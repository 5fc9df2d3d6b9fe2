"""Fields of what the page sends: each is what it must be, or named in the error."""

from __future__ import annotations

from typing import Any

from wireglot.gateway.errors import RequestError


def text_field(fields: dict[str, Any], name: str, most: int) -> str:
    """Takes it out of the fields, so that what is left is what nobody knows. "" where it is not there."""
    value = fields.pop(name, None)
    if value is None:
        return ""
    if type(value) is not str or len(value) > most:
        raise wrong_field(name, f"text of at most {most} letters")
    return value


def wrong_field(name: str, expected: str) -> RequestError:
    return RequestError("bad", f"{name}: expected {expected}", code="invalid_value", param=name)
