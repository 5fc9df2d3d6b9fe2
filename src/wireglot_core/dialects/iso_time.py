"""Parses and renders RFC 3339 times. They are handed in: nothing here asks for the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_UTC: Final = _EPOCH.replace(tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_MAX_TIME: Final = 253_402_300_799
"""The latest time that is written as text, in Unix seconds: the end of the year 9999."""


def unix_seconds(stamp: Any) -> int:
    """The seconds of an RFC 3339 time, 0 for anything else. Without an offset it is in UTC."""
    if type(stamp) is not str or stamp[4:5] != "-" or stamp[13:14] != ":":
        return 0  # ISO 8601 has other forms as well
    try:
        moment = datetime.fromisoformat(stamp.upper())
    except ValueError:
        return 0
    return max((moment - (_EPOCH if moment.tzinfo is None else _EPOCH_UTC)) // _SECOND, 0)


def iso_time(seconds: int) -> str:
    """The RFC 3339 time of unix seconds, in UTC."""
    return f"{(_EPOCH + timedelta(seconds=min(max(seconds, 0), _MAX_TIME))).isoformat()}Z"
