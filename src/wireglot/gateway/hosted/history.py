"""Earlier turns in which the gateway has run a tool, converted so that any model can read them.

A client sends them back in its own dialect's form, which no upstream could read: the ids are the gateway's,
and results are sealed for the caller. Before a model sees them they are calls of functions and their results
again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final

from msgspec.structs import replace

from wireglot.gateway.hosted.runner import called_name, failed, function_name, result_parts
from wireglot.gateway.hosted.tool_search import ToolKey, found_tools_text, key_of
from wireglot.gateway.hosted.web import SourceSealer, found_text, page_text
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.targets.routing import Target
from wireglot.stores.seal import Sealer
from wireglot_core.dialects.capabilities import HostedForm
from wireglot_core.ir.content import Foreign, Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.hosted import RUN_HERE, SHOWN, HostedResult, RanCall
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import AnyTool, Request, Tool
from wireglot_core.wire.json import encode_text
from wireglot_core.wire.search import holds_rare

_OWN_ID: Final = re.compile(f"(?:{RUN_HERE}|{SHOWN})[0-9a-f]{{22}}")
_TITLES: Final = "titles and addresses of what was found; only its vendor can read the rest"


class HostedHistory:
    def __init__(self, sealer: Sealer) -> None:
        self._sources = SourceSealer(sealer)

    def rebuild(self, exchange: Exchange, target: Target | None = None) -> None:
        """A step: make earlier turns readable for the first target. `target`: a fallback's, later."""
        target = target or exchange.targets[0]
        job, form = exchange.job, exchange.job.surface.client.hosted
        # A vendor's own search results can only be read by that vendor.
        is_foreign = target.surface.family != job.surface.family
        marks = form.vendor_marks if is_foreign else form.marks
        if not exchange.rewritten:
            for mark in marks:
                if holds_rare(job.body, mark):
                    break
            else:
                return
        request = exchange.request()
        ran = _ran(request.messages, form, is_foreign=is_foreign)
        if not ran:
            return
        changed, losses = self._readable(request, ran, job.caller.name, target)
        if changed != request.messages:
            exchange.foreseen += exchange.located(losses, request)
            loaded = {key_of(tool) for found in ran.values() if found.result for tool in found.result.tools}
            exchange.loaded_tools |= {name for _, name in loaded}  # those of MCP servers are not in `tools`
            tools = _with_loaded(request.tools, loaded)
            exchange.rewrite(replace(request, messages=changed, tools=tools))

    def _readable(
        self, request: Request, ran: dict[int, RanCall], caller: str, target: Target
    ) -> tuple[tuple[Message, ...], tuple[Loss, ...]]:
        taken = {tool.name for tool in request.tools if type(tool) is Tool}
        offered_as = cache(partial(function_name, taken=taken))
        messages: list[Message] = []
        losses: list[Loss] = []
        for number, message in enumerate(request.messages):
            if not any(id(part) in ran for part in message.content):
                messages.append(message)
                continue
            if target.limits.hosted_tools:
                # The vendor searches itself: parts that were only shown to the client are not its own output.
                kept = [part for part in message.content if not _is_shown(ran.get(id(part)))]
                message = replace(message, content=tuple(kept))
            losses += _titles_only(message, f"$.messages[{number}]", ran)
            messages += self._rebuilt(message, ran, offered_as, caller)
        return tuple(messages), tuple(losses)

    def _rebuilt(
        self, message: Message, ran: dict[int, RanCall], offered_as: Callable[[str], str], caller: str
    ) -> list[Message]:
        """Split the message after each result. Calls of the client's own tools that follow directly were made
        together with ours: their results follow those of ours."""
        messages: list[Message] = []
        said: list[Part] = []
        results: list[ToolResult] = []
        for part in message.content:
            found = ran.get(id(part))
            if found is None:
                if results and type(part) is not ToolCall:
                    messages += (replace(message, content=_joined(said)), Message("user", tuple(results)))
                    said, results = [], []
                said.append(part)
                continue
            call, result = found.call, found.result
            if call is not None:
                name = offered_as(called_name(call))
                said.append(ToolCall(f"call_{call.id}", name, encode_text(call.input)))
            if result is not None:
                result = replace(result, text=self._text(result, caller))
                content = result_parts(result)
                results.append(ToolResult(f"call_{found.id}", content, is_error=bool(result.error)))
        if said:
            messages.append(replace(message, content=_joined(said)))
        if results:
            messages.append(Message("user", tuple(results)))
        return messages

    def _text(self, result: HostedResult, caller: str) -> str:
        if result.text:
            return result.text
        if result.error:
            return failed(result.error, result.message or "it could not run.").text
        if result.tools:
            return found_tools_text(result.tools)
        if result.page is not None:
            return page_text(result.page)
        return found_text(tuple(self._sources.opened(caller, source) for source in result.sources))


def _ran(messages: tuple[Message, ...], form: HostedForm, *, is_foreign: bool) -> dict[int, RanCall]:
    """The parts that no upstream can read unchanged, by their identity. A call without a result does not
    count, nor does a result without a call."""
    read: dict[int, RanCall] = {}
    for message in messages:
        if message.role == "assistant":
            for part in message.content:
                if type(part) is Foreign and (found := form.read(part)) is not None:
                    read[id(part)] = found
    if not read:
        return read
    called = {found.id for found in read.values() if found.call is not None}
    whole = {found.id for found in read.values() if found.result is not None} & called
    return {
        place: found
        for place, found in read.items()
        if found.id in whole and (_is_ours(found) or (is_foreign and _says_something(found)))
    }


def _titles_only(message: Message, path: str, ran: dict[int, RanCall]) -> Iterator[Loss]:
    """Results of which only their vendor can read the text."""
    for place, part in enumerate(message.content):
        found = ran.get(id(part))
        result = found.result if found is not None and not _is_ours(found) else None
        if result is not None and not result.tools and not result.text:
            yield Loss(f"{path}.content[{place}]", "foreign_part", "approximated", _TITLES)


def _with_loaded(tools: tuple[AnyTool, ...], loaded: set[ToolKey]) -> tuple[AnyTool, ...]:
    """Searches for tools are removed from the history: their results are not deferred for any upstream."""
    return tuple(
        replace(tool, deferred=False)
        if type(tool) is Tool and tool.deferred and key_of(tool) in loaded
        else tool
        for tool in tools
    )


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """The pieces of a text that was split at citations are joined, as the model wrote it: otherwise no prompt
    cache would match it."""
    joined: list[Part] = []
    pieces: list[Text] = []
    cited = False
    for part in parts:
        if type(part) is not Text or part.signature or part.refusal:
            _join(pieces, joined)
            joined.append(part)
            pieces, cited = [], False
            continue
        if pieces and (cited or part.citations):
            pieces.append(part)
            cited = True
        else:
            _join(pieces, joined)
            pieces, cited = [part], bool(part.citations)
        if part.cache:  # it marks the end of the text
            _join(pieces, joined)
            pieces = []
    _join(pieces, joined)
    return tuple(joined)


def _join(pieces: list[Text], joined: list[Part]) -> None:
    if len(pieces) > 1:
        citations = tuple([citation for piece in pieces for citation in piece.citations])
        joined.append(
            replace(pieces[-1], text="".join([piece.text for piece in pieces]), citations=citations)
        )
    else:
        joined += pieces


def _is_shown(found: RanCall | None) -> bool:
    return found is not None and found.id.startswith(SHOWN) and _is_ours(found)


def _is_ours(found: RanCall) -> bool:
    return _OWN_ID.fullmatch(found.id) is not None


def _says_something(found: RanCall) -> bool:
    """Whether it has anything to show: not a call without results."""
    result = found.result
    return (
        found.call is None
        or result is None
        or bool(result.error or result.sources or result.page or result.tools or result.text)
    )
