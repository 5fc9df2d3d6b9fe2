"""The way back of `aliases` for a stream, event by event."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wireglot.ir.content import Text, ToolCall
from wireglot.ir.stream import Delta, Event, OtherAnswer, PartEnd, PartStart
from wireglot.providers.aliases import Aliases, freeform_input, unwrapped


class EventRestorer:
    """Restores calls and wrapped answers in a stream. Arguments of an emulated freeform call and a wrapped
    answer wait for their end: half a JSON string cannot be unwrapped."""

    def __init__(self, aliases: Aliases) -> None:
        self.aliases = aliases
        self.waiting: dict[int, list[str]] = {}
        self.wrapped: set[int] = set()

    def events(self, events: Iterable[Event]) -> list[Event]:
        restored: list[Event] = []
        for event in events:
            if type(event) is Delta:
                held = self.waiting.get(event.index)
                if held is None:
                    restored.append(event)
                else:
                    held.append(event.text)
            elif type(event) is PartStart and type(event.part) is ToolCall:
                restored.append(self._start(event, event.part))
            elif type(event) is PartStart and type(event.part) is Text and self.aliases.unwraps:
                self.waiting[event.index] = [event.part.text]
                self.wrapped.add(event.index)
                restored.append(PartStart(event.index, msgspec.structs.replace(event.part, text="")))
            elif type(event) is PartEnd and event.index in self.waiting:
                collected = "".join(self.waiting.pop(event.index))
                text = unwrapped(collected) if event.index in self.wrapped else freeform_input(collected)
                if text and not event.cut:
                    restored.append(Delta(event.index, text))
                restored.append(event)
            elif type(event) is OtherAnswer:
                restored.append(OtherAnswer(self.aliases.restore_answer(event.answer)))
            else:
                restored.append(event)
        return restored

    def _start(self, event: PartStart, call: ToolCall) -> PartStart:
        if call.kind == "function" and call.name in self.aliases.custom:
            self.waiting[event.index] = [call.arguments]
            restored = self.aliases.restore(msgspec.structs.replace(call, arguments=""))
            return PartStart(event.index, restored)
        return PartStart(event.index, self.aliases.restore(call))
