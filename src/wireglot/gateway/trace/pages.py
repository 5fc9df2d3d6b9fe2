"""Exchanges as the inspector asks for them: the list, one of them, its file, its pictures, conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.headers import identity
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import InspectorHandler, Viewer
from wireglot.gateway.trace.in_turn import InTurn
from wireglot.gateway.trace.live import Live
from wireglot.gateway.trace.pictures import NoPicture, picture
from wireglot.gateway.trace.rows import BEGINS
from wireglot.gateway.trace.search import Found, Search
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import Wanted
from wireglot.traces.analysis import with_told
from wireglot.traces.file import SUFFIX, write_trace
from wireglot.traces.trace import Message, Row, Trace
from wireglot.wire.json import decode

_PAGE_USUAL: Final = 100
_PAGE_MOST: Final = 1000
_ID_LETTERS: Final = 64
_CONVERSATIONS_MOST: Final = 200
_MINUTES_MOST: Final = 24 * 60
_FILTERS: Final = ("client", "dialect", "model", "provider", "status", "loss", "key", "session")
_FILTER_LETTERS: Final = 256

FindLosses = Callable[[str, str], Awaitable[bytes | None]]
"""Of a caller's request, as their page tells them (JSON)."""


class TracePages:
    def __init__(self, traces: Traces, find_losses: FindLosses, is_draining: Callable[[], bool]) -> None:
        self._traces = traces
        self._find_losses = find_losses
        self._live = Live(traces, is_draining)
        self._search = Search(traces)
        self._telling = InTurn(2)

    def handlers(self) -> Mapping[str, InspectorHandler]:
        return {
            "exchanges.list": self._list,
            "exchanges.get": self._get,
            "exchanges.export": self._export,
            "exchanges.image": self._image,
            "conversations.list": self._conversations,
            "recording.get": self._recording,
            "recording.set": self._record,
            "live": self._live.tell,
        }

    # Many.

    async def _list(self, page: PageRequest, viewer: Viewer) -> None:
        limit = page.number("limit", _PAGE_USUAL, 1, _PAGE_MOST)
        given: dict[str, Any] = {name: page.query(name)[:_FILTER_LETTERS] for name in _FILTERS}
        wanted = _seen_by(viewer, Wanted(**given, limit=limit + 1, before=await self._before(page, viewer)))
        text = page.query("q")[:_FILTER_LETTERS].lower()
        if text:
            found = await self._search.find(wanted, text, limit)
        else:
            rows = await self._traces.listed(wanted)
            found = Found(rows[:limit], rows[limit - 1].id if len(rows) > limit else None)
        told: dict[str, Any] = {"rows": found.rows, "next": found.next}
        if found.unread:
            told["unread"] = found.unread
        if self._traces.fleet is not None:
            told["fleet"] = self._traces.fleet.status()
        _send(page, told)

    async def _before(self, page: PageRequest, viewer: Viewer) -> tuple[float, str] | None:
        id = page.query("before")
        if not id:
            return None
        row = await self._traces.find(id[:_ID_LETTERS])
        if row is None or not viewer.sees(row.key, row.at):
            raise RequestError("bad", "before: that exchange is not known any more", param="before")
        return row.at, row.id

    async def _conversations(self, page: PageRequest, viewer: Viewer) -> None:
        rows = await self._traces.listed(_seen_by(viewer, Wanted()))
        told: dict[tuple[str, str], dict[str, Any]] = {}
        for row in rows:
            if row.session and row.operation != "count":
                _add(told.setdefault((row.key, row.session), {}), row)
        # A lone request that names no session is no conversation.
        found = (
            each for each in told.values() if each["turns"] > 1 or not each["session"].startswith(BEGINS)
        )
        newest = sorted(found, key=lambda each: each["last_at"], reverse=True)
        _send(page, {"conversations": newest[:_CONVERSATIONS_MOST]})

    # One.

    async def _found(
        self, page: PageRequest, viewer: Viewer, *, told: bool = True
    ) -> tuple[Row, Trace | None, str]:
        """A row, what was recorded of it, and why that cannot be shown, where there is more to say. The same
        words for another key's: that there is one is nobody's business."""
        (id,) = page.asked.ids
        row = await self._traces.find(id) if len(id) <= _ID_LETTERS else None
        if row is None or not viewer.sees(row.key, row.at):
            missing = f"no exchange {id[:_ID_LETTERS]}: it is long ago, or was never here"
            raise RequestError("not_found", missing, code="exchange_not_found")
        trace, why = await self._traces.opened(row) if row.recorded else (None, "")
        if trace is not None and told:
            recorded = trace
            trace = await self._telling.do(lambda: with_told(recorded))
        return row, trace, why

    async def _recorded(self, page: PageRequest, viewer: Viewer) -> Trace:
        row, trace, why = await self._found(page, viewer)
        if trace is None:
            told = f"the bodies of {row.id} " + (f"were {why}" if why else "were not recorded, or are gone")
            raise RequestError("not_found", told, code="not_recorded")
        return trace

    async def _get(self, page: PageRequest, viewer: Viewer) -> None:
        # Links take as long as the translation: a page shows what was recorded first, and asks for them then.
        only = page.query("only")
        row, trace, why = await self._found(page, viewer, told=only != "recorded")
        if trace is not None:
            _send(page, _without_bodies(trace) if only == "told" else trace)
            return
        losses: list[Any] = []
        if row.losses is not None and row.state != "running":
            found = await self._find_losses(row.key, row.id)
            losses = decode(found).get("losses", []) if found is not None else []
        row = msgspec.structs.replace(row, recorded=False)
        _send(page, {"row": row, "losses": losses, **({"why": why} if why else {})})

    async def _export(self, page: PageRequest, viewer: Viewer) -> None:
        trace = await self._recorded(page, viewer)
        body = await asyncio.to_thread(write_trace, trace)
        name = f"{trace.row.id}{SUFFIX}"
        headers = [
            ("content-type", "application/octet-stream"),
            ("content-disposition", f'attachment; filename="{name}"'),
            ("x-content-type-options", "nosniff"),
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
            ("x-content-type-options", "nosniff"),
            ("content-disposition", "inline"),
            ("cross-origin-resource-policy", "same-origin"),
        ]
        page.reply.send(200, [*headers, *identity(page.record.id, page.asked.dialect)], data)

    # The recording itself.

    async def _recording(self, page: PageRequest, viewer: Viewer) -> None:
        _send(page, await self._traces.status())

    async def _record(self, page: PageRequest, viewer: Viewer) -> None:
        viewer.need_all("recording")
        minutes: Any = page.document().get("minutes")
        if type(minutes) not in (int, float) or not 0 <= minutes <= _MINUTES_MOST:
            told = f"minutes: expected a number from 0 to {_MINUTES_MOST}"
            raise RequestError("bad", told, code="invalid_value", param="minutes")
        unreached = await self._traces.record_for(minutes * 60)
        status = await self._traces.status()
        if unreached:
            status["unreached"] = (
                f"only this machine until the store is back, by which others are told: {unreached}"
            )
        _send(page, status)


def _seen_by(viewer: Viewer, wanted: Wanted) -> Wanted:
    if viewer.sees_all:
        return wanted
    return msgspec.structs.replace(wanted, only_key=viewer.key, only_since=viewer.created / 1000)


def _send(page: PageRequest, document: Any) -> None:
    headers = [("content-type", "application/json"), *identity(page.record.id, page.asked.dialect)]
    page.record.answered(200)
    page.reply.send(200, headers, msgspec.json.encode(document))


def _add(told: dict[str, Any], row: Row) -> None:
    """One more turn of a conversation. Rows come the newest first."""
    if not told:
        told.update(session=row.session, key=row.key, client=row.client, model=row.asked, turns=0,
                    first_at=row.at, last_at=row.at, tokens={"input": 0, "output": 0}, cost=None, losses=0,
                    serious=0, degraded=0, harmless=0, failed=0)  # fmt: skip
    told["turns"] += 1
    told["first_at"] = min(told["first_at"], row.at)
    told["last_at"] = max(told["last_at"], row.at)
    told["failed"] += row.state == "failed"
    if row.tokens is not None:
        told["tokens"]["input"] += row.tokens.input
        told["tokens"]["output"] += row.tokens.output
    if row.cost is not None:
        told["cost"] = (told["cost"] or 0) + row.cost
    if row.losses is not None:
        for grade in ("serious", "degraded", "harmless"):
            told[grade] += getattr(row.losses, grade)
        told["losses"] += row.losses.serious + row.losses.degraded + row.losses.harmless


def _without_bodies(trace: Trace) -> Trace:
    """Links, places and what streams amount to. Frames keep their number and lose their words."""
    replace = msgspec.structs.replace

    def bare(message: Message) -> Message:
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
