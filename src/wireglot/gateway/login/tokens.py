"""Tokens of devices that signed in, and the keys of people: both are stored as client keys."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from wireglot.gateway.config.keys import is_name
from wireglot.gateway.entry.callers import Gatekeeper
from wireglot.gateway.login.device_codes import network_of
from wireglot.gateway.observe.log import Note
from wireglot.gateway.settings import ClientKey, LoginSettings, Settings
from wireglot.gateway.state.keys.ring import Keyring, digest_of, new_key
from wireglot.gateway.state.keys.table import KeyTable
from wireglot.stores.base import Keys
from wireglot.stores.records import KeyRow, SignIn

_NAME: Final = "login-"
_REFRESH: Final = "wgr-"
_ID_BYTES: Final = 6
_SECRET_BYTES: Final = 32
_REFRESH_FORM: Final = re.compile(r"wgr-([0-9a-f]{12})\.([A-Za-z0-9_-]{20,80})\.([A-Za-z0-9_-]{20,80})")
MAX_SIGN_INS: Final = 500
"""Sign-ins of one client key that are valid at the same time; with one more, the oldest ends."""
_TRIES: Final = 5
_HOUR_MS: Final = 3_600_000
_BASE_LENGTH: Final = 48
_HASH_LETTERS: Final = 12


class SignInRefused(Exception):
    """The message is for the user."""


class Granted(msgspec.Struct, frozen=True):
    access_token: str
    refresh_token: str
    seconds: int
    owner: str


class Person(msgspec.Struct, frozen=True):
    """`subject`: the issuer's permanent id of the person. `owner`: a readable name."""

    subject: str
    owner: str
    group: str


Recheck = Callable[[str, LoginSettings], Awaitable[Person | None]]
"""The current data of a grant's person; None if the identity provider does not report them. Raises
SignInRefused."""


class SignInTokens:
    def __init__(
        self,
        keys: Keys,
        table: KeyTable,
        gatekeeper: Gatekeeper,
        note: Note,
        recheck: Recheck,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._table = table
        self._gatekeeper = gatekeeper
        self._note = note
        self._recheck = recheck
        self._wall = wall

    async def issue(
        self, parent: str, surface: str, address: str, settings: Settings, grant: str = ""
    ) -> Granted:
        """Tokens for a new device of the key with the digest `parent`. Raises SignInRefused if that key is no
        longer valid."""
        await self._table.refresh()
        key = self._gatekeeper.key_of(parent, settings)
        login = settings.login
        if key is None or key.sign_in or login is None:
            raise SignInRefused("the key has been revoked or has expired")
        await self._make_room(key.name)
        now = self._now()
        expires = now + int(login.refresh_days * 24 * _HOUR_MS)
        family = secrets.token_urlsafe(_SECRET_BYTES)
        for _ in range(_TRIES):
            id = secrets.token_hex(_ID_BYTES)
            if any(each.name == _NAME + id for each in settings.keys):
                continue
            blank = SignIn(
                key=key.name,
                parent=parent,
                digest="",
                until=0,
                family=digest_of(family),
                refresh="",
                surface=surface,
                address=network_of(address),
                grant=grant,
            )
            made, sign_in = _made(blank, login, now, _earliest(expires, key.expires))
            row = KeyRow(_NAME + id, "", "", now, expires=expires, owner=key.owner, sign_in=sign_in)
            if await self._keys.put(row, new=True):
                await self._table.refresh()
                self._note(
                    "info", "device signed in", caller=key.name, name=row.name, surface=surface, peer=address
                )
                return _granted(made, id, family, key)
        raise SignInRefused("no name was free: try again")

    async def renew(self, refresh_token: str, address: str, settings: Settings) -> Granted | None:
        """New tokens for the same device; None: it must sign in again.

        A refresh token can be used once. Every session of a client on one machine has a copy, and sends it
        when it wakes up, long after another one has used it (Claude Code 2.1.326 then uses the token which
        that one has stored): from the address that used it, it is only refused. From any other, two machines
        have it, and one of them is a thief's: the sign-in ends.
        """
        parsed = _REFRESH_FORM.fullmatch(refresh_token)
        row = await self._keys.get(_NAME + parsed[1]) if parsed is not None else None
        if parsed is None or row is None or row.sign_in is None or settings.login is None:
            return None
        before = row.sign_in
        if not hmac.compare_digest(digest_of(parsed[2]), before.family):
            return None
        if row.revoked or row.expires <= self._now():
            return None
        network = network_of(address)
        if not hmac.compare_digest(digest_of(parsed[3]), before.refresh):
            if network != before.address:
                await self._end(row.name, "refresh token used twice", address)
            return None
        await self._table.refresh()
        key = self._gatekeeper.key_of(before.parent, settings)
        if key is None or not await self._is_still(row.name, before, settings, address):
            return None
        made, sign_in = _made(before, settings.login, self._now(), _earliest(row.expires, key.expires))
        changed = msgspec.structs.replace(
            row,
            old_digest=before.digest,
            old_until=before.until,
            sign_in=msgspec.structs.replace(sign_in, address=network),
        )
        if not await self._keys.put(changed, over=row):
            return None  # another request used it at the same time, or the sign-in was revoked
        await self._table.refresh()
        return _granted(made, parsed[1], parsed[2], key)

    async def _is_still(self, name: str, sign_in: SignIn, settings: Settings, address: str) -> bool:
        """Whether the identity provider still knows the person, if it can be reached; the key's limits are
        updated too."""
        if not sign_in.grant or settings.login is None:
            return True
        try:
            person = await self._recheck(sign_in.grant, settings.login)
            if person is not None and (await self.person(person, settings)).name != sign_in.key:
                raise SignInRefused("the identity provider returned another person")
        except SignInRefused as refused:
            await self._end(name, "device signed out", address, str(refused))
            return False
        return True

    async def revoke(self, token: str, address: str) -> None:
        """End the sign-in with this token; other tokens are not affected (RFC 7009, 2.2)."""
        row = self._table.sign_in(digest_of(token))
        if row is None and (parsed := _REFRESH_FORM.fullmatch(token)) is not None:
            row = await self._keys.get(_NAME + parsed[1])
            if (
                row is None
                or row.sign_in is None
                or not hmac.compare_digest(digest_of(parsed[2]), row.sign_in.family)
            ):
                return
        if row is not None and not row.revoked:
            await self._end(row.name, "device signed out", address)

    async def person(self, person: Person, settings: Settings) -> KeyRow:
        """The key of a person, created at the first sign-in: budgets and data belong to the person, however
        often they sign in, and even if their address changes. Its name is the readable one of the first
        sign-in, unless that was another key's."""
        subject = hashlib.sha256(person.subject.encode("utf-8", "surrogatepass")).hexdigest()
        names = _names(person.owner, subject)
        for _ in range(_TRIES):
            await self._table.refresh()
            known = (*self._table.names_of_person(subject), *names)
            rows = {name: await self._keys.get(name) for name in known}
            mine = next((row for row in rows.values() if row is not None and row.subject == subject), None)
            if mine is not None and mine.revoked:
                raise SignInRefused("your access to this gateway has been revoked")
            if mine is None:
                configured = {key.name for key in settings.keys}
                free = next((name for name in names if rows[name] is None and name not in configured), None)
                if free is None:
                    raise SignInRefused("another key of this gateway has your name")
                made = KeyRow(
                    free,
                    digest_of(new_key()),  # of a key that no one has: only tokens authorize
                    "",
                    self._now(),
                    group=person.group,
                    owner=person.owner,
                    subject=subject,
                )
                done = await self._keys.put(made, new=True)
            else:
                made = msgspec.structs.replace(mine, group=person.group, owner=person.owner)
                done = made == mine or await self._keys.put(made, over=mine)
            if done:
                await self._table.refresh()
                return made
        raise SignInRefused("the key is being changed by another request: try again")

    async def _end(self, name: str, why: str, address: str, detail: str = "") -> None:
        await Keyring(self._keys).revoke(name)
        await self._table.refresh()
        more = {"detail": detail} if detail else {}
        self._note("warn" if "twice" in why else "info", why, name=name, peer=address, **more)

    async def _make_room(self, key: str) -> None:
        """Ended sign-ins are deleted when the key signs in again."""
        rows = self._table.sign_ins_of(key)
        now = self._now()
        over = [row for row in rows if row.revoked or row.expires <= now]
        rest = sorted((row for row in rows if row not in over), key=lambda row: row.created)
        for row in (*over, *rest[: max(0, len(rest) + 1 - MAX_SIGN_INS)]):
            await self._keys.delete(row.name)

    def _now(self) -> int:
        return int(self._wall() * 1000)


def _earliest(*moments: int) -> int:
    """The earliest of those that are set."""
    return min(filter(None, moments))


def _made(before: SignIn, login: LoginSettings, now: int, ends: int) -> tuple[tuple[str, str, int], SignIn]:
    """A new access token, the new part of a refresh token and their lifetimes in seconds; and the sign-in
    with them."""
    access, rotating = new_key(), secrets.token_urlsafe(_SECRET_BYTES)
    seconds = max(1, min(int(login.token_hours * 3600), (ends - now) // 1000))
    changed = msgspec.structs.replace(
        before, digest=digest_of(access), until=now + seconds * 1000, refresh=digest_of(rotating)
    )
    return (access, rotating, seconds), changed


def _granted(made: tuple[str, str, int], id: str, family: str, key: ClientKey) -> Granted:
    access, rotating, seconds = made
    return Granted(access, f"{_REFRESH}{id}.{family}.{rotating}", seconds, key.owner)


def _names(owner: str, subject: str) -> tuple[str, ...]:
    """Names for a person's key: first the address, then a unique one. A subject alone may be a user name that
    people choose: a caller of that name may have stored something."""
    plain = re.sub(r"[^A-Za-z0-9._@-]+", "-", owner.lower()).strip("-._@ ")[:_BASE_LENGTH] or "person"
    apart = f"{plain}-{subject[:_HASH_LETTERS]}"
    is_whole = plain == owner.lower() and "@" in plain and is_name(plain) and not plain.startswith(_NAME)
    return (plain, apart) if is_whole else (apart,)
