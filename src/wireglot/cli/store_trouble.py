"""What every command says of a store that is not there, or not usable."""

from __future__ import annotations

from wireglot.cli.exit_status import FAILED
from wireglot.cli.telling import complain
from wireglot.stores import StoreDown, StoreUnusable


def store_failed(problem: StoreDown | StoreUnusable) -> int:
    """Say it, and give the exit status. Where it does not answer, its address is the thing to look at."""
    complain(f"store.url: {problem}" if isinstance(problem, StoreDown) else problem)
    return FAILED
