"""Domain filters of searches and fetches: the URLs that an allow list and a block list admit.

A rule is a domain with an optional path: `example.com`, `docs.example.com/api`, `example.com/*/news`. It
covers the subdomains of its domain and everything below its path, as Anthropic documents for
`allowed_domains`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from wireglot_core.wire.wildcards import caught

# Domains in one list of a request. OpenAI admits 100 in `filters.allowed_domains`; each is compared with each
# page and each result.
MAX_RULES: Final = 100
# Characters of one domain with its path in a list of a request. A name has 253 at most.
MAX_RULE_CHARACTERS: Final = 512
_SCHEME: Final = re.compile(r"^https?://", re.IGNORECASE)
_LABELS: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")


class DomainRule(msgspec.Struct, frozen=True):
    """`host` in ASCII and lower case; `path` begins with a slash, "" for every path."""

    host: str
    path: str = ""

    def matches(self, host: str, path: str) -> bool:
        if host != self.host and not host.endswith(f".{self.host}"):
            return False
        return not self.path or caught(f"{self.path}*", path) is not None


@lru_cache(maxsize=1024)
def parse_rule(text: str) -> DomainRule | None:
    """None if the text is not a domain, or too long for one."""
    if len(text) > MAX_RULE_CHARACTERS:
        return None
    plain = _SCHEME.sub("", text.strip()).removeprefix("*.")
    domain, slash, path = plain.partition("/")
    host = ascii_host(domain)
    if not _LABELS.fullmatch(host):
        return None
    path = f"/{path}".rstrip("*") if slash else ""
    return DomainRule(host, "" if path == "/" else path)


def ascii_host(name: str) -> str:
    """A host name in DNS form: IDN in Punycode, lower case, no trailing dot; "" if it is invalid."""
    try:
        text = name.encode("ascii" if name.isascii() else "idna").decode("ascii").lower()
    except UnicodeError:
        return ""
    return text.removesuffix(".")


class DomainFilter(msgspec.Struct, frozen=True):
    """`allowed` are allow lists, each of which must admit a URL; () for none. A list without a rule admits
    nothing."""

    allowed: tuple[tuple[DomainRule, ...], ...] = ()
    blocked: tuple[DomainRule, ...] = ()

    def admits(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            host = ascii_host(parts.hostname or "")
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not host:
            return False
        path = _plain_path(parts.path)
        if any(rule.matches(host, path) for rule in self.blocked):
            return False
        return all(any(rule.matches(host, path) for rule in rules) for rules in self.allowed)

    def within(self, outer: DomainFilter) -> DomainFilter:
        """The URLs that both filters admit."""
        return DomainFilter((*self.allowed, *outer.allowed), (*self.blocked, *outer.blocked))

    @property
    def admits_nothing(self) -> bool:
        return bool(self.allowed) and not self.allowed_hosts

    @property
    def allowed_hosts(self) -> list[str]:
        """For backends that accept only domains: those that all allow lists have in common, [] without any
        list. Paths are left to `admits`."""
        if not self.allowed:
            return []
        first, *others = ([DomainRule(rule.host) for rule in rules] for rules in self.allowed)
        for rules in others:
            narrow = [rule for rule in first if any(each.matches(rule.host, "") for each in rules)]
            narrow += [rule for rule in rules if any(each.matches(rule.host, "") for each in first)]
            first = narrow
        return list(dict.fromkeys(rule.host for rule in first))

    @property
    def blocked_hosts(self) -> list[str]:
        """Domains that are blocked completely."""
        return list(dict.fromkeys(rule.host for rule in self.blocked if not rule.path))

    def with_operators(self, query: str, max_characters: int, max_words: int) -> str:
        """The query with `site:` operators for engines that have no parameter for domains, as many of them
        as fit. An allow list fits whole or not at all: a part of it would hide results that are wanted."""
        sites = " OR ".join(f"site:{host}" for host in self.allowed_hosts)
        found = _joined(query, f"({sites})" if " " in sites else sites, max_characters, max_words)
        if not self.allowed:
            for host in self.blocked_hosts:
                found = _joined(found, f"-site:{host}", max_characters, max_words)
        return found


def _joined(query: str, more: str, max_characters: int, max_words: int) -> str:
    joined = f"{query} {more}" if more else query
    return joined if len(joined) <= max_characters and len(joined.split()) <= max_words else query


def _plain_path(path: str) -> str:
    """A path without escapes and dot segments, which could hide it from a rule."""
    kept: list[str] = []
    segments = unquote(path).split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept)


def domain_filter(allowed: Sequence[str], blocked: Sequence[str]) -> DomainFilter:
    """Rules as clients and configurations write them. One that is not a domain matches nothing."""
    return DomainFilter((_rules(allowed),) if allowed else (), _rules(blocked))


def _rules(texts: Sequence[str]) -> tuple[DomainRule, ...]:
    return tuple(rule for text in texts if (rule := parse_rule(text)) is not None)


def bad_rules(texts: Sequence[str]) -> list[str]:
    """The texts that are not domains."""
    return [text for text in texts if parse_rule(text) is None]
