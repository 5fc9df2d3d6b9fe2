"""Test kit for extensions: laws, strategies, recorded exchanges, a scripted upstream, a live gateway."""

from wireglot.testing.replayed import replay
from wireglot_core.testing.check_dialect import LawsBroken, Samples, check_dialect, samples_in

__all__ = ["LawsBroken", "Samples", "check_dialect", "replay", "samples_in"]
