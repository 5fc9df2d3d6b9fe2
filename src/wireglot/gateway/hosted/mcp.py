"""Tools of MCP servers, called by the gateway for models whose provider does not connect to servers.

Only servers on hosts of `[mcp]`; one connection for each request and server. A tool's result is data: the
model can only call what it was offered, whatever a result says.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from wireglot.gateway.errors import RequestError
from wireglot.gateway.hosted.runner import (
    MAX_RESULT_CHARACTERS,
    Offered,
    arguments_of,
    called_name,
    failed,
    result_parts,
)
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.settings import Settings
from wireglot.web.contract import WebFailed
from wireglot.web.server_hosts import ServerHosts
from wireglot_core.dialects.capabilities import McpForm
from wireglot_core.ir.content import Foreign, Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.hosted import Approval, HostedCall, HostedResult, ListedTool, RanCall, ToolListing
from wireglot_core.ir.request import HostedTool, Request, Tool
from wireglot_core.wire.json import encode_text

if TYPE_CHECKING:
    from wireglot.gateway.hosted.mcp_connection import McpConnection

_KIND: Final = "mcp"
_TOOL_SEARCH: Final = "tool_search"
MAX_APPROVED: Final = 8
"""Calls of MCP tools that one request may approve; further ones get an error."""
_ID_BYTES: Final = 11
_CONNECTION: Final = "wireglot.gateway.hosted.mcp_connection"
REFUSED: Final = "mcp_host_not_allowed"
FAILED: Final = "mcp_server_failed"
_PENDING: Final = HostedResult("This call waits for the user's approval.")
_DENIED: Final = "The user did not approve this call."


class McpRunner:
    """Implements `HostedRunner`."""

    name = "the gateway"
    connects = True

    def serves(self, settings: Settings) -> bool:
        return settings.mcp is not None

    async def open(self, exchange: Exchange, tool: HostedTool) -> McpSession | None:
        settings, server = exchange.job.settings.mcp, tool.server
        if settings is None or server is None:
            return None
        hosts = ServerHosts(settings.hosts, settings.private_hosts)
        try:
            hosts.check_url(server.url)
        except WebFailed as refused:
            message = f"the gateway does not connect to the MCP server {server.name}: {refused}"
            raise RequestError("bad", message, code=REFUSED) from None
        # The SDK takes a second to import: only the first request that uses it waits for that.
        await run_in_thread(lambda: import_module(_CONNECTION))
        from wireglot.gateway.hosted.mcp_connection import McpConnection, McpFailed

        form = exchange.job.surface.client.hosted.mcp
        connection = McpConnection(server, form.headers(tool), hosts, settings)
        exchange.at_end.append(lambda problem: connection.close())
        try:
            await connection.open()
            listed = await connection.list_tools()
        except McpFailed as problem:
            message = f"the tools of the MCP server {server.name} cannot be listed: {problem}"
            raise RequestError("bad", message, code=FAILED) from None
        allowed = [each for each in listed if form.allows(tool, each)]
        if len(allowed) > settings.max_tools:
            message = (
                f"the MCP server {server.name} has {len(allowed)} tools, and a request may offer "
                f"{settings.max_tools}: name those that are allowed"
            )
            raise RequestError("bad", message, code=FAILED)
        session = McpSession(tool, connection, allowed, form)
        await session.run_approved(exchange.request().messages)
        return session


class _Approvals(NamedTuple):
    calls: dict[str, HostedCall]
    """Calls of one server that a user was asked about, by the id of the approval."""
    answers: dict[str, Approval]


class McpSession:
    """Implements `HostedSession`."""

    backend = "mcp"

    def __init__(
        self, tool: HostedTool, connection: McpConnection, listed: Iterable[ListedTool], form: McpForm
    ) -> None:
        assert tool.server is not None
        self._tool = tool
        self._server = tool.server.name
        self._connection = connection
        self._form = form
        self._listed = {called_name(self._called(each.name)): each for each in listed}
        self._functions = tuple(
            Tool(name, each.description or None, each.schema or None, deferred=form.is_deferred(tool, each))
            for name, each in self._listed.items()
        )
        self._ran: dict[str, RanCall] = {}
        """Approved calls since the last turn, by the id of the approval."""
        self._is_listed = False

    def offer(self, request: Request) -> Offered:
        """With requests for approval converted to the calls that they are about, and without lists of
        tools."""
        listing = None
        if not self._is_listed and not any(map(self._lists, _parts(request.messages))):
            listing = ToolListing(_new_id(), self._server, tuple(self._listed.values()))
        self._is_listed = True
        messages = self._conversation(request.messages)
        if messages is not request.messages:
            request = replace(request, messages=messages)
        functions = self._functions
        if not any(type(tool) is HostedTool and tool.kind == _TOOL_SEARCH for tool in request.tools):
            # No tool search would find them.
            functions = tuple(replace(tool, deferred=False) for tool in functions)
        return Offered(functions, request, listing, tuple(self._ran.values()))

    def call(self, call: ToolCall, id: str) -> HostedCall:
        listed = self._listed.get(call.name)
        if listed is None:
            return self._called(call.name, id)
        made = replace(self._called(listed.name, id), input=arguments_of(call))
        return replace(made, pending=self._form.needs_approval(self._tool, listed))

    async def run(self, call: HostedCall) -> HostedResult:
        from wireglot.gateway.hosted.mcp_connection import McpFailed

        if call.pending:
            return _PENDING
        if called_name(call) not in self._listed:
            return failed("invalid_tool_input", f"{self._server} has no tool {call.name}.")
        try:
            result = await self._connection.call(call.name, call.input)
        except McpFailed as problem:
            return failed("unavailable", f"{self._server}: {problem}.")
        if len(result.text) <= MAX_RESULT_CHARACTERS:
            return result
        return replace(result, text=f"{result.text[:MAX_RESULT_CHARACTERS]}\n[the rest is cut off]")

    async def run_approved(self, messages: tuple[Message, ...]) -> None:
        """Run the calls that were approved since the last answer."""
        calls, answers = self._approvals(messages)
        recent = [
            each.id for each in _approvals_in(_parts(_after_answer(messages)), self._form) if each.approved
        ]
        allowed = recent[:MAX_APPROVED]  # of all servers
        for id, call in calls.items():
            answer = answers.get(id)
            if answer is not None and answer.approved and id in recent:
                own = replace(call, id=_new_id())
                if id in allowed:
                    result = await self.run(own)
                else:
                    said = f"A request may approve {MAX_APPROVED} calls: approve this one with the next."
                    result = failed("too_many_requests", said)
                self._ran[id] = RanCall(own.id, own, result)

    def _approvals(self, messages: tuple[Message, ...]) -> _Approvals:
        calls: dict[str, HostedCall] = {}
        answers: dict[str, Approval] = {}
        for each in _approvals_in(_parts(messages), self._form):
            if each.call is None:
                answers[each.id] = each
            elif each.call.server == self._server:
                calls[each.id] = each.call
        return _Approvals(calls, answers)

    def _conversation(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The conversation with calls by the names that the model knows. An approved call is followed by the
        actual one; a denied call, or one that is run only now, becomes a call and its result here."""
        approvals = self._approvals(messages)
        made = {
            part.id for part in _parts(messages) if type(part) is ToolCall and part.namespace == self._server
        }
        if not approvals.calls and not made and not any(map(self._lists, _parts(messages))):
            return messages
        shown: list[Message] = []
        for message in messages:
            content: list[Part] = []
            for part in message.content:
                if self._lists(part):
                    continue
                own = self._renamed(part) if _is_of(part, made) else self._approved(part, approvals)
                if own is not None:
                    content.append(own)
            if content or not message.content:
                shown.append(replace(message, content=tuple(content)))
        return tuple(shown)

    def _renamed(self, part: Part) -> Part:
        """A call of this server or its result, as a function's."""
        if type(part) is ToolCall:
            return replace(part, name=called_name(self._called(part.name)), namespace="", extra=None)
        return replace(part, extra=None)

    def _approved(self, part: Part, approvals: _Approvals) -> Part | None:
        """A request for approval or its answer, as the call and its result; None while there is no result.
        Other parts stay."""
        approval = self._form.approval(part) if type(part) is Foreign else None
        if approval is None or approval.id not in approvals.calls:
            return part
        call, answer = approvals.calls[approval.id], approvals.answers.get(approval.id)
        ran = self._ran.get(approval.id)
        if answer is None or (answer.approved and ran is None):
            return None
        if approval.call is not None:
            return ToolCall(f"call_{call.id}", called_name(call), encode_text(call.input))
        return _result(call, answer, ran)

    def _lists(self, part: Part) -> bool:
        return type(part) is Foreign and self._form.listed(part) == self._server

    def _called(self, name: str, id: str = "") -> HostedCall:
        return HostedCall(_KIND, id, name, server=self._server)


def _result(call: HostedCall, answer: Approval, ran: RanCall | None) -> ToolResult:
    if ran is None or ran.result is None:
        said = f"{_DENIED} {answer.reason}".rstrip()
        return ToolResult(f"call_{call.id}", (Text(said),), is_error=True)
    content = result_parts(ran.result)
    return ToolResult(f"call_{call.id}", content, is_error=bool(ran.result.error))


def _is_of(part: Part, calls: set[str]) -> bool:
    return (type(part) is ToolCall and part.id in calls) or (
        type(part) is ToolResult and part.call_id in calls
    )


def _parts(messages: Iterable[Message]) -> Iterable[Part]:
    return (part for message in messages for part in message.content)


def _after_answer(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The client's messages since the last answer."""
    last = max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return messages[last + 1 :]


def _approvals_in(parts: Iterable[Part], form: McpForm) -> Iterable[Approval]:
    for part in parts:
        approval = form.approval(part) if type(part) is Foreign else None
        if approval is not None:
            yield approval


def _new_id() -> str:
    return f"wg{secrets.token_hex(_ID_BYTES)}"
