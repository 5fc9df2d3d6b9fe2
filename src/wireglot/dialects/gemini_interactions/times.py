"""Times as the API writes them, both ways. By hand: the core imports no clock."""

from __future__ import annotations

import re
from typing import Any, Final

_STAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))?"
)
_DAY: Final = 86400
_ERA_DAYS: Final = 146097
"""Of 400 years."""
_EPOCH_DAYS: Final = 719468
"""From the first of March of the year 0 to 1970."""


def parse_time(stamp: Any) -> int:
    """The unix seconds of an RFC 3339 time, 0 for anything else."""
    found = _STAMP.fullmatch(stamp) if type(stamp) is str else None
    if found is None:
        return 0
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    shift = 0
    if found[7] is not None:
        shift = (int(found[8]) * 60 + int(found[9])) * (60 if found[7] == "+" else -60)
    # The year is made to start in March, so that the leap day comes last.
    years = year - (month < 3)
    days = years * 365 + years // 4 - years // 100 + years // 400
    days += (153 * ((month + 9) % 12) + 2) // 5 + day - 1 - _EPOCH_DAYS
    return max(days * _DAY + hour * 3600 + minute * 60 + second - shift, 0)


def format_time(seconds: int) -> str:
    days, rest = divmod(seconds, _DAY)
    era, day = divmod(days + _EPOCH_DAYS, _ERA_DAYS)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= year * 365 + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month += 3 if month < 10 else -9
    years = era * 400 + year + (month < 3)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{years:04}-{month:02}-{day + 1:02}T{clock}Z"
