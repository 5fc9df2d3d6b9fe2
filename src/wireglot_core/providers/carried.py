"""Unsigned parts that their writer needs back, carried by clients of other dialects in the same way as signed
state.

A Chat provider's `reasoning_content` has no signature, nor have Gemini's summaries; a part of a hosted tool
(a search, its results, code that ran) has no equivalent in other dialects. Their writer gets them back with
the next request: OpenAI refuses reasoning without the search it led to, Claude cites what it found before.

Reported to a client of another dialect, such a thought is given a signature that proves nothing but names its
writer and its original spelling. A part without an equivalent becomes an opaque thought that contains it.
They come back in the field in which clients of that dialect carry state, are converted back, and are sent to
no other provider.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from wireglot_core.ir.content import (
    FOREIGN,
    UNSIGNED,
    Extra,
    Foreign,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
)
from wireglot_core.ir.loss import Loss, left_out
from wireglot_core.ir.outcome import Candidate, Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, OtherAnswer, PartEnd, PartStart
from wireglot_core.wire.json import BadJson, decode, encode_text

_THE_TEXT: Final = "\x1a"
"""Placeholder for the thought's own text in a `spelling`: the client carries that text anyway. No JSON
contains this character."""
_OF_THE_PROVIDER: Final[dict[str, frozenset[str]]] = {
    "anthropic": frozenset(
        {
            *("server_tool_use", "mcp_tool_use", "mcp_tool_result", "web_search_tool_result"),
            *("web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result"),
            *("text_editor_code_execution_tool_result", "tool_search_tool_result", "advisor_tool_result"),
            "compaction",
        }
    ),
    "openai-responses": frozenset(
        {
            *("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools"),
            *("tool_search_call", "tool_search_output", "program", "program_output", "compaction"),
            *("computer_call", "computer_call_output", "local_shell_call", "local_shell_call_output"),
            *("shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output"),
        }
    ),
    "gemini": frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"}),
    "gemini-interactions": frozenset(
        {
            *("google_search_call", "google_search_result", "google_maps_call", "google_maps_result"),
            *("url_context_call", "url_context_result", "code_execution_call", "code_execution_result"),
            *("mcp_server_tool_call", "mcp_server_tool_result", "file_search_call", "file_search_result"),
            *("retrieval_call", "retrieval_result", "processing_call", "processing_result"),
        }
    ),
}
"""By family: types of parts by which a provider runs its own tools and condenses a conversation. The answer
is complete without them. A part of any other type may be something that the client was to see."""


def with_minter(response: Response, minter: Origin, losses: list[Loss]) -> Response:
    """The answer as reported to a client of another dialect; adds the losses of what that client does not
    see."""
    if not response.others:
        for part in response.content:
            if type(part) is Reasoning or type(part) is Foreign:
                break
        else:
            return response
    content = _named(response.content, minter, "$", losses)
    others = tuple(_other(other, minter, number, losses) for number, other in enumerate(response.others))
    return replace(response, content=content, others=others)


def _other(answer: Candidate, minter: Origin, number: int, losses: list[Loss]) -> Candidate:
    return replace(answer, content=_named(answer.content, minter, f"$.others[{number}]", losses))


def _named(content: tuple[Part, ...], minter: Origin, path: str, losses: list[Loss]) -> tuple[Part, ...]:
    return tuple(
        _carried(part, minter, f"{path}.content[{number}]", losses) for number, part in enumerate(content)
    )


def _carried(part: Part, minter: Origin, path: str, losses: list[Loss]) -> Part:
    if type(part) is Foreign:
        return _wordless(part, minter, path, losses)
    return replace(part, signature=_name(part, minter)) if _is_unsigned(part) else part


def _wordless(part: Foreign, minter: Origin, path: str, losses: list[Loss]) -> Part:
    if part.dialect != minter.dialect:
        return part
    lost = left_out(part, path)
    theirs = _OF_THE_PROVIDER.get(part.dialect, frozenset())
    if lost.action == "dropped" and lost.feature == "foreign_part" and part.type in theirs:
        # The client sends it back unchanged: nothing of the conversation is missing.
        lost = Loss(path, "foreign_part", "emulated", f"{lost.detail}: carried, and returned unchanged")
    losses.append(lost)
    return Reasoning("", Signature(encode_text([part.type, part.value]), minter, FOREIGN), redacted=True)


def _is_unsigned(part: Part) -> bool:
    return type(part) is Reasoning and part.signature is None and not part.redacted


def _name(part: Part, minter: Origin) -> Signature:
    assert type(part) is Reasoning
    extra = part.extra
    spelling = ""
    if extra is not None and extra.dialect == minter.dialect and extra.form:
        spelling = encode_text(extra.form)
        if part.text:
            spelling = spelling.replace(encode_text(part.text), _THE_TEXT)
    return Signature(spelling, minter, UNSIGNED)


class MinterNamer:
    """The same for the events of a stream."""

    def __init__(self, minter: Origin) -> None:
        self.losses: list[Loss] = []
        self._minter = minter
        self._open: dict[int, Reasoning] = {}
        self._answers = 0

    def events(self, events: list[Event]) -> list[Event]:
        """Returns the list itself if there is nothing to name, which is usual: a thought is many deltas."""
        for event in events:
            kind = type(event)
            if kind is PartStart or kind is PartEnd or kind is OtherAnswer:
                return [self._event(event) for event in events]
        return events

    def _event(self, event: Event) -> Event:
        if type(event) is PartStart:
            part = event.part
            if type(part) is Foreign:
                path = f"$.content[{event.index}]"
                return PartStart(event.index, _wordless(part, self._minter, path, self.losses))
            if type(part) is Reasoning and _is_unsigned(part):
                self._open[event.index] = part
        elif type(event) is PartEnd:
            thought = self._open.pop(event.index, None)
            if thought is not None and event.signature is None:
                if event.extra is not None:
                    thought = replace(thought, extra=event.extra)
                return replace(event, signature=_name(thought, self._minter))
        elif type(event) is OtherAnswer:
            self._answers += 1
            return OtherAnswer(_other(event.answer, self._minter, self._answers - 1, self.losses))
        return event


def brought_back(request: Request, provider: str | None = None) -> Request:
    """The request with such thoughts converted back. `provider`: the one that is called, "" if it is unknown;
    None: not known yet, and parts without an equivalent stay sealed."""
    kinds = (UNSIGNED,) if provider is None else (UNSIGNED, FOREIGN)
    for message in request.messages:
        for part in message.content:
            if type(part) is Reasoning and part.signature is not None and part.signature.id in kinds:
                messages = tuple(_opened(message, provider) for message in request.messages)
                return replace(request, messages=messages)
    return request


def _opened(message: Message, provider: str | None) -> Message:
    content = tuple(_open(part, provider) if type(part) is Reasoning else part for part in message.content)
    return replace(message, content=content) if content != message.content else message


def _open(part: Reasoning, provider: str | None) -> Part:
    name = part.signature
    if name is None:
        return part
    if name.id == UNSIGNED:
        extra = part.extra
        if name.data and (extra is None or not extra.fields):
            extra = _spelling(name, part.text) or extra
        return Reasoning(part.text, extra=extra, minter=name.origin)
    if name.id == FOREIGN and provider is not None:
        return _foreign(name, provider) or part
    return part


def _spelling(name: Signature, text: str) -> Extra | None:
    try:
        form = decode(name.data.replace(_THE_TEXT, encode_text(text)))
    except BadJson:
        return None
    return Extra(name.origin.dialect, form=form) if type(form) is dict else None


def _foreign(name: Signature, provider: str) -> Foreign | None:
    try:
        kind, value = decode(name.data)
    except (BadJson, TypeError, ValueError):
        return None
    if type(kind) is not str or type(value) is not dict:
        return None
    origin = name.origin
    theirs = bool(origin.provider and provider) and origin.provider != provider
    # Another provider of the same dialect has not run this tool: it is unknown there, and reported so.
    return Foreign(f"{origin.dialect} at {origin.provider}" if theirs else origin.dialect, kind, value)
