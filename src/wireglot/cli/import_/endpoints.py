"""Maps an address of a provider to its catalog entry, or to a separate base URL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

import msgspec

from wireglot.gateway.config.problems import shown
from wireglot.gateway.config.urls import is_local, is_loopback, split
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.spec import ProviderSpec

_HOST: Final = re.compile(r"[A-Za-z0-9.:_-]+")
_SLASHES: Final = r"((?<!/)/++)?$"
"""Tried only at the first of several."""
_ENDINGS: Final = {
    "anthropic": re.compile(r"(/v1)?(/messages)?" + _SLASHES),
    "openai-chat": re.compile(r"(/chat(/completions)?)?" + _SLASHES),
    "openai-responses": re.compile(r"(/responses)?" + _SLASHES),
    "gemini": re.compile(r"(/models)?" + _SLASHES),
}
"""Paths that others write after the base URL."""
_OTHER_ENDPOINT: Final = re.compile(r"/(chat/completions|responses|messages|models|v1internal:?\w*)$")
_SAME_VENDOR: Final = {
    "dashscope.aliyuncs.com": "qwen",
    "open.bigmodel.cn": "zai",
    "api.minimaxi.com": "minimax",
    "api.minimax.chat": "minimax",
}
"""Hosts of a vendor in other regions than the catalog's, with the same API."""


class ProviderPlace(msgspec.Struct, frozen=True):
    """The address of a provider. `base_url` is "" if it is the entry's own; `catalog` if there is no
    entry."""

    dialect: str
    catalog: str = ""
    base_url: str = ""

    def fields(self) -> dict[str, Any]:
        """In the form of a table of [providers]."""
        if self.catalog and not self.base_url:
            return {"catalog": self.catalog}
        if self.catalog:
            entry = catalog.provider(self.catalog)
            pinned = {} if entry.dialects[0] == self.dialect else {"dialect": self.dialect}
            return {"catalog": self.catalog, **pinned, "base_url": self.base_url}
        return {"dialect": self.dialect, "base_url": self.base_url}


class NoAddress(ValueError):
    """The message describes the value without the address, which may contain a password."""


def place_of(url: str, dialect: str, named: str = "") -> ProviderPlace:
    """`named`: the entry that the source names, if it does. One for local servers is never guessed."""
    base = based(url, dialect)
    for name in _candidates(base, dialect, named):
        entry = catalog.provider(name)
        own = entry.base_urls.get(dialect, entry.base_url)
        return ProviderPlace(dialect, name, "" if _same(own, base) else base)
    return ProviderPlace(dialect, "", base)


def based(url: str, dialect: str) -> str:
    """The base URL of an address that may include the endpoint."""
    parts = split(url)
    if parts is None or parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.hostname or ""):
        raise NoAddress("its address does not begin with http:// or https:// and a host")
    if ".." in parts.path or not url.isprintable() or " " in url:
        raise NoAddress("its address has spaces, control characters or '..' in it")
    if "@" in parts.netloc:
        raise NoAddress("its address holds a user name or password")
    if "?" in url or "#" in url:
        raise NoAddress("its address has a query")
    base = _ENDINGS[dialect].sub("", url)
    if _OTHER_ENDPOINT.search(base):
        raise NoAddress(f"its address is not an endpoint of the dialect {dialect}")
    return base


def label(base: str) -> str:
    """A short name for the server at a base URL."""
    parts = split(base)
    host = (parts.hostname or "") if parts is not None else ""
    if is_loopback(host) or re.fullmatch(r"[0-9.:]*", host):
        port = parts.port if parts is not None else None
        return f"local-{port}" if port else "local"
    words = [word for word in host.split(".") if word not in ("api", "www", "com", "ai", "io", "net", "org")]
    return "-".join(words[:2]) or "provider"


def _candidates(base: str, dialect: str, named: str) -> list[str]:
    """Entries of that host which speak the dialect, the best match first."""
    parts = split(base)
    host = _host(base)
    assert parts is not None, "it was checked"
    found = []
    for name in catalog.names():
        entry = catalog.provider(name)
        if dialect not in entry.dialects or "{" in entry.base_url:
            continue
        own = entry.base_urls.get(dialect, entry.base_url)
        at_home = is_local(parts.hostname or "")
        fits = name == named and entry.auth == "none" if at_home else _host(own) == host
        if fits or _SAME_VENDOR.get(host) == name:
            found.append(name)
    return sorted(found, key=lambda name: _rank(catalog.provider(name), dialect, base, named))


def _rank(entry: ProviderSpec, dialect: str, base: str, named: str) -> tuple[bool, bool, bool, int]:
    own = entry.base_urls.get(dialect, entry.base_url)
    return not _same(own, base), entry.name != named, not entry.home, -len(entry.dialects)


def _host(url: str) -> str:
    parts = split(url)
    return parts.netloc.lower() if parts is not None else ""


def _same(own: str, base: str) -> bool:
    """Some endpoints, such as DeepSeek's, exist with and without the version."""
    return _plain(own) == _plain(base)


def _plain(url: str) -> str:
    return re.sub(r"//localhost\b", "//127.0.0.1", url.lower()).rstrip("/").removesuffix("/v1")


_NOT_A_NAME: Final = re.compile(r"[^A-Z0-9]+")
# Characters of a variable's name that the importer makes.
_MAX_NAME_LETTERS: Final = 60
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|cookie|password|signature", re.IGNORECASE)
PLACEHOLDERS: Final = frozenset(
    {
        *(
            "none",
            "null",
            "na",
            "n/a",
            "empty",
            "dummy",
            "fake",
            "fake-key",
            "fake_key",
            "my-fake-key",
            "test",
        ),
        *("no-key", "not-needed", "not-required", "anything", "ollama", "lm-studio", "lmstudio", "vllm", "x"),
        *("xxx", "key", "token", "-", "sk-none", "sk-dummy", "sk-fake", "sk-no-key-required", "placeholder"),
    }
)
"""Placeholders for servers that require no key: not secret, and copied unchanged."""


class Secrets:
    """The variables that the new configuration needs, and their values that the source has in clear text."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """`known`: variables whose values are known here. One with another value is not used."""
        self._known = known
        self._reserved: set[str] = set()
        self.needed: dict[str, None] = {}
        """Every variable that the configuration names, in order."""
        self.literal: dict[str, str] = {}
        """Those whose values are in the source. Never shown."""

    def reserve(self, *names: str) -> None:
        """Variables that the source uses itself: a key in clear text gets another name."""
        self._reserved.update(names)

    def value(self, name: str) -> str:
        return self.literal.get(name) or self._known.get(name, "")

    def variable(self, name: str) -> str:
        """A reference to a variable that the source names."""
        self.needed.setdefault(name)
        return f"env:{name}"

    def describe(self, reference: str) -> str:
        """What happened to a key, in words."""
        if not reference.startswith("env:"):
            return "api_key: a placeholder, not a secret"
        name = reference.removeprefix("env:")
        return f"set {name} to its value" if name in self.literal else f"api_key: {reference}"

    def supplied(self, name: str, value: str) -> None:
        """The source itself has the value of a variable."""
        self._reserved.add(name)
        self.literal[name] = value

    def hidden(self, value: str, wish: str) -> str:
        """A reference to a variable for a value of the source; a mere placeholder is returned unchanged."""
        if value.lower() in PLACEHOLDERS:
            return value
        for name in _names(wish):
            held = self.literal.get(name) or self._known.get(name)
            if held == value or (held is None and name not in self._reserved):
                self.literal[name] = value
                return self.variable(name)
        raise AssertionError("there is always one more name")


def key_name(provider: str, entry: str = "") -> str:
    """A variable for the key of a provider: that of its entry in the catalog. A provider without an entry
    gets no vendor's variable, whose key would be sent to another host once it is set."""
    usual = catalog.provider(entry).api_key_env if entry else ()
    if usual:
        return usual[0]
    name = next(_names(f"{provider}_API_KEY"))
    vendors = {variable for entry in catalog.names() for variable in catalog.provider(entry).api_key_env}
    return f"MY_{name}" if name in vendors else name


def is_secret_header(name: str, value: str) -> bool:
    """Whether a value must not be written out."""
    return _SECRET_HEADER.search(name) is not None or shown(value) != f'"{value}"'


def _names(wish: str) -> Iterator[str]:
    plain = _NOT_A_NAME.sub("_", wish.upper()).strip("_")[:_MAX_NAME_LETTERS] or "KEY"
    name = f"K_{plain}" if plain[0].isdigit() else plain
    yield name
    yield from (f"{name}_{number}" for number in count(2))
