"""Earlier turns in which the gateway has run a tool: as the model has seen them, whoever is asked now.

A client brings them back in its own dialect's form, which no upstream could read: the ids are the gateway's,
and what was found is sealed for the caller. Before a model sees them they are calls of functions and their
results again.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from wireglot.gateway.hosted.runner import called_name, failed, function_name
from wireglot.gateway.hosted.tool_search import ToolKey, found_tools_text, key_of
from wireglot.gateway.hosted.web import SourceSealer, found_text, page_text
from wireglot.gateway.request.exchange import Exchange
from wireglot.ir.content import Foreign, Message, Part, Text, ToolCall, ToolResult
from wireglot.ir.hosted import HostedResult, RanCall
from wireglot.ir.loss import Loss
from wireglot.ir.request import Tool
from wireglot.stores.seal import Sealer
from wireglot.wire.json import encode_text
from wireglot.wire.search import holds_rare

_OWN_ID: Final = re.compile(r"wg[0-9a-f]{22}")
_TITLES: Final = "titles and addresses of what was found; only its vendor can read the rest"


class HostedHistory:
    def __init__(self, sealer: Sealer) -> None:
        self._sources = SourceSealer(sealer)

    def rebuild(self, exchange: Exchange) -> None:
        """A step."""
        job, form = exchange.job, exchange.job.surface.client.hosted
        # What a vendor has found itself only that vendor can read.
        is_foreign = exchange.targets[0].surface.family != job.surface.family
        marks = form.vendor_marks if is_foreign else form.marks
        if not exchange.rewritten and not any(holds_rare(job.body, mark) for mark in marks):
            return
        request = exchange.request()
        taken = {tool.name for tool in request.tools if type(tool) is Tool}
        messages: list[Message] = []
        losses: list[Loss] = []
        loaded: set[ToolKey] = set()
        read = {
            id(part): found
            for message in request.messages
            if message.role == "assistant"
            for part in message.content
            if type(part) is Foreign and (found := form.read(part)) is not None
        }
        called = {found.id for found in read.values() if found.call is not None}
        whole = {found.id for found in read.values() if found.result is not None} & called
        for number, message in enumerate(request.messages):
            ran = {}
            for place, part in enumerate(message.content):
                found = read.get(id(part))
                if found is None or found.id not in whole or not (is_foreign or _is_ours(found)):
                    continue
                ran[id(part)] = found
                if found.result is None:
                    continue
                loaded.update(map(key_of, found.result.tools))
                if found.result.sources and not _is_ours(found):
                    path = f"$.messages[{number}].content[{place}]"
                    losses.append(Loss(path, "foreign_part", "approximated", _TITLES))
            messages += self._rebuilt(message, ran, taken, job.caller.name) if ran else (message,)
        if messages != list(request.messages):
            # A search for tools is no longer to be seen: what it found is not deferred for any upstream.
            tools = tuple(
                replace(tool, deferred=False)
                if type(tool) is Tool and tool.deferred and key_of(tool) in loaded
                else tool
                for tool in request.tools
            )
            exchange.foreseen += exchange.located(tuple(losses), request)
            exchange.rewrite(replace(request, messages=tuple(messages), tools=tools))

    def _rebuilt(
        self, message: Message, ran: dict[int, RanCall], taken: set[str], caller: str
    ) -> list[Message]:
        """Cut behind each result. Calls of the client's own tools that follow directly were made together
        with ours: their results follow those of ours."""
        messages: list[Message] = []
        said: list[Part] = []
        results: list[ToolResult] = []
        for part in message.content:
            found = ran.get(id(part))
            if found is None:
                if results and type(part) is not ToolCall:
                    messages += _turns(message, said, results)
                    said, results = [], []
                said.append(part)
                continue
            call, result = found.call, found.result
            if call is not None:
                name = function_name(called_name(call), taken)
                said.append(ToolCall(f"call_{call.id}", name, encode_text(call.input)))
            if result is not None:
                text = self._text(result, caller)
                results.append(ToolResult(f"call_{found.id}", (Text(text),), is_error=bool(result.error)))
        return messages + _turns(message, said, results)

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


def _turns(message: Message, said: list[Part], results: list[ToolResult]) -> list[Message]:
    spoken = [replace(message, content=tuple(said))] if said else []
    return [*spoken, Message("user", tuple(results))] if results else spoken


def _is_ours(found: RanCall) -> bool:
    return _OWN_ID.fullmatch(found.id) is not None
