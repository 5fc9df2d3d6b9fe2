"""How many connections the system lets this process have: as many as it may take without asking."""

from __future__ import annotations

import contextlib


def raise_limit() -> None:
    """Each request holds two, its client's and its provider's. The soft limit is 1024 on most systems, for
    the sake of programs that use select(); this one does not."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # another system, or one that forbids it
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
