"""`wireglot smoke`: asks a gateway everything once, and tells what came of it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from http.client import HTTPException
from urllib.parse import urlsplit

from wireglot.cli.paint import Paint, count, one_line
from wireglot.cli.smoke_checks import CheckFailed, Gateway, Result, checks, listed_models

_MOST_FAILURES = 100
"""Exit statuses above have other meanings to a shell."""


_QUIET = {"server": {"host": "127.0.0.1", "port": 0, "workers": 1, "log": "off"}}


def run(arguments: argparse.Namespace) -> int:
    if arguments.url is None:
        return _own(arguments)
    problem = _unusable(arguments.url)
    if problem:
        print(f"wireglot: --url: {problem}", file=sys.stderr)
        return 2
    return smoke(Gateway(arguments.url, arguments.key or ""), arguments.provider, arguments.model)


def _own(arguments: argparse.Namespace) -> int:
    """A gateway in this process, with the configuration that `wireglot serve` would find."""
    from wireglot.gateway import config
    from wireglot.gateway.run import Process, run_loop

    path = config.find()
    try:
        settings = config.load(path, overrides=_QUIET)
    except config.ConfigError as error:
        print(f"wireglot: {error}", file=sys.stderr)
        return 2

    async def work() -> int:
        process = Process(settings, path=path, overrides=_QUIET)
        await process.start()
        try:
            gateway = Gateway("http://{}:{}".format(*process.address), arguments.key or "")
            return await asyncio.to_thread(smoke, gateway, arguments.provider, arguments.model)
        finally:
            await process.close()

    return run_loop(work())


def smoke(gateway: Gateway, provider: str | None = None, model: str | None = None) -> int:
    """Check one gateway and print the table; the number of failures is the exit status."""
    try:
        chosen = _model(gateway, provider, model)
    except (OSError, HTTPException, CheckFailed) as fault:
        print(f"wireglot: {gateway.url}: {one_line(str(fault)) or type(fault).__name__}", file=sys.stderr)
        return 2
    if not chosen:
        known = f"of provider {provider}" if provider else "at all"
        print(f"wireglot: the gateway lists no model {known}: name one with --model", file=sys.stderr)
        return 2
    paint = Paint(sys.stdout)
    print(f"{gateway.url}, model {one_line(chosen)}\n")
    print(paint(_ROW.format("endpoint", "check", "", "ms", "route", "losses").rstrip(), "bold"))
    results = []
    for result in checks(gateway, chosen):
        results.append(result)
        print(_line(result, paint), flush=True)
    failures = sum(1 for result in results if result.fault)
    print(f"\n{count(len(results) - failures, 'check')} passed, {failures} failed")
    return min(failures, _MOST_FAILURES)


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


def _unusable(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as fault:
        return str(fault)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return f"expected http://HOST:PORT, got {one_line(url)!r}"
    return ""
