"""Credentials obtained by a login: once for all requests, and ready when one needs them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from wireglot.gateway.settings import Credential, Secret, Settings
from wireglot.http.application import Headers
from wireglot.logins.aws import SigningKey, signature_headers
from wireglot.logins.login import AwsLogin, Grant, Login, LoginFailed
from wireglot.logins.renewal import Renewal, obtain
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed

SIGN_IN_FAILED: Final = "sign_in_failed"
_MAX_LOGINS: Final = 1000
"""Accounts of providers whose sign-in is kept in memory: a reload may add others each time."""

Note = Callable[[str, LoginFailed | None], None]
"""Called with the account of a login, and None or the failure."""

Hide = Callable[[str, str], None]
"""Called with the account and a secret of it that no sink may show, in a thread."""


class SignIns:
    """The sign-ins of a process. Nothing is obtained before the first request or `begin`."""

    def __init__(
        self,
        note: Note | None = None,
        hide: Hide | None = None,
        obtain: Callable[[Login], Grant] = obtain,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._note = note
        self._hide = hide
        self._obtain = obtain
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    def begin(self, settings: Settings) -> None:
        """Sign in early, so that the first request need not wait and problems are reported at once."""
        for credential in _with_login(settings):
            self._entry(credential).renewal.grant()

    async def ready(self, credential: Credential) -> Credential:
        """The credential as it is sent now. Raises AttemptFailed."""
        entry = self._entry(credential)
        grant = entry.renewal.grant()
        if grant is None:
            try:
                grant = await entry.renewal.renewed()
            except LoginFailed as failed:
                raise _failure(failed) from None
        if grant is not entry.grant or entry.ready is None:
            entry.grant, entry.ready = grant, _ready(credential, grant)
        return entry.ready

    def renews(self, refused: Credential | None) -> bool:
        """Whether a newer credential exists or can be obtained, so that a retry may help."""
        entry = self._entries.get(refused.account) if refused is not None else None
        return entry is not None and refused is not None and entry.renewal.refused(refused.secret.value)

    def _entry(self, credential: Credential) -> _Entry:
        entry = self._entries.get(credential.account)
        if entry is None:
            assert credential.login is not None, "only a login is signed in with"
            if len(self._entries) >= _MAX_LOGINS:
                self._entries.clear()
            reported = partial(self._tell, credential.account)
            work = partial(self._obtained, credential.account, credential.login)
            renewal = Renewal(work, reported, self._clock)
            entry = self._entries[credential.account] = _Entry(renewal)
        return entry

    def _obtained(self, account: str, login: Login) -> Grant:
        """Runs in a thread. A credential is handed out only once every sink knows to hide it."""
        grant = self._obtain(login)
        if self._hide is not None:
            self._hide(account, grant.session_token or grant.secret)
        return grant

    def _tell(self, account: str, outcome: Grant | LoginFailed) -> None:
        if isinstance(outcome, Grant) and math.isinf(outcome.seconds):
            return  # the key was found, but has not been checked
        if self._note is not None:
            self._note(account, outcome if isinstance(outcome, LoginFailed) else None)


class _Entry:
    def __init__(self, renewal: Renewal) -> None:
        self.renewal = renewal
        self.grant: Grant | None = None
        self.ready: Credential | None = None
        """Made from `grant`, once."""


def signed(key: SigningKey, method: str, url: str, body: bytes = b"") -> Headers:
    """The headers that sign a request sent now."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return signature_headers(key, method, url, body, now, "application/json" if body else "")


def _with_login(settings: Settings) -> Iterable[Credential]:
    return (
        credential
        for provider in settings.providers.values()
        for credential in provider.credentials
        if credential.login is not None
    )


def _ready(credential: Credential, grant: Grant) -> Credential:
    secret = Secret(grant.secret, credential.secret.source)
    login = credential.login
    if isinstance(login, AwsLogin):
        key = SigningKey(
            grant.access_key, grant.secret, grant.session_token, region=login.region, service=login.service
        )
        return Credential(secret, credential.account, signing=key)
    return Credential(secret, credential.account, token=True, headers=grant.headers)


def _failure(failed: LoginFailed) -> AttemptFailed:
    reported = AttemptFailed(ApiError("auth", failed.message, code=SIGN_IN_FAILED), "credential")
    reported.fix = failed.fix
    return reported
