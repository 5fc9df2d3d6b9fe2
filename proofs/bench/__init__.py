"""Measurements: `core` (translation alone), `gateway` (beside nginx), `soak` (hours of mixed traffic)."""
