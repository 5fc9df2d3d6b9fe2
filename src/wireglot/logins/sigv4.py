"""Amazon's Signature Version 4: a request is signed with a key that is never sent. Pure: time is handed in.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

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
    """The headers that sign a request; `time` is in UTC, `20261116T145121Z`. `content_type`: where it is sent
    and shall be covered."""
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
            # The path as it is sent, escaped once more: every service but S3 wants it so.
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
    told = "\n".join((_ALGORITHM, time, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signed = _hmac(_signing_key(key, day), told).hex()
    credential = f"Credential={key.access_key}/{scope}"
    return [
        ("authorization", f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={signed}"),
        *own,
    ]


def _host(url: str) -> str:
    """As the client's Host header has it: without the port that the scheme has anyway."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return host if parts.port in (None, _PORTS.get(parts.scheme)) else f"{host}:{parts.port}"


def _query(query: str) -> str:
    """Sorted by name, then by value: `=` itself must not count, or `x1=` would precede `x=`. Every parameter
    has a value, be it empty."""
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&") if pair)
    return "&".join(f"{name}={value}" for name, value in pairs)


def _signing_key(key: SigningKey, day: str) -> bytes:
    made = _hmac(f"AWS4{key.secret_key}".encode(), day)
    for text in (key.region, key.service, "aws4_request"):
        made = _hmac(made, text)
    return made


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
