"""Where the key of each provider comes from, and the variable under which one would be kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from wireglot.gateway.config.kept_keys import kept_file, kept_places, read_kept
from wireglot.gateway.settings import Provider, Settings
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.spec import ProviderSpec

KeyState = Literal["environment", "file", "keyring", "configuration", "login", "unneeded", "missing"]
"""environment: a variable. file, keyring: it was kept there. configuration: `wireglot.toml` contains it or
names a file. login: the provider has a login. unneeded: it needs none."""
INSTEAD: Final = {
    "google": "`gcloud auth application-default login`, or a service account's key_file",
    "entra": "a managed identity, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET",
    "aws": "`aws configure` or `aws sso login`, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}
"""How to sign in to a cloud, by the kind of its login."""


class ProviderKey(msgspec.Struct, frozen=True):
    provider: str
    title: str
    state: KeyState
    variables: tuple[str, ...] = ()
    """Variables that may contain its key; none: it can have no key."""
    variable: str = ""
    """The variable that contains its key."""
    kept: str = ""
    """The variable under which a key is kept for it, in effect or not."""
    instead: str = ""
    """How to sign in to it without a key."""

    @property
    def keeps_as(self) -> str:
        """The variable under which to keep a key."""
        return self.kept or next(iter(self.variables), "")

    def trying(self, key: str) -> dict[str, str]:
        """Variables of an environment in which it has this key."""
        return {**dict.fromkeys(self.variables, ""), self.keeps_as: key}

    @property
    def is_shadowed(self) -> bool:
        """Whether a key is kept but not used, since the environment has another."""
        return bool(self.kept) and self.state == "environment"


def provider_keys(settings: Settings, environ: Mapping[str, str]) -> dict[str, ProviderKey]:
    """For all providers of the catalog and of the configuration, those that are on first."""
    place = kept_file(environ)
    places = kept_places(place, [])
    names = dict.fromkeys((*settings.providers, *settings.off, *catalog.names()))
    return {name: _provider_key(name, settings, environ, place, places) for name in names}


def _provider_key(
    name: str,
    settings: Settings,
    environ: Mapping[str, str],
    place: Path | None,
    places: Mapping[str, Literal["file", "keyring"]],
) -> ProviderKey:
    provider = settings.providers.get(name)
    spec = provider.spec if provider is not None else _known(name)
    known = spec.api_key_env if spec is not None else ()
    stated = _stated_variables(provider, environ, place) if provider is not None else ()
    if name in settings.off:
        stated = (settings.off[name],)
    variables = tuple(dict.fromkeys((*stated, *known)))
    set_to = next((each for each in variables if environ.get(each, "").strip()), "")
    kept = next((each for each in variables if each in places), "")
    source: KeyState = "environment" if set_to else places[kept] if kept else "missing"
    return ProviderKey(
        name,
        spec.title if spec is not None else name,
        _state(provider, spec, source),
        variables=variables,
        variable=set_to or kept,
        kept=kept,
        instead=INSTEAD.get(str(spec.login.get("kind")), "") if spec is not None and spec.login else "",
    )


def _state(provider: Provider | None, spec: ProviderSpec | None, source: KeyState) -> KeyState:
    """`source`: of its key."""
    if provider is not None and provider.credentials:
        if any(credential.login is not None for credential in provider.credentials):
            return "login"
        sources = {credential.secret.source for credential in provider.credentials}
        if source == "missing" or sources == {"config"}:
            return "configuration"
    elif spec is not None and spec.auth == "none":
        return "unneeded"
    return source


def _known(name: str) -> ProviderSpec | None:
    return catalog.provider(name) if name in catalog.names() else None


def _stated_variables(provider: Provider, environ: Mapping[str, str], place: Path | None) -> tuple[str, ...]:
    """The variables that its keys come from now."""
    found = []
    for credential in provider.credentials:
        scheme, _, name = credential.secret.source.partition(":")
        if scheme in ("env", "keyring"):
            found.append(name)
        elif place is not None and credential.secret.source == f"file:{place}":
            found += _named_so(credential.secret.value, place)
    return tuple(found)


def _named_so(value: str, place: Path) -> Iterable[str]:
    return (name for name, secret in read_kept(place, []).items() if secret.value == value)
