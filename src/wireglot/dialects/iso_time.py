"""Parses and renders RFC 3339 times. Implemented here, because the core imports no clock."""

from __future__ import annotations

import re
from typing import Any, Final

_STAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))?"
)
_DAY: Final = 86400
_EPOCH: Final = 719468
"""Days from March 1 of the year 0 to 1970-01-01. Years begin in March here: the leap day comes last."""


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


def iso_time(seconds: int) -> str:
    """The RFC 3339 time of unix seconds, in UTC."""
    days, rest = divmod(seconds, _DAY)
    era, day_of_era = divmod(days + _EPOCH, 146097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month < 3)
    return f"{year:04}-{month:02}-{day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"
