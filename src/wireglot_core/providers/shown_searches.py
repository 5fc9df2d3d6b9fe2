"""Web searches and code that an upstream has run itself, shown to clients of another dialect in the form of
their own vendor.

The parts of the upstream's dialect are sent along with them: clients carry those back to their writer
(`carried.py`).
"""

from __future__ import annotations

import hashlib

from msgspec import Struct
from msgspec.structs import replace

from wireglot_core.dialects.capabilities import HostedForm
from wireglot_core.dialects.surface import Surface
from wireglot_core.ir.content import Extra, Foreign, Text
from wireglot_core.ir.hosted import CODE, SHOWN, HostedCall, HostedResult, RanCall
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import HostedTool, Request
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start, fold, unfold
from wireglot_core.providers.converted_code import CodeConverter

_ID_BYTES = 11
_SEARCHES = ("web_search", "web_fetch")


class ShownSearches(Struct, eq=False):
    """One answer, whole or as the events of a stream. `client`: the family of its dialect. `seed` makes ids
    unique."""

    upstream: HostedForm
    form: HostedForm
    client: str
    seed: str
    code: CodeConverter | None = None
    """Converts the code that ran, if the client asked for it and its dialect has a form for it."""
    losses: list[Loss] = []
    _code: dict[int, Foreign] = {}
    """By the index of the part after which it is shown."""
    _calls: dict[str, HostedCall] = {}
    _ended: dict[int, RanCall] = {}
    """By the index of the part after which it is shown."""
    _ran: list[RanCall] = []
    _moved: dict[int, int] = {}
    _next: int = 0
    _reported_from: int = 0
    """The index of the first part that is only known at the end of the answer."""
    _extra: Extra | None = None

    @classmethod
    def of(cls, request: Request, upstream: Surface, client: Surface, seed: str) -> ShownSearches | None:
        """Returns None if both are of one family, or the request declares no tool that can be shown."""
        if upstream.family == client.family:
            return None
        kinds = {tool.kind for tool in request.tools if type(tool) is HostedTool}
        theirs, own = upstream.client.hosted, client.client.hosted
        code = None
        if CODE in kinds and theirs.code is not None and own.code is not None:
            code = CodeConverter(theirs.code, own.code, lambda number, _: _shown_id(seed, f"code {number}"))
        if code is None and kinds.isdisjoint(_SEARCHES):
            return None
        return cls(theirs, own, client.family, seed, code)

    def response(self, response: Response) -> Response:
        """Searches that the answer reports at its end are shown before its text, in the order they
        happened."""
        events = list(unfold(response))
        shown = fold(self.events(events))
        if self._next == sum(type(event) is PartStart for event in events) and not self._ran:
            return response
        content, reported = shown.content[: self._reported_from], shown.content[self._reported_from :]
        first = next((place for place, part in enumerate(content) if type(part) is Text), len(content))
        return replace(shown, content=(*content[:first], *reported, *content[first:]))

    def events(self, events: list[Event]) -> list[Event]:
        shown: list[Event] = []
        for event in events:
            if type(event) is PartStart:
                if type(event.part) is Foreign:
                    self._read(event.index, event.part)
                self._moved[event.index] = self._next
                self._next += 1
                shown.append(replace(event, index=self._moved[event.index]))
            elif type(event) is Delta:
                shown.append(replace(event, index=self._moved[event.index]))
            elif type(event) is PartEnd:
                shown.append(replace(event, index=self._moved[event.index]))
                code = self._code.pop(event.index, None)
                if code is not None:
                    self._add([PartStart(self._next, code), PartEnd(self._next)], shown)
                ran = self._ended.pop(event.index, None)
                if ran is not None:
                    self._show(ran, shown)
            elif type(event) is Finish:
                shown.append(self._finished(event, shown))
            else:
                if type(event) is Start:
                    self._extra = event.extra
                shown.append(event)
        return shown

    def _read(self, index: int, part: Foreign) -> None:
        if self.code is not None:
            code = self.code.convert(part, f"$.content[{index}]", self.losses)
            if code is not None:
                self._code[index] = code
                return
        found = self.upstream.read(part)
        if found is None:
            return
        if found.call is not None:
            self._calls[found.id] = found.call
        if found.result is None:
            return
        # A call has one result: a second one would repeat its query.
        call = self._calls.pop(found.id, None)
        if call is not None:
            self._ended[index] = RanCall(found.id, call, found.result)

    def _show(self, ran: RanCall, shown: list[Event]) -> None:
        assert ran.call is not None
        id = _shown_id(self.seed, ran.id)
        ran = RanCall(id, replace(ran.call, id=id), ran.result)
        assert ran.call is not None
        self._add(self.form.announce(ran.call, self._next), shown)
        self._add(self.form.report(ran, self._next), shown)
        self._ran.append(ran)

    def _add(self, events: list[Event], shown: list[Event]) -> None:
        self._next += sum(type(event) is PartStart for event in events)
        shown += events

    def _finished(self, finish: Finish, shown: list[Event]) -> Finish:
        extra = finish.extra if finish.extra is not None else self._extra
        self._reported_from = self._next
        for number, (query, sources) in enumerate(self.upstream.found(extra)):
            call = HostedCall("web_search", f"{number}", input={"query": query})
            self._show(RanCall(f"{number}", call, HostedResult(sources=sources)), shown)
        if not self._ran:
            return finish
        done = self.form.finish(replace(finish, extra=extra), self._ran)
        if done.extra is not extra:
            losses_of_extra(extra, self.client, "$", self.losses, "response.extra")
        return done


def _shown_id(seed: str, id: str) -> str:
    digest = hashlib.blake2b(f"{seed}\x1f{id}".encode(), digest_size=_ID_BYTES)
    return f"{SHOWN}{digest.hexdigest()}"
