"""Test kit of the core: laws, strategies and the check of a dialect."""

from wireglot_core.testing.check_dialect import LawsBroken, Samples, check_dialect, samples_in

__all__ = ["LawsBroken", "Samples", "check_dialect", "samples_in"]
