"""One connection to an MCP server, by the official SDK (`wireglot[mcp]`) over the gateway's own HTTP client.

The SDK's error messages are never shown: they may contain the URL and other sent data.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import httpx2
import mcp_types as types
import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from wireglot import __version__
from wireglot.gateway.settings import McpSettings
from wireglot.http.client.client import HttpTransport
from wireglot.http.transport import Answer, Outbound, Timeouts, TransportFault
from wireglot.web.contract import WebFailed
from wireglot.web.server_hosts import ServerHosts
from wireglot_core.ir.content import Media
from wireglot_core.ir.hosted import HostedResult, ListedTool
from wireglot_core.ir.request import McpServer

T = TypeVar("T")
_CLOSE_SECONDS: Final = 5.0
"""For the end of a session, which is sent to the server."""
# Pages of an MCP server's list of tools.
_MAX_PAGES: Final = 100
_OPENING: Final = "open"
_LISTING: Final = "list"
_HIDDEN: Final = "***"
_SECRET_CHARACTERS: Final = 8
"""Shorter values are words like `true` or the name of a team, which results may contain too."""
_OWN_HEADERS: Final = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "accept-encoding", "mcp-session-id"}
)
"""Headers that a client cannot set for the server."""
_HOP_HEADERS: Final = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "accept-encoding"}
)
_CLIENT: Final = types.Implementation(name="wireglot", version=__version__)

# The SDK would write whole messages to standard error.
for _name in ("mcp", "httpx2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


class McpFailed(Exception):
    """The server cannot be used; the message may be shown."""


class _PoolLimits(msgspec.Struct, frozen=True):
    """Implements `ClientLimits`: the server's stream, and concurrent calls."""

    pool: int = 16
    queue: int = 16
    queue_time: float = 10.0
    pool_idle: float = 60.0
    write_pending: int = 64 * 1024


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends the SDK's requests, to allowed hosts only, and limits the responses."""

    def __init__(self, hosts: ServerHosts, settings: McpSettings) -> None:
        self._hosts = hosts
        self._max_bytes = settings.max_result
        self._transport = HttpTransport(_PoolLimits(), screen=hosts.check_addresses)
        seconds = settings.timeout
        self._timeouts = Timeouts(connect=seconds, tls=seconds, first_byte=seconds, idle=seconds)
        self.problems: dict[str, str] = {}
        """Errors in words that may be shown, by what was sent (`_about`)."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url, about = str(request.url), _about(await request.aread())
        headers = [(name, value) for name, value in request.headers.items() if name not in _HOP_HEADERS]
        try:
            self._hosts.check_url(url)
            outbound = Outbound(request.method, url, headers, await request.aread())
            answer = await self._transport.send(outbound, self._timeouts)
        except WebFailed as refused:
            self.problems[about] = str(refused)
            raise httpx2.ConnectError(self.problems[about]) from None
        except TransportFault as fault:
            self.problems[about] = f"no connection to it ({fault.problem})"
            raise httpx2.ConnectError(self.problems[about]) from None
        if answer.status >= 400 and request.method == "POST":
            self.problems[about] = f"it answered with status {answer.status}"
        body = _Body(answer, partial(self._read, about) if request.method == "POST" else _read_all)
        return httpx2.Response(answer.status, headers=list(answer.headers.items()), stream=body)

    def _read(self, about: str, size: int) -> None:
        if size > self._max_bytes:
            self.problems[about] = f"its answer has more than {self._max_bytes} bytes"
            raise TransportFault("too_large", self.problems[about])

    async def aclose(self) -> None:
        await self._transport.close()


def _read_all(size: int) -> None:
    """Only notifications, which are not kept."""


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: Answer, check: Callable[[int], None]) -> None:
        """`check`: raises if too many bytes have come."""
        self._answer = answer
        self._check = check

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        size = 0

        def feed(piece: bytes) -> None:
            nonlocal size
            size += len(piece)
            self._check(size)
            pieces.put_nowait(bytes(piece))

        async def pump() -> None:
            try:
                await self._answer.pump(feed)
            finally:
                pieces.put_nowait(None)

        pumping = asyncio.create_task(pump())
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            await pumping
        except TransportFault:
            raise httpx2.ReadError("the connection ended") from None
        finally:
            pumping.cancel()

    async def aclose(self) -> None:
        self._answer.abort()


class McpConnection:
    """Opened and closed by a separate task, as the SDK demands; used by any other."""

    def __init__(
        self, server: McpServer, headers: Mapping[str, str], hosts: ServerHosts, settings: McpSettings
    ) -> None:
        self._server = server
        self._settings = settings
        self._headers = {name: value for name, value in headers.items() if name.lower() not in _OWN_HEADERS}
        if server.token:
            self._headers["Authorization"] = f"Bearer {server.token}"
        values = (server.token, *headers.values())
        named = (value.partition(" ")[2] for value in values)  # without a scheme like Bearer
        self._secrets = [secret for secret in (*values, *named) if len(secret) >= _SECRET_CHARACTERS]
        self._transport = _GuardedTransport(hosts, settings)
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Raises McpFailed."""
        self._task = asyncio.create_task(self._serve())
        await self._within(lambda: asyncio.shield(self._ready), _OPENING)

    async def _serve(self) -> None:
        try:
            async with (
                httpx2.AsyncClient(headers=self._headers, transport=self._transport, timeout=None) as http,
                Client(
                    streamable_http_client(
                        self._server.url, http_client=http, max_sse_event_size=self._settings.max_result
                    ),
                    cache=None,
                    client_info=_CLIENT,
                ) as client,
            ):
                if not self._ready.done():
                    self._ready.set_result(client)
                await self._closing.wait()
        except Exception:  # the SDK raises what its HTTP client, its models and its task groups raise
            if not self._ready.done():
                self._ready.set_exception(McpFailed(self._why()))
        finally:
            if not self._ready.done():
                self._ready.cancel()
            elif not self._ready.cancelled():
                self._ready.exception()  # it was handled, or no one waits for it any more

    def close(self) -> None:
        """Called at the end of the request, however it ended."""
        self._closing.set()
        if self._task is not None and not self._task.done():
            asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self._task.cancel)
            _open_tasks.add(self._task)
            self._task.add_done_callback(_open_tasks.discard)
            if not self._ready.done():
                self._task.cancel()

    async def list_tools(self) -> list[ListedTool]:
        """Raises McpFailed."""
        return await self._within(self._list, _LISTING)

    async def _list(self) -> list[ListedTool]:
        client, tools = await self._ready, []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                noted = tool.annotations
                tools.append(
                    ListedTool(
                        tool.name,
                        tool.description or "",
                        tool.input_schema,
                        read_only=noted is not None and noted.read_only_hint is True,
                        annotations=noted.model_dump(by_alias=True, exclude_none=True) if noted else {},
                    )
                )
            cursor = page.next_cursor
            if cursor is None:
                break
        return tools

    async def call(self, name: str, arguments: dict[str, Any]) -> HostedResult:
        """What a tool returned, or why it failed: both for the model to read. Raises McpFailed."""

        async def made() -> types.CallToolResult:
            return await (await self._ready).call_tool(name, arguments)

        result = await self._within(made, _about_call(name, arguments))
        text = self._shown(_text_of(result)) or "The tool returned nothing."
        return HostedResult(
            text,
            "tool_failed" if result.is_error else "",
            text if result.is_error else "",
            media=tuple(_images_of(result)),
        )

    async def _within(self, work: Callable[[], Awaitable[T]], about: str) -> T:
        """`about`: what the server is sent. Concurrent calls fail each for its own reason."""
        seconds = self._settings.timeout
        self._transport.problems.pop(about, None)
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except TimeoutError:
            raise McpFailed(f"it did not answer within {seconds:g} seconds") from None
        except McpFailed:
            raise
        except MCPError as problem:
            said, message = self._transport.problems.get(about), problem.error.message
            if message.startswith(_WORDS_OF_THE_SDK):
                raise McpFailed(said or _NO_MCP) from None
            raise McpFailed(said or self._shown(message)) from None
        except Exception:  # as above, for a call: a server's fault must not fail the request
            raise McpFailed(self._why(about)) from None

    def _why(self, about: str = _OPENING) -> str:
        return self._transport.problems.get(about) or _NO_MCP

    def _shown(self, text: str) -> str:
        """Without secrets, which a server may repeat."""
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text


_NO_MCP: Final = "it does not answer as an MCP server"
_WORDS_OF_THE_SDK: Final = ("Failed to parse ", "SSE stream failed: ", "Unexpected content type: ")
"""Errors that mcp 2 makes itself: they quote its models and what the server sent (`streamable_http.py`)."""
_open_tasks: Final[set[asyncio.Task[None]]] = set()
"""Tasks that are closing: the loop itself keeps no reference to them."""


def _about(body: bytes) -> str:
    """A summary of a message to the server: its method, and the arguments of a call."""
    try:
        message = msgspec.json.decode(body) if body else {}
    except msgspec.DecodeError:
        return ""
    method = message.get("method") if type(message) is dict else None
    if method == "tools/call":
        given = message.get("params") or {}
        return _about_call(given.get("name", ""), given.get("arguments") or {})
    return _LISTING if method == "tools/list" else _OPENING


def _about_call(name: str, arguments: dict[str, Any]) -> str:
    return f"{name} {msgspec.json.encode(arguments, order='sorted').decode()}"


def _images_of(result: types.CallToolResult) -> Iterator[Media]:
    for block in result.content:
        if isinstance(block, types.ImageContent):
            yield Media("image", block.mime_type, block.data)


def _text_of(result: types.CallToolResult) -> str:
    texts = []
    for block in result.content:
        match block:
            case types.TextContent():
                texts.append(block.text)
            case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
                texts.append(resource.text)
            case types.ResourceLink():
                texts.append(f"[{block.name}: {block.uri}]")
            case types.ImageContent():
                texts.append(f"[an image: {block.mime_type}]")
            case _:
                texts.append(f"[{block.type}: it cannot be shown here]")
    if not texts and result.structured_content is not None:
        return msgspec.json.encode(result.structured_content).decode()
    return "\n".join(texts)
