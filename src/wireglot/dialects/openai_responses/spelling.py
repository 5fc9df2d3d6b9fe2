"""How this dialect spelled a value, remembered in `Extra` and used again when it is rendered back."""

from __future__ import annotations

from typing import Any

from wireglot.dialects.fields import Fields
from wireglot.ir.content import Extra
from wireglot.ir.loss import is_blank

NAME = "openai-responses"

WITHOUT = "without"
"""Form key: names the renderer would write and the source left out."""


def kept(
    fields: Fields, known: frozenset[str], always: tuple[str, ...] = (), form: dict[str, Any] | None = None
) -> Extra | None:
    """What stands beside the known fields, and which of the `always` written ones do not stand there."""
    missing = [key for key in always if key not in fields.value]
    if missing:
        form = {**(form or {}), WITHOUT: missing}
    return fields.rest(known, NAME, form)


def spell(value: dict[str, Any], extra: Extra | None) -> dict[str, Any]:
    """Bring back what the source had beside the IR, if it was of this dialect. Changes and returns `value`.

    A key the source left out is taken away only while it says nothing new, and a null of the source gives way
    to a value someone filled in since.
    """
    if extra is None or extra.dialect != NAME:
        return value
    for key in extra.form.get(WITHOUT, ()):
        if key == "type" or is_blank(value.get(key)):
            value.pop(key, None)
    for key, item in extra.fields.items():
        if item is not None or is_blank(value.get(key)):
            value[key] = item
    return value


def split_blank(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Leftovers of a nested object: those that say something, and those that are only spelling."""
    telling = {key: value for key, value in fields.items() if not is_blank(value)}
    blank = {key: value for key, value in fields.items() if is_blank(value)}
    return telling, blank
