"""Base of all stream writers: dispatches events to methods, and keeps what is known at the end.

Pieces of text are most of a stream: each writer writes them itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from msgspec.structs import replace

from wireglot_core.dialects.common_losses import ONE_ANSWER
from wireglot_core.dialects.context import Context
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import (
    Failure,
    Finish,
    ForeignEvent,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
)

_Take = Callable[[Any, Any, list[bytes]], None]


class AnswerWriter(ABC):
    __slots__ = ("_context", "_ended", "_foreign_kinds", "_request", "_start", "_usage", "losses")

    dialect: ClassVar[str]
    events: ClassVar[dict[type[Any], _Take]]
    """The method for each kind of event, except for pieces of text."""

    def __init_subclass__(cls) -> None:
        cls.events = {
            Start: cls._begin,
            PartStart: cls._open_part,
            PartEnd: cls._close_part,
            UsageReport: cls._report,
            ForeignEvent: cls._foreign,
            OtherAnswer: cls._another,
            Finish: cls._finish,
            Failure: cls._break_off,
        }

    def __init__(self, context: Context, request: Request | None, losses: list[Loss]) -> None:
        self.losses = losses
        self._context = context
        self._request = request
        self._start: Start | None = None
        self._usage: Usage | None = None
        """The usage so far."""
        self._foreign_kinds: set[str] = set()
        self._ended = False
        """Whether the end has been written."""

    def _begin(self, start: Start, out: list[bytes]) -> None:
        self._start, self._usage = start, start.usage
        self._write_start(start, out)

    @abstractmethod
    def _write_start(self, start: Start, out: list[bytes]) -> None: ...

    @abstractmethod
    def _open_part(self, event: PartStart, out: list[bytes]) -> None: ...

    @abstractmethod
    def _close_part(self, event: PartEnd, out: list[bytes]) -> None: ...

    def _report(self, event: UsageReport, out: list[bytes]) -> None:
        self._usage = event.usage

    def _foreign(self, event: ForeignEvent, out: list[bytes]) -> None:
        if event.dialect == self.dialect:
            self._pass_on(event, out)
        else:
            self._lose_foreign(event)

    def _pass_on(self, event: ForeignEvent, out: list[bytes]) -> None:
        """An event of this dialect."""
        self._lose_foreign(event)

    def _lose_foreign(self, event: ForeignEvent) -> None:
        """Each kind is reported once per stream: some come hundreds of times."""
        detail = f"{event.type} of {event.dialect}"
        if detail not in self._foreign_kinds:
            self._foreign_kinds.add(detail)
            self.losses.append(Loss("$", "foreign_event", "dropped", detail))

    def _another(self, event: OtherAnswer, out: list[bytes]) -> None:
        self._write_other(event.answer, out)

    def _write_other(self, answer: Candidate, out: list[bytes]) -> None:
        """A further answer, which is complete."""
        if ONE_ANSWER not in self.losses:
            self.losses.append(ONE_ANSWER)

    @abstractmethod
    def _finish(self, finish: Finish, out: list[bytes]) -> None: ...

    def _completed(self, finish: Finish) -> Finish:
        """The finish, completed with what was known before where it has no value."""
        start = self._start
        return replace(
            finish,
            usage=finish.usage if finish.usage is not None else self._usage,
            service_tier=finish.service_tier or (start.service_tier if start is not None else ""),
            extra=finish.extra if finish.extra is not None or start is None else start.extra,
        )

    def _break_off(self, event: Failure, out: list[bytes]) -> None:
        self._fail(event.error, out)

    @abstractmethod
    def _fail(self, error: ApiError, out: list[bytes]) -> None:
        """The stream ends in an error."""
