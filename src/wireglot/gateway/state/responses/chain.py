"""Requests that build on stored responses: their history is loaded before a provider is called, and the
result is stored before the client gets the end of it."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from wireglot.gateway.errors import RequestError, with_request_errors
from wireglot.gateway.request.ending import KeepsAll
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.job import Job
from wireglot.gateway.request.page_request import unavailable
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.state.conversations.items import (
    Stem,
    as_wire,
    items_of,
    joined_turns,
    stored_of,
    turns_of,
    with_tools,
)
from wireglot.gateway.state.conversations.store import ConversationStore, new_conversation, no_conversation
from wireglot.gateway.state.responses.background import Background
from wireglot.gateway.state.responses.background_work import Work
from wireglot.gateway.state.responses.compaction import is_upstreams
from wireglot.gateway.state.responses.store import WHY, ResponseStore
from wireglot.gateway.state.store_health import NOT_HELD, NOT_STORED, StoreHealth
from wireglot.gateway.state.stored_forms import KeptConversation, KeptItem, KeptResponse
from wireglot.stores import StoreDown
from wireglot_core.dialects.body import BadField
from wireglot_core.dialects.capabilities import StateOptions, Stored
from wireglot_core.ir.content import Message
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import AnyTool, Request
from wireglot_core.providers.carried import with_minter

_UNFINISHED: Final = frozenset({"queued", "in_progress"})


class _Past(msgspec.Struct):
    """The history of a request."""

    messages: list[Message] = []
    tools: tuple[AnyTool, ...] = ()
    ancestors: tuple[str, ...] = ()
    conversation: KeptConversation | None = None
    begins: bool = False
    """The conversation does not exist yet."""


class Chain:
    def __init__(
        self,
        responses: ResponseStore,
        conversations: ConversationStore,
        background: Background,
        store_health: StoreHealth,
        note: Any,
    ) -> None:
        self._store_health = store_health
        self._responses = responses
        self._conversations = conversations
        self._background = background
        self._note = note

    def load_history(self, exchange: Exchange) -> Awaitable[None] | None:
        """A step for dialects with stored responses: adds the history to a stateful request and leaves others
        unchanged."""
        job = exchange.job
        if is_upstreams(exchange) or job.agent_field:
            return None
        if job.settings.store.responses == "upstream" and exchange.targets[0].dialect == job.dialect:
            return None  # by the settings, a provider stores the responses itself
        options = _options(exchange)
        work = self._background.of(exchange)
        generates = job.asked.operation == "generate"
        if not options.needs_state and work is None and not (generates and options.stateful):
            return None
        return self._load(exchange, options, work)

    async def _load(self, exchange: Exchange, options: StateOptions, work: Work | None) -> None:
        try:
            await self._make_whole(exchange, options, work)
        except StoreDown:
            raise unavailable("a stored conversation") from None

    async def _make_whole(self, exchange: Exchange, options: StateOptions, work: Work | None) -> None:
        job = exchange.job
        exchange.request()  # errors of the body itself are reported with its own paths
        stored = stored_of(job)
        identifier = work.id if work is not None else f"{stored.prefix}{secrets.token_hex(16)}"
        past = await self._past(job, options)
        document = await self._resolved(exchange, past)
        reading = partial(self._own, exchange, document)
        own = await run_in_thread(reading) if exchange.is_large else reading()
        generates = job.asked.operation == "generate"
        stays = self._stays(exchange, options, past, identifier) if generates else False
        shown = _shown(identifier, options, past, stored, stays=stays, in_background=work is not None)
        exchange.rewrite(_whole(replace(own, model=job.model, stream=job.stream), past, shown, stored))
        exchange.hides_state = stored.hides_state(exchange.request())
        stem = Stem(job.context, identifier, "input")
        kept = KeptResponse(
            {},
            stored.whole_items(document.get("input"), stem.id),
            past.ancestors,
            past.conversation.id if past.conversation is not None else "",
            stem=stem.text,
        )
        if stored.items is None:
            said = own.messages[_leading(own, stored) :]
            kept = replace(kept, dialect=job.dialect, turns=said)
        if work is not None:
            await self._background.loaded(exchange, kept)
        told = work is not None and stored.items is None
        if (stays and work is None) or (generates and past.conversation is not None) or told:
            turn = _Turn(
                identifier, kept, past, stored=stays and work is None, in_background=work is not None
            )
            exchange.ending.keepers.append(_KeepsTurn(self, exchange, turn, shown, work if told else None))

    def _stays(self, exchange: Exchange, options: StateOptions, past: _Past, identifier: str) -> bool:
        """Whether the response will be stored."""
        wanted = options.store is not False
        if not wanted and past.conversation is None:
            return False
        can_store = self._can_store(exchange, options)
        if wanted and not can_store:
            self._responses.unstored.add(exchange.job.caller.name, identifier, doubtful=False)
            exchange.foreseen = (NOT_STORED,)
        return wanted and can_store

    def _own(self, exchange: Exchange, document: dict[str, Any]) -> Request:
        """The request without its history. It has been parsed already, unless something was inserted."""
        job, request = exchange.job, exchange.request()
        items = document.get("input")
        if items and items is not exchange.document().get("input"):
            reading = job.content.reading(job.context)
            request = with_request_errors(lambda: exchange.codec.parse_request(document, reading))
        return stored_of(job).without_state(request)

    def _can_store(self, exchange: Exchange, options: StateOptions) -> bool:
        """Whether it can be stored. If the client did not ask for that explicitly, it is served without, and
        informed."""
        try:
            self._store_health.check()
        except StoreDown:
            if options.store or options.needs_state:
                raise
            self._note("warn", "not stored", id=exchange.record.id, detail="the store does not answer")
            exchange.record.noted("not stored: the store does not answer")
            return False
        return True

    # History.

    async def _past(self, job: Job, options: StateOptions) -> _Past:
        if options.previous:
            return await self._chained(job, options.previous)
        if options.holding:
            return await self._conversed(job, options.holding)
        return _Past()

    async def _chained(self, job: Job, previous: str) -> _Past:
        items, ancestors = await self.history(job.caller.name, previous, stored_of(job))
        messages, tools = turns_of(items, job.context, job.dialect)
        return _Past(messages, tools, ancestors)

    async def history(
        self, caller: str, previous: str, stored: Stored
    ) -> tuple[list[KeptItem], tuple[str, ...]]:
        """All items up to the end of a stored response, and the responses they come from, the oldest first.

        Raises a Fault if one is missing: half a conversation would be answered as if it were all of it.
        """
        last = await self._responses.load(caller, previous)
        if last is not None:
            last = await self._background.current(caller, previous, last)
        if last is None:
            raise self._no_previous(caller, previous, stored)
        if last.body.get("status") in _UNFINISHED:
            raise RequestError(
                "bad",
                f"{stored.previous}: the {stored.noun} '{previous}' is not finished",
                code="invalid_value",
                param=stored.previous,
            )
        ids = (*last.ancestors, previous)
        kept = {**await self._responses.load_all(caller, last.ancestors), previous: last}
        items: list[KeptItem] = []
        for id in ids:
            response = kept.get(id)
            if response is None:
                raise self._no_previous(caller, id, stored)
            if not items and response.conversation:
                items = await self._before(caller, response.conversation, id, stored)
            items += _items(response)
        return items, ids

    async def _before(self, caller: str, conversation: str, response: str, stored: Stored) -> list[KeptItem]:
        """The items of a conversation at the time when a response of it was requested."""
        kept = await self._conversations.find(caller, conversation)
        if kept is None:
            raise no_conversation(conversation)
        items = [placed.kept for placed in await self._conversations.items(caller, kept)]
        own = next((place for place, item in enumerate(items) if item.response == response), None)
        if own is None:  # its turn was deleted, so the items before it are unknown
            raise self._no_previous(caller, response, stored)
        return items[:own]

    async def _conversed(self, job: Job, name: str) -> _Past:
        caller = job.caller.name
        kept = await self._conversations.find(caller, name)
        if kept is None:
            return _Past(conversation=new_conversation(name, job), begins=True)
        placed = await self._conversations.items(caller, kept)
        messages, tools = turns_of((entry.kept for entry in placed), job.context, job.dialect)
        return _Past(messages, tools, conversation=kept)

    async def _resolved(self, exchange: Exchange, past: _Past) -> dict[str, Any]:
        """The body, with the items that it refers to, and without the fields that the gateway itself
        handles."""
        job, stored = exchange.job, stored_of(exchange.job)
        is_reference = stored.is_reference
        document = {key: value for key, value in exchange.document().items() if key not in stored.fields}
        value = document.get("input")
        if value is None and (past.ancestors or past.conversation is not None):
            return {**document, "input": []}  # continuing without new input is a valid request, too
        if not isinstance(value, list) or not any(map(is_reference, value)):
            return document
        wanted = [
            _reference_id(item, f"input[{number}].id")
            for number, item in enumerate(value)
            if is_reference(item)
        ]
        found = await self._responses.items(job.caller.name, wanted)
        if past.conversation is not None:
            held = await self._conversations.items_named(job.caller.name, past.conversation, wanted)
            found |= {id: as_wire(placed.kept, job.context) for id, placed in held.items()}
        items = []
        for number, item in enumerate(value):
            if not is_reference(item):
                items.append(item)
                continue
            if item["id"] not in found:
                raise RequestError(
                    "not_found",
                    f"Item with id '{item['id']}' not found.",
                    code="item_not_found",
                    param=f"input[{number}].id",
                )
            items.append(found[item["id"]])
        return {**document, "input": items}

    # Results.

    async def keep(self, exchange: Exchange, turn: _Turn) -> bool:
        """Store the response first, then its turn in one step. After a failure in between, the first is
        undone: a response that its conversation lacks could not be continued. False: nothing is stored, and
        the answer, which is paid for, says so."""
        job, past = exchange.job, turn.past
        caller, saved = job.caller.name, False
        try:
            if turn.stored:
                await self._responses.save(caller, turn.id, turn.kept)
                saved = True
            if past.conversation is not None:
                kept = turn.kept
                items = items_of(kept.turns, job.context, turn.id) if kept.turns else _items(kept, turn.id)
                await self._conversations.keep_turn(
                    caller, past.conversation, items, job.context, begins=past.begins
                )
        except StoreDown as down:
            self._store_health.suspect(down)
            if saved:
                with suppress(StoreDown):  # otherwise when the store is back
                    await self._responses.delete(caller, turn.id)
            if turn.in_background:  # there is no client to hand it to
                raise unavailable("the response could not be stored") from None
            if turn.stored:
                self._responses.unstored.add(caller, turn.id)
            self._note("error", "not stored", id=exchange.record.id, detail=str(down))
            return False
        return True

    def _no_previous(self, caller: str, id: str, stored: Stored) -> RequestError:
        why = f" {WHY}" if (caller, id) in self._responses.unstored else ""
        return RequestError(
            "not_found",
            f"Previous {stored.noun} with id '{id}' not found.{why}",
            code="previous_response_not_found",
            param=stored.previous,
        ).with_status(stored.missing_previous)


class _Turn(msgspec.Struct, frozen=True):
    """A response in progress, and the conversation it belongs to."""

    id: str
    kept: KeptResponse
    past: _Past
    stored: bool
    """Whether it is stored under its own id. If not, it is only a turn of its conversation."""
    in_background: bool


class _KeepsTurn(KeepsAll):
    """The whole answer, stored before its end is reported."""

    def __init__(
        self, chain: Chain, exchange: Exchange, turn: _Turn, shown: dict[str, Any], work: Work | None = None
    ) -> None:
        """`shown`: the answer's description of itself, until its last event. `work`: what stores the answer,
        if its events do not contain it."""
        self._chain = chain
        self._exchange = exchange
        self._turn = turn
        self._shown = shown
        self._work = work

    async def keep(self, response: Response) -> None:
        exchange = self._exchange
        body = exchange.client_document if exchange.client_document is not None else self._rendered(response)
        whole = replace(self._turn.kept, body=body)
        if whole.dialect:
            whole = replace(whole, turns=(*whole.turns, Message("assistant", self._minted(response).content)))
        kept = replace(self._turn, kept=whole)
        if self._work is not None:
            self._work.answered(body, whole.turns)
        if not await self._chain.keep(exchange, kept):
            self._shown["store"] = False
            exchange.unstored = True
            if kept.stored:
                exchange.lose(NOT_STORED)
            if kept.past.conversation is not None:
                exchange.lose(NOT_HELD)

    def _rendered(self, response: Response) -> dict[str, Any]:
        """Equal to the client's answer: ids depend only on the answer and the request."""
        exchange, job = self._exchange, self._exchange.job
        minted = self._minted(response)
        rendered = exchange.codec.render_response(minted, job.context, exchange.request())
        return rendered.value

    def _minted(self, response: Response) -> Response:
        minter = self._exchange.attempt.minter
        # losses are reported with the answer
        return response if minter is None else with_minter(response, minter, [])


def _reference_id(item: dict[str, Any], place: str) -> str:
    id = item.get("id")
    if not isinstance(id, str):
        raise RequestError("bad", f"{place}: expected a string", code="invalid_type", param=place)
    return id


def _items(kept: KeptResponse, response: str = "") -> list[KeptItem]:
    """The items of one turn. A provider may have given an item of an unknown type no id, or one that is not a
    string."""
    if kept.turns:
        return [KeptItem("", message=message, response=response) for message in kept.turns]
    items = (*kept.input, *kept.body.get("output", ()))
    named = ((item.get("id"), item) for item in items)
    return [KeptItem(id if isinstance(id, str) else "", item, response=response) for id, item in named]


def _shown(
    identifier: str, options: StateOptions, past: _Past, stored: Stored, *, stays: bool, in_background: bool
) -> dict[str, Any]:
    """The fields of the answer that say how it is stored."""
    shown: dict[str, Any] = {"id": identifier, "store": stays}
    if options.previous:
        shown[stored.previous] = options.previous
    if past.conversation is not None:
        shown["conversation"] = {"id": past.conversation.id}
    if in_background:
        shown["background"] = True
    return shown


def _whole(own: Request, past: _Past, shown: dict[str, Any], stored: Stored) -> Request:
    """The request with its history. The instructions are those of this request alone, and come first."""
    messages = own.messages
    leading = _leading(own, stored)
    messages = (*messages[:leading], *joined_turns([*past.messages, *messages[leading:]]))
    whole = replace(own, messages=messages, tools=with_tools(own.tools, past.tools))
    return stored.reported(whole, shown)


def _leading(own: Request, stored: Stored) -> int:
    """The number of messages that are instructions, which are not part of the history."""
    return 1 if own.messages and stored.is_instructions(own.messages[0]) else 0


def _options(exchange: Exchange) -> StateOptions:
    job = exchange.job
    try:
        return stored_of(job).options(job, job.conversation)
    except BadField as fault:
        place = fault.path.removeprefix("$.")
        raise RequestError("bad", fault.message, code=fault.code, param=place) from None
