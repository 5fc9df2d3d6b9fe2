"""The command line."""

from wireglot.cli.entry import main

__all__ = ["main"]
