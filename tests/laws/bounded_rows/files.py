"""Files of other programs, and our own: configurations that are imported, traces, exports of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.laws.bounded import Row
from tests.laws.entry_points import STORE, TRACE, imported
from wireglot.cli.import_ import ccr, litellm
from wireglot.cli.import_.draft import places, written
from wireglot.cli.import_.source import SourceNode, UnreadableSource, read_json5, read_yaml
from wireglot.stores.records import Document
from wireglot.stores.transfer import export_lines, import_lines
from wireglot_core.traces.file import BadTrace, read_trace, write_trace
from wireglot_core.traces.trace import Row as TraceRow
from wireglot_core.traces.trace import Trace, TraceFrame, TraceMessage

LITELLM = """
  - model_name: model-{0}
    litellm_params:
      model: openai/gpt-{0}
      api_base: https://host-{0}.example/v1
      api_key: os.environ/KEY_{0}
"""
CCR = '{{name: "p{0}", api_base_url: "https://h{0}.example/v1/chat/completions", api_key: "$K{0}", models: ["m"]}}'


def of_litellm(text: str) -> object:
    root, overridden = read_yaml(text)
    return written(*litellm.convert(root, {}, overridden), "import")


def of_ccr(text: str) -> object:
    return written(*ccr.convert(read_json5(text), {}), "import")


def repeated(head: str, item: str, tail: str = "", between: str = "") -> Callable[[int], str]:
    return lambda n: head + between.join(item.format(at) for at in range(n)) + tail


def chain(n: int) -> str:
    merged = (f"t{at}: &t{at} {{<<: [*t{at - 1}, *t{at - 1}]}}\n" for at in range(1, n))
    return "t0: &t0 {k: 1}\n" + "".join(merged)


def trace(n: int) -> bytes:
    frames = [TraceFrame(float(at), "{}") for at in range(n)]
    message = TraceMessage(frames=frames, headers=[("a", "b")] * n)
    return write_trace(Trace(row=TraceRow(id="a", at=1.0), request=message, answer=message, notes=["n"] * n))


class Records:
    """Implements what `transfer` needs of an `Engine`."""

    def __init__(self, n: int = 0) -> None:
        self.number = n

    async def export(self) -> Any:
        for at in range(self.number):
            yield Document("caller", "kind", f"id-{at}", b"{}")

    async def load(self, records: list[object]) -> None:
        self.number += len(records)


def exported(n: int) -> list[bytes]:
    engine: Any = Records(n)

    async def lines() -> list[bytes]:
        return [line async for line in export_lines(engine)]

    return asyncio.run(lines())


def taken(lines: list[bytes]) -> None:
    engine: Any = Records()
    asyncio.run(import_lines(engine, lines))


ROWS = [
    Row("models", repeated("model_list:", LITELLM), of_litellm, 10, entry=imported("litellm")),
    Row(
        "lines of settings with one name",
        lambda n: [SourceNode("x", f"unknown[{at}]", at) for at in range(n)],
        places,
        n=2_000,
        entry=imported("litellm"),
    ),
    Row(
        "lists that stay open",
        lambda n: "model_list: " + "[" * n,
        of_litellm,
        n=100,
        refuses=(UnreadableSource,),
        entry=imported("litellm"),
    ),
    Row(
        "a chain of tables, each with the one before it twice",
        chain,
        of_litellm,
        n=20,
        refuses=(UnreadableSource,),
    ),
    Row("a number without an end", lambda n: "{a: " + "1" * n + "x}", of_ccr, refuses=(UnreadableSource,)),
    Row("providers", repeated("{Providers: [", CCR, "]}", ","), of_ccr, 10, entry=imported("ccr")),
    Row(
        "comments",
        lambda n: "/*" * n + "*/{" + "//a\n" * n,
        of_ccr,
        refuses=(UnreadableSource,),
        entry=imported("ccr"),
    ),
    Row("a trace with many events", trace, read_trace, n=200, entry=TRACE),
    Row("a trace that does not end", lambda n: trace(n)[:-20], read_trace, refuses=(BadTrace,), entry=TRACE),
    Row("records of a store", exported, taken, n=200, entry=STORE),
]
