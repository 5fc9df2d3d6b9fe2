"""A gateway asked everything once, and a table of what came of it."""

from __future__ import annotations

import sys

from wireglot.cli.argument_parser import near
from wireglot.cli.exit_status import FAILED, MOST_FAILURES, UNUSABLE
from wireglot.cli.paint import Paint, count, one_line
from wireglot.cli.remote_gateway import NoAnswer, UnusableKey
from wireglot.cli.smoke.checks import CheckFailed, Gateway, Result, checks, listed_models, refusal
from wireglot.cli.telling import complain


class _NoModel(Exception):
    """In words for people."""


def smoke(gateway: Gateway, provider: str | None, model: str | None) -> int:
    """Check one gateway and print the table; the number of failures is the exit status."""
    try:
        chosen = _model(gateway, provider, model)
    except NoAnswer as fault:
        complain(fault)
        return FAILED
    except CheckFailed as fault:
        complain(f"{gateway.url}: {one_line(str(fault))}")
        return FAILED
    except (_NoModel, UnusableKey) as problem:
        complain(problem)
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
    """The one named, or the first that is listed. The list is asked for in any case: whoever does not answer
    that answers no check."""
    names = listed_models(gateway)
    if model:
        named = f"{provider}/{model}" if provider else model
        if refused := refusal(gateway, named):
            meant = near(named, names)
            hint = f"did you mean {meant}?" if meant else "`wireglot models` lists what there is"
            raise _NoModel(f"{refused}: {hint}")
        return named
    wanted = [name for name in names if not provider or name.startswith(f"{provider}/")]
    if wanted:
        return wanted[0]
    if not provider:
        raise _NoModel("the gateway lists no model at all: name one with --model")
    meant = near(provider, {name.partition("/")[0] for name in names if "/" in name})
    hint = f"did you mean {meant}?" if meant else "name one with --model"
    raise _NoModel(f"the gateway lists no model of provider {one_line(provider)}: {hint}")
