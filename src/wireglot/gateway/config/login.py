"""[login]: who may sign in to the gateway, and how."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final, get_args
from urllib.parse import urlsplit

import msgspec

from wireglot.gateway.config.problems import kind, meant, one_of, shown
from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table
from wireglot.gateway.config.urls import is_loopback, split
from wireglot.gateway.settings import Approval, Group, LoginSettings, Secret, ServerSettings
from wireglot_core.extras import install_hint

# Characters of the notice on the sign-in page.
MAX_NOTICE: Final = 500
_OPENID: Final = "openid"
_URL: Final = "a URL that starts with https:// (http:// for this machine only)"


def read_login(
    value: object, groups: Mapping[str, Group], server: ServerSettings, references: References
) -> LoginSettings | None:
    """None: signing in is off."""
    if value is None:
        return None
    problems = references.problems
    if not isinstance(value, Mapping):
        problems.add("login", "a table", kind(value))
        return None
    table = Table(value, "login", problems)
    login = table.over(
        LoginSettings(),
        approval=_approval(table),
        public_url=_url(table, "public_url", path_allowed=False),
        issuer=_url(table, "issuer", path_allowed=True),
        client_secret=_secret(table, references),
        groups=_groups(table, groups),
    )
    table.close()
    if login.default_group and login.default_group not in groups:
        expected = f"a group of [groups]{meant(login.default_group, groups)}"
        table.wrong("default_group", expected, shown(login.default_group))
    if len(login.notice) > MAX_NOTICE or not login.notice.isprintable():
        table.wrong("notice", f"at most {MAX_NOTICE} printable characters", kind(login.notice))
    if not login.public_url and not is_loopback(server.host):
        table.wrong(
            "public_url", "the address of this gateway, because it listens on a non-loopback address", "none"
        )
    if "admin" in login.approval and not server.admin_secret.value:
        table.wrong("approval", "server.admin_secret to be set, for the admin to sign people in", "none")
    if "oidc" in login.approval:
        _check_provider(table, login)
    return msgspec.structs.replace(
        login, allowed_domains=tuple(domain.lower().removeprefix("@") for domain in login.allowed_domains)
    )


def login_notes(login: LoginSettings | None, server: ServerSettings, keys: int) -> list[str]:
    if login is not None and not keys and not server.require_key:
        return [
            "[login] is off until clients need a key: set server.require_key, or make the first key with "
            "`wireglot keys create`"
        ]
    return []


def with_public_host(server: ServerSettings, login: LoginSettings | None) -> ServerSettings:
    """The server with the host of `public_url` added to its allowed hosts."""
    host = (urlsplit(login.public_url).hostname or "") if login is not None else ""
    if not host or host in server.hosts or is_loopback(host):
        return server
    return msgspec.structs.replace(server, hosts=(*server.hosts, host))


def _check_provider(table: Table, login: LoginSettings) -> None:
    for name in ("issuer", "client_id"):
        if not getattr(login, name) and not (name in table and table.values[name]):
            table.wrong(name, "a value of the identity provider, for approval by oidc", "none")
    if _OPENID not in login.scopes:
        table.wrong("scopes", "a list with openid", "one without it")
    if find_spec("jwt") is None:
        table.wrong("issuer", f"the package PyJWT: {install_hint('login')}", "none")


def _approval(table: Table) -> tuple[Approval, ...]:
    value = table.raw("approval")
    if value is None:
        return ("oidc",) if table.values.get("issuer") else ("key",)
    ways: Any = [value] if type(value) is str else value
    known = get_args(Approval)
    if type(ways) is not list or not ways or any(way not in known for way in ways):
        wrong = next((way for way in ways if way not in known), value) if type(ways) is list else value
        table.wrong("approval", f"one of these or a list of them: {one_of(known, wrong)}", shown(wrong))
        return LoginSettings().approval
    return tuple(dict.fromkeys(ways))


def _groups(table: Table, groups: Mapping[str, Group]) -> dict[str, str]:
    inner = table.table("groups")
    found: dict[str, str] = {}
    for claim, name in inner.values.items():
        if type(name) is not str or name not in groups:
            hint = meant(name, groups) if type(name) is str else ""
            inner.wrong(claim, f"a group of [groups]{hint}", shown(name))
        else:
            found[claim] = name
    return found


def _secret(table: Table, references: References) -> Secret:
    value = table.raw("client_secret")
    none = LoginSettings().client_secret
    return none if value is None else references.secret(value, table.at("client_secret")) or none


def _url(table: Table, name: str, *, path_allowed: bool) -> str:
    """A plain https URL, without a trailing slash unless the path has one; "" if it is invalid."""
    text = table.raw(name)
    if text is None or text == "":
        return ""
    parts = split(text) if type(text) is str else None
    if parts is None or not parts.hostname or parts.scheme not in ("http", "https"):
        table.wrong(name, _URL, shown(text))
    elif parts.scheme == "http" and not is_loopback(parts.hostname):
        table.wrong(name, _URL, "one with http://")
    elif "@" in parts.netloc or parts.query or parts.fragment or not text.isprintable() or " " in text:
        table.wrong(name, "a URL without user name, query or fragment", "one with them")
    elif parts.path.strip("/") and not path_allowed:
        table.wrong(name, "a URL without a path", f"the path {shown(parts.path)}")
    else:
        return str(text) if path_allowed else f"{parts.scheme}://{parts.netloc.lower()}"
    return ""
