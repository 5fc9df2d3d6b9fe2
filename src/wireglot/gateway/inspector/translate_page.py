"""`POST /inspector/api/translate`: large documents one at a time, beside the loop: no client waits for it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import msgspec

from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.playground import BadQuestion, asked_of, translated
from wireglot.gateway.process_limits import KIB, MIB
from wireglot.gateway.request.aside import aside
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.wire.json import encode

LETTERS_MOST: Final = MIB
_AT_ONCE_LETTERS: Final = 8 * KIB
"""A few milliseconds for all dialects together."""
_WAITING_MOST: Final = 8
_WAITING_SECONDS: Final = 10.0


class TranslatePage:
    def __init__(self) -> None:
        self._gate = Gate(1, _WAITING_MOST, _WAITING_SECONDS)

    async def translate(self, page: PageRequest, viewer: Viewer) -> None:
        try:
            asked = asked_of(page.document(), LETTERS_MOST)
        except BadQuestion as wrong:
            raise RequestError("bad", str(wrong), code="invalid_value", param=wrong.field) from None
        work = partial(translated, asked)
        if len(asked.text) + len(asked.request) <= _AT_ONCE_LETTERS:
            page.send(work())
            return
        await self._gate.enter()
        task = asyncio.ensure_future(aside(lambda: msgspec.Raw(encode(work()))))
        task.add_done_callback(self._done)
        # Whoever leaves meanwhile does not end the work: the next one waits for it all the same.
        page.send(await asyncio.shield(task))

    def _done(self, task: asyncio.Task[msgspec.Raw]) -> None:
        self._gate.leave()
        if not task.cancelled():
            task.exception()  # told to whoever still waits, and to nobody else
