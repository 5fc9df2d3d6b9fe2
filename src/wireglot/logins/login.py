"""How to sign in to a cloud, by the configuration, and the resulting grant."""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec

from wireglot_core.extras import install_hint

LoginKind = Literal["google", "entra", "aws"]

EXTRAS: Final[dict[LoginKind, tuple[str, str, str]]] = {
    "google": ("google.auth", "google-auth", "vertex"),
    "aws": ("botocore.session", "botocore", "bedrock"),
}
"""Module, package, and our extra that installs it."""
# Characters of a message about a failed sign-in.
_MAX_MESSAGE_CHARACTERS: Final = 300


class GoogleLogin(msgspec.Struct, frozen=True):
    """Without a file: application default credentials (GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth
    application-default login`, the machine's own service account)."""

    key_file: str = ""
    scope: str = "https://www.googleapis.com/auth/cloud-platform"
    proxy: str = ""

    def __repr__(self) -> str:
        return f"GoogleLogin({self.key_file or 'default'})"


class EntraLogin(msgspec.Struct, frozen=True):
    """An application of Microsoft Entra: by its secret, by a token that its platform stores in a file
    (workload identity), or, without either, the identity of the machine it runs on."""

    scope: str = "https://cognitiveservices.azure.com/.default"
    tenant: str = ""
    client: str = ""
    secret: str = ""
    token_file: str = ""
    authority: str = "https://login.microsoftonline.com"
    metadata: str = "http://169.254.169.254"
    proxy: str = ""

    @property
    def is_managed(self) -> bool:
        return not self.secret and not self.token_file

    def __repr__(self) -> str:
        return f"EntraLogin({self.client or 'managed identity'})"


class AwsLogin(msgspec.Struct, frozen=True):
    """Without keys: the chain of Amazon's tools, in `profile` if one is named."""

    region: str
    service: str = "bedrock"
    access_key: str = ""
    secret_key: str = ""
    session_token: str = ""
    profile: str = ""

    @property
    def is_static(self) -> bool:
        return bool(self.access_key and self.secret_key)

    def __repr__(self) -> str:
        return f"AwsLogin({self.region}, {'keys' if self.is_static else self.profile or 'default'})"


Login = GoogleLogin | EntraLogin | AwsLogin


class Grant(msgspec.Struct, frozen=True):
    """Temporary access to a cloud. `secret` is a bearer token, or the key for Amazon's signatures."""

    secret: str
    seconds: float = math.inf
    """Its lifetime, from the moment that it was requested."""
    headers: tuple[tuple[str, str], ...] = ()
    """Sent along with the token."""
    access_key: str = ""
    session_token: str = ""

    def __repr__(self) -> str:
        return f"Grant({self.seconds:.0f} s)"


class LoginFailed(Exception):
    """`fix`: what the operator can do about it. Neither contains a secret."""

    def __init__(self, message: str, fix: str) -> None:
        self.message = message[:_MAX_MESSAGE_CHARACTERS]
        super().__init__(self.message)
        self.fix = fix


def kind_of(login: Login) -> LoginKind:
    match login:
        case GoogleLogin():
            return "google"
        case EntraLogin():
            return "entra"
        case AwsLogin():
            return "aws"


def secrets_of_login(login: Login) -> tuple[str, ...]:
    """The values that no sink may show."""
    match login:
        case GoogleLogin():
            return ()
        case EntraLogin():
            return (login.secret,)
        case AwsLogin():
            return (login.secret_key, login.session_token)


def needs_extra(login: Login) -> bool:
    """Whether a package is needed that is not installed with this one."""
    return isinstance(login, GoogleLogin) or (isinstance(login, AwsLogin) and not login.is_static)


def missing_extra(kind: LoginKind) -> str:
    """The fix, in one line."""
    _, package, extra = EXTRAS[kind]
    return f"install {package}: {install_hint(extra)}"
