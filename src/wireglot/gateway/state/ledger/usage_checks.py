"""What in a provider's own numbers does not add up. The account goes on with the numbers as they were read;
whoever pays by them is told that they are odd."""

from __future__ import annotations

from wireglot.dialects.registry import UnknownDialect, surface
from wireglot.ir.outcome import Usage


def usage_checks(usage: Usage | None) -> tuple[str, ...]:
    """Sorted; none where the numbers agree, or where the provider told none of its own."""
    raw = usage.raw if usage is not None else None
    if raw is None:
        return ()
    try:
        check = surface(raw.dialect).check_usage
    except UnknownDialect:
        return ()
    return check(raw) if check is not None else ()
