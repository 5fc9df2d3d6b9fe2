"""The state that the verification page keeps between two requests of a browser, sealed in that browser's
cookie."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final

import msgspec

from wireglot.gateway.inspector.access import cookie_pairs
from wireglot.gateway.login.device_codes import LOGIN_OWNER
from wireglot.gateway.login.oidc import ProviderAttempt
from wireglot.stores.seal import Sealer, Unreadable

SECONDS: Final = 600
_COOKIE: Final = "wireglot-login"
_KIND: Final = "browser"
# Characters of a session's cookie.
_MAX_LETTERS: Final = 4096
# Cookies of one name that are checked: each check computes a signature.
_MAX_TRIED: Final = 4
ADMIN: Final = "admin"


class BrowserSession(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    """Its forms are bound to this id."""
    ends: int
    """Unix seconds."""
    user_code: str = ""
    """The code that was typed and found; "": none yet."""
    parent: str = ""
    """Who signed in: the digest of a key, or ADMIN; "": no one yet."""
    grant: str = ""
    """From a sign-in at the identity provider: see `SignIn`."""
    attempt: ProviderAttempt | None = None
    """A sign-in at the identity provider that is not finished."""


class BrowserSessions:
    def __init__(self, sealer: Sealer, wall: Callable[[], float] = time.time) -> None:
        self._sealer = sealer
        self._wall = wall

    def begin(self) -> BrowserSession:
        return BrowserSession(secrets.token_urlsafe(24), int(self._wall()) + SECONDS)

    def read(self, cookies: str, base: str) -> BrowserSession | None:
        """`base`: the gateway's own address, from which its cookie's name is made."""
        name = _name(base)
        for token in [value for each, value in cookie_pairs(cookies) if each == name][:_MAX_TRIED]:
            session = self._opened(token)
            if session is not None and session.ends > self._wall():
                return session
        return None

    def cookie(self, session: BrowserSession, base: str) -> tuple[str, str]:
        """Scripts cannot read it. Lax: the return from the identity provider begins at another site."""
        sealed = self._sealer.seal(LOGIN_OWNER, _KIND, "", msgspec.json.encode(session))
        token = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
        secure = "; Secure" if base.startswith("https:") else ""
        seconds = max(0, session.ends - int(self._wall()))
        return (
            "set-cookie",
            f"{_name(base)}={token}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax{secure}",
        )

    def gone(self, base: str) -> tuple[str, str]:
        secure = "; Secure" if base.startswith("https:") else ""
        return "set-cookie", f"{_name(base)}=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax{secure}"

    def token(self, session: BrowserSession) -> str:
        """The token of our forms: derived from what only this browser's cookie contains, sealed."""
        return hashlib.sha256(f"form {session.id}".encode()).hexdigest()

    def is_ours(self, session: BrowserSession, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token(session).encode())

    def _opened(self, token: str) -> BrowserSession | None:
        if len(token) > _MAX_LETTERS or not token.isascii():
            return None
        try:
            sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            value = self._sealer.open(LOGIN_OWNER, _KIND, "", sealed)
            return msgspec.json.decode(value, type=BrowserSession)
        except (ValueError, Unreadable, msgspec.MsgspecError):
            return None


def _name(base: str) -> str:
    """`__Host-`: no other host of the domain can set it. Cookies do not depend on the port: two gateways on
    one machine would overwrite each other's."""
    if base.startswith("https:"):
        return f"__Host-{_COOKIE}"
    return f"{_COOKIE}-{base.rpartition(':')[2]}"
