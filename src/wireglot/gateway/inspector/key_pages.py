"""Client keys and their budgets, using the functions of the admin API. Only with the admin secret."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from wireglot.gateway.config.keys import MONEY
from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import InspectorHandler, Viewer
from wireglot.gateway.settings import ClientKey
from wireglot.gateway.state.keys.admin import AdminPages
from wireglot.gateway.state.keys.ring import Keyring, described, stamp
from wireglot.gateway.state.state import State
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores.records import MICRO, UsageQuery

_DAY_SECONDS: Final = 86400.0
# Rows that are read for when a key was last used.
_MAX_ROWS: Final = 5000


class KeyPages:
    def __init__(self, admin: AdminPages, state: State, traces: Traces) -> None:
        self._engine = state.engine
        self._stored = state.keys
        self._traces = traces
        changes: dict[str, Callable[[PageRequest], Awaitable[None]]] = {
            "keys.create": admin.create_key,
            "keys.get": admin.get_key,
            "keys.update": admin.update_key,
            "keys.revoke": admin.revoke_key,
            "keys.rotate": admin.rotate_key,
            "keys.delete": admin.delete_key,
        }
        self.handlers: Final[Mapping[str, InspectorHandler]] = {
            "keys.list": self._list,
            **{verb: _for_admin(handler) for verb, handler in changes.items()},
        }

    async def _list(self, page: PageRequest, viewer: Viewer) -> None:
        """The stored keys, which can be changed, and the configured ones, which cannot; each with its usage
        of the current day and month."""
        viewer.need_admin()
        now = time.time()
        day, month = beginnings(now)
        rows = await Keyring(self._engine.keys, ()).all()
        today, this_month = await self._used(day), await self._used(month)
        keys = [
            {**described(row, now), "stored": True, "used": used_of(row.name, today, this_month)}
            for row in rows
        ]
        keys += [
            {**configured_key(key, now), "stored": False, "used": used_of(key.name, today, this_month)}
            for key in page.settings.keys
        ]
        currency = page.settings.currency
        settings = page.settings
        required = bool(settings.keys) or settings.server.require_key or self._stored.required
        page.send(
            {
                "data": keys,
                "currency": currency,
                "day": day // 1000,
                "month": month // 1000,
                "groups": list(settings.groups),
                "required": required,
                "keyless": [] if required else await self._keyless(now),
            }
        )

    async def _keyless(self, now: float) -> list[dict[str, Any]]:
        """Clients that the first key would lock out: they have sent requests without one in the last day."""
        seen: dict[str, list[float]] = {}
        for row in await self._traces.listed(Wanted(since=now - _DAY_SECONDS, limit=_MAX_ROWS)):
            if not row.key or row.key == LOCAL.name:
                seen.setdefault(row.client or row.agent, []).append(row.at)
        found = [{"client": name, "requests": len(at), "last": max(at)} for name, at in seen.items()]
        return sorted(found, key=lambda each: each["last"], reverse=True)

    async def _used(self, since: int) -> dict[str, tuple[int, int]]:
        totals = await self._engine.ledger.totals(UsageQuery(groups=("caller",), since=since))
        return {total.group[0]: (sum(total.tokens.values()), total.cost) for total in totals}


def _for_admin(handler: Callable[[PageRequest], Awaitable[None]]) -> InspectorHandler:
    async def guarded(page: PageRequest, viewer: Viewer) -> None:
        viewer.need_admin()
        await handler(page)

    return guarded


def used_of(
    name: str, today: Mapping[str, tuple[int, int]], this_month: Mapping[str, tuple[int, int]]
) -> dict[str, Any]:
    """Usage by the names of the budgets that it counts against."""
    (tokens, cost), (tokens_month, cost_month) = today.get(name, (0, 0)), this_month.get(name, (0, 0))
    return {
        "tokens_per_day": tokens,
        "tokens_per_month": tokens_month,
        "cost_per_day": cost / MICRO,
        "cost_per_month": cost_month / MICRO,
    }


def configured_key(key: ClientKey, now: float) -> dict[str, Any]:
    limits = {
        name: (value / MICRO if name in MONEY else value) if (value := getattr(key.limits, name)) else None
        for name in key.limits.__struct_fields__
    }
    return {
        "name": key.name,
        "state": "expired" if key.expires and key.expires <= now * 1000 else "active",
        "models": list(key.models),
        "losses": key.losses,
        "expires": stamp(key.expires),
        "group": key.group or None,
        "owner": key.owner or None,
        **limits,
    }


def beginnings(now: float) -> tuple[int, int]:
    """The starts of the day and of the month, in UTC, as for budgets: unix milliseconds."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return int(today.timestamp() * 1000), int(today.replace(day=1).timestamp() * 1000)
