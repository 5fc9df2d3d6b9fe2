"""[keys] and [groups] -> the client keys, by their hashes, and their limits."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import msgspec

from wireglot.gateway.config.problems import Problems, key_path, kind, meant, shown
from wireglot.gateway.config.table import Setting, Table, declared
from wireglot.gateway.setting_tables import ManagedSettings, SafeguardSettings
from wireglot.gateway.settings import ClientKey, Group
from wireglot.stores.records import MICRO, KeyQuotas
from wireglot_core.providers.prices import micro

_EXPECTED: Final = '"sha256:" and the 64 hex digits of the key\'s SHA-256'
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@ -]{0,63}")
MONEY: Final = frozenset(name for name, quota in declared(KeyQuotas).items() if quota.unit == "money")
_HEX_DIGITS: Final = 64
_UNLIMITED: Final = KeyQuotas()
RESERVED: Final = frozenset({"admin", "local"})
"""Names of callers that have no key: their data and rights must not belong to a key."""
NAME_EXPECTED: Final = "a name of letters, digits, '.', '_', '@' and '-', but not 'admin' or 'local'"


def read_managed(table: Table, under: ManagedSettings) -> ManagedSettings:
    """A table `claude_code`, applied over the general one."""
    value = table.raw("settings")
    if value is not None and not isinstance(value, Mapping):
        table.wrong("settings", "a table", kind(value))
        value = None
    table.close()
    if value is None:
        return under
    _check_json(value, table.at("settings"), table.problems)
    return ManagedSettings(_merged(under.settings or {}, value))


def _check_json(value: object, path: str, problems: Problems) -> None:
    """Reports TOML values that JSON does not have: dates, times, nan and inf."""
    match value:
        case Mapping():
            for name, each in value.items():
                _check_json(each, key_path(path, name), problems)
        case list():
            for number, each in enumerate(value):
                _check_json(each, f"{path}[{number}]", problems)
        case str() | bool() | int():
            pass
        case float() if math.isfinite(value):
            pass
        case _:
            problems.add(path, "a JSON value: text, a number, true, false, a list or a table", kind(value))


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[name] = _merged(below, value) if both and below is not None else value
    return merged


def read_groups(value: object, managed: ManagedSettings, problems: Problems) -> dict[str, Group]:
    """`managed`: the general settings."""
    if not isinstance(value, Mapping):
        problems.add("groups", "a table", kind(value))
        return {}
    return {name: _read_group(name, given, managed, problems) for name, given in value.items()}


def _read_group(name: str, given: object, managed: ManagedSettings, problems: Problems) -> Group:
    path = key_path("groups", name)
    if not is_name(name):
        problems.add(path, NAME_EXPECTED, shown(name))
    if not isinstance(given, Mapping):
        problems.add(path, "a table", kind(given))
        return Group(name, managed=managed)
    table = Table(given, path, problems)
    shared, checks = table.table("shared"), table.table("safeguards")
    group = table.over(
        Group(name),
        limits=read_limits(table),
        shared=read_limits(shared),
        safeguards=checks.over(SafeguardSettings()) if checks.values else None,
        managed=read_managed(table.table("claude_code"), managed),
    )
    for each in (shared, checks, table):
        each.close()
    return group


def read_keys(value: object, groups: Mapping[str, Group], problems: Problems) -> tuple[ClientKey, ...]:
    """Each key with its group's values for what it does not set."""
    if not isinstance(value, Mapping):
        problems.add("keys", "a table", kind(value))
        return ()
    keys: dict[str, ClientKey] = {}
    for name, given in value.items():
        path = key_path("keys", name)
        if not is_name(name):
            problems.add(path, NAME_EXPECTED, shown(name))
        key = _read(name, given, path, problems)
        if key is None:
            continue
        if key.group and key.group not in groups:
            expected = f"a group of [groups]{meant(key.group, groups)}"
            problems.add(key_path(path, "group"), expected, shown(key.group))
        if key.digest in keys:
            problems.add(path, "a unique key", f"the same key as {keys[key.digest].name}")
        keys[key.digest] = key.in_group(groups.get(key.group))
    return tuple(keys.values())


def _read(name: str, given: object, path: str, problems: Problems) -> ClientKey | None:
    if not isinstance(given, Mapping):
        digest = _digest(given, path, problems)
        return ClientKey(name, digest) if digest else None
    table = Table(given, path, problems)
    digest = _digest(table.raw("hash"), table.at("hash"), problems)
    key = table.over(
        ClientKey(name, digest), digest=digest, limits=read_limits(table), expires=read_expiry(table)
    )
    table.close()
    return key if digest else None


def is_name(name: str) -> bool:
    """Whether a key, and so a caller, may have this name."""
    return _NAME.fullmatch(name) is not None and name not in RESERVED


def read_limits(table: Table, over: KeyQuotas = _UNLIMITED) -> KeyQuotas:
    """The limits of a table, applied over others. Money is written in units of the currency and stored in
    millionths."""
    changed: dict[str, int] = {}
    for name, quota in declared(KeyQuotas).items():
        value = table.raw(name)
        if value is None:
            if name in table:  # JSON's null: no limit
                changed[name] = 0
        elif name not in MONEY:
            changed[name] = table.read(KeyQuotas, name)
        elif (amount := _amount(value, quota)) is not None:
            changed[name] = amount
        else:
            most = int((quota.most or 0) // MICRO)
            table.wrong(name, f"an amount of money from 0 to {most}, like 2.50", shown(value))
    return msgspec.structs.replace(over, **changed)


def _amount(value: Any, quota: Setting) -> int | None:
    """Money in millionths; None if it is invalid or out of bounds."""
    if type(value) not in (int, float) or not 0 <= value <= (quota.most or 0) / MICRO:
        return None
    return max(micro(Decimal(str(value))), 1 if value else 0)  # 0 would mean no limit


def read_expiry(table: Table, default: int = 0) -> int:
    """When a key expires, in unix milliseconds; 0: never."""
    value: Any = table.raw("expires")
    if value is None:
        return 0 if "expires" in table else default
    found = moment(value)
    if found is None:
        table.wrong("expires", "a date or a time, like 2027-01-31 or 2027-01-31T18:00:00Z", kind(value))
    return found or default


def moment(value: object) -> int | None:
    """A date (its beginning) or a time; UTC unless it names a time zone."""
    if type(value) is str:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        return None
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    try:
        found = int(value.timestamp() * 1000)
    except (OverflowError, ValueError):
        return None
    return found if found > 0 else None


def _digest(value: object, path: str, problems: Problems) -> str:
    """The value may be the key itself, entered by mistake: only its length is reported."""
    if type(value) is not str or not value.startswith("sha256:"):
        problems.add(path, _EXPECTED, kind(value))
        return ""
    digits = value.removeprefix("sha256:")
    if len(digits) != _HEX_DIGITS:
        problems.add(path, _EXPECTED, f"{len(digits)} digits")
        return ""
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", digits):
        problems.add(path, _EXPECTED, "characters that are not hex digits")
        return ""
    return digits.lower()
