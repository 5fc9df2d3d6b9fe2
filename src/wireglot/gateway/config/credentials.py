"""The keys of a provider: those of its table, or the one that the catalog finds in the environment."""

from __future__ import annotations

import re
from typing import Final

from wireglot.gateway.config.declared import declared
from wireglot.gateway.config.fingerprints import fingerprint
from wireglot.gateway.config.logins import Surroundings, read_login
from wireglot.gateway.config.problems import kind
from wireglot.gateway.config.provider_table import ProviderTable
from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table
from wireglot.gateway.settings import Credential, Secret
from wireglot.providers.spec import ProviderSpec

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
            references.problems.add(path, "each key of the pool once", "a key that is there already")
        read[account] = Credential(secret, account)
    return tuple(read.values())


def secret_from_environment(spec: ProviderSpec, references: References) -> Secret | None:
    return references.variable(*spec.api_key_env)


def _usual_credentials(
    table: Table, spec: ProviderSpec, references: References, around: Surroundings
) -> tuple[Credential, ...]:
    """The key that the catalog finds in the environment, unless it would reach another host than its own; or
    the entry's login."""
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
