"""Which message item a text stood in: an answer is one list of parts, its message items are remembered."""

from __future__ import annotations

from typing import Any

from wireglot.dialects.fields import own_fields, own_form
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.ir.content import Extra, Text

ITEM = "item."
"""Unknown fields of a text's message item stand in the text's extra under this prefix."""


def message_form(part: Text) -> dict[str, Any]:
    """Form of the message item a text stood in."""
    form = own_form(part.extra, NAME).get("item")
    return form if type(form) is dict else {}


def message_fields(part: Text) -> dict[str, Any]:
    fields = own_fields(part.extra, NAME)
    return {key.removeprefix(ITEM): value for key, value in fields.items() if key.startswith(ITEM)}


def part_extra(part: Text) -> Extra | None:
    """The extra of the content part alone, without what belongs to its item."""
    extra = part.extra
    if extra is None or extra.dialect != NAME:
        return extra
    fields = {key: value for key, value in extra.fields.items() if not key.startswith(ITEM)}
    form = {key: value for key, value in extra.form.items() if key != "item"}
    return Extra(NAME, fields, form) if fields or form else None


def same_message(before: Text, part: Text) -> bool:
    """Whether two neighbouring texts stand in one message item. Other dialects' neighbours do."""
    one, other = message_form(before), message_form(part)
    return one.get("number") == other.get("number") and one.get("id") == other.get("id")
