"""Fits parts to an endpoint: blank text, reasoning, media, and signatures on calls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import msgspec

from wireglot_core.dialects.common_losses import media_note
from wireglot_core.dialects.fields import own_form
from wireglot_core.ir.content import (
    APART,
    Extra,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    ResultPart,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import Feature, feature_of, losses_of_extra
from wireglot_core.ir.request import Request
from wireglot_core.providers.fit.fitting import Fitting
from wireglot_core.providers.fit.words import document_text
from wireglot_core.providers.limits import ALL_MEDIA

EMPTY_TURN: Final = "[empty message]"
"""The text of the user's empty turn where none may be empty."""
_CARRIER = "extra_content"
"""The field in which Chat clients keep Google's signatures."""
SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Google's documented bypass for calls its own model did not make."""
_SIGNER = "gemini"
"""The dialect whose signatures calls need, whichever dialect its models are served in."""
_BYPASS = Signature(SKIP_SIGNATURE, Origin(_SIGNER))


def fit_messages(request: Request, fitting: Fitting) -> Request:
    """One walk over all parts; a message without a change stays the same object."""
    fitter = _PartFitter(fitting)
    messages: list[Message] = []
    changed = False
    speaker, is_apart = "", False
    for index, message in enumerate(request.messages):
        reported = len(fitting.losses)
        fitted = fitter.message(message)
        if fitted is not message:
            changed = True
            fitting.trail.follow(message, fitted)
        if not fitted.content and not (fitting.limits.blank_text and fitted is message):
            changed = True
            losses_of_extra(fitted.extra, fitting.dialect, fitting.trail.of(fitted), fitting.losses)
            if fitted.role == "user" and "user" not in (speaker, _next_speaker(request.messages, index)):
                fitted = _noted(fitted, fitting)
            else:
                if message.is_empty and len(fitting.losses) == reported:
                    detail = "an empty turn is refused"
                    fitting.lose(fitting.trail.of(fitted), "content.empty", "dropped", detail)
                is_apart = is_apart or speaker != fitted.role != "system"
                continue
        if fitted.role != "system":
            if is_apart and fitted.role == speaker:
                fitted = set_apart(fitted, fitting)
            speaker, is_apart = fitted.role, False
        messages.append(fitted)
    if not changed:
        return request
    return msgspec.structs.replace(request, messages=tuple(messages))


def _next_speaker(messages: tuple[Message, ...], index: int) -> str:
    """The role of the turn after a message, "" at the end."""
    for message in messages[index + 1 :]:
        if message.role != "system":
            return message.role
    return ""


def _noted(message: Message, fitting: Fitting) -> Message:
    """The user's empty turn, as a note: without it, the turns around it would have another meaning, and the
    model would continue its own turn before a last one."""
    fitting.lose(fitting.trail.of(message), "content.empty", "approximated", f'sent as "{EMPTY_TURN}"')
    noted = Message("user", (Text(EMPTY_TURN),), message.name)
    fitting.trail.follow(message, noted)
    return noted


def set_apart(message: Message, fitting: Fitting) -> Message:
    """The message as a turn by itself, although the turn between it and the one before is left out."""
    extra, dialect = message.extra, fitting.dialect
    losses_of_extra(extra, dialect, fitting.trail.of(message), fitting.losses)
    own = extra if extra is not None and extra.dialect == dialect else Extra(dialect)
    form = {**own.form, APART: True}
    apart = Message(message.role, message.content, message.name, Extra(dialect, own.fields, form))
    fitting.trail.follow(message, apart)
    return apart


_NOTED: Final = "replaced by a note"


def _lost_feature(part: Reasoning) -> Feature:
    """What is lost with earlier reasoning."""
    if part.redacted:
        return "reasoning.redacted"
    return "reasoning.signature" if not part.text and part.signature is not None else "reasoning.text"


class _PartFitter:
    def __init__(self, fitting: Fitting) -> None:
        self.fitting = fitting
        self.limits = limits = fitting.limits
        self.context = fitting.context
        self.dialect = fitting.dialect
        self.losses = fitting.losses
        self.trail = fitting.trail
        self.beside: list[Part] = []
        """Parts that were moved to the end of this message."""
        self.invented_reasoning = False
        # Unbound functions: bound methods would make a reference cycle with the whole request in it.
        self._by_type: dict[type, Callable[..., Part | None]] = {
            Reasoning: _PartFitter._reasoning,
            ToolResult: _PartFitter._result,
            ToolCall: _PartFitter._call,
        }
        if not limits.blank_text:
            self._by_type[Text] = _PartFitter._text
        if not limits.media_urls or limits.media != ALL_MEDIA:
            self._by_type[Media] = _PartFitter._media

    def message(self, message: Message) -> Message:
        content = self._content(message.content)
        if self.limits.reasoning_required and message.role == "assistant":
            content = self._with_reasoning(content, message)
        name = message.name
        if name and not self.limits.message_names:
            self.fitting.lose(f"{self.trail.of(message)}.name", "message.name", "dropped", "not taken here")
            name = ""
        extra = message.extra
        if message.role == "assistant" and not self.limits.blank_text:
            extra = _without_blank(extra)
        if content is message.content and name == message.name and extra is message.extra:
            return message
        return Message(message.role, content, name, extra)

    def _content(self, content: tuple[Part, ...]) -> tuple[Part, ...]:
        """The fitted parts; the same tuple if no part changed."""
        by_type = self._by_type
        fitted: list[Part] | None = None
        for position, part in enumerate(content):
            fit = by_type.get(type(part))
            new = part if fit is None else fit(self, part)
            if new is not part and fitted is None:
                fitted = list(content[:position])
            if fitted is not None and new is not None:
                fitted.append(new)
                if new is not part:
                    self.trail.follow(part, new)
        if fitted is None:
            return content
        fitted += self.beside
        self.beside = []
        return tuple(fitted)

    def _text(self, part: Text) -> Part | None:
        if part.text and not part.text.isspace():
            return part
        if part.signature is not None and self.context.may_replay(part.signature, self.dialect):
            return part
        if part.text or part.signature is not None:
            self.fitting.lose(self.trail.of(part), "content.empty", "dropped", "blank text is refused")
        if part.cache is not None:
            path = f"{self.trail.of(part)}.cache"
            self.fitting.lose(path, "cache_marker", "dropped", "the blank text that it marked is refused")
        if part.extra is not None:
            losses_of_extra(part.extra, "", self.trail.of(part), self.losses)
        return None

    def _call(self, part: ToolCall) -> Part | None:
        if part.signature is None or self.context.may_replay(part.signature, self.dialect):
            return part
        if self._is_hosted(part.signature, part):
            return part
        self.fitting.lose(
            f"{self.trail.of(part)}.signature", "reasoning.signature", "dropped", "another provider's"
        )
        return msgspec.structs.replace(part, signature=None)

    def _is_hosted(self, signature: Signature, part: ToolCall) -> bool:
        """Whether this upstream minted the signature for another dialect that it hosts in a field of this
        dialect: Google signs calls on its Chat endpoints too. If a client names no writer, the field's
        presence is taken as proof."""
        origin = signature.origin
        if origin.dialect not in self.fitting.target.server.reasoning.hosts:
            return False
        if not origin.provider:
            return _CARRIER in own_form(part.extra, self.dialect)
        return origin.provider == self.context.provider and self.context.may_replay(signature, origin.dialect)

    def _media(self, part: Media) -> Part | None:
        if part.kind not in self.limits.media:
            text = document_text(part)
            if text is not None:
                return self._reported(part, text)
            return self._left_out(part, _NOTED)
        if not self._is_heard(part):
            return self._left_out(part, f"{part.mime} is not accepted; {_NOTED}")
        if self.limits.media_urls:
            return part
        if part.url is not None and part.url.startswith(("http://", "https://")):
            detail = "the provider may not be able to fetch this URL"
            self.fitting.lose(f"{self.trail.of(part)}.url", part.kind, "approximated", detail)
        return part

    def _is_heard(self, part: Media) -> bool:
        if part.kind != "audio" or part.data is None or not self.fitting.foreign:
            return True
        mime = part.mime.partition(";")[0].strip().lower()
        return not mime or not self.limits.audio or mime in self.limits.audio

    def _left_out(self, part: Media, detail: str, path: str = "") -> Text:
        self.fitting.lose(path or self.trail.of(part), part.kind, "dropped", detail)
        return Text(media_note(part.kind), cache=part.cache)

    def _reported(self, part: Media, text: str, path: str = "") -> Text:
        path = path or self.trail.of(part)
        self.fitting.lose(path, "document", "approximated", "sent as text")
        if part.signature is not None:
            feature = feature_of(part.signature)
            self.fitting.lose(f"{path}.signature", feature, "dropped", "sent as text, without its state")
        losses_of_extra(part.extra, "", path, self.fitting.losses)
        return Text(text, cache=part.cache)

    def _reasoning(self, part: Reasoning) -> Part | None:
        path, signature = self.trail.of(part), part.signature
        ours = signature is not None and self.context.may_replay(signature, self.dialect)
        feature = _lost_feature(part)
        match self.limits.reasoning:
            case "signed":
                if ours or self._is_raw(part) or (signature is None and self._wrote(part)):
                    return part
                self.fitting.lose(path, feature, "dropped", "not signed by this provider")
                return None
            case "own":
                if ours or (signature is None and not part.redacted and self._may_be_own(part)):
                    return part
                self.fitting.lose(path, feature, "dropped", "not written by this provider")
                return None
            case "text":
                if ours or (signature is None and not part.redacted):
                    return self._plainly(part)
                if part.redacted:
                    self.fitting.lose(path, feature, "dropped", "opaque to this provider")
                    return None
                self.fitting.lose(f"{path}.signature", "reasoning.signature", "dropped", "another provider's")
                unsigned = msgspec.structs.replace(part, signature=None)
                self.trail.follow(part, unsigned)
                return self._plainly(unsigned)
            case "drop":
                self.fitting.lose(path, feature, "dropped", "this provider does not accept earlier reasoning")
                return None

    def _wrote(self, part: Reasoning) -> bool:
        return part.minter is not None and self.context.may_replay(Signature("", part.minter), self.dialect)

    def _may_be_own(self, part: Reasoning) -> bool:
        """Reasoning without a known author is the endpoint's own if the client speaks its dialect."""
        return self._wrote(part) if part.minter is not None else not self.fitting.foreign

    def _is_raw(self, part: Reasoning) -> bool:
        """Open-weight models (gpt-oss) show all of their reasoning in Responses, unsigned."""
        raw = own_form(part.extra, self.dialect).get("source") == "content"
        return raw and part.signature is None and self._may_be_own(part)

    def _plainly(self, part: Reasoning) -> Reasoning:
        """The reasoning in the fields that this provider reads, not those of another one."""
        if self.limits.reasoning_field and self.fitting.target.has_variants:
            return self._in_its_field(part)
        form = self.fitting.target.server.reasoning.unsigned if part.signature is None else None
        if form is None and (part.extra is None or not self.limits.reasoning_required):
            return part
        losses_of_extra(part.extra, "", self.trail.of(part), self.losses)
        return msgspec.structs.replace(part, extra=form)

    def _in_its_field(self, part: Reasoning) -> Reasoning:
        field = self.limits.reasoning_field
        if part.signature is None and own_form(part.extra, self.dialect).get("field") == field:
            return part
        if part.signature is not None:
            path = f"{self.trail.of(part)}.signature"
            self.fitting.lose(path, "reasoning.signature", "dropped", "this provider reads the text alone")
        losses_of_extra(part.extra, "", self.trail.of(part), self.losses)
        return Reasoning(part.text, extra=Extra(self.dialect, form={"field": field}))

    def _result(self, part: ToolResult) -> Part | None:
        if "document" not in self.limits.media or self.limits.tool_result_media != "inside":
            part = self._with_media_reported(part)
        if self.limits.tool_result_media == "inside":
            return part
        media = [item for item in part.content if type(item) is Media]
        if not media:
            return part
        detail = "moved out of the result, after the results of this turn"
        self.fitting.lose(self.trail.of(part), "tool_result.media", "approximated", detail)
        kept: list[ResultPart] = [item for item in part.content if type(item) is not Media]
        kinds = ", ".join(item.kind for item in media)
        number = sum(type(item) is Media for item in self.beside) + 1
        kept.append(Text(f"[{kinds}: attachment {number} below]"))
        self.beside.append(Text(f"[attachment {number}: {kinds} of a tool result]"))
        self.beside.extend(media)
        return msgspec.structs.replace(part, content=tuple(kept))

    def _cannot_leave(self, part: Media) -> bool:
        taken = part.kind in self.limits.media and self._is_heard(part)
        return not taken and self.limits.tool_result_media != "inside"

    def _with_media_reported(self, part: ToolResult) -> ToolResult:
        """Converts text documents to text if they cannot stay documents, and replaces media that could be
        placed neither in the result nor after it by notes."""
        content: list[ResultPart] = []
        changed = False
        for number, item in enumerate(part.content):
            path = f"{self.trail.of(part)}.content[{number}]"
            text = document_text(item) if type(item) is Media and item.kind == "document" else None
            if text is not None and type(item) is Media:
                content.append(self._reported(item, text, path))
            elif type(item) is Media and self._cannot_leave(item):
                content.append(self._left_out(item, _NOTED, path))
            else:
                content.append(item)
                continue
            changed = True
        return msgspec.structs.replace(part, content=tuple(content)) if changed else part

    def _with_reasoning(self, content: tuple[Part, ...], message: Message) -> tuple[Part, ...]:
        calls = any(type(part) is ToolCall for part in content)
        if not calls or any(type(part) is Reasoning for part in content):
            return content
        if not self.invented_reasoning:
            # Reported once: every turn with calls gets the same addition.
            self.invented_reasoning = True
            detail = "this provider requires reasoning on turns with calls; an empty one was inserted"
            self.fitting.lose(self.trail.of(message), "reasoning.text", "invented", detail)
        return (Reasoning(""), *content)


def _without_blank(extra: Extra | None) -> Extra | None:
    """openai-python gives a streamed call the content "" and sends it back like that; it means the same as
    null."""
    if extra is None or extra.fields.get("content") != "":
        return extra
    fields = {key: value for key, value in extra.fields.items() if key != "content"}
    return Extra(extra.dialect, fields, extra.form)


def sign_calls(request: Request, fitting: Fitting) -> Request:
    """Gemini validates a signature on the first call of each step of the current turn. If the real one is
    lost or foreign, the documented bypass value replaces it, and stays in place in later turns: removing it
    would change the beginning of the prompt, and no cache would match."""
    messages = tuple([_with_signed_call(message, fitting) for message in request.messages])
    if all(map(operator.is_, messages, request.messages)):
        return request
    return msgspec.structs.replace(request, messages=messages)


def _with_signed_call(message: Message, fitting: Fitting) -> Message:
    if message.role != "assistant":
        return message
    for call in message.content:
        if type(call) is ToolCall:
            break
    else:
        return message
    if call.signature is not None and fitting.context.may_replay(call.signature, _SIGNER):
        return message
    if call.signature is None and "thoughtSignature" in own_form(call.extra, _SIGNER):
        return message  # its client wrote the bypass itself
    path = f"{fitting.trail.of(call)}.signature"
    detail = "the documented bypass was sent: no signature of this model is known"
    fitting.lose(path, "reasoning.signature", "invented", detail)
    return fitting.changed(message, "signed", _signed)


def _signed(message: Message) -> tuple[Part, ...]:
    """The message with the bypass on its first call."""
    content = list(message.content)
    position, call = next((at, part) for at, part in enumerate(content) if type(part) is ToolCall)
    content[position] = msgspec.structs.replace(call, signature=_BYPASS)
    return tuple(content)
