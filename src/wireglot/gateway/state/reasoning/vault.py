"""The reasoning of earlier turns, put back for clients whose dialect cannot carry it.

An answer is stored whole, in neutral terms, under two kinds of names (see `turn_names`): an exact one, whose
record contains it, and loose ones, which contain only the exact name. See docs/reasoning.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.worker_thread import run_in_thread
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.reasoning.absent import AbsentTurns
from wireglot.gateway.state.reasoning.names import History, Namer, Turn, read_history, visible, without_ids
from wireglot.gateway.state.reasoning.parts import (
    GIVEN_UP,
    is_for_any,
    is_of_any,
    is_signed_call,
    is_whole,
    minter_of,
    pack,
    restored,
    signature_of,
    unpack,
    worth_keeping,
)
from wireglot.gateway.state.store_health import StoreHealth
from wireglot.gateway.targets.routing import Target
from wireglot.stores.base import StoreDown, Vault
from wireglot_core.dialects.places import answer_located
from wireglot_core.ir.content import Foreign, Message, Part, Reasoning, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.wire.search import holds_any

_DAY_SECONDS: Final = 86_400
_MAX_KEPT_SECONDS: Final = 3650 * _DAY_SECONDS
"""Seconds for which reasoning is stored where the settings set no end: ten years."""
# Models known to refuse stored reasoning.
_MAX_REFUSING: Final = 4096
_MAX_MADE: Final = 8
"""Sessions of one client for which a cached turn keeps its names."""
_NOT_KEPT: Final = "reasoning not kept: the store is not available"
_LOST: Final = Loss(
    "$.content",
    "reasoning.signature",
    "dropped",
    "the gateway could not store the reasoning state of the answer",
)
_NOT_RECALLED: Final = "reasoning not recalled: the store is not available"


class ReasoningVault:
    def __init__(
        self, vault: Vault, settings: Settings, note: Any, *, absent: AbsentTurns | None = None
    ) -> None:
        self.absent = absent if absent is not None else AbsentTurns()
        self.store_health = StoreHealth()
        """Of the store behind the vault."""
        self.lacks: Callable[[str], bool] = lambda caller: False
        """Whether it is known, without a call, that the store has nothing of a caller."""
        self.kept_mark: Callable[[str], Hashable] = lambda caller: 0
        """See `Engine`."""
        self.refusing: set[str] = set()
        """Names of targets that have shown reasoning and refused to accept it back."""
        self._vault = vault
        self._note = note
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        days = settings.store.keep.vault_days
        self._seconds = int(days * _DAY_SECONDS) or _MAX_KEPT_SECONDS
        server = settings.server
        self.absent.forget_all()
        in_memory = settings.store.url.value.startswith("memory:") and not settings.store.shared.value
        self._is_shared = server.workers == 1 or not in_memory
        """Whether the process that gets the next request finds what is stored here."""
        self._secrets = [server.secret.value.encode(), *(old.value.encode() for old in server.old_secrets)]

    def concerns(self, exchange: Exchange) -> bool:
        """Whether the client drops state that one of its upstreams wants back."""
        for target in exchange.targets:
            if (target.lost.any or exchange.hides_state) and target.name not in self.refusing:
                return True
        return False

    def recall(self, exchange: Exchange) -> Awaitable[None] | None:
        """A step: put back the state that the conversation's turns have lost, for the upstreams that want it,
        and arrange to keep the next turn's."""
        if not self.concerns(exchange):
            return None
        caller = exchange.job.caller.name
        try:
            # A request that may pass unchanged is not parsed before there is anything to keep.
            is_read = _is_foreign(exchange) or exchange.differs
            messages = exchange.request().messages if is_read and not exchange.is_large else None
            # For a caller without stored turns the history is not even parsed, unless this answer has state.
            # If the model has said nothing yet, nothing is lost.
            has_nothing = (
                (messages is not None and not _has_turns(messages))
                or self.lacks(caller)
                or not (is_read or _may_lack(exchange))
            )
            if has_nothing and not (is_read and exchange.is_large):
                return self._arrange(exchange, _KeepsReasoning(self, exchange, messages), [], None)
            mark = None if has_nothing else self.kept_mark(caller)
            reading = (
                partial(self._with_nothing, exchange)
                if has_nothing
                else partial(self._lacking, exchange, mark)
            )
            if exchange.is_large:
                return self._recall_large(exchange, reading, mark)
            keeper, lacking = reading()
        except RequestError:
            return None  # only its own vendor can read it
        return self._arrange(exchange, keeper, lacking, mark)

    async def _recall_large(
        self, exchange: Exchange, reading: Callable[[], tuple[_KeepsReasoning, list[_Named]]], mark: Hashable
    ) -> None:
        try:
            keeper, lacking = await run_in_thread(reading)
        except RequestError:
            return
        recalled = self._arrange(exchange, keeper, lacking, mark)
        if recalled is not None:
            await recalled

    def _arrange(
        self, exchange: Exchange, keeper: _KeepsReasoning, lacking: list[_Named], mark: Hashable
    ) -> Awaitable[None] | None:
        exchange.ending.keepers.append(keeper)
        exchange.withholds_reasoning = (
            not self.store_health.trouble and self._is_shared and _is_unasked(exchange)
        )
        return self._put_back(exchange, keeper, lacking, mark) if lacking else None

    async def _put_back(
        self, exchange: Exchange, keeper: _KeepsReasoning, lacking: list[_Named], mark: Hashable
    ) -> None:
        caller, moment = exchange.job.caller.name, self.absent.moment
        try:
            found = await self._find(caller, lacking)
        except StoreDown:
            exchange.record.noted(_NOT_RECALLED)
            exchange.withholds_reasoning = False
            return
        there = {turn.start for turn, _ in found}
        gone = [(each.turn.prefix, each.turn.shown) for each in lacking if each.turn.start not in there]
        self.absent.learn(caller, _within(exchange), gone, moment, mark)
        putting = partial(_put_back, exchange, found)
        keeper.put_back = await run_in_thread(putting) if exchange.is_large else putting()

    def _with_nothing(self, exchange: Exchange) -> tuple[_KeepsReasoning, list[_Named]]:
        return _KeepsReasoning(self, exchange, exchange.request().messages), []

    def _lacking(self, exchange: Exchange, mark: Hashable) -> tuple[_KeepsReasoning, list[_Named]]:
        """The keeper of the answer, and the turns before it that may have lost something."""
        job, messages = exchange.job, exchange.request().messages
        if not _has_turns(messages):
            return _KeepsReasoning(self, exchange, messages), []
        history = read_history(messages, job.content.memory)
        keeper = _KeepsReasoning(self, exchange, _history=history)
        # A client that drops thoughts may have dropped one of several: the remaining ones do not show it.
        drops, by_name = job.surface.reasoning.drops_thoughts, _comes_bare(exchange)
        caller, session = job.caller.name, _within(exchange)
        known = self.absent.known(caller, mark)
        turns = [
            turn
            for turn in history.turns
            if (drops or not _is_whole(turn, by_name)) and not known(session, turn.prefix, turn.shown)
        ]
        if not turns:
            return keeper, []
        namers = self._namers(exchange)
        scope = (tuple(self._secrets), caller, session)
        return keeper, [_named(turn, namers, scope) for turn in turns]

    async def keep(self, exchange: Exchange, history: History, content: tuple[Part, ...]) -> None:
        """Store an answer to this history."""
        body = pack(content)
        if body is None:
            self._not_kept(exchange)
            return
        namer = self._namers(exchange)[0]
        exact = namer.exact(history.prefix, visible(content))
        entries = {exact: body, namer.placed(history.place, without_ids(content)): exact.encode()}
        entries.update((name, exact.encode()) for name in namer.loose(content))
        await self._write(exchange, entries)

    async def give_up(self, exchange: Exchange, turns: Sequence[Turn]) -> None:
        """Their minter has refused them after this conversation: they are not sent again. A server that only
        shows its reasoning gets none any more."""
        for target in exchange.targets:
            if target.lost.shown and _answered(exchange, target):
                if len(self.refusing) >= _MAX_REFUSING:  # model names come from clients
                    self.refusing.clear()
                self.refusing.add(target.name)
        namers = self._namers(exchange)
        names = (namer.exact(turn.prefix, turn.shown) for turn in turns for namer in namers)
        await self._write(exchange, dict.fromkeys(names, GIVEN_UP))

    async def _write(self, exchange: Exchange, entries: dict[str, bytes]) -> None:
        if self.store_health.trouble:  # known to be failing: the answer does not wait to find that out
            exchange.record.noted(_NOT_KEPT)
            self._not_kept(exchange)
            return
        caller = exchange.job.caller.name
        try:
            await self._vault.keep(caller, entries, self._seconds)
        except StoreDown:  # it may have been stored all the same
            exchange.record.noted(_NOT_KEPT)
            self._not_kept(exchange)
        finally:
            self.absent.forget(caller)

    def _not_kept(self, exchange: Exchange) -> None:
        """Report that reasoning was not stored. A client that was not shown it does not have it either."""
        if exchange.withholds_reasoning and exchange.attempt.minter is not None:
            exchange.lose(*answer_located(exchange.codec.places, (_LOST,)))

    async def _find(self, caller: str, turns: list[_Named]) -> list[tuple[Turn, tuple[Part, ...]]]:
        """The kept form of each turn that has one."""
        names: dict[str, None] = {}
        for named in turns:
            names |= named.names.all
        held = await self._vault.recall(caller, list(names))
        if not held:  # the usual case: few turns have ever lost anything
            return []
        pointed: dict[int, str] = {}
        for at, named in enumerate(turns):
            if not any(name in held for name in named.names.exact):
                pointer = next((held[name] for name in named.names.loose if name in held), None)
                if pointer is not None:
                    pointed[at] = pointer.decode("ascii", "replace")
        missing = [name for name in dict.fromkeys(pointed.values()) if name not in held]
        if missing:
            held.update(await self._vault.recall(caller, missing))
        found = []
        for at, named in enumerate(turns):
            body = next(
                (held[name] for name in (*named.names.exact, pointed.get(at, "")) if name in held), None
            )
            kept = unpack(body) if body is not None else None
            if kept is not None:
                found.append((named.turn, kept))
        return found

    def _namers(self, exchange: Exchange) -> list[Namer]:
        """The first one uses the current secret."""
        job, apart = exchange.job, _is_apart(exchange)
        return [Namer(secret, job.caller.name, job.session, apart=apart) for secret in self._secrets]


def _has_turns(messages: tuple[Message, ...]) -> bool:
    """Whether the model has said anything yet."""
    for message in messages:  # noqa: SIM110 - a generator would cost more than most requests
        if message.role == "assistant":
            return True
    return False


def _within(exchange: Exchange) -> str:
    """The session of a conversation, and whether its turns are stored apart."""
    return exchange.job.session + ("\x1fown" if _is_apart(exchange) else "")


def _is_foreign(exchange: Exchange) -> bool:
    """Whether a target's dialect is of another family than the client's."""
    for target in exchange.targets:  # noqa: SIM110 - a generator would cost more than most requests
        if target.lost.foreign:
            return True
    return False


def _comes_bare(exchange: Exchange) -> bool:
    """Whether signatures come back without their minter."""
    return any(target.lost.bare for target in exchange.targets)


def _is_unasked(exchange: Exchange) -> bool:
    """Whether the client did not ask to see reasoning, which upstreams of other dialects may send."""
    asks = exchange.job.surface.reasoning.asks_thinking
    return asks is not None and _is_foreign(exchange) and not asks(exchange.request())


def _is_apart(exchange: Exchange) -> bool:
    """Whether turns are stored for their own dialect alone, apart from equal texts of other dialects."""
    for target in exchange.targets:
        lost = target.lost
        if lost.foreign or not (exchange.hides_state or lost.shown or lost.replaced):
            return False
    return True


def _may_lack(exchange: Exchange) -> bool:
    """Whether turns of the conversation may have lost their state. In its own dialect a signature is lost if
    there is a placeholder for it; plain reasoning may be lost as soon as there is a turn of the model."""
    if exchange.differs or not _is_apart(exchange):
        return True
    about = exchange.job.surface.reasoning
    return holds_any(exchange.job.body, about.placeholders or about.turn_marks)


def _answered(exchange: Exchange, target: Target) -> bool:
    record = exchange.record
    return (target.provider.name, target.model) == (record.provider, record.upstream_model)


class _Names(msgspec.Struct, frozen=True):
    """The names under which a turn may be stored in the vault."""

    exact: list[str]
    loose: list[str]
    all: dict[str, None]


class _Named(msgspec.Struct, frozen=True):
    turn: Turn
    names: _Names


def _named(turn: Turn, namers: list[Namer], scope: Hashable) -> _Named:
    """`scope`: everything that its names are made of except the turn."""
    names: _Names | None = turn.made.get(scope)
    if names is None:
        loose = [
            name
            for namer in namers
            for name in (*namer.loose(turn.content), namer.placed(turn.place, turn.said))
        ]
        exact = [namer.exact(turn.prefix, turn.shown) for namer in namers]
        names = _Names(exact, loose, dict.fromkeys((*exact, *loose)))
        if len(turn.made) >= _MAX_MADE:
            turn.made.clear()
        turn.made[scope] = names
    return _Named(turn, names)


def _is_whole(turn: Turn, by_name: bool) -> bool:
    whole: bool | None = turn.made.get(by_name)
    if whole is None:
        whole = turn.made[by_name] = is_whole(turn.content, by_name)
    return whole


class _KeepsReasoning(msgspec.Struct, eq=False):
    """Implements `Keeper`: stores one answer, if it contains anything that its client will not send back."""

    _vault: ReasoningVault
    _exchange: Exchange
    _unread: tuple[Message, ...] | None = None
    """The messages before the answer, if nothing was put back; None: those of the request."""
    _history: History | None = None
    """The same, once it was read."""
    put_back: list[Turn] = []

    def needs(self, target: Target) -> bool:
        """A model that does not think leaves nothing to store, unless old state is to be given up."""
        if self.put_back:
            return True
        limits = target.limits
        thinks = limits.thinking != "none" or limits.call_signatures
        if not thinks or target.name in self._vault.refusing:
            return False
        return target.lost.any or self._exchange.hides_state

    def expects(self, data: bytes, *, whole: bool) -> bool:
        """A server that shows its reasoning begins with it; signatures may come with any part."""
        exchange = self._exchange
        if self.put_back or exchange.hides_state:
            return True
        for target in exchange.targets:
            if not whole and not target.lost.shown:
                return True
        marks = exchange.job.surface.reasoning.shown_marks
        return not marks or holds_any(data, marks)

    def wants(self, response: Response) -> bool:
        gives_up = self._exchange.attempt.stripped and bool(self.put_back)
        return gives_up or bool(self._worth(response))

    async def keep(self, response: Response) -> None:
        if self._exchange.attempt.stripped and self.put_back:
            await self._vault.give_up(self._exchange, self.put_back)
        worth = self._worth(response)
        if not worth:
            return
        try:
            history = await self._said_before()
        except RequestError:
            return  # only its own vendor can read it
        for content in worth:
            await self._vault.keep(self._exchange, history, content)

    async def _said_before(self) -> History:
        if self._history is None:
            exchange = self._exchange
            reading = partial(self._read, exchange)
            self._history = await run_in_thread(reading) if exchange.is_large else reading()
        return self._history

    def _read(self, exchange: Exchange) -> History:
        messages = self._unread if self._unread is not None else exchange.request().messages
        return read_history(messages, exchange.job.content.memory)

    def _worth(self, response: Response) -> list[tuple[Part, ...]]:
        """The parts of each answer that its client will not send back."""
        contents = [response.content]
        if response.others:
            contents += [other.content for other in response.others]
        contents = list(filter(self._bears_state, contents))
        if not contents:
            return []
        targets = self._exchange.targets
        answered = next((target for target in targets if _answered(self._exchange, target)), targets[0])
        found: list[tuple[Part, ...]] = []
        for content in contents:
            worth = content
            if answered.limits.reasoning != "text":
                worth = worth_keeping(content, partial(minter_of, answered))
            if not self._bears_state(worth):
                continue
            replaced = answered.lost.replaced and not self._exchange.hides_state
            if replaced and not any(map(is_signed_call, worth)):
                continue  # placeholders replace signatures of calls only
            found.append(worth)
        return found

    def _bears_state(self, content: tuple[Part, ...]) -> bool:
        with_foreign = self._exchange.withholds_reasoning
        for part in content:
            kind = type(part)
            if kind is Reasoning or (with_foreign and kind is Foreign):
                return True
            if getattr(part, "signature", None) is not None and signature_of(part) is not None:
                return True
        return False


def _put_back(exchange: Exchange, found: list[tuple[Turn, tuple[Part, ...]]]) -> list[Turn]:
    """The turns that were changed."""
    request, by_name = exchange.request(), _comes_bare(exchange)
    messages: list[Message] = list(request.messages)
    changed: list[Turn] = []
    apart = _is_apart(exchange)
    for turn, kept in reversed(found):  # from the end, so that earlier places stay valid
        if apart and not is_of_any(kept, exchange.targets):
            continue  # state of another server of the same dialect, which this one never received
        if not apart and not is_for_any(kept, exchange.targets):
            continue  # no target accepts it: a loss of it would not be of the client's request
        found_again = restored(turn, kept, by_name)
        if found_again is None:
            continue
        _rename_results(messages, turn.end, found_again.renamed)
        first = messages[turn.start]
        # If each item is a message, the first one's extra belongs to that item, not to the turn.
        extra = None if exchange.hides_state and turn.end - turn.start > 1 else first.extra
        messages[turn.start : turn.end] = [Message("assistant", found_again.content, first.name, extra)]
        changed.append(turn)
    if changed:
        exchange.rewrite(msgspec.structs.replace(request, messages=tuple(messages)))
    return changed


def _rename_results(messages: list[Message], start: int, renamed: dict[str, str]) -> None:
    """Results after a turn, up to the model's next one, must name its calls as the turn does now."""
    if not renamed:
        return
    for index in range(start, len(messages)):
        message = messages[index]
        if message.role == "assistant":
            return
        content = tuple(
            msgspec.structs.replace(part, call_id=renamed[part.call_id])
            if type(part) is ToolResult and part.call_id in renamed
            else part
            for part in message.content
        )
        messages[index] = Message(message.role, content, message.name, message.extra)
