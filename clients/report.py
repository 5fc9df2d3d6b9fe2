"""The table client x upstream dialect, for the terminal and as a page of the documentation."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clients.catalog import Client
from clients.packages import CLIENT_PACKAGES
from clients.seat import Outcome

Cells = Mapping[tuple[str, str], Outcome]
"""(client name, upstream) -> what became of it."""


@dataclass(frozen=True)
class Table:
    """All runs against one kind of upstream."""

    heading: str
    about: str
    clients: Sequence[Client]
    upstreams: Sequence[str]
    cells: Cells

    def failures(self) -> int:
        return sum(not outcome.passed for outcome in self.cells.values())

    def rows(self) -> list[list[str]]:
        head = ["client", "speaks", *(f"→ {upstream}" for upstream in self.upstreams)]
        return [
            head,
            *(
                [
                    client.title,
                    client.speaks,
                    *(_cell(self.cells[client.name, upstream]) for upstream in self.upstreams),
                ]
                for client in self.clients
            ),
        ]


def line(client: Client, upstream: str, outcome: Outcome) -> str:
    """One finished run, as it is reported while the others go on."""
    return f"{_cell(outcome):30} {client.name:24} → {upstream:18} {outcome.reason}".rstrip()


def plain(table: Table) -> str:
    """For the terminal."""
    rows = table.rows()
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join([table.heading, *(line.rstrip() for line in lines)])


def page(tables: Sequence[Table], node: str) -> str:
    """For the documentation."""
    versions = (f"`{spec}`" for package in CLIENT_PACKAGES for spec in package.specs)
    lines = [
        "# Real clients",
        "",
        "<!-- Written by clients/run.py (`make clients`). Do not edit. -->",
        "",
        "Each client below was installed, pointed at `wireglot serve` as",
        "[Connect your client](../clients.md) tells it, and given a prompt that names a file with a random",
        "word in it. The model behind the gateway is a script: it calls one of the tools the client offers,",
        "and repeats what it finds in the result. PASS means that the client understood the call, ran",
        "its tool, sent the result back and printed the word. The SDKs do so twice, once with a whole answer",
        "and once streamed. Seconds are the client's whole run, start-up included.",
        "",
        "`make clients` repeats it. To write this page:",
        '`make clients ARGS="--double FILE --write docs/reference/clients.md"`.',
    ]
    for table in tables:
        lines += ["", f"## {table.heading}", "", table.about, "", *_markdown(table.rows())]
    lines += [
        "",
        "## Versions",
        "",
        f"{', '.join(versions)}; Python {platform.python_version()}, Node {node}, "
        f"{platform.system()} {platform.machine()}.",
    ]
    return "\n".join(lines) + "\n"


def _markdown(rows: list[list[str]]) -> list[str]:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return [head, "|---" * len(rows[0]) + "|", *rest]


def _cell(outcome: Outcome) -> str:
    text = f"{'PASS' if outcome.passed else 'FAIL'} {outcome.seconds:.1f} s"
    return f"{text}, {outcome.turns} turns, {outcome.thoughts} kept" if outcome.turns else text
