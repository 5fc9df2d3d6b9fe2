"""[providers] -> the providers that are on: those of the file, and those whose keys the environment has."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from wireglot.gateway.config.problems import Problems, key_path, kind, shown
from wireglot.gateway.config.references import References
from wireglot.gateway.config.specs import read_headers, read_spec
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import is_local, proxy_fault, split
from wireglot.gateway.settings import BreakerPolicy, Credential, Provider, Secret
from wireglot.http.retry import RetryPolicy
from wireglot.http.transport import Timeouts
from wireglot.providers import spec as catalog
from wireglot.providers.endpoints import placeholders
from wireglot.providers.spec import ProviderSpec

DEMO: Final = "demo"
LOSSES: Final = ("strict", "warn", "silent")
RETRIES: Final = {
    "default": RetryPolicy(),
    "fixed-100ms": RetryPolicy(retries=3, schedule=(0.1, 0.2, 0.4), connection_errors=False),
}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_SENDABLE: Final = re.compile(r"[\x21-\x7e]+")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]+")


def read_providers(value: object, references: References, notes: list[str]) -> dict[str, Provider]:
    """All that are on, the file's first and in its order."""
    problems = references.problems
    if not isinstance(value, Mapping):
        problems.add("providers", "a table", kind(value))
        value = {}
    discover = value.get("discover", True)
    if type(discover) is not bool:
        problems.add("providers.discover", "true or false", kind(discover))
    on: dict[str, Provider] = {}
    for name, fields in value.items():
        if name == "discover":
            continue
        provider = _read_one(name, fields, references, notes)
        if provider is not None:
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


def fingerprint(key: str) -> str:
    return hashlib.sha256(f"wireglot-account:{key}".encode()).hexdigest()[:10]


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
    credentials = _credentials(table, spec, references)
    variables = _variables(table, spec, references)
    headers = _headers(table, spec, references)
    rest: dict[str, Any] = {
        "timeouts": table.struct("timeouts", Timeouts()),
        "retry": _retry(table),
        "breaker": table.struct("breaker", BreakerPolicy()),
        "concurrency": table.whole("concurrency", 0),
        "losses": table.choice("losses", LOSSES, None),
        "proxy": _proxy(table, references),
    }
    table.close()
    if spec is None:
        return None
    if before == len(problems.found):
        _remark(spec, credentials, notes)
    return Provider(name, spec, credentials, headers=headers, variables=variables, **rest)


def _remark(spec: ProviderSpec, credentials: tuple[Credential, ...], notes: list[str]) -> None:
    sources = ", ".join(dict.fromkeys(credential.secret.source for credential in credentials))
    key = f"key from {sources}" if sources else "no key"
    notes.append(f"provider {spec.name} is on: {key}")
    for url in dict.fromkeys((spec.base_url, *spec.base_urls.values())):
        parts = split(url)
        if parts is not None and parts.scheme == "http" and not is_local(parts.hostname or ""):
            notes.append(
                f"provider {spec.name}: {parts.hostname} is reached over http, which anyone can read"
            )


def _credentials(table: Table, spec: ProviderSpec | None, references: References) -> tuple[Credential, ...]:
    one, several = table.raw("api_key"), table.raw("api_keys")
    if one is not None and several is not None:
        table.wrong("api_key", "either api_key or api_keys", "both")
    if one is not None:
        given = [(table.at("api_key"), one)]
    elif type(several) is list and several:
        given = [(f"{table.at('api_keys')}[{number}]", key) for number, key in enumerate(several)]
    elif several is not None:
        table.wrong("api_keys", "a list of keys", kind(several))
        return ()
    else:
        return _usual_credentials(table, spec, references) if spec is not None else ()
    if spec is not None and spec.auth == "none":
        table.wrong("auth", "a way to send the key: bearer, x-api-key or x-goog-api-key", "none")
    read: dict[str, Credential] = {}
    for path, value in given:
        secret = references.secret(value, path)
        if secret is None:
            continue
        if not _SENDABLE.fullmatch(secret.value):
            references.problems.add(path, "a key of ASCII characters without spaces", "another text")
        account = fingerprint(secret.value)
        if account in read:
            references.problems.add(path, "each key of the pool once", "a key that is there already")
        read[account] = Credential(secret, account)
    return tuple(read.values())


def _usual_credentials(table: Table, spec: ProviderSpec, references: References) -> tuple[Credential, ...]:
    """The key that the catalog finds in the environment, unless it would reach another host than its own."""
    if spec.auth == "none":
        return ()
    moved = "base_url" in table or "base_urls" in table
    found = None if moved else _from_environment(spec, references)
    if found is None:
        named = " or ".join(spec.api_key_env)
        if moved and named:
            how = f'"env:{spec.api_key_env[0]}" to send that key to another host than the catalog\'s'
            table.wrong("api_key", f'a key of this host, {how}, or auth = "none"', "nothing")
        else:
            table.wrong("api_key", f"a key, or {named} in the environment" if named else "a key", "nothing")
        return ()
    return (Credential(found, fingerprint(found.value)),)


def _from_environment(spec: ProviderSpec, references: References) -> Secret | None:
    for variable in spec.api_key_env:
        value = references.environ.get(variable, "").strip()
        if value:
            return Secret(value, f"env:{variable}")
    return None


def _discovered(name: str, references: References, notes: list[str]) -> Provider | None:
    """A catalog entry whose key is in the environment. What it lacks is a note: nobody asked for it."""
    spec = catalog.provider(name)
    secret = _from_environment(spec, references)
    if secret is None or spec.auth == "none":
        return None
    if not _SENDABLE.fullmatch(secret.value):
        notes.append(f"provider {name} is off: {secret.source} holds no key that could be sent")
        return None
    aside = References(references.environ, references.base, Problems(), notes)
    variables = _variables(Table({}, key_path("providers", name), aside.problems), spec, aside)
    if aside.problems.found:
        lacking = "; ".join(problem.expected for problem in aside.problems.found)
        notes.append(f"provider {name} is off: its key is in {secret.source}, but it lacks {lacking}")
        return None
    credential = Credential(secret, fingerprint(secret.value))
    headers = tuple(spec.headers.items())
    _remark(spec, (credential,), notes)
    return Provider(name, spec, (credential,), headers=headers, variables=variables)


def _variables(table: Table, spec: ProviderSpec | None, references: References) -> dict[str, str]:
    """Values of the placeholders in base URLs: the table's, else the catalog's, which may be `env:` ones."""
    nested = table.table("variables")
    given: dict[str, tuple[str, Any]] = {
        name: (nested.at(name), value) for name, value in nested.values.items()
    }
    for name in ("project", "location"):
        value = table.raw(name)
        if value is not None:
            given[name] = (table.at(name), value)
    if spec is None:
        return {}
    wanted = dict.fromkeys(
        name for url in (spec.base_url, *spec.base_urls.values()) for name in placeholders(url)
    )
    if "code-assist" in spec.dialects and "project" in given:
        wanted.setdefault("project")  # it goes into the body
    for name, (path, _) in given.items():
        if name not in wanted:
            expected = f"one of {', '.join(wanted)}" if wanted else "no variables: the base URL has none"
            references.problems.add(path, expected, shown(name))
    read: dict[str, str] = {}
    for name in wanted:
        path, value = given.get(name, (table.at(name), spec.variables.get(name)))
        if value is None:
            references.problems.add(path, f"a value for {{{name}}} in the base URL", "nothing")
            continue
        secret = references.text(value, path)
        if secret is not None and not _VARIABLE.fullmatch(secret.value):
            references.problems.add(path, "letters, digits, '.', '_', ':' and '-'", kind(secret.value))
        elif secret is not None:
            read[name] = secret.value
    return read


def _headers(table: Table, spec: ProviderSpec | None, references: References) -> tuple[tuple[str, str], ...]:
    headers = dict(spec.headers) if spec is not None else {}
    for name, value in read_headers(table).items():
        path = key_path(table.at("headers"), name)
        secret = references.text(value, path)
        if secret is not None and not _HEADER_VALUE.fullmatch(secret.value):
            references.problems.add(path, "text of printable ASCII characters", kind(secret.value))
        elif secret is not None:
            headers = {other: kept for other, kept in headers.items() if other.lower() != name.lower()}
            headers[name] = secret.value
    return tuple(headers.items())


def _retry(table: Table) -> RetryPolicy:
    value = table.raw("retry")
    if type(value) is not str:
        return table.struct("retry", RetryPolicy())
    return RETRIES[table.choice("retry", RETRIES, "default")]


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
