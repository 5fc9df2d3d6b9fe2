"""How a case can end."""

from __future__ import annotations

from typing import Final, Literal

Verdict = Literal["pass", "fail", "warn", "not applicable", "inconclusive", "not run"]
"""warn: a rule of those that clients can do without does not hold. inconclusive: the model did not do what
the case needs, or nothing was answered, twice. not run: the budget does not reach that far."""

VERDICTS: Final[tuple[Verdict, ...]] = ("pass", "fail", "warn", "not applicable", "inconclusive", "not run")


class Broken(Exception):
    """A rule does not hold; the text says which, and where."""


class NotApplicable(Exception):
    """The endpoint says in good order that it does not have what the case is about."""


class Inconclusive(Exception):
    """Nothing can be said: mostly the model chose otherwise."""
