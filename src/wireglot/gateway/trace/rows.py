"""The last exchanges of this process, without bodies: running ones as their records, ended ones as the facts
for a row. Rows are made of these when they are requested. Listeners get each row as it begins and ends; a
slow listener misses some, which are counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, islice
from operator import itemgetter
from typing import Any, Final

import msgspec

from wireglot.gateway.observe.client_names import client_name
from wireglot.gateway.observe.forms import tuple_of
from wireglot.gateway.observe.record import MARKS, ExchangeRecord
from wireglot.gateway.trace.conversations import history_of, read_request
from wireglot.http.redaction import Redactor
from wireglot_core.ir.errors import legible
from wireglot_core.ir.loss import Loss, sum_of, worst_first
from wireglot_core.ir.usage import KINDS
from wireglot_core.traces.trace import LossCounts, Row, State, Tokens, TracedLoss, TurnHashes, traced
from wireglot_core.wire.json import repair_text

# Rows of a worker's own list of exchanges.
MAX_ROWS: Final = 10_000
_MAX_UNHEARD: Final = 500
"""Rows that wait for a page that listens to the live list."""
_LOOK_SECONDS: Final = 0.25
"""Between two checks for changes of running exchanges, while anybody listens."""
_UNLISTED_OPERATIONS: Final = frozenset(
    {"inspector", "admin", "health", "ready", "login", "metrics", "stub", "telemetry"}
)
_UNLISTED_PATHS: Final = ("/inspector", "/metrics", "/health", "/readyz", "/v1/admin/")
# Names of losses in one row of the list of exchanges.
_MAX_FEATURES: Final = 24
_GRADES: Final = ("serious", "degraded", "harmless")
# Bytes of a body that is kept until its title has been read.
_MAX_BODY_BYTES: Final = 2 * 1024 * 1024
_MAX_BODIES_BYTES: Final = 8 * 1024 * 1024
"""Bytes of requests that name no session: kept until a page needs to know which of them are turns of one
conversation."""
_IS_INPUT: Final = [kind.side == "input" for kind in KINDS.values()]
_CACHE_READ, _CACHE_WRITE, _REASONING = map(list(KINDS).index, ("cache_read", "cache_write", "reasoning"))

_COMPUTED: Final = (
    "at", "state", "client", "belongs_to", "first_ms", "total_ms", "waits_for", "waits_until", "tokens",
    "losses", "features",
)  # fmt: skip
"""The fields of a row that are computed here; the others are copied from the record."""
OTHER_FIELDS: Final = ("worker", "title", "history")
"""Those that no record has: the process, and what is read from bodies later."""
COPIED: Final = MARKS.copied("row", _COMPUTED)
_KEPT: Final = {source.path: source for source in (*MARKS.sources("row"), *COPIED)}
_KEPT_OTHERWISE: Final = ("usage", "losses")
"""As the tokens of each kind, and as the counts and features of the losses."""
_kept_of: Final = tuple_of(
    [source for path, source in _KEPT.items() if path not in _KEPT_OTHERWISE],
    computed=(*_KEPT_OTHERWISE, "at"),
    cut=True,
)
_PATHS: Final = (*[path for path in _KEPT if path not in _KEPT_OTHERWISE], *_KEPT_OTHERWISE)

Facts = tuple[Any, ...]
"""The facts kept of an exchange, those of `_PATHS` and when it began: a tuple of plain values is small, and
not tracked by the garbage collector."""
AT, CALLER, ID = len(_PATHS), _PATHS.index("caller"), _PATHS.index("id")
"""Indexes of some of the facts."""
_copied: Final[Callable[[Facts], Facts]] = itemgetter(*[_PATHS.index(source.path) for source in COPIED])
_COPIED_NAMES: Final = tuple(source.name for source in COPIED)
_foreign_texts: Final[Callable[[Facts], tuple[str, ...]]] = itemgetter(
    *[_PATHS.index(source.path) for source in COPIED if source.letters]
)
_FREE_TEXTS: Final = (*[source.name for source in COPIED if source.letters], "title")
"""For rows written by others."""
_needed: Final[Callable[[Facts], Facts]] = itemgetter(
    *map(
        _PATHS.index,
        (
            "started", "finished", "first_byte", "outcome", "status", "agent", "asked_as", "within", "usage",
            "usage_source", "losses", "waits", "waits_until",
        ),
    )
)  # fmt: skip
"""What the computed fields are made from."""


class Listener:
    """A queue of changed rows: the newest of each exchange, in the order of their first change."""

    def __init__(self) -> None:
        self.dropped = 0
        self._closing: list[Callable[[], object]] = []
        self._news: OrderedDict[str, Row] = OrderedDict()
        self._wake = asyncio.Event()

    def tell(self, row: Row) -> None:
        news = self._news
        if row.id not in news and len(news) >= _MAX_UNHEARD:
            news.popitem(last=False)
            self.dropped += 1
        news[row.id] = row
        self._wake.set()

    async def heard(self, seconds: float) -> list[Row]:
        """The waiting rows, or those that come within this many seconds."""
        if not self._news:
            self._wake.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._wake.wait()
            except TimeoutError:
                return []
        news = list(self._news.values())
        self._news.clear()
        return news

    def when_closed(self, call: Callable[[], object]) -> None:
        self._closing.append(call)

    def close(self) -> None:
        for call in self._closing:
            call()


class ExchangeRows:
    """Implements the observer's `RowSink`. Only used on the loop."""

    def __init__(self, worker: str, most: int = MAX_ROWS) -> None:
        self._worker = worker
        self._most = most
        self._running: dict[str, ExchangeRecord] = {}
        self._over: OrderedDict[str, Facts] = OrderedDict()
        """By id, the oldest first."""
        self._bodies: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        """Dialect and body by id, until its `history` is needed."""
        self._bodies_size = 0
        self._histories: dict[str, TurnHashes | None] = {}
        self._reading = asyncio.Lock()
        self._titles: dict[str, str] = {}
        self._listeners: list[Listener] = []
        self._seen: dict[str, tuple[object, ...]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._over_to: Callable[[Facts], None] | None = None

    def tell_over_to(self, take: Callable[[Facts], None]) -> None:
        """Call `take` with each exchange that ends."""
        self._over_to = take

    # Called by the observer.

    def begin(self, record: ExchangeRecord) -> None:
        if record.operation in _UNLISTED_OPERATIONS or record.path.startswith(_UNLISTED_PATHS):
            return
        if record.routine:
            return
        self._running[record.id] = record
        if self._listeners:
            self._tell(record)

    def finish(self, record: ExchangeRecord) -> None:
        if self._running.pop(record.id, None) is None:
            return
        over = self._over
        facts = over[record.id] = facts_of(record)
        if self._over_to is not None:
            self._over_to(facts)
        if len(over) > self._most:
            self._let_go(over.popitem(last=False)[0])
        if 0 < len(record.body) <= _MAX_BODY_BYTES:
            self._bodies[record.id] = record.dialect, record.body
            self._bodies_size += len(record.body)
            while self._bodies_size > _MAX_BODIES_BYTES:
                self._bodies_size -= len(self._bodies.popitem(last=False)[1][1])
        if self._listeners:
            self._seen.pop(record.id, None)
            row = row_of(facts, self._worker)
            for listener in self._listeners:
                listener.tell(row)

    # Called by pages.

    def snapshot(self, ids: Iterable[str] | None = None) -> list[Facts]:
        """The current facts, for `formatted`: running exchanges, then ended ones."""
        if ids is None:
            return [*map(facts_of, self._running.values()), *self._over.values()]
        return [facts for id in ids if (facts := self._facts(id)) is not None]

    def formatted(self, facts: Iterable[Facts]) -> Iterator[Row]:
        """Can run in any thread: ten thousand take a tenth of a second."""
        titles, histories = self._titles, self._histories
        for each in facts:
            row, id = row_of(each, self._worker), each[ID]
            if id in titles or id in histories:
                row = msgspec.structs.replace(row, title=titles.get(id, ""), history=histories.get(id))
            yield row

    async def read_histories(self) -> None:
        """From now on rows have their history: bodies are parsed in a thread, and dropped."""
        async with self._reading:  # the next caller waits for this read
            waiting, self._bodies, self._bodies_size = self._bodies, OrderedDict(), 0
            if waiting:
                found = await asyncio.to_thread(
                    lambda: {id: history_of(read_request(*asked)) for id, asked in waiting.items()}
                )
                self._histories.update((id, found[id]) for id in found.keys() & self._over.keys())

    def entitle(self, id: str, title: str) -> None:
        """Set the title of a recorded exchange, the last words of its user; others have none."""
        if title and id in self._over:
            self._titles[id] = title
            if self._listeners and (row := self.find(id)) is not None:
                for listener in self._listeners:
                    listener.tell(row)

    def _let_go(self, id: str) -> None:
        self._titles.pop(id, None)
        self._histories.pop(id, None)
        dialect_and_body = self._bodies.pop(id, None)
        if dialect_and_body is not None:
            self._bodies_size -= len(dialect_and_body[1])

    def find(self, id: str) -> Row | None:
        facts = self._facts(id)
        return next(self.formatted([facts]), None) if facts is not None else None

    def _facts(self, id: str) -> Facts | None:
        record = self._running.get(id)
        return facts_of(record) if record is not None else self._over.get(id)

    def forget(self, key: str, until: float = float("inf")) -> bool:
        """Drop all rows of one caller, up to a time; running exchanges are not listed or stored from now on.
        Returns whether there were any."""
        had_any = False
        for record in [each for each in self._running.values() if each.caller == key]:
            if record.at <= until:
                del self._running[record.id]
                record.wiped = had_any = True
                if self._listeners:
                    row = wiped(row_of(facts_of(record), self._worker))
                    for listener in self._listeners:
                        listener.tell(row)
        gone = [id for id, facts in self._over.items() if facts[CALLER] == key and facts[AT] <= until]
        for id in gone:
            del self._over[id]
            self._let_go(id)
        return had_any or bool(gone)

    def changed(self, seen: dict[str, tuple[object, ...]]) -> list[Row]:
        """The running exchanges that differ from `seen`; ended ones are removed from it."""
        for id in seen.keys() - self._running.keys():
            del seen[id]
        found = []
        for record in islice(reversed(list(self._running.values())), _MAX_UNHEARD):
            matters = _what_matters(record)
            if seen.get(record.id) != matters:
                seen[record.id] = matters
                found.append(row_of(facts_of(record), self._worker))
        return found

    def listen(self) -> Listener:
        listener = Listener()
        listener.when_closed(lambda: self._unlisten(listener))
        self._listeners.append(listener)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)
        return listener

    def _unlisten(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)
        if not self._listeners:
            self.close()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._seen.clear()

    def _look(self) -> None:
        """Find changes of running exchanges: records do not report them, so that they cost nothing."""
        for row in self.changed(self._seen):
            for listener in self._listeners:
                listener.tell(row)
        self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _tell(self, record: ExchangeRecord) -> None:
        self._seen[record.id] = _what_matters(record)
        row = row_of(facts_of(record), self._worker)
        for listener in self._listeners:
            listener.tell(row)


def _what_matters(record: ExchangeRecord) -> tuple[object, ...]:
    return (record.provider, record.upstream_model, record.attempts, record.first_byte, record.status,
            len(record.losses), record.recorded, record.waits, record.waits_until)  # fmt: skip


# Rows.


def wiped(row: Row) -> Row:
    """For a page that shows it as running: its caller's data was removed meanwhile."""
    error = "the data of its caller was removed while it ran"
    return Row(id=row.id, at=row.at, worker=row.worker, key=row.key, state="failed", error=error)


def facts_of(record: ExchangeRecord) -> Facts:
    """All values of a row, as far as they are known. Texts are cut to length, but otherwise as the client or
    the provider wrote them: see `redacted`."""
    return _kept_of(
        record,
        usage=record.token_kinds or record.kinds() if record.usage is not None else None,
        losses=_counted(record.grouped_losses()) if record.losses else None,
        at=round(time.time() - (time.monotonic() - record.started), 3),
    )


def row_of(facts: Facts, worker: str) -> Row:
    """Without lone surrogates, which a client may send and which cannot be encoded."""
    (
        started, finished, first_byte, outcome, status, agent, asked_as, within, tokens, source, losses,
        waits, until,
    ) = _needed(facts)  # fmt: skip
    at = facts[AT]
    fields: dict[str, Any] = dict(zip(_COPIED_NAMES, _copied(facts), strict=True))
    fields["at"] = at
    fields["worker"] = worker
    if finished:
        fields["state"] = _state(outcome, status)
        fields["total_ms"] = round((finished - started) * 1000, 2)
    elif waits:
        fields["waits_for"] = waits
        fields["waits_until"] = round(at + until - started, 3) if until else None
    if first_byte is not None:
        fields["first_ms"] = round((first_byte - started) * 1000, 2)
    if agent:
        fields["client"] = client_name(agent)
    fields["belongs_to"] = asked_as or within
    if tokens is not None:
        fields["tokens"] = _tokens(tokens, source)
    if losses:
        grades, features = losses
        fields["losses"], fields["features"] = LossCounts(*grades), list(features)
    row = Row(**fields)
    return row if "".join(_foreign_texts(facts)).isascii() else repaired(row)


def _state(outcome: str, status: int) -> State:
    if outcome == "client_abort":
        return "left"
    return "done" if outcome == "ok" and status < 400 else "failed"


def _tokens(kinds: tuple[int, ...], source: str) -> Tokens:
    return Tokens(
        input=sum(compress(kinds, _IS_INPUT)),
        output=sum(kinds) - sum(compress(kinds, _IS_INPUT)),
        cached=kinds[_CACHE_READ],
        cache_written=kinds[_CACHE_WRITE],
        reasoning=kinds[_REASONING],
        source=source,
    )


def _counted(losses: Sequence[Loss]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The number of losses of each grade, and their features: the worst first."""
    grades = tuple(sum_of(loss for loss in losses if loss.grade == grade) for grade in _GRADES)
    features = dict.fromkeys([str(loss.feature) for loss in worst_first(losses)])
    return grades, tuple(features)[:_MAX_FEATURES]


def repaired(row: Row) -> Row:
    """The row without lone surrogates, which cannot be encoded."""
    texts = {name: value for name in _FREE_TEXTS if (value := getattr(row, name))}
    return msgspec.structs.replace(row, **{name: repair_text(value) for name, value in texts.items()})


def redacted(row: Row, redactor: Redactor) -> Row:
    """The row as others may see it."""
    texts = {name: _clean(value, redactor) for name in _FREE_TEXTS if (value := getattr(row, name))}
    changed = {name: value for name, value in texts.items() if value != getattr(row, name)}
    return msgspec.structs.replace(row, **changed) if changed else row


def redacted_losses(losses: Sequence[Loss], redactor: Redactor) -> list[TracedLoss]:
    """The worst first."""
    return [
        msgspec.structs.replace(
            traced(loss), path=_clean(loss.path, redactor), detail=_clean(loss.detail, redactor)
        )
        for loss in worst_first(losses)
    ]


def _clean(text: str, redactor: Redactor) -> str:
    return legible(redactor.text(repair_text(text)))
