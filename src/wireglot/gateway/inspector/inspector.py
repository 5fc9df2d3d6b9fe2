"""The inspector as the application sees it: who is let in, and which handler answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from wireglot.dialects.registry import COMMON
from wireglot.gateway.entry.callers import LOCAL, Gatekeeper
from wireglot.gateway.entry.guard import check_body_form
from wireglot.gateway.entry.routes import Asked, NoRoute
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.access import Access, SeenVisitor, check_form, check_site
from wireglot.gateway.inspector.sessions import InspectorSessions
from wireglot.gateway.inspector.sign_in_pages import Endings, SignInPages
from wireglot.gateway.inspector.site import Site
from wireglot.gateway.observe.log import Note
from wireglot.gateway.process_limits import KIB, MIB
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.request.page_request import PageRequest, unavailable
from wireglot.gateway.request.viewer import InspectorHandler
from wireglot.gateway.settings import Settings
from wireglot.http.application import Head
from wireglot.stores import StoreDown

_BODY_BYTES_MOST: Final = 4 * MIB
_STRANGERS_BODY_BYTES_MOST: Final = 16 * KIB
"""Of whoever may not look yet: a secret is short."""
_OPEN: Final = frozenset({"page", "asset", "session.get", "session.begin", "session.end"})
"""What is answered to whoever may not look yet."""


def body_bytes_most(asked: Asked) -> int:
    return _STRANGERS_BODY_BYTES_MOST if asked.verb in _OPEN else _BODY_BYTES_MOST


class Inspector:
    def __init__(
        self,
        match: Callable[[Head], Asked],
        gatekeeper: Gatekeeper,
        settings: Callable[[], Settings],
        note: Note,
        endings: Endings,
        *handlers: Mapping[str, InspectorHandler],
    ) -> None:
        """`endings`: tells other processes of sessions that end. `handlers`: verb -> who answers it."""
        self._match = match
        sessions = InspectorSessions(ended=endings.ended)
        self._access = Access(gatekeeper, sessions, settings)
        site = Site()
        self._files: Final[dict[str, Callable[[PageRequest], Awaitable[None]]]] = {
            "page": site.page,
            "asset": site.asset,
        }
        pages = SignInPages(self._access, sessions, gatekeeper, note, endings)
        self._signing: Final[dict[str, Callable[[PageRequest, SeenVisitor], Awaitable[None]]]] = {
            "session.get": pages.get,
            "session.begin": pages.begin,
            "session.end": pages.end,
        }
        self._handlers: Final = {verb: handler for each in handlers for verb, handler in each.items()}

    def admit(self, head: Head, settings: Settings) -> Incoming:
        """Raises NoRoute and RequestError, before a body is read."""
        if settings.server.inspector == "off":
            raise NoRoute(COMMON)
        check_site(head)
        asked = self._match(head)
        check_form(head)
        if asked.verb in _OPEN:
            return Incoming(settings, head, asked, LOCAL)
        seen = self._access.seen(head, settings)
        self._access.check(head, seen, settings)
        return Incoming(settings, head, asked, seen.caller)

    async def answer(self, page: PageRequest) -> None:
        if page.body:
            check_body_form(page.head)  # one in chunks does not show before it has come
        verb = page.asked.verb
        try:
            if (send := self._files.get(verb)) is not None:
                await send(page)
                return
            seen = self._access.seen(page.head, page.settings)
            if (sign := self._signing.get(verb)) is not None:
                await sign(page, seen)
                return
            handler = self._handlers.get(verb)
            if handler is None:
                raise RequestError("not_found", f"there is nothing at {page.head.path}", code="unknown_url")
            await handler(page, self._access.check(page.head, seen, page.settings))
        except StoreDown:
            raise unavailable(page.head.path) from None
