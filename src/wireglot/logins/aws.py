"""Amazon: given keys, or those that `botocore` finds as Amazon's own tools do."""

from __future__ import annotations

import hashlib
import hmac
import math
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from wireglot.logins.login import AwsLogin, Grant, LoginFailed, missing_extra

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
        # A new session each time: the files that it reads may have been replaced since.
        session = sessions.Session(profile=login.profile or None)
        found = session.get_credentials()
        if found is None:
            raise LoginFailed("no credentials of AWS were found", _NO_KEYS)
        keys = found.get_frozen_credentials()
    except exceptions.BotoCoreError as fault:
        raise LoginFailed(str(fault), _NO_KEYS) from None
    except exceptions.ClientError as fault:  # of the service that issues a role's keys
        raise LoginFailed(str(fault), "check that the role may still be taken") from None
    return Grant(keys.secret_key, _seconds(found), access_key=keys.access_key, session_token=keys.token or "")


def _seconds(found: Any) -> float:
    """Only keys that are refreshed expire. botocore has no public name for it."""
    ends = getattr(found, "_expiry_time", None)
    return (ends - datetime.now(UTC)).total_seconds() if isinstance(ends, datetime) else math.inf


_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_PORTS: Final = {"http": 80, "https": 443}


class SigningKey(msgspec.Struct, frozen=True):
    access_key: str
    secret_key: str
    session_token: str
    region: str
    service: str

    def __repr__(self) -> str:
        return f"SigningKey({self.region}, {self.service})"


def signature_headers(
    key: SigningKey, method: str, url: str, body: bytes, time: str, content_type: str = ""
) -> list[tuple[str, str]]:
    """The headers that sign a request; `time` is in UTC, `20261116T145121Z`. `content_type`: if it is sent
    and must be signed."""
    digest = hashlib.sha256(body).hexdigest()
    parts = urlsplit(url)
    own = [("x-amz-content-sha256", digest), ("x-amz-date", time)]
    if key.session_token:
        own.append(("x-amz-security-token", key.session_token))
    covered = [("host", _host(url)), *own]
    if content_type:
        covered.insert(0, ("content-type", content_type))
    names = ";".join(name for name, _ in covered)
    canonical = "\n".join(
        (
            method,
            # The path as it is sent, escaped again: every service but S3 requires that.
            quote(parts.path or "/", safe="/-_.~"),
            _query(parts.query),
            *(f"{name}:{value.strip()}" for name, value in covered),
            "",
            names,
            digest,
        )
    )
    day = time[:8]
    scope = f"{day}/{key.region}/{key.service}/aws4_request"
    text = "\n".join((_ALGORITHM, time, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signed = _hmac(_signing_key(key, day), text).hex()
    credential = f"Credential={key.access_key}/{scope}"
    return [
        ("authorization", f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={signed}"),
        *own,
    ]


def _host(url: str) -> str:
    """As the client's Host header has it: without the scheme's default port."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return host if parts.port in (None, _PORTS.get(parts.scheme)) else f"{host}:{parts.port}"


def _query(query: str) -> str:
    """Sorted by name, then by value: `=` itself must not count, or `x1=` would precede `x=`. Every parameter
    has a value, even if empty."""
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&") if pair)
    return "&".join(f"{name}={value}" for name, value in pairs)


def _signing_key(key: SigningKey, day: str) -> bytes:
    made = _hmac(f"AWS4{key.secret_key}".encode(), day)
    for text in (key.region, key.service, "aws4_request"):
        made = _hmac(made, text)
    return made


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
