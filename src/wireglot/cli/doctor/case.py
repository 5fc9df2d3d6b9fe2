"""The input of the checks: a configuration as it would be loaded, and the answers of its providers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

import msgspec

from wireglot.cli.ask_providers import LoadedModel, ask_providers, loaded_models, without_covered
from wireglot.cli.trust import find_config
from wireglot.gateway import config
from wireglot.gateway.config.environment import CONFIG_FILE
from wireglot.gateway.config.kept_keys import kept_file, read_kept
from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.observe.running import RunningGateway, find_running
from wireglot.gateway.relay.key_checks import ProviderAnswer, is_asked
from wireglot.gateway.settings import Provider, Settings
from wireglot.http.redaction import Redactor
from wireglot.stores import StoreDown, StoreUnusable
from wireglot.stores.open import sqlite_path
from wireglot.stores.sqlite.engine import FileLook, look_at_file
from wireglot_core.providers import spec as catalog


class DoctorCase:
    """`settings` is None if the configuration does not load; `error` says why."""

    def __init__(
        self,
        named: str | None,
        environ: Mapping[str, str],
        *,
        offline: bool = False,
        searches: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.environ = environ
        self.clock = clock
        file = find_config(named, environ)
        self.path = file.path
        self.foreign = not file.trusted
        """Whether the file may be someone else's: then no key is sent to the hosts that it names."""
        self.offline = offline or self.foreign
        self.searches = searches
        """Whether one test search is sent: it may cost something."""
        self.error: config.ConfigError | None = None
        self.settings: Settings | None = None
        try:
            self.settings = config.load(self.path, environ=environ, create_secret=False, content=file.content)
        except config.ConfigError as error:
            self.error = error

    @property
    def loaded(self) -> Settings:
        assert self.settings is not None, "checks that need settings are not made without"
        return self.settings

    @property
    def file(self) -> str:
        """The configuration's name, for a fix."""
        return str(self.path) if self.path is not None else CONFIG_FILE

    @cached_property
    def asked(self) -> tuple[Provider, ...]:
        return tuple(
            provider for provider in without_covered(self.loaded.providers.values()) if is_asked(provider)
        )

    @cached_property
    def answers(self) -> tuple[ProviderAnswer, ...]:
        """Requested once, for all checks that need them. None offline."""
        return () if self.offline else tuple(ask_providers(self.asked, clock=self.clock))

    @cached_property
    def loaded_models(self) -> tuple[LoadedModel, ...]:
        """The models that local servers have loaded. None offline, or of servers that do not answer."""
        there = {answered.provider for answered in self.answers if answered.outcome != "silent"}
        return tuple(loaded_models(provider for provider in self.asked if provider.name in there))

    @cached_property
    def store_file(self) -> FileLook | StoreDown | StoreUnusable | None:
        """The state of the store's file, or why that is unknown; None if the store is not a file, or does not
        exist yet."""
        scheme, _, rest = self.loaded.store.url.value.partition(":")
        path = Path(sqlite_path(rest))
        if scheme != "sqlite" or not path.exists():
            return None
        try:
            return look_at_file(path)
        except (StoreDown, StoreUnusable) as fault:
            return fault

    @property
    def client_keys(self) -> int:
        """Keys in the configuration and in the store's file."""
        seen = self.store_file
        return len(self.loaded.keys) + (seen.keys if isinstance(seen, FileLook) else 0)

    @cached_property
    def running(self) -> tuple[RunningGateway, ...]:
        return tuple(find_running(self.environ, tidy=False))

    @cached_property
    def redactor(self) -> Redactor:
        """Hides secrets in findings: these are shown to others who are to help."""
        names = {name for each in catalog.names() for name in catalog.provider(each).api_key_env}
        secrets = {self.environ.get(name, "").strip() for name in names}
        secrets |= {secret.value for secret in read_kept(kept_file(self.environ), []).values()}
        if self.settings is not None:
            secrets |= secrets_of(self.settings)
            store = self.settings.store
            secrets |= {_password(url.value) for url in (store.url, store.shared)}
        return Redactor(secrets - {""}, catalog.names())


def _password(url: str) -> str:
    try:
        return unquote(urlsplit(url).password or "")
    except ValueError:
        return ""


Grade = Literal["ok", "note", "warning", "problem"]
GRADES: Final[tuple[Grade, ...]] = ("problem", "warning", "note", "ok")
"""The worst first. A problem prevents something from working; a warning may some day; a note is
informative."""


class DoctorFinding(msgspec.Struct, frozen=True):
    """Neither `text` nor `fix` may contain a secret."""

    grade: Grade
    text: str
    fix: str = ""
    """A command, or a line of the configuration. Only an "ok" has none."""
    repair: Callable[[], None] | None = None
    """Applies the fix, if that is safe. Raises OSError if it fails."""
    fixed: bool = False


ok: Final = partial(DoctorFinding, "ok")
note: Final = partial(DoctorFinding, "note")
warning: Final = partial(DoctorFinding, "warning")
problem: Final = partial(DoctorFinding, "problem")
