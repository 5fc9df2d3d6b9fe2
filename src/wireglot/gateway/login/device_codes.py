"""Device codes (RFC 8628): from a client's request for one to the user's decision, in the shared store.

A decision is a document that can be written once, and a code is used by deleting it, which only one request
can do: so any process can handle any step.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from wireglot.gateway.state.stored_forms import now_ms
from wireglot.stores.base import Counters
from wireglot.stores.records import Document, Rate
from wireglot.stores.seal import SealedDocuments

CODE_SECONDS: Final = 600
INTERVAL_SECONDS: Final = 5
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""20 consonants: no word is spelled by accident (RFC 8628, 6.1)."""
_CODE_LENGTH: Final = 8
LOGIN_OWNER: Final = "\0login"
"""The tenant of all data that signing in stores and seals. No caller can have this name."""
_DEVICE: Final = "login-device"
_USER_CODE: Final = "login-code"
_DECISION: Final = "login-decision"
_TRIES: Final = 5
_POLL_SECONDS: Final = INTERVAL_SECONDS - 1
"""A little less than the interval: a client that keeps to it is not delayed by network jitter."""
_WINDOW_SECONDS: Final = 600.0
MAX_REQUESTS: Final = 30
"""Requests for device codes from one address in a window of time."""
MAX_WRONG_CODES: Final = 10
"""Wrong device codes from one address in a window of time. There are 20^8 codes, and at most MAX_OPEN of them
are valid."""
# Device codes that are valid at once.
MAX_OPEN: Final = 1000
_OPEN: Final = "login open"


class DeviceRequest(msgspec.Struct, frozen=True):
    """A client that waits for a user's decision."""

    id: str
    """Digest of its device code."""
    user_code: str
    surface: str
    address: str
    at: int
    """Unix milliseconds."""


class Decision(msgspec.Struct, frozen=True):
    """`parent`: the digest of the key that the device acts as; "": the user refused. `grant`: see
    `SignIn`."""

    parent: str
    grant: str = ""


class TooMany(Exception):
    """From this address, or in total; `wait` in seconds."""

    def __init__(self, wait: float) -> None:
        super().__init__(wait)
        self.wait = wait


PollError = Literal["authorization_pending", "slow_down", "access_denied", "expired_token"]


class NotYet(Exception):
    """The result of a poll that gets no token."""

    def __init__(self, error: PollError) -> None:
        super().__init__(error)
        self.error: PollError = error


class DeviceCodes:
    def __init__(
        self, documents: SealedDocuments, counters: Counters, clock: Callable[[], int] = now_ms
    ) -> None:
        self._documents = documents
        self._counters = counters
        self._clock = clock

    async def begin(self, surface: str, address: str) -> tuple[str, DeviceRequest]:
        """A device code and its request. Raises TooMany."""
        denied = await self._counters.take(
            [Rate(f"login requests {network_of(address)}", 1, MAX_REQUESTS, _WINDOW_SECONDS)]
        )
        if denied is not None:
            raise TooMany(denied.wait)
        device_code = secrets.token_urlsafe(32)
        id = _digest(device_code)
        if not await self._counters.enter(_OPEN, id, MAX_OPEN, CODE_SECONDS):
            raise TooMany(CODE_SECONDS)
        for _ in range(_TRIES):
            user_code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH))
            request = DeviceRequest(id, user_code, surface, address, self._clock())
            wanted = [
                self._document(_DEVICE, id, msgspec.json.encode(request), request.at),
                self._document(_USER_CODE, _digest(user_code), id.encode(), request.at),
            ]
            if await self._documents.put(wanted, new=True):
                return device_code, request
        raise TooMany(CODE_SECONDS)

    async def find(self, user_code: str, address: str) -> DeviceRequest | None:
        """The request of a code that a user typed. A wrong code counts against the address. Raises
        TooMany."""
        claim = Rate(f"login codes {network_of(address)}", 1, MAX_WRONG_CODES, _WINDOW_SECONDS)
        # Counted before the answer is known: parallel attempts have no advantage over sequential ones.
        denied = await self._counters.take([claim])
        if denied is not None:
            raise TooMany(denied.wait)
        request = await self.open_request(user_code)
        if request is not None:
            await self._counters.settle([msgspec.structs.replace(claim, amount=-1)])
        return request

    async def open_request(self, user_code: str) -> DeviceRequest | None:
        """The request of a code that waits for a decision."""
        code = normalized(user_code)
        if len(code) != _CODE_LENGTH:
            return None
        found = await self._documents.get(LOGIN_OWNER, _USER_CODE, [_digest(code)])
        return await self._request(found[0].body.decode()) if found else None

    async def decide(self, request: DeviceRequest, decision: Decision) -> bool:
        """False: it was decided before, or the code has expired."""
        if await self._request(request.id) is None:
            return False
        document = self._document(_DECISION, request.id, msgspec.json.encode(decision), request.at)
        decided = await self._documents.put([document], new=True)
        await self._documents.delete(LOGIN_OWNER, _USER_CODE, [_digest(request.user_code)])
        return decided

    async def poll(self, device_code: str) -> tuple[DeviceRequest, Decision]:
        """The decision, for one poll only. Raises NotYet."""
        id = _digest(device_code)
        # In this order: a code that another poll has used must not be taken for a waiting one.
        decided = await self._documents.get(LOGIN_OWNER, _DECISION, [id])
        request = await self._request(id)
        if request is None:
            raise NotYet("expired_token")
        if not decided:
            if await self._counters.take([Rate(f"login poll {id}", 1, 1, _POLL_SECONDS)]) is not None:
                raise NotYet("slow_down")
            raise NotYet("authorization_pending")
        if await self._documents.delete(LOGIN_OWNER, _DEVICE, [id]) != 1:
            raise NotYet("expired_token")
        await self._documents.delete(LOGIN_OWNER, _DECISION, [id])
        await self._counters.leave(_OPEN, id)
        decision = msgspec.json.decode(decided[0].body, type=Decision)
        if not decision.parent:
            raise NotYet("access_denied")
        return request, decision

    async def _request(self, id: str) -> DeviceRequest | None:
        found = await self._documents.get(LOGIN_OWNER, _DEVICE, [id])
        return msgspec.json.decode(found[0].body, type=DeviceRequest) if found else None

    def _document(self, kind: str, id: str, body: bytes, at: int) -> Document:
        return Document(LOGIN_OWNER, kind, id, body, created=at, expires=at + CODE_SECONDS * 1000)


def normalized(user_code: str) -> str:
    """Without case and punctuation, which people type differently."""
    return "".join(letter for letter in user_code.upper()[:64] if letter in _LETTERS)


def shown_code(user_code: str) -> str:
    return f"{user_code[:4]}-{user_code[4:]}"


def network_of(address: str) -> str:
    """What counts as one address: for IPv6 the network, since one machine has many addresses in it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()
