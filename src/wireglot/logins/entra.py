"""Microsoft Entra: an application's token, by plain HTTP. The three methods that servers use need no SDK."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from wireglot.logins.login import EntraLogin, Grant, LoginFailed
from wireglot.logins.web import Unreachable, WebAnswer, ask, post_form

_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_NETWORK: Final = "check the network of this machine, and `proxy`"
_NO_MACHINE: Final = (
    "give this machine a managed identity, or name an application: AZURE_TENANT_ID, AZURE_CLIENT_ID and "
    'AZURE_CLIENT_SECRET, or login = { kind = "entra", tenant, client, secret }'
)
_FIXES: Final = {
    "AADSTS7000215": "set the value of the client secret, not its id",
    "AADSTS7000222": "the client secret has expired: make a new one in Entra, under the application",
    "AADSTS700016": "check `client`: this tenant has no such application",
    "AADSTS90002": "check `tenant`: there is none of that name",
    "AADSTS700024": "set the clock of this machine: Entra takes no token from another time",
}
"""Microsoft lists the codes, and warns that they may change: unknown ones get the general advice.
https://learn.microsoft.com/entra/identity-platform/reference-error-codes"""


def obtain_entra(login: EntraLogin) -> Grant:
    """Blocks. Raises LoginFailed."""
    try:
        answer = _machines_own(login) if login.is_managed else _application(login)
    except Unreachable as fault:
        raise LoginFailed(str(fault), _NO_MACHINE if login.is_managed else _NETWORK) from None
    document = answer.document()
    token = document.get("access_token")
    if answer.status != 200 or type(token) is not str or not token:
        raise _refused(login, answer.status, document)
    return Grant(token, _seconds(document))


def _application(login: EntraLogin) -> WebAnswer:
    fields = {"client_id": login.client, "scope": login.scope, "grant_type": "client_credentials"}
    if login.secret:
        fields["client_secret"] = login.secret
    else:
        fields["client_assertion_type"] = _ASSERTION
        fields["client_assertion"] = _assertion(login.token_file)
    url = f"{login.authority}/{quote(login.tenant, safe='')}/oauth2/v2.0/token"
    return post_form(url, fields, login.proxy)


def _assertion(place: str) -> str:
    """Read each time: the platform replaces it."""
    try:
        return Path(place).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise LoginFailed(
            f"{Path(place).name} cannot be read ({type(fault).__name__})",
            "check AZURE_FEDERATED_TOKEN_FILE, or `token_file`",
        ) from None


def _machines_own(login: EntraLogin) -> WebAnswer:
    """https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token"""
    query = {"api-version": "2018-02-01", "resource": login.scope.removesuffix("/.default")}
    if login.client:
        query["client_id"] = login.client
    url = f"{login.metadata}/metadata/identity/oauth2/token?{urlencode(query)}"
    return ask(url, headers={"metadata": "true"}, timeout=3.0)


def _seconds(document: dict[str, Any]) -> float:
    """A number, or a number as text (managed identities)."""
    try:
        seconds = float(document.get("expires_in", 0))
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0


def _refused(login: EntraLogin, status: int, document: dict[str, Any]) -> LoginFailed:
    said = str(document.get("error_description") or document.get("error") or f"status {status}")
    code = said.partition(":")[0]
    usual = "check the tenant, the application and its secret"
    fix = _FIXES.get(code, _NO_MACHINE if login.is_managed else usual)
    first = said.partition(" Trace ID")[0].strip().partition("\n")[0].strip()
    return LoginFailed(first or f"status {status}", fix)
