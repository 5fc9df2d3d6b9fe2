"""Usage of every request, recorded exactly once."""
