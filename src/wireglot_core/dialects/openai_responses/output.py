"""Parts of an answer and the output items they belong to, the same in a stream and in the whole response."""

from __future__ import annotations

import re
from typing import Any

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import Holder
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import PHASE, Extra, Media, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request

ENCRYPTED = "reasoning.encrypted_content"
REPORTED = "told"
"""Key in a request's form: state fields of its answer, from any upstream (its id, whether it is stored)."""

PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "image_generation_call": "ig",
    "shell_call": "sh",
    "local_shell_call": "lsh",
    "apply_patch_call": "apc",
    "computer_call": "cu",
    "tool_search_call": "tsc",
}

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]+")


def response_id(identifier: str, model: str, context: Context, native: bool) -> str:
    if identifier.startswith("resp_") or (native and identifier):
        return identifier
    clean = _NOT_IN_IDS.sub("_", identifier)
    return f"resp_{clean}" if clean else context.new_id("resp", model)


class ItemIds:
    """Ids of output items: the provider's own, else one derived from the response and the position."""

    def __init__(self, response: str, context: Context) -> None:
        self._response = response
        self._context = context
        self._used: set[str] = set()

    def take(self, kind: str, position: int, native: Any = None) -> str:
        """The id of the item at `position`. Two items must not share one: clients distinguish them by it."""
        if type(native) is str and native and native not in self._used:
            self._used.add(native)
            return native
        identifier = self._context.new_id(PREFIXES.get(kind, "item"), self._response, str(position))
        self._used.add(identifier)
        return identifier


def native_id(extra: Extra | None) -> Any:
    return own_form(extra, NAME).get("id")


def is_raw(reasoning: Reasoning) -> bool:
    """Open-weight models show all of their reasoning. A summary without a signature is of no use."""
    return own_form(reasoning.extra, NAME).get("source") == "content"


def without_ids(extra: Extra) -> Extra:
    """The extra without item ids: OpenAI requires the reasoning that an item with an id was made with;
    without an id it is text."""
    form = {key: value for key, value in extra.form.items() if key != "id"}
    item = form.get("item")
    if type(item) is dict and "id" in item:
        form["item"] = {key: value for key, value in item.items() if key != "id"}
    return extra if form == extra.form else Extra(extra.dialect, extra.fields, form)


def hides_state(request: Request | None) -> bool:
    """Whether the client did not request the reasoning state in its answer. Then the gateway, which stores
    its responses, keeps the state for it."""
    form = own_form(request.extra, NAME) if request is not None else {}
    asked = form.get("include")
    return REPORTED in form and not (type(asked) is list and ENCRYPTED in asked)


def reasoning_id(part: Reasoning, signature: Signature | None) -> Any:
    if signature is not None and signature.origin.dialect == NAME and signature.id:
        return signature.id
    return native_id(part.extra)


def encrypted_content(
    part: Reasoning, signature: Signature | None, context: Context, *, hidden: bool
) -> str | None:
    """The state of a reasoning item: raw if OpenAI minted it, else in our envelope. `hidden`: OpenAI's own is
    left out."""
    if signature is None or (hidden and signature.origin.dialect == NAME):
        return None
    if part.redacted:
        return context.seal(signature, "redacted")
    if signature.origin.dialect == NAME:
        return signature.data
    return context.seal(signature, "reasoning")


def carrier(
    part: Text | Media | ToolCall, signature: Signature, identifier: str, context: Context
) -> dict[str, Any]:
    """A reasoning item without content that carries the signature of its neighbour."""
    holder: Holder = "call" if type(part) is ToolCall else "text" if type(part) is Text else "media"
    return {
        "type": "reasoning",
        "id": identifier,
        "summary": [],
        "encrypted_content": context.seal(signature, holder),
    }


def declare_id(native: Any, taken: str, path: str, losses: list[Loss]) -> None:
    """Report that a signature is bound to an id that another item has, or that came too late."""
    if type(native) is str and native and native != taken:
        losses.append(
            Loss(
                f"{path}.signature",
                "reasoning.signature",
                "approximated",
                "bound to an item id that could not be used",
            )
        )


# Message items: an answer is one list of parts, and each text remembers its item.

ITEM = "item."
"""Prefix for unknown fields of a text's message item in the text's extra."""


def message_form(part: Text) -> dict[str, Any]:
    """Form of the message item that a text came from."""
    extra = part.extra
    form = extra.form.get("item") if extra is not None and extra.dialect == NAME else None
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


def phase_said(part: Text | Media) -> str | None:
    """The phase in a text's signature, for its message item."""
    signature = part.signature
    return signature.data if signature is not None and signature.id == PHASE else None


def same_message(before: Text, part: Text) -> bool:
    """Whether two neighbouring texts belong to one message item. Other dialects' neighbours do."""
    one, other = message_form(before), message_form(part)
    if phase_said(part) is not None and not other:
        return False  # it begins an item: another client returned what was on its first text
    return one.get("number") == other.get("number") and one.get("id") == other.get("id")


# Reasoning items list their parts; the IR has one text: the parts with content, joined by a blank line. In a
# stream of this dialect a delta that is only that blank line marks the boundary of two parts. A blank line
# that the model wrote is never the whole delta: `spoken` splits it in two.

SEAM = "\n\n"


def texts_of(entries: Any) -> list[str]:
    """The texts of a summary or content list."""
    if type(entries) is not list:
        return []
    return [entry["text"] for entry in entries if type(entry) is dict and type(entry.get("text")) is str]


def joined(entries: Any) -> str:
    """The whole text of a list; empty parts leave no blank lines."""
    return SEAM.join(filter(None, texts_of(entries)))


def spoken(text: str) -> tuple[str, ...]:
    """The deltas for text of one part."""
    return ("\n", "\n") if text == SEAM else (text,)


def pieces(entries: Any, sent: str = "") -> list[str]:
    """The deltas for all parts of a list after the text already sent; empty if that was other text."""
    if not joined(entries).startswith(sent):
        return []
    out: list[str] = []
    end = 0
    for number, text in enumerate(filter(None, texts_of(entries))):
        for piece, is_seam in ((SEAM, True), (text, False)) if number else ((text, False),):
            new = piece[max(len(sent) - end, 0) :]
            end += len(piece)
            if new:
                out += (new,) if is_seam else spoken(new)
    return out
