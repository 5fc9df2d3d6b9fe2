"""The lists of models that providers keep themselves: asked for, remembered, not waited for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from wireglot.dialects.base import UpstreamModel, read_list
from wireglot.gateway.relay.outbound import list_outbound
from wireglot.gateway.relay.sign_ins import SignIns
from wireglot.gateway.settings import Provider
from wireglot.http.failures import AttemptFailed
from wireglot.http.transport import Timeouts, Transport, TransportFault
from wireglot.wire.json import BadJson, decode

FRESH_SECONDS: Final = 60.0
"""For which a list is not asked for again. Somebody who loads a model at home looks for it at once."""
KEPT_SECONDS: Final = 3600.0
"""For which a list is told although its server is away."""
RETRY_SECONDS: Final = 15.0
WAIT_SECONDS: Final = 2.0
"""The most that a page waits; the answer that comes later is for the next one."""
MODELS_MOST: Final = 5000
_BYTES_MOST: Final = 16 * 2**20
_TIMEOUTS: Final = Timeouts(first_byte=5.0, total=10.0)


class Listed(msgspec.Struct, frozen=True):
    """`models` by provider; `age` in seconds, of the oldest list; `silent`: who was asked and told none."""

    models: Mapping[str, tuple[UpstreamModel, ...]] = {}
    age: int = 0
    silent: tuple[str, ...] = ()


class _Entry:
    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.models: tuple[UpstreamModel, ...] | None = None
        self.at = 0.0
        self.tried = float("-inf")
        self.asking: asyncio.Task[None] | None = None


class UpstreamLists:
    """One for each process. Only providers of which the catalog names no model are asked: of the others it
    knows more than they tell."""

    def __init__(
        self,
        transports: dict[str, Transport],
        clock: Callable[[], float] | None = None,
        sign_ins: SignIns | None = None,
    ) -> None:
        self._transports = transports
        self._sign_ins = sign_ins or SignIns()
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._told: dict[str, tuple[UpstreamModel, ...]] = {}

    async def of(self, providers: Iterable[Provider]) -> Listed:
        now = self._clock or asyncio.get_running_loop().time
        entries = [self._entry(provider) for provider in providers if is_asked(provider)]
        if not entries:
            return Listed()
        for entry in entries:
            self._refresh(entry, now())
        missing = [entry.asking for entry in entries if entry.models is None and entry.asking is not None]
        if missing:
            await asyncio.wait(missing, timeout=WAIT_SECONDS)
        at = now()
        known = {
            entry.provider.name: entry.models
            for entry in entries
            if entry.models is not None and at - entry.at <= KEPT_SECONDS
        }
        if known != self._told:
            self._told = known  # the same object while nothing changes: what was made of it holds
        ages = [at - entry.at for entry in entries if entry.provider.name in known]
        silent = tuple(entry.provider.name for entry in entries if entry.provider.name not in known)
        return Listed(self._told, round(max(ages, default=0.0)), silent)

    def _entry(self, provider: Provider) -> _Entry:
        entry = self._entries.get(provider.name)
        if entry is None or (entry.provider is not provider and entry.provider != provider):
            entry = self._entries[provider.name] = _Entry(provider)
        return entry

    def _refresh(self, entry: _Entry, now: float) -> None:
        """Ask, unless it is being asked, or was a moment ago."""
        if entry.asking is not None:
            return
        pause = FRESH_SECONDS if entry.models is not None and entry.at >= entry.tried else RETRY_SECONDS
        if now - entry.tried < pause:
            return
        entry.tried = now
        entry.asking = asyncio.create_task(self._ask(entry, now))

    async def _ask(self, entry: _Entry, now: float) -> None:
        try:
            found = await self._fetched(entry.provider)
            if found is not None:
                entry.models, entry.at = found, now
        except (TransportFault, AttemptFailed):
            pass  # it is away, or does not let us in: what it told before holds for a while
        finally:
            entry.asking = None

    async def _fetched(self, provider: Provider) -> tuple[UpstreamModel, ...] | None:
        credential = provider.credentials[0] if provider.credentials else None
        if credential is not None and credential.login is not None:
            credential = await self._sign_ins.ready(credential)
        question = list_outbound(provider, credential)
        if question is None:
            return None
        answer = await self._transports[question.url.partition(":")[0]].send(question, _TIMEOUTS)
        try:
            if answer.status != 200:
                answer.abort()
                return None
            return read_list(decode(await answer.read(_BYTES_MOST)), MODELS_MOST)
        except BadJson:
            return None
        except BaseException:
            answer.abort()
            raise


def is_asked(provider: Provider) -> bool:
    return not any(entry.is_name for entry in provider.spec.models)
