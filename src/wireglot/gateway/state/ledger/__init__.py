"""The account of every request, written down exactly once."""
