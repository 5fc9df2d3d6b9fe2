"""Sessions of the inspector: a sealed token in a cookie, which all workers and machines of a fleet can open.

No session is stored: a token says by which secret it was given, and holds for as long as that secret does. It
is sealed with `server.secret`, so that nobody can make one, or learn from it what stands in it.
"""

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

from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.request.ended_sessions import EndedSessions
from wireglot.gateway.settings import Settings
from wireglot.stores.seal import Sealer, Unreadable

SESSION_SECONDS: Final = 8 * 3600
_COOKIE: Final = "wireglot-inspector"
_SEALED_FOR: Final = "\0inspector"
"""No caller is called so: the sealing key is no caller's."""
_KIND: Final = "session"
_TOKEN_LETTERS_MOST: Final = 1024
_COOKIES_TRIED_MOST: Final = 4
_PORT: Final = re.compile(r":([0-9]{1,5})$")
_OPEN: Final = "open"
_PASSING: Final = secrets.token_bytes(32)
"""Where settings were made without a secret, as no configuration makes them."""


class InspectorSession(msgspec.Struct, frozen=True, array_like=True):
    """`mark` is what must still be there for it to hold: a print of the admin secret, or a key's digest."""

    by: Literal["admin", "key"]
    mark: str
    ends: int
    nonce: str


class InspectorSessions:
    def __init__(self, wall: Callable[[], float] = time.time, *, ended: EndedSessions | None = None) -> None:
        self._wall = wall
        self._sealers: dict[bytes, Sealer] = {}
        self._ended = ended if ended is not None else EndedSessions(wall)

    def begin(self, who: Caller, settings: Settings) -> tuple[InspectorSession, str]:
        """A new one, and its token."""
        ends = int(self._wall()) + SESSION_SECONDS
        by: Literal["admin", "key"] = "admin" if who.key is None else "key"
        mark = _admin_mark(settings) if who.key is None else who.key.digest
        session = InspectorSession(by, mark, ends, secrets.token_hex(16))
        sealed = self._sealer(settings).seal(_SEALED_FOR, _KIND, "", msgspec.json.encode(session))
        return session, base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def read(self, cookies: str, host: str, settings: Settings) -> InspectorSession | None:
        """The session among the cookies of a request, as far as the token itself can tell."""
        name = cookie_name(host)
        tried = [value for each, value in _pairs(cookies) if each == name][:_COOKIES_TRIED_MOST]
        for token in tried:
            session = self._opened(token, settings)
            if session is not None and self.holds(session, settings):
                return session
        return None

    def holds(self, session: InspectorSession, settings: Settings) -> bool:
        """Whether its time is not over. Whether its key still opens anything is for others to say."""
        if session.ends <= self._wall() or session.nonce in self._ended:
            return False
        return session.by != "admin" or _is_same(session.mark, _admin_mark(settings))

    def end(self, session: InspectorSession) -> None:
        """Here; others are told by whoever has it ended."""
        self._ended.add(session.nonce, session.ends)

    def csrf(self, session: InspectorSession | None, settings: Settings) -> str:
        """What a page of ours sends with every change, and no other page can know. Without a session it is
        that of whoever may look without one."""
        bound = session.nonce if session is not None else _OPEN
        return _print(settings, f"csrf {bound}")

    def _opened(self, token: str, settings: Settings) -> InspectorSession | None:
        if len(token) > _TOKEN_LETTERS_MOST or not token.isascii():
            return None
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


def cookie_name(host: str) -> str:
    """Cookies know no ports: two gateways of one machine would take one another's."""
    port = _PORT.search(host)
    return f"{_COOKIE}-{port[1]}" if port is not None else _COOKIE


def set_cookie(host: str, token: str, *, secure: bool, seconds: int = SESSION_SECONDS) -> tuple[str, str]:
    """No script reads it, no other site sends it, and it goes to the inspector alone."""
    flags = "; Path=/inspector; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")
    return "set-cookie", f"{cookie_name(host)}={token}; Max-Age={seconds}{flags}"


def _pairs(cookies: str) -> list[tuple[str, str]]:
    found = []
    # Repeated headers were joined with a comma, which no value of ours holds.
    for piece in re.split("[;,]", cookies):
        name, equals, value = piece.strip().partition("=")
        if equals:
            found.append((name, value.strip('"')))
    return found


def _admin_mark(settings: Settings) -> str:
    secret = settings.server.admin_secret.value
    return _print(settings, f"admin {secret}") if secret else ""


def _print(settings: Settings, text: str) -> str:
    """Nobody who lacks `server.secret` can make one, or try out what it is of."""
    key = hashlib.sha256(b"wireglot inspector v1 " + _secret(settings)).digest()
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _secret(settings: Settings) -> bytes:
    return settings.server.secret.value.encode() or _PASSING


def _is_same(one: str, other: str) -> bool:
    return bool(one) and hmac.compare_digest(one, other)
