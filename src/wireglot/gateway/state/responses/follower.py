"""The stream of a background response, for a client that follows it from any event on, in any process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from wireglot.gateway.state.responses.background_work import is_final
from wireglot.gateway.state.responses.event_log import EventLog, Frame, frame, frames, terminal
from wireglot.gateway.state.stored_forms import EVENT, KeptResponse
from wireglot.http.application import Headers, Reply
from wireglot.stores import StoreDown
from wireglot.stores.base import Documents
from wireglot.stores.records import Document
from wireglot_core.dialects.capabilities import StoredEvents

_PATIENCE_SECONDS: Final = 30.0
"""How long a follower is kept connected while the store is down."""
_PIECES_AT_ONCE: Final = 16
_PING: Final = b": ping\n\n"
_HEADERS: Final[Headers] = [
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
]


class Follower:
    def __init__(
        self,
        documents: Documents,
        caller: str,
        id: str,
        after: int,
        *,
        form: StoredEvents,
        event_log: EventLog | None,
        look: Callable[[], Awaitable[KeptResponse | None]],
        poll_seconds: float,
    ) -> None:
        """`event_log`: if this process works on the response. `look`: returns the current response."""
        self._documents = documents
        self._caller = caller
        self._id = id
        self._seen = after
        self._form = form
        self._tape = event_log
        self._look = look
        self._poll_seconds = poll_seconds
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def tell(self, reply: Reply, headers: Headers, ping: float) -> None:
        """Send every event from here to the last one, as it comes."""
        reply.start(200, [*_HEADERS, *headers])
        reply.on_pressure(self._flowing.clear, self._flowing.set)
        self._last = self._loop.time()
        down = 0.0
        while True:
            try:
                if await self._step(reply, ping):
                    reply.end()
                    return
                down = 0.0
            except StoreDown:
                # The status has been sent. A client that is cut off here can reconnect with the last event it
                # has.
                down = down or self._loop.time()
                if self._loop.time() - down > _PATIENCE_SECONDS:
                    reply.abort()
                    return
                await asyncio.sleep(self._poll_seconds)

    async def _step(self, reply: Reply, ping: float) -> bool:
        """Send the available events, or wait for more. Returns whether those were all."""
        fresh = await self._ready()
        if not fresh and self._tape is not None and self._tape.over:
            return True  # the response was deleted
        if not fresh and self._tape is None and await self._has_ended():
            fresh = await self._ready() or await self._made_up()
            if not fresh:
                return True
        if fresh:
            if fresh[-1].kind in self._form.ends and (self._tape is None or not self._tape.over):
                # The events are stored before the response: no client gets an end that the response does not
                # show yet.
                while not await self._has_ended():
                    await asyncio.sleep(self._poll_seconds)
            await self._flowing.wait()
            ends = fresh[-1].kind in self._form.ends
            reply.write(b"".join(each.data for each in fresh) + (self._form.closing if ends else b""))
            self._last = self._loop.time()
            return ends
        await self._more(max(0.0, self._last + ping - self._loop.time()))
        if self._loop.time() >= self._last + ping:
            reply.write(_PING)
            self._last = self._loop.time()
        return False

    async def _ready(self) -> list[Frame]:
        """The available events after those already sent."""
        found = self._tape.after(self._seen) if self._tape is not None else None
        if found is None:
            pieces = await self._documents.pieces(
                self._caller, EVENT, self._id, after=self._seen + 1, limit=_PIECES_AT_ONCE
            )
            found = list(self._unheard(pieces))
        if found:
            self._seen = found[-1].number
        return found

    def _unheard(self, pieces: list[Document]) -> Iterator[Frame]:
        """A piece that was stored twice, because it was unknown whether the first write succeeded, is sent
        once."""
        seen = self._seen
        for piece in pieces:
            for each in frames(self._form, piece.body):
                if each.number > seen:
                    seen = each.number
                    yield each

    async def _more(self, seconds: float) -> None:
        """Wait until there may be something new."""
        if self._tape is None:
            await asyncio.sleep(min(self._poll_seconds, seconds))
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._tape.changed.wait()

    async def _has_ended(self) -> bool:
        kept = await self._look()
        return kept is None or is_final(kept.body)

    async def _made_up(self) -> list[Frame]:
        """The last event of a response whose process died before writing one, or whose events are gone."""
        newest = await self._documents.pieces(self._caller, EVENT, self._id, limit=1, newest_first=True)
        if newest and terminal(self._form, newest[0].body) is not None:
            return []  # already sent
        kept = await self._look()
        if kept is None:
            return []
        kind, content = self._form.last(kept.body)
        return [frame(self._form, kind, self._seen + 1, content)]
