"""Runs one command of the command line and gives its exit status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

from wireglot.cli.exit_status import INTERRUPTED, PIPE_CLOSED, UNUSABLE
from wireglot.cli.parser import build_parser
from wireglot.dialects.paths import PathTaken
from wireglot.dialects.registry import BadPlugin

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Nothing a caller can do wrong ends in a traceback."""
    mute = _keep_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a letter is no reason to fail
    try:
        status = _run(argv, mute)
        sys.stdout.flush()
    except (BadPlugin, PathTaken) as problem:  # a dialect of another package that cannot be served
        print(f"wireglot: {problem}", file=sys.stderr)
        return UNUSABLE
    except ModuleNotFoundError as missing:
        if (package := _package_of_others(missing)) is None:
            raise
        said = f"this command needs {package}, which is not installed: pip install wireglot"
        print(f"wireglot: {said}", file=sys.stderr)
        return UNUSABLE
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


def _package_of_others(missing: ModuleNotFoundError) -> str | None:
    """The library alone may be installed (docs/decisions/0020); a module of Python or of ours is a bug."""
    package = (missing.name or "").partition(".")[0]
    if package in ("", "wireglot") or package in sys.stdlib_module_names:
        return None
    return package


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
    if arguments.command is None:
        parser.print_help()
        return UNUSABLE
    status: int = arguments.run(arguments)
    return status


def _forget_stdout() -> None:
    """Nothing more can be written: keep the interpreter from flushing what is left on its way out."""
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
    except (OSError, ValueError):
        pass
