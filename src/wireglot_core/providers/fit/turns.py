"""Rules of endpoints about turns: where system text is allowed, and which role is first and last."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from wireglot_core.ir.content import Foreign, Message, Part, Text, ToolCall
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.loss import losses_of_extra
from wireglot_core.ir.request import Request
from wireglot_core.ir.turns import merge_neighbours
from wireglot_core.providers.fit.fitting import Fitting
from wireglot_core.providers.fit.parts import set_apart
from wireglot_core.providers.fit.survey import BLANK, FOREIGN, MIDWAY, NEIGHBOURS

BEGIN: Final = "Begin."
"""The user's turn before a conversation that the model began."""
LEFT_OUT: Final = "[message left out: this model cannot take it]"
"""The text of a turn of the user of which nothing can be sent."""
_GO_ON = "Continue from exactly where your last message ended."


def _is_wordless(message: Message, dialect: str) -> bool:
    """Whether the message has only parts of another dialect, and perhaps empty texts beside them: the
    renderer reports the parts, and writes nothing."""
    found = False
    for part in message.content:
        if type(part) is Foreign and part.dialect != dialect:
            found = True
        elif type(part) is not Text or part.text or part.signature is not None:
            return False
    return found


def arrange(request: Request, fitting: Fitting) -> Request:
    """Places system texts where the endpoint accepts them; for other dialects, joins each turn to one
    message."""
    messages = request.messages
    if fitting.seen & MIDWAY:
        messages = _with_last_turn(messages, fitting)
    if fitting.limits.system_midway != "anywhere" and fitting.seen & (MIDWAY | FOREIGN):
        messages = _with_system_placed(messages, fitting)
    if fitting.foreign and (fitting.seen & NEIGHBOURS or messages is not request.messages):
        messages = merge_neighbours(messages, fitting.dialect, fitting.losses, fitting.trail, fitting.join)
        if messages is not request.messages:
            fitting.settle(messages)
    return request if messages is request.messages else msgspec.structs.replace(request, messages=messages)


def _with_last_turn(messages: tuple[Message, ...], fitting: Fitting) -> tuple[Message, ...]:
    """An empty system text after the model's last turn, as an empty turn of the user: without it, the model
    would continue its own turn."""
    last, is_silent = messages[-1], partial(_is_silent, blank=not fitting.limits.blank_text)
    if not is_silent(last):
        return messages
    if next((each.role for each in reversed(messages) if not is_silent(each)), "") != "assistant":
        return messages
    path = fitting.trail.of(last)
    fitting.lose(path, "message.role", "approximated", "an empty turn of the user: it is the last")
    losses_of_extra(last.extra, "", path, fitting.losses)
    fitting.seen |= BLANK
    asked = Message("user", last.content, last.name)
    fitting.trail.follow(last, asked)
    return (*messages[:-1], asked)


def _is_silent(message: Message, blank: bool) -> bool:
    """Whether it is a system text without a character. `blank`: or only with white space."""
    return message.role == "system" and all(
        type(part) is Text and not (part.text.strip() if blank else part.text) for part in message.content
    )


def _with_system_placed(messages: tuple[Message, ...], fitting: Fitting) -> tuple[Message, ...]:
    """Places system messages after the beginning where the endpoint accepts them: in place, moved, or as text
    in tags."""
    head = 0
    while head < len(messages) and messages[head].role == "system":
        head += 1
    if "system" not in [message.role for message in messages[head:]]:
        return messages
    after_user, dialect = fitting.limits.system_midway == "after-user", fitting.dialect
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
        if after_user and before == "user":
            detail = "moved after the next user turn"
            fitting.lose(fitting.trail.of(message), "system.position", "approximated", detail)
            held.append(message)
        elif after_user and behind in ("user", "system"):
            placed.append(message)
        else:
            placed.append(_as_reminder(message, fitting))
    return tuple(placed)


def _next_speaker(messages: tuple[Message, ...], index: int) -> str | None:
    return next((message.role for message in messages[index + 1 :] if message.role != "system"), None)


def _as_reminder(message: Message, fitting: Fitting) -> Message:
    detail, trail = "sent as marked text of a user turn", fitting.trail
    fitting.lose(trail.of(message), "system.position", "approximated", detail)
    content: list[Part] = []
    for part in message.content:
        if type(part) is Text and part.text.strip():
            marked = msgspec.structs.replace(part, text=f"<system-reminder>\n{part.text}\n</system-reminder>")
            trail.follow(part, marked)
            content.append(marked)
        else:
            content.append(part)
    reminder = Message("user", tuple(content), message.name, message.extra)
    trail.follow(message, reminder)
    return reminder


def fit_beginning(request: Request, fitting: Fitting) -> Request:
    """Makes the first turn one of the user: one is added, or a system text without any turn becomes it."""
    messages, begin = request.messages, Message("user", (Text(BEGIN),))
    first = None
    for index, message in enumerate(messages):
        if message.role != "system" and not _is_wordless(message, fitting.dialect):
            first = index
            break
    if first is not None and messages[first].role == "assistant":
        detail = f'a turn of the user was put before the first answer: "{BEGIN}"'
        fitting.lose(fitting.trail.of(messages[first]), "message.role", "invented", detail)
        return msgspec.structs.replace(request, messages=(*messages[:first], begin, *messages[first:]))
    if first is None:
        return _with_system_asked(request, fitting)
    return request


def _with_system_asked(request: Request, fitting: Fitting) -> Request:
    """The last system text as the user's turn, in a request without turns."""
    messages, trail = request.messages, fitting.trail
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message.role != "system" or _is_wordless(message, fitting.dialect) or not _speaks(message):
            continue
        detail = "sent as a turn of the user: there is no other"
        fitting.lose(trail.of(message), "message.role", "approximated", detail)
        losses_of_extra(message.extra, "", trail.of(message), fitting.losses)
        asked = Message("user", message.content, message.name)
        trail.follow(message, asked)
        return msgspec.structs.replace(request, messages=(*messages[:index], asked, *messages[index + 1 :]))
    return request


def refuse_wordless(request: Request, fitting: Fitting) -> Request:
    """Refuses a request that has only parts of another dialect: nothing is said in the client's name."""
    wordless = None
    for message in request.messages:
        if not _is_wordless(message, fitting.dialect):
            return request
        wordless = wordless or message
    if wordless is not None:
        what = wordless.content[0]
        assert type(what) is Foreign
        raise Unsupported(
            f"expected a turn that this provider can be sent: {what.type} exists only in {what.dialect}",
            fitting.trail.of(wordless),
        )
    return request


def keep_turns(request: Request, fitting: Fitting) -> Request:
    """Puts a note in the place of a user's turn that has only parts of another dialect, if the turn before it
    would change its meaning otherwise: the model's turn would be continued, or joined with the next. Two
    turns of the user around such a turn of the model stay two."""
    messages, dialect = request.messages, fitting.dialect
    kept: list[Message] = []
    changed = is_apart = False
    before = ""
    for index, message in enumerate(messages):
        if message.role == "system":
            pass
        elif not _is_wordless(message, dialect):
            if is_apart and message.role == "user":
                message, changed = set_apart(message, fitting), True
            before, is_apart = message.role, False
        elif message.role == "assistant":
            is_apart = before == "user"
        elif message.role == "user" and before == "assistant" and _has_content(message):
            after = next((each.role for each in messages[index + 1 :] if each.role != "system"), "")
            if after != "user":
                fitting.lose(
                    fitting.trail.of(message), "content.empty", "approximated", f'sent as "{LEFT_OUT}"'
                )
                noted = Message(message.role, (*message.content, Text(LEFT_OUT)), message.name, message.extra)
                fitting.trail.follow(message, noted)
                message, changed, before = noted, True, "user"
        kept.append(message)
    return msgspec.structs.replace(request, messages=tuple(kept)) if changed else request


def _has_content(message: Message) -> bool:
    return any(
        type(part) is Foreign and not part.stands_elsewhere and not part.for_vendor
        for part in message.content
    )


def fit_end(request: Request, fitting: Fitting) -> Request:
    """Adds a last turn that the model may answer, if the endpoint requires one, or if it would not continue
    what a client of another dialect wants continued."""
    messages = request.messages
    if not messages or messages[-1].role != "assistant":
        return request
    if fitting.limits.prefill and not _speaks(messages[-1]):
        return request
    if messages[-1].is_empty:
        fitting.lose(fitting.trail.of(messages[-1]), "content.empty", "dropped", "an empty turn is refused")
        return msgspec.structs.replace(request, messages=messages[:-1])
    if any(type(part) is ToolCall or _is_own(part, fitting.dialect) for part in messages[-1].content):
        return request
    return ask_to_go_on(request, "this model continues no answer of its own", fitting)


def _is_own(part: Part, dialect: str) -> bool:
    """Whether the part belongs to a tool that the provider runs: the turn around it was paused, and continues
    when it is sent back unchanged."""
    return type(part) is Foreign and part.dialect == dialect


def _speaks(message: Message) -> bool:
    return any(type(part) is Text and part.text.strip() for part in message.content)


def ask_to_go_on(request: Request, why: str, fitting: Fitting) -> Request:
    """For a last assistant message that cannot be continued: adds a request to do so after it."""
    messages = request.messages
    detail = f'{why}; it was instructed to continue: "{_GO_ON}"'
    fitting.lose(fitting.trail.of(messages[-1]), "prefill", "approximated", detail)
    return msgspec.structs.replace(request, messages=(*messages, Message("user", (Text(_GO_ON),))))
