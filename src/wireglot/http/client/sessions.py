"""TLS sessions of the upstreams, kept so that the next connection need not shake hands in full.

asyncio and uvloop make their TLS objects themselves, with `wrap_bio` of the context that they are handed, and
have no word for a session: so a context that knows one stands before the real one.
"""

from __future__ import annotations

import ssl
from typing import Any, Final

from wireglot.http.client.request import Origin

_KEPT_MOST: Final = 1024


class Sessions:
    """The newest session of each origin, which is a host as well as for whom it is asked."""

    def __init__(self) -> None:
        self._kept: dict[Origin, ssl.SSLSession] = {}

    def context(self, real: ssl.SSLContext, origin: Origin) -> ssl.SSLContext:
        """What to connect with: `real` itself, where no session is known."""
        session = self._kept.get(origin)
        return real if session is None else _Resuming(real, session)

    def keep(self, origin: Origin, transport: Any) -> None:
        """After an answer: in TLS 1.3 tickets come behind the handshake."""
        spoken = transport.get_extra_info("ssl_object")
        session = spoken.session if spoken is not None else None
        if session is None or not session.has_ticket:
            return
        if len(self._kept) >= _KEPT_MOST:
            self._kept.clear()
        self._kept[origin] = session

    def forget(self, origin: Origin) -> bool:
        """Whether there was one."""
        return self._kept.pop(origin, None) is not None


class _Resuming(ssl.SSLContext):
    """Nothing is set on it and nothing is read from it: whatever it is asked for is the real one's."""

    _real: ssl.SSLContext
    _session: ssl.SSLSession

    def __new__(cls, real: ssl.SSLContext, session: ssl.SSLSession) -> _Resuming:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._real, made._session = real, session
        return made

    def __init__(self, real: ssl.SSLContext, session: ssl.SSLSession) -> None:
        pass

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return self._real.wrap_bio(
            incoming,
            outgoing,
            server_side,
            server_hostname,
            session or self._session,
        )
