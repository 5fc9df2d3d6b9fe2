"""Creates and changes client keys, for the admin API and the command line."""

from __future__ import annotations

import hashlib
import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from wireglot.gateway.config.keys import MONEY, NAME_EXPECTED, is_name, read_expiry, read_limits
from wireglot.gateway.config.problems import Problems, kind, meant, shown
from wireglot.gateway.config.table import Table
from wireglot.gateway.settings import ClientKey
from wireglot.stores.base import Keys
from wireglot.stores.records import MICRO, KeyRow

PREFIX: Final = "wg-"
_RANDOM_BYTES: Final = 32
_SHOWN_LETTERS: Final = 6
_TRIES: Final = 20
_TEXT_LETTERS: Final = 200
MAX_OVERLAP_SECONDS: Final = 90 * 86400
"""Seconds for which a replaced client key stays valid: 90 days. If it were longer, no one would ever change
it."""


class KeyRefused(Exception):
    """The request cannot be carried out. `field`: the field that is the reason, if there is one."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Unknown(KeyRefused):
    """There is no key of that name."""


class Taken(KeyRefused):
    """The key exists already, or its state does not allow the change."""


class Keyring:
    """The keys of a store. `reserved`: names of the configured keys. `groups`: those of the configuration."""

    def __init__(
        self,
        keys: Keys,
        reserved: Collection[str] = (),
        groups: Collection[str] = (),
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._reserved = reserved
        self._groups = groups
        self._wall = wall

    async def all(self) -> list[KeyRow]:
        return sorted(await self._keys.all(), key=lambda row: row.name)

    async def get(self, name: str) -> KeyRow:
        row = await self._keys.get(name)
        if row is None:
            raise Unknown(f"there is no stored key called {shown(name)}")
        return row

    async def create(self, name: object, fields: Mapping[str, Any]) -> tuple[KeyRow, str]:
        """Create a key. The key itself is returned, and stored nowhere."""
        if type(name) is not str or not is_name(name):
            raise KeyRefused(f"name: expected {NAME_EXPECTED}, found {shown(name)}", "name")
        if name in self._reserved:
            raise Taken(f"a key called {name} is in the configuration", "name")
        key = new_key()
        row = self._laid(KeyRow(name, digest_of(key), key[:_SHOWN_LETTERS], self._now()), fields)
        if not await self._keys.put(row, new=True):
            raise Taken(f"a key called {name} exists or existed: names of keys cannot be reused", "name")
        return row, key

    async def update(self, name: str, fields: Mapping[str, Any]) -> KeyRow:
        """Change only the given fields."""
        return await self._change(name, lambda row: self._laid(_opening(row), fields))

    async def revoke(self, name: str) -> KeyRow:
        """Revoke a key, and with it its sign-ins."""
        return await self._change(
            name,
            lambda row: (
                row
                if row.revoked
                else msgspec.structs.replace(row, revoked=self._now(), old_digest="", old_until=0)
            ),
            tries=0,  # it succeeds even if others keep writing at the same time
        )

    async def delete(self, name: str, wipe: Callable[[str], Awaitable[object]]) -> KeyRow:
        """Delete a key completely: revoke it, remove all data of its caller, then free its name. `wipe`
        removes the data of a caller."""
        row = await self.revoke(name)
        await wipe(name)
        for each in await self._keys.all():
            if each.sign_in is not None and each.sign_in.key == name:
                await self._keys.delete(each.name)
        await self._keys.delete(name)
        return row

    async def rotate(self, name: str, overlap: object = 0) -> tuple[KeyRow, str]:
        """A new key for the same caller. The old one stays valid for `overlap` more seconds."""
        if type(overlap) is not int or not 0 <= overlap <= MAX_OVERLAP_SECONDS:
            expected = f"whole seconds from 0 to {MAX_OVERLAP_SECONDS}"
            raise KeyRefused(f"overlap: expected {expected}, found {shown(overlap)}", "overlap")
        key = new_key()
        before = await self.get(name)
        changed = msgspec.structs.replace(
            _opening(before),
            digest=digest_of(key),
            prefix=key[:_SHOWN_LETTERS],
            old_digest=before.digest if overlap else "",
            old_until=self._now() + overlap * 1000 if overlap else 0,
        )
        if not await self._keys.put(changed, over=before):
            raise Taken(f"the key {name} was changed by another caller at the same time: check it again")
        return changed, key

    async def _change(self, name: str, change: Callable[[KeyRow], KeyRow], *, tries: int = _TRIES) -> KeyRow:
        """Repeats the change if another process wrote first, so that both apply. `tries` 0: until it
        succeeds."""
        for _ in range(tries) if tries else itertools.repeat(None):
            before = await self.get(name)
            changed = change(before)
            if changed == before or await self._keys.put(changed, over=before):
                return changed
        raise Taken(f"the key {name} is being changed by another caller: try again")

    def _laid(self, row: KeyRow, fields: Mapping[str, Any]) -> KeyRow:
        problems = Problems()
        table = Table(fields, "", problems)
        changed = msgspec.structs.replace(
            row,
            models=_models(table, row.models),
            losses=table.read(ClientKey, "losses", "" if "losses" in table else row.losses),
            limits=read_limits(table, row.limits),
            expires=read_expiry(table, row.expires),
            group=_text(table, "group", row.group),
            owner=_text(table, "owner", row.owner),
        )
        if changed.group not in ("", row.group, *self._groups):
            expected = f"a group of [groups]{meant(changed.group, self._groups)}"
            table.wrong("group", expected, shown(changed.group))
        if changed.expires != row.expires and changed.expires and changed.expires <= self._now():
            table.wrong("expires", "a time in the future", "a time in the past")
        table.close()
        if problems.found:
            first = problems.found[0]
            raise KeyRefused("; ".join(map(str, problems.found)), first.path)
        return changed

    def _now(self) -> int:
        return int(self._wall() * 1000)


def _opening(row: KeyRow) -> KeyRow:
    if row.revoked:
        raise Taken(f"the key {row.name} was revoked, which is final")
    if row.sign_in is not None:
        raise Taken(f"{row.name} is a sign-in of the key {row.sign_in.key}: it can only be revoked")
    if not row.digest:
        raise Taken(f"the key {row.name} cannot be read: it can only be revoked")
    return row


def new_key() -> str:
    """256 random bits."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _text(table: Table, name: str, default: str) -> str:
    if table.raw(name) is None:
        return "" if name in table else default
    read: str = table.read(ClientKey, name, default)
    if len(read) > _TEXT_LETTERS or not read.isprintable():
        table.wrong(name, f"at most {_TEXT_LETTERS} printable characters", kind(read))
    return read


def _models(table: Table, default: tuple[str, ...]) -> tuple[str, ...]:
    if "models" not in table:
        table.raw("models")
        return default
    if table.raw("models") is None:
        return ()
    models = table.raw("models")
    if type(models) is list and len(models) > 1000:
        table.wrong("models", "at most 1000 names and patterns", kind(models))
    read: tuple[str, ...] = table.read(ClientKey, "models")
    return read


def described(row: KeyRow, now: float) -> dict[str, Any]:
    """A key for display: without the key itself and without its digest."""
    milliseconds = now * 1000
    if row.revoked:
        state = "revoked"
    elif not row.digest and row.sign_in is None:
        state = "unreadable"
    else:
        state = "expired" if row.expires and row.expires <= milliseconds else "active"
    shown_row: dict[str, Any] = {
        "name": row.name,
        "prefix": row.prefix,
        "state": state,
        "created": stamp(row.created),
        "models": list(row.models),
        "losses": row.losses or None,
        "expires": stamp(row.expires),
        "group": row.group or None,
        "owner": row.owner or None,
        "sign_in_of": row.sign_in.key if row.sign_in is not None else None,
        "revoked": stamp(row.revoked),
        "old_key_until": stamp(row.old_until) if row.old_until > milliseconds else None,
    }
    for name in row.limits.__struct_fields__:
        value = getattr(row.limits, name)
        shown_row[name] = (value / MICRO if name in MONEY else value) if value else None
    return shown_row


def stamp(milliseconds: int) -> str | None:
    """A time in ISO 8601; None for never."""
    if not milliseconds:
        return None
    return (
        datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )
