"""A login, carried out now."""

from __future__ import annotations

from typing import assert_never

from wireglot.logins.aws import obtain_aws
from wireglot.logins.entra import obtain_entra
from wireglot.logins.google import obtain_google
from wireglot.logins.login import AwsLogin, EntraLogin, GoogleLogin, Grant, Login


def obtain(login: Login) -> Grant:
    """Blocks, for as long as whoever gives it out takes. Raises LoginFailed."""
    match login:
        case GoogleLogin():
            return obtain_google(login)
        case EntraLogin():
            return obtain_entra(login)
        case AwsLogin():
            return obtain_aws(login)
        case _ as never:
            assert_never(never)
