"""Test kit of the core: laws, strategies and the check of a dialect."""
