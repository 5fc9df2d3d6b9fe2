"""For tests of your own: laws, strategies, an upstream that misbehaves to order, a live gateway."""

from wireglot.testing.check_dialect import LawsBroken, Samples, check_dialect, samples_in

__all__ = ["LawsBroken", "Samples", "check_dialect", "samples_in"]
