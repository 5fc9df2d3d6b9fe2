"""A real MCP server over streamable HTTP, for tests."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

import uvicorn
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations


class ToolServer:
    """`calls`: what its tools were called with. `authorization`: the headers of the requests."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.authorization: list[str] = []
        self.extra: list[str] = []
        self.open_requests = 0
        self.gate = threading.Event()
        """Waited for by `wait`."""
        self.is_slow = False
        """Nothing is answered before the gate is open."""
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._app(), host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=0
            )
        )
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            self._server.run()

    def _app(self) -> Any:
        server = MCPServer("weather")

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def forecast(city: str) -> str:
            """The weather of tomorrow."""
            self.calls.append(("forecast", {"city": city}))
            return f"Tomorrow it is sunny in {city}."

        @server.tool()
        def alarm(text: str) -> str:
            """Raises an alarm."""
            self.calls.append(("alarm", {"text": text}))
            return f"Alarm: {text}"

        @server.tool()
        def broken(secret: str) -> str:
            """Fails."""
            raise ToolError(f"no such thing, {secret}")

        @server.tool()
        def picture() -> Image:
            """Returns a picture."""
            return Image(data=b"\x89PNG", format="png")

        @server.tool()
        def huge(size: int) -> str:
            """Returns a long text."""
            return "x" * size

        @server.tool()
        async def wait() -> str:
            """Waits."""
            await asyncio.to_thread(self.gate.wait, 30)
            return "done"

        @server.tool()
        async def die() -> str:
            """Ends the server before it answers."""
            self._server.force_exit = True
            self._server.should_exit = True
            await asyncio.Event().wait()
            return "never"

        inner = server.streamable_http_app()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await inner(scope, receive, send)
                return
            headers = dict(scope["headers"])
            self.authorization.append(headers.get(b"authorization", b"").decode())
            self.extra.append(headers.get(b"x-team", b"").decode())
            self.open_requests += 1
            try:
                if self.is_slow:
                    await asyncio.to_thread(self.gate.wait, 30)
                if headers.get(b"authorization") == b"Bearer wrong-token":
                    await send({"type": "http.response.start", "status": 401, "headers": []})
                    await send({"type": "http.response.body", "body": b"wrong-token is wrong"})
                    return
                await inner(scope, receive, send)
            finally:
                self.open_requests -= 1

        return app

    def __enter__(self) -> ToolServer:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        self._server.force_exit = True
        self._server.should_exit = True
        self._thread.join(10)

    def reset(self) -> None:
        self.calls.clear()
        self.authorization.clear()
        self.extra.clear()
        self.gate.clear()
        self.is_slow = False

    @property
    def host(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"127.0.0.1:{port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/mcp"
