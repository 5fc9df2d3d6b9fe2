"""`python -m proofs.contract`: send every case to both gateways and write what differs.

The outcome goes to docs/results/contract.json, from which docs/reference/contract.md is made; with `--only`
nothing is written.
Exit status 1: a difference that is not intended.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from proofs.contract import results
from proofs.contract.cases import CASES, Case
from proofs.contract.compare import differences, facts
from proofs.contract.gateways import Gateway, Missing, find_claude, ours, reference, version_of
from proofs.contract.upstream import ScriptedAnthropic
from proofs.identity_provider import IdentityProvider
from proofs.servers import PostgresServer, find_postgres


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the reference gateway with ours.")
    parser.add_argument("--only", default="", help="a regular expression over `section: case`")
    parser.add_argument("--verbose", action="store_true", help="print every fact of every case")
    options = parser.parse_args()
    try:
        claude = find_claude()
        if find_postgres() is None:
            raise Missing("there is no PostgreSQL: make servers")
    except Missing as reason:
        print(f"skipped: {reason}")
        return 0
    wanted = re.compile(options.only)
    chosen = {
        section: [case for case in cases if wanted.search(f"{section}: {case.name}")]
        for section, cases in CASES.items()
    }
    rows = _compare(claude, chosen, verbose=options.verbose)
    failed = [row for row in rows if row.verdict == "differs"]
    print(f"{len(rows)} cases, {len(rows) - len(failed)} as they should be, {len(failed)} not")
    if not options.only:
        results.write(version_of(claude), rows)
    return 1 if failed else 0


def _compare(claude: str, chosen: dict[str, list[Case]], *, verbose: bool) -> list[results.Row]:
    rows = []
    refused: dict[str, str] = {}
    with (
        tempfile.TemporaryDirectory(prefix="wireglot-contract-") as directory,
        PostgresServer() as postgres,
        ScriptedAnthropic() as upstream,
        IdentityProvider() as provider,
        reference(claude, postgres, upstream, provider, Path(directory)) as theirs,
        ours(upstream, provider, Path(directory), refused) as mine,
    ):
        for part, words in refused.items():
            print(f"this version has no configuration for {part}:\n{words}\n")
        for section, cases in chosen.items():
            for case in cases:
                expected, seen = (_facts(gateway, case, upstream) for gateway in (theirs, mine))
                found = list(differences(case, expected, seen))
                row = results.Row.of(section, case.name, expected, seen, found)
                rows.append(row)
                print(f"{row.verdict:20} {section}: {case.name}")
                for each in found:
                    if not each.reason or verbose:
                        print(f"    {each.fact}: reference {each.reference}, ours {each.ours} {each.reason}")
    return rows


def _facts(gateway: Gateway, case: Case, upstream: ScriptedAnthropic) -> dict[str, str]:
    upstream.answer = case.upstream
    upstream.received.clear()
    try:
        answer = case.send(gateway)
    except Missing as reason:
        return {"status": str(reason)}
    return facts(gateway, case, answer, upstream.received)


if __name__ == "__main__":
    sys.exit(main())
