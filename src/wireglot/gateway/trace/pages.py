"""Pages of the inspector about exchanges: the list, a single one, its file, its images, conversations."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from wireglot.gateway.entry.gates import Gate, shed, shed_seconds
from wireglot.gateway.errors import RequestError, invalid_value
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import InspectorHandler, Viewer
from wireglot.gateway.trace.conversations import DERIVED, with_sessions
from wireglot.gateway.trace.export import FORMATS, ExportFormat, csv_lines, har_entries, json_lines
from wireglot.gateway.trace.filters import FIELDS, PARAMETERS, BadFilter, Term, parse_parameters
from wireglot.gateway.trace.own_view import own_attempts, own_row, own_trace
from wireglot.gateway.trace.rows import Listener
from wireglot.gateway.trace.search import Limiter, Search, SearchResult
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import SORTS, Wanted
from wireglot.http.application import Headers
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.cache_truth import conversation_cache, exchange_cache
from wireglot_core.traces.file import SUFFIX, write_trace
from wireglot_core.traces.pointer import resolve
from wireglot_core.traces.trace import Row, Trace, TraceMessage
from wireglot_core.wire.json import BadJson, decode

PLACES: Final = 32
"""Maximum viewers of a live list, in this process."""
_PLACES_OF_A_KEY: Final = 6
_PLACES_OF_KEYS: Final = 28
_PLACES_WITHOUT_KEY: Final = 24
"""So that neither viewers with keys nor those without can take all places."""
_TURN_SECONDS: Final = 1.0
"""Interval of checks whether the gateway stops or the viewer lost access."""
_PING_SECONDS: Final = 15.0
_GATHER_SECONDS: Final = 0.05
"""Rows that come within this time are sent together."""
_HEADERS: Final[Headers] = [
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
]

_encode = msgspec.json.Encoder().encode


class Live:
    def __init__(self, traces: Traces, is_draining: Callable[[], bool]) -> None:
        self._traces = traces
        self._is_draining = is_draining
        self._inside: Counter[str] = Counter()
        """By client key; "": viewers with the admin secret, or without the need for one."""

    def _enter(self, key: str) -> None:
        own, of_keys = self._inside[key], self._inside.total() - self._inside[""]
        if own >= (_PLACES_OF_A_KEY if key else _PLACES_WITHOUT_KEY):
            whose = "with this client key" if key else "with the admin secret"
            text = f"{own} pages already follow the live list {whose}: close one of them"
            raise RequestError("rate", text, code="too_many_listeners", retry_after=shed_seconds())
        if self._inside.total() >= PLACES or (key and of_keys >= _PLACES_OF_KEYS):
            raise shed("too many pages follow the live list")
        self._inside[key] += 1

    async def tell(self, page: PageRequest, viewer: Viewer) -> None:
        self._enter(viewer.key)
        listener = self._traces.listen()
        try:
            await self._tell(page, viewer, listener)
        finally:
            self._inside[viewer.key] -= 1
            listener.close()

    async def _tell(self, page: PageRequest, viewer: Viewer, listener: Listener) -> None:
        reply, loop = page.reply, asyncio.get_running_loop()
        flowing = asyncio.Event()
        flowing.set()
        hello: dict[str, Any] = {"worker": self._traces.worker, "recording": await self._traces.status()}
        page.record.answered(200)
        reply.start(200, [*_HEADERS, *identity(page.record.id, page.asked.dialect)])
        reply.on_pressure(flowing.clear, flowing.set)
        reply.write(_event("hello", hello))
        last, dropped, fleet = loop.time(), 0, hello["recording"]["fleet"]
        while not self._is_draining() and viewer.holds():
            if not flowing.is_set():  # rows that come meanwhile wait in the listener, which is bounded
                await asyncio.sleep(_GATHER_SECONDS)
                continue
            news = await self._traces.titled(await listener.heard(_TURN_SECONDS))
            pieces = [
                _event("row", _as_seen(self._traces.redacted(row), page, viewer))
                for row in news
                if viewer.sees(row.key, row.at)
            ]
            if listener.dropped > dropped:
                dropped = listener.dropped
                pieces.append(_event("dropped", {"count": dropped}))
            now = self._traces.fleet.status()
            if now != fleet:
                fleet = now
                pieces.append(_event("fleet", fleet))
            if not pieces and loop.time() - last >= _PING_SECONDS:
                pieces = [b": ping\n\n"]
            if pieces:
                reply.write(b"".join(pieces))
                last = loop.time()
            if news:
                await asyncio.sleep(_GATHER_SECONDS)
        reply.end()


def _as_seen(row: Row, page: PageRequest, viewer: Viewer) -> Row:
    return row if viewer.sees_all else own_row(row, page.settings.providers)


def _hides_error(row: Row, page: PageRequest, viewer: Viewer) -> bool:
    return _as_seen(row, page, viewer).error != row.error


def _event(name: str, document: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), _encode(document))


_POINTER_LETTERS: Final = 1024
_KINDS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_RIFF: Final = b"RIFF"
_WEBP: Final = b"WEBP"


class NoPicture(Exception):
    """There is no image at that place, or none that may be shown."""


def picture(trace: Trace, part: str, pointer: str) -> tuple[str, bytes]:
    """Its type and its bytes. `part`: `client` or `upstream`, whose document; both requests and whole answers
    are searched."""
    if len(pointer) <= _POINTER_LETTERS and pointer.startswith("/"):
        for message in _messages(trace, part):
            with contextlib.suppress(BadJson, LookupError):
                found = resolve(decode(message.body) if not message.base64 else None, pointer)
                if isinstance(found, str):
                    return _raster(found)
    raise NoPicture("there is no text at that path")


def _messages(trace: Trace, part: str) -> list[TraceMessage]:
    if part in ("", "client"):
        return [trace.request, trace.answer]
    if part == "upstream":
        last = trace.attempts[-1:]
        return [side for each in last for side in (each.request, each.answer) if side is not None]
    raise NoPicture("part: expected client or upstream")


def _raster(text: str) -> tuple[str, bytes]:
    """An image in base64, alone or in a data URL."""
    if text[:5].lower() == "data:":
        text = text.partition(",")[2]
    try:
        data = base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None, validate=True)
    except (binascii.Error, ValueError):
        raise NoPicture("not base64") from None
    for beginning, kind in _KINDS:
        if data.startswith(beginning):
            return kind, data
    if data[:4] == _RIFF and data[8:12] == _WEBP:
        return "image/webp", data
    raise NoPicture("not a supported picture: PNG, JPEG, GIF or WebP")


_PAGE_USUAL: Final = 100
# Rows on one page of the list of exchanges.
_MAX_PAGE: Final = 1000
_ID_LETTERS: Final = 64
_MAX_COUNTED: Final = 2_000
"""Matches of a filter that are counted: their rows come from all workers and machines."""
# Conversations that the page lists.
_MAX_CONVERSATIONS: Final = 200
_MAX_CACHE_TURNS: Final = 60
"""Turns of a conversation that are read and compared to explain the prompt cache."""
# Minutes of recording that the page asks for: a day.
_MAX_MINUTES: Final = 24 * 60
# Exchanges that one export names.
_MAX_IDS: Final = 500
_HABIT_ROWS: Final = 5_000
"""The newest rows, among which usual losses are counted."""
_JOINED_ROWS: Final = 10_000
"""The newest rows, among which turns are joined."""
# Exports that run at once.
_MAX_EXPORTS: Final = 4
_EXPORTS_OF_A_KEY: Final = 2
_EXPORTS_OF_KEYS: Final = 3
"""One export is reserved for the operator, however slowly clients with keys read theirs."""
_EXPORTED_ROWS: Final = 1000
"""Rows at a time."""

FindLosses = Callable[[str, str], Awaitable[bytes | None]]
"""Returns the losses of a caller's request, as their page reports them (JSON)."""


class TracePages:
    def __init__(self, traces: Traces, find_losses: FindLosses, is_draining: Callable[[], bool]) -> None:
        self._traces = traces
        self._find_losses = find_losses
        self._is_draining = is_draining
        self._exporting: Counter[str] = Counter()
        """By client key; "": with the admin secret, or without any."""
        self._live = Live(traces, is_draining)
        self._search = Search(traces)
        self._telling = Limiter(2)
        self._counting = Gate(2, 16, 10.0)

    def handlers(self) -> Mapping[str, InspectorHandler]:
        return {
            "exchanges.list": self._list,
            "exchanges.get": self._get,
            "exchanges.cache": self._cache,
            "exchanges.running": self._running,
            "exchanges.export": self._export,
            "exchanges.image": self._image,
            "exchanges.fields": self._fields,
            "exchanges.export_all": self._export_all,
            "exchanges.losses": self._losses,
            "conversations.list": self._conversations,
            "recording.get": self._recording,
            "recording.set": self._record,
            "live": self._live.tell,
        }

    # Lists.

    async def _list(self, page: PageRequest, viewer: Viewer) -> None:
        limit = page.number("limit", _PAGE_USUAL, 1, _MAX_PAGE)
        if page.query("count"):
            page.send(await self._count(_wanted(page, viewer), viewer))
            return
        wanted = msgspec.structs.replace(_wanted(page, viewer), limit=limit + 1)
        wanted = msgspec.structs.replace(wanted, before=await self._before(page, viewer, wanted))
        if wanted.texts:
            found = await self._search.find(wanted, limit)
        else:
            rows = await self._listed(wanted, viewer)
            found = SearchResult(rows[:limit], rows[limit - 1].id if len(rows) > limit else None)
        seen = [_as_seen(row, page, viewer) for row in found.rows]
        reported: dict[str, Any] = {"rows": seen, "next": found.next}
        if found.unread:
            reported["unread"] = found.unread
        if (fleet := self._traces.fleet.status()) is not None:
            reported["fleet"] = fleet
        page.send(reported)

    async def _count(self, wanted: Wanted, viewer: Viewer) -> dict[str, Any]:
        """The number that match; `more`: that is not all, or texts were not searched everywhere."""
        if wanted.texts:
            found = await self._search.find(wanted, _MAX_COUNTED)
            return _counted(len(found.rows), more=found.next is not None)
        await self._counting.enter()
        try:
            rows = await self._listed(msgspec.structs.replace(wanted, limit=_MAX_COUNTED + 1), viewer)
        finally:
            self._counting.leave()
        return _counted(min(len(rows), _MAX_COUNTED), more=len(rows) > _MAX_COUNTED)

    async def _before(
        self, page: PageRequest, viewer: Viewer, wanted: Wanted
    ) -> tuple[float | str, float, str] | None:
        id = page.query("before")
        if not id:
            return None
        row = await self._traces.find(id[:_ID_LETTERS])
        if row is None or not viewer.sees(row.key, row.at):
            raise RequestError("bad", "before: that exchange is no longer available", param="before")
        return wanted.key(row)

    async def _fields(self, page: PageRequest, viewer: Viewer) -> None:
        """The fields of the filter language, for people who write a filter."""
        fields = [
            {"name": name, "about": field.about, "values": field.values} for name, field in FIELDS.items()
        ]
        page.send({"fields": fields, "sorts": list(SORTS)})

    async def _conversations(self, page: PageRequest, viewer: Viewer) -> None:
        rows = await self._with_sessions(viewer)
        reported: dict[tuple[str, str], dict[str, Any]] = {}
        for row in rows:
            if row.session and row.operation != "count":
                add_turn(reported.setdefault((row.key, row.session), {}), row)
        # A single request that names no session is not a conversation.
        found = (
            each for each in reported.values() if each["turns"] > 1 or not each["session"].startswith(DERIVED)
        )
        newest = sorted(found, key=lambda each: each["last_at"], reverse=True)
        page.send({"conversations": newest[:_MAX_CONVERSATIONS], "count": len(newest)})

    async def _with_sessions(self, viewer: Viewer) -> list[Row]:
        """All rows, each with the conversation that it continues."""
        rows = await self._traces.listed(_seen_by(viewer, Wanted(histories=True, limit=_JOINED_ROWS)))
        return await asyncio.to_thread(with_sessions, rows)

    async def _listed(self, wanted: Wanted, viewer: Viewer) -> list[Row]:
        named = [value for term in wanted.terms if term.field == "session" for value in term.values]
        if not any(value.startswith(DERIVED) for value in named):
            return await self._traces.listed(wanted)
        rows = await self._with_sessions(viewer)
        # Any of its exchanges can name a conversation: the first one may have been dropped by now.
        names = {f"{DERIVED}{row.id}".lower(): row.session.lower() for row in rows}
        terms = tuple(
            msgspec.structs.replace(term, values=tuple(names.get(value, value) for value in term.values))
            if term.field == "session"
            else term
            for term in wanted.terms
        )
        return msgspec.structs.replace(wanted, terms=terms).page(rows)

    async def _losses(self, page: PageRequest, viewer: Viewer) -> None:
        """Which features each client loses with each provider, and in how many exchanges."""
        rows = await self._traces.listed(_seen_by(viewer, Wanted(limit=_HABIT_ROWS)))
        page.send({"pairs": await asyncio.to_thread(loss_habits, rows)})

    # A file of all matching exchanges.

    async def _export_all(self, page: PageRequest, viewer: Viewer) -> None:
        wanted = _wanted(page, viewer)
        written = FORMATS.get(page.query("format") or "csv")
        if written is None:
            raise invalid_value("format", " or ".join(FORMATS))
        own, of_all = self._exporting[viewer.key], self._exporting.total()
        of_keys = of_all - self._exporting[""]
        if of_all >= _MAX_EXPORTS or (
            viewer.key and (own >= _EXPORTS_OF_A_KEY or of_keys >= _EXPORTS_OF_KEYS)
        ):
            raise shed("too many exports at once")
        self._exporting[viewer.key] += 1
        try:
            await self._write_all(page, viewer, wanted, written)
        finally:
            self._exporting[viewer.key] -= 1

    async def _write_all(
        self, page: PageRequest, viewer: Viewer, wanted: Wanted, written: ExportFormat
    ) -> None:
        reply, flowing = page.reply, asyncio.Event()
        pages = self._all_pages(wanted, viewer)
        rows: list[Row] | None = await anext(pages)  # a bad request still gets its own status
        flowing.set()
        page.record.answered(200)
        name = f"wireglot-exchanges.{written.suffix}"
        headers = [("content-type", written.kind), ("content-disposition", f'attachment; filename="{name}"')]
        reply.start(200, [*headers, *identity(page.record.id, page.asked.dialect)])
        reply.on_pressure(flowing.clear, flowing.set)
        reply.write(written.head)
        is_first = True
        while rows is not None:
            async for piece in self._pieces(page, viewer, written, rows):
                reply.write(piece if is_first else written.between + piece)
                is_first = False
                await flowing.wait()
            if self._is_draining() or not viewer.holds():
                reply.abort()  # so that it is not taken for the complete file
                return
            rows = await anext(pages, None)
        reply.write(written.tail)
        reply.end()

    async def _all_pages(self, wanted: Wanted, viewer: Viewer) -> AsyncIterator[list[Row]]:
        """All matching rows, in order; at least one page, which may be empty."""
        wanted = msgspec.structs.replace(wanted, limit=_EXPORTED_ROWS)
        while True:
            if wanted.texts:
                found = await self._search.find(wanted, _EXPORTED_ROWS)
                yield found.rows
                last = await self._traces.find(found.next) if found.next is not None else None
            else:
                rows = await self._listed(wanted, viewer)
                yield rows
                last = rows[-1] if len(rows) == _EXPORTED_ROWS else None
            if last is None:
                return
            wanted = msgspec.structs.replace(wanted, before=wanted.key(last))

    async def _pieces(
        self, page: PageRequest, viewer: Viewer, written: ExportFormat, rows: list[Row]
    ) -> AsyncIterator[bytes]:
        if not written.has_bodies:
            seen = [_as_seen(row, page, viewer) for row in rows]
            if written.suffix == "csv":
                yield await asyncio.to_thread(csv_lines, seen, page.settings.currency)
            else:
                yield await asyncio.to_thread(json_lines, seen)
            return
        read = await asyncio.to_thread(self._traces.reader)
        for row in rows:
            trace, seen_row = None, _as_seen(row, page, viewer)
            if row.recorded and not _hides_error(row, page, viewer):
                trace = await asyncio.to_thread(read, row.id) or (await self._traces.elsewhere(row))[0]
                if trace is not None and not viewer.sees_all:
                    trace = await asyncio.to_thread(own_trace, trace, page.settings.providers)
            for entry in await asyncio.to_thread(har_entries, seen_row, trace):
                yield entry

    # Single exchanges.

    async def _found(
        self, page: PageRequest, viewer: Viewer, *, reported: bool = True
    ) -> tuple[Row, Trace | None, str]:
        """A row, its recording, and the reason why that cannot be shown, if there is one. The error for
        another key's exchange is the same as for none: a caller must not learn that it exists."""
        row = await self._row(page, viewer)
        if _hides_error(row, page, viewer):
            return row, None, "recorded for the operator: they name the provider's account"
        is_kept = row.recorded or (self._traces.memory.most > 0 and row.state != "running")
        trace, why = await self._traces.opened(row) if is_kept else (None, "")
        if trace is not None and reported:
            recorded = trace
            trace = await self._telling.do(lambda: with_analysis(recorded))
        if trace is not None and not viewer.sees_all:
            trace = await asyncio.to_thread(own_trace, trace, page.settings.providers)
        return row, trace, why

    async def _row(self, page: PageRequest, viewer: Viewer) -> Row:
        (id,) = page.asked.ids
        row = await self._traces.find(id) if len(id) <= _ID_LETTERS else None
        if row is None or not viewer.sees(row.key, row.at):
            missing = f"no exchange {id[:_ID_LETTERS]}: it never existed, or is no longer available"
            raise RequestError("not_found", missing, code="exchange_not_found")
        return row

    async def _recorded(self, page: PageRequest, viewer: Viewer) -> Trace:
        row, trace, why = await self._found(page, viewer)
        if trace is None:
            text = f"the bodies of {row.id} " + (
                f"were {why}" if why else "were not recorded, or were deleted"
            )
            raise RequestError("not_found", text, code="not_recorded")
        return trace

    async def _get(self, page: PageRequest, viewer: Viewer) -> None:
        # Links take as long as the translation: a page shows the recording first, and requests them
        # afterwards.
        only = page.query("only")
        row, trace, why = await self._found(page, viewer, reported=only != "recorded")
        if trace is not None:
            page.send(_without_bodies(trace) if only == "told" else trace)
            return
        losses: list[Any] = []
        if row.losses is not None and row.state != "running":
            found = await self._find_losses(row.key, row.id)
            losses = decode(found).get("losses", []) if found is not None else []
        row = msgspec.structs.replace(_as_seen(row, page, viewer), recorded=False)
        page.send({"row": row, "losses": losses, **({"why": why} if why else {})})

    async def _cache(self, page: PageRequest, viewer: Viewer) -> None:
        row = await self._row(page, viewer)
        if row.session:  # as its client names it: no other rows are needed
            named = Term("session", "=", (row.session.lower(),))
            rows = await self._traces.listed(_seen_by(viewer, Wanted(terms=(named,))))
        else:
            rows = await self._with_sessions(viewer)
            row = next((each for each in rows if each.id == row.id), row)
            rows = rows if row.session else [row]
        turns = [each for each in rows if each.session == row.session and each.key == row.key]
        readable = {each.id for each in turns if not _hides_error(each, page, viewer)}

        def compare() -> Any:
            reader = self._traces.reader()

            def read(id: str) -> Trace | None:
                trace = reader(id) if id in readable else None
                if trace is None or viewer.sees_all:
                    return trace
                return own_trace(trace, page.settings.providers)

            if page.query("all"):
                newest = sorted(turns, key=lambda each: each.at)[-_MAX_CACHE_TURNS:]
                return conversation_cache(newest, read)
            return [exchange_cache(row, turns, read)]

        page.send({"turns": await self._telling.do(compare)})

    async def _running(self, page: PageRequest, viewer: Viewer) -> None:
        """What is new of a running exchange since the `cursor` of an earlier answer. For one that has ended,
        or of which nothing may be shown, its row."""
        row = await self._row(page, viewer)
        if row.state == "running":
            (row,) = await self._traces.titled([row])
            grown, why = await self._traces.grown(row, page.query("cursor")[:_ID_LETTERS])
            if grown is not None:
                if not viewer.sees_all:
                    own = await asyncio.to_thread(own_attempts, grown.attempts, page.settings.providers)
                    seen = _as_seen(grown.row, page, viewer)
                    grown = msgspec.structs.replace(grown, row=seen, attempts=own)
                page.send(grown)
                return
        else:
            why = ""
        page.send({"row": _as_seen(row, page, viewer), **({"why": why} if why else {})})

    async def _export(self, page: PageRequest, viewer: Viewer) -> None:
        trace = await self._recorded(page, viewer)
        body = await asyncio.to_thread(write_trace, trace)
        name = f"{trace.row.id}{SUFFIX}"
        headers = [
            ("content-type", "application/octet-stream"),
            ("content-disposition", f'attachment; filename="{name}"'),
        ]
        page.reply.send(200, [*headers, *identity(page.record.id, page.asked.dialect)], body)

    async def _image(self, page: PageRequest, viewer: Viewer) -> None:
        trace = await self._recorded(page, viewer)
        try:
            kind, data = await asyncio.to_thread(picture, trace, page.query("part"), page.query("pointer"))
        except NoPicture as problem:
            raise RequestError("not_found", str(problem), code="no_picture") from None
        headers = [
            ("content-type", kind),
            ("content-disposition", "inline"),
        ]
        page.reply.send(200, [*headers, *identity(page.record.id, page.asked.dialect)], data)

    # The recording itself.

    async def _recording(self, page: PageRequest, viewer: Viewer) -> None:
        page.send(await self._traces.status())

    async def _record(self, page: PageRequest, viewer: Viewer) -> None:
        viewer.need_all("recording")
        minutes: Any = page.document().get("minutes")
        if type(minutes) not in (int, float) or not 0 <= minutes <= _MAX_MINUTES:
            raise invalid_value("minutes", f"a number from 0 to {_MAX_MINUTES}")
        unreached = await self._traces.record_for(minutes * 60)
        status = await self._traces.status()
        if unreached:
            status["unreached"] = f"only this machine until the store is back: {unreached}"
        page.send(status)


def _counted(count: int, *, more: bool) -> dict[str, Any]:
    return {"rows": [], "next": None, "count": count, "more": more}


def _wanted(page: PageRequest, viewer: Viewer) -> Wanted:
    """The filter, order and ids in the query."""
    given = {name: page.query(name) for name in ("q", *PARAMETERS)}
    try:
        wanted = Wanted.of(parse_parameters(given, time.time()))
    except BadFilter as problem:
        raise RequestError("bad", str(problem), code="invalid_value", param="q") from None
    sort, descending = page.query("sort"), True
    if sort:
        sort, descending = sort.removeprefix("-"), sort.startswith("-")
        if sort not in SORTS:
            raise invalid_value(
                "sort", f"one of {', '.join(SORTS)}, or - and one of them for the largest first"
            )
    ids = tuple(page.query("ids").split(",")) if page.query("ids") else None
    if ids is not None and len(ids) > _MAX_IDS:
        raise invalid_value("ids", f"{_MAX_IDS} ids at most")
    wanted = msgspec.structs.replace(wanted, ids=ids, sort=sort or "time", ascending=not descending)
    return _seen_by(viewer, wanted)


def _seen_by(viewer: Viewer, wanted: Wanted) -> Wanted:
    if viewer.sees_all:
        return wanted
    return msgspec.structs.replace(wanted, only_key=viewer.key, only_since=viewer.created / 1000)


def add_turn(reported: dict[str, Any], row: Row) -> None:
    """Add one more turn to a conversation. Rows come the newest first."""
    if not reported:
        reported.update(session=row.session, key=row.key, client=row.client, model=row.asked, title="",
                    turns=0, first_at=row.at, last_at=row.at, tokens={"input": 0, "output": 0}, cost=None,
                    losses=0, serious=0, degraded=0, harmless=0, failed=0)  # fmt: skip
    reported["turns"] += 1
    reported["first_at"] = min(reported["first_at"], row.at)
    reported["last_at"] = max(reported["last_at"], row.at)
    reported["failed"] += row.state == "failed"
    if row.title and not reported["title"] and row.purpose in ("", "main"):
        reported["title"] = row.title
    if row.tokens is not None:
        reported["tokens"]["input"] += row.tokens.input
        reported["tokens"]["output"] += row.tokens.output
    if row.cost is not None:
        reported["cost"] = (reported["cost"] or 0) + row.cost
    if row.losses is not None:
        for grade in ("serious", "degraded", "harmless"):
            reported[grade] += getattr(row.losses, grade)
        reported["losses"] += row.losses.serious + row.losses.degraded + row.losses.harmless


def loss_habits(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """By client and provider: how many exchanges ended, and how many of them lost each feature."""
    pairs: dict[tuple[str, str], tuple[Counter[str], list[int]]] = {}
    for row in rows:
        if row.provider and row.state != "running":
            features, ended = pairs.setdefault((row.client, row.provider), (Counter(), [0]))
            features.update(row.features)
            ended[0] += 1
    return [
        {"client": client, "provider": provider, "exchanges": ended[0], "features": dict(features)}
        for (client, provider), (features, ended) in pairs.items()
    ]


def _without_bodies(trace: Trace) -> Trace:
    """Links, places and the results of streams. Frames keep their number and lose their text."""
    replace = msgspec.structs.replace

    def bare(message: TraceMessage) -> TraceMessage:
        frames = [replace(frame, data="") for frame in message.frames]
        return replace(message, body="", headers=[], frames=frames)

    attempts = [
        replace(
            attempt,
            request=bare(attempt.request) if attempt.request is not None else None,
            answer=bare(attempt.answer) if attempt.answer is not None else None,
        )
        for attempt in trace.attempts
    ]
    return replace(trace, request=bare(trace.request), answer=bare(trace.answer), attempts=attempts)
