"""Command-line interface."""

from wireglot.cli.entry import main

__all__ = ["main"]
