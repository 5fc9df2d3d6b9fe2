"""The endpoints of signing in, by path: the protocol for clients, and the pages for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from wireglot.gateway.entry.callers import LOCAL, Gatekeeper
from wireglot.gateway.entry.guard import check_origin
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError, error_headers
from wireglot.gateway.inspector.access import SECURITY_HEADERS, InspectorSessions
from wireglot.gateway.login import html
from wireglot.gateway.login.approval import ApprovalPages
from wireglot.gateway.login.browser import BrowserSessions
from wireglot.gateway.login.device_codes import DeviceCodes, TooMany
from wireglot.gateway.login.oidc import IdentityProvider
from wireglot.gateway.login.provider_grants import ProviderGrants
from wireglot.gateway.login.provider_sign_in import ProviderSignIn
from wireglot.gateway.login.replies import BUSY, Handler, retry_after, send_page
from wireglot.gateway.login.token_endpoints import TokenEndpoints
from wireglot.gateway.login.tokens import SignInTokens
from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.settings import LoginSettings, Settings
from wireglot.gateway.state.state import State
from wireglot.http.application import Head
from wireglot.http.transport import Transport
from wireglot.stores import StoreDown

_LATER: Final = "The gateway cannot do this now. Try again in a moment."


class LoginPages:
    def __init__(
        self,
        match: Callable[[Head], Asked],
        *,
        state: State,
        gatekeeper: Gatekeeper,
        inspector: InspectorSessions,
        transports: Mapping[str, Transport],
        note: Note,
    ) -> None:
        self._match = match
        self._gatekeeper = gatekeeper
        keys = state.engine.keys
        codes = DeviceCodes(state.documents, state.counters)
        browsers = BrowserSessions(state.sealer)
        provider = IdentityProvider(transports)
        grants = ProviderGrants(state.documents, state.counters, provider)
        tokens = SignInTokens(keys, state.keys, gatekeeper, note, grants.check)
        self._protocol = TokenEndpoints(
            codes, tokens, note, settle_seconds=1.2 * state.pace.keys_look_seconds + 0.3
        )
        self._approval = approval = ApprovalPages(
            codes, browsers, gatekeeper=gatekeeper, keys=keys, table=state.keys, note=note
        )
        self._at_provider = at_provider = ProviderSignIn(
            provider, grants, tokens, browsers, gatekeeper=gatekeeper, inspector=inspector, note=note
        )
        self._pages: Final[dict[str, Handler]] = {
            "login.style": _send_style,
            "login.device": approval.device,
            "login.decide": approval.decide,
            "login.sign_in": at_provider.sign_in,
            "login.callback": at_provider.callback,
            "login.inspector": at_provider.open_inspector,
        }

    def is_on(self, settings: Settings) -> bool:
        """Whether signing in is on: if no client needs a key, there is no use for it."""
        return settings.login is not None and self._gatekeeper.asks_for_keys(settings)

    def admit(self, head: Head, settings: Settings) -> Incoming:
        """Raises NoRoute and RequestError, before a body is read."""
        asked = self._match(head)
        if self._protocol.serves(asked.verb):
            check_origin(head, settings.server)
        return Incoming(settings, head, asked, LOCAL)

    async def answer(self, page: PageRequest) -> None:
        login = page.settings.login
        assert login is not None
        verb = page.asked.verb
        if self._protocol.serves(verb):
            await self._protocol.answer(page, login)
            return
        try:
            await self._pages[verb](page, login)
        except StoreDown:
            send_page(page, html.message_page("Not available", _LATER), 503)
        except TooMany as many:
            send_page(page, html.message_page("Too many attempts", BUSY), 429, [retry_after(many.wait)])
        except RequestError as refused:
            send_page(
                page,
                html.message_page("Not possible", str(refused)),
                refused.status,
                error_headers(refused.error, refused.status),
            )


async def _send_style(page: PageRequest, login: LoginSettings) -> None:
    headers = [("content-type", "text/css; charset=utf-8"), ("cache-control", "public, max-age=3600")]
    page.record.answered(200)
    page.reply.send(200, [*headers, *SECURITY_HEADERS], html.STYLE.encode())
