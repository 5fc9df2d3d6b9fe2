"""Times of RFC 3339 and unix seconds, both ways. By hand: the core imports no clock."""

from __future__ import annotations

import re
from typing import Any, Final

_STAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))?"
)
_DAY: Final = 86_400
_EPOCH: Final = 719_468
"""Days from 0000-03-01 to 1970-01-01: a year that starts in March has its leap day at the end."""
_ERA: Final = 146_097
"""Days of 400 years."""


def unix_seconds(stamp: Any) -> int:
    """The seconds of an RFC 3339 time, 0 for anything else."""
    found = _STAMP.fullmatch(stamp) if type(stamp) is str else None
    if found is None:
        return 0
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    shift = 0
    if found[7] is not None:
        shift = (int(found[8]) * 60 + int(found[9])) * (60 if found[7] == "+" else -60)
    years = year - (month < 3)
    days = (
        years * 365
        + years // 4
        - years // 100
        + years // 400
        + (153 * ((month + 9) % 12) + 2) // 5
        + day
        - 1
        - _EPOCH
    )
    return max(days * _DAY + hour * 3600 + minute * 60 + second - shift, 0)


def rfc3339(seconds: int) -> str:
    """The RFC 3339 time of unix seconds, in UTC."""
    days, rest = divmod(max(seconds, 0), _DAY)
    era, day = divmod(days + _EPOCH, _ERA)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += 3 if month < 10 else -9
    year += 400 * era + (month < 3)
    hour, minute = rest // 3600, rest % 3600 // 60
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{rest % 60:02}Z"
