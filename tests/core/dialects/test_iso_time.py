from datetime import UTC, datetime

from tests.tiers import WHOLE, rows
from wireglot_core.dialects.iso_time import iso_time, unix_seconds


@rows(
    ("stamp", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01", 1),
        ("2000-02-29T12:34:56Z", 951827696),
        ("2024-12-31T23:59:59.999Z", 1735689599),
        ("2100-03-01T00:00:00z", 4107542400),
        ("2026-01-15 10:20:30+02:30", 1768463430),
        ("2026-01-15t10:20:30-01:15", 1768476930),
        ("1969-12-31T23:59:59Z", 0),
        ("yesterday", 0),
        ("2026-13-01T00:00:00Z", 0),
        ("2026-02-29T00:00:00Z", 0),
        ("2026-01-15T10:20:30.123456789Z", 1768472430),
        ("0001-01-01T00:00:00+14:00", 0),
        ("9999-12-31T23:59:59-14:00", 253402351199),
        (7, 0),
    ],
)
def test_a_time_is_seconds(stamp, seconds):
    assert unix_seconds(stamp) == seconds


def test_seconds_are_a_time_on_every_day_of_two_centuries():
    """In `make full`; else on each fifth, and on all of the years around one whose leap day is left out."""
    every = range(73_000)
    for day in every if WHOLE else (*every[::5], *every[46_751:48_577]):
        seconds = day * 86400 + day * 7919 % 86400
        stamp = iso_time(seconds)
        assert stamp == f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
        assert unix_seconds(stamp) == seconds
