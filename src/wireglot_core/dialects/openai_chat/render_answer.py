"""Renders the message of an answer: its parts, placed in Chat's fields."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, assert_never

from msgspec.structs import replace

from wireglot_core.dialects.common_losses import NO_RESULTS_IN_ANSWERS
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import Sealed
from wireglot_core.dialects.fields import own_fields, own_form
from wireglot_core.dialects.openai_chat.citations import render_citation
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.dialects.openai_chat.lost_fields import LOST, LOST_IN_ANSWERS, UNSTATED_FORMAT
from wireglot_core.dialects.openai_chat.parts import foreign_part, media_part, text_part, thinking_part
from wireglot_core.dialects.openai_chat.reasoning import (
    BETWEEN,
    CARRIER,
    call_carrier,
    carrier_of,
    google_carrier,
    holder_of,
    is_separate,
    opaque_details,
    put_reasoning,
    state_field,
)
from wireglot_core.dialects.openai_chat.tools import call_body, is_legacy, render_call
from wireglot_core.ir.content import Foreign, Media, Part, Reasoning, Signature, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.wire.json import BadJson, decode

_ORDER = "the message has one field for each kind"
# The order in which a Chat message is parsed: a part in another order is reported as moved.
_REASONING, _TEXT, _REFUSAL, _AUDIO, _IMAGE, _CALL = range(6)


class Order:
    """Reports the parts of an answer that cannot keep their place: after a later kind, or as a second of
    one."""

    __slots__ = ("_bare", "_losses", "_marked", "_rank", "_refused", "_spoken", "_thought")

    def __init__(self, losses: list[Loss]) -> None:
        self._losses = losses
        self._rank = _REASONING
        self._thought = self._spoken = self._refused = False
        self._marked = False  # the last thought has its own state
        self._bare = False  # a thought was nothing but a state

    def reasoning(self, path: str, part: Reasoning, signed: str) -> None:
        # A redacted thought after one whose own state was written is parsed into the same place.
        again = self._thought and not (part.redacted and self._marked)
        self._place(_REASONING, path, again or (self._bare and not part.redacted))
        self._marked = signed == "state"
        # When read back, a state without text is given to the next thought without a state.
        self._bare = self._bare or (self._marked and not part.text and not part.redacted)
        self._thought = self._thought or bool(part.text) or signed == "details"

    def text(self, path: str, apart: bool = False) -> None:
        """`apart`: it has a separate entry in a list."""
        self._place(_TEXT, path, self._spoken and not apart)
        self._spoken = True

    def refusal(self, path: str) -> None:
        self._place(_REFUSAL, path, self._refused)
        self._refused = True

    def audio(self, path: str) -> None:
        self._place(_AUDIO, path)

    def image(self, path: str) -> None:
        self._place(_IMAGE, path)

    def call(self, path: str) -> None:
        self._place(_CALL, path)

    def _place(self, rank: int, path: str, again: bool = False) -> None:
        if again or rank < self._rank:
            self._losses.append(Loss(path, "content.position", "approximated", _ORDER))
        self._rank = max(self._rank, rank)


def declare_order(parts: Mapping[int, Part], losses: list[Loss]) -> None:
    """Reports the moved parts of a message that is assembled from the chunks of a stream, like a whole answer
    does. Of the parts' texts it only matters whether they are empty."""
    declared = {loss.path for loss in losses if loss.feature == "content.position"}
    moved: list[Loss] = []
    order = Order(moved)
    for index in sorted(parts):
        path, part = f"$.content[{index}]", parts[index]
        match part:
            case Reasoning(signature=signature):
                opaque = signature is not None and opaque_details(signature) is not None
                order.reasoning(path, part, "details" if opaque else "state" if signature else "")
            case Text():
                if part.text or part.signature is not None:
                    (order.refusal if part.refusal else order.text)(path)
            case Media(kind="image"):
                order.image(path)
            case Media(kind="audio"):
                if part.data is not None:
                    order.audio(path)
            case ToolCall():
                order.call(path)
            case _:
                pass
    losses += [loss for loss in moved if loss.path not in declared]


class Answer:
    """Renders one message. Chat has reasoning, then one string of text, then calls."""

    def __init__(
        self, form: dict[str, Any], fields: dict[str, Any], context: Context, losses: list[Loss]
    ) -> None:
        self._form = form
        self._fields = fields
        self._context = context
        self._losses = losses
        self._thoughts: list[Reasoning] = []
        self._details: list[Any] = []
        self._states: list[tuple[int, Sealed]] = []
        self._google: dict[str, Any] = {}
        self._texts: list[str] = []
        self._length = 0
        self._separate = False  # the last text was a separate message
        self._listed: list[Any] = []
        self._citations: list[Any] = []
        self._images: list[Any] = []
        self._tool_calls: list[dict[str, Any]] = []
        self._legacy: dict[str, Any] | None = None
        self._audio: dict[str, Any] | None = None
        self._transcript = ""
        self._refusals: list[str] = []
        self._order = Order(losses)

    @property
    def calls(self) -> bool:
        return bool(self._tool_calls) or self._legacy is not None

    @property
    def refusal(self) -> bool:
        return bool(self._refusals)

    def message(self, parts: tuple[Part, ...], path: str) -> dict[str, Any]:
        spoken = any(isinstance(part, Media) and part.kind == "audio" and part.data for part in parts)
        listed = self._form.get("content") == "parts" or any(
            isinstance(part, Text)
            and own_fields(part.extra, NAME)
            and own_form(part.extra, NAME).get("field") != "audio"
            for part in parts
        )
        for index, part in enumerate(parts):
            self._add(part, f"{path}.content[{index}]", listed, spoken)
        out: dict[str, Any] = {}
        if self._form.get("role") != "absent" and "message.role" not in self._fields:
            out["role"] = "assistant"
        self._put_content(out, listed)
        put_reasoning(out, self._thoughts, self._details)
        if self._refusals:
            out["refusal"] = "".join(self._refusals)
        elif not self._form.get("native"):
            out["refusal"] = None
        if self._citations or not self._form.get("native"):
            out["annotations"] = self._citations  # the vendor sends an empty list where there are none
        if self._tool_calls:
            out["tool_calls"] = self._tool_calls
        if self._legacy is not None:
            out["function_call"] = self._legacy
        if self._audio is not None:
            out["audio"] = self._audio
        if self._images:
            out["images"] = self._images
        if self._states or self._google:
            out[CARRIER] = {**self._google, **(carrier_of(self._sealed()) if self._states else {})}
        return out

    def _put_content(self, out: dict[str, Any], listed: bool) -> None:
        if listed:
            out["content"] = self._listed
        elif self._texts:
            text = "".join(self._texts)
            out["content"] = text
            if self._form.get("content") == "object":
                with suppress(BadJson):
                    out["content"] = decode(text)
        elif self._form.get("content") != "absent" and "message.content" not in self._fields:
            out["content"] = None

    def _add(self, part: Part, path: str, listed: bool, spoken: bool) -> None:
        match part:
            case Text():
                self._text(part, path, listed, spoken)
            case Reasoning():
                self._reasoning(part, path, listed)
            case ToolCall():
                self._call(part, path)
            case Media():
                self._media(part, path)
            case Foreign():
                own = foreign_part(part, path, self._losses)
                if own is not None:
                    (self._listed if listed else self._images).append(own)
            case ToolResult():
                self._losses.append(NO_RESULTS_IN_ANSWERS.at(path))
            case _:
                assert_never(part)

    def _text(self, part: Text, path: str, listed: bool, spoken: bool) -> None:
        LOST_IN_ANSWERS.of(part, path, self._losses)
        if not part.text and part.signature is None:
            if listed:
                self._listed.append(text_part(part, path, self._losses))
            return
        self._sign(part, part.signature)
        if part.refusal and not own_form(part.extra, NAME).get("part"):
            self._order.refusal(path)
            self._refusals.append(part.text)
            self._cite(part, path)
            return
        form = own_form(part.extra, NAME)
        if form.get("field") == "audio" and (spoken or "audio" in form):
            self._order.audio(path)
            self._transcript += part.text
            if not spoken:
                self._audio = {**form["audio"], "transcript": self._transcript}
            return
        # Texts of a content list stay separate, but parsing them assigns the signature to the first of them.
        self._order.text(path, apart=listed and part.signature is None)
        between = BETWEEN if self._separate and part.text else ""
        self._length += len(between)
        self._texts.append(between + part.text)
        if part.text:
            self._separate = is_separate(Text, part.signature)
        if listed:
            self._listed.append(text_part(part, path, []))
        self._cite(part, path)
        self._length += len(part.text)

    def _cite(self, part: Text, path: str) -> None:
        for index, citation in enumerate(part.citations):
            place = f"{path}.citations[{index}]"
            entry = render_citation(citation, self._length, len(part.text), place, self._losses)
            if entry is not None:
                self._citations.append(entry)

    def _reasoning(self, part: Reasoning, path: str, listed: bool) -> None:
        LOST.of(part, path, self._losses)
        if listed and own_form(part.extra, NAME).get("field") == "content":
            self._listed.append(thinking_part(part))
            return
        signed = self._sign(part, part.signature)
        self._order.reasoning(path, part, signed)
        if part.text or signed == "details":
            self._thoughts.append(part)

    def _sign(self, part: Part, signature: Signature | None) -> str:
        """Returns where the part's signature was written."""
        if signature is None:
            return ""
        details = opaque_details(signature) if isinstance(part, Reasoning) else None
        if details is not None:
            self._details += details
            return "details"
        if isinstance(part, Text) and CARRIER in own_form(part.extra, NAME):
            self._google = google_carrier(part, signature)
            return "google"
        rank = _REASONING if isinstance(part, Reasoning) else _TEXT if isinstance(part, Text) else _IMAGE
        characters = len(part.text) if isinstance(part, Reasoning | Text) else -1
        self._states.append((rank, Sealed(signature, holder_of(part), characters)))
        return "state"

    def _sealed(self) -> dict[str, Any]:
        """The states in the order in which their parts are parsed."""
        states: dict[str, Any] = {}
        for ordinal, (_, state) in enumerate(sorted(self._states, key=lambda state: state[0])):
            states.update(state_field(state, ordinal, self._context))
        return states

    def _call(self, part: ToolCall, path: str) -> None:
        self._order.call(path)
        if is_legacy(part.extra) and self._legacy is None:
            self._legacy = call_body(part)
            extra = own_fields(part.extra, NAME)
            for key, value in extra.items():
                self._legacy.setdefault(key.removeprefix("function_call."), value)
            return
        carrier = call_carrier(part, self._context)
        self._tool_calls.append(render_call(part, carrier, path, self._losses))

    def _media(self, part: Media, path: str) -> None:
        if part.kind == "audio" and part.data is not None and self._audio is None:
            self._order.audio(path)
            losses_of_extra(part.extra, NAME, path, self._losses)
            if part.mime:
                self._losses.append(UNSTATED_FORMAT.at(f"{path}.mime"))
            native = own_form(part.extra, NAME).get("audio")
            rest = native if native is not None else self._new_audio(part)
            self._audio = {**rest, "data": part.data}
            if self._transcript or native is None:
                self._audio["transcript"] = self._transcript
            return
        if part.kind != "image":
            self._losses.append(Loss(path, part.kind, "dropped", "no field for it in an answer"))
            return
        self._order.image(path)
        self._sign(part, part.signature)
        entry = media_part(replace(part, signature=None), path, self._losses)
        if entry is not None:
            if own_form(part.extra, NAME).get("index") != "absent":
                entry["index"] = len(self._images)
            self._images.append(entry)

    def _new_audio(self, part: Media) -> dict[str, Any]:
        return {"id": self._context.new_id("audio", (part.data or "")[:64]), "expires_at": self._context.now}
