"""A page fetch whose names resolve to what a test says, and whose connections all lead to one local server.

What is real: the guard, the HTTP client, its pool and its framing. The double records to which addresses the
client would have connected.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from tests.http.transport_kit import Peer, Server
from wireglot.http.client.client import HttpTransport
from wireglot.http.client.dial import Address
from wireglot.web.contract import Page, WebFailed
from wireglot.web.fetch import FetchPolicy, WebFetch, _PoolLimits
from wireglot.web.guard import Guard

NOON = 1_780_000_000.0
PUBLIC = "93.184.215.14"


class Network:
    """`names`: the addresses of a name; a list of lists is one answer after the other."""

    def __init__(self, names: Mapping[str, Sequence[Any]] | None = None, port: int = 0) -> None:
        self.names = {name: list(answers) for name, answers in (names or {}).items()}
        self.port = port
        self.resolved: list[str] = []
        self.connected: list[tuple[str, int]] = []

    async def getaddrinfo(self, host: str, port: int, **_: object) -> list[Any]:
        self.resolved.append(host)
        answers = self.names.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, f"no such name: {host}")
        if isinstance(answers[0], list):
            answers = answers.pop(0) if len(answers) > 1 else answers[0]
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in answers]
        return [
            (family, socket.SOCK_STREAM, 6, "", (address, port, 0, 0) if ":" in address else (address, port))
            for family, address in zip(families, answers, strict=True)
        ]

    async def connect(self, address: Address) -> socket.socket:
        self.connected.append(address[1:])
        if not self.port:
            raise ConnectionRefusedError
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        return sock

    def transport(self, context: ssl.SSLContext | None = None) -> Callable[[Guard], HttpTransport]:
        def make(guard: Guard) -> HttpTransport:
            made = HttpTransport(_PoolLimits(), screen=guard.check_addresses, ssl_context=context)
            dialer = made._dialing()
            dialer._getaddrinfo = self.getaddrinfo  # type: ignore[assignment]  # takes what the dialer gives
            dialer._connect_to = self.connect  # type: ignore[method-assign]  # as tests/http does
            return made

        return make


async def fetched(
    url: str,
    network: Network,
    *,
    policy: FetchPolicy | None = None,
    context: ssl.SSLContext | None = None,
    **asked: Any,
) -> Page:
    fetch = WebFetch(policy or FetchPolicy(), transport=network.transport(context), now=lambda: NOON)
    try:
        return await fetch.fetch(url, **asked)
    finally:
        await fetch.close()


def refused(url: str, network: Network, policy: FetchPolicy | None = None, **asked: Any) -> WebFailed:
    """Why it was not fetched."""
    try:
        page = asyncio.run(fetched(url, network, policy=policy, **asked))
    except WebFailed as failed:
        return failed
    raise AssertionError(f"{url} was fetched: {page}")


Respond = Callable[[str, str], bytes]
"""Host and path -> the bytes of an answer."""


def served(
    work: Callable[[Server, list[tuple[str, str]]], Awaitable[Any]],
    respond: Respond,
    context: ssl.SSLContext | None = None,
) -> Any:
    """What `work` returns, with a server that answers by host and path; it gets the list of those asked for."""
    asked: list[tuple[str, str]] = []

    async def serve(peer: Peer) -> None:
        while True:
            await peer.request()
            head = peer.requests[-1].decode("latin-1").split("\r\n")
            host = next(line[6:] for line in head if line.lower().startswith("host: "))
            asked.append((host, head[0].split(" ")[1]))
            await peer.send(respond(*asked[-1]))

    async def run() -> Any:
        async with Server(serve, context) as server:
            return await work(server, asked)

    return asyncio.run(run())


def got(
    url: str,
    respond: Respond | bytes,
    *,
    names: Mapping[str, Sequence[Any]] | None = None,
    policy: FetchPolicy | None = None,
    context: ssl.SSLContext | None = None,
    trusting: ssl.SSLContext | None = None,
    **asked: Any,
) -> tuple[Page | WebFailed, Network, list[tuple[str, str]]]:
    """What came of a fetch, where it connected, and what the server was asked for. Names that are not given
    resolve to a public address."""
    answer: Respond = respond if callable(respond) else lambda host, path: respond
    network = Network(names if names is not None else {"example.com": [PUBLIC]})

    async def work(server: Server, seen: list[tuple[str, str]]) -> tuple[Page | WebFailed, Network, Any]:
        network.port = server.port
        try:
            return await fetched(url, network, policy=policy, context=trusting, **asked), network, seen
        except WebFailed as failed:
            return failed, network, seen

    return served(work, answer, context)  # type: ignore[no-any-return]  # what `work` returns
