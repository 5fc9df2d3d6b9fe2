"""Do real agents survive what they survive without a gateway? A provider fails at first, and then is well.

    python -m proofs.lab.client_faults [--only claude-code] [--upstream own] [--direct]

Each client reads a file by a tool and says what is in it, as in `make clients`; the first answers that it
gets from its provider are errors. It must come to its end all the same. `--upstream` takes a dialect, or
`own` for the client's (again for more); `--direct` leaves the gateway out: what does it do by itself?
The clients must be installed (`make clients`).
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from clients.catalog import CLIENTS, Client
from clients.install import is_there
from clients.seat import Outcome, Seat
from clients.servers import UPSTREAMS, gateway
from proofs.lab.result import Run, add_options
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream

_NAMES: Final = ("claude-code", "codex", "gemini-cli", "opencode-anthropic")
_PATIENCE_SECONDS: Final = 300.0
_COUNTS: Final = re.compile(r"count_tokens|countTokens|/models$")
"""Beside the conversation: such a request takes no failure away from it."""


class Fault(NamedTuple):
    name: str
    times: int
    behaviour: Behaviour


FAULTS: Final = (
    Fault("6 x 500", 6, Behaviour(error=500)),
    Fault("4 x 529", 4, Behaviour(error=529)),
    Fault("2 x 429 with retry-after", 2, Behaviour(error=429, retry_after=2)),
    Fault("2 x 429 without retry-after", 2, Behaviour(error=429)),
)


class Seen(NamedTuple):
    outcome: Outcome
    failed: int
    """How many failures the provider reported."""
    requests: int


@contextmanager
def failing(fault: Fault) -> Iterator[tuple[ScriptedUpstream, list[int]]]:
    """A provider that fails so often, and a list as long as it has failed."""
    reported: list[int] = []
    lock = threading.Lock()

    def decide(request: Recorded) -> Behaviour | None:
        with lock:
            if request.method != "POST" or _COUNTS.search(request.path) or len(reported) >= fault.times:
                return None
            reported.append(len(reported))
            return fault.behaviour

    with ScriptedUpstream(decide=decide) as upstream:
        yield upstream, reported


def one(client: Client, fault: Fault, dialect: str, *, direct: bool) -> Seen:
    with failing(fault) as (upstream, reported), tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with (
            _before(upstream, dialect, folder, direct) as (base, key),
            Seat(base, key, folder, dialect) as seat,
        ):
            outcome = seat.run(client.launch(seat), finals=client.finals, timeout=_PATIENCE_SECONDS)
        return Seen(outcome, len(reported), len(upstream.requests))


@contextmanager
def _before(
    upstream: ScriptedUpstream, dialect: str, folder: Path, direct: bool
) -> Iterator[tuple[str, str]]:
    if direct:
        yield upstream.url, "sk-none"
        return
    with gateway(dialect, upstream.url, folder / "gateway") as served:
        yield served


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="proofs.lab.client_faults", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="clients whose name matches")
    parser.add_argument("--upstream", action="append", choices=("own", *UPSTREAMS))
    parser.add_argument("--direct", action="store_true", help="without a gateway")
    parser.add_argument("--jobs", type=int, default=2, help="clients at once (2)")
    add_options(parser)
    options = parser.parse_args()
    clients = [client for client in CLIENTS if client.name in _NAMES and re.search(options.only, client.name)]
    missing = sorted({client.package.name for client in clients if not is_there(client.package)})
    if missing or not clients:
        print(f"not installed: {', '.join(missing)}" if missing else "no client has such a name")
        return 2
    run = Run(
        "client_faults_direct" if options.direct else "client_faults",
        "real clients survive 6 x 500, 4 x 529, 429 with and without Retry-After",
    )
    cases = [
        (client, fault, client.speaks if upstream == "own" else upstream)
        for upstream in options.upstream or ["own"]
        for client in clients
        for fault in FAULTS
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        seen = list(pool.map(lambda case: one(*case, direct=options.direct), cases))
    run.counts["runs"] = len(cases)
    run.counts["survived"] = sum(each.outcome.passed for each in seen)
    for (client, fault, dialect), each in zip(cases, seen, strict=True):
        name = f"{client.title} before {dialect}, {fault.name}"
        survived = each.outcome.passed and each.failed == fault.times
        how = f"{each.outcome.seconds:.0f} s, {each.failed} of {each.requests} requests failed"
        verdict = "survives" if survived else each.outcome.reason or "was not failed so often"
        run.figure(
            name,
            demanded="survives",
            measured=f"{verdict} ({how})",
            holds=survived,
        )
    return run.write(options.out)


if __name__ == "__main__":
    sys.exit(main())
