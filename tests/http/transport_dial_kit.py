"""Certificates, names and faults for the tests of how connections are opened."""

import asyncio
import datetime
import functools
import socket
import ssl

import pytest
import trustme

from tests.http.transport_kit import PATIENT, fetch
from wireglot.http.client.dial import default_context
from wireglot.http.transport import Timeouts, TransportFault

AUTHORITY = trustme.CA()
KEY = [("authorization", "Bearer sk-secret")]


@functools.cache
def trusting() -> ssl.SSLContext:
    context = default_context()
    AUTHORITY.configure_trust(context)
    return context


def serving(*names: str, authority: trustme.CA = AUTHORITY, expired: bool = False) -> ssl.SSLContext:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    cert = authority.issue_cert(*names, not_after=past if expired else None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cert.configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


async def fault_of(transport, request, timeouts: Timeouts = PATIENT) -> TransportFault:
    with pytest.raises(TransportFault) as caught:
        await fetch(transport, request, timeouts)
    assert "127.0.0.1" not in caught.value.message
    assert "secret" not in caught.value.message
    return caught.value


class Names:
    """Stands in for getaddrinfo on the running loop. None: it does not answer."""

    def __init__(self, addresses: list[str] | None, port: int = 0) -> None:
        self.asked = 0
        self._addresses = addresses
        self._port = port

    async def __call__(self, host: str, port: int, **_: object):
        self.asked += 1
        if self._addresses is None:
            await asyncio.Event().wait()
        if not self._addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name: " + host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, self._port or port)) for a in self._addresses]


def resolve_with(transport, names: Names) -> None:
    dialer = transport._dialing()
    dialer._getaddrinfo = names
