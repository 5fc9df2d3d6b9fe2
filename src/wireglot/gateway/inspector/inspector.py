"""The inspector's interface to the application: checks access and chooses the handler."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from wireglot import __version__
from wireglot.gateway.config.edit import ConfigSource
from wireglot.gateway.entry.callers import ADMIN, LOCAL, Gatekeeper
from wireglot.gateway.entry.guard import check_body_form
from wireglot.gateway.entry.routes import INSPECTOR_ROOT, Asked, NoRoute
from wireglot.gateway.errors import RequestError, invalid_value
from wireglot.gateway.inspector.access import (
    Access,
    InspectorSession,
    InspectorSessions,
    SeenVisitor,
    check_form,
    check_site,
    is_behind_tls,
    set_cookie,
)
from wireglot.gateway.inspector.dashboard import DashboardPage
from wireglot.gateway.inspector.key_pages import KeyPages
from wireglot.gateway.inspector.playground import TranslatePage
from wireglot.gateway.inspector.preview import Preview, Targets
from wireglot.gateway.inspector.replay_page import AskPage, ReplayPage, Submit
from wireglot.gateway.inspector.setup_page import setup
from wireglot.gateway.observe.log import Note
from wireglot.gateway.process_limits import KIB, MIB
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.request.page_request import PageRequest, unavailable
from wireglot.gateway.request.viewer import InspectorHandler
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.settings import LoginSettings, Settings
from wireglot.gateway.state.keys.admin import AdminPages
from wireglot.gateway.state.state import State
from wireglot.gateway.targets.health import Health
from wireglot.gateway.trace.peers import PeerCommand
from wireglot.gateway.trace.traces import Traces
from wireglot.http.application import Head, Headers
from wireglot.stores import StoreDown
from wireglot_core.dialects.registry import COMMON

INDEX: Final = "index.html"
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
"""Media types of the files that `make page` writes, by file extension."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_HASHED: Final = re.compile(r"[-.][A-Za-z0-9_]{8,}\.[a-z0-9]+$")
"""A file name with a content hash: it may be cached for ever."""
_MIN_GZIP_BYTES: Final = 1024
_NOT_BUILT: Final = (
    b"The inspector's page is not in this copy of Wireglot: `make page` builds it, packages have it.\n"
)


class _File(msgspec.Struct, frozen=True):
    type: str
    plain: bytes
    tag: str
    """ETag of its bytes, quoted as HTTP requires."""
    is_hashed: bool
    gzipped: bytes
    """b"": too short to compress."""


class Site:
    def __init__(self, folder: Traversable | None = None) -> None:
        self._folder = folder if folder is not None else files("wireglot.gateway.inspector") / "assets"
        self._files: dict[str, _File] = {}

    async def page(self, page: PageRequest) -> None:
        """Every view is the same page, which reads its own address."""
        index = await self._found(INDEX)
        if index is None:
            headers = [("content-type", _TYPES["txt"]), ("cache-control", "no-store")]
            page.record.answered(404)
            page.reply.send(404, headers, _NOT_BUILT)
            return
        _send(page, index)

    async def asset(self, page: PageRequest) -> None:
        (name,) = page.asked.ids
        found = await self._found(name) if _NAME.fullmatch(name) and name != INDEX else None
        if found is None:
            raise RequestError("not_found", "the page has no such file", code="unknown_url")
        _send(page, found)

    async def _found(self, name: str) -> _File | None:
        """Read and compressed in a worker thread, once. A missing file is looked for each time."""
        found = self._files.get(name)
        if found is None:
            found = await run_in_thread(partial(self._read, name))
            if found is not None:
                self._files[name] = found
        return found

    def _read(self, name: str) -> _File | None:
        """`name` is a plain file name: no path leads out of the folder."""
        ending = name.rpartition(".")[2]
        place = self._folder / name
        if ending not in _TYPES or not place.is_file():
            return None
        plain = place.read_bytes()
        gzipped = gzip.compress(plain, 9, mtime=0) if len(plain) >= _MIN_GZIP_BYTES else b""
        tag = f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
        return _File(_TYPES[ending], plain, tag, bool(_HASHED.search(name)), gzipped)


def _send(page: PageRequest, found: _File) -> None:
    is_gzipped = bool(found.gzipped) and _takes_gzip(page.head.headers.get("accept-encoding", ""))
    body = found.gzipped if is_gzipped else found.plain
    tag = f'{found.tag[:-1]}-gzip"' if is_gzipped else found.tag
    kept = "public, max-age=31536000, immutable" if found.is_hashed else "no-cache"
    headers: Headers = [("cache-control", kept), ("etag", tag), ("vary", "accept-encoding")]
    if _is_known(page.head.headers.get("if-none-match", ""), tag):
        page.record.answered(304)
        page.reply.send(304, headers, b"")
        return
    headers.append(("content-type", found.type))
    if is_gzipped:
        headers.append(("content-encoding", "gzip"))
    page.record.answered(200)
    page.reply.send(200, headers, body)


def _takes_gzip(accepted: str) -> bool:
    for piece in accepted.lower().split(","):
        name, _, weight = piece.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _is_known(tags: str, tag: str) -> bool:
    known = {each.strip().removeprefix("W/") for each in tags.split(",")}
    return tag in known or "*" in known


# Characters of the admin secret in a sign-in.
_MAX_SECRET_LETTERS: Final = 4096
_SEE_OTHER: Final = 303
_GONE: Final = 410
_LINK_IS_OVER: Final = (
    b"This link was used already, or is too old: it signs in once, within five minutes.\n"
    b"`wireglot inspect` makes a new one.\n"
)


Command = Callable[[PeerCommand], Awaitable[str]]
"""Sends a command to all processes that know a session. Returns why only this machine got it, or ""."""


Claim = Callable[[str], Awaitable[bool]]
"""Claims a name for the lifetime of a ticket: whether no other process has it."""


class SignInPages:
    def __init__(
        self,
        access: Access,
        sessions: InspectorSessions,
        gatekeeper: Gatekeeper,
        note: Note,
        command: Command,
        claim: Claim,
    ) -> None:
        self._command = command
        self._claim = claim
        self._access = access
        self._sessions = sessions
        self._gatekeeper = gatekeeper
        self._note = note

    async def get(self, page: PageRequest, seen: SeenVisitor) -> None:
        page.send(self._reported(page, seen))

    async def begin(self, page: PageRequest, seen: SeenVisitor) -> None:
        """Sign in. A visitor without a session has no token to send: the secret itself is what no other page
        knows."""
        secret = page.document().get("secret")
        if type(secret) is not str or not secret.strip() or len(secret) > _MAX_SECRET_LETTERS:
            raise invalid_value("secret", "the admin secret or a client key")
        try:
            who = self._gatekeeper.known(page.head.peer, [secret.strip()], page.settings)
        except RequestError as refused:
            self._note("warn", "inspector sign-in refused", peer=page.head.peer, detail=str(refused))
            raise
        if seen.session is not None:
            await self._ended(seen.session)
        session, token = self._sessions.begin(who, page.settings)
        self._note("info", "inspector sign-in", peer=page.head.peer, caller=who.name)
        now = self._access.of(session, page.settings)
        host = page.head.headers.get("host", "")
        cookie = set_cookie(host, token, secure=is_behind_tls(page.head))
        page.send(self._reported(page, now), more=[cookie])

    async def enter(self, page: PageRequest, seen: SeenVisitor) -> None:
        """The link of `wireglot inspect`: signs in once, and redirects to the page."""
        (ticket,) = page.asked.ids
        used = self._sessions.redeem(ticket)
        headers: Headers = [("cache-control", "no-store")]
        if used is not None and not await self._is_first(used.ended):
            used = None
        if used is not None:
            await self._command(used)
            _, token = self._sessions.begin(ADMIN, page.settings)
            self._note("info", "inspector sign-in", peer=page.head.peer, caller=ADMIN.name)
            host = page.head.headers.get("host", "")
            headers.append(set_cookie(host, token, secure=is_behind_tls(page.head)))
        elif seen.viewer is None:
            self._note(
                "warn",
                "inspector sign-in refused",
                peer=page.head.peer,
                detail="the link was used or has expired",
            )
            page.record.answered(_GONE)
            page.reply.send(_GONE, [*headers, ("content-type", _TYPES["txt"])], _LINK_IS_OVER)
            return
        page.record.answered(_SEE_OTHER)
        page.reply.send(_SEE_OTHER, [*headers, ("location", INSPECTOR_ROOT)], b"")

    async def _is_first(self, ticket: str) -> bool:
        """Two workers may get the same ticket at once, before one can inform the other."""
        with contextlib.suppress(StoreDown):
            return await self._claim(ticket)
        return True  # as far as this process knows

    async def end(self, page: PageRequest, seen: SeenVisitor) -> None:
        if seen.viewer is not None:
            self._access.check_token(page.head, seen, page.settings)
        unreached = await self._ended(seen.session) if seen.session is not None else ""
        host = page.head.headers.get("host", "")
        gone = set_cookie(host, "", secure=is_behind_tls(page.head), seconds=0)
        reported = {"access": "none"}
        if unreached:
            reported["unreached"] = (
                f"signed out on this machine; on others once the store is back: {unreached}"
            )
        page.send(reported, more=[gone])

    async def _ended(self, session: InspectorSession) -> str:
        return await self._command(self._sessions.end(session))

    def _reported(self, page: PageRequest, seen: SeenVisitor) -> dict[str, Any]:
        viewer = seen.viewer
        reported: dict[str, Any] = {
            "access": viewer.access if viewer is not None else "none",
            "key": viewer.key if viewer is not None else "",
            "csrf": self._sessions.csrf(seen.session, page.settings) if viewer is not None else "",
            "until": viewer.until or None if viewer is not None else None,
            "version": __version__,
            "workers": page.settings.server.workers,
            "currency": page.settings.currency,
            "admin": bool(page.settings.server.admin_secret.value),
            "sign_in": self._access.takes_secrets(page.settings),
            "provider": _provider(page.settings.login),
        }
        if viewer is None:
            reported["why"] = self._access.why_closed(page.settings)
        return reported


def _provider(login: LoginSettings | None) -> str:
    """The host of the identity provider for sign-ins at /login; "": none."""
    is_on = login is not None and "oidc" in login.approval
    return (urlsplit(login.issuer).hostname or "") if login is not None and is_on else ""


# Bytes of a request of the inspector's page.
_MAX_BODY_BYTES: Final = 4 * MIB
_MAX_STRANGERS_BODY_BYTES: Final = 16 * KIB
"""Bytes of a request to the page by visitors who have not signed in: a secret is short."""
_OPEN: Final = frozenset({"page", "asset", "session.get", "session.begin", "session.enter", "session.end"})
"""Verbs that need no access."""


def max_body_bytes(asked: Asked) -> int:
    return _MAX_STRANGERS_BODY_BYTES if asked.verb in _OPEN else _MAX_BODY_BYTES


class Inspector:
    def __init__(
        self,
        match: Callable[[Head], Asked],
        gatekeeper: Gatekeeper,
        settings: Callable[[], Settings],
        note: Note,
        sessions: InspectorSessions,
        command: Command,
        claim: Claim,
        handlers: Mapping[str, InspectorHandler],
    ) -> None:
        """`handlers`: verb -> handler."""
        self._match = match
        self._access = Access(gatekeeper, sessions, settings)
        site = Site()
        self._files: Final[dict[str, Callable[[PageRequest], Awaitable[None]]]] = {
            "page": site.page,
            "asset": site.asset,
        }
        pages = SignInPages(self._access, sessions, gatekeeper, note=note, command=command, claim=claim)
        self._signing: Final[dict[str, Callable[[PageRequest, SeenVisitor], Awaitable[None]]]] = {
            "session.get": pages.get,
            "session.begin": pages.begin,
            "session.enter": pages.enter,
            "session.end": pages.end,
        }
        self._handlers: Final = handlers

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
            check_body_form(page.head)  # a chunked body is only visible once it has come
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
                raise RequestError("not_found", f"there is no endpoint {page.head.path}", code="unknown_url")
            await handler(page, self._access.check(page.head, seen, page.settings))
        except StoreDown:
            raise unavailable(page.head.path) from None


def inspector_handlers(
    state: State,
    admin: AdminPages,
    health: Health,
    scrape: Callable[[], Awaitable[bytes]],
    submit: Submit,
    traces: Traces,
    preview: Preview,
    source: ConfigSource,
) -> Mapping[str, InspectorHandler]:
    ledger = state.engine.ledger
    return {
        "translate": TranslatePage().translate,
        "setup": partial(setup, source.environ),
        "ask": AskPage(submit).ask,
        "replay": ReplayPage(submit, traces, preview).replay,
        "targets": Targets().targets,
        "dashboard": DashboardPage(
            state.ledger, ledger, health, scrape, traces=traces, quotas=state.quotas, keys=state.keys
        ).dashboard,
        **KeyPages(admin, state, traces).handlers,
    }
