"""Tool search, run by the gateway: deferred tools are sent to the model once a search has found them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from wireglot.gateway.hosted.ranking import (
    MAX_HITS,
    BadPattern,
    PatternTimeout,
    rank_by_words,
    search_pattern,
)
from wireglot.gateway.hosted.runner import Offered, arguments_of, failed
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.settings import Settings
from wireglot_core.dialects.capabilities import HostedForm
from wireglot_core.ir.content import Foreign, Message, ToolCall, ToolResult
from wireglot_core.ir.hosted import HostedCall, HostedResult
from wireglot_core.ir.request import AnyTool, HostedTool, Request, Tool, tool_name

# Characters of a pattern in a search for tools.
MAX_PATTERN_CHARACTERS: Final = 200
# Characters of a query in a search for tools.
MAX_QUERY_CHARACTERS: Final = 500
_KIND: Final = "tool_search"
_DESCRIPTION: Final = (
    "Searches the tools that are available but not loaded yet, in their names, descriptions and arguments. "
    f"Up to {MAX_HITS} matching tools are loaded and can be called in the next step. Use it when no loaded "
    "tool fits the task. "
)
_PATTERN: Final = (
    "A Python regular expression, searched for (re.search) in each name, description and argument. It is "
    f"case-sensitive unless it begins with (?i). At most {MAX_PATTERN_CHARACTERS} characters."
)
_QUERY: Final = f"What the tool should do, in words. At most {MAX_QUERY_CHARACTERS} characters."

ToolKey = tuple[str, str]
"""Namespace and name of a tool."""


class ToolSearchRunner:
    """Implements `HostedRunner`."""

    name = "the gateway"
    connects = False

    def serves(self, settings: Settings) -> bool:
        return True

    async def open(self, exchange: Exchange, tool: HostedTool) -> ToolSearch:
        form = exchange.job.surface.client.hosted
        found = found_before(exchange.request().messages, form)
        return ToolSearch(tool, (*found, *exchange.loaded_tools), by_pattern=form.searches_by_pattern(tool))


class ToolSearch:
    """Implements `HostedSession`."""

    backend = "gateway"

    def __init__(self, tool: HostedTool, found: Iterable[str], *, by_pattern: bool) -> None:
        self._name = tool_name(tool) or _KIND
        self._by_pattern = by_pattern
        self._argument = "pattern" if by_pattern else "query"
        described = _PATTERN if by_pattern else _QUERY
        schema = {
            "type": "object",
            "properties": {self._argument: {"type": "string", "description": described}},
            "required": [self._argument],
            "additionalProperties": False,
        }
        self._function = Tool(self._name, _DESCRIPTION, schema)
        self._named = frozenset(found)
        """Found before this request, by the names that clients send back."""
        self._found: set[ToolKey] = set()
        self._deferred: tuple[Tool, ...] = ()

    def offer(self, request: Request) -> Offered:
        self._deferred = tuple(tool for tool in request.tools if type(tool) is Tool and tool.deferred)
        if not self._deferred:
            return Offered((), request)
        choice = request.tool_choice
        forced = choice.only if choice is not None else ()
        tools: list[AnyTool] = []
        for tool in request.tools:
            if type(tool) is not Tool or not tool.deferred:
                tools.append(tool)
            elif key_of(tool) in self._found or tool.name in self._named or tool.name in forced:
                tools.append(replace(tool, deferred=False))
        return Offered((self._function,), replace(request, tools=tuple(tools)))

    def call(self, call: ToolCall, id: str) -> HostedCall:
        given = arguments_of(call).get(self._argument)
        return HostedCall(_KIND, id, self._name, {self._argument: given if type(given) is str else ""})

    async def run(self, call: HostedCall) -> HostedResult:
        given = call.input[self._argument]
        limit = MAX_PATTERN_CHARACTERS if self._by_pattern else MAX_QUERY_CHARACTERS
        if not given.strip():
            return failed("invalid_tool_input", f"{self._argument} is missing.")
        if len(given) > limit:
            return failed("invalid_tool_input", f"{self._argument} may have {limit} characters.")
        deferred = self._deferred
        if self._by_pattern:
            try:
                hits = await search_pattern(given, deferred)
            except BadPattern as problem:
                return failed("invalid_tool_input", f"pattern is no Python regular expression: {problem}")
            except PatternTimeout:
                return failed("execution_time_exceeded", "the pattern takes too long: use a simpler one.")
            except OSError as problem:
                return failed("unavailable", f"the search cannot run: {problem.strerror}")
        else:
            hits = await run_in_thread(lambda: rank_by_words(given, deferred))
        tools = tuple(replace(deferred[place], deferred=False) for place in hits)
        self._found.update(map(key_of, tools))
        return HostedResult(found_tools_text(tools), tools=tools)


def key_of(tool: Tool) -> ToolKey:
    return tool.namespace, tool.name


def found_tools_text(tools: Iterable[Tool]) -> str:
    """The text of a search result for the model, with the names that `providers/fit/tools.py` gives tools."""
    names = [f"{tool.namespace}__{tool.name}" if tool.namespace else tool.name for tool in tools]
    return f"These tools can be called now: {', '.join(names)}." if names else "No tools were found."


def found_before(messages: Iterable[Message], form: HostedForm) -> Iterator[str]:
    """Names of tools that searches of earlier turns found, whether the provider or the client ran them."""
    for message in messages:
        for part in message.content:
            for each in part.content if type(part) is ToolResult else (part,):
                ran = form.read(each) if type(each) is Foreign else None
                if ran is not None and ran.result is not None:
                    yield from (tool.name for tool in ran.result.tools)
