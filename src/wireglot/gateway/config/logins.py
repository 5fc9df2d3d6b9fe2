"""`login` of a provider: how to sign in to it instead of sending a key. Nothing is requested here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, assert_never, get_args

import msgspec

from wireglot.gateway.config import read
from wireglot.gateway.config.problems import kind, one_of, shown
from wireglot.gateway.config.provider_table import LoginTable
from wireglot.gateway.config.references import References, fingerprint
from wireglot.gateway.config.table import Table, declared
from wireglot.gateway.config.urls import EXPECTED as URL
from wireglot.gateway.config.urls import is_loopback, split
from wireglot.gateway.settings import Credential, Secret
from wireglot.logins.login import (
    EXTRAS,
    AwsLogin,
    EntraLogin,
    GoogleLogin,
    Login,
    LoginKind,
    kind_of,
    needs_extra,
)
from wireglot_core.extras import install_hint
from wireglot_core.providers.spec import ProviderSpec

_FIELDS: Final[dict[LoginKind, frozenset[str]]] = {
    "google": frozenset({"key_file", "scope"}),
    "entra": frozenset({"tenant", "client", "secret", "token_file", "authority", "metadata", "scope"}),
    "aws": frozenset({"access_key", "secret_key", "session_token", "profile", "region", "service"}),
}
_VARIABLES: Final = {
    "tenant": ("AZURE_TENANT_ID",),
    "client": ("AZURE_CLIENT_ID",),
    "secret": ("AZURE_CLIENT_SECRET",),
    "token_file": ("AZURE_FEDERATED_TOKEN_FILE",),
    "authority": ("AZURE_AUTHORITY_HOST",),
    "access_key": ("AWS_ACCESS_KEY_ID",),
    "secret_key": ("AWS_SECRET_ACCESS_KEY",),
    "session_token": ("AWS_SESSION_TOKEN",),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
}
"""The variables that the vendors' own tools use."""
_PUBLIC: Final = EntraLogin()
_AUTHORITIES: Final = frozenset(
    {
        "login.microsoftonline.com",
        "login.microsoftonline.us",
        "login.partner.microsoftonline.cn",
        "login.chinacloudapi.cn",
    }
)
"""Microsoft's clouds. https://learn.microsoft.com/entra/identity-platform/authentication-national-cloud"""
# Bytes of a file with a sign-in's secret.
_MAX_FILE_BYTES: Final = 64 * 1024


class Surroundings(NamedTuple):
    """Other fields of a provider's table that a login depends on."""

    variables: Mapping[str, str] = {}
    proxy: str = ""


def read_login(
    table: Table, spec: ProviderSpec | None, references: References, around: Surroundings
) -> tuple[Credential, ...]:
    """The only credential of a provider with a login; none, and a problem, if it is invalid."""
    fields = _Fields(table, spec, references)
    chosen = fields.kind()
    if chosen is None:
        return ()
    before = len(references.problems.found)
    login = fields.login(chosen, around)
    fields.close()
    if needs_extra(login) and not _is_installed(EXTRAS[chosen][0]):
        _, package, extra = EXTRAS[chosen]
        table.wrong("login", f"the package {package} ({install_hint(extra)})", "no such package")
    if len(references.problems.found) > before:
        return ()
    account = fingerprint(f"{chosen}:{msgspec.json.encode(login).decode()}")
    return (Credential(Secret(fields.file_secret, f"login:{chosen}"), account, login=login),)


def format_login(login: Login) -> str:
    """In words, without a secret."""
    named = f"signs in to {kind_of(login)}"
    match login:
        case GoogleLogin():
            file = Path(login.key_file).name
            return f"{named} with {file or 'application default credentials'}"
        case EntraLogin():
            who = f"{named} as {login.client or 'this machine'}"
            return f"{who} (managed identity)" if login.is_managed else who
        case AwsLogin():
            chain = f"the profile {login.profile}" if login.profile else "the credentials that botocore finds"
            return f"{named} with {'an access key' if login.is_static else chain}"
        case _ as never:
            assert_never(never)


class _Fields:
    """The table `login` (or its short form), with defaults from the entry and from the environment."""

    def __init__(self, table: Table, spec: ProviderSpec | None, references: References) -> None:
        value = table.raw("login")
        self._table = table
        self._short = value if type(value) is str else None
        self._inner = (
            table.table("login") if self._short is None else Table({}, table.at("login"), table.problems)
        )
        self._entry = spec.login if spec is not None else {}
        self._references = references
        self.file_secret = ""
        """The content of a file that a login names."""

    def kind(self) -> LoginKind | None:
        kinds: tuple[LoginKind, ...] = get_args(LoginKind)
        given = self._short if self._short is not None else self._inner.raw("kind")
        named = self._entry.get("kind") if given is None else given
        for known in kinds:
            if named == known:
                return known
        place = self._table.at("login") if self._short is not None else self._inner.at("kind")
        self._table.problems.add(place, one_of(kinds, named), "nothing" if named is None else shown(named))
        return None

    def login(self, chosen: LoginKind, around: Surroundings) -> Login:
        self._refuse_others(chosen)
        match chosen:
            case "google":
                return GoogleLogin(self._key_file(), self._text("scope") or GoogleLogin().scope, around.proxy)
            case "entra":
                return self._entra(around)
            case "aws":
                return self._aws(around)
            case _ as never:
                assert_never(never)

    def close(self) -> None:
        for name in declared(LoginTable):
            self._inner.raw(name)
        self._inner.close()

    def _refuse_others(self, chosen: LoginKind) -> None:
        for name in self._inner.values:
            if name in declared(LoginTable) and name != "kind" and name not in _FIELDS[chosen]:
                self._inner.wrong(
                    name, f"a field of the login {chosen}: {', '.join(sorted(_FIELDS[chosen]))}", name
                )

    def _entra(self, around: Surroundings) -> Login:
        login = EntraLogin(
            scope=self._text("scope") or _PUBLIC.scope,
            tenant=self._text("tenant"),
            client=self._text("client"),
            secret=self._text("secret"),
            token_file=self._place("token_file"),
            authority=self._url("authority") or _PUBLIC.authority,
            metadata=self._url("metadata") or _PUBLIC.metadata,
            proxy=around.proxy,
        )
        if "token_file" in self._inner and "secret" not in self._inner:
            login = msgspec.structs.replace(login, secret="")  # the environment's would override the file
        self._guard_authority(login)
        if not login.is_managed:
            for name, value in (("tenant", login.tenant), ("client", login.client)):
                if not value:
                    self._inner.wrong(name, f"{name}, or {_VARIABLES[name][0]} in the environment", "nothing")
        return login

    def _guard_authority(self, login: EntraLogin) -> None:
        """Secrets from the environment are only sent to Microsoft's authorities unless the table names
        another one. Nothing is sent there unencrypted."""
        parts = split(login.authority)
        if parts is None or not parts.hostname:
            return  # reported already
        host = parts.hostname
        if parts.scheme != "https" and not is_loopback(host):
            self._inner.wrong("authority", "a URL that starts with https://", "http://")
        if "authority" not in self._inner or login.is_managed or host in _AUTHORITIES:
            return
        sent = "secret" if login.secret else "token_file"
        if sent not in self._inner:
            expected = f'"env:{_VARIABLES[sent][0]}"' if sent == "secret" else "its path"
            self._inner.wrong(sent, f"{expected} to send it to another authority than Microsoft's", "nothing")

    def _aws(self, around: Surroundings) -> Login:
        named = "profile" in self._inner
        keys = [("" if named else self._text(name)) for name in ("access_key", "secret_key", "session_token")]
        region = self._text("region", around.variables.get("region", ""))
        login = AwsLogin(
            region,
            self._text("service") or "bedrock",
            access_key=keys[0],
            secret_key=keys[1],
            session_token=keys[2],
            profile=self._text("profile"),
        )
        if bool(keys[0]) != bool(keys[1]):
            lacking = "secret_key" if keys[0] else "access_key"
            self._inner.wrong(lacking, f"both parts of the key, or {_VARIABLES[lacking][0]}", "nothing")
        if not region and not any(problem.path.endswith(".region") for problem in self._table.problems.found):
            self._inner.wrong("region", "a region, or AWS_REGION in the environment", "nothing")
        return login

    def _text(self, name: str, usual: str = "") -> str:
        """The table's value, else `usual`, else the entry's, else the environment's."""
        given = self._inner.raw(name)
        if given is not None:
            read_as = (
                self._references.secret
                if declared(LoginTable)[name].type is Secret
                else self._references.text
            )
            found = read_as(given, self._inner.at(name))
            if found is not None and not (found.value.isascii() and found.value.isprintable()):
                self._table.problems.add(self._inner.at(name), "text of ASCII characters", kind(found.value))
            return found.value if found is not None else ""
        environ = self._references.environ
        variables = (environ.get(variable, "").strip() for variable in _VARIABLES.get(name, ()))
        return usual or self._entry.get(name, "") or next(filter(None, variables), "")

    def _url(self, name: str) -> str:
        text = self._text(name).rstrip("/")
        parts = split(text) if text else None
        if text and (parts is None or parts.scheme not in ("http", "https") or not parts.hostname):
            self._inner.wrong(name, URL, "another text")
        return text

    def _place(self, name: str) -> str:
        text = self._text(name)
        return str(read.place(text, self._references.base)) if text else ""

    def _key_file(self) -> str:
        name = self._text("key_file")
        if not name:
            return ""
        place = read.place(name, self._references.base)
        try:
            with place.open("rb") as file:
                content = file.read(_MAX_FILE_BYTES)
            document: Any = msgspec.json.decode(content)
            if not isinstance(document, dict) or document.get("type") != "service_account":
                raise ValueError
        except OSError as fault:
            self._inner.wrong(
                "key_file", f"the file of a service account at {place}", fault.strerror or "an error"
            )
            return ""
        except ValueError:  # of msgspec, too
            other = "something else (other credentials: GOOGLE_APPLICATION_CREDENTIALS names them)"
            self._inner.wrong("key_file", f"the key of a service account in {place}, as JSON", other)
            return ""
        self._references.warn_if_open(place, place.stat().st_mode)
        self.file_secret = content.decode("utf-8", "replace")
        return str(place)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent package
        return False
