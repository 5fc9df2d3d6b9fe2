"""Hypothesis profiles: quick and the same each time by default, long and random with WIREGLOT_DEEP=1."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("deep", settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile("deep" if os.environ.get("WIREGLOT_DEEP") else "ci")
