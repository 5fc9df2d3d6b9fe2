"""Hypothesis profiles: quick and the same each time by default, long and random with WIREGLOT_DEEP=1; signals."""

import os
import signal

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

# A shell starts what runs in its background with interrupts ignored, and that is inherited: tests that
# interrupt a command of ours would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
