"""Run real clients through Wireglot, each with an upstream of each dialect, and print what became of it.

    python -m clients.run                             # all clients, the demo model as the upstream
    python -m clients.run --only 'codex|gemini' --upstream gemini --trace
    python -m clients.run --double FILE               # and once more with a provider double over HTTP
    python -m clients.run --direct http://127.0.0.1:8790     # no gateway: is the client itself in order?

Logs of the last run stay in `clients/.runs`. The exit code is 1 if a client failed, 2 if nothing could run.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clients import documents
from clients.catalog import CLIENTS, Client
from clients.install import is_there
from clients.memory import Memory, remembered
from clients.packages import HERE
from clients.recorder import Recorder
from clients.report import Table, line, page, plain
from clients.seat import Outcome, Seat
from clients.servers import UPSTREAMS, DidNotStart, gateway, provider_double, shared_double
from clients.upstream import Upstream, keep

RUNS = HERE / ".runs"
DEMO = """\
Upstream: the demo model over HTTP, which thinks in every turn and takes down what it got. An agent reads
five files, each in a turn of its own, an SDK one. PASS means also that every request carried the reasoning
state of every earlier turn exactly as it was answered (signatures, encrypted reasoning,
`reasoning_content`), and that system, tools and old turns stayed equal to the byte from turn to turn (cache
markers apart, which clients move, and the context that OpenClaw renews at the end of each request):
providers' prompt caches hit. Behind the time: tool turns, and earlier turns whose state the last of them
carried."""


@dataclass(frozen=True)
class Address:
    """Where the clients of one column are pointed at. `notes`: what the upstream behind it took down."""

    base: str
    key: str
    upstream: str
    notes: Upstream | None = None


def one(client: Client, address: Address, folder: Path, trace: bool) -> Outcome:
    """Run one client in a place of its own, and judge what the upstream got."""
    notes = address.notes
    files = client.files if notes is not None else 0
    wire = folder / "wire"
    with (
        _recorded(address.base, wire, trace or documents.are_checked()) as url,
        Seat(url or address.base, address.key, folder, address.upstream, files) as seat,
    ):
        outcome = seat.run(client.launch(seat), finals=client.finals, timeout=client.timeout)
        if notes is None:
            return outcome
        exchanges = notes.exchanges(str(seat.marker))
    if trace:
        keep(exchanges, folder / "upstream.jsonl")
    wrong = documents.problems(client.speaks, address.upstream, exchanges, wire)
    return judged(outcome, remembered(exchanges, client.moved), files, wrong)


def judged(outcome: Outcome, memory: Memory, turns: int, wrong: Sequence[str] = ()) -> Outcome:
    """A client that printed the word has passed only if its upstream kept its memory in every turn. `wrong`:
    what the vendors' schemas have against documents of the gateway."""
    problems = [outcome.reason] if outcome.reason else []
    if outcome.passed and memory.turns < turns:
        problems.append(f"{memory.turns} tool turns instead of {turns}")
    if outcome.passed and memory.thoughts < memory.turns:
        problems.append(f"only {memory.thoughts} of {memory.turns} turns thought")
    problems += [*memory.problems, *wrong]
    return Outcome(not problems, outcome.seconds, "; ".join(problems), memory.turns, memory.thoughts)


def column(
    clients: Sequence[Client], address: Address, folder: Path, options: argparse.Namespace
) -> dict[tuple[str, str], Outcome]:
    """Run all clients against one address, some at a time."""

    def run(client: Client) -> tuple[tuple[str, str], Outcome]:
        outcome = one(client, address, folder / client.name, options.trace)
        print(line(client, address.upstream, outcome), flush=True)
        return (client.name, address.upstream), outcome

    with ThreadPoolExecutor(options.jobs) as pool:
        return dict(pool.map(run, clients))


def through_gateway(
    heading: str,
    about: str,
    double: str | Upstream,
    folder: Path,
    clients: Sequence[Client],
    options: argparse.Namespace,
) -> Table:
    """Every client with every upstream dialect, one run of the gateway per dialect."""
    notes = double if isinstance(double, Upstream) else None
    url = double.url if isinstance(double, Upstream) else double
    cells: dict[tuple[str, str], Outcome] = {}
    print(f"\n{heading}", flush=True)
    for upstream in options.upstream:
        place = folder / upstream
        with (
            _recorded(url, place / "upstream-wire", options.trace and notes is None) as reached,
            gateway(upstream, reached, place, thinks=notes is not None) as (base, key),
        ):
            cells |= column(clients, Address(base, key, upstream, notes), place, options)
    return Table(heading, about, clients, options.upstream, cells)


def tables(clients: Sequence[Client], options: argparse.Namespace) -> Iterator[Table]:
    """What was asked for, table by table."""
    if options.direct:
        address = Address(options.direct.rstrip("/"), "sk-none", "direct")
        cells = column(clients, address, RUNS / "direct", options)
        yield Table("Without a gateway", "", clients, ["direct"], cells)
        return
    if options.upstream_url is None:
        with Upstream() as upstream:
            yield through_gateway("The demo model", DEMO, upstream, RUNS / "demo", clients, options)
    about = "Upstream: a provider double over HTTP, written without knowledge of Wireglot."
    heading, folder = "A provider double", RUNS / "double"
    if options.upstream_url is not None:
        yield through_gateway(heading, about, options.upstream_url, folder, clients, options)
    elif options.double is not None:
        with provider_double(options.double, folder) as double:
            yield through_gateway(heading, about, double, folder, clients, options)


def main(arguments: list[str]) -> int:
    """Run what was asked for, print the tables, write the page."""
    options = _options(arguments)
    clients = [client for client in CLIENTS if re.search(options.only, client.name)]
    if options.list:
        print("\n".join(client.name for client in clients))
        return 0
    missing = {c.package.name for c in clients if not is_there(c.package)}
    if missing or not clients:
        print(f"not installed: {', '.join(sorted(missing))}" if missing else "no client has such a name")
        return 2
    # As an exception, so that the servers and clients started here do not outlive it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        finished = list(tables(clients, options))
    except DidNotStart as problem:
        print(problem, file=sys.stderr)
        return 2
    for table in finished:
        print(f"\n{plain(table)}")
    failures = sum(table.failures() for table in finished)
    total = sum(len(table.cells) for table in finished)
    print(f"\n{total - failures} of {total} passed" + (f"; logs in {RUNS}" if failures else ""))
    if options.write:
        options.write.write_text(page(finished, _node()))
    return 1 if failures else 0


@contextmanager
def _recorded(url: str | None, folder: Path, trace: bool) -> Iterator[str | None]:
    if url is None or not trace:
        yield url
        return
    with Recorder(url, folder) as recorder:
        yield recorder.url


def _node() -> str:
    return subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")


def _double(text: str) -> Path:
    path = shared_double() if text == "shared" else Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no {path}")
    return path


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="clients.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="clients whose name matches")
    parser.add_argument(
        "--upstream", action="append", choices=UPSTREAMS, help="this upstream dialect (again for more; all)"
    )
    parser.add_argument(
        "--double", type=_double, metavar="FILE", help="a provider double to start ('shared')"
    )
    parser.add_argument(
        "--upstream-url", metavar="URL", help="a provider double that runs, instead of the demo model"
    )
    parser.add_argument("--direct", metavar="URL", help="no gateway: the clients call this address")
    parser.add_argument("--jobs", type=int, default=2, help="clients at once (2)")
    parser.add_argument("--trace", action="store_true", help="keep every byte on the wire in clients/.runs")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of the documentation")
    parser.add_argument("--list", action="store_true", help="only name the clients")
    options = parser.parse_args(arguments)
    if options.write and (options.only or options.upstream or options.direct):
        parser.error("--write needs the whole table")
    options.upstream = options.upstream or list(UPSTREAMS)
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
