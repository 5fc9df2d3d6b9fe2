"""A gateway asked everything once, and a table of what came of it."""

from __future__ import annotations

import sys
from http.client import HTTPException

from wireglot.cli.exit_status import MOST_FAILURES, UNUSABLE
from wireglot.cli.paint import Paint, count, one_line
from wireglot.cli.smoke.checks import CheckFailed, Gateway, Result, checks, listed_models


def smoke(gateway: Gateway, provider: str | None, model: str | None) -> int:
    """Check one gateway and print the table; the number of failures is the exit status."""
    try:
        chosen = _model(gateway, provider, model)
    except (OSError, HTTPException, CheckFailed) as fault:
        print(f"wireglot: {gateway.url}: {one_line(str(fault)) or type(fault).__name__}", file=sys.stderr)
        return UNUSABLE
    if not chosen:
        known = f"of provider {provider}" if provider else "at all"
        print(f"wireglot: the gateway lists no model {known}: name one with --model", file=sys.stderr)
        return UNUSABLE
    paint = Paint(sys.stdout)
    print(f"{gateway.url}, model {one_line(chosen)}\n")
    print(paint(_ROW.format("endpoint", "check", "", "ms", "route", "losses").rstrip(), "bold"))
    results = []
    for result in checks(gateway, chosen):
        results.append(result)
        print(_line(result, paint), flush=True)
    failures = sum(1 for result in results if result.fault)
    print(f"\n{count(len(results) - failures, 'check')} passed, {failures} failed")
    return min(failures, MOST_FAILURES)


_ROW = "{:<50} {:<20} {:<4} {:>7}  {:<28} {}"


def _line(result: Result, paint: Paint) -> str:
    verdict = paint("FAIL", "dropped") if result.fault else paint("PASS", "ok")
    milliseconds = f"{result.seconds * 1000:.0f}"
    if result.fault:
        told = one_line(result.fault)[:200]
        return f"{result.endpoint:<50} {result.check:<20} {verdict} {milliseconds:>7}  {told}"
    line = _ROW.format(
        result.endpoint, result.check, verdict, milliseconds, one_line(result.route), one_line(result.losses)
    )
    return line.rstrip()


def _model(gateway: Gateway, provider: str | None, model: str | None) -> str:
    if model:
        return f"{provider}/{model}" if provider else model
    names = listed_models(gateway)
    wanted = [name for name in names if not provider or name.startswith(f"{provider}/")]
    return wanted[0] if wanted else ""
