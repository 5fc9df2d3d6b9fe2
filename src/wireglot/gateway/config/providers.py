"""[providers] -> the providers that are on: those of the file, and those whose keys the environment has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from wireglot.gateway.config.credentials import (
    SENDABLE,
    read_credentials,
    secret_from_environment,
)
from wireglot.gateway.config.declared import declared
from wireglot.gateway.config.fingerprints import fingerprint
from wireglot.gateway.config.headers import read_headers
from wireglot.gateway.config.logins import Surroundings, told_login
from wireglot.gateway.config.placeholders import read_variables
from wireglot.gateway.config.problems import Problems, key_path, kind, one_of, shown
from wireglot.gateway.config.provider_table import ProvidersTable
from wireglot.gateway.config.references import References
from wireglot.gateway.config.specs import read_spec
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import is_local, proxy_fault, split
from wireglot.gateway.settings import Credential, Provider
from wireglot.http.retry import RetryPolicy
from wireglot.providers import spec as catalog
from wireglot.providers.spec import ProviderSpec

DEMO: Final = "demo"
RETRIES: Final = {
    "default": RetryPolicy(),
    "fixed-100ms": RetryPolicy(retries=3, schedule=(0.1, 0.2, 0.4), connection_errors=False),
}
_DISCOVER: Final = declared(ProvidersTable)["discover"]
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_UNKNOWN: Final = ProviderSpec(name="", title="", dialects=(), base_url="")


class Unset(NamedTuple):
    """A provider that is off because a variable is not set."""

    provider: Provider
    variable: str


def read_providers(
    value: object, references: References, notes: list[str], off: dict[str, Unset] | None = None
) -> dict[str, Provider]:
    """All that are on, the file's first and in its order. `off`: takes those that lack nothing but a variable
    that is not set, which is a problem without it."""
    problems = references.problems
    if not isinstance(value, Mapping):
        problems.add("providers", "a table", kind(value))
        value = {}
    discover = value.get(_DISCOVER.name, _DISCOVER.default)
    if type(discover) is not bool:
        problems.add(key_path("providers", _DISCOVER.name), "true or false", kind(discover))
    on: dict[str, Provider] = {}
    for name, fields in value.items():
        if name == _DISCOVER.name:
            continue
        before = len(problems.found)
        provider = _read_one(name, fields, references, notes)
        lacking = range(before, len(problems.found))
        if off is not None and lacking and all(each in references.unset for each in lacking):
            assert provider is not None, "what is unset is a value, and no part of what it is"
            off[name] = Unset(provider, references.unset[before])
            notes.append(f"provider {name} is off: {off[name].variable} is not set")
            for each in lacking:
                del references.unset[each]
            del problems.found[before:]
        elif provider is not None:
            on[name] = provider
    if discover is not False:
        for name in _by_home():
            if name not in value:
                found = _discovered(name, references, notes)
                if found is not None:
                    on[name] = found
    return on


def demo() -> Provider:
    return Provider(DEMO, catalog.provider(DEMO))


def _by_home() -> list[str]:
    """A bare model name goes to the first provider that knows it: the vendor before the resellers."""
    return sorted(catalog.names(), key=lambda name: (not catalog.provider(name).home, name))


def _read_one(name: str, fields: object, references: References, notes: list[str]) -> Provider | None:
    problems = references.problems
    path = key_path("providers", name)
    if not _NAME.fullmatch(name):
        problems.add(path, "a name of letters, digits, '.', '_' and '-'", shown(name))
    if not isinstance(fields, Mapping):
        problems.add(path, "a table", kind(fields))
        return None
    table = Table(fields, path, problems)
    before = len(problems.found)
    spec = read_spec(name, table)
    variables, proxy = read_variables(table, spec, references), _proxy(table, references)
    provider = table.over(
        Provider(name, spec or _UNKNOWN),
        credentials=read_credentials(table, spec, references, Surroundings(variables, proxy)),
        variables=variables,
        headers=read_headers(table, spec, references),
        retry=_retry(table),
        proxy=proxy,
    )
    table.close()
    if spec is None:
        return None
    if before == len(problems.found):
        _remark(spec, provider.credentials, notes)
    return provider


def _remark(spec: ProviderSpec, credentials: tuple[Credential, ...], notes: list[str]) -> None:
    notes.append(f"provider {spec.name} is on: {told_keys(credentials)}")
    for url in dict.fromkeys((spec.base_url, *spec.base_urls.values())):
        parts = split(url)
        if parts is not None and parts.scheme == "http" and not is_local(parts.hostname or ""):
            notes.append(
                f"provider {spec.name}: {parts.hostname} is reached over http, which anyone can read"
            )


def told_keys(credentials: tuple[Credential, ...]) -> str:
    """Where the keys of a provider come from, and never the keys."""
    logins = [told_login(credential.login) for credential in credentials if credential.login is not None]
    if logins:
        return ", ".join(logins)
    sources = ", ".join(dict.fromkeys(credential.secret.source for credential in credentials))
    return f"key from {sources}" if sources else "no key"


def _discovered(name: str, references: References, notes: list[str]) -> Provider | None:
    """A catalog entry whose key is in the environment. What it lacks is a note: nobody asked for it."""
    spec = catalog.provider(name)
    secret = secret_from_environment(spec, references)
    if secret is None or spec.auth == "none":
        return None
    if not SENDABLE.fullmatch(secret.value):
        notes.append(f"provider {name} is off: {secret.source} holds no key that could be sent")
        return None
    aside = References(references.environ, references.base, Problems(), notes, kept=references.kept)
    variables = read_variables(Table({}, key_path("providers", name), aside.problems), spec, aside)
    if aside.problems.found:
        lacking = "; ".join(problem.expected for problem in aside.problems.found)
        notes.append(f"provider {name} is off: its key is in {secret.source}, but it lacks {lacking}")
        return None
    credential = Credential(secret, fingerprint(secret.value))
    headers = tuple(spec.headers.items())
    _remark(spec, (credential,), notes)
    return Provider(name, spec, (credential,), headers=headers, variables=variables)


def _retry(table: Table) -> RetryPolicy:
    value = table.raw("retry")
    if type(value) is not str:
        policy: RetryPolicy = table.read(Provider, "retry")
        return policy
    if value not in RETRIES:
        table.wrong("retry", one_of(RETRIES, value), shown(value))
    return RETRIES.get(value, RetryPolicy())


def _proxy(table: Table, references: References) -> str:
    value = table.raw("proxy")
    if value is None:
        return ""
    secret = references.text(value, table.at("proxy"))
    if secret is None:
        return ""
    fault = proxy_fault(secret.value)
    if fault is not None:
        table.wrong("proxy", *fault)
    return secret.value
