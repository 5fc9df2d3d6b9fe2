"""The endpoints of signing in: metadata (RFC 8414), device authorization (RFC 8628), tokens (RFC 6749),
revocation (RFC 7009), and the pages for users."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from wireglot.gateway.config.keys import NAME_EXPECTED, is_name
from wireglot.gateway.entry.callers import LOCAL, Caller, Gatekeeper
from wireglot.gateway.entry.guard import check_origin, host_name, is_forwarded, is_loopback
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError, error_headers
from wireglot.gateway.inspector.access import SECURITY_HEADERS, InspectorSessions, set_cookie
from wireglot.gateway.login import html
from wireglot.gateway.login.browser import ADMIN, BrowserSession, BrowserSessions
from wireglot.gateway.login.device_codes import (
    CODE_SECONDS,
    INTERVAL_SECONDS,
    Decision,
    DeviceCodes,
    DeviceRequest,
    NotYet,
    TooMany,
    normalized,
    shown_code,
)
from wireglot.gateway.login.oidc import IdentityProvider, ProviderDown, new_attempt
from wireglot.gateway.login.provider_grants import ProviderGrants
from wireglot.gateway.login.tokens import Granted, SignInRefused, SignInTokens
from wireglot.gateway.observe.log import Note
from wireglot.gateway.process_limits import KIB
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.settings import LoginSettings, Settings
from wireglot.gateway.state.keys.ring import KeyRefused, Keyring
from wireglot.gateway.state.state import State
from wireglot.http.application import Head, Headers
from wireglot.http.transport import Transport
from wireglot.stores import StoreDown
from wireglot_core.dialects.registry import COMMON

# Bytes of a form of the sign-in pages.
MAX_BODY_BYTES: Final = 16 * KIB
_DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_REFRESH_GRANT: Final = "refresh_token"
_FORM: Final = "application/x-www-form-urlencoded"
# Fields of a form of the sign-in pages.
_MAX_FIELDS: Final = 64
# Characters of the name that a device gives itself.
_MAX_SURFACE: Final = 64
_HOST: Final = re.compile(r"[A-Za-z0-9.\[\]:]{1,64}")
_UNCACHED: Final[Headers] = [("cache-control", "no-store"), ("pragma", "no-cache")]
_PAGE_CSP: Final = (
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_PAGE_HEADERS: Final[Headers] = [
    *_UNCACHED,
    *(header for header in SECURITY_HEADERS if header[0] != "referrer-policy"),
    # With no-referrer, browsers send no origin for our own forms (Origin: null).
    ("referrer-policy", "same-origin"),
    ("content-security-policy", _PAGE_CSP),
]
_BUSY: Final = "Too many sign-in attempts came from your network, which other people may share."
_EXPIRED: Final = "This code is not known, was used, or has expired. Start again in your application."
_LATER: Final = "The gateway cannot do this now. Try again in a moment."

Handler = Callable[[PageRequest, LoginSettings], Awaitable[None]]


class OAuthError(Exception):
    """An error response as RFC 6749 defines it."""

    def __init__(self, error: str, description: str = "", status: int = 400, wait: float = 0.0) -> None:
        super().__init__(error)
        self.error = error
        self.description = description
        self.status = status
        self.wait = wait


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
        self._inspector = inspector
        self._note = note
        self._keys = state.engine.keys
        self._table = state.keys
        self._settle_seconds = 1.2 * state.pace.keys_look_seconds + 0.3
        self._codes = DeviceCodes(state.documents, state.counters)
        self._provider = IdentityProvider(transports)
        self._grants = ProviderGrants(state.documents, state.counters, self._provider)
        self._tokens = SignInTokens(self._keys, state.keys, gatekeeper, note, self._grants.check)
        self._browsers = BrowserSessions(state.sealer)
        self._protocol: Final[dict[str, Handler]] = {
            "login.metadata": self._metadata,
            "login.device_authorization": self._device_authorization,
            "login.token": self._token,
            "login.revoke": self._revoke,
        }
        self._pages: Final[dict[str, Handler]] = {
            "login.style": self._style,
            "login.device": self._device,
            "login.decide": self._decide,
            "login.sign_in": self._sign_in,
            "login.callback": self._callback,
            "login.inspector": self._open_inspector,
        }
        self._actions: Final[dict[str, Callable[[_Step], Awaitable[None]]]] = {
            "key": self._with_key,
            "approve": self._approve,
            "assign": self._assign,
            "deny": self._deny,
        }

    def is_on(self, settings: Settings) -> bool:
        """Whether signing in is on: if no client needs a key, there is no use for it."""
        return settings.login is not None and self._gatekeeper.asks_for_keys(settings)

    def admit(self, head: Head, settings: Settings) -> Incoming:
        """Raises NoRoute and RequestError, before a body is read."""
        asked = self._match(head)
        if asked.verb in self._protocol:
            check_origin(head, settings.server)
        return Incoming(settings, head, asked, LOCAL)

    async def answer(self, page: PageRequest) -> None:
        login = page.settings.login
        assert login is not None
        verb = page.asked.verb
        if (protocol := self._protocol.get(verb)) is not None:
            await self._answer_protocol(page, login, protocol)
            return
        try:
            await self._pages[verb](page, login)
        except StoreDown:
            _send_page(page, html.message_page("Not available", _LATER), 503)
        except TooMany as many:
            _send_page(page, html.message_page("Too many attempts", _BUSY), 429, [_retry_after(many.wait)])
        except RequestError as refused:
            _send_page(
                page,
                html.message_page("Not possible", str(refused)),
                refused.status,
                error_headers(refused.error, refused.status),
            )

    # The protocol, for clients.

    async def _answer_protocol(self, page: PageRequest, login: LoginSettings, handler: Handler) -> None:
        try:
            await handler(page, login)
            return
        except OAuthError as given:
            problem = given
        except TooMany as many:
            problem = OAuthError("slow_down", _BUSY, 429, many.wait)
        except StoreDown:
            problem = OAuthError("temporarily_unavailable", "the gateway's store is not available", 503, 2)
        except ProviderDown as down:
            self._note("error", "identity provider not usable", detail=str(down))
            problem = OAuthError("temporarily_unavailable", "the identity provider cannot be reached", 503, 2)
        except RequestError as refused:
            problem = OAuthError("temporarily_unavailable", str(refused), refused.status, 2)
        document = {"error": problem.error}
        if problem.description:
            document["error_description"] = problem.description
        headers = [*_UNCACHED, *([_retry_after(problem.wait)] if problem.wait else [])]
        page.send(document, problem.status, headers)

    async def _metadata(self, page: PageRequest, login: LoginSettings) -> None:
        base = _base(page.head, login)
        page.send(
            {
                "issuer": base,
                "device_authorization_endpoint": f"{base}/oauth/device_authorization",
                "token_endpoint": f"{base}/oauth/token",
                "revocation_endpoint": f"{base}/oauth/revoke",
                "grant_types_supported": [_DEVICE_GRANT, _REFRESH_GRANT],
                "response_types_supported": [],
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
            },
            more=[("cache-control", "no-store")],
        )

    async def _device_authorization(self, page: PageRequest, login: LoginSettings) -> None:
        base = _base(page.head, login)
        surface = _fields(page).get("surface", "")
        if len(surface) > _MAX_SURFACE or not surface.isprintable():
            surface = ""
        device_code, request = await self._codes.begin(surface, page.head.peer)
        code = shown_code(request.user_code)
        document: dict[str, Any] = {
            "device_code": device_code,
            "user_code": code,
            "verification_uri": f"{base}/device",
            "verification_uri_complete": f"{base}/device?user_code={code}",
            "expires_in": CODE_SECONDS,
            "interval": INTERVAL_SECONDS,
        }
        if login.notice:
            document["login_notice"] = login.notice
        page.send(document, more=_UNCACHED)

    async def _token(self, page: PageRequest, login: LoginSettings) -> None:
        form = _fields(page)
        match form.get("grant_type", ""):
            case grant if grant == _DEVICE_GRANT:
                granted = await self._with_code(page, form.get("device_code", ""))
            case grant if grant == _REFRESH_GRANT:
                token = form.get("refresh_token", "")
                if not token:
                    raise OAuthError("invalid_request", "refresh_token is missing")
                renewed = await self._tokens.renew(token, page.head.peer, page.settings)
                if renewed is None:
                    raise OAuthError("invalid_grant", "sign in again", 401)
                granted = renewed
            case _:
                raise OAuthError("unsupported_grant_type")
        await self._settled(page.settings)
        document: dict[str, Any] = {
            "access_token": granted.access_token,
            "token_type": "Bearer",
            "expires_in": granted.seconds,
            "refresh_token": granted.refresh_token,
        }
        if "@" in granted.owner:
            document["email"] = granted.owner
        page.send(document, more=_UNCACHED)

    async def _with_code(self, page: PageRequest, device_code: str) -> Granted:
        if not device_code:
            raise OAuthError("invalid_request", "device_code is missing")
        try:
            request, decision = await self._codes.poll(device_code)
            return await self._tokens.issue(
                decision.parent, request.surface, page.head.peer, page.settings, decision.grant
            )
        except NotYet as not_yet:
            # It is repeated every few seconds until the user has decided.
            page.record.routine = not_yet.error in ("authorization_pending", "slow_down")
            raise OAuthError(not_yet.error, status=429 if not_yet.error == "slow_down" else 400) from None
        except SignInRefused as refused:
            raise OAuthError("access_denied", str(refused)) from None

    async def _revoke(self, page: PageRequest, login: LoginSettings) -> None:
        token = _fields(page).get("token", "")
        if not token:
            raise OAuthError("invalid_request", "token is missing")
        await self._tokens.revoke(token, page.head.peer)
        page.send({}, more=_UNCACHED)

    async def _settled(self, settings: Settings) -> None:
        """Wait until all processes know a new token: a client uses it at once, and takes a 401 for final."""
        store = settings.store
        is_shared = bool(store.shared.value) or store.url.value.startswith("postgres")
        if is_shared or settings.server.workers > 1:
            await asyncio.sleep(self._settle_seconds)

    # Pages, for people.

    async def _style(self, page: PageRequest, login: LoginSettings) -> None:
        headers = [("content-type", "text/css; charset=utf-8"), ("cache-control", "public, max-age=3600")]
        page.record.answered(200)
        page.reply.send(200, [*headers, *SECURITY_HEADERS], html.STYLE.encode())

    async def _device(self, page: PageRequest, login: LoginSettings) -> None:
        base = _base(page.head, login)
        given = normalized(page.query("user_code"))
        session = self._browser(page, base)
        if session is not None and session.parent and not given:
            step = await self._step(page, login, session, {})
            key = self._gatekeeper.key_of(session.parent, page.settings)
            if step is not None and key is not None:
                owner = key.owner or key.name
                _send_page(page, html.approve_page(self._browsers.token(session), step.request, owner))
                return
        session = self._browsers.begin()
        code = shown_code(given) if given else ""
        self._send(page, base, session, html.code_page(self._browsers.token(session), code))

    async def _decide(self, page: PageRequest, login: LoginSettings) -> None:
        base = _base(page.head, login)
        form = _fields(page)
        session = self._browser(page, base)
        if (
            session is None
            or not _is_same_site(page.head, base)
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
        base = _base(page.head, login)
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
        _send_page(step.page, body, more=[self._browsers.gone(step.base)])

    async def _decided(self, step: _Step, parent: str, name: str) -> None:
        grant = step.session.grant if parent == step.session.parent else ""
        if not await self._codes.decide(step.request, Decision(parent, grant)):
            _send_page(step.page, html.message_page("Too late", _EXPIRED), 400)
            return
        self._note(
            "info", "sign-in approved", caller=name, surface=step.request.surface, peer=step.page.head.peer
        )
        text = "Your application is signed in. You may close this window."
        _send_page(step.page, html.message_page("Approved", text), more=[self._browsers.gone(step.base)])

    # OpenID Connect.

    async def _sign_in(self, page: PageRequest, login: LoginSettings) -> None:
        """Redirect to the identity provider, for the code that this browser has entered. A link, not a form:
        the redirects between a provider's hosts are unknown, and form-action would have to name them all."""
        base = _base(page.head, login)
        session = self._browser(page, base)
        if session is None or not session.user_code or "oidc" not in login.approval:
            _redirect(page, "/device")
            return
        await self._away(page, login, session)

    async def _open_inspector(self, page: PageRequest, login: LoginSettings) -> None:
        """The same sign-in, for the inspector."""
        if "oidc" not in login.approval or page.settings.server.inspector == "off":
            _redirect(page, "/inspector")
            return
        await self._away(page, login, self._browsers.begin())

    async def _away(self, page: PageRequest, login: LoginSettings, session: BrowserSession) -> None:
        base = _base(page.head, login)
        attempt = new_attempt()
        try:
            url = await self._provider.authorization_url(login, attempt, f"{base}/device/callback")
        except ProviderDown as down:
            self._provider_down(page, down)
            return
        session = msgspec.structs.replace(session, attempt=attempt, parent="")
        _redirect(page, url, [self._browsers.cookie(session, base)])

    async def _callback(self, page: PageRequest, login: LoginSettings) -> None:
        base = _base(page.head, login)
        session = self._browser(page, base)
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
            _send_page(page, body, 403, [self._browsers.gone(base)])
            return
        if session.user_code:
            found = msgspec.structs.replace(
                self._browsers.begin(),
                user_code=session.user_code,
                parent=row.digest,
                grant=await self._grants.keep(refresh_token, login),
            )
            _redirect(page, "/device", [self._browsers.cookie(found, base)])
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
        _redirect(page, "/inspector", [cookie, self._browsers.gone(base)])

    def _provider_down(self, page: PageRequest, down: ProviderDown) -> None:
        self._note("error", "identity provider not usable", detail=str(down))
        text = "The identity provider does not answer as expected. Try again, or ask your administrator."
        _send_page(page, html.message_page("Not available", text, ("/device", "Start again")), 502)

    # Steps in a browser.

    def _browser(self, page: PageRequest, base: str) -> BrowserSession | None:
        return self._browsers.read(page.head.headers.get("cookie", ""), base)

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
            base=_base(page.head, login),
            session=session,
            request=request,
            form=form,
        )

    def _send(
        self, page: PageRequest, base: str, session: BrowserSession, body: bytes, status: int = 200
    ) -> None:
        _send_page(page, body, status, [self._browsers.cookie(session, base)])


class _Step(msgspec.Struct, frozen=True):
    """A form that a browser sent for a waiting code."""

    page: PageRequest
    login: LoginSettings
    base: str
    session: BrowserSession
    request: DeviceRequest
    form: dict[str, str]


def _base(head: Head, login: LoginSettings) -> str:
    """The gateway's own address. A Host header comes from the client: it is only trusted on this machine."""
    if login.public_url:
        return login.public_url
    host = head.headers.get("host", "")
    is_plain = _HOST.fullmatch(host) is not None and bool(host_name(host)) and is_loopback(host_name(host))
    if not is_plain or is_forwarded(head):
        raise RequestError("not_found", "signing in needs login.public_url", code="unknown_url")
    return f"http://{host}"


def _is_same_site(head: Head, base: str) -> bool:
    """Whether a form was sent by our page."""
    site = head.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    return head.headers.get("origin", base) == base


def _fields(page: PageRequest) -> dict[str, str]:
    """The fields of a form; of a repeated field the first one. Unknown fields are ignored (RFC 6749, 3.2)."""
    kind = page.head.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM and (kind or page.body):
        raise _bad_form(page)
    try:
        pairs = parse_qsl(
            page.body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
        )
    except ValueError:
        raise _bad_form(page) from None
    return dict(reversed(pairs))


def _bad_form(page: PageRequest) -> Exception:
    if page.asked.verb == "login.decide":
        return RequestError("bad", "expected a form", code="invalid_value")
    return OAuthError("invalid_request", f"expected a form ({_FORM})")


def _send_page(page: PageRequest, body: bytes, status: int = 200, more: Headers | None = None) -> None:
    page.record.answered(status)
    headers: Headers = [("content-type", "text/html; charset=utf-8"), *_PAGE_HEADERS]
    page.reply.send(status, [*headers, *identity(page.record.id, COMMON), *(more or [])], body)


def _redirect(page: PageRequest, url: str, more: Headers | None = None) -> None:
    page.record.answered(303)
    headers: Headers = [("location", url), *_PAGE_HEADERS, *(more or [])]
    page.reply.send(303, [*headers, *identity(page.record.id, COMMON)], b"")


def _retry_after(seconds: float) -> tuple[str, str]:
    return "retry-after", str(max(1, round(seconds)))
