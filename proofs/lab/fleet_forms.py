"""What a fleet's gateways keep in PostgreSQL and Redis, as every version of them has to find it."""

from __future__ import annotations

import re
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import msgspec
from redis.asyncio import Redis

_SCHEMA: Final = "wireglot"
_MACHINE: Final = re.compile(r"[\w.-]+-\d+-[0-9a-f]{8}\b")
_HEX: Final = re.compile(r"[0-9a-f]{16,}")
_INTEGER: Final = re.compile(rb"-?\d+")
_MILLISECONDS: Final = re.compile(rb"\d{13}\.\d{3}")
_DATE: Final = re.compile(r"\b20\d\d-\d\d(-\d\d)?\b|\b[12]\d{9,12}\b")


class FleetForms(msgspec.Struct):
    postgres: list[str]
    """Tables with their columns, indexes, and the version of the schema."""
    redis: list[str]
    """Keys, what they hold, and whether they end by themselves. Locks are there or not, by chance."""


async def read_fleet(postgres: str, redis: str) -> FleetForms:
    return FleetForms(await postgres_schema(postgres), await redis_forms(redis))


async def postgres_schema(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        columns = await connection.fetch(
            "SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default,"
            " collation_name FROM information_schema.columns WHERE table_schema = $1 ORDER BY 1, 2",
            _SCHEMA,
        )
        indexes = await connection.fetch(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = $1 ORDER BY indexname", _SCHEMA
        )
        version = await connection.fetchval(f"SELECT version FROM {_SCHEMA}.wireglot_version")
    finally:
        await connection.close()
    return [
        *(" ".join(str(value) for value in row.values()) for row in columns),
        *(row["indexdef"] for row in indexes),
        f"version {version}",
    ]


async def redis_forms(url: str) -> list[str]:
    found = set()
    async with Redis.from_url(url) as client:
        async for key in client.scan_iter(count=1000):
            if b":lock:" in key:
                continue
            reported: Any = await client.type(key)
            kind = reported.decode()
            ends = "ends" if await client.pttl(key) > 0 else "stays"
            held = await _held(client, key, kind)
            found |= {f"{_plain(key)} {kind} {ends} {each}" for each in held}
    return sorted(found)


async def _held(client: Any, key: bytes, kind: str) -> list[str]:
    if kind == "zset":
        return [
            f"{_plain(member)}: {'milliseconds' if score > 1e12 else score}"
            for member, score in await client.zrange(key, 0, -1, withscores=True)
        ]
    value: bytes = await client.get(key)
    if b":v:" in key:
        return [f"sealed, version {value[0] & 0x7F}"]
    if _INTEGER.fullmatch(value):
        return ["an integer"]
    if _MILLISECONDS.fullmatch(value):
        return ["milliseconds with three digits"]
    return [_plain(value)]


def _plain(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace").replace("\x1f", "|")
    if ":v:" in text:
        return text  # made of what was said, and must be found again by others
    text = _HEX.sub("hex", _MACHINE.sub("a-machine", text))
    return _DATE.sub(lambda date: re.sub(r"\d", "0", date[0]), text)
