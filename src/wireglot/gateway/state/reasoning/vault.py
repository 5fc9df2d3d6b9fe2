"""The reasoning of old turns, put back for clients whose dialect has no place to carry it.

An answer is kept whole, in neutral terms, under two kinds of names (see `turn_names`): an exact one, which
holds it, and loose ones, which hold only the exact name. See docs/reasoning.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.reasoning.names import Namer, Turn, read_history, visible
from wireglot.gateway.state.reasoning.parts import (
    GIVEN_UP,
    is_signed,
    is_whole,
    pack,
    restored,
    unpack,
    worth_keeping,
)
from wireglot.gateway.targets.routing import Target
from wireglot.ir.content import Message, Part, Reasoning, Text, ToolCall
from wireglot.ir.outcome import Response
from wireglot.stores.base import StoreDown, Vault

if TYPE_CHECKING:
    from wireglot.gateway.request.job import Job

_DAY: Final = 86_400
_LONG: Final = 3650 * _DAY
_FAMILY: Final = {"code-assist": "gemini"}
_DROPPED_BY_CLIENTS: Final = frozenset({"openai-chat", "gemini"})
"""Dialects whose clients often send an answer back without its reasoning: Chat has no field for it, and
Gemini's command line leaves thoughts out."""
_NOT_KEPT: Final = "reasoning not kept: the store is not available"
_NOT_RECALLED: Final = "reasoning not recalled: the store is not available"


class ReasoningVault:
    def __init__(self, vault: Vault, settings: Settings, note: Any) -> None:
        self.away: Callable[[], bool] = lambda: False
        """Whether the store behind the vault is known to be down."""
        self._vault = vault
        self._note = note
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        days = settings.store.keep.vault_days
        self._seconds = int(days * _DAY) or _LONG
        server = settings.server
        self._secrets = [server.secret.value.encode(), *(old.value.encode() for old in server.old_secrets)]

    def concern(self, job: Job, targets: tuple[Target, ...]) -> bool:
        """Whether the client loses state on its way that one of these upstreams wants back."""
        if job.asked.operation != "generate":
            return False
        return any(_needs(job.dialect, target) for target in targets)

    async def recall(self, job: Job, targets: tuple[Target, ...]) -> None:
        """Put back what the conversation's turns have lost on their way, and arrange for the next one."""
        if not self.concern(job, targets):
            return
        try:
            history = read_history(job.request().messages)
        except RequestError:
            return  # only its own vendor can read it
        keeping = _Keeping(self, job, targets, history.prefix)
        job.keepings.append(keeping)
        by_name = _carries_bare(job.dialect, targets)
        lacking = [
            turn
            for turn in history.turns
            if not is_whole(turn.content, by_name) and not _brings_its_state(job.dialect, turn.content)
        ]
        if not lacking:
            return
        try:
            found = await self._find(job, lacking)
        except StoreDown:
            job.record.notes = [*job.record.notes, _NOT_RECALLED]
            return
        keeping.put_back = _put_back(job, found, by_name)

    async def keep(self, job: Job, prefix: bytes, content: tuple[Part, ...]) -> None:
        body = pack(content)
        if body is None:
            return
        namer = self._namers(job)[0]
        exact = namer.exact(prefix, visible(content))
        entries = {exact: body}
        entries.update((name, exact.encode()) for name in namer.loose(content))
        await self._write(job, entries)

    async def give_up(self, job: Job, turns: Sequence[Turn]) -> None:
        """Their minter has refused them behind this conversation: they are not tried again and again."""
        namers = self._namers(job)
        names = (namer.exact(turn.prefix, turn.shown) for turn in turns for namer in namers)
        await self._write(job, dict.fromkeys(names, GIVEN_UP))

    async def _write(self, job: Job, entries: dict[str, bytes]) -> None:
        if self.away():  # known to take nothing: the answer does not wait to find that out
            job.record.notes = [*job.record.notes, _NOT_KEPT]
            return
        try:
            await self._vault.keep(job.caller.name, entries, self._seconds)
        except StoreDown:
            job.record.notes = [*job.record.notes, _NOT_KEPT]

    async def _find(self, job: Job, turns: list[Turn]) -> list[tuple[Turn, tuple[Part, ...]]]:
        """The kept form of each turn that has one."""
        namers = self._namers(job)
        exact = [[namer.exact(turn.prefix, turn.shown) for namer in namers] for turn in turns]
        loose = [[name for namer in namers for name in namer.loose(turn.content)] for turn in turns]
        names = dict.fromkeys(name for group in (*exact, *loose) for name in group)
        caller = job.caller.name
        held = await self._vault.recall(caller, list(names))
        pointed: dict[int, str] = {}
        for at in range(len(turns)):
            if not any(name in held for name in exact[at]):
                pointer = next((held[name] for name in loose[at] if name in held), None)
                if pointer is not None:
                    pointed[at] = pointer.decode("ascii", "replace")
        missing = [name for name in dict.fromkeys(pointed.values()) if name not in held]
        if missing:
            held.update(await self._vault.recall(caller, missing))
        found = []
        for at, turn in enumerate(turns):
            body = next((held[name] for name in (*exact[at], pointed.get(at, "")) if name in held), None)
            kept = unpack(body) if body is not None else None
            if kept is not None:
                found.append((turn, kept))
        return found

    def _namers(self, job: Job) -> list[Namer]:
        """The first is of today's secret."""
        return [Namer(secret, job.caller.name, job.session) for secret in self._secrets]


class _Keeping:
    """Keeps one answer, if there is anything in it that its client will not send back by itself."""

    def __init__(self, vault: ReasoningVault, job: Job, targets: tuple[Target, ...], prefix: bytes) -> None:
        self._vault = vault
        self._job = job
        self._targets = targets
        self._prefix = prefix
        self.put_back: list[Turn] = []

    async def keep(self, response: Response) -> None:
        record = self._job.record
        if self._job.stripped and self.put_back:
            await self._vault.give_up(self._job, self.put_back)
        answered = next(
            (
                target
                for target in self._targets
                if (target.provider.name, target.model) == (record.provider, record.upstream_model)
            ),
            self._targets[0],
        )
        for content in (response.content, *(other.content for other in response.others)):
            worth = worth_keeping(content, text_counts=answered.limits.reasoning == "text")
            if _is_lost_by(self._job.dialect, worth):
                await self._vault.keep(self._job, self._prefix, worth)


def _needs(client: str, target: Target) -> bool:
    """Whether answers of this upstream hold state that clients of this dialect do not bring back."""
    family = _FAMILY.get(target.dialect, target.dialect)
    match client:
        case "openai-chat":
            return family != "openai-chat" or target.limits.reasoning == "text"
        case "gemini" | "code-assist":
            return family != "gemini"
        case "anthropic":
            return family == "gemini"
    return False


def _brings_its_state(client: str, content: tuple[Part, ...]) -> bool:
    """Anthropic clients send the blocks before their calls back; only the end of an answer has no place."""
    return client == "anthropic" and any(type(part) is ToolCall for part in content)


def _is_lost_by(client: str, content: tuple[Part, ...]) -> bool:
    if _FAMILY.get(client, client) in _DROPPED_BY_CLIENTS:
        return is_signed(content) or any(type(part) is Reasoning for part in content)
    # A signature behind a streamed text comes too late for the block that would carry it before it.
    return any(type(part) is Text and part.signature is not None for part in content)


def _carries_bare(client: str, targets: tuple[Target, ...]) -> bool:
    """Chat has a field for Gemini's signatures, in which they stand without their minter: another model or
    account would be asked with them, in vain."""
    return client == "openai-chat" and any(target.dialect != client for target in targets)


def _put_back(job: Job, found: list[tuple[Turn, tuple[Part, ...]]], by_name: bool) -> list[Turn]:
    """The turns that were changed."""
    request = job.request()
    messages: list[Message] = list(request.messages)
    changed: list[Turn] = []
    for turn, kept in reversed(found):  # from the end: places before it stay
        content = restored(turn, kept, by_name)
        if content is None:
            continue
        first = messages[turn.start]
        messages[turn.start : turn.end] = [Message("assistant", content, first.name, first.extra)]
        changed.append(turn)
    if changed:
        job.rewrite(msgspec.structs.replace(request, messages=tuple(messages)))
    return changed
