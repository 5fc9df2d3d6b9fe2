"""What there is to ask: keys in the environment and kept ones, servers on this machine, logins of clouds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from wireglot.cli.ask_providers import Answered, is_asked
from wireglot.cli.found_keys import Lacking, lacking, without_covered
from wireglot.gateway import config
from wireglot.gateway.config.kept_keys import kept_file, read_kept
from wireglot.gateway.config.providers import DEMO
from wireglot.gateway.settings import Provider
from wireglot.providers import spec as catalog
from wireglot.providers.spec import ProviderSpec

_OURS: Final = "WIREGLOT_"
_LOGIN_SIGNS: Final = {
    "aws": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
    "entra": ("AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"),
    "google": ("GOOGLE_APPLICATION_CREDENTIALS",),
}
"""Variables that say that somebody may sign in; most are there for other things."""


class Candidate(msgspec.Struct, frozen=True):
    """A provider that may be on."""

    provider: Provider
    variable: str = ""
    """Of its key; "" for a server on this machine."""
    kept: bool = False
    """Its key is no variable of the environment, but was kept."""
    answered: Answered | None = None
    """None: it was not asked."""

    @property
    def name(self) -> str:
        return self.provider.name

    @property
    def is_local(self) -> bool:
        return not self.variable

    @property
    def is_written(self) -> bool:
        """Whether the configuration turns it on: not with a key that was refused, nor a server that is not
        there. A host that cannot be reached now may be tomorrow."""
        if self.answered is None:
            return not self.is_local
        if self.is_local:
            return self.answered.is_on
        return self.answered.outcome != "refused"


class Found(msgspec.Struct, frozen=True):
    candidates: tuple[Candidate, ...]
    lacking: tuple[Lacking, ...] = ()
    logins: tuple[tuple[str, str], ...] = ()
    """Providers that could be signed in to, and the variable that says so."""
    others: int = 0
    """Providers of the catalog that nothing here speaks of."""


def provider_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Without what says how a gateway is to run: that is no matter of a file yet to be written."""
    return {name: value for name, value in environ.items() if not name.startswith(_OURS)}


def find_candidates(environ: Mapping[str, str]) -> Found:
    """Nobody is asked. Raises ConfigError."""
    environ = provider_environment(environ)
    local: dict[str, dict[str, str]] = {
        name: {} for name in catalog.names() if _is_local(catalog.provider(name))
    }
    settings = config.load(None, environ=environ, overrides={"providers": local}, create_secret=False)
    kept = read_kept(kept_file(environ), [])
    on = {name: provider for name, provider in settings.providers.items() if is_asked(provider)}
    candidates = [_candidate(provider, environ, kept) for provider in without_covered(on.values())]
    lack = tuple(lacking(settings.notes))
    logins = tuple(_logins(environ, {*on, *(each.provider for each in lack)}))
    spoken_of = {*on, DEMO, *(each.provider for each in lack), *(name for name, _ in logins)}
    return Found(
        tuple(sorted(candidates, key=lambda each: each.is_local)),
        lack,
        logins,
        sum(name not in spoken_of for name in catalog.names()),
    )


def _is_local(spec: ProviderSpec) -> bool:
    return spec.auth == "none" and spec.base_url.startswith("http:")


def _candidate(provider: Provider, environ: Mapping[str, str], kept: Mapping[str, object]) -> Candidate:
    names = provider.spec.api_key_env if provider.credentials else ()
    present = next((name for name in names if environ.get(name, "").strip()), "")
    variable = present or next((name for name in names if name in kept), "")
    return Candidate(provider, variable, kept=bool(variable) and not present)


def _logins(environ: Mapping[str, str], known: set[str]) -> Iterator[tuple[str, str]]:
    for name in catalog.names():
        spec = catalog.provider(name)
        if name in known or not spec.login:
            continue
        signs = _LOGIN_SIGNS.get(spec.login["kind"], ())
        sign = next((each for each in signs if environ.get(each, "").strip()), "")
        if sign:
            yield name, sign
