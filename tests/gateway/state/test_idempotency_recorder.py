"""The reply that remembers what goes over it, and waits with the end until that is kept (FAULTS 40)."""

from __future__ import annotations

import asyncio
from typing import Any

from wireglot.gateway.state.recorder import Recorder
from wireglot.http.application import Headers


class Heard:
    """A client's end of the wire."""

    def __init__(self) -> None:
        self.started = False
        self.heard: list[Any] = []

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self.started = True
        self.heard.append((status, body))

    def start(self, status: int, headers: Headers) -> None:
        self.started = True

    def write(self, data: bytes) -> None:
        self.heard.append(data)

    def end(self) -> None:
        self.heard.append("end")

    def abort(self) -> None:
        self.heard.append("abort")

    def on_pressure(self, pause: Any, resume: Any) -> None: ...


def test_the_end_of_an_answer_waits_with_its_last_event_until_it_is_kept() -> None:
    async def scene() -> None:
        heard = Heard()
        recorder = Recorder(heard, 1000)
        recorder.start(200, [("content-type", "text/event-stream")])
        recorder.write(b"one ")
        await asyncio.sleep(0)
        assert heard.heard == [b"one "]
        recorder.write(b"last")
        recorder.end()
        await asyncio.sleep(0)
        assert heard.heard == [b"one "]
        assert recorder.whole
        assert recorder.body == b"one last"
        recorder.release()
        assert heard.heard == [b"one ", b"last", "end"]

    asyncio.run(scene())


def test_a_whole_answer_waits_until_it_is_kept() -> None:
    async def scene() -> None:
        heard = Heard()
        recorder = Recorder(heard, 1000)
        recorder.send(200, [], b"{}")
        assert recorder.started
        assert heard.heard == []
        recorder.release()
        assert heard.heard == [(200, b"{}")]

    asyncio.run(scene())


def test_an_answer_that_is_cut_is_not_whole() -> None:
    async def scene() -> None:
        heard = Heard()
        recorder = Recorder(heard, 1000)
        recorder.start(200, [])
        recorder.write(b"half")
        recorder.abort()
        recorder.release()
        assert not recorder.whole
        assert heard.heard == ["abort"]

    asyncio.run(scene())
