"""Amazon: keys that are given, or those that `botocore` finds as Amazon's own tools do."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final

from wireglot.logins.login import AwsLogin, Grant, LoginFailed, missing_extra

_SAID_LETTERS_MOST: Final = 300
_NO_KEYS: Final = (
    "run `aws configure` or `aws sso login`, give this machine a role, or set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY; an API key of Bedrock goes into AWS_BEARER_TOKEN_BEDROCK"
)


def obtain_aws(login: AwsLogin) -> Grant:
    """Blocks. Raises LoginFailed."""
    if login.is_static:
        return Grant(login.secret_key, access_key=login.access_key, session_token=login.session_token)
    try:
        sessions, exceptions = import_module("botocore.session"), import_module("botocore.exceptions")
    except ImportError:
        raise LoginFailed("botocore is not installed", missing_extra("aws")) from None
    try:
        # A session anew each time: the files that it reads may have been replaced since.
        session = sessions.Session(profile=login.profile or None)
        found = session.get_credentials()
        if found is None:
            raise LoginFailed("no credentials of AWS were found", _NO_KEYS)
        keys = found.get_frozen_credentials()
    except exceptions.BotoCoreError as fault:
        raise LoginFailed(str(fault)[:_SAID_LETTERS_MOST], _NO_KEYS) from None
    except exceptions.ClientError as fault:  # of the service that gives out a role's keys
        raise LoginFailed(str(fault)[:_SAID_LETTERS_MOST], "check that the role may still be taken") from None
    return Grant(keys.secret_key, _seconds(found), access_key=keys.access_key, session_token=keys.token or "")


def _seconds(found: Any) -> float:
    """Only keys that are refreshed have an end. botocore has no public name for it."""
    ends = getattr(found, "_expiry_time", None)
    return (ends - datetime.now(UTC)).total_seconds() if isinstance(ends, datetime) else math.inf
