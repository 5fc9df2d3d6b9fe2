"""Signing in at an identity provider (OpenID Connect), for a device's code or for the inspector."""

from __future__ import annotations

from urllib.parse import parse_qsl

import msgspec

from wireglot.gateway.entry.callers import Caller, Gatekeeper
from wireglot.gateway.inspector.access import InspectorSessions, set_cookie
from wireglot.gateway.login import html
from wireglot.gateway.login.browser import BrowserSession, BrowserSessions
from wireglot.gateway.login.oidc import IdentityProvider, ProviderDown, new_attempt
from wireglot.gateway.login.provider_grants import ProviderGrants
from wireglot.gateway.login.replies import base_url, redirect, send_page
from wireglot.gateway.login.tokens import SignInRefused, SignInTokens
from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.settings import LoginSettings
from wireglot.stores import StoreDown


class ProviderSignIn:
    def __init__(
        self,
        provider: IdentityProvider,
        grants: ProviderGrants,
        tokens: SignInTokens,
        browsers: BrowserSessions,
        *,
        gatekeeper: Gatekeeper,
        inspector: InspectorSessions,
        note: Note,
    ) -> None:
        self._provider = provider
        self._grants = grants
        self._tokens = tokens
        self._browsers = browsers
        self._gatekeeper = gatekeeper
        self._inspector = inspector
        self._note = note

    async def sign_in(self, page: PageRequest, login: LoginSettings) -> None:
        """Redirect to the identity provider, for the code that this browser has entered. A link, not a form:
        the redirects between a provider's hosts are unknown, and form-action would have to name them all."""
        base = base_url(page.head, login)
        session = self._browsers.read(page.head.headers.get("cookie", ""), base)
        if session is None or not session.user_code or "oidc" not in login.approval:
            redirect(page, "/device")
            return
        await self._away(page, login, session)

    async def open_inspector(self, page: PageRequest, login: LoginSettings) -> None:
        """The same sign-in, for the inspector."""
        if "oidc" not in login.approval or page.settings.server.inspector == "off":
            redirect(page, "/inspector")
            return
        await self._away(page, login, self._browsers.begin())

    async def _away(self, page: PageRequest, login: LoginSettings, session: BrowserSession) -> None:
        base = base_url(page.head, login)
        attempt = new_attempt()
        try:
            url = await self._provider.authorization_url(login, attempt, f"{base}/device/callback")
        except ProviderDown as down:
            self._provider_down(page, down)
            return
        session = msgspec.structs.replace(session, attempt=attempt, parent="")
        redirect(page, url, [self._browsers.cookie(session, base)])

    async def callback(self, page: PageRequest, login: LoginSettings) -> None:
        base = base_url(page.head, login)
        session = self._browsers.read(page.head.headers.get("cookie", ""), base)
        query = dict(reversed(parse_qsl(page.head.query, keep_blank_values=True)))
        try:
            if session is None or session.attempt is None or "oidc" not in login.approval:
                raise SignInRefused("this sign-in was begun in another browser or has expired: start again")
            back = f"{base}/device/callback"
            person, refresh_token = await self._provider.person(login, session.attempt, query, back)
            row = await self._tokens.person(person, page.settings)
        except ProviderDown as down:
            self._provider_down(page, down)
            return
        except SignInRefused as refused:
            self._note("warn", "sign-in refused", peer=page.head.peer, detail=str(refused))
            text = str(refused)
            body = html.message_page(
                "Not signed in", f"{text[:1].upper()}{text[1:]}.", ("/device", "Start again")
            )
            send_page(page, body, 403, [self._browsers.gone(base)])
            return
        if session.user_code:
            found = msgspec.structs.replace(
                self._browsers.begin(),
                user_code=session.user_code,
                parent=row.digest,
                grant=await self._grants.keep(refresh_token, login),
            )
            redirect(page, "/device", [self._browsers.cookie(found, base)])
            return
        await self._looking(page, base, row.digest)

    async def _looking(self, page: PageRequest, base: str, digest: str) -> None:
        """A session of the inspector, for the person's own exchanges."""
        key = self._gatekeeper.key_of(digest, page.settings)
        if key is None:
            raise StoreDown("the key of the person is not available yet")
        _, token = self._inspector.begin(Caller(key.name, key), page.settings)
        self._note("info", "inspector sign-in", peer=page.head.peer, caller=key.name)
        host = page.head.headers.get("host", "")
        cookie = set_cookie(host, token, secure=base.startswith("https:"))
        redirect(page, "/inspector", [cookie, self._browsers.gone(base)])

    def _provider_down(self, page: PageRequest, down: ProviderDown) -> None:
        self._note("error", "identity provider not usable", detail=str(down))
        text = "The identity provider does not answer as expected. Try again, or ask your administrator."
        send_page(page, html.message_page("Not available", text, ("/device", "Start again")), 502)
