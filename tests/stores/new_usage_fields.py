"""A program of tomorrow: its package declares one more token count, `audio`, and more fields of a usage row.

It works on a store that today's package has made, and tells as JSON what became of the new ones everywhere.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from wireglot.cli.usage import table_lines
from wireglot.gateway.observe.log import JsonLines
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.state.ledger.report import query_of, report
from wireglot.gateway.state.ledger.usage_ledger import completed
from wireglot.http.redaction import Redactor
from wireglot.stores import open_engine
from wireglot.stores.journal.journal import Journal
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import UsageQuery, UsageRow
from wireglot.stores.transfer import export_lines, import_lines
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers.prices import Price, cost

HEARD: dict[str, Any] = {"audio": 7}
USAGE = Usage(input=1, output=2, **HEARD)
FIELDS: dict[str, Any] = {"region": "a\\b", "tier": "fast", "batched": True, "tags": ("x", "y"), "weight": 3}


async def work(url: str, folder: Path) -> dict[str, Any]:
    """In the order of a request: its row, the journal, the store, what is reported about it."""
    record = ExchangeRecord("new", 0.0, caller="alice", provider="p", upstream_model="m", session="s")
    record.usage, record.usage_source, record.status = USAGE, "provider", 200
    intent = UsageRow("new", "alice", 1000, "one", session="s")
    row = completed(intent, record, price=Price(1_000_000, 0), flags=(), first_byte=None, now=0.5)
    row = msgspec.structs.replace(row, **FIELDS)

    journal = Journal(folder, "tomorrow", limit=1 << 20)
    await journal.start()
    journal.append(row)
    journaled, _ = journal.read(10)
    await journal.close()

    engine = await open_engine(url)
    await engine.ledger.apply(journaled)
    ledger = engine.ledger
    (total,) = await ledger.totals(UsageQuery())
    rows = await ledger.rows(UsageQuery(), limit=10)
    reported = await report(ledger, query_of({"start": "0", "group_by": "key"}), "USD")
    sessions = await ledger.sessions("alice", limit=10)
    copy = MemoryEngine()
    await import_lines(copy, [line async for line in export_lines(engine)])
    copied = await copy.ledger.rows(UsageQuery(), limit=10)
    spent = await ledger.spent("alice", 0)
    await engine.close()

    metrics = Metrics()
    metrics.finish(record)
    return {
        "row": getattr(row, "audio", None),
        "journal": [getattr(each, "audio", None) for each in journaled],
        "rows": {each.id: getattr(each, "audio", None) for each in rows},
        "copied": {each.id: getattr(each, "audio", None) for each in copied},
        "fields": {each.id: [getattr(each, name, None) for name in FIELDS] for each in rows},
        "total": total.tokens,
        "spent": spent,
        "session": sessions[0].tokens,
        "report": reported["total"],
        "table": table_lines(reported, io.StringIO())[0].split(),
        "metrics": [line for line in metrics.render().decode().splitlines() if 'kind="audio"' in line],
        "log": json.loads(JsonLines(Redactor()).request(record))["tokens"],
        "cost": cost(Price(1_000_000, 0), USAGE),
    }


if __name__ == "__main__":
    json.dump(asyncio.run(work(sys.argv[1], Path(sys.argv[2]))), sys.stdout)
