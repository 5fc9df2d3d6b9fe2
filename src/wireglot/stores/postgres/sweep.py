"""Removing what is no longer wanted, a little at a time. Any number of processes may do it at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from wireglot.stores.postgres.documents import NOW
from wireglot.stores.postgres.pool import LONG_SECONDS, Connection, PostgresPool
from wireglot.stores.records import KindLimits, Swept
from wireglot.stores.sql import from_text, to_text

BATCH_ROWS: Final = 500

# What another process is removing right now is skipped, not waited for.
_EXPIRED_DOCUMENTS: Final = """
DELETE FROM documents WHERE expires > 0 AND expires <= $1 AND ctid = ANY(ARRAY(
    SELECT ctid FROM documents WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2
    FOR UPDATE SKIP LOCKED))
RETURNING kind
"""
_EXPIRED_VAULT: Final = """
DELETE FROM vault WHERE expires <= $1 AND ctid = ANY(ARRAY(
    SELECT ctid FROM vault WHERE expires <= $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING 'vault'
"""
_OLD_USAGE: Final = """
DELETE FROM usage WHERE started < $1 AND ctid = ANY(ARRAY(
    SELECT ctid FROM usage WHERE started < $1 ORDER BY started LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING ''
"""
_SIZES: Final = (
    "SELECT kind, sum(octet_length(body)) FROM documents WHERE kind = ANY($1::text[]) GROUP BY kind"
)
_EVICT: Final = """
WITH oldest AS (
    SELECT tenant, kind, id, created, octet_length(body) AS size FROM documents
    WHERE kind = $1 ORDER BY created, tenant, id LIMIT $3 FOR UPDATE SKIP LOCKED
), chosen AS (
    SELECT *, sum(size) OVER (ORDER BY created, tenant, id) - size AS freed_before FROM oldest
)
DELETE FROM documents d USING chosen c
WHERE d.tenant = c.tenant AND d.kind = c.kind AND d.id = c.id AND c.freed_before < $2
RETURNING c.size
"""
# A process is heard of by the server's clock, so its silence is measured by it too.
_CRASHED: Final = f"""
UPDATE usage SET outcome = 'crash', finished = $1
WHERE outcome = ''
    AND coalesce((SELECT heard < {NOW} - $3 FROM instances i WHERE i.instance = usage.instance), started < $2)
"""
_FORGOTTEN_INSTANCES: Final = f"""
DELETE FROM instances WHERE heard < {NOW} - $1::bigint
    AND NOT EXISTS (SELECT FROM usage WHERE usage.outcome = '' AND usage.instance = instances.instance)
"""


async def sweep(
    pool: PostgresPool, now: int, *, usage_before: int, dead_before: int, kinds: Mapping[str, KindLimits]
) -> Swept:
    # First the crashes: a row that is closed and too old goes in the same sweep.
    crashed = 0
    if dead_before:
        silence = now - dead_before
        crashed = await pool.execute(_CRASHED, now, dead_before, silence, seconds=LONG_SECONDS)
        await pool.execute(_FORGOTTEN_INSTANCES, silence, seconds=LONG_SECONDS)
    expired = await _remove(pool, _EXPIRED_DOCUMENTS, now) + await _remove(pool, _EXPIRED_VAULT, now)
    usage = await _remove(pool, _OLD_USAGE, usage_before) if usage_before else Counter[str]()
    return Swept(
        expired=dict(expired), evicted=await _evict(pool, kinds), usage=usage.total(), crashed=crashed
    )


async def _remove(pool: PostgresPool, statement: str, until: int) -> Counter[str]:
    """By kind. Batches of their own transactions: nobody waits long for a row."""
    gone: Counter[str] = Counter()
    while rows := await pool.fetch(statement, until, BATCH_ROWS, seconds=LONG_SECONDS):
        gone.update(from_text(row[0]) for row in rows)
        if len(rows) < BATCH_ROWS:
            break
    return gone


async def _evict(pool: PostgresPool, kinds: Mapping[str, KindLimits]) -> dict[str, int]:
    limits = {to_text(kind): limits.bytes for kind, limits in kinds.items() if limits.bytes}
    if not limits:
        return {}

    async def work(connection: Connection, _: int) -> dict[str, int]:
        evicted: dict[str, int] = {}
        # Two processes that both saw the same excess would remove it twice.
        async with connection.transaction():
            mine = await connection.fetchval(
                "SELECT pg_try_advisory_xact_lock(hashtextextended('wireglot evict ' || current_schema(), 0))"
            )
            sizes = await connection.fetch(_SIZES, list(limits), timeout=LONG_SECONDS) if mine else ()
            for kind, size in sizes:
                excess = int(size) - limits[kind]
                while excess > 0 and (
                    rows := await connection.fetch(_EVICT, kind, excess, BATCH_ROWS, timeout=LONG_SECONDS)
                ):
                    excess -= sum(row[0] for row in rows)
                    evicted[from_text(kind)] = evicted.get(from_text(kind), 0) + len(rows)
        return evicted

    return await pool.run(work)
