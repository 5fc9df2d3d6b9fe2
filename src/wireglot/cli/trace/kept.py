"""Recorded exchanges in the folder of a configuration's store: no gateway needs to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from wireglot.cli.local_gateway import StoreNote
from wireglot.cli.paint import one_line
from wireglot.cli.telling import complain
from wireglot.cli.trace.access import Listed, NoTrace, Unusable
from wireglot.cli.trust import trusted_config
from wireglot.gateway import config
from wireglot.gateway.observe.log import Level
from wireglot.gateway.settings import Settings
from wireglot.gateway.trace.shelf import FOLDER, TraceShelf
from wireglot.gateway.trace.wanted import Wanted, holds
from wireglot.stores.seal import Sealer
from wireglot.traces.holding import holds_text
from wireglot.traces.trace import Row, Trace


class OnDisk:
    """What gateways of this configuration have recorded, and whose time is not over."""

    def __init__(self, config_file: str | None) -> None:
        """Raises ConfigError, Unusable."""
        file = trusted_config(config_file)
        settings = config.load(file.path, create_secret=False, content=file.content, keys_needed=False)
        folder = _folder(settings)
        self._note = StoreNote(settings, folder=str(folder))
        self._shelf = TraceShelf(folder, _sealer(settings), _warn)

    def rows(self, filters: dict[str, str], limit: int) -> Listed:
        found = self._rows(filters, limit)
        self._note.say()
        return found

    def _rows(self, filters: dict[str, str], limit: int) -> Listed:
        text = filters.get("q", "").lower()
        wanted = msgspec.convert({name: value for name, value in filters.items() if name != "q"}, Wanted)
        rows: list[Row] = []
        for kept in self._shelf.listed():
            row = self._shelf.row(kept)
            if row is None or not wanted.matches(row):
                continue
            if text and not holds(row, text):
                trace = self._shelf.trace(kept)
                if trace is None or not holds_text(trace, text):
                    continue
            if len(rows) == limit:
                return Listed(rows, rows[-1].id)
            rows.append(row)
        return Listed(rows)

    def trace(self, id: str) -> Trace:
        kept = self._shelf.find(id)
        trace = self._shelf.trace(kept) if kept is not None else None
        if trace is None:
            raise NoTrace(
                f"no recorded exchange {one_line(id)[:64]}: see `wireglot trace list`; where a gateway runs, "
                "name it with --url"
            )
        self._note.say()
        return trace


def _folder(settings: Settings) -> Path:
    if not settings.store.folder:
        raise Unusable("the store is in the gateway's memory: ask the gateway itself with --url")
    return Path(settings.store.folder) / FOLDER


def _sealer(settings: Settings) -> Sealer:
    server = settings.server
    return Sealer(server.secret.value.encode() or b"none", [old.value.encode() for old in server.old_secrets])


def _warn(level: Level, event: str, **fields: Any) -> None:
    told = ", ".join(f"{name} {value}" for name, value in fields.items())
    complain(f"{event}: {one_line(told)}")
