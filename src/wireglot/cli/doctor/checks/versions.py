"""Python, this program, SQLite, and the extras that the configuration wants."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from wireglot import __version__
from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, note, ok, problem
from wireglot.gateway.settings import Settings
from wireglot.stores import StoreUnusable
from wireglot.stores.sqlite.file import require_version, sqlite_version

_NEEDED: Final = {
    "PostgreSQL (store.url)": ("asyncpg", "fleet"),
    "Redis (store.shared)": ("redis", "fleet"),
    "OpenTelemetry (server.telemetry)": ("opentelemetry.sdk", "otel"),
}


def look_at_versions(case: Case) -> Iterator[Finding]:
    system = f"{platform.system()} {platform.machine()}".strip()
    yield ok(
        f"wireglot {__version__}, Python {platform.python_version()}, SQLite {sqlite_version()}, {system}"
    )
    try:
        require_version()
    except StoreUnusable as told:
        yield problem(str(told), "pip install -U apsw")
    if os.name != "posix":
        yield note(
            "`wireglot run` starts clients on POSIX systems only",
            "wireglot serve, and wireglot run CLIENT --print-env",
        )
    if case.settings is not None:
        for what in _wanted(case.settings):
            module, extra = _NEEDED[what]
            if not _is_installed(module):
                yield problem(
                    f"{what} needs the package {module.partition('.')[0]}", f"pip install 'wireglot[{extra}]'"
                )


def _wanted(settings: Settings) -> Iterator[str]:
    store = settings.store
    if store.url.value.startswith("postgres"):
        yield "PostgreSQL (store.url)"
    if store.shared.value:
        yield "Redis (store.shared)"
    if settings.server.telemetry:
        yield "OpenTelemetry (server.telemetry)"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False
