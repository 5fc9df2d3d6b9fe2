"""One line for each request, including failures, and notes about the process: JSON, or formatted for a
terminal.

Whatever a client, a model or a provider wrote is redacted, cut to a length and stripped of control and
bidirectional characters before it enters a line, so that no one else can forge a record or drive a terminal.

Lines leave the process through a bounded queue and a thread (`Sink`), so that a blocked reader stalls no
request.
"""

from __future__ import annotations

import atexit
import errno
import os
import select
import stat
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, Literal, Protocol

import msgspec

from wireglot.gateway.observe.forms import dict_of, tuple_of
from wireglot.gateway.observe.record import MARKS, MODEL_MAX, NAME_MAX, TEXT_MAX, ExchangeRecord
from wireglot.http.redaction import Redactor
from wireglot_core.ir.errors import legible
from wireglot_core.ir.loss import Loss, sum_of, worst_first
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.usage import KINDS
from wireglot_core.wire.json import repair_text

Level = Literal["debug", "info", "warn", "error"]


class Note(Protocol):
    """A line in the log about the process."""

    def __call__(self, level: Level, event: str, **fields: Any) -> None: ...


# Items of a list or table in a log line.
_ITEMS_MAX: Final = 64
MAX_LOSSES: Final = 24
"""Losses that one log line reports in full; all losses of a request are stored for an hour."""
# Cleaned names that are cached for log lines.
_MAX_NAMES_KNOWN: Final = 1024
# Cached beginnings of log lines.
_MAX_COMMON: Final = 512
_COMMON_LETTERS: Final = 1024
"""Longer names are not cached in clean form, since clients choose them."""
# Cached lists of losses for log lines.
_MAX_LOSSES_KNOWN: Final = 512
_LOSSES_KNOWN_LETTERS: Final = 4096
"""Characters of all losses of one request: longer ones are not cached."""

_encode = msgspec.json.Encoder().encode

_REPORTED_FIRST: Final = sorted(KINDS, key=lambda kind: kind not in ("input", "output"))
"""Kinds of tokens, the most important first."""
_reported_first: Final[Callable[[tuple[int, ...]], tuple[int, ...]]] = itemgetter(
    *map([*KINDS].index, _REPORTED_FIRST)
)

_WIDE_COLUMNS: Final = 140
"""Width of a terminal from which a request has all its columns on one line."""
_NARROW_REST_COLUMNS: Final = 37
"""Width of a narrow line without the requested model: time, status, tokens, duration, and spaces."""
_NARROW_LEAST_COLUMNS: Final = 20
_INDENT_COLUMNS: Final = 8
"""The width of the time column: continued lines are indented by it."""
_ENDLESS_COLUMNS: Final = 1 << 20

_COLOURS: Final[dict[str, str]] = {"debug": "2", "info": "32", "warn": "33", "error": "31", "dim": "2"}


def wants_colour(fd: int) -> bool:
    """See no-color.org: any non-empty value disables colour."""
    return os.isatty(fd) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns_of(fd: int) -> int:
    """The current width of the terminal; a wide one if it is unknown."""
    try:
        return os.get_terminal_size(fd).columns or _WIDE_COLUMNS
    except OSError:
        return _WIDE_COLUMNS


class Cleaner:
    """Makes foreign text safe for a line. Names repeat, so their clean form is cached."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known: dict[str, str] = {}

    def name(self, text: str, limit: int = NAME_MAX) -> str:
        clean = self._known.get(text)
        if clean is None:
            clean = self.text(text, limit)
            if len(text) <= MODEL_MAX and len(clean) <= MODEL_MAX:  # within all limits
                if len(self._known) >= _MAX_NAMES_KNOWN:
                    self._known.clear()
                self._known[text] = clean
        return clean

    def text(self, text: str, limit: int = TEXT_MAX) -> str:
        # Cut once before the work, with room for what the second cut, of the clean text, removes.
        clean = self._redactor.text(text[: 2 * limit + 64])
        return legible(clean if clean.isascii() else repair_text(clean), limit)

    def value(self, value: Any) -> Any:
        """A field of a note, of any type."""
        match value:
            case str():
                return self.text(value)
            case bool() | int() | float() | None:
                return value
            case Mapping():
                return {
                    self.text(str(key)): self.value(item) for key, item in list(value.items())[:_ITEMS_MAX]
                }
            case list() | tuple() | set() | frozenset():
                return [self.value(item) for item in list(value)[:_ITEMS_MAX]]
            case _:
                return self.text(str(value))


_COMPUTED: Final = (
    "id", "route", "tokens", "tokens_source", "ms", "first_byte_ms",
    "losses", "loss_details", "losses_unreported", "losses_untold", "error",
)  # fmt: skip
"""The fields of a line that are computed here; the others are copied from the record."""
_COPIED: Final = MARKS.copied("log", _COMPUTED)
_each_of: Final = dict_of([source for source in _COPIED if source.part == "each"], sparse=True)
_COMMON: Final = tuple(source for source in MARKS.sources("log") if not source.part and source.name != "id")
_common_of: Final = tuple_of(_COMMON)
_PROBLEMS: Final = tuple(source for source in _COPIED if source.part == "problem")
_problems_of: Final = tuple_of(_PROBLEMS)


class JsonLines:
    def __init__(self, redactor: Redactor, clock: Callable[[], float] = time.time) -> None:
        self._clean = Cleaner(redactor)
        self._values = redactor.values
        self._clock = clock
        self._second = -1
        self._prefix = ""
        self._commons: dict[tuple[Any, ...], tuple[bytes, bytes]] = {}
        self._reported_losses: dict[tuple[Loss, ...], dict[str, Any]] = {}
        """Cached, since a client has the same losses with every request: their fields in the line."""

    def request(self, record: ExchangeRecord) -> bytes:
        # In pieces: the part that many requests have in common is written once.
        line: dict[str, Any] = {}
        if record.usage is not None:
            kinds = record.token_kinds or record.kinds()
            line["tokens"] = dict(zip(_REPORTED_FIRST, _reported_first(kinds), strict=True))
            if record.usage_source != "provider":
                line["tokens_source"] = record.usage_source
        # Rounded to the nearest tenth, as a difference of two readings may fall just short of one, in a third
        # of the time of round(). With clocks of different resolution an end may be before its start.
        started = record.started
        line["ms"] = int(max(0.0, record.finished - started) * 10_000 + 0.5) / 10
        if record.first_byte is not None:
            line["first_byte_ms"] = int(max(0.0, record.first_byte - started) * 10_000 + 0.5) / 10
        line |= _each_of(record)
        if record.losses:
            line.update(self._reported(tuple(record.grouped_losses())))
        # All foreign text of such a request has been cleaned, once for many requests.
        good = record.outcome == "ok" and record.status < 400 and not record.notes and not record.fallbacks
        if not good:
            self._add_problems(record, line)
        alike = _common_of(record)
        level, common = self._commons.get(alike) or self._common(record, alike)
        written = b'{"ts":"%b","level":"%b","event":"request","id":%b,%b,%b' % (
            self._time().encode(),
            level,
            _encode(record.id),
            common,
            _encode(line)[1:],
        )
        return (written if good else self._values(written)) + b"\n"

    def _common(self, record: ExchangeRecord, alike: tuple[Any, ...]) -> tuple[bytes, bytes]:
        """The level, and the fields that all requests with these values have in common."""
        name = self._clean.name
        common: dict[str, Any] = {}
        for source, value in zip(_COMMON, alike, strict=True):
            if source.name == "route":  # made from two values
                if record.provider:
                    common["route"] = name(record.route)
            elif value != "" or source.always:
                common[source.name] = name(value, source.letters) if source.letters else value
        written = level_of(record).encode(), _encode(common)[1:-1]
        if sum(len(text) for text in alike if type(text) is str) <= _COMMON_LETTERS:
            if len(self._commons) >= _MAX_COMMON:
                self._commons.clear()
            self._commons[alike] = written
        return written

    def _reported(self, losses: tuple[Loss, ...]) -> dict[str, Any]:
        """The features of all losses, and the worst losses in full."""
        reported = self._reported_losses.get(losses)
        if reported is not None:
            return reported
        name = self._clean.name
        worst = worst_first(losses)
        details = [
            {**loss.as_dict(), "path": name(loss.path, TEXT_MAX), "detail": name(loss.detail)}
            for loss in worst[:MAX_LOSSES]
        ]
        reported = {
            "losses": list(dict.fromkeys([loss.feature for loss in worst])),
            "loss_details": msgspec.Raw(_encode(details)),
        }
        if len(worst) > MAX_LOSSES:
            # The second is the former name, for existing readers.
            reported["losses_unreported"] = reported["losses_untold"] = sum_of(worst[MAX_LOSSES:])
        if sum(len(loss.path) + len(loss.detail) for loss in losses) <= _LOSSES_KNOWN_LETTERS:
            if len(self._reported_losses) >= _MAX_LOSSES_KNOWN:
                self._reported_losses.clear()
            self._reported_losses[losses] = reported
        return reported

    def _add_problems(self, record: ExchangeRecord, line: dict[str, Any]) -> None:
        clean = self._clean.text
        for source, value in zip(_PROBLEMS, _problems_of(record), strict=True):
            if type(value) is list and value:
                line[source.name] = [clean(text, source.letters) for text in value[:_ITEMS_MAX]]
            elif value:
                line[source.name] = clean(value, source.letters)
        if record.error_kind or record.error_message:
            line["error"] = {
                "kind": record.error_kind,
                "code": clean(record.error_code, MODEL_MAX),
                "message": clean(record.error_message),
            }
            if record.error_fix:
                line["error"]["fix"] = clean(record.error_fix)

    def note(self, level: Level, event: str, fields: Mapping[str, Any]) -> bytes:
        line = {"ts": self._time(), "level": level, "event": event}
        for field, value in fields.items():
            line[field if field not in line else f"{field}_"] = self._clean.value(value)
        return self._values(_encode(line)) + b"\n"

    def _time(self) -> str:
        now = self._clock()
        second = int(now)
        if second != self._second:
            self._second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._prefix}.{int((now - second) * 1000):03d}Z"


class PrettyLines:
    """For a person at a terminal; columns line up while names stay within their usual length.

    `columns`: its width. A narrow line has only the most important fields and problems.
    """

    def __init__(
        self,
        redactor: Redactor,
        clock: Callable[[], float] = time.time,
        *,
        colour: bool = False,
        columns: Callable[[], int] = lambda: _WIDE_COLUMNS,
    ) -> None:
        self._columns = columns
        self._clean = Cleaner(redactor)
        self._values = redactor.values
        self._clock = clock
        self._colour = colour

    def request(self, record: ExchangeRecord) -> bytes:
        clean = self._clean.name
        asked, route = clean(record.model, MODEL_MAX), clean(record.route)
        what = (f"{asked} -> {route}" if route else asked) or self._clean.text(record.path, TEXT_MAX)
        if (columns := self._columns()) < _WIDE_COLUMNS:
            return self._narrow(record, what, columns)
        parts = [
            self._paint("dim", self._time()),
            self._paint(level_of(record), f"{record.status or '---'}"),
            f"{record.dialect or '-':<16}",
            f"{what:<52}",
            f"{'stream' if record.stream else 'whole':<6}",
            f"{_tokens(record.usage, record.usage_source):>16}",
            f"{_duration(record.seconds):>8}",
        ]
        if record.first_byte is not None:
            parts.append(self._paint("dim", f"first {_duration(record.first_byte - record.started)}"))
        parts += self._remarks(record)
        return self._line(parts)

    def _narrow(self, record: ExchangeRecord, what: str, columns: int) -> bytes:
        """One line of the terminal, and further ones for problems."""
        room = max(columns - _NARROW_REST_COLUMNS, _NARROW_LEAST_COLUMNS)
        if len(what) > room:
            what = f"{what[: room - 1]}…"
        line = self._line(
            [
                self._paint("dim", self._time()),
                self._paint(level_of(record), f"{record.status or '---'}"),
                f"{what:<{room}}",
                f"{_tokens(record.usage, record.usage_source):>14}",
                f"{_duration(record.seconds):>8}",
            ]
        )
        words = [(word, colour) for text, colour in self._what_happened(record) for word in text.split(" ")]
        return line + self._wrapped([], words, columns) if words else line

    def _remarks(self, record: ExchangeRecord) -> list[str]:
        clean, remarks = self._clean.text, []
        if record.caller:
            remarks.append(self._paint("dim", f"key {clean(record.caller, NAME_MAX)}"))
        if record.stop:
            remarks.append(clean(record.stop, NAME_MAX))
        return remarks + [self._paint(colour, text) for text, colour in self._what_happened(record)]

    def _what_happened(self, record: ExchangeRecord) -> list[tuple[str, str]]:
        """Texts about a request's special events, each with its colour."""
        clean, remarks = self._clean.text, []
        if record.attempts > 1:
            remarks.append((f"attempts {record.attempts}", ""))
        if record.fallbacks:
            remarks.append(("after " + ", ".join(clean(one, NAME_MAX) for one in record.fallbacks), ""))
        if record.losses:
            remarks.append(("losses " + ", ".join(features_of(record)), "warn"))
        if record.flaws:
            remarks.append(("flaws " + ", ".join(record.flaws), "warn"))
        if record.outcome in ("client_abort", "gateway_abort"):
            remarks.append((record.outcome.replace("_", " "), "warn"))
        if record.error_kind or record.error_message:
            said = f"{record.error_kind}: {clean(record.error_message)}"
            if record.error_fix:
                said += f" [{clean(record.error_fix)}]"
            remarks.append((said, level_of(record)))
        return remarks + [(clean(note), "") for note in record.notes]

    def note(self, level: Level, event: str, fields: Mapping[str, Any]) -> bytes:
        if list(fields) == ["text"]:  # one sentence
            said = self._clean.text(str(fields["text"])).split(" ")
        else:
            said = [f"{key}={_plain(self._clean.value(value))}" for key, value in fields.items()]
        columns = self._columns()
        room = columns if columns < _WIDE_COLUMNS else _ENDLESS_COLUMNS
        first = [(self._time(), "dim"), (event, level)]
        return self._wrapped(first, [(each, "") for each in said], room)

    def _wrapped(self, first: list[tuple[str, str]], words: list[tuple[str, str]], columns: int) -> bytes:
        """Coloured words after `first`, or below the words of the line above; each line fits the width."""
        indent = " " * _INDENT_COLUMNS
        lines = [[self._paint(colour, word) for word, colour in first] or [indent]]
        used = sum(1 + len(word) for word, _ in first) - 1 if first else _INDENT_COLUMNS
        for word, colour in words:
            if used + 1 + len(word) > columns and used > _INDENT_COLUMNS:
                lines.append([indent])
                used = _INDENT_COLUMNS
            used += 1 + len(word)
            lines[-1].append(self._paint(colour, word))
        return b"".join(self._line(line) for line in lines)

    def _line(self, parts: list[str]) -> bytes:
        return self._values(" ".join(parts).rstrip().encode("utf-8", "replace")) + b"\n"

    def _time(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self._clock()))

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._colour and colour else text


Lines = JsonLines | PrettyLines


def level_of(record: ExchangeRecord) -> Level:
    if record.outcome == "ok" and record.status < 400:
        return "info"
    return "warn" if record.outcome == "client_abort" or 400 <= record.status < 500 else "error"


def features_of(record: ExchangeRecord) -> list[str]:
    """The worst first."""
    return list(dict.fromkeys([loss.feature for loss in worst_first(record.grouped_losses())]))


def _tokens(usage: Usage | None, source: str) -> str:
    if usage is None:
        return "-"
    mark = "~" if source == "estimated" else ""
    return f"{mark}{usage.total_input} -> {mark}{usage.total_output}"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()


# Writing lines.

QUEUE_LINES: Final = 10_000
PAUSE_SECONDS: Final = 0.05
"""Seconds for which lines are gathered before the next write."""
ATOMIC_BYTES: Final = min(getattr(select, "PIPE_BUF", 512), 4096)
"""A pipe accepts this much in one piece; longer writes of several workers would mix inside a line."""
FILE_BYTES: Final = 64 * 1024
"""A file accepts larger writes, one after the other. For each the thread must get the interpreter's lock from
the loop again."""


class Sink:
    """A queue of lines (each with its newline) and a thread that writes them. `dropped`: the queue was full.
    `failed`: the target refused a write.

    A thread, because the alternative, a non-blocking descriptor, is a flag of the terminal or pipe itself and
    would change it for every process that shares it.
    """

    def __init__(self, fd: int, *, limit: int = QUEUE_LINES, pause: float = PAUSE_SECONDS) -> None:
        self._fd = fd
        self._limit = limit
        self._pause = pause
        self._begin_again()
        _SINKS.add(self)

    def _begin_again(self) -> None:
        self._queue: deque[bytes] = deque()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._starting = threading.Lock()
        self._writer: threading.Thread | None = None
        self._idle = True
        self._closing = False
        self.dropped = 0
        self.failed = 0

    def write(self, line: bytes) -> None:
        if len(self._queue) >= self._limit or self._closing:
            self.dropped += 1
            return
        self._queue.append(line)
        if self._idle:
            self._idle = False
            if self._writer is None:
                self._start()
            self._wake.set()

    def close(self, timeout: float = 1.0) -> None:
        """Write the queued lines, as far as the reader accepts them in time; later lines are dropped."""
        self._closing = True
        if self._writer is not None:
            self._wake.set()
            self._ended.wait(timeout)

    def _start(self) -> None:
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(target=self._run, name="wireglot-log", daemon=True)
                self._writer.start()

    def _run(self) -> None:
        try:
            while True:
                self._flush()
                if self._closing and not self._queue:
                    return
                self._rest()
        finally:
            self._ended.set()

    def _rest(self) -> None:
        # First set the flag, then check the queue: a line queued in between is seen by one of the two sides.
        self._idle = True
        if not self._queue and not self._closing:
            self._wake.wait()
        self._idle = False
        self._wake.clear()
        if not self._closing:
            # A burst is written in a few pieces. `close` need not wait for it: the event is set again by
            # then.
            self._wake.wait(self._pause)

    def _flush(self) -> None:
        most = _at_once(self._fd) if self._queue else 0
        while self._queue:
            lines = [self._queue.popleft()]
            size = len(lines[0])
            while self._queue and size + len(self._queue[0]) <= most:
                lines.append(self._queue.popleft())
                size += len(lines[-1])
            try:
                self._write_out(b"".join(lines))
            except OSError:
                self.failed += len(lines)

    def _write_out(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:  # another process that shares the descriptor has made it non-blocking
                self._wait_for_reader()
            except OSError as fault:
                if fault.errno != errno.EINTR:
                    raise

    def _wait_for_reader(self) -> None:
        try:
            select.select([], [self._fd], [], 0.2)
        except ValueError:  # a descriptor beyond what select can watch
            time.sleep(0.01)


def _at_once(fd: int) -> int:
    """How many bytes it accepts in one piece."""
    try:
        return FILE_BYTES if stat.S_ISREG(os.fstat(fd).st_mode) else ATOMIC_BYTES
    except OSError:  # the write will report it
        return ATOMIC_BYTES


_SINKS: weakref.WeakSet[Sink] = weakref.WeakSet()


def _close_all() -> None:
    for sink in list(_SINKS):
        sink.close()


def _after_fork() -> None:
    # The thread stayed in the parent, which writes the queued lines.
    for sink in list(_SINKS):
        sink._begin_again()


# Runs after an uncaught exception too, so that the lines before a crash are not lost.
atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
