"""The command line. Each command lives in a module of its own, imported when it is called."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from wireglot.cli.parser import build_parser

OK = 0
FAILED = 1
UNUSABLE = 2
INTERRUPTED = 130  # what a shell reports for SIGINT
PIPE_CLOSED = 141  # and for SIGPIPE

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Nothing a caller can do wrong ends in a traceback."""
    mute = _keep_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a letter is no reason to fail
    try:
        status = _run(argv, mute)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return PIPE_CLOSED
    except OSError as fault:  # a full disk, a device that fails
        _forget_stdout()
        print(f"wireglot: {fault.strerror or fault}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _keep_descriptors() -> bool:
    """Put a sink where a standard descriptor is closed; gives whether standard output was.

    The next file or socket would get its number otherwise, and what is said or logged would go there.
    """
    closed = [number for number in (0, 1, 2) if _is_closed(number)]
    for number in closed:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
    mute = sys.stdout is None or (1 in closed and sys.stdout is sys.__stdout__)
    if sys.stdout is None:
        sys.stdout = _sink(1)
    if sys.stderr is None:
        sys.stderr = _sink(2)
    return mute


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def _sink(number: int) -> io.TextIOWrapper:
    return open(number, "w", encoding="utf-8", errors="replace", closefd=False)


def _run(argv: Sequence[str] | None, mute: bool) -> int:
    parser = build_parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as leaving:  # argparse has said what there is to say
        return leaving.code if isinstance(leaving.code, int) else UNUSABLE
    if mute and arguments.command != "serve":  # which has nothing to say there
        print("wireglot: standard output is closed", file=sys.stderr)
        return UNUSABLE
    match arguments.command:
        case "translate":
            from wireglot.cli import translate

            return translate.run(arguments)
        case "serve":
            from wireglot.cli import serve

            return serve.run(arguments)
        case "config":
            from wireglot.cli import config

            return config.run(arguments)
        case "demo":
            from wireglot.cli import demo

            return demo.run(arguments)
        case "pairs":
            from wireglot.cli import pairs

            return pairs.run(arguments)
        case "smoke":
            from wireglot.cli import smoke

            return smoke.run(arguments)
        case "usage":
            from wireglot.cli import usage

            return usage.run(arguments)
        case "store":
            from wireglot.cli import store

            return store.run(arguments)
        case "keys":
            from wireglot.cli import keys

            return keys.run(arguments)
        case None:
            parser.print_help()
            return UNUSABLE
        case _:
            from wireglot.cli import listing

            return listing.run(arguments)


def _forget_stdout() -> None:
    """Nothing more can be written: keep the interpreter from flushing what is left on its way out."""
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
    except (OSError, ValueError):
        pass
