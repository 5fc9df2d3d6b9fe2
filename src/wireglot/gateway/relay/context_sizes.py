"""Requests for the context sizes of models that local servers load (`targets/context_size.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from wireglot.gateway.relay.outbound import own_outbound
from wireglot.gateway.settings import Credential, Provider
from wireglot.gateway.targets.context_size import ContextSize, context_dialect
from wireglot.http.transport import Outbound, Timeouts, Transport, TransportFault
from wireglot_core.dialects.registry import surface
from wireglot_core.dialects.surface import ContextForm
from wireglot_core.providers.endpoints import NoEndpoint, Operation, endpoint
from wireglot_core.wire.json import BadJson, decode, encode

SHOWN_SECONDS: Final = 300.0
"""A model's maximum that is younger is not requested again."""
RUNNING_SECONDS: Final = 5.0
"""The same for what is loaded."""
ASKED_SECONDS: Final = 300.0
"""A model that was loaded for a request stays loaded about as long."""
# Models whose sizes are kept. Their names come from clients.
_MAX_MODELS: Final = 1000
# Bytes of an answer with sizes. It lists all tensors of a model.
_MAX_BYTES: Final = 16 * 2**20
_TIMEOUTS: Final = Timeouts(connect=1.0, tls=2.0, first_byte=2.0, idle=2.0, total=3.0)


class _Kept(msgspec.Struct):
    value: Any = None
    at: float = float("-inf")
    asking: asyncio.Task[None] | None = None


class ContextSizes:
    """The sizes at all providers, one instance per process. A server that does not report them is not asked
    again for a while."""

    def __init__(self, transports: Mapping[str, Transport], clock: Callable[[], float] | None = None) -> None:
        self._transports = transports
        self._clock = clock
        self._kept: dict[tuple[Provider | str, str], _Kept] = {}
        self._asked: dict[tuple[str, str], tuple[float, int]] = {}

    def _now(self) -> float:
        return self._clock() if self._clock is not None else asyncio.get_running_loop().time()

    async def of(self, provider: Provider, model: str, credential: Credential | None = None) -> ContextSize:
        """The sizes of a model at a provider with `context_dialect`."""
        (most, set_to), running = await asyncio.gather(
            self.shown(provider, model, credential), self.running(provider, credential)
        )
        loaded = running.get(model, 0)
        at, asked = self._asked.get((provider.name, model), (float("-inf"), 0))
        if asked < loaded or self._now() - at > ASKED_SECONDS:
            asked = 0
        return ContextSize(most, set_to, max(loaded, asked), ours=bool(asked))

    async def shown(
        self, provider: Provider, model: str, credential: Credential | None = None
    ) -> tuple[int, int]:
        """The model's own maximum, and the size that is set for it."""
        spoken = context_dialect(provider.spec)
        form = _form(spoken)
        found = await self._known(
            provider, "shown", SHOWN_SECONDS, credential, encode(form.ask(model)), f"shown {model}"
        )
        return form.shown(found)

    async def running(self, provider: Provider, credential: Credential | None = None) -> Mapping[str, int]:
        """The sizes of all loaded models, by their names."""
        found = await self._known(provider, "running", RUNNING_SECONDS, credential)
        return _form(context_dialect(provider.spec)).running(found)

    def asked(self, provider: str, model: str, size: int) -> None:
        """Records the size that a request has named."""
        if len(self._asked) >= _MAX_MODELS:
            self._asked.clear()
        self._asked[provider, model] = self._now(), size

    async def _known(
        self,
        provider: Provider,
        operation: Operation,
        fresh: float,
        credential: Credential | None,
        body: bytes = b"",
        name: str = "",
    ) -> Any:
        if len(self._kept) >= _MAX_MODELS:
            self._kept.clear()
        spoken = context_dialect(provider.spec)
        try:
            url = endpoint(provider.spec, spoken, operation, variables=provider.variables)
        except NoEndpoint:
            return None
        kept = self._kept.setdefault((url, name or operation), _Kept())
        if kept.asking is None and self._now() - kept.at > fresh:
            outbound = own_outbound(provider, credential, spoken, url, body=body)
            kept.asking = asyncio.create_task(self._ask(kept, outbound))
        if kept.asking is not None:
            await asyncio.wait([kept.asking])
        return kept.value

    async def _ask(self, kept: _Kept, outbound: Outbound) -> None:
        value: Any = None
        try:
            transport = self._transports[outbound.url.partition(":")[0]]
            answer = await transport.send(outbound, _TIMEOUTS)
            try:
                if answer.status == 200:
                    value = decode(await answer.read(_MAX_BYTES))
                else:
                    answer.abort()
            except BaseException:
                answer.abort()
                raise
        except (TransportFault, BadJson):
            pass  # unreachable, or another kind of server
        finally:
            kept.value, kept.at, kept.asking = value, self._now(), None


def _form(spoken: str) -> ContextForm:
    upstream = surface(spoken).upstream
    assert upstream is not None
    assert upstream.contexts is not None
    return upstream.contexts
