"""The arithmetic of limits, for all stores that do it in Python. Times are milliseconds.

A rate is a leaky bucket represented by one number (GCRA): the time at which the bucket will be empty. An
entry postpones that time by `amount / limit` of the window; it passes while the time is no more than a window
away, or if the bucket was empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wireglot.stores.records import Budget, Denied, Rate


def cost(claim: Rate) -> float:
    """The milliseconds it takes until `amount` has leaked out of the bucket."""
    return claim.amount * claim.seconds * 1000 / claim.limit


def rate_wait(claim: Rate, empty_at: float, now: float) -> float:
    """Milliseconds until the claim passes; 0 or less: it passes now. A claim larger than the whole bucket
    waits until the bucket is empty, never longer."""
    return empty_at - now + min(0.0, cost(claim) - claim.seconds * 1000)


def filled(claim: Rate, empty_at: float, now: float) -> float:
    """When the bucket will be empty with the claim in it: two windows from now at the latest, and not before
    now, however much is returned."""
    level = max(empty_at, now) + cost(claim)
    return max(now, min(level, now + 2 * claim.seconds * 1000))


class Weighed:
    """Claims checked together. `rates` and `budgets` are to be written if all of them pass."""

    def __init__(
        self,
        claims: Sequence[Rate | Budget],
        empty_at: Callable[[str], float],
        spent: Callable[[str], int],
        *,
        now: float,
        wall: float,
    ) -> None:
        """`now` is on the clock of `empty_at`, `wall` is unix time: a budget ends at a date."""
        self.rates: dict[str, float] = {}
        self.budgets: dict[str, tuple[int, int]] = {}
        self.denied: Denied | None = None
        for claim in claims:
            if isinstance(claim, Rate):
                level = self.rates[claim.name] if claim.name in self.rates else empty_at(claim.name)
                wait = rate_wait(claim, level, now)
                self.rates[claim.name] = filled(claim, level, now)
            else:
                begun = self.budgets.get(claim.name)
                value = begun[0] if begun is not None else spent(claim.name)
                wait = 0.0 if value < claim.limit else claim.until - wall
                self.budgets[claim.name] = (value + claim.amount, claim.until)
            if wait > 0 and (self.denied is None or wait / 1000 > self.denied.wait):
                self.denied = Denied(claim.name, wait / 1000)
