"""Reasoning items as they are written, each of their parts in a frame of its own."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from wireglot.dialects.fields import own_form
from wireglot.dialects.openai_responses.item_frames import ItemFrames, OpenPart
from wireglot.dialects.openai_responses.output import (
    SEAM,
    declare_id,
    encrypted_content,
    reasoning_id,
    texts_of,
)
from wireglot.dialects.openai_responses.render_items import render_reasoning
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.ir.content import Extra, Reasoning
from wireglot.ir.loss import losses_of_extra
from wireglot.ir.stream import PartEnd

# The list of the item -> type of its entries, key of their number, names of the events about an entry.
_SPOKEN = {
    "summary": ("summary_text", "summary_index", "reasoning_summary_part", "reasoning_summary_text"),
    "content": ("reasoning_text", "content_index", "content_part", "reasoning_text"),
}


class ReasoningWriter(ItemFrames):
    def next_section(self, part: OpenPart) -> bool:
        """At a delta that may be the seam of two parts. Only this dialect's reader tells seams from text."""
        if not part.source or not own_form(getattr(part.part, "extra", None), NAME):
            return False
        self._close_section(part)
        part.text.add(SEAM)
        part.number += 1
        self._open_section(part)
        return True

    def _open_reasoning(self, part: OpenPart, reasoning: Reasoning, end: PartEnd | None) -> None:
        """Announce the item; its first part too, unless it ends without showing anything."""
        signature = (end.signature if end is not None else None) or reasoning.signature
        native = reasoning_id(reasoning, signature)
        identifier = self.ids.take("reasoning", len(self.items), native)
        part.item = self._add({"type": "reasoning", "id": identifier, "summary": []})
        if end is None:
            part.source = (
                "content" if own_form(reasoning.extra, NAME).get("source") == "content" else "summary"
            )
            self._open_section(part)

    def _open_section(self, part: OpenPart) -> None:
        kind, key, entry, text = _SPOKEN[part.source]
        place = self._place(part, key)
        self.emit(f"response.{entry}.added", {**place, "part": {"type": kind, "text": ""}})
        self._frame(part, f"response.{text}.delta", place)

    def _close_section(self, part: OpenPart) -> None:
        kind, key, entry, text = _SPOKEN[part.source]
        place, said = self._place(part, key), _section(part)
        part.sections.append(said)
        self.emit(f"response.{text}.done", {**place, "text": said})
        self.emit(f"response.{entry}.done", {**place, "part": {"type": kind, "text": said}})

    def _close_reasoning(self, part: OpenPart, reasoning: Reasoning, end: PartEnd) -> None:
        losses_of_extra(reasoning.extra, NAME, part.path, self.losses)
        if not part.before:
            self.release()
            self._open_reasoning(part, reasoning, end)
        item = part.item
        assert item is not None
        if part.source:
            self._close_section(part)
        signature = reasoning.signature
        if signature is not None and signature.id and signature.origin.dialect == NAME:
            declare_id(signature.id, item.value["id"], part.path, self.losses)
        encrypted = encrypted_content(reasoning, signature, self._context, hidden=self.hides_state)
        value = render_reasoning(_as_streamed(reasoning, part), item.value["id"], encrypted)
        value.setdefault("summary", [])
        item.value = value
        self._done(item)

    def _reasoning_so_far(self, part: OpenPart) -> dict[str, Any]:
        return {part.source: _entries(part, [*part.sections, _section(part)])}


def _section(part: OpenPart) -> str:
    """The text of the part now open: what came behind all the complete ones and their seams."""
    return str(part.text)[sum(len(said) + len(SEAM) for said in part.sections) :]


def _entries(part: OpenPart, texts: list[str]) -> list[dict[str, Any]]:
    return [{"type": _SPOKEN[part.source][0], "text": text} for text in texts]


def _as_streamed(reasoning: Reasoning, part: OpenPart) -> Reasoning:
    """With the entries that went out; the source's own while they say the same."""
    extra = reasoning.extra
    if extra is None or extra.dialect != NAME:
        return reasoning
    form = {key: value for key, value in extra.form.items() if key not in ("shown", "other", "without")}
    shown = extra.form.get("shown")
    if part.source:
        told = type(shown) is list and len(shown) == len(part.sections) and texts_of(shown) == part.sections
        form |= {"source": part.source, "shown": shown if told else _entries(part, part.sections)}
    else:
        form["source"] = "summary"
    fields = {
        key: value
        for key, value in extra.fields.items()
        if key not in ("summary", "content", "encrypted_content") or type(value) is list
    }
    return replace(reasoning, extra=Extra(NAME, fields, form))
