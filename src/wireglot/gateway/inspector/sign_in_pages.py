"""Signing in to the inspector, and out."""

from __future__ import annotations

from typing import Any, Final, Protocol

from wireglot import __version__
from wireglot.gateway.entry.callers import Gatekeeper
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.access import Access, SeenVisitor, is_behind_tls
from wireglot.gateway.inspector.sessions import InspectorSession, InspectorSessions, set_cookie
from wireglot.gateway.observe.log import Note
from wireglot.gateway.request.ended_sessions import EndedSessions
from wireglot.gateway.request.page_request import PageRequest

_SECRET_LETTERS_MOST: Final = 4096


class Endings(Protocol):
    """All processes that know a session."""

    ended: EndedSessions

    async def end_session(self, nonce: str, ends: float) -> str:
        """Why only this machine heard of it, "" where all did."""
        ...


class SignInPages:
    def __init__(
        self,
        access: Access,
        sessions: InspectorSessions,
        gatekeeper: Gatekeeper,
        note: Note,
        endings: Endings,
    ) -> None:
        self._endings = endings
        self._access = access
        self._sessions = sessions
        self._gatekeeper = gatekeeper
        self._note = note

    async def get(self, page: PageRequest, seen: SeenVisitor) -> None:
        page.send(self._told(page, seen))

    async def begin(self, page: PageRequest, seen: SeenVisitor) -> None:
        """Whoever has no session yet has no token to send: the secret itself is what no other page knows."""
        secret = page.document().get("secret")
        if type(secret) is not str or not secret.strip() or len(secret) > _SECRET_LETTERS_MOST:
            raise RequestError(
                "bad",
                "secret: expected the admin secret or a client key",
                code="invalid_value",
                param="secret",
            )
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
        page.send(self._told(page, now), more=[cookie])

    async def end(self, page: PageRequest, seen: SeenVisitor) -> None:
        if seen.viewer is not None:
            self._access.check_token(page.head, seen, page.settings)
        unreached = await self._ended(seen.session) if seen.session is not None else ""
        host = page.head.headers.get("host", "")
        gone = set_cookie(host, "", secure=is_behind_tls(page.head), seconds=0)
        told = {"access": "none"}
        if unreached:
            told["unreached"] = (
                f"signed out on this machine; the others are told once the store is back: {unreached}"
            )
        page.send(told, more=[gone])

    async def _ended(self, session: InspectorSession) -> str:
        self._sessions.end(session)
        return await self._endings.end_session(session.nonce, session.ends)

    def _told(self, page: PageRequest, seen: SeenVisitor) -> dict[str, Any]:
        viewer = seen.viewer
        told: dict[str, Any] = {
            "access": viewer.access if viewer is not None else "none",
            "key": viewer.key if viewer is not None else "",
            "csrf": self._sessions.csrf(seen.session, page.settings) if viewer is not None else "",
            "until": viewer.until or None if viewer is not None else None,
            "version": __version__,
            "workers": page.settings.server.workers,
            "admin": bool(page.settings.server.admin_secret.value),
            "sign_in": self._access.takes_secrets(page.settings),
        }
        if viewer is None:
            told["why"] = self._access.why_closed(page.settings)
        return told
