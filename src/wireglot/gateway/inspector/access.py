"""Access to the inspector: any local user while no key is required, otherwise anyone with a secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from wireglot.gateway.entry.callers import ADMIN, LOCAL, Caller, Gatekeeper
from wireglot.gateway.entry.guard import check_body_form, host_name, is_forwarded, is_loopback
from wireglot.gateway.entry.routes import INSPECTOR_API
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.collected_reply import PassedReply
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import ClientKey, Settings
from wireglot.gateway.trace.peers import ENDED_UP_TO, SESSION_SECONDS, PeerCommand
from wireglot.http.application import Head, Headers, Reply
from wireglot.stores.seal import Sealer, Unreadable

TICKET_SECONDS: Final = 300
_ENDS_BYTES: Final = 5
_NONCE_BYTES: Final = 8
_MARK_BYTES: Final = 16
_TICKET: Final = "ticket "
"""Prefix of the names of tickets among ended sessions."""
_COOKIE: Final = "wireglot-inspector"
_SEALED_FOR: Final = "\0inspector"
"""No caller can have this name: the sealing key belongs to no caller."""
_KIND: Final = "session"
# Cookies of one name that are checked: each check computes a hash.
_MAX_COOKIES_TRIED: Final = 4
# Ended sessions of the page that are known, so that none is accepted again.
_MAX_ENDED: Final = 10_000
_PORT: Final = re.compile(r":([0-9]{1,5})$")
_OPEN: Final = "open"
_PASSING: Final = secrets.token_bytes(32)
"""Used if settings were made without a secret, which no configuration does."""


class InspectorSession(msgspec.Struct, frozen=True, array_like=True):
    """`mark` must still exist for the session to be valid: a fingerprint of the admin secret, or a key's
    digest."""

    by: Literal["admin", "key"]
    mark: str
    ends: int
    nonce: str


def sign_in_ticket(operator_key: str, wall: float) -> str:
    """A ticket for one sign-in at the gateway with this operator key. It can be used once, so a browser can
    be opened with a link that contains it."""
    ends = int(wall + TICKET_SECONDS).to_bytes(_ENDS_BYTES, "big")
    text = ends + secrets.token_bytes(_NONCE_BYTES)
    return base64.urlsafe_b64encode(text + _ticket_mark(operator_key, text)).decode().rstrip("=")


def _ticket_mark(operator_key: str, text: bytes) -> bytes:
    whole = hmac.new(operator_key.encode(), b"wireglot inspector ticket v1 " + text, hashlib.sha256).digest()
    return whole[:_MARK_BYTES]


class InspectorSessions:
    """Implements `Commanded`: keeps the sessions that were ended early, here or in another process."""

    def __init__(self, wall: Callable[[], float] = time.time, operator_key: Callable[[], str] = str) -> None:
        """`operator_key`: returns that of this gateway's own user, which signs tickets; "": there is none."""
        self._wall = wall
        self._operator_key = operator_key
        self._sealers: dict[bytes, Sealer] = {}
        self._ended: dict[str, dict[str, float]] = {}
        """By owner: nonces of ended sessions, with when each would have expired."""
        self._ended_up_to: dict[str, float] = {}
        """By owner; "": everyone. Sessions that expire by this time are signed out."""
        self._used: dict[str, float] = {}
        """Used tickets, likewise. Only the gateway's own user makes them: no one else can have so many used
        that one is dropped while it is still valid."""

    def begin(self, who: Caller, settings: Settings) -> tuple[InspectorSession, str]:
        """A new session and its token."""
        by: Literal["admin", "key"] = "admin" if who.key is None else "key"
        mark = self._admin_mark(settings) if who.key is None else who.key.digest
        ends = max(int(self._wall()) + SESSION_SECONDS, int(self._cutoff(_whose(mark))) + 1)
        session = InspectorSession(by, mark, ends, secrets.token_hex(16))
        sealed = self._sealer(settings).seal(_SEALED_FOR, _KIND, "", msgspec.json.encode(session))
        return session, base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def read(self, cookies: str, host: str, settings: Settings) -> InspectorSession | None:
        """The session among the cookies of a request, checked by the token alone."""
        name = cookie_name(host)
        tried = [value for each, value in cookie_pairs(cookies) if each == name][:_MAX_COOKIES_TRIED]
        for token in tried:
            session = self._opened(token, settings)
            if session is not None and self.holds(session, settings):
                return session
        return None

    def holds(self, session: InspectorSession, settings: Settings) -> bool:
        """Whether it has not expired or ended. Its key must be checked elsewhere."""
        whose = _whose(session.mark)
        if session.ends <= max(self._wall(), self._cutoff(whose)):
            return False
        if session.nonce in self._ended.get(whose, ()) or session.nonce in self._ended.get("", ()):
            return False
        return session.by != "admin" or _is_same(session.mark, self._admin_mark(settings))

    def redeem(self, ticket: str) -> PeerCommand | None:
        """The command that reports a used ticket to other processes; None if it is not valid."""
        key = self._operator_key()
        try:
            raw = base64.b64decode(ticket + "=" * (-len(ticket) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return None
        text, mark = raw[:-_MARK_BYTES], raw[-_MARK_BYTES:]
        if not key or not hmac.compare_digest(mark, _ticket_mark(key, text)):
            return None
        nonce, ends, now = _TICKET + raw.hex(), int.from_bytes(text[:_ENDS_BYTES], "big"), self._wall()
        if ends <= now or nonce in self._used:
            return None
        used = PeerCommand(now, ended=nonce, ends=ends)
        self.obey(used, is_new=True)
        return used

    def end(self, session: InspectorSession) -> PeerCommand:
        """The command that reports a sign-out to all processes."""
        whose = _whose(session.mark)
        return PeerCommand(self._wall(), ended=session.nonce, ends=session.ends, whose=whose)

    def obey(self, command: PeerCommand, *, is_new: bool) -> None:
        now, whose = self._wall(), command.whose
        if command.ended.startswith(_TICKET):
            self._used = {nonce: ends for nonce, ends in self._used.items() if ends > now}
            self._used[command.ended] = command.ends
        elif not command.ended or command.ends <= max(now, self._cutoff(whose)):
            return
        elif command.ended == ENDED_UP_TO:
            self._end_up_to(whose, command.ends)
            self._make_room()
        else:
            self._ended.setdefault(whose, {})[command.ended] = command.ends
            self._make_room()

    def standing(self) -> list[PeerCommand]:
        now = self._wall()
        known = [("", nonce, ends) for nonce, ends in self._used.items()]
        known += [(whose, ENDED_UP_TO, ends) for whose, ends in self._ended_up_to.items()]
        known += [(whose, nonce, ends) for whose, of in self._ended.items() for nonce, ends in of.items()]
        return [
            PeerCommand(now, ended=ended, ends=ends, whose=whose)
            for whose, ended, ends in known
            if ends > now
        ]

    def _cutoff(self, whose: str) -> float:
        return max(self._ended_up_to.get(whose, 0.0), self._ended_up_to.get("", 0.0))

    def _end_up_to(self, whose: str, ends: float) -> None:
        """Sign out all sessions of one caller ("": of everyone) that expire by this time."""
        self._ended_up_to[whose] = ends
        if not whose:
            self._ended_up_to = {name: at for name, at in self._ended_up_to.items() if not name or at > ends}
        for name in [whose] if whose else list(self._ended):
            left = {nonce: at for nonce, at in self._ended.get(name, {}).items() if at > ends}
            if left:
                self._ended[name] = left
            else:
                self._ended.pop(name, None)

    def _make_room(self) -> None:
        """No signed-out session is dropped while it would still be valid: of the caller with the most, the
        older half are replaced by one time, and all sessions of that caller that expire by then are signed
        out."""
        if self._count() <= _MAX_ENDED:
            return
        self._end_up_to("", max(self._wall(), self._cutoff("")))  # these have expired
        while self._count() > _MAX_ENDED:
            whose = max(self._ended, key=lambda name: len(self._ended[name]), default="")
            ends = sorted(self._ended.get(whose, {}).values())
            if len(ends) > 1:
                self._end_up_to(whose, ends[len(ends) // 2])
            else:  # more callers than can be kept apart
                self._end_up_to("", max([*ends, *self._ended_up_to.values()]))

    def _count(self) -> int:
        return len(self._ended_up_to) + sum(map(len, self._ended.values()))

    def csrf(self, session: InspectorSession | None, settings: Settings) -> str:
        """The token that our page sends with every change, and that no other page can know. Without a session
        it is the one of anonymous viewers."""
        bound = session.nonce if session is not None else _OPEN
        return _print(settings, f"csrf {bound}")

    def _admin_mark(self, settings: Settings) -> str:
        """Without an admin secret the operator's key is used, which ends with the process."""
        secret = settings.server.admin_secret.value or self._operator_key()
        return _print(settings, f"admin {secret}") if secret else ""

    def _opened(self, token: str, settings: Settings) -> InspectorSession | None:
        try:
            sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            value = self._sealer(settings).open(_SEALED_FOR, _KIND, "", sealed)
            return msgspec.json.decode(value, type=InspectorSession)
        except (ValueError, Unreadable, msgspec.MsgspecError):
            return None

    def _sealer(self, settings: Settings) -> Sealer:
        secret = _secret(settings)
        found = self._sealers.get(secret)
        if found is None:
            self._sealers.clear()
            found = self._sealers[secret] = Sealer(secret)
        return found


def _whose(mark: str) -> str:
    """The owner's name for other processes and machines, which need not know a key's digest."""
    return hashlib.sha256(b"wireglot inspector whose v1 " + mark.encode()).hexdigest()[:16]


def cookie_name(host: str) -> str:
    """Cookies do not depend on the port: two gateways on one machine would overwrite each other's."""
    port = _PORT.search(host)
    return f"{_COOKIE}-{port[1]}" if port is not None else _COOKIE


def set_cookie(host: str, token: str, *, secure: bool, seconds: int = SESSION_SECONDS) -> tuple[str, str]:
    """Scripts cannot read it, other sites cannot send it, and only the inspector gets it."""
    flags = "; Path=/inspector; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")
    return "set-cookie", f"{cookie_name(host)}={token}; Max-Age={seconds}{flags}"


def cookie_pairs(cookies: str) -> list[tuple[str, str]]:
    found = []
    # Repeated headers were joined with a comma, which our values do not contain.
    for piece in re.split("[;,]", cookies):
        name, equals, value = piece.strip().partition("=")
        if equals:
            found.append((name, value.strip('"')))
    return found


def _print(settings: Settings, text: str) -> str:
    """A keyed hash: without `server.secret` no one can make one, or guess its content."""
    key = hashlib.sha256(b"wireglot inspector v1 " + _secret(settings)).digest()
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _secret(settings: Settings) -> bytes:
    return settings.server.secret.value.encode() or _PASSING


def _is_same(one: str, other: str) -> bool:
    return bool(one) and hmac.compare_digest(one, other)


CSRF: Final = "x-wireglot-csrf"
_READING: Final = frozenset({"GET", "HEAD"})


class SeenVisitor(msgspec.Struct, frozen=True):
    """A visitor, and how it was identified."""

    viewer: Viewer | None
    caller: Caller = LOCAL
    session: InspectorSession | None = None
    by_header: bool = False
    """By a secret in a header, which no browser sends by itself."""


class Access:
    def __init__(
        self, gatekeeper: Gatekeeper, sessions: InspectorSessions, settings: Callable[[], Settings]
    ) -> None:
        """`settings`: returns the current ones, for long sessions."""
        self._gatekeeper = gatekeeper
        self._sessions = sessions
        self._settings = settings

    def seen(self, head: Head, settings: Settings) -> SeenVisitor:
        """The visitor. Raises RequestError if it sends a wrong secret."""
        secrets = self._gatekeeper.secrets_in(head)
        if secrets and (self.takes_secrets(settings) or self._gatekeeper.is_operator(secrets)):
            who = self._gatekeeper.known(head.peer, secrets, settings)
            return SeenVisitor(self._viewer(who), who, by_header=True)
        session = self._sessions.read(head.headers.get("cookie", ""), _host(head), settings)
        if session is not None:
            seen = self.of(session, settings)
            if seen.viewer is not None:
                return seen
        if self._is_open(head, settings):
            return SeenVisitor(Viewer("open", holds=lambda: self._is_open(head, self._settings())))
        return SeenVisitor(None)

    def of(self, session: InspectorSession, settings: Settings) -> SeenVisitor:
        """The owner of a session, if its key is still valid."""

        def holds() -> bool:
            now = self._settings()
            return self._sessions.holds(session, now) and (key is None or self._still(session.mark, key))

        key = self._gatekeeper.key_of(session.mark, settings) if session.by == "key" else None
        if session.by == "admin":
            return SeenVisitor(Viewer("admin", until=session.ends, holds=holds), ADMIN, session)
        if key is None:
            return SeenVisitor(None)
        viewer = Viewer("key", key.name, key.created, session.ends, holds)
        return SeenVisitor(viewer, Caller(key.name, key), session)

    def check(self, head: Head, seen: SeenVisitor, settings: Settings) -> Viewer:
        """The viewer, if this request is allowed: from our page, or from no page."""
        if seen.viewer is None:
            raise RequestError("auth", self.why_closed(settings))
        self.check_token(head, seen, settings)
        return seen.viewer

    def check_token(self, head: Head, seen: SeenVisitor, settings: Settings) -> None:
        if head.method in _READING or seen.by_header:
            return
        given = head.headers.get(CSRF, "")
        expected = self._sessions.csrf(seen.session, settings)
        if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
            raise RequestError(
                "permission", f"{CSRF}: expected the token of GET /inspector/api/session",
                code="csrf_token_wrong",
            )  # fmt: skip

    def why_closed(self, settings: Settings) -> str:
        if self.takes_secrets(settings):
            return "sign in with the admin secret or a client key"
        return (
            "the inspector only accepts direct connections from this machine: "
            "set server.admin_secret to sign in from elsewhere"
        )

    def takes_secrets(self, settings: Settings) -> bool:
        """Whether there is any way to sign in."""
        return bool(settings.server.admin_secret.value) or self._gatekeeper.asks_for_keys(settings)

    def _is_open(self, head: Head, settings: Settings) -> bool:
        server = settings.server
        if server.inspector != "auto" or self._gatekeeper.asks_for_keys(settings):
            return False
        name = host_name(head.headers.get("host", ""))
        if not (is_loopback(server.host) and is_loopback(head.peer) and name and is_loopback(name)):
            return False
        return not is_forwarded(head)

    def _viewer(self, who: Caller) -> Viewer:
        key = who.key
        if key is None:
            return Viewer("admin")
        return Viewer("key", key.name, key.created, holds=lambda: self._still(key.digest, key))

    def _still(self, digest: str, key: ClientKey) -> bool:
        """Whether a digest is still valid for the same key. False if that cannot be checked."""
        try:
            found = self._gatekeeper.key_of(digest, self._settings())
        except RequestError:
            return False
        return found is not None and (found.name, found.created) == (key.name, key.created)


def check_site(head: Head) -> None:
    """Refuses requests of other sites, whatever `server.origins` allows for the API. Any site may link to a
    view: the page itself contains no data."""
    reading = head.method in _READING
    origin = head.headers.get("origin")
    if origin is not None:
        host = _host(head)
        if origin not in (f"http://{host}", f"https://{host}"):
            raise _other_site()
    site = head.headers.get("sec-fetch-site", "same-origin")
    if site == "same-origin" or (site == "none" and reading):
        return
    is_view = not head.path.startswith((INSPECTOR_API, "/inspector/assets/"))
    is_link = head.headers.get("sec-fetch-mode") == "navigate"
    in_a_frame = head.headers.get("sec-fetch-dest", "document") != "document"
    if is_view and reading and is_link and not in_a_frame:
        return
    raise _other_site()


def _host(head: Head) -> str:
    return head.headers.get("host", "")


def check_form(head: Head) -> None:
    if head.method not in _READING and head.headers.get("content-length", "0") != "0":
        check_body_form(head)


def is_behind_tls(head: Head) -> bool:
    """By the page's own origin, which it sends with every change, or by a proxy's header."""
    if head.headers.get("origin", "").startswith("https://"):
        return True
    return head.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower() == "https"


def _other_site() -> RequestError:
    return RequestError(
        "permission", "cross-site requests to the inspector are refused", code="origin_not_allowed"
    )


TRUSTED_TYPES: Final = "wireglot"
"""The only policy of the page: for the address of its worker."""

PAGE_CSP: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "font-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        f"trusted-types {TRUSTED_TYPES}",
    )
)
DATA_CSP: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""For responses that are not pages, in case they are opened as one."""

SECURITY_HEADERS: Final[Headers] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("origin-agent-cluster", "?1"),
    (
        "permissions-policy",
        "accelerometer=(), camera=(), clipboard-read=(), display-capture=(), geolocation=(), gyroscope=(), "
        "hid=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), "
        "screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()",
    ),
]
_UNCACHED: Final = ("cache-control", "no-store")


def secured(path: str, headers: Headers) -> Headers:
    """The headers with those that every response at this path has; `headers` may only set how long it may be
    cached."""
    fixed = [
        *SECURITY_HEADERS,
        ("content-security-policy", DATA_CSP if path.startswith(INSPECTOR_API) else PAGE_CSP),
    ]
    names = {name for name, _ in fixed}
    given = [each for each in headers if each[0] not in names]
    if not any(name == "cache-control" for name, _ in given):
        given.append(_UNCACHED)
    return given + fixed


class SecuredReply(PassedReply):
    """The same reply with these headers."""

    def __init__(self, path: str, behind: Reply) -> None:
        super().__init__(behind)
        self._path = path

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self.behind.send(status, secured(self._path, headers), body)

    def start(self, status: int, headers: Headers) -> None:
        self.behind.start(status, secured(self._path, headers))
