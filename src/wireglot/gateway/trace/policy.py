"""Which exchanges are recorded: by the settings, or all of them for a limited time."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from typing import Final

from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.trace.peers import PeerCommand
from wireglot_core.wire.wildcards import caught

RECORDED_OPERATIONS: Final = frozenset({"generate", "compact", "count", "embed", "assist"})


class RecordingPolicy:
    """Implements `Commanded`."""

    def __init__(self, settings: TraceSettings) -> None:
        self.active = False
        """Whether any exchange may have to be recorded: the only check of a request if none is."""
        self.settings = settings
        self._until = 0.0
        """All bodies are recorded until this time (unix seconds)."""
        self._ends = 0.0
        """The same by a monotonic clock, since the request named a number of minutes."""
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def adopt(self, settings: TraceSettings) -> None:
        self.settings = settings
        self._look()

    def record_until(self, until: float) -> None:
        """Record all bodies until a time (unix seconds), whatever the settings say."""
        self._until = until
        self._ends = time.monotonic() + until - time.time()
        self._look()

    def obey(self, command: PeerCommand, *, is_new: bool) -> None:
        until = command.record_until
        if until is not None and (is_new or until > max(time.time(), self._until)):
            self.record_until(until)

    def standing(self) -> list[PeerCommand]:
        return [PeerCommand(time.time(), record_until=self._until)]

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def until(self) -> float:
        """Until when all bodies are recorded, in unix seconds; 0.0: they are not."""
        return self._until if self._ends > time.monotonic() else 0.0

    def announcement(self) -> str:
        """For the user who starts the gateway: that its traffic is recorded for a while. "": it is not."""
        minutes = round((self._until - time.time()) / 60)
        if minutes > 0:
            return f"all bodies are recorded for {minutes} minutes (--trace), without secrets, and sealed"
        mode = self.settings.mode
        whose = {"errors": "of exchanges that fail ", "all": "", "off": ""}[mode]
        return f"bodies {whose}are recorded (trace.mode = {mode}), sealed" if mode != "off" else ""

    def begins(self, incoming: Incoming) -> bool:
        """Whether a request is recorded, until it is known how it ends."""
        if incoming.asked.operation not in RECORDED_OPERATIONS:
            return False
        if self.until:
            return True
        trace = incoming.settings.trace
        if trace.mode == "off" or (trace.keys and incoming.caller.name not in trace.keys):
            return False
        return trace.sample >= 1.0 or random.random() < trace.sample

    def keeps(self, record: ExchangeRecord) -> bool:
        """Whether the recording of an ended exchange is kept."""
        if self.until:
            return True
        if not self.may_keep(record):
            return False
        match self.settings.mode:
            case "all":
                return True
            case "errors":
                return _failed(record)
            case "off":  # it was turned off meanwhile
                return False

    def may_keep(self, record: ExchangeRecord) -> bool:
        """The same for a running exchange: whether its recording may be viewed meanwhile."""
        routes = self.settings.routes
        fits = any(caught(each, record.model) is not None for each in routes)
        return bool(self.until) or not routes or fits

    def _look(self) -> None:
        left = self._ends - time.monotonic()
        self.active = left > 0 or self.settings.mode != "off"
        self.close()
        if left > 0:
            with contextlib.suppress(RuntimeError):  # no loop runs yet: nothing is recorded without one
                self._timer = asyncio.get_running_loop().call_later(left, self._look)


def _failed(record: ExchangeRecord) -> bool:
    """A client that leaves does not count: people press Esc."""
    if record.outcome == "client_abort":
        return False
    return (
        record.outcome != "ok"
        or record.status >= 400
        or any(loss.grade == "serious" for loss in record.losses)
    )
