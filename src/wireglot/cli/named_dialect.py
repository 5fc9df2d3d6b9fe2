"""A dialect that an option or a line names, be it ours or an installed package's."""

from __future__ import annotations

from wireglot.dialects.base import Dialect
from wireglot.dialects.registry import UnknownDialect, dialect


def find_dialect(name: str) -> Dialect:
    """Packages are looked at only for a name that none of ours has: it takes a while.

    Raises UnknownDialect.
    """
    try:
        return dialect(name)
    except UnknownDialect:
        from wireglot.plugins import load_dialects

        load_dialects()
        return dialect(name)
