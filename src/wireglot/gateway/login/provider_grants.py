"""Refresh tokens of the identity provider: with each renewal they are used to check whether the person still
has an account there.

They are kept only if the scopes include `offline_access`. Other refresh tokens end with the person's session
in a browser, often within the hour, and would sign people out.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from wireglot.gateway.login.device_codes import LOGIN_OWNER
from wireglot.gateway.login.oidc import IdentityProvider, ProviderDown
from wireglot.gateway.login.tokens import Person, SignInRefused
from wireglot.gateway.settings import LoginSettings
from wireglot.gateway.state.stored_forms import now_ms
from wireglot.stores.base import Counters
from wireglot.stores.records import Document
from wireglot.stores.seal import SealedDocuments

OFFLINE: Final = "offline_access"
_KIND: Final = "login-grant"
_LOCK_SECONDS: Final = 30.0
_DAY_MS: Final = 86_400_000
_CODE_MS: Final = 600_000
"""From signing in to the first token."""


class ProviderGrants:
    def __init__(self, documents: SealedDocuments, counters: Counters, provider: IdentityProvider) -> None:
        self._documents = documents
        self._counters = counters
        self._provider = provider
        self._checking: set[asyncio.Task[Person | None]] = set()

    async def keep(self, refresh_token: str, login: LoginSettings) -> str:
        """The id under which it is kept for as long as a sign-in; "" if it is not kept."""
        if not refresh_token or OFFLINE not in login.scopes:
            return ""
        id = secrets.token_urlsafe(24)
        await self._documents.put([_document(id, refresh_token, login)])
        return id

    async def check(self, id: str, login: LoginSettings) -> Person | None:
        """The person's current data; None if the provider does not report them. Raises SignInRefused if it no
        longer has the person, ProviderDown if it cannot be reached."""
        # The provider's next refresh token is stored even if the client leaves before.
        checking = asyncio.create_task(self._check(id, login))
        self._checking.add(checking)
        checking.add_done_callback(self._checked)
        return await asyncio.shield(checking)

    def _checked(self, checking: asyncio.Task[Person | None]) -> None:
        self._checking.discard(checking)
        if not checking.cancelled():
            checking.exception()  # the caller may be gone

    async def _check(self, id: str, login: LoginSettings) -> Person | None:
        holder = secrets.token_hex(8)
        # A provider treats the second use of a refresh token as theft, and revokes all of the person's
        # tokens.
        if not await self._counters.lock(f"login grant {id}", holder, _LOCK_SECONDS):
            raise ProviderDown("another request renews the same sign-in")
        try:
            found = await self._documents.get(LOGIN_OWNER, _KIND, [id])
            if not found:
                raise SignInRefused("the sign-in is over")
            person, refresh_token = await self._provider.renewed(login, found[0].body.decode())
            if refresh_token:
                await self._documents.replace(_document(id, refresh_token, login, found[0]))
            return person
        finally:
            await self._counters.unlock(f"login grant {id}", holder)


def _document(id: str, refresh_token: str, login: LoginSettings, before: Document | None = None) -> Document:
    now = now_ms()
    expires = now + int(login.refresh_days * _DAY_MS) + _CODE_MS
    return Document(
        LOGIN_OWNER,
        _KIND,
        id,
        refresh_token.encode(),
        created=before.created if before is not None else now,
        expires=before.expires if before is not None else expires,
    )
