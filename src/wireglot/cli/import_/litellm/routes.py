"""Deployments, aliases and fallbacks of LiteLLM -> providers and the lines of [models]."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from wireglot.cli.import_.document import Node
from wireglot.cli.import_.draft import Draft, DraftRule, is_model_name
from wireglot.cli.import_.litellm.entries import Deployment
from wireglot.cli.import_.report import Report
from wireglot.cli.paint import one_line

_GENERIC: Final = "*"
_SPREAD: Final = "LiteLLM spread requests over these; here the first is asked, and the next if it fails:"
_SHOWN_NAMES: Final = 6
_WHERE: Final = ("catalog", "dialect", "base_url", "variables")


class Routes:
    """Targets of each name, as LiteLLM would find deployments for it."""

    def __init__(self, draft: Draft, report: Report) -> None:
        self._draft = draft
        self._report = report
        self._groups: dict[str, tuple[str, ...]] = {}
        self._spread: set[str] = set()
        self._aliases: dict[str, str] = {}
        self._fallbacks: dict[str, list[str]] = {}

    def add(self, deployments: Sequence[Deployment]) -> None:
        """All deployments of the file."""
        groups: dict[str, list[Deployment]] = {}
        for deployment in deployments:
            if deployment.is_any:
                self._draft.discover = None  # as it is without a word
            else:
                groups.setdefault(deployment.group, []).append(deployment)
        for group, members in groups.items():
            ordered = sorted(members, key=lambda one: (one.order, -one.weight))
            targets = tuple(dict.fromkeys(self._targets(ordered)))
            self._groups[group] = targets
            if len(targets) > 1 and not any(one.order for one in members):
                self._spread.add(group)

    def alias(self, name: str, node: Node) -> None:
        """`node` is where the name is led."""
        target = node.text
        if not is_model_name(name) or not self._own(target):
            self._report.left(node, "no model of that name was carried over")
            return
        self._aliases[name] = target
        self._report.carried(node, "a line of [models]")

    def fall_back(self, name: str, nodes: Iterable[Node]) -> None:
        """Where requests for a name go when its own deployments fail. What was said first holds."""
        if name in self._fallbacks:
            for node in nodes:
                self._report.left(node, "router_settings.fallbacks says otherwise, and holds")
            return
        listed = self._fallbacks.setdefault(name, [])
        for node in nodes:
            other = node.get("model") if node.fields else node
            if other is None or len(node.fields) > 1 or not other.text:
                self._report.left(node, "a fallback that changes the request is none here")
            elif not self._own(other.text):
                self._report.left(node, "no model of that name was carried over")
            else:
                listed.append(other.text)
                self._report.carried(node, "a further target of its line in [models]")

    def write(self) -> None:
        """The lines of [models]: names, then patterns, the longest first, as LiteLLM tries them."""
        names = [*self._groups, *self._aliases, *(name for name in self._fallbacks if name != _GENERIC)]
        exact = [name for name in names if "*" not in name]
        patterns = sorted((name for name in names if "*" in name), key=_specificity, reverse=True)
        for name in dict.fromkeys((*exact, *patterns)):
            targets = tuple(dict.fromkeys(self._all(name, ())))
            if targets and is_model_name(name):
                self._draft.rule(name, DraftRule(targets, about=_SPREAD if name in self._spread else ""))

    def _targets(self, members: Sequence[Deployment]) -> Iterator[str]:
        """Deployments that differ in nothing but the key are one provider with a pool of keys."""
        pools: dict[str, list[Deployment]] = {}
        for member in members:
            pools.setdefault(repr((member.fields, member.model)), []).append(member)
        for pool in pools.values():
            keys = list(dict.fromkeys(member.key for member in pool if member.key))
            first = pool[0]
            provider = self._draft.provider(_keyed(first.fields, keys), first.wish)
            target = f"{provider.name}/{first.model}"
            self._tell_name(provider.about, first.group)
            price = next((member.price for member in pool if member.price), None)
            if price is not None:
                self._draft.prices.setdefault(target, price)
            yield target

    @staticmethod
    def _tell_name(about: list[str], group: str) -> None:
        told = about[0].removeprefix("For ").split(", ") if about else []
        if len(told) < _SHOWN_NAMES and group not in told:
            told.append(one_line(group))
        elif group not in told and told[-1] != "...":
            told.append("...")
        about[:] = [f"For {', '.join(told)}"]

    def _all(self, name: str, trail: tuple[str, ...]) -> Iterator[str]:
        """Its own targets, then those of its fallbacks and of theirs. Nobody is asked twice."""
        if name in trail:
            return
        yield from self._own(name)
        others = self._fallbacks.get(name)
        for other in self._fallbacks.get(_GENERIC, ()) if others is None else others:
            for target in self._all(other, (*trail, name)):
                if target.count("*") <= name.count("*"):
                    yield target

    def _own(self, name: str) -> tuple[str, ...]:
        if name in self._groups:
            return self._groups[name]
        if name in self._aliases:
            return self._own(self._aliases[name])
        for pattern in sorted(
            (group for group in self._groups if "*" in group), key=_specificity, reverse=True
        ):
            found = re.fullmatch(_regex(pattern), name)
            if found is not None:
                return tuple(_filled(target, found.groups()) for target in self._groups[pattern])
        return ()


def _keyed(fields: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The fields of a provider with its key or keys, behind those that say where it is."""
    key = {} if not keys else {"api_key": keys[0]} if len(keys) == 1 else {"api_keys": list(keys)}
    where = {
        name: each for name, each in fields.items() if name in ("catalog", "dialect", "base_url", "variables")
    }
    return {**where, **key, **{name: each for name, each in fields.items() if name not in where}}


def _regex(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", "(.*)")


def _specificity(pattern: str) -> tuple[int, int]:
    """LiteLLM tries the longest regular expression first."""
    return len(_regex(pattern)), pattern.count("*")


def _filled(target: str, caught: tuple[str, ...]) -> str:
    for text in caught:
        target = target.replace("*", text, 1)
    return target
