"""What tests of Wireglot and of its users share."""

from wireglot.testing.check_dialect import LawsBroken, Samples, check_dialect, samples_in

__all__ = ["LawsBroken", "Samples", "check_dialect", "samples_in"]
