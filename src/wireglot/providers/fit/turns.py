"""Turns an endpoint insists on: where system text may stand, who speaks first, who last."""

from __future__ import annotations

import msgspec

from wireglot.ir.content import Foreign, Message, Part, Text, ToolCall
from wireglot.ir.loss import Loss
from wireglot.ir.trail import Trail
from wireglot.providers.limits import Limits

_BEGIN = "Begin."
"""One word for both: a request of system texts alone goes on as a conversation that the model began."""
_GO_ON = "Continue from exactly where your last message ended."


def _is_wordless(message: Message, dialect: str) -> bool:
    """Whether it has only parts of another dialect: the renderer reports them, and writes nothing."""
    for part in message.content:
        if type(part) is not Foreign or part.dialect == dialect:
            return False
    return bool(message.content)


def place_system(
    messages: tuple[Message, ...], limits: Limits, losses: list[Loss], trail: Trail, dialect: str = ""
) -> tuple[Message, ...]:
    """System messages behind the start, where the endpoint takes them: in place, moved, or as marked text."""
    if limits.system_midway == "anywhere":
        return messages
    head = 0
    while head < len(messages) and messages[head].role == "system":
        head += 1
    if "system" not in [message.role for message in messages[head:]]:
        return messages
    placed = list(messages[:head])
    held: list[Message] = []
    for index, message in enumerate(messages[head:], head):
        if message.role != "system":
            placed.append(message)
            if message.role == "user" and held:
                placed.extend(held)
                held.clear()
            continue
        if _is_wordless(message, dialect):
            placed.append(message)
            continue
        behind = next((other.role for other in reversed(placed) if not _is_wordless(other, dialect)), None)
        before = _next_speaker(messages, index)
        if limits.system_midway == "after-user" and behind in ("user", "system") and before != "user":
            placed.append(message)
        elif limits.system_midway == "after-user" and before == "user":
            detail = "moved behind the next user turn"
            losses.append(Loss(trail.of(message), "system.position", "approximated", detail))
            held.append(message)
        else:
            placed.append(_as_reminder(message, losses, trail))
    return tuple(placed)


def _next_speaker(messages: tuple[Message, ...], index: int) -> str | None:
    return next((message.role for message in messages[index + 1 :] if message.role != "system"), None)


def _as_reminder(message: Message, losses: list[Loss], trail: Trail) -> Message:
    detail = "sent as marked text of a user turn"
    losses.append(Loss(trail.of(message), "system.position", "approximated", detail))
    content: list[Part] = []
    for part in message.content:
        if type(part) is Text:
            marked = msgspec.structs.replace(part, text=f"<system-reminder>\n{part.text}\n</system-reminder>")
            trail.follow(part, marked)
            content.append(marked)
        else:
            content.append(part)
    reminder = Message("user", tuple(content), message.name, message.extra)
    trail.follow(message, reminder)
    return reminder


def fit_ends(
    messages: tuple[Message, ...],
    limits: Limits,
    losses: list[Loss],
    trail: Trail,
    dialect: str = "",
    *,
    foreign: bool = True,
) -> tuple[Message, ...]:
    """A first turn of the user and a last one the model may answer, where the endpoint insists, and where it
    would not continue what a client of another dialect wants continued."""
    if limits.starts_with_user:
        messages = _begun_by_user(messages, losses, trail, dialect)
    if not messages or messages[-1].role != "assistant":
        return messages
    continued = limits.continues or bool(limits.prefill_field) or not foreign
    if limits.prefill and (continued or not _speaks(messages[-1])):
        return messages
    if any(type(part) is ToolCall for part in messages[-1].content):
        return messages
    return asked_to_go_on(messages, "this model continues no answer of its own", losses, trail)


def _begun_by_user(
    messages: tuple[Message, ...], losses: list[Loss], trail: Trail, dialect: str
) -> tuple[Message, ...]:
    first = None
    for index, message in enumerate(messages):
        if message.role != "system" and not _is_wordless(message, dialect):
            first = index
            break
    if first is not None and messages[first].role == "assistant":
        detail = "a user turn was put before the first answer"
        losses.append(Loss(trail.of(messages[first]), "message.role", "invented", detail))
        return (*messages[:first], Message("user", (Text(_BEGIN),)), *messages[first:])
    if first is None and messages:
        detail = "a user turn was put behind the system text: nobody else had spoken"
        losses.append(Loss("$.messages", "message.role", "invented", detail))
        return (*messages, Message("user", (Text(_BEGIN),)))
    return messages


def _speaks(message: Message) -> bool:
    return any(type(part) is Text and part.text.strip() for part in message.content)


def asked_to_go_on(
    messages: tuple[Message, ...], why: str, losses: list[Loss], trail: Trail
) -> tuple[Message, ...]:
    """A last answer that cannot be continued as one, with a request to do so behind it."""
    losses.append(Loss(trail.of(messages[-1]), "prefill", "approximated", f"{why}; it was asked to go on"))
    return (*messages, Message("user", (Text(_GO_ON),)))
