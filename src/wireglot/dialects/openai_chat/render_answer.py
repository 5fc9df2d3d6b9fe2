"""The message of an answer: its parts, put where Chat has a place for them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, assert_never

from msgspec.structs import replace

from wireglot.dialects.base import Context
from wireglot.dialects.envelope import Sealed
from wireglot.dialects.fields import own_fields, own_form
from wireglot.dialects.openai_chat.citations import render_citation
from wireglot.dialects.openai_chat.extras import NAME, lose_cache
from wireglot.dialects.openai_chat.parts import foreign_part, media_part, text_part, thinking_part
from wireglot.dialects.openai_chat.reasoning import (
    CARRIER,
    call_carrier,
    carrier_of,
    google_carrier,
    holder_of,
    opaque_details,
    put_reasoning,
    state_field,
)
from wireglot.dialects.openai_chat.tools import call_body, is_legacy, render_call
from wireglot.ir.content import Foreign, Media, Part, Reasoning, Signature, Text, ToolCall, ToolResult
from wireglot.ir.loss import Loss, losses_of_extra
from wireglot.wire.json import BadJson, decode

_ORDER = "the message has one place for each kind"
# The order in which a Chat message is read back: a part in another order is declared as moved.
_REASONING, _TEXT, _REFUSAL, _AUDIO, _IMAGE, _CALL = range(6)


class Answer:
    """One message being rendered. Chat has reasoning, then one string of text, then calls."""

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
        self._texts: list[Text] = []
        self._listed: list[Any] = []
        self._citations: list[Any] = []
        self._images: list[Any] = []
        self._tool_calls: list[dict[str, Any]] = []
        self._legacy: dict[str, Any] | None = None
        self._audio: dict[str, Any] | None = None
        self._transcript = ""
        self._refusals: list[str] = []
        self._length = 0
        self._rank = _REASONING
        self._marked = False
        self._bare = False

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
            text = "".join(part.text for part in self._texts)
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
                self._losses.append(Loss(path, "content.position", "dropped", "no results in an answer"))
            case _:
                assert_never(part)

    def _text(self, part: Text, path: str, listed: bool, spoken: bool) -> None:
        losses_of_extra(part.extra, NAME, path, self._losses)
        lose_cache(part.cache, path, self._losses)
        if not part.text and part.signature is None:
            if listed:
                self._listed.append(text_part(part, path, self._losses))
            return
        self._sign(part, part.signature)
        if part.refusal and not own_form(part.extra, NAME).get("part"):
            self._place(_REFUSAL, path, bool(self._refusals))
            self._refusals.append(part.text)
            return
        form = own_form(part.extra, NAME)
        if form.get("field") == "audio" and (spoken or "audio" in form):
            self._place(_AUDIO, path)
            self._transcript += part.text
            if not spoken:
                self._audio = {**form["audio"], "transcript": self._transcript}
            return
        # Texts of a content list stay apart, but reading them back gives the signature to the first of them.
        self._place(_TEXT, path, bool(self._texts) and (not listed or part.signature is not None))
        if listed:
            self._listed.append(text_part(part, path, []))
        for index, citation in enumerate(part.citations):
            place = f"{path}.citations[{index}]"
            entry = render_citation(citation, self._length, len(part.text), place, self._losses)
            if entry is not None:
                self._citations.append(entry)
        self._texts.append(part)
        self._length += len(part.text)

    def _reasoning(self, part: Reasoning, path: str, listed: bool) -> None:
        losses_of_extra(part.extra, NAME, path, self._losses)
        if listed and own_form(part.extra, NAME).get("field") == "content":
            self._listed.append(thinking_part(part))
            return
        # A redacted thought behind one whose own state was written is read back in the same place.
        again = bool(self._thoughts) and not (part.redacted and self._marked)
        self._place(_REASONING, path, again or (self._bare and not part.redacted))
        signed = self._sign(part, part.signature)
        self._marked = signed == "state"
        # Reading back gives a state without text to the next thought that has no state of its own.
        self._bare = self._bare or (self._marked and not part.text and not part.redacted)
        if part.text or signed == "details":
            self._thoughts.append(part)

    def _sign(self, part: Part, signature: Signature | None) -> str:
        """Where the part's signature went."""
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
        letters = len(part.text) if isinstance(part, Reasoning) else -1
        self._states.append((rank, Sealed(signature, holder_of(part), letters)))
        return "state"

    def _sealed(self) -> dict[str, Any]:
        """The states in the order in which their parts are read back."""
        states: dict[str, Any] = {}
        for ordinal, (_, state) in enumerate(sorted(self._states, key=lambda state: state[0])):
            states.update(state_field(state, ordinal, self._context))
        return states

    def _call(self, part: ToolCall, path: str) -> None:
        self._place(_CALL, path)
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
            self._place(_AUDIO, path)
            losses_of_extra(part.extra, NAME, path, self._losses)
            if part.mime:
                self._losses.append(
                    Loss(f"{path}.mime", "audio", "dropped", "answers do not tell the format")
                )
            native = own_form(part.extra, NAME).get("audio")
            rest = native if native is not None else self._new_audio(part)
            self._audio = {**rest, "data": part.data}
            if self._transcript or native is None:
                self._audio["transcript"] = self._transcript
            return
        if part.kind != "image":
            self._losses.append(Loss(path, part.kind, "dropped", "no place in an answer"))
            return
        self._place(_IMAGE, path)
        self._sign(part, part.signature)
        entry = media_part(replace(part, signature=None), path, self._losses)
        if entry is not None:
            if own_form(part.extra, NAME).get("index") != "absent":
                entry["index"] = len(self._images)
            self._images.append(entry)

    def _new_audio(self, part: Media) -> dict[str, Any]:
        return {"id": self._context.new_id("audio", (part.data or "")[:64]), "expires_at": self._context.now}

    def _place(self, rank: int, path: str, again: bool = False) -> None:
        """Say so if the part cannot stand where it stood: behind a later kind, or as a second of one."""
        if again or rank < self._rank:
            self._losses.append(Loss(path, "content.position", "approximated", _ORDER))
        self._rank = max(self._rank, rank)
