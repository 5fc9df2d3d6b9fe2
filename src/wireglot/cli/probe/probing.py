"""`wireglot probe` from its options to its exit status."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from wireglot import __version__
from wireglot.cli.exit_status import FAILED, OK, UNUSABLE
from wireglot.cli.paint import count, one_line
from wireglot.cli.probe.budget import Budget, Purse, UnusableBudget, bound, budget_of, price_at
from wireglot.cli.probe.first_contact import NoUse, check_answers, first_model, is_silent
from wireglot.cli.probe.printed import Bar, print_list, print_report, print_sent
from wireglot.cli.probe.selection import NoSuchCase, selected
from wireglot.cli.remote_gateway import UnusableKey, usable_key
from wireglot.cli.telling import complain, say
from wireglot.http.redaction import Redactor
from wireglot.probe.case import Case
from wireglot.probe.endpoint import HttpEndpoint, UnusableUrl, patience, root_of
from wireglot.probe.html_report import page
from wireglot.probe.rehearsal import rehearse
from wireglot.probe.report import Report, rows_of, score_of, tally
from wireglot.probe.run import Finding, run_cases
from wireglot.probe.suggestion import catalog_entry
from wireglot.probe.talk import Ledger, Talk
from wireglot.probe.wires.known import WIRES

_UNNAMED = "MODEL"


class _Unusable(Exception):
    """In words for people: nothing was asked."""


def probe(arguments: argparse.Namespace) -> int:
    try:
        return _probe(arguments)
    except (_Unusable, NoSuchCase, UnusableUrl, UnusableKey, UnusableBudget) as problem:
        complain(problem)
        return UNUSABLE
    except NoUse as problem:
        complain(_scrubbed(str(problem), arguments))
        return FAILED


def _scrubbed(text: str, arguments: argparse.Namespace) -> str:
    """What an endpoint says may repeat the key."""
    key = arguments.key or os.environ.get(arguments.key_env or "", "")
    return Redactor([key] if key else [], []).text(text)


def _probe(arguments: argparse.Namespace) -> int:
    cases = selected(arguments.dialect or "", arguments.only, large=arguments.large or arguments.list)
    if arguments.list:
        print_list(cases)
        return OK
    if not arguments.base_url:
        raise _Unusable(
            "say which BASE_URL to probe, as in `wireglot probe http://127.0.0.1:8484 --dialect anthropic`"
        )
    if arguments.dialect is None:
        raise _Unusable(f"--dialect: say which one it claims to speak: {', '.join(WIRES)}")
    root = root_of(arguments.base_url, arguments.dialect)
    wire = WIRES[arguments.dialect]
    if arguments.dry_run:
        rehearsal = rehearse(cases, wire, arguments.model or _UNNAMED)
        print_sent(root, cases, rehearsal)
        print(f"\n{bound(rehearsal, price_at(root, arguments.model or ''))}")
        return OK
    key = _key(arguments)
    budget = budget_of(arguments.budget) if arguments.budget else None
    files = [Path(name) for name in (arguments.json, arguments.html, arguments.catalog) if name]
    with _reserved(files):
        return _send(arguments, cases, root, key, budget)


def _send(
    arguments: argparse.Namespace, cases: Sequence[Case], root: str, key: str, budget: Budget | None
) -> int:
    """What may cost something."""
    wire = WIRES[arguments.dialect]
    must_agree = not arguments.yes and not _is_near(root)
    if must_agree and not sys.stdin.isatty():
        raise _Unusable(
            "this may cost money: add --yes where nobody can be asked (--dry-run shows what is sent)"
        )
    ledger = Ledger()
    times = patience(arguments.timeout) if arguments.timeout else None
    with HttpEndpoint(root, wire.key_header, key, timeouts=times) as endpoint:
        talk = Talk(endpoint, wire, arguments.model or "", ledger)
        model = arguments.model or first_model(talk, root)
        rehearsal = rehearse(cases, wire, model)
        price = price_at(root, model)
        purse = Purse(budget, price, rehearsal.parts, ledger)
        named = one_line(Redactor([key] if key else [], []).text(model))
        what = f"{root}, {wire.name}, model {named}: {count(len(cases), 'case')}"
        print(f"{what}, {bound(rehearsal, price)}\n", flush=True)
        if must_agree:
            _agree()
        check_answers(Talk(endpoint, wire, model, ledger, fresh=True), root)
        bar = Bar(len(cases))
        findings: list[Finding] = []
        complete = False
        try:
            for finding in run_cases(cases, endpoint, wire, model, ledger, affordable=purse.affordable):
                findings.append(finding)
                bar.step(finding.id)
                if is_silent(findings):
                    break
            complete = len(findings) == len(cases)
        finally:  # interrupted, it ends with what is known
            bar.end()
            report = _report(root, wire.name, model, cases, findings, ledger, key, complete=complete)
            print_report(report, everything=arguments.all)
            _write(arguments, report)
    if not complete:
        left = count(len(cases) - len(findings), "case")
        raise NoUse(f"{root}: it does not answer any more: {left} not run")
    return FAILED if report.failed else OK


def _key(arguments: argparse.Namespace) -> str:
    if arguments.key and arguments.key_env:
        raise _Unusable("--key and --key-env: give one of them")
    if arguments.key_env:
        found = os.environ.get(arguments.key_env, "")
        if not found:
            raise _Unusable(f"--key-env: the variable {one_line(arguments.key_env)} is not set")
        return usable_key(found, f"${one_line(arguments.key_env)}")
    return usable_key(arguments.key or "", "--key")


def _is_near(root: str) -> bool:
    from urllib.parse import urlsplit

    host = urlsplit(root).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _agree() -> None:
    """It may cost somebody's money: a person says yes, or --yes does."""
    say("This asks a host elsewhere, and may cost money. Go on? [y/N]")
    if input().strip().lower() not in ("y", "yes"):
        raise _Unusable("nothing was sent")


def _report(
    root: str,
    dialect: str,
    model: str,
    cases: Sequence[Case],
    findings: Sequence[Finding],
    ledger: Ledger,
    key: str,
    *,
    complete: bool,
) -> Report:
    scrub = Redactor([key] if key else [], []).text
    date = time.strftime("%Y-%m-%d", time.gmtime())
    entry = catalog_entry(root, dialect, model, ledger, date=date, version=f"wireglot {__version__}")
    return Report(
        wireglot=__version__,
        endpoint=root,
        dialect=dialect,
        model=scrub(model),
        date=date,
        complete=complete,
        score=score_of(cases, findings),
        verdicts=tally(findings),
        requests=ledger.requests,
        input_tokens=ledger.input,
        output_tokens=ledger.output,
        catalog=scrub(entry),
        cases=rows_of(cases, findings, key),
    )


@contextmanager
def _reserved(files: Sequence[Path]) -> Iterator[None]:
    """Raises OSError before anything is spent, where one cannot be written. Where none is written after all,
    nothing is left of it."""
    new = [path for path in files if not path.exists()]
    try:
        for path in files:
            path.open("a", encoding="utf-8").close()
        yield
    finally:
        for path in new:
            with suppress(OSError):
                if not path.stat().st_size:
                    path.unlink()


def _write(arguments: argparse.Namespace, report: Report) -> None:
    if arguments.json:
        data = msgspec.json.format(msgspec.json.encode(report), indent=2)
        Path(arguments.json).write_bytes(data + b"\n")
    if arguments.html:
        Path(arguments.html).write_text(page(report), encoding="utf-8")
    if arguments.catalog:
        Path(arguments.catalog).write_text(report.catalog, encoding="utf-8")
