"""`wireglot probe`, from its options to its exit status."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from wireglot import __version__
from wireglot.cli.argument_parser import said
from wireglot.cli.remote_gateway import usable_key
from wireglot.cli.terminal import (
    FAILED,
    OK,
    Failed,
    Paint,
    Unusable,
    count,
    fitted,
    one_line,
    say,
)
from wireglot.http.redaction import Redactor
from wireglot.probe.endpoint import Got, HttpEndpoint, UnusableEndpoint, patience, root_of
from wireglot.probe.question import ask
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable
from wireglot.probe.report import ProbeReport, ProbeRow, catalog_entry, page, rows_of, score_of, tally
from wireglot.probe.run import (
    CASES,
    THEMES,
    WIRES,
    Part,
    ProbeFinding,
    Rehearsal,
    cases_for,
    rehearse,
    run_cases,
)
from wireglot.probe.talk import ProbeCase, ProbeLedger, Talk
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers.list_price import ListPrice
from wireglot_core.providers.prices import cost, list_price
from wireglot_core.providers.spec import names, provider
from wireglot_core.wire.json import BadJson, decode

_AMOUNT: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(USD|CNY|EUR)?", re.IGNORECASE)
_MICRO: Final = 1_000_000


class ProbeBudget(msgspec.Struct, frozen=True):
    """In tokens, or in millionths of a currency."""

    amount: int
    currency: str = ""


def budget_of(text: str) -> ProbeBudget:
    found = _AMOUNT.fullmatch(text)
    if found is None or (not found[2] and "." in found[1]):
        raise Unusable("--budget: expected a number of tokens (200000) or an amount of money (0.50USD)")
    if found[2]:
        return ProbeBudget(round(float(found[1]) * _MICRO), found[2].upper())
    return ProbeBudget(int(found[1]))


def price_at(url: str, model: str) -> ListPrice | None:
    """The price of the model at that host, as far as the catalog knows it."""
    host = urlsplit(url).hostname
    for name in names():
        spec = provider(name)
        urls = (spec.base_url, *spec.base_urls.values())
        if host and any(urlsplit(each.replace("{", "").replace("}", "")).hostname == host for each in urls):
            found = list_price(spec, model, int(time.time() * 1000))
            if found is not None:
                return found
    return None


def bound(rehearsal: Rehearsal, price: ListPrice | None) -> str:
    """The maximum of requests, tokens and cost, in words."""
    tokens = f"at most {rehearsal.input:,} tokens in and {rehearsal.output:,} out"
    text = f"{count(rehearsal.requests, 'request')}, {tokens}"
    if price is None:
        return f"{text}; the price of the model is unknown"
    most = cost(price.price, Usage(input=rehearsal.input, output=rehearsal.output))
    return f"{text}; at most {money(most)} {price.currency}"


def money(micro: int) -> str:
    return f"{micro / _MICRO:.4f}" if micro < _MICRO else f"{micro / _MICRO:.2f}"


class BudgetGuard:
    """Ends a run before the next case could exceed the budget."""

    def __init__(
        self,
        budget: ProbeBudget | None,
        price: ListPrice | None,
        parts: tuple[Part, ...],
        ledger: ProbeLedger,
    ) -> None:
        self._budget = budget
        self._price = price
        self._parts = {part.case: part for part in parts}
        self._ledger = ledger
        if budget is not None and budget.currency and (price is None or price.currency != budget.currency):
            raise Unusable(f"--budget: no known price of this model in {budget.currency}: give tokens")

    def affordable(self, case: ProbeCase) -> str:
        if self._budget is None:
            return ""
        part = self._parts.get(case.id)
        # Twice: an inconclusive case is retried.
        more = (2 * part.input, 2 * part.output) if part is not None else (0, 0)
        most = self._amount(self._ledger.input + more[0], self._ledger.output + more[1])
        return "it could exceed the budget" if most > self._budget.amount else ""

    def _amount(self, tokens_in: int, tokens_out: int) -> int:
        if self._price is None or self._budget is None or not self._budget.currency:
            return tokens_in + tokens_out
        return cost(self._price.price, Usage(input=tokens_in, output=tokens_out))


_PAUSE_SECONDS: Final = 2.0
_SILENT_CASES: Final = 3
"""Consecutive cases without an answer that end the run: each waits for minutes if an endpoint hangs."""


class NoUse(Exception):
    """A message for the user: the endpoint was called, and does not answer as it should."""


def first_model(talk: Talk, root: str) -> str:
    try:
        got = talk.get(talk.path("models"))
        if got.status != 200:
            fix = "check the key, or name" if got.status in (401, 403) else "name"
            raise NoUse(f"{root}: no model list (status {got.status}): {fix} a model with --model")
        names = talk.wire.models(talk.document(got))
    except Inconclusive as fault:
        raise NoUse(f"{root}: {fault}") from None
    except (Broken, NotApplicable) as fault:
        raise NoUse(
            f"{root}: invalid model list ({one_line(str(fault))}): name a model with --model"
        ) from None
    if not names:
        raise NoUse(f"{root}: the model list is empty: name a model with --model")
    return names[0]


def check_answers(talk: Talk, root: str) -> None:
    """One request before all others: if it is not answered at all, a hundred more would not be. A refusal of
    the request itself is left to the cases. Raises NoUse."""
    got = _asked(talk, root)
    if got.status == 429 or got.status >= 500:
        time.sleep(_PAUSE_SECONDS)
        got = _asked(talk, root)
    words = f"{root}: {one_line(_words(talk, got))}"
    if got.status in (401, 403, 404):
        raise NoUse(f"{words}: check address, key and model")
    if got.status == 429 or got.status >= 500:
        raise NoUse(f"{words}: nothing can be tested until it answers")
    if 300 <= got.status < 400:
        raise NoUse(
            f"{words}: it redirects to {one_line(got.headers.get('location', 'nowhere'))}: use that address"
        )
    if got.status == 200 and not _is_json(got.body):
        kind = one_line(got.headers.get("content-type", "")) or "no content type"
        raise NoUse(f"{root}: the answer is not JSON ({kind}): check the address")


def is_silent(findings: Sequence[ProbeFinding]) -> bool:
    last = findings[-_SILENT_CASES:]
    return len(last) == _SILENT_CASES and all(
        finding.verdict == "inconclusive"
        and finding.exchanges
        and all(exchange.status == 0 for exchange in finding.exchanges)
        for finding in last
    )


def _asked(talk: Talk, root: str) -> Got:
    try:
        return talk.send(ask("Say hello in one short sentence."))
    except Inconclusive as fault:
        raise NoUse(f"{root}: {fault}") from None


def _words(talk: Talk, got: Got) -> str:
    try:
        kind, message = talk.wire.error(talk.document(got), got.status)
    except Broken:
        return f"status {got.status}"
    return f"status {got.status} ({kind}): {message[:300]}"


def _is_json(body: bytes) -> bool:
    try:
        decode(body)
    except BadJson:
        return False
    return True


_SIGNS: Final = {
    "pass": ("+", "ok"),
    "fail": ("x", "dropped"),
    "warn": ("!", "approximated"),
    "not applicable": ("-", "dim"),
    "inconclusive": ("?", "dim"),
    "not run": (".", "dim"),
}
_BAR_LETTERS: Final = 24


def print_list(cases: Sequence[ProbeCase]) -> None:
    paint = Paint(sys.stdout)
    width = max((len(case.id) for case in cases), default=0)
    for theme in THEMES:
        own = [case for case in cases if case.theme == theme.name]
        if own:
            print(paint(theme.title, "bold"))
        for case in own:
            line = f"  {case.id.ljust(width)}  {case.level.ljust(6)}  {case.cost.ljust(6)}  {case.title}"
            print(fitted(line, sys.stdout, " " * (width + 18)))


def print_sent(root: str, cases: Sequence[ProbeCase], rehearsal: Rehearsal) -> None:
    """As if the demo model answered: later turns quote earlier ones."""
    paint = Paint(sys.stdout)
    titles = {case.id: case.title for case in cases}
    for finding in rehearsal.findings:
        print(paint(fitted(f"{finding.id}: {titles[finding.id]}", sys.stdout), "bold"))
        for exchange in finding.exchanges:
            again = "  (same as an earlier request, not sent again)" if exchange.shared else ""
            print(fitted(f"  {exchange.method} {root}{exchange.path}{again}", sys.stdout))
            if exchange.request and not exchange.shared:
                print(f"    {one_line(_compact(exchange.request))}")


def _compact(body: str) -> str:
    try:
        decode(body.encode())
    except BadJson:
        return body[:400]
    return body if len(body) <= 2000 else f"{body[:2000]}…"


class Bar:
    """One line on a terminal's standard error, rewritten repeatedly; nothing elsewhere."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = sys.stderr.isatty()

    def step(self, id_: str) -> None:
        self._done += 1
        if not self._shown:
            return
        filled = _BAR_LETTERS * self._done // max(1, self._total)
        bar = "#" * filled + "." * (_BAR_LETTERS - filled)
        line = f"[{bar}] {self._done}/{self._total} {id_}"
        print(
            "\r" + line[: shutil.get_terminal_size().columns - 1] + "\x1b[K",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def print_report(report: ProbeReport, *, everything: bool) -> None:
    paint = Paint(sys.stdout)
    for theme in THEMES:
        rows = [row for row in report.cases if row.theme == theme.name]
        if not rows:
            continue
        decided = [row for row in rows if row.verdict in ("pass", "fail", "warn")]
        passed = sum(row.verdict == "pass" for row in decided)
        colour = "ok" if passed == len(decided) else "dropped"
        print(f"{paint(f'{passed:>3} of {len(decided):<3}', colour)} {paint(theme.title, 'bold')}")
        for row in rows:
            if everything or row.verdict != "pass":
                _print_row(row, paint)
    score = report.score
    print()
    others = ", ".join(
        f"{number} {verdict}" for verdict, number in report.verdicts.items() if number and verdict != "pass"
    )
    missing = "" if report.complete else " (interrupted: cases are missing)"
    text = f"{score.passed} of {score.applicable} applicable cases passed: {score.percent:g} %{missing}"
    print(fitted(paint(text, "bold") + (f"; {others}" if others else ""), sys.stdout))
    tokens = f"{report.input_tokens:,} tokens in, {report.output_tokens:,} out"
    print(f"{count(report.requests, 'request')}, {tokens}, as reported by the endpoint")


def _print_row(row: ProbeRow, paint: Paint) -> None:
    sign, colour = _SIGNS[row.verdict]
    words = f": {one_line(row.words)}" if row.words else ""
    line = f"      {paint(sign, colour)} {row.id}  {paint(row.verdict, colour)}{words}"
    print(fitted(line, sys.stdout))


def selected(dialect: str, only: Sequence[str], *, large: bool) -> list[ProbeCase]:
    """Without a dialect: of all. Named cases are run, however large they are."""
    cases = list(cases_for(dialect) if dialect else CASES)
    patterns = [name.strip() for text in only for name in text.split(",") if name.strip()]
    if not patterns:
        return [case for case in cases if large or case.cost != "large"]
    for pattern in patterns:
        if not any(_fits(case, pattern) for case in cases):
            known = [*(theme.name for theme in THEMES), *(case.id for case in cases)]
            raise Unusable(f"--only: there is no case {said(pattern, known)}")
    return [case for case in cases if any(_fits(case, pattern) for pattern in patterns)]


def _fits(case: ProbeCase, pattern: str) -> bool:
    return pattern in (case.id, case.theme) or fnmatchcase(case.id, pattern)


_UNNAMED = "MODEL"


def run(arguments: argparse.Namespace) -> int:
    try:
        return _probe(arguments)
    except UnusableEndpoint as problem:
        raise Unusable(str(problem)) from None
    except NoUse as problem:
        raise Failed(_scrubbed(str(problem), arguments)) from None


def _scrubbed(text: str, arguments: argparse.Namespace) -> str:
    """An endpoint's message may repeat the key."""
    key = arguments.key or os.environ.get(arguments.key_env or "", "")
    return Redactor([key] if key else [], []).text(text)


def _probe(arguments: argparse.Namespace) -> int:
    cases = selected(arguments.dialect or "", arguments.only, large=arguments.large or arguments.list)
    if arguments.list:
        print_list(cases)
        return OK
    if not arguments.base_url:
        raise Unusable(
            "expected a BASE_URL, as in `wireglot probe http://127.0.0.1:8484 --dialect anthropic`"
        )
    root = root_of(arguments.base_url, arguments.dialect or "")  # `probe foo` lacks more than a dialect
    if arguments.dialect is None:
        raise Unusable(f"--dialect: expected the dialect of the endpoint: {', '.join(WIRES)}")
    wire = WIRES[arguments.dialect]
    if arguments.dry_run:
        rehearsal = rehearse(cases, wire, arguments.model or _UNNAMED)
        print_sent(root, cases, rehearsal)
        print(fitted(f"\n{bound(rehearsal, price_at(root, arguments.model or ''))}", sys.stdout))
        return OK
    key = _key(arguments)
    budget = budget_of(arguments.budget) if arguments.budget else None
    files = [Path(name) for name in (arguments.json, arguments.html, arguments.catalog) if name]
    with _reserved(files):
        return _send(arguments, cases, root, key, budget)


def _send(
    arguments: argparse.Namespace, cases: Sequence[ProbeCase], root: str, key: str, budget: ProbeBudget | None
) -> int:
    """Sends requests, which may cost money."""
    wire = WIRES[arguments.dialect]
    must_agree = not arguments.yes and not _is_near(root)
    if must_agree and not sys.stdin.isatty():
        raise Unusable(
            "this may cost money: add --yes to run without confirmation (--dry-run shows what is sent)"
        )
    ledger = ProbeLedger()
    times = patience(arguments.timeout) if arguments.timeout else None
    with HttpEndpoint(root, wire.key_header, key, timeouts=times) as endpoint:
        talk = Talk(endpoint, wire, arguments.model or "", ledger)
        model = arguments.model or first_model(talk, root)
        rehearsal = rehearse(cases, wire, model)
        price = price_at(root, model)
        purse = BudgetGuard(budget, price, rehearsal.parts, ledger)
        named = one_line(Redactor([key] if key else [], []).text(model))
        what = f"{root}, {wire.name}, model {named}: {count(len(cases), 'case')}"
        print(fitted(f"{what}, {bound(rehearsal, price)}\n", sys.stdout), flush=True)
        if must_agree:
            _agree()
        check_answers(Talk(endpoint, wire, model, ledger, fresh=True), root)
        bar = Bar(len(cases))
        findings: list[ProbeFinding] = []
        complete = False
        try:
            for finding in run_cases(cases, endpoint, wire, model, ledger, affordable=purse.affordable):
                findings.append(finding)
                bar.step(finding.id)
                if is_silent(findings):
                    break
            complete = len(findings) == len(cases)
        finally:  # interrupted, it reports the results so far
            bar.end()
            report = _report(root, wire.name, model, cases, findings, ledger, key, complete=complete)
            print_report(report, everything=arguments.all)
            _write(arguments, report)
    if not complete:
        left = count(len(cases) - len(findings), "case")
        raise NoUse(f"{root}: stopped answering: {left} not run")
    return FAILED if report.failed else OK


def _key(arguments: argparse.Namespace) -> str:
    if arguments.key and arguments.key_env:
        raise Unusable("--key and --key-env exclude each other")
    if arguments.key_env:
        found = os.environ.get(arguments.key_env, "")
        if not found:
            raise Unusable(f"--key-env: the variable {one_line(arguments.key_env)} is not set")
        return usable_key(found, f"${one_line(arguments.key_env)}")
    return usable_key(arguments.key or "", "--key")


def _is_near(root: str) -> bool:
    from urllib.parse import urlsplit

    host = urlsplit(root).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _agree() -> None:
    """It may cost money: the user confirms it, or --yes does."""
    say("This calls a remote host and may cost money. Continue? [y/N]")
    if input().strip().lower() not in ("y", "yes"):
        raise Unusable("nothing was sent")


def _report(
    root: str,
    dialect: str,
    model: str,
    cases: Sequence[ProbeCase],
    findings: Sequence[ProbeFinding],
    ledger: ProbeLedger,
    key: str,
    *,
    complete: bool,
) -> ProbeReport:
    scrub = Redactor([key] if key else [], []).text
    date = time.strftime("%Y-%m-%d", time.gmtime())
    entry = catalog_entry(root, dialect, model, ledger, date=date, version=f"wireglot {__version__}")
    return ProbeReport(
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
    """Raises OSError before any cost if one cannot be written. If nothing is written in the end, the files
    are removed."""
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


def _write(arguments: argparse.Namespace, report: ProbeReport) -> None:
    if arguments.json:
        data = msgspec.json.format(msgspec.json.encode(report), indent=2)
        Path(arguments.json).write_bytes(data + b"\n")
    if arguments.html:
        Path(arguments.html).write_text(page(report), encoding="utf-8")
    if arguments.catalog:
        Path(arguments.catalog).write_text(report.catalog, encoding="utf-8")
