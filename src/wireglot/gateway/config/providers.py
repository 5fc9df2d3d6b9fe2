"""[providers] -> the enabled providers: those of the file, and those whose keys are in the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from wireglot.gateway.config.logins import Surroundings, format_login, read_login
from wireglot.gateway.config.problems import Problems, key_path, kind, one_of, shown
from wireglot.gateway.config.provider_table import ProvidersTable, ProviderTable
from wireglot.gateway.config.references import References, fingerprint
from wireglot.gateway.config.table import Table, declared
from wireglot.gateway.config.urls import base_url, is_local, proxy_fault, split
from wireglot.gateway.settings import Credential, Provider, Secret
from wireglot.http.retry import RetryPolicy
from wireglot_core.dialects.registry import surface, surfaces
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.endpoints import variables_of
from wireglot_core.providers.limits import Limits, spelled_out
from wireglot_core.providers.spec import ModelSpec, ProviderSpec

SENDABLE: Final = re.compile(r"[\x21-\x7e]+")


def read_credentials(
    table: Table, spec: ProviderSpec | None, references: References, around: Surroundings
) -> tuple[Credential, ...]:
    one, several, login = table.raw("api_key"), table.raw("api_keys"), table.raw("login")
    if one is not None and several is not None:
        table.wrong("api_key", "either api_key or api_keys", "both")
    if login is not None:
        if one is not None or several is not None:
            table.wrong("login", "either login or api_key", "both")
        return read_login(table, spec, references, around)
    if one is not None:
        given = [(table.at("api_key"), one)]
    elif type(several) is list and several:
        given = [(f"{table.at('api_keys')}[{number}]", key) for number, key in enumerate(several)]
    elif several is not None:
        table.wrong("api_keys", declared(ProviderTable)["api_keys"].expected, kind(several))
        return ()
    else:
        return _usual_credentials(table, spec, references, around) if spec is not None else ()
    if spec is not None and spec.auth == "none":
        table.wrong("auth", "a way to send the key: bearer, x-api-key or x-goog-api-key", "none")
    read: dict[str, Credential] = {}
    for path, value in given:
        secret = references.secret(value, path)
        if secret is None:
            continue
        if not SENDABLE.fullmatch(secret.value):
            references.problems.add(path, "a key of ASCII characters without spaces", "another text")
        account = fingerprint(secret.value)
        if account in read:
            references.problems.add(path, "each key of the pool once", "a key that already exists")
        read[account] = Credential(secret, account)
    return tuple(read.values())


def secret_from_environment(spec: ProviderSpec, references: References) -> Secret | None:
    return references.variable(*spec.api_key_env)


def _usual_credentials(
    table: Table, spec: ProviderSpec, references: References, around: Surroundings
) -> tuple[Credential, ...]:
    """The key that the catalog finds in the environment, unless it would be sent to another host than the
    entry's; or the entry's login."""
    if spec.auth == "none":
        return ()
    moved = "base_url" in table or "base_urls" in table
    found = None if moved else secret_from_environment(spec, references)
    if found is None and spec.login and not moved:
        return read_login(table, spec, references, around)
    if found is None:
        named = " or ".join(spec.api_key_env)
        if moved and named:
            how = f'"env:{spec.api_key_env[0]}" to send that key to another host than the catalog\'s'
            login = f'login = "{spec.login["kind"]}", ' if spec.login else ""
            table.wrong("api_key", f'a key of this host, {how}, {login}or auth = "none"', "nothing")
        else:
            table.wrong("api_key", f"a key, or {named} in the environment" if named else "a key", "nothing")
        return ()
    return (Credential(found, fingerprint(found.value)),)


_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that the gateway sets itself."""
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]+")


def read_headers(
    table: Table, spec: ProviderSpec | None, references: References
) -> tuple[tuple[str, str], ...]:
    headers = dict(spec.headers) if spec is not None else {}
    for name, value in _named(table).items():
        path = key_path(table.at("headers"), name)
        secret = references.text(value, path)
        if secret is not None and not _HEADER_VALUE.fullmatch(secret.value):
            references.problems.add(path, "text of printable ASCII characters", kind(secret.value))
        elif secret is not None:
            headers = {other: kept for other, kept in headers.items() if other.lower() != name.lower()}
            headers[name] = secret.value
    return tuple(headers.items())


def may_be_set(name: str, value: str) -> bool:
    """Whether a configuration may set it."""
    return bool(_HEADER_NAME.fullmatch(name) and name.lower() not in _OURS and _HEADER_VALUE.fullmatch(value))


def _named(table: Table) -> dict[str, Any]:
    """Header names that may be set; the values are still references."""
    given = table.table("headers")
    for name in given.values:
        if not _HEADER_NAME.fullmatch(name):
            given.wrong(name, "the name of a header", "another text")
        elif name.lower() in _OURS:
            given.wrong(name, "a header that the gateway does not set itself", name.lower())
    return {name: value for name, value in given.values.items() if _HEADER_NAME.fullmatch(name)}


_SHORT: Final = ("project", "location")
"""Variables that a provider's own table may set, too."""
_PLACEHOLDER_VALUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")


def _regional(rule: dict[str, str], read: dict[str, str]) -> str | None:
    """A default derived from another variable; None if that one is missing, which is reported already."""
    by = read.get(rule["by"])
    return None if by is None else rule.get(by, rule["*"]).replace("{}", by)


def _from_catalog(value: str | None, references: References) -> tuple[str | None, str]:
    """A default of the catalog, from the first of its variables (`env:ONE|OTHER`) that is set; if none is,
    None and the name of the first."""
    if value is None or not value.startswith("env:"):
        return value, ""
    names = value.removeprefix("env:").split("|")
    found = next((name for name in names if references.environ.get(name, "").strip()), None)
    return (None, names[0]) if found is None else (f"env:{found}", "")


def read_variables(table: Table, spec: ProviderSpec | None, references: References) -> dict[str, str]:
    """Values of the placeholders in base URLs: the table's, else the catalog's, which may be `env:`
    references."""
    nested = table.table("variables")
    given: dict[str, tuple[str, Any]] = {
        name: (nested.at(name), value) for name, value in nested.values.items()
    }
    for name in _SHORT:
        value = table.raw(name)
        if value is not None:
            given[name] = (table.at(name), value)
    if spec is None:
        return {}
    wanted = dict.fromkeys(variables_of(spec))
    if "code-assist" in spec.dialects and "project" in given:
        wanted.setdefault("project")  # used in the body
    for name, (path, _) in given.items():
        if name not in wanted:
            expected = f"one of {', '.join(wanted)}" if wanted else "no variables: the base URL has none"
            references.problems.add(path, expected, shown(name))
    read: dict[str, str] = {}
    for name in sorted(wanted, key=lambda name: name in spec.regional):  # after the ones they derive from
        usual = table.at(name) if name in _SHORT else nested.at(name)
        path, value = given.get(name, (usual, spec.variables.get(name)))
        if value is None and name in spec.regional:
            value = _regional(spec.regional[name], read)
        unset = ""
        if name not in given:
            value, unset = _from_catalog(value, references)
        if value is None:
            instead = f", or {unset} in the environment" if unset else ""
            references.problems.add(path, f"a value for {{{name}}} in the base URL{instead}", "nothing")
            continue
        secret = references.text(value, path)
        if secret is not None and not _PLACEHOLDER_VALUE.fullmatch(secret.value):
            references.problems.add(path, "letters, digits, '.', '_', ':' and '-'", kind(secret.value))
        elif secret is not None:
            read[name] = secret.value
    return read


def upstream_dialects() -> tuple[str, ...]:
    """All dialects that a provider can speak, including those registered from outside."""
    return tuple(
        surface.name
        for surface in surfaces()
        if surface.upstream is not None and not surface.upstream.of_family
    )


def read_dialects(table: Table, start: ProviderSpec, *, known: bool) -> dict[str, Any]:
    """`dialects`, `base_url` and `base_urls` of a spec. `start` is the catalog's entry if it is `known`."""
    dialects = _dialects(table)
    others = _base_urls(table)
    url = base_url(table, "base_url", _checked_as(start, dialects, others))
    if known and "base_url" not in table:
        _refuse_strange(table, start, dialects, others)
    return _where(start, dialects, url, others)


def _dialects(table: Table) -> tuple[str, ...]:
    several: tuple[str, ...] = table.read(ProviderTable, "dialects")
    one: str = table.read(ProviderTable, "dialect")
    known = upstream_dialects()
    if one and several:
        table.wrong("dialect", "either dialect or dialects", "both")
    for field, spoken in (("dialect", (one,) if one else ()), ("dialects", several)):
        for dialect in spoken:
            if dialect not in known:
                table.wrong(field, one_of(known, dialect), shown(dialect))
    spoken = several or ((one,) if one else ())
    return tuple(dict.fromkeys(dialect for dialect in spoken if dialect in known))


def _base_urls(table: Table) -> dict[str, str]:
    urls = table.table("base_urls")
    known = upstream_dialects()
    for dialect in urls.values:
        if dialect not in known:
            urls.wrong(dialect, one_of(known, dialect), "another name")
    return {dialect: base_url(urls, dialect, dialect) for dialect in known if dialect in urls}


def _checked_as(start: ProviderSpec, dialects: tuple[str, ...], others: dict[str, str]) -> str:
    """The dialect whose convention a `base_url` must follow: one of the provider's dialects. If one of them
    is an OpenAI form, `/v1` is no mistake: the Anthropic form is used without it, or has another base."""
    known = dialects or tuple(dialect for dialect in start.dialects if dialect not in start.base_urls)
    living = [dialect for dialect in known if dialect not in others]
    return next((dialect for dialect in living if dialect != "anthropic"), living[0] if living else "")


def _refuse_strange(
    table: Table, entry: ProviderSpec, dialects: tuple[str, ...], others: dict[str, str]
) -> None:
    """A dialect that the entry does not speak needs a separate URL."""
    for dialect in dialects:
        if dialect not in entry.dialects and dialect not in others:
            field = "dialects" if "dialects" in table else "dialect"
            expected = f"{one_of(entry.dialects)}, or a base_url for another"
            table.wrong(field, expected, shown(dialect))


def _where(
    start: ProviderSpec, dialects: tuple[str, ...], url: str, others: dict[str, str]
) -> dict[str, Any]:
    """Dialects and URLs together. If `base_url` is set, nothing is sent to the entry's other hosts: dialects
    with a neighbouring URL (an Anthropic form without `/v1`) move with it; those on another host are off
    unless `base_urls` names their new URL, or `dialects` says that they are spoken here."""
    if not url:
        spoken = dialects or start.dialects
        return {"dialects": spoken, "base_urls": {**start.base_urls, **others}}
    moved: dict[str, str] = {}
    for dialect in dialects or start.dialects:
        beside = start.base_urls.get(dialect)
        along = dialect in dialects or beside is None or _root(start) == beside
        if dialect == "anthropic" and url.endswith("/v1") and along:
            moved[dialect] = url.removesuffix("/v1")
    spoken = dialects or tuple(
        dialect
        for dialect in start.dialects
        if dialect not in start.base_urls or dialect in moved or dialect in others
    )
    return {"dialects": spoken, "base_url": url, "base_urls": {**moved, **others}}


def _root(spec: ProviderSpec) -> str:
    return spec.base_url.removesuffix("/v1")


_LIMITS: Final = msgspec.structs.fields(Limits)
"""Computed once: it takes milliseconds, and is needed for each provider of each configuration."""
_USUAL_AUTH: Final = {
    "anthropic": "x-api-key",
    "gemini": "x-goog-api-key",
    "gemini-interactions": "x-goog-api-key",
}


def read_spec(name: str, table: Table) -> ProviderSpec | None:
    """None, with a problem noted, if its identity or dialect is unknown. Every field is read all the same:
    its problems are to be reported in the same run."""
    entry = _entry(name, table)
    start = entry or ProviderSpec(name=name, title=name, dialects=(), base_url="", auth="none")
    where = read_dialects(table, start, known=entry is not None)
    title = table.read(ProviderTable, "title", start.title)
    spec = msgspec.structs.replace(start, name=name, title=title, **where)
    spec = msgspec.structs.replace(spec, moved=entry is not None and spec.base_url != entry.base_url)
    spec = msgspec.structs.replace(
        spec,
        auth=table.read(ProviderTable, "auth", _auth(spec, table, entry is not None)),
        home=table.read(ProviderTable, "home", spec.home),
        streams=table.read(ProviderTable, "streams", spec.streams),
        websocket=_websocket(table, spec),
        counts=_counts(table, spec),
        limits={**spec.limits, **_limits(table)},
    )
    spec = msgspec.structs.replace(spec, models=_models(table, spec))
    return spec if entry is not None or _stands_alone(spec, table) else None


def _stands_alone(spec: ProviderSpec, table: Table) -> bool:
    """Whether a provider that is not in the catalog has all that is needed to call it."""
    if "catalog" in table:
        return False  # an unknown one, which is a problem already
    if not spec.dialects and not any(field in table for field in ("dialect", "dialects")):
        meant = one_of(catalog.names(), spec.name)
        table.problems.add(table.path, f"a catalog entry ({meant}), or dialect and base_url", "neither")
    elif not spec.base_url and "base_url" not in table:
        table.wrong("base_url", "the URL of the provider's API", "nothing")
    return bool(spec.dialects and spec.base_url)


def _entry(name: str, table: Table) -> ProviderSpec | None:
    wanted: str = table.read(ProviderTable, "catalog")
    if not wanted:
        return catalog.provider(name) if name in catalog.names() else None
    if wanted in catalog.names():
        return catalog.provider(wanted)
    table.wrong("catalog", one_of(catalog.names(), wanted), shown(wanted))
    return None


def _auth(spec: ProviderSpec, table: Table, known: bool) -> str:
    keyed = "api_key" in table or "api_keys" in table
    if known and (spec.auth != "none" or not keyed):
        return spec.auth
    spoken = spec.dialects[0] if spec.dialects else ""
    return _USUAL_AUTH.get(spoken, "bearer") if keyed else "none"


def _websocket(table: Table, spec: ProviderSpec) -> bool:
    """A host other than the entry's may not have it."""
    moved = "base_url" in table or "base_urls" in table
    given: bool = table.read(ProviderTable, "websocket", spec.websocket and not moved)
    if given and "websocket" in table and not any(surface(each).websockets for each in spec.dialects):
        table.wrong("websocket", "true only for a provider that speaks openai-responses", "true")
    return given


def _counts(table: Table, spec: ProviderSpec) -> tuple[str, ...]:
    given: tuple[str, ...] = table.read(ProviderTable, "counts")
    if "counts" not in table:
        return tuple(dialect for dialect in spec.counts if dialect in spec.dialects)
    for dialect in given:
        if dialect not in spec.dialects:
            table.wrong("counts", one_of(spec.dialects, dialect), shown(dialect))
    return given


def _limits(table: Table) -> dict[str, Any]:
    """Fields of `Limits`, as in a catalog file."""
    given = table.table("limits")
    read: dict[str, Any] = {}
    for field in _LIMITS:
        value = given.raw(field.name)
        if value is None:
            continue
        try:
            meant = spelled_out({field.name: value})[field.name]
            msgspec.convert(meant, field.type)
            read[field.name] = meant
        except msgspec.ValidationError as fault:
            given.wrong(field.name, str(fault).partition(",")[0].removeprefix("Expected "), shown(value))
    given.close()
    return read


def _models(table: Table, spec: ProviderSpec) -> tuple[ModelSpec, ...]:
    """`models` lists the served models: those names and no others, each with what the entry knows of it."""
    value = table.raw("models")
    if value is None:
        return spec.models
    if type(value) is not list or not value:
        table.wrong("models", declared(ProviderTable)["models"].expected, kind(value))
        return spec.models
    read: dict[str, ModelSpec] = {}
    for number, name in enumerate(value):
        path = key_path(table.path, "models") + f"[{number}]"
        if type(name) is not str or not name or not name.isprintable() or " " in name:
            table.problems.add(path, "the name of a model", shown(name))
        elif name in read:
            table.problems.add(path, "each name once", f"{shown(name)} again")
        else:
            read[name] = _resolved(spec, name)
    return tuple(read.values())


def _resolved(spec: ProviderSpec, name: str) -> ModelSpec:
    entries = [entry for entry in spec.models if entry.covers(name)]
    limits: dict[str, Any] = {}
    dialect_limits: dict[str, dict[str, Any]] = {}
    for entry in entries:
        limits.update(entry.limits)
        for dialect, only_there in entry.dialect_limits.items():
            dialect_limits[dialect] = {**dialect_limits.get(dialect, {}), **only_there}
    last = entries[-1] if entries else ModelSpec(match=name)
    dialects = tuple(dialect for dialect in last.dialects if dialect in spec.dialects)
    return msgspec.structs.replace(
        last,
        match=name,
        limits=limits,
        dialect_limits=dialect_limits,
        dialects=dialects,
        retired=False,
        successor="",
    )


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
    """All enabled providers, the file's first and in its order. `off`: receives those that only lack an unset
    variable, which is a problem without it."""
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
    """Providers in the order in which they get bare model names: the vendor before the resellers."""
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
    variables, proxy = read_variables(table, spec, references), read_proxy(table, references)
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
    keyed = format_keys(credentials) if credentials or spec.auth != "none" else "needs no key"
    notes.append(f"provider {spec.name} is on: {keyed}")
    for url in dict.fromkeys((spec.base_url, *spec.base_urls.values())):
        parts = split(url)
        if parts is not None and parts.scheme == "http" and not is_local(parts.hostname or ""):
            notes.append(f"provider {spec.name}: {parts.hostname} is called over http, without encryption")


def format_keys(credentials: tuple[Credential, ...]) -> str:
    """Where the keys of a provider come from, but never the keys."""
    logins = [format_login(credential.login) for credential in credentials if credential.login is not None]
    if logins:
        return ", ".join(logins)
    sources = ", ".join(dict.fromkeys(credential.secret.source for credential in credentials))
    return f"key from {sources}" if sources else "no key"


def _discovered(name: str, references: References, notes: list[str]) -> Provider | None:
    """A catalog entry whose key is in the environment. Missing values cause a note, not an error: it was not
    configured."""
    spec = catalog.provider(name)
    secret = secret_from_environment(spec, references)
    if secret is None or spec.auth == "none":
        return None
    if not SENDABLE.fullmatch(secret.value):
        notes.append(f"provider {name} is off: {secret.source} contains no valid key")
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


def read_proxy(table: Table, references: References) -> str:
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
