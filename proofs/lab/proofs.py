"""The proofs that are published, in the order of docs/reliability.md: which command makes which line.

`python -m proofs.lab.proofs [--only NAME,...] [--tier lab|soak]` runs them one after the other and keeps the
result files in docs/results. A result that holds for the packages as they are now is not made again, so that
a run that was ended continues where it was.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Final, Literal, NamedTuple

from proofs.lab.dependencies import packages
from proofs.lab.result import Result, git, read

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "docs" / "results"

Tier = Literal["lab", "soak"]
"""soak: what is long by its nature."""


class Proof(NamedTuple):
    name: str
    """Of the result file."""
    title: str
    demanded: str
    command: str
    """The module and its options, in the root of the tree."""
    tier: Tier = "lab"
    quick: str = ""
    """The tests that try the same in small at every change."""

    @property
    def covers(self) -> tuple[str, ...]:
        """The packages below src that it depends on: a change in one of them makes it old."""
        return packages(self.command.split()[0])


PROOFS: Final = (
    Proof(
        "splits",
        "every 2-way split and 10,000 random splits of streams, all pairs of dialects",
        "bit-identical",
        "proofs.lab.splits",
        quick="tests/core/laws/test_chunking.py",
    ),
    Proof(
        "cuts",
        "the provider's connection is cut at every byte of 16 streams (end without last chunk, reset, proper "
        "last chunk), for every dialect of a client",
        "one proper error, or complete if its end had arrived; never an invented end, no cut argument",
        "proofs.lab.cuts",
        quick="tests/core/laws/test_truncation.py",
    ),
    Proof(
        "sim",
        "seeds of the whole gateway on a simulated machine: cuts, providers and disks that fail or are "
        "slow, clock jumps, reloads, signals, kills, losses of power",
        "nothing acknowledged lost or doubled; every stream ends once; no task, permit or byte stays; "
        "drains and reloads end",
        "proofs.simulation --seeds 2000",
        quick="tests/simulation/test_sim.py",
    ),
    Proof(
        "aborts",
        "10,000 clients leave: queued, backing off, before a silent provider, mid-stream, in background",
        "the provider's connection is closed within 1 s in 99.9 %; no task, socket or permit stays; "
        "ledger complete",
        "proofs.lab.aborts",
    ),
    Proof(
        "kill",
        "500 x `kill -9` under load, SQLite",
        "nothing acknowledged lost or doubled; back within 2 s",
        "proofs.lab.kill --kills 500",
        quick="tests/lab/test_trials_in_small.py",
    ),
    Proof(
        "kill_fleet",
        "50 x `kill -9` of a machine of a fleet, PostgreSQL and Redis",
        "nothing acknowledged lost or doubled; back within 2 s",
        "proofs.lab.kill_fleet --kills 50",
        quick="tests/fleet/test_fleet.py",
    ),
    Proof(
        "store_faults",
        "the n-th I/O operation of the store fails, n = 1, 2, 3 ...; disk full; file damaged; clock jumps",
        "no crash, nothing acknowledged lost, recovers",
        "proofs.lab.store_faults",
        quick="tests/stores/test_sqlite_faults.py",
    ),
    Proof(
        "crosstalk",
        "1,000,000 exchanges, each with unique values, 20 % of clients leave, 10 % of providers fail",
        "0 bytes of another caller",
        "proofs.lab.crosstalk",
    ),
    Proof(
        "drain",
        "SIGTERM with 500 open streams",
        "0 lost before the deadline; the rest are reported; ledger complete",
        "proofs.lab.drain",
    ),
    Proof(
        "reloads",
        "100 reloads under load, half of them broken or empty",
        "0 failed requests, no request without a valid key admitted",
        "proofs.lab.reloads",
    ),
    Proof(
        "storm",
        "500 clients, a provider that answers 503 to everything and then recovers",
        "attempts at most 1.2x requests; recovered within 15 s",
        "proofs.lab.storm",
        quick="tests/gateway/faults/test_faults_breaker.py",
    ),
    Proof(
        "client_faults",
        "Claude Code, Codex, Gemini CLI and opencode with 6 x 500, 4 x 529, 429 with and without Retry-After",
        "every one finishes its work",
        "proofs.lab.client_faults --upstream own --upstream openai-chat",
    ),
    Proof(
        "failover",
        "TLS to PostgreSQL and Redis; the primary dies, a replica is promoted (Sentinel; hosts in the URL); "
        "PgBouncer in transaction mode",
        "nothing acknowledged lost, no restart of the gateway",
        "proofs.lab.failover",
        quick="tests/fleet",
    ),
    Proof(
        "big_bodies",
        "valid bodies of the worst kind next to small requests",
        "no callback of the loop over 0.25 s",
        "proofs.lab.big_bodies",
        quick="tests/gateway/faults/test_faults_big_bodies.py",
    ),
    Proof(
        "streams",
        "1,000 streams x 2 events a second, 30 minutes",
        "memory flat within 3 %; no stall of the loop over 100 ms",
        "proofs.lab.streams --minutes 30",
        tier="soak",
    ),
    Proof(
        "fleet_soak",
        "90 minutes of mixed traffic on a fleet with PostgreSQL and Redis",
        "memory flat within 3 %; no stall of the loop over 100 ms outside of big bodies",
        "proofs.lab.fleet_soak --minutes 90",
        tier="soak",
        quick="tests/fleet/test_fleet.py",
    ),
    Proof(
        "slow",
        "5,000 idle connections, 500 slow heads, 500 slow bodies, 500 clients that do not read, bombs",
        "good clients unharmed, memory bounded",
        "proofs.lab.slow",
    ),
    Proof(
        "fuzz",
        "fuzz by coverage: HTTP bytes, JSON bodies, event streams, settings, envelopes, ids: 1,000,000 each",
        "0 crashes, 0 hangs, 0 x 5xx, only typed errors",
        "proofs.lab.fuzz",
        tier="soak",
        quick="tests/core/laws/test_garbage.py",
    ),
    Proof(
        "secrets",
        "20 planted secrets through every class of error, log level, metric, trace, page and dump",
        "0 hits",
        "proofs.lab.secrets",
    ),
    Proof(
        "doors",
        "smuggling, Host, Origin and CORS, routes without keys, SSRF, TLS, isolation of callers, forged and "
        "transplanted envelopes",
        "0 admitted",
        "proofs.lab.doors",
        quick="tests/lab/test_doors.py",
    ),
)  # fmt: skip


def kept(proof: Proof, folder: Path = RESULTS) -> Result | None:
    path = folder / f"{proof.name}.json"
    return read(path) if path.exists() else None


class Age(NamedTuple):
    """How old a result is, by the history of the tree."""

    commits: int
    """Made after it, by the one that this tree is of."""
    changed: tuple[str, ...]
    """The packages it covers that have changed since, also where that is not committed yet."""


def age(proof: Proof, result: Result) -> Age | None:
    """None where the history does not have the commit: a shallow clone, or a source archive."""
    since = result.commit.removesuffix("+")
    count = git(ROOT, "rev-list", "--count", f"{since}..HEAD") if since else ""
    if not count:
        return None
    files = git(ROOT, "diff", "--name-only", since, "--", "src").splitlines()
    changed = {file.split("/")[2].removesuffix(".py") for file in files}
    return Age(int(count), tuple(name for name in proof.covers if name in changed))


def is_current(proof: Proof) -> bool:
    """Whether its kept result holds for the packages as they are now."""
    result = kept(proof)
    if result is None or result.verdict != "held" or result.commit.endswith("+"):
        return False
    since = age(proof, result)
    return since is not None and not since.changed


def is_built(proof: Proof) -> bool:
    return importlib.util.find_spec(proof.command.split()[0]) is not None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.proofs", description=__doc__)
    parser.add_argument("--only", default="", help="names, by commas")
    parser.add_argument("--tier", choices=("lab", "soak"), help="only these")
    parser.add_argument("--again", action="store_true", help="also what holds already")
    arguments = parser.parse_args()
    wanted = set(filter(None, arguments.only.split(",")))
    if unknown := wanted - {proof.name for proof in PROOFS}:
        parser.error(f"no such proof: {', '.join(sorted(unknown))}")
    failed = []
    for proof in PROOFS:
        if (wanted and proof.name not in wanted) or (arguments.tier and proof.tier != arguments.tier):
            continue
        if not is_built(proof):
            print(f"{proof.name}: not built yet", flush=True)
            continue
        if is_current(proof) and not arguments.again:
            print(f"{proof.name}: holds, and what it covers has not changed since", flush=True)
            continue
        print(f"{proof.name}: {proof.title}", flush=True)
        words = [sys.executable, "-m", *proof.command.split(), "--out", str(RESULTS)]
        if subprocess.run(words, cwd=ROOT, check=False).returncode != 0:
            failed.append(proof.name)
    if failed:
        print(f"did not hold: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
