"""Checks whether providers accept their keys, all at once; and finds those that lack more than a key."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.relay.context_sizes import ContextSizes
from wireglot.gateway.relay.key_checks import KeyChecker, ProviderAnswer, is_asked
from wireglot.gateway.settings import Credential, Provider
from wireglot.gateway.targets.context_size import context_dialect
from wireglot.http.client.client import HttpTransport
from wireglot.http.transport import Timeouts
from wireglot_core.providers.spec import ProviderSpec

# Loaded models of one server that are looked at.
MAX_LOADED: Final = 16


def ask_providers(
    providers: Iterable[Provider],
    *,
    clock: Callable[[], float] = time.time,
    timeouts: Timeouts | None = None,
) -> list[ProviderAnswer]:
    """Check all at once, each with each of its keys, in the given order. `timeouts`: instead of the default
    ones."""
    asked = [
        (provider, credential)
        for provider in providers
        if is_asked(provider)
        for credential in provider.credentials or (None,)
    ]
    return asyncio.run(_ask(asked, clock, timeouts)) if asked else []


def try_key(provider: Provider, key: str) -> ProviderAnswer:
    """A provider's answer for one of its keys. Raises StopIteration if it does not use this one."""
    credential = next(each for each in provider.credentials if each.secret.value == key)
    (answer,) = ask_providers([msgspec.structs.replace(provider, credentials=(credential,))])
    return answer


async def _ask(
    asked: Sequence[tuple[Provider, Credential | None]],
    clock: Callable[[], float],
    timeouts: Timeouts | None,
) -> list[ProviderAnswer]:
    transport = HttpTransport(ProcessLimits())
    asker = KeyChecker(transport, clock, timeouts)
    try:
        return list(await asyncio.gather(*(asker.ask(*each) for each in asked)))
    finally:
        await transport.close()


class LoadedModel(NamedTuple):
    """A model that a local server has loaded, with the size of its context and the model's own maximum; 0:
    unknown."""

    provider: str
    model: str
    size: int
    most: int


def loaded_models(providers: Iterable[Provider]) -> list[LoadedModel]:
    """The models that local servers have loaded. One that does not answer has none."""
    asked = [provider for provider in providers if context_dialect(provider.spec)]
    return asyncio.run(_loaded(asked)) if asked else []


async def _loaded(asked: Sequence[Provider]) -> list[LoadedModel]:
    transport = HttpTransport(ProcessLimits())
    sizes = ContextSizes({"http": transport, "https": transport})
    found = []
    try:
        for provider in asked:
            credential = provider.credentials[0] if provider.credentials else None
            running = await sizes.running(provider, credential)
            for model in itertools.islice(running, MAX_LOADED):
                most, _ = await sizes.shown(provider, model, credential)
                found.append(LoadedModel(provider.name, model, running[model], most))
    finally:
        await transport.close()
    return found


def shown_context(provider: Provider, model: str) -> int:
    """The maximum context of a model, as its server reports it; 0: unknown."""
    if not context_dialect(provider.spec):
        return 0

    async def shown() -> int:
        transport = HttpTransport(ProcessLimits())
        credential = provider.credentials[0] if provider.credentials else None
        try:
            sizes = ContextSizes({"http": transport, "https": transport})
            return (await sizes.shown(provider, model, credential))[0]
        finally:
            await transport.close()

    return asyncio.run(shown())


_NAME: Final = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")


class Lacking(NamedTuple):
    """A provider that is off although its key is there."""

    provider: str
    variable: str
    """The variable of its key."""
    wanted: str
    """Variables that it needs in addition to the key; "" if the key itself is invalid."""

    @property
    def problem(self) -> str:
        return f"{self.wanted} is not" if self.wanted else "contains no valid key"


def without_covered(providers: Iterable[Provider]) -> tuple[Provider, ...]:
    """Without those whose dialects another provider with the same key speaks at the same addresses."""
    known = tuple(providers)
    return tuple(
        each
        for each in known
        if not any(_covers(other.spec, each.spec) for other in known if other is not each)
    )


def _covers(other: ProviderSpec, spec: ProviderSpec) -> bool:
    if not spec.api_key_env or other.api_key_env != spec.api_key_env:
        return False
    return len(other.dialects) > len(spec.dialects) and all(
        dialect in other.dialects and _base(other, dialect) == _base(spec, dialect)
        for dialect in spec.dialects
    )


def _base(spec: ProviderSpec, dialect: str) -> str:
    return spec.base_urls.get(dialect, spec.base_url)


def lacking(notes: Iterable[str]) -> Iterator[Lacking]:
    """From notes of the configuration: `provider azure is off: its key is in env:NAME, but it lacks ...`."""
    for note in notes:
        head, is_off, why = note.partition(" is off: ")
        if not is_off or not head.startswith("provider "):
            continue
        names = _NAME.findall(why)
        variable, wanted = (names[0], " and ".join(names[1:])) if names else ("", "")
        yield Lacking(head.removeprefix("provider "), variable, wanted)
