"""All that is kept of one caller, removed."""

from __future__ import annotations

from wireglot.gateway.settings import Settings
from wireglot.stores import open_counters
from wireglot.stores.base import Engine


async def wiped(settings: Settings, engine: Engine, caller: str) -> dict[str, int]:
    """How much of what there was, in the engine and in a vault of its own beside it."""
    removed = dict(await engine.wipe(caller))
    if settings.store.shared.value:
        counters, vault = await open_counters(settings.store.shared.value)
        try:
            if vault is not None:
                removed["vault"] = removed.get("vault", 0) + await vault.forget(caller)
        finally:
            await counters.close()
    return removed
