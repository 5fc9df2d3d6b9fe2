"""What the options of several commands share: how a command adds itself, `--config`, kinds of values."""

from __future__ import annotations

import argparse
import re
from typing import Any, Protocol


class Commands(Protocol):
    """The commands that the parser knows. A command adds itself, its options, and `run` as a default."""

    def add_parser(
        self,
        name: str,
        *,
        help: str,
        description: str,
        epilog: str | None = None,
        formatter_class: Any = argparse.HelpFormatter,
    ) -> argparse.ArgumentParser: ...


class _TakesOptions(Protocol):
    """A parser, or a group of options in it."""

    def add_argument(self, name: str, /, *, metavar: str, help: str) -> object: ...


def add_config(parser: _TakesOptions) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="the configuration (default: the one `wireglot serve` would find)"
    )


def positive(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 up, got {text[:40]!r}")
    return int(text)
