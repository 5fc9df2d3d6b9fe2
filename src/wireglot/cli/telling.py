"""What a command says on standard error, which somebody may have closed or filled."""

from __future__ import annotations

import contextlib
import sys


def complain(text: object) -> None:
    """What is wrong, and what to do about it, in one line."""
    say(f"wireglot: {text}")


def say(text: str) -> None:
    """Where nobody can hear it the exit status says enough."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)
