"""The pages on which a person approves the sign-in of a device: the code, the way to approve it, the
decision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from wireglot.gateway.config.keys import NAME_EXPECTED, is_name
from wireglot.gateway.entry.callers import Gatekeeper
from wireglot.gateway.errors import RequestError
from wireglot.gateway.login import html
from wireglot.gateway.login.browser import ADMIN, BrowserSession, BrowserSessions
from wireglot.gateway.login.device_codes import Decision, DeviceCodes, DeviceRequest, normalized, shown_code
from wireglot.gateway.login.replies import base_url, form_fields, is_same_site, send_page
from wireglot.gateway.login.tokens import SignInRefused
from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.settings import LoginSettings
from wireglot.gateway.state.keys.ring import KeyRefused, Keyring
from wireglot.gateway.state.keys.table import KeyTable
from wireglot.stores.base import Keys

_EXPIRED: Final = "This code is not known, was used, or has expired. Start again in your application."


class ApprovalPages:
    def __init__(
        self,
        codes: DeviceCodes,
        browsers: BrowserSessions,
        *,
        gatekeeper: Gatekeeper,
        keys: Keys,
        table: KeyTable,
        note: Note,
    ) -> None:
        self._codes = codes
        self._browsers = browsers
        self._gatekeeper = gatekeeper
        self._keys = keys
        self._table = table
        self._note = note
        self._actions: Final[dict[str, Callable[[_Step], Awaitable[None]]]] = {
            "key": self._with_key,
            "approve": self._approve,
            "assign": self._assign,
            "deny": self._deny,
        }

    async def device(self, page: PageRequest, login: LoginSettings) -> None:
        base = base_url(page.head, login)
        given = normalized(page.query("user_code"))
        session = self._browsers.read(page.head.headers.get("cookie", ""), base)
        if session is not None and session.parent and not given:
            step = await self._step(page, login, session, {})
            key = self._gatekeeper.key_of(session.parent, page.settings)
            if step is not None and key is not None:
                owner = key.owner or key.name
                send_page(page, html.approve_page(self._browsers.token(session), step.request, owner))
                return
        session = self._browsers.begin()
        code = shown_code(given) if given else ""
        self._send(page, base, session, html.code_page(self._browsers.token(session), code))

    async def decide(self, page: PageRequest, login: LoginSettings) -> None:
        base = base_url(page.head, login)
        form = form_fields(page)
        session = self._browsers.read(page.head.headers.get("cookie", ""), base)
        if (
            session is None
            or not is_same_site(page.head, base)
            or not self._browsers.is_ours(session, form.get("csrf", ""))
        ):
            session = self._browsers.begin()
            again = "This page has expired, or was opened from another site. Enter the code again."
            body = html.code_page(self._browsers.token(session), problem=again)
            self._send(page, base, session, body, 403)
            return
        action = form.get("action", "")
        if action == "code":
            await self._code_given(page, login, session, form.get("user_code", ""))
            return
        step = await self._step(page, login, session, form)
        if step is None or action not in self._actions:
            session = self._browsers.begin()
            body = html.code_page(self._browsers.token(session), problem=_EXPIRED)
            self._send(page, base, session, body, 400)
            return
        await self._actions[action](step)

    async def _code_given(
        self, page: PageRequest, login: LoginSettings, session: BrowserSession, user_code: str
    ) -> None:
        base = base_url(page.head, login)
        request = await self._codes.find(user_code, page.head.peer)
        if request is None:
            body = html.code_page(self._browsers.token(session), problem=_EXPIRED)
            self._send(page, base, session, body, 400)
            return
        session = msgspec.structs.replace(self._browsers.begin(), user_code=request.user_code)
        self._send(page, base, session, self._ways(login, session, request))

    def _ways(
        self, login: LoginSettings, session: BrowserSession, request: DeviceRequest, problem: str = ""
    ) -> bytes:
        provider = urlsplit(login.issuer).hostname or ""
        return html.sign_in_page(self._browsers.token(session), request, login.approval, provider, problem)

    async def _with_key(self, step: _Step) -> None:
        page, login = step.page, step.login
        secret = step.form.get("key", "").strip()
        try:
            if not secret:
                raise SignInRefused("Enter a key.")
            who = self._gatekeeper.known(page.head.peer, [secret], page.settings)
            if who.key is None and "admin" in login.approval:
                session = msgspec.structs.replace(
                    self._browsers.begin(), user_code=step.request.user_code, parent=ADMIN
                )
                body = html.admin_page(
                    self._browsers.token(session), step.request, tuple(page.settings.groups)
                )
                self._send(page, step.base, session, body)
                return
            if who.key is None or "key" not in login.approval:
                raise SignInRefused("This gateway does not accept this kind of key here.")
            if who.key.sign_in:
                # A token expires soon; a sign-in made with it would outlive it.
                raise SignInRefused("This is a token of another sign-in, not a client key.")
        except (SignInRefused, RequestError) as refused:
            status = refused.status if isinstance(refused, RequestError) else 400
            self._note("warn", "sign-in refused", peer=page.head.peer, detail=str(refused))
            body = self._ways(login, step.session, step.request, str(refused))
            self._send(page, step.base, step.session, body, status)
            return
        await self._decided(step, who.key.digest, who.key.name)

    async def _approve(self, step: _Step) -> None:
        key = None
        if step.session.parent and step.session.parent != ADMIN and "oidc" in step.login.approval:
            key = self._gatekeeper.key_of(step.session.parent, step.page.settings)
        if key is None:
            body = self._ways(step.login, step.session, step.request, "Sign in first.")
            self._send(step.page, step.base, step.session, body, 400)
            return
        await self._decided(step, step.session.parent, key.name)

    async def _assign(self, step: _Step) -> None:
        """The administrator names the key: a configured one, a stored one, or a new one."""
        page, settings = step.page, step.page.settings
        if step.session.parent != ADMIN or "admin" not in step.login.approval:
            body = self._ways(step.login, step.session, step.request, "Sign in first.")
            self._send(page, step.base, step.session, body, 400)
            return
        name, group = step.form.get("name", "").strip(), step.form.get("group", "")
        try:
            parent = next((key.digest for key in settings.keys if key.name == name), "")
            if not parent:
                if not is_name(name):
                    raise KeyRefused(f"name: expected {NAME_EXPECTED}")
                row = await self._keys.get(name)
                if row is None:
                    ring = Keyring(self._keys, {key.name for key in settings.keys}, settings.groups)
                    fields = {"group": group or None, "owner": name if "@" in name else None}
                    row, _ = await ring.create(name, fields)
                    self._note("info", "key changed", name=name, change="create")
                if row.revoked or row.sign_in is not None:
                    raise KeyRefused(f"{name} was revoked, or is a sign-in")
                parent = row.digest
                await self._table.refresh()
        except KeyRefused as refused:
            token = self._browsers.token(step.session)
            body = html.admin_page(token, step.request, tuple(settings.groups), str(refused))
            self._send(page, step.base, step.session, body, 400)
            return
        await self._decided(step, parent, name)

    async def _deny(self, step: _Step) -> None:
        await self._codes.decide(step.request, Decision(""))
        self._note("info", "sign-in denied", peer=step.page.head.peer, surface=step.request.surface)
        body = html.message_page("Denied", "The application gets no access. You may close this window.")
        send_page(step.page, body, more=[self._browsers.gone(step.base)])

    async def _decided(self, step: _Step, parent: str, name: str) -> None:
        grant = step.session.grant if parent == step.session.parent else ""
        if not await self._codes.decide(step.request, Decision(parent, grant)):
            send_page(step.page, html.message_page("Too late", _EXPIRED), 400)
            return
        self._note(
            "info", "sign-in approved", caller=name, surface=step.request.surface, peer=step.page.head.peer
        )
        text = "Your application is signed in. You may close this window."
        send_page(step.page, html.message_page("Approved", text), more=[self._browsers.gone(step.base)])

    async def _step(
        self, page: PageRequest, login: LoginSettings, session: BrowserSession, form: dict[str, str]
    ) -> _Step | None:
        """None: no code waits for a decision any more."""
        request = await self._codes.open_request(session.user_code) if session.user_code else None
        if request is None:
            return None
        return _Step(
            page=page,
            login=login,
            base=base_url(page.head, login),
            session=session,
            request=request,
            form=form,
        )

    def _send(
        self, page: PageRequest, base: str, session: BrowserSession, body: bytes, status: int = 200
    ) -> None:
        send_page(page, body, status, [self._browsers.cookie(session, base)])


class _Step(msgspec.Struct, frozen=True):
    """A form that a browser sent for a waiting code."""

    page: PageRequest
    login: LoginSettings
    base: str
    session: BrowserSession
    request: DeviceRequest
    form: dict[str, str]
