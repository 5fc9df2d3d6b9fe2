"""The conversation toward an endpoint: system text, blank parts, reasoning, media, markers."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wireglot.dialects.base import Context
from wireglot.ir.content import (
    Foreign,
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
from wireglot.ir.loss import Feature, Loss
from wireglot.ir.request import Request
from wireglot.providers.limits import Limits

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Google's documented bypass for calls its own model did not make."""

_CONTINUED = "(The conversation continues.)"
_GO_ON = "Continue from exactly where your last message ended."


def place_system(messages: tuple[Message, ...], limits: Limits, losses: list[Loss]) -> tuple[Message, ...]:
    """System messages behind the start, where the endpoint takes them: in place, moved, or as marked text."""
    if limits.system_midway == "anywhere":
        return messages
    head = 0
    while head < len(messages) and messages[head].role == "system":
        head += 1
    if all(message.role != "system" for message in messages[head:]):
        return messages
    placed = list(messages[:head])
    held: list[Message] = []
    for index, message in enumerate(messages[head:], head):
        if message.role != "system":
            placed.append(message)
            if message.role == "user" and held:
                placed.extend(held)
                held.clear()
        elif limits.system_midway == "no":
            placed.append(_as_reminder(message, f"$.messages[{index}]", losses))
        elif (
            placed
            and placed[-1].role in ("user", "system")
            and _next_role(messages, index) in (None, "assistant")
        ):
            placed.append(message)
        elif _next_role(messages, index) == "user":
            losses.append(
                Loss(
                    f"$.messages[{index}]",
                    "system.position",
                    "approximated",
                    "moved behind the next user turn",
                )
            )
            held.append(message)
        else:
            placed.append(_as_reminder(message, f"$.messages[{index}]", losses))
    return tuple(placed)


def _next_role(messages: tuple[Message, ...], index: int) -> str | None:
    return next((message.role for message in messages[index + 1 :] if message.role != "system"), None)


def _as_reminder(message: Message, path: str, losses: list[Loss]) -> Message:
    losses.append(Loss(path, "system.position", "approximated", "sent as marked text of a user turn"))
    content: list[Part] = []
    for part in message.content:
        if type(part) is Text:
            text = f"<system-reminder>\n{part.text}\n</system-reminder>"
            content.append(msgspec.structs.replace(part, text=text))
        else:
            content.append(part)
    return Message("user", tuple(content), message.name, message.extra)


def fit_ends(messages: tuple[Message, ...], limits: Limits, losses: list[Loss]) -> tuple[Message, ...]:
    """A first turn of the user and a last one the model may answer, where the endpoint insists."""
    first = next((index for index, message in enumerate(messages) if message.role != "system"), None)
    if limits.starts_with_user and first is not None and messages[first].role == "assistant":
        losses.append(
            Loss(
                f"$.messages[{first}]",
                "message.role",
                "invented",
                "a user turn was put before the first answer",
            )
        )
        messages = (*messages[:first], Message("user", (Text(_CONTINUED),)), *messages[first:])
    if not limits.prefill and messages and messages[-1].role == "assistant":
        last = messages[-1]
        if not any(type(part) is ToolCall for part in last.content):
            losses.append(
                Loss(
                    f"$.messages[{len(messages) - 1}]",
                    "prefill",
                    "approximated",
                    "this model continues no answer of its own; it was asked to go on",
                )
            )
            messages = (*messages, Message("user", (Text(_GO_ON),)))
    return messages


def fit_messages(
    request: Request, limits: Limits, context: Context, dialect: str, losses: list[Loss]
) -> Request:
    """One walk over all parts; a message without a change stays the same object."""
    fitter = _PartFitter(limits, context, dialect, losses)
    messages: list[Message] = []
    changed = False
    for index, message in enumerate(request.messages):
        fitted = fitter.message(message, index)
        if fitted is not message:
            changed = True
            if not fitted.content:
                continue
        messages.append(fitted)
    if not changed:
        return request
    return msgspec.structs.replace(request, messages=tuple(messages))


class _PartFitter:
    def __init__(self, limits: Limits, context: Context, dialect: str, losses: list[Loss]) -> None:
        self.limits = limits
        self.context = context
        self.dialect = dialect
        self.losses = losses
        self.invented_reasoning = False
        self._by_type: dict[type, Callable[..., Part | None]] = {
            Reasoning: self._reasoning,
            ToolResult: self._result,
        }
        if not limits.blank_text:
            self._by_type[Text] = self._text
        if not limits.media_urls:
            self._by_type[Media] = self._media

    def message(self, message: Message, index: int) -> Message:
        content = message.content
        by_type = self._by_type
        beside: list[Part] = []
        fitted: list[Part] | None = None
        for position, part in enumerate(content):
            fit = by_type.get(type(part))
            if fit is None:
                if fitted is not None:
                    fitted.append(part)
                continue
            new = fit(part, index, position, beside)
            if new is not part and fitted is None:
                fitted = list(content[:position])
            if fitted is not None and new is not None:
                fitted.append(new)
        name = message.name
        if name and not self.limits.message_names:
            self.losses.append(
                Loss(f"$.messages[{index}].name", "message.name", "dropped", "not taken by this provider")
            )
            name = ""
        result = (
            content if fitted is None and not beside else (*(content if fitted is None else fitted), *beside)
        )
        if self.limits.reasoning_required and message.role == "assistant":
            result = self._with_reasoning(result, index)
        if result is content and name == message.name:
            return message
        return Message(message.role, tuple(result), name, message.extra)

    def _text(self, part: Text, index: int, position: int, beside: list[Part]) -> Part | None:
        if part.text and (not part.text.isspace()):
            return part
        if part.signature is not None and self.context.may_replay(part.signature, self.dialect):
            return part
        if part.text or part.signature is not None:
            path = f"$.messages[{index}].content[{position}]"
            self.losses.append(Loss(path, "content.empty", "dropped", "blank text is refused"))
        return None

    def _media(self, part: Media, index: int, position: int, beside: list[Part]) -> Part | None:
        if part.url is not None and part.url.startswith(("http://", "https://")):
            feature = "image" if part.kind == "image" else part.kind
            path = f"$.messages[{index}].content[{position}].url"
            self.losses.append(
                Loss(path, feature, "approximated", "the provider may not be able to fetch this address")
            )
        return part

    def _reasoning(self, part: Reasoning, index: int, position: int, beside: list[Part]) -> Part | None:
        replay = self.limits.reasoning
        path = f"$.messages[{index}].content[{position}]"
        ours = part.signature is not None and self.context.may_replay(part.signature, self.dialect)
        if replay == "signed":
            if ours:
                return part
            feature: Feature = "reasoning.redacted" if part.redacted else "reasoning.text"
            detail = "not signed by this provider" if part.signature is not None else "not signed"
            self.losses.append(Loss(path, feature, "dropped", detail))
            return None
        if replay == "text":
            if part.redacted:
                if ours:
                    return part
                self.losses.append(Loss(path, "reasoning.redacted", "dropped", "opaque to this provider"))
                return None
            if part.signature is not None and not ours:
                self.losses.append(
                    Loss(f"{path}.signature", "reasoning.signature", "dropped", "another provider's")
                )
                return msgspec.structs.replace(part, signature=None)
            return part
        self.losses.append(Loss(path, "reasoning.text", "dropped", "this provider takes no reasoning back"))
        return None

    def _result(self, part: ToolResult, index: int, position: int, beside: list[Part]) -> Part | None:
        if self.limits.tool_result_media == "inside":
            return part
        media = [item for item in part.content if type(item) is Media]
        if not media:
            return part
        path = f"$.messages[{index}].content[{position}]"
        self.losses.append(
            Loss(
                path,
                "tool_result.media",
                "approximated",
                "moved out of the result, behind the results of this turn",
            )
        )
        kept: list[ResultPart] = [item for item in part.content if type(item) is not Media]
        kinds = ", ".join(item.kind for item in media)
        number = sum(type(item) is Media for item in beside) + 1
        kept.append(Text(f"[{kinds}: attachment {number} below]"))
        beside.append(Text(f"[attachment {number}: {kinds} of a tool result]"))
        beside.extend(media)
        return msgspec.structs.replace(part, content=tuple(kept))

    def _with_reasoning(self, content: tuple[Part, ...] | list[Part], index: int) -> tuple[Part, ...]:
        parts = tuple(content)
        calls = any(type(part) is ToolCall for part in parts)
        if not calls or any(type(part) is Reasoning for part in parts):
            return parts
        if not self.invented_reasoning:
            self.invented_reasoning = True
            self.losses.append(
                Loss(
                    f"$.messages[{index}].content",
                    "reasoning.text",
                    "invented",
                    "this provider demands reasoning on turns with calls; an empty one was put there",
                )
            )
        return (Reasoning(""), *parts)


def sign_calls(request: Request, context: Context, losses: list[Loss]) -> Request:
    """Gemini validates a signature on the first call of each step of the current turn. Where the real one is
    lost or foreign, the documented bypass stands in."""
    messages = request.messages
    current = 0
    for index, message in enumerate(messages):
        # Text behind the results of a step does not begin a new turn.
        if message.role == "user" and not any(type(part) is ToolResult for part in message.content):
            current = index
    signed = list(messages)
    for index in range(current, len(messages)):
        message = messages[index]
        if message.role != "assistant":
            continue
        for position, part in enumerate(message.content):
            if type(part) is not ToolCall:
                continue
            if part.signature is None or not context.may_replay(part.signature, "gemini"):
                losses.append(
                    Loss(
                        f"$.messages[{index}].content[{position}].signature",
                        "reasoning.signature",
                        "invented",
                        "the documented bypass was sent: no signature of this model is known",
                    )
                )
                content = list(message.content)
                content[position] = msgspec.structs.replace(
                    part, signature=Signature(SKIP_SIGNATURE, Origin("gemini"))
                )
                signed[index] = Message(message.role, tuple(content), message.name, message.extra)
            break
    return request if signed == list(messages) else msgspec.structs.replace(request, messages=tuple(signed))


def fit_cache_markers(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    """At most so many markers; the last ones reach furthest and stay."""
    places = _marked(request)
    if len(places) <= limits.cache_markers:
        return request
    surplus = set(places[: len(places) - limits.cache_markers])
    for path in sorted(surplus):
        losses.append(Loss(path, "cache_marker", "dropped", f"at most {limits.cache_markers} are taken"))
    tools = tuple(
        msgspec.structs.replace(tool, cache=None) if f"$.tools[{index}].cache" in surplus else tool
        for index, tool in enumerate(request.tools)
    )
    messages = []
    for index, message in enumerate(request.messages):
        content = tuple(
            msgspec.structs.replace(part, cache=None)
            if f"$.messages[{index}].content[{position}].cache" in surplus
            else part
            for position, part in enumerate(message.content)
        )
        messages.append(Message(message.role, content, message.name, message.extra))
    cache = None if "$.cache" in surplus else request.cache
    return msgspec.structs.replace(request, tools=tools, messages=tuple(messages), cache=cache)


def _marked(request: Request) -> list[str]:
    """Every marker, in the order the prompt is built: tools, system and turns; the automatic one is last."""
    places = [
        f"$.tools[{index}].cache" for index, tool in enumerate(request.tools) if getattr(tool, "cache", None)
    ]
    for index, message in enumerate(request.messages):
        for position, part in enumerate(message.content):
            if isinstance(part, (Foreign, Reasoning)):
                continue
            if part.cache is not None:
                places.append(f"$.messages[{index}].content[{position}].cache")
    if request.cache is not None:
        places.append("$.cache")
    return places
