"""What is past its time, or too much of its kind, is removed: as [store.keep] says."""

from __future__ import annotations

import time
from typing import Final

from wireglot.gateway.settings import Settings
from wireglot.gateway.state import stored_forms
from wireglot.stores.base import Engine
from wireglot.stores.records import KindLimits, Swept

_DAY: Final = 86_400_000
_DEAD: Final = 20 * 60_000
"""Milliseconds of silence after which a process has gone."""


async def prune(engine: Engine, settings: Settings, now: int = 0) -> Swept:
    now = now or int(time.time() * 1000)
    keep = settings.store.keep
    return await engine.sweep(
        now,
        usage_before=now - int(keep.usage_days * _DAY) if keep.usage_days else 0,
        dead_before=now - _DEAD,
        kinds={
            stored_forms.RESPONSE: KindLimits(keep.responses_bytes),
            stored_forms.EVENT: KindLimits(keep.events_bytes),
            stored_forms.ITEM: KindLimits(keep.conversations_bytes),
            stored_forms.IDEMPOTENT: KindLimits(keep.idempotency_bytes),
        },
    )
