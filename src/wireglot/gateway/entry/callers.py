"""Identifies the caller by the key in a request (known by its digest only), and says what that key may be
used for and with what secret the caller's state is sealed."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Final, Protocol
from urllib.parse import unquote

import msgspec

from wireglot.gateway.entry.routes import Asked, query_value
from wireglot.gateway.errors import RequestError
from wireglot.gateway.settings import ClientKey, Secret, ServerSettings, Settings
from wireglot.http.application import Head
from wireglot.stores.records import KeyRow
from wireglot_core.dialects.registry import COMMON, surface, surfaces
from wireglot_core.ir.errors import MODEL_DENIED
from wireglot_core.wire.wildcards import caught

_FAILURES_SECONDS = 60.0
# Addresses whose failed attempts are counted at once.
_MAX_PEERS = 10_000
# Tokens of signed-in users that are cached.
_MAX_SIGNED_IN: Final = 10_000
# Characters of a key that a client offers: it is hashed.
_MAX_KEY_LETTERS = 4096
_NO_SECRET: Final = b"wireglot"
"""The library's default, for a gateway without a secret, in tests."""
# Derived secrets of callers that are cached.
_MAX_SEALINGS: Final = 1024
_OWNER_LETTERS: Final = 16


class Caller(msgspec.Struct, frozen=True):
    """The sender of a request. Without client keys all callers are the same one, "local"."""

    name: str
    key: ClientKey | None = None


LOCAL = Caller("local")
ADMIN = Caller("admin")
ADMIN_HEADER = "x-wireglot-admin"
"""The admin secret sent along with a client key: the operator gets the full details of an error."""


class StoredKeys(Protocol):
    """The keys that were created while the gateway ran (or by its command line), at most a moment out of
    date."""

    @property
    def required(self) -> bool:
        """Whether any key was ever created: from then on every caller needs one."""
        ...

    @property
    def operator_key(self) -> str:
        """Has the rights of the admin secret, for commands of the user who runs the process; "": there is
        none."""
        ...

    def find(self, digest: str) -> ClientKey | None:
        """None: there is no such key, or it is no longer valid. Raises a Fault if that cannot be checked."""
        ...

    def sign_in(self, digest: str) -> KeyRow | None:
        """The sign-in with this access token, whether or not its key is still valid."""
        ...


class NoStoredKeys:
    """For a gateway whose keys are in the configuration only."""

    required = False
    operator_key = ""

    def find(self, digest: str) -> ClientKey | None:
        return None

    def sign_in(self, digest: str) -> KeyRow | None:
        return None


class Gatekeeper:
    """Finds the caller of a request. Knows keys by their digests only."""

    def __init__(
        self,
        now: Callable[[], float],
        stored: StoredKeys | None = None,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self._wall = wall
        self._stored: StoredKeys = stored if stored is not None else NoStoredKeys()
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._keys: dict[str, ClientKey] = {}
        self._of: Settings | None = None
        self._find_signed_in: Callable[[str], ClientKey | None] = self._stored.find
        """For the settings `_of`."""
        self._signed_in: dict[str, tuple[ClientKey, KeyRow, ClientKey]] = {}
        """By digest of an access token: the key and the sign-in that its latest client key was made from, and
        that key."""
        self._key_headers = tuple(
            dict.fromkeys(header for known in surfaces() for header in known.client.key_headers)
        )

    def caller(
        self, head: Head, asked: Asked, settings: Settings, digests: list[str] | None = None
    ) -> Caller:
        """The caller of a request. `digests`: of the keys in this head, if they are known."""
        if ADMIN_HEADER in head.headers:
            self._check_admin(head, [head.headers[ADMIN_HEADER]], settings)
        if not self.asks_for_keys(settings):
            return LOCAL
        if digests is None:
            digests = self.digests(head, asked)
        # The configured keys first, all of them: they are valid also while the stored ones cannot be read.
        for find in self._finders(settings):
            for digest in digests:
                key = find(digest)
                # Found by a digest that callers cannot choose; compared again in constant time.
                if key is not None and hmac.compare_digest(key.digest, digest) and self._is_good(key):
                    return Caller(key.name, key)
        # A valid key is always accepted, also from an address (a proxy's) where others guess.
        self._count_failure(head.peer, settings.limits.auth_failures)
        hint = surface(asked.dialect).client.key_hint
        text = "missing or unknown API key: send a client key of this gateway"
        raise RequestError("auth", f"{text}; {hint}" if hint else text)

    def digests(self, head: Head, asked: Asked) -> list[str]:
        """The digests of all keys in a head."""
        return [
            hashlib.sha256(offered.encode("utf-8", "replace")).hexdigest()
            for offered in self._offered(head, asked.dialect)
        ]

    def admin(self, head: Head, settings: Settings) -> Caller:
        """The admin, authorized by the admin secret. Without one there is no admin API."""
        self._check_admin(head, self._offered(head), settings)
        return ADMIN

    def _check_admin(self, head: Head, secrets: list[str], settings: Settings) -> None:
        if self.is_operator(secrets):
            return
        secret = settings.server.admin_secret.value
        if not secret:
            raise RequestError(
                "not_found", "the admin API is off: set server.admin_secret", code="unknown_url"
            )
        # The right secret is always accepted, also from an address (a proxy's) where others guess: no one can
        # lock the owner out. It has 16 characters or more; those who guess are told to wait all the same.
        if _holds(secrets, [secret]):
            return
        peer = f"admin {head.peer}"  # counted apart: a wrong client key is no guess at this one
        self._count_failure(peer, settings.limits.auth_failures)
        raise RequestError("auth", "missing or wrong admin secret")

    def is_operator(self, secrets: list[str]) -> bool:
        key = self._stored.operator_key
        return bool(key) and _holds(secrets, [key])

    def metrics(self, head: Head, settings: Settings) -> Caller:
        """The caller of the metrics page: metrics cover all callers, so client keys do not authorize it."""
        server = settings.server
        if not server.metrics_key.value and not self.asks_for_keys(settings):
            return LOCAL
        secrets = [held.value for held in (server.metrics_key, server.admin_secret) if held.value]
        if not secrets:
            raise RequestError("not_found", "the metrics are off: set server.metrics_key", code="unknown_url")
        if _holds(self._offered(head), secrets):
            return ADMIN
        peer = f"metrics {head.peer}"
        self._count_failure(peer, settings.limits.auth_failures)
        raise RequestError(
            "auth",
            "/metrics requires server.metrics_key or server.admin_secret; client keys are not accepted",
        )

    def secrets_in(self, head: Head) -> list[str]:
        """Every secret and key in a head, for endpoints that accept both."""
        named = head.headers.get(ADMIN_HEADER)
        return [*([named] if named else []), *self._offered(head)]

    def known(self, peer: str, secrets: list[str], settings: Settings) -> Caller:
        """The caller whom one of these secrets identifies: the admin, or the owner of a client key. Guesses
        are counted by peer."""
        admin = settings.server.admin_secret.value
        if (admin and _holds(secrets, [admin])) or self.is_operator(secrets):
            return ADMIN
        for offered in secrets:
            if len(offered) <= _MAX_KEY_LETTERS:
                key = self.key_of(hashlib.sha256(offered.encode("utf-8", "replace")).hexdigest(), settings)
                if key is not None:
                    return Caller(key.name, key)
        self._count_failure(f"inspector {peer}", settings.limits.auth_failures)
        raise RequestError("auth", "this is neither the admin secret nor a client key")

    def key_of(self, digest: str, settings: Settings) -> ClientKey | None:
        """The key with this digest, if it is still valid."""
        for find in self._finders(settings):
            key = find(digest)
            if key is not None and hmac.compare_digest(key.digest, digest) and self._is_good(key):
                return key
        return None

    def _finders(self, settings: Settings) -> tuple[Callable[[str], ClientKey | None], ...]:
        return self._configured(settings).get, self._stored.find, self._find_signed_in

    def _of_sign_in(self, settings: Settings, digest: str) -> ClientKey | None:
        """The key that a device signed in with, with the device's own digest and expiry."""
        row = self._stored.sign_in(digest)
        if row is None or row.sign_in is None:
            return None
        parent = self._configured(settings).get(row.sign_in.parent) or self._stored.find(row.sign_in.parent)
        if parent is None:
            self._signed_in.pop(digest, None)
            return None
        known = self._signed_in.get(digest)
        if known is not None and known[0] is parent and known[1] is row:
            return known[2]
        if len(self._signed_in) >= _MAX_SIGNED_IN:
            self._signed_in.clear()
        expires = min(filter(None, (parent.expires, row.expires)), default=0)
        key = msgspec.structs.replace(parent, digest=digest, expires=expires, sign_in=row.name)
        self._signed_in[digest] = parent, row, key
        return key

    def _configured(self, settings: Settings) -> dict[str, ClientKey]:
        if self._of is not settings:
            self._keys = {key.digest: key for key in settings.keys}
            self._of = settings
            self._find_signed_in = partial(self._of_sign_in, settings)
        return self._keys

    def asks_for_keys(self, settings: Settings) -> bool:
        return bool(settings.keys) or settings.server.require_key or self._stored.required

    def _offered(self, head: Head, dialect: str = COMMON) -> list[str]:
        """Every key in the request: clients with two settings send both."""
        offered = []
        for name, prefix in self._key_headers:
            value = head.headers.get(name)
            if value is not None and value[: len(prefix)].lower() == prefix:
                offered.append(value[len(prefix) :].strip())
        in_query = surface(dialect).client.key_query
        if in_query:
            offered.append(query_value(head.query, in_query))
        return [key for key in offered if key and len(key) <= _MAX_KEY_LETTERS]

    def _is_good(self, key: ClientKey) -> bool:
        return not key.expires or key.expires > self._wall() * 1000

    def _count_failure(self, peer: str, limit: int) -> None:
        """Count a wrong key. Raises if the peer has sent too many within a minute."""
        now = self._now()
        since, count = self._failures.pop(peer, (now, 0))
        left = since + _FAILURES_SECONDS - now
        if left <= 0:
            since, count = now, 0
        self._failures[peer] = (since, count + 1)
        if len(self._failures) > _MAX_PEERS:
            self._failures.popitem(last=False)
        if count >= limit:
            raise RequestError("rate", "too many requests with a wrong key", retry_after=left)


def take_key(head: Head, roots: Sequence[str]) -> None:
    """Move a key from the path after one of `roots` to a header, so that no path with a key can be logged. If
    nothing follows the key, the path is the root itself."""
    for root in roots:
        if head.path.startswith(root):
            key, _, rest = head.path[len(root) :].partition("/")
            head.path = f"/{rest}" if rest else root.rstrip("/")
            head.target = f"{head.path}?{head.query}" if head.query else head.path
            if key:
                head.headers["authorization"] = f"Bearer {unquote(key)}"
            return


def _holds(offered: list[str], secrets: list[str]) -> bool:
    """Whether one of them was offered, compared in constant time."""
    expected = [hashlib.sha256(secret.encode()).digest() for secret in secrets]
    given = [hashlib.sha256(each.encode("utf-8", "replace")).digest() for each in offered]
    return any(hmac.compare_digest(one, other) for one in given for other in expected)


def check_permitted(key: ClientKey | None, model: str) -> None:
    if not may_ask(key, model):
        raise RequestError(
            "permission", f"this key may not use the model {model!r}", code=MODEL_DENIED, param="model"
        )


def may_ask(key: ClientKey | None, model: str) -> bool:
    """Whether the key allows a model, by the name that the client uses and not by the target of a rule."""
    return key is None or not key.models or any(caught(pattern, model) is not None for pattern in key.models)


class Sealing(msgspec.Struct, frozen=True):
    """The secret and the owner that a caller's reasoning state is sealed with, as the fields of a `Context`.

    The caller is identified by the key's name, so a rotated key keeps its state. Without client keys everyone
    is one caller, and an envelope names no owner, as in older versions: what they sealed opens for anyone who
    brings it, until the secret goes.
    """

    secret: bytes
    old_secrets: tuple[bytes, ...]
    owner: str


def sealing(server: ServerSettings, caller: Caller) -> Sealing:
    return _sealing(server.secret, server.old_secrets, "" if caller.name == LOCAL.name else caller.name)


@lru_cache(maxsize=_MAX_SEALINGS)
def _sealing(secret: Secret, old: tuple[Secret, ...], name: str) -> Sealing:
    # A hash: the envelope lies in the open in clients' histories, and a name may be a person's.
    owner = hashlib.sha256(f"caller {name}".encode()).hexdigest()[:_OWNER_LETTERS] if name else ""
    first, *others = (each.value.encode() or _NO_SECRET for each in (secret, *old))
    return Sealing(first, tuple(others), owner)
