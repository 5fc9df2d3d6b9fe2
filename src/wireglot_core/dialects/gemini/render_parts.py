"""Renders parts for an upstream (signatures replayed or dropped) or a client (signatures carried)."""

from __future__ import annotations

from typing import Any, Final, Literal, assert_never

import msgspec

from wireglot_core.dialects.arguments import declare_arguments, read_arguments
from wireglot_core.dialects.common_losses import OPAQUE_REASONING
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.envelope import Holder
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.gemini.lost_fields import LOST, LOST_IN_ANSWERS
from wireglot_core.dialects.gemini.media import render_media
from wireglot_core.dialects.gemini.names import OWN, put_back
from wireglot_core.dialects.gemini.parts import plain_name
from wireglot_core.dialects.gemini.results import response_object
from wireglot_core.dialects.google_shared import NO_OPAQUE_STATE, UNSIGNED_RESULT
from wireglot_core.dialects.lost_fields import LostFields
from wireglot_core.ir.content import Foreign, Media, Part, Reasoning, Signature, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss, feature_of, left_out


def signature_for_client(signature: Signature, holder: Holder, context: Context) -> str:
    if signature.origin.dialect == OWN and not signature.id and holder != "redacted":
        return signature.data
    return context.seal(signature, holder)


def signature_for_upstream(signature: Signature | None, context: Context, path: str, out: list[Loss]) -> str:
    """The signature if this upstream minted it, else nothing and a loss."""
    if signature is None:
        return ""
    if context.may_replay(signature, OWN) and signature.data:
        return signature.data
    out.append(
        Loss(
            f"{path}.signature",
            feature_of(signature),
            "dropped",
            f"issued by {signature.origin.dialect or 'an unknown provider'}",
        )
    )
    return ""


Side = Literal["client", "upstream"]
_LOST_OF_TEXT: Final[dict[Side, LostFields]] = {"client": LOST_IN_ANSWERS, "upstream": LOST}


class PartRenderer(msgspec.Struct, eq=False):
    """Renders the parts of one document; `losses` collects what they could not express."""

    context: Context
    side: Side
    losses: list[Loss] = []
    names: dict[str, str] = {}
    """Call id -> function name, for results that do not state it."""

    def render(self, part: Part, path: str) -> dict[str, Any] | None:
        match part:
            case Text():
                return self.text(part, path)
            case ToolCall():
                return self.call(part, path)
            case ToolResult():
                return self.result(part, path)
            case Reasoning():
                return self.reasoning(part, path)
            case Media():
                rendered = render_media(part, path, self.losses)
                return self.signed(rendered, part.signature, "media", path) if rendered is not None else None
            case Foreign():
                return self.foreign(part, path)
            case _ as never:
                assert_never(never)

    def text(self, part: Text, path: str) -> dict[str, Any] | None:
        """A text part; none for an empty one, which is refused, unless it is signed or Gemini's own."""
        _LOST_OF_TEXT[self.side].of(part, path, self.losses)
        if part.text and part.extra is None and part.signature is None:
            return {"text": part.text}
        form = own_form(part.extra, OWN)
        if form.get("part") == "bare" and not part.text:
            rendered: dict[str, Any] = {}
        elif not part.text and part.signature is None and not form:
            return None
        else:
            rendered = {"text": part.text}
        if part.signature is not None:
            rendered = self.signed(rendered, part.signature, "text", path)
            if not part.text and "thoughtSignature" not in rendered:
                return None
        return put_back(self._bypassed(rendered, form), part.extra)

    def _bypassed(self, rendered: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
        """The part with the client's own placeholder, if no signature is known."""
        if self.side == "upstream" and "thoughtSignature" in form:
            rendered.setdefault("thoughtSignature", form["thoughtSignature"])
        return rendered

    def _lose_signature(self, part: Text | Media, path: str) -> None:
        if part.signature is not None:
            self.losses.append(UNSIGNED_RESULT.at(f"{path}.signature"))

    def reasoning(self, part: Reasoning, path: str) -> dict[str, Any] | None:
        LOST.of(part, path, self.losses)
        if self.side == "client":
            rendered = {"text": part.text, "thought": True}
            holder: Holder = "redacted" if part.redacted else "reasoning"
            if part.redacted and part.signature is None:
                self.losses.append(NO_OPAQUE_STATE.at(path))
            if own_form(part.extra, OWN).get("part") == "bare" and not part.text:
                del rendered["text"]
            return put_back(self.signed(rendered, part.signature, holder, path), part.extra)
        if part.redacted:
            self.losses.append(OPAQUE_REASONING.at(path))
            return None
        signature = signature_for_upstream(part.signature, self.context, path, self.losses)
        form = own_form(part.extra, OWN)
        if (part.signature is not None and not signature) or (not part.text and not signature and not form):
            # Another provider's thoughts mean nothing to Gemini, and an empty part is refused.
            if part.text:
                self.losses.append(
                    Loss(f"{path}.text", "reasoning.text", "dropped", "thoughts of another provider")
                )
            return None
        rendered = (
            {"thought": True}
            if form.get("part") == "bare" and not part.text
            else {"text": part.text, "thought": True}
        )
        if signature:
            rendered["thoughtSignature"] = signature
        return put_back(self._bypassed(rendered, form), part.extra)

    def call(self, part: ToolCall, path: str) -> dict[str, Any]:
        out = self.losses
        form: dict[str, Any] = {}
        name = part.name
        LOST.of(part, path, out)
        if part.extra is not None:
            form = own_form(part.extra, OWN)
            stated = form.get("name")
            if type(stated) is str and plain_name(stated) == name:
                name = stated
        call: dict[str, Any] = {}
        if not self._hides_id(part.id, form.get("id") == "absent"):
            call["id"] = part.id
        call["name"] = name
        if part.kind == "custom":
            call["args"] = {"input": part.arguments}
        elif form.get("args") != "absent" or part.arguments not in ("", "{}"):
            call["args"], read = read_arguments(part.arguments)
            if read:
                declare_arguments(read, path, out)
        self.names[part.id] = name
        rendered: dict[str, Any] = {"functionCall": call}
        if part.signature is not None:
            self.signed(rendered, part.signature, "call", path)
        if part.extra is None:
            return rendered
        return put_back(self._bypassed(rendered, form), part.extra)

    def _hides_id(self, identifier: str, absent: bool) -> bool:
        """Whether to leave out an id: a minted one means nothing to Google; a client needs it to answer the
        call."""
        return not identifier or (is_minted(identifier) and (absent or self.side == "upstream"))

    def result(self, part: ToolResult, path: str) -> dict[str, Any]:
        if part.extra is None and part.cache is None and part.kind == "function":
            texts = part.plain_texts(OWN)
            name = part.name or self.names.get(part.call_id)
            if texts is not None and name and part.call_id and not is_minted(part.call_id):
                said = {"error" if part.is_error else "output": "\n".join(texts)}
                return {"functionResponse": {"id": part.call_id, "name": name, "response": said}}
        return self._other_result(part, path)

    def _other_result(self, part: ToolResult, path: str) -> dict[str, Any]:
        """Renders the less frequent forms of a result."""
        out = self.losses
        LOST.of(part, path, out)
        form = own_form(part.extra, OWN)
        answer: dict[str, Any] = {}
        stated = form.get("id")
        if stated is not None and stated != "absent":
            answer["id"] = stated
        elif stated != "absent" and part.call_id and not is_minted(part.call_id):
            answer["id"] = part.call_id
        name = part.name or self.names.get(part.call_id, "")
        if not name:
            name = "unknown"
            out.append(Loss(f"{path}.name", "tool_result.name", "invented", "no call of this id is known"))
        answer["name"] = name
        texts, media = self._result_content(part, path)
        response = response_object("\n".join(texts), part.is_error, form.get("response"))
        if response is not None:
            answer["response"] = response
        if media or form.get("parts") == "empty":
            answer["parts"] = media[0] if form.get("parts") == "single" and len(media) == 1 else media
        rendered = {"functionResponse": answer}
        return rendered if part.extra is None else put_back(rendered, part.extra)

    def _result_content(self, part: ToolResult, path: str) -> tuple[list[str], list[dict[str, Any]]]:
        texts: list[str] = []
        media: list[dict[str, Any]] = []
        misplaced = False
        for index, item in enumerate(part.content):
            if type(item) is Text and item.is_plain(OWN):
                if item.text:
                    misplaced = misplaced or bool(media)
                    texts.append(item.text)
                continue
            place = f"{path}.content[{index}]"
            match item:
                case Text():
                    _LOST_OF_TEXT[self.side].of(item, place, self.losses)
                    self._lose_signature(item, place)
                    if item.text:
                        misplaced = misplaced or bool(media)
                        texts.append(item.text)
                case Media():
                    if item.detail:
                        item = msgspec.structs.replace(item, detail="")
                        detail = "media in a result have no resolution"
                        self.losses.append(Loss(f"{place}.detail", "image.detail", "dropped", detail))
                    rendered = render_media(item, place, self.losses)
                    if rendered is None:
                        continue
                    self._lose_signature(item, place)
                    if "text" in rendered:
                        texts.append(rendered["text"])
                    else:
                        media.append(rendered)
                case Foreign():
                    rendered = self.foreign(item, place)
                    if rendered is not None:
                        media.append(rendered)
                case _ as never:
                    assert_never(never)
        if misplaced:
            self.losses.append(
                Loss(f"{path}.content", "content.position", "approximated", "text comes before media")
            )
        return texts, media

    def foreign(self, part: Foreign, path: str) -> dict[str, Any] | None:
        if part.dialect == OWN:
            return part.value
        self.losses.append(left_out(part, path))
        return None

    def signed(
        self, rendered: dict[str, Any], signature: Signature | None, holder: Holder, path: str
    ) -> dict[str, Any]:
        if signature is None:
            return rendered
        if self.side == "client":
            rendered["thoughtSignature"] = signature_for_client(signature, holder, self.context)
            return rendered
        data = signature_for_upstream(signature, self.context, path, self.losses)
        if data:
            rendered["thoughtSignature"] = data
        return rendered
