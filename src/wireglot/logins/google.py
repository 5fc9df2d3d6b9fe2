"""Google: service accounts and application default credentials, through `google-auth`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from wireglot.logins.login import GoogleLogin, Grant, LoginFailed, missing_extra
from wireglot.logins.web import TIMEOUT_SECONDS, Unreachable, WebAnswer, ask

_NO_CREDENTIALS: Final = (
    "run `gcloud auth application-default login`, set GOOGLE_APPLICATION_CREDENTIALS, or name the file of a "
    'service account: login = { kind = "google", key_file = "PATH" }'
)
_UNKNOWN_SECONDS: Final = 300.0
"""Assumed lifetime of a token without a stated one."""


def obtain_google(login: GoogleLogin) -> Grant:
    """Blocks. Raises LoginFailed."""
    try:
        auth, exceptions = import_module("google.auth"), import_module("google.auth.exceptions")
        accounts = import_module("google.oauth2.service_account")
    except ImportError:
        raise LoginFailed("google-auth is not installed", missing_extra("google")) from None
    try:
        request = _asking(login.proxy, exceptions.TransportError)
        # Read each time: the file may have been replaced.
        if login.key_file:
            credentials = accounts.Credentials.from_service_account_file(login.key_file, scopes=[login.scope])
        else:
            credentials, _ = auth.default(scopes=[login.scope], request=request)
        credentials.refresh(request)
    except exceptions.TransportError as fault:
        raise LoginFailed(_said(fault), "check the network of this machine, and `proxy`") from None
    except exceptions.RefreshError as fault:
        raise LoginFailed(_said(fault), _fix(fault)) from None
    except exceptions.GoogleAuthError as fault:
        raise LoginFailed(_said(fault), _NO_CREDENTIALS) from None
    except (OSError, ValueError) as fault:  # a file that does not exist, or has other content
        place = Path(login.key_file).name or "the file of GOOGLE_APPLICATION_CREDENTIALS"
        raise LoginFailed(f"{place} cannot be used ({type(fault).__name__})", _NO_CREDENTIALS) from None
    project = getattr(credentials, "quota_project_id", None)
    headers = (("x-goog-user-project", str(project)),) if project else ()
    return Grant(str(credentials.token), _seconds(credentials.expiry), headers)


def _asking(proxy: str, unreachable: type[Exception]) -> Any:
    """A `google.auth.transport.Request` without the packages that theirs need."""

    def asking(
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: Any,
    ) -> WebAnswer:
        # Metadata servers are on this machine: they are reached without a proxy.
        near = url.startswith("http://")
        try:
            return ask(
                url,
                method=method,
                body=body,
                headers=headers,
                timeout=min(timeout or TIMEOUT_SECONDS, TIMEOUT_SECONDS),
                proxy="" if near else proxy,
            )
        except Unreachable as fault:
            raise unreachable(str(fault)) from None

    return asking


def _seconds(expiry: datetime | None) -> float:
    """google-auth computes the expiry by this machine's clock, right or wrong: the time left by the same
    clock is right."""
    if expiry is None:
        return _UNKNOWN_SECONDS
    now = datetime.now(UTC)
    return (expiry - (now if expiry.tzinfo else now.replace(tzinfo=None))).total_seconds()


def _said(fault: Exception) -> str:
    return str(fault.args[0] if fault.args else fault)


def _fix(fault: Exception) -> str:
    said = str(fault)
    if "reasonable timeframe" in said or "iat" in said:
        return "set the clock of this machine: Google takes no signature from another time"
    if "Reauthentication" in said or "expired or revoked" in said:
        return "run `gcloud auth application-default login` again"
    return "check that the service account and its key still exist, and make a new key where they do not"
