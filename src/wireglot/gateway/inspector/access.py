"""Who may look: whoever is on this machine while nobody needs a key, otherwise whoever brings a secret."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final

import msgspec

from wireglot.gateway.entry.callers import ADMIN, LOCAL, Caller, Gatekeeper
from wireglot.gateway.entry.guard import check_body_form, host_name, is_loopback
from wireglot.gateway.entry.inspector_paths import API
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.sessions import InspectorSession, InspectorSessions
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import ClientKey, Settings
from wireglot.http.application import Head

CSRF: Final = "x-wireglot-csrf"
_FORWARDED: Final = (
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port",
    "x-forwarded-server", "x-forwarded-by", "x-real-ip", "x-client-ip", "x-original-forwarded-for",
    "x-original-host", "x-envoy-external-address", "true-client-ip", "cf-connecting-ip", "fly-client-ip",
)  # fmt: skip
"""A proxy is between: whoever asks is somewhere else, however local the connection looks."""
_READING: Final = frozenset({"GET", "HEAD"})


class SeenVisitor(msgspec.Struct, frozen=True):
    """Who asks, and how that is known."""

    viewer: Viewer | None
    caller: Caller = LOCAL
    session: InspectorSession | None = None
    by_header: bool = False
    """By a secret in a header, which no browser sends by itself."""


class Access:
    def __init__(
        self, gatekeeper: Gatekeeper, sessions: InspectorSessions, settings: Callable[[], Settings]
    ) -> None:
        """`settings`: those that hold now, for whoever has been looking for a while."""
        self._gatekeeper = gatekeeper
        self._sessions = sessions
        self._settings = settings

    def seen(self, head: Head, settings: Settings) -> SeenVisitor:
        """Raises RequestError where a secret is brought, and is wrong."""
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
        """Whose session it is, where its key still opens anything."""

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
        """The viewer, where this question may be asked at all: from a page of ours, or by no page."""
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
                "permission", f"{CSRF}: expected the token that GET /inspector/api/session tells",
                code="csrf_token_wrong",
            )  # fmt: skip

    def why_closed(self, settings: Settings) -> str:
        if self.takes_secrets(settings):
            return "sign in with the admin secret or a client key"
        return (
            "the inspector is open to this machine alone, without a proxy between: "
            "set server.admin_secret to sign in from elsewhere"
        )

    def takes_secrets(self, settings: Settings) -> bool:
        """Whether there is anything to sign in with."""
        return bool(settings.server.admin_secret.value) or self._gatekeeper.asks_for_keys(settings)

    def _is_open(self, head: Head, settings: Settings) -> bool:
        server = settings.server
        if server.inspector != "auto" or self._gatekeeper.asks_for_keys(settings):
            return False
        name = host_name(head.headers.get("host", ""))
        if not (is_loopback(server.host) and is_loopback(head.peer) and name and is_loopback(name)):
            return False
        return not any(each in head.headers for each in _FORWARDED)

    def _viewer(self, who: Caller) -> Viewer:
        key = who.key
        if key is None:
            return Viewer("admin")
        return Viewer("key", key.name, key.created, holds=lambda: self._still(key.digest, key))

    def _still(self, digest: str, key: ClientKey) -> bool:
        """Whether a digest still is that of the same key. False where nobody can tell."""
        try:
            found = self._gatekeeper.key_of(digest, self._settings())
        except RequestError:
            return False
        return found is not None and (found.name, found.created) == (key.name, key.created)


def check_site(head: Head) -> None:
    """Nothing of the inspector is another page's to ask for, whatever `server.origins` lets call the API. A
    link to a view may stand anywhere: the page itself tells nothing."""
    reading = head.method in _READING
    origin = head.headers.get("origin")
    if origin is not None:
        host = _host(head)
        if origin not in (f"http://{host}", f"https://{host}"):
            raise _other_site()
    site = head.headers.get("sec-fetch-site", "same-origin")
    if site == "same-origin" or (site == "none" and reading):
        return
    is_view = not head.path.startswith((API, "/inspector/assets/"))
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
    """By the page's own origin, which it says with every change, or as a proxy says."""
    if head.headers.get("origin", "").startswith("https://"):
        return True
    return head.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower() == "https"


def _other_site() -> RequestError:
    return RequestError(
        "permission", "another site may not ask the inspector anything", code="origin_not_allowed"
    )
