"""Replaces what differs between two runs of the same tree, each kind by its own rule.

A rule keeps what does not vary: the prefix and the length of an id, the precision of a time, the size of a
sealed token. An id is named after the request that showed it first, so that the same id in two requests has
the same name, and an additional one changes no name but its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

_ID: Final = re.compile(r"(?<![0-9A-Za-z])(?!begins-)([a-z]{2,9}[_-](?:wg)?)([0-9a-f]{16,64})(?![0-9A-Za-z])")
"""`begins-` is a digest of what a conversation begins with, the same in each run."""
_SEALED: Final = re.compile(r"(?<![A-Za-z0-9+/_-])(V0cx[Ag])([A-Za-z0-9+/_-]{40,}={0,2})")
"""Sealed with a nonce: the mark of an envelope, then the version, whose second form is compressed."""
_BARE_ID: Final = re.compile(r"(?<![0-9A-Za-z:_-])[0-9a-f]{32}(?![0-9A-Za-z])")
_REFERENCE: Final = re.compile(r'(?<="id":"wg)[0-9a-f]{16}(?=")')
"""Of a stored reference: a digest of a minted id."""
_INSTANCE: Final = re.compile(r"(?<=<instance>-)[0-9a-f]{8}")
_CLIENT_KEY: Final = re.compile(r"(?<![0-9A-Za-z])wg-([0-9A-Za-z_-]{40,64})")
_HTTP_DATE: Final = re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
_ISO: Final = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_UNIX: Final = re.compile(r"(?<![\w.-])(1[5-9]\d{8})(\d{3})?(\.\d+)?(?![\w-])")
_RETRY_AFTER: Final = re.compile(r'(retry-after(?:: |","))(\d{3,})')
_AGE: Final = re.compile(r"^age: \d+$", re.MULTILINE)
_DRAINING: Final = re.compile(r'("event":"draining","seconds":[0-9.]+,"requests":)\d+')
_KEY_PREFIX: Final = re.compile(r'(?<="prefix":"wg-)[0-9A-Za-z_-]{3}(?=")')
_ELASTIC: Final = re.compile(
    r'(\\*"(?:retryDelay|mean_ms|p50_ms|size|bytes)\\*":)(?:\\*"[0-9.]+s\\*"|(?<=_ms":)\d+|\d{5,}(?=[,}]))'
)
"""Waits with jitter or a fraction, durations and sizes of files: the length of a body is theirs, too."""
_LENGTH: Final = re.compile(r'(content-length: |"bytes":)\d+')
_STEP: Final = re.compile(r'\{"name":"([a-z ]+)","began_ms":[0-9.]+,"ended_ms":[0-9.]+\}')
_STEPS: Final = re.compile(f"{_STEP.pattern}(?:,{_STEP.pattern})*")
_SHORT_STEPS: Final = frozenset({"queue", "provider queue", "translation", "failed attempt", "retry wait"})
"""A trace leaves out steps that take less than 0.05 ms, and these may take less or more."""
_CAUSES: Final = re.compile(r'"causes":\[(?:\d+,)*(\d+)\]')
"""How many events of the upstream were read at once."""
_DURATION: Final = re.compile(r'"((?:[a-z_]+_)?ms|first_byte)":-?[0-9.]+(?:e-?\d+)?')

_NOW_SECONDS: Final = 900
"""Longer than a run: a time within it of a request is the time of the request."""
_HOUR: Final = 3600
_YEARS: Final = 3 * 366 * 24 * _HOUR


def step_names(trace: str) -> set[str]:
    """The names of all steps of a trace."""
    return set(_STEP.findall(trace))


def _without_short_steps(steps: re.Match[str]) -> str:
    return ",".join(step[0] for step in _STEP.finditer(steps[0]) if step[1] not in _SHORT_STEPS)


class Normaliser:
    """`places` are texts of this run alone, such as addresses and folders, with what stands for them."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))
        self._ids: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def text(self, text: str, name: str, at: float, known: str = "") -> str:
        """`name` is the request's, `at` its time. Ids in `known` were sent by the test itself and stay."""
        for place, label in self._places:
            text = text.replace(place, label)
        text = _ID.sub(lambda found: self._labelled(found[1], found[2], name, known), text)
        text = _INSTANCE.sub("<8>", text)
        text = _CLIENT_KEY.sub(lambda found: f"wg-{self._label(found[1], name)}", text)
        text = _SEALED.sub(
            lambda found: f"{found[1]}<sealed:{len(found[2]) if found[1] == 'V0cxA' else ''}>", text
        )
        text = _HTTP_DATE.sub(lambda found: _dated(found[0], at, known), text)
        text = _ISO.sub(lambda found: _iso(found, at), text)
        text = _RETRY_AFTER.sub(lambda found: f"{found[1]}{_wait(int(found[2]), at)}", text)
        text = _AGE.sub("age: <seconds>", text)
        text = _KEY_PREFIX.sub("<3>", text)
        text = _UNIX.sub(lambda found: _unix(found, at), text)
        text, elastic = _ELASTIC.subn(r"\1<varies>", text)
        return _LENGTH.sub(r"\1<varies>", text) if elastic else text

    def timed(self, text: str, name: str, at: float, known: str = "") -> str:
        """The same for what the gateway says of an exchange: its durations, too."""
        text = _DRAINING.sub(r"\1<number>", text)
        text = _STEPS.sub(_without_short_steps, text)
        text = _CAUSES.sub(r'"causes":<to \1>', text)
        return _DURATION.sub(r'"\1":<time>', self.text(text, name, at, known))

    def stored(self, text: str, name: str, at: float) -> str:
        """The same for a row of the store, where ids have no prefix."""
        text = _REFERENCE.sub("<16>", self.timed(text, name, at))
        return _BARE_ID.sub(lambda found: self._label(found[0], name), text)

    def _labelled(self, prefix: str, digits: str, name: str, known: str) -> str:
        if digits not in self._ids and digits in known:
            return prefix + digits
        return prefix + self._label(digits, name)

    def _label(self, digits: str, name: str) -> str:
        label = self._ids.get(digits)
        if label is None:
            self._counts[name] = number = self._counts.get(name, 0) + 1
            label = self._ids[digits] = f"<{name}#{number}:{len(digits)}>"
        return label


def _dated(date: str, at: float, known: str) -> str:
    moment = datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC).timestamp()
    return "<date>" if abs(moment - at) < _NOW_SECONDS and date not in known else date


def _iso(found: re.Match[str], at: float) -> str:
    moment = datetime.fromisoformat(found[0])
    relative = _relative((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - at)
    return f"<iso{len(found[1] or '')}{found[2] or ''} {relative}>" if relative else found[0]


def _unix(found: re.Match[str], at: float) -> str:
    relative = _relative(int(found[1]) - at)
    unit = "ms" if found[2] else "s"
    return f"<unix {unit}{'.' if found[3] else ''} {relative}>" if relative else found[0]


def _relative(seconds: float) -> str:
    """Empty where it has nothing to do with the time of the run."""
    if abs(seconds) < _NOW_SECONDS:
        return "now"
    return f"now{round(seconds / _HOUR):+}h" if abs(seconds) < _YEARS else ""


def _wait(seconds: int, at: float) -> str:
    """A wait for the end of the day or of the month depends on when the run is."""
    now = datetime.fromtimestamp(at, UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    month = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
    for name, end in (("day", midnight + timedelta(days=1)), ("month", month)):
        if abs((end - now).total_seconds() - seconds) < _NOW_SECONDS:
            return f"<end of the {name}>"
    return str(seconds)
