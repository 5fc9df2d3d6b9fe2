"""`include` of a LiteLLM configuration: lists are extended, anything else is replaced, as in LiteLLM."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from wireglot.cli.import_.draft import Draft, DraftRule, ImportReport, is_model_name, table, tell_known
from wireglot.cli.import_.endpoints import Secrets
from wireglot.cli.import_.litellm_entries import Deployment, Entries, variable_of
from wireglot.cli.import_.source import SourceNode, UnreadableSource, kind
from wireglot.cli.terminal import one_line
from wireglot_core.extras import install_hint
from wireglot_core.wire.wildcards import caught

_GENERIC: Final = "*"
_SPREAD: Final = (
    "LiteLLM distributes requests over these; here the first is called, and the next if it fails:"
)
_SHOWN_NAMES: Final = 6


class LitellmRoutes:
    """Targets of each name, as LiteLLM would find deployments for it."""

    def __init__(self, draft: Draft, report: ImportReport) -> None:
        self._draft = draft
        self._report = report
        self._groups: dict[str, tuple[str, ...]] = {}
        self._patterns: list[str] = []
        """The groups with `*`, in the order in which they are tried."""
        self._spread: set[str] = set()
        self._aliases: dict[str, str] = {}
        self._fallbacks: dict[str, list[str]] = {}

    def add(self, deployments: Sequence[Deployment]) -> None:
        """Adds all deployments of the file."""
        groups: dict[str, list[Deployment]] = {}
        for deployment in deployments:
            if deployment.is_any:
                self._draft.discover = None  # the default if it is not set
            else:
                groups.setdefault(deployment.group, []).append(deployment)
        for group, members in groups.items():
            shares = zip(*(one.shares for one in members), strict=True)
            weighed = next((each for each in shares if any(each)), (0.0,) * len(members))
            pairs = sorted(zip(members, weighed, strict=True), key=lambda one: (one[0].order, -one[1]))
            ordered = [member for member, _ in pairs]
            targets = tuple(dict.fromkeys(self._targets(ordered)))
            self._groups[group] = targets
            if len(targets) > 1 and all(one.order == math.inf for one in members):
                self._spread.add(group)
        patterns = (group for group in self._groups if "*" in group)
        self._patterns = sorted(patterns, key=_specificity, reverse=True)

    def alias(self, name: str, node: SourceNode) -> None:
        """`node` names the target."""
        target = node.text
        if not is_model_name(name) or not self._own(target):
            self._report.left(node, "no model with that name was carried over")
            return
        self._aliases[name] = self._aliases.get(target, target)
        self._report.carried(node, "an entry of [models]")

    def fall_back(self, name: str, nodes: Iterable[SourceNode]) -> None:
        """Where requests for a name are sent when its own deployments fail. The first statement counts."""
        if name in self._fallbacks:
            for node in nodes:
                self._report.left(node, "overridden by router_settings.fallbacks")
            return
        listed = self._fallbacks.setdefault(name, [])
        for node in nodes:
            other = node.get("model") if node.fields else node
            if other is None or len(node.fields) > 1 or not other.text:
                self._report.left(node, "a fallback that changes the request is not supported")
            elif not self._own(other.text):
                self._report.left(node, "no model with that name was carried over")
            else:
                listed.append(other.text)
                self._report.carried(node, "a fallback target in [models]")

    def write(self) -> None:
        """The lines of [models]: names, then patterns, the longest first, as LiteLLM tries them."""
        names = [*self._groups, *self._aliases, *(name for name in self._fallbacks if name != _GENERIC)]
        exact = [name for name in names if "*" not in name]
        patterns = sorted((name for name in names if "*" in name), key=_specificity, reverse=True)
        for name in dict.fromkeys((*exact, *patterns)):
            targets = tuple(dict.fromkeys(self._all(name)))
            if targets and is_model_name(name):
                self._draft.rule(name, DraftRule(targets, about=_SPREAD if name in self._spread else ""))

    def _targets(self, members: Sequence[Deployment]) -> Iterator[str]:
        """Deployments that differ only in the key are one provider with a pool of keys."""
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
        reported = about[0].removeprefix("For ").split(", ") if about else []
        if len(reported) < _SHOWN_NAMES and group not in reported:
            reported.append(one_line(group))
        elif group not in reported and reported[-1] != "...":
            reported.append("...")
        about[:] = [f"For {', '.join(reported)}"]

    def _all(self, name: str) -> Iterator[str]:
        """Its own targets, then those of its fallbacks and of theirs, with no more `*` than any name on the
        way there. No name is visited twice on the same terms."""
        waiting: list[tuple[str, int | None]] = [(name, None)]
        visited = set[tuple[str, int | None]]()
        while waiting:
            here = waiting.pop()
            if here in visited:
                continue
            visited.add(here)
            name, stars = here
            yield from (target for target in self._own(name) if stars is None or target.count("*") <= stars)
            others = self._fallbacks.get(name, self._fallbacks.get(_GENERIC, []))
            fewer = name.count("*") if stars is None else min(stars, name.count("*"))
            waiting += [(other, fewer) for other in reversed(others)]

    def _own(self, name: str) -> tuple[str, ...]:
        if name in self._groups:
            return self._groups[name]
        if name in self._aliases:
            return self._own(self._aliases[name])
        for pattern in self._patterns:
            found = caught(pattern, name)
            if found is not None:
                return tuple(_filled(target, found) for target in self._groups[pattern])
        return ()


def _keyed(fields: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The fields of a provider with its key or keys, after those for the address."""
    key = {} if not keys else {"api_key": keys[0]} if len(keys) == 1 else {"api_keys": list(keys)}
    where = {
        name: each for name, each in fields.items() if name in ("catalog", "dialect", "base_url", "variables")
    }
    return {**where, **key, **{name: each for name, each in fields.items() if name not in where}}


def _specificity(pattern: str) -> tuple[int, int]:
    """LiteLLM tries the longest regular expression first."""
    return len(re.escape(pattern).replace(r"\*", "(.*)")), pattern.count("*")


def _filled(target: str, caught: tuple[str, ...]) -> str:
    for text in caught:
        target = target.replace("*", text, 1)
    return target


_TABLES: Final = ("litellm_settings", "general_settings", "router_settings", "environment_variables")
_SECTIONS: Final = ("model_list", *_TABLES)
_MASTER: Final = "litellm-master"
_MASTER_VARIABLE: Final = "LITELLM_MASTER_KEY"
_TIMEOUTS: Final = {"litellm_settings": "request_timeout", "router_settings": "timeout"}
_CALLBACKS: Final = ("callbacks", "success_callback", "failure_callback")
# Retries that are carried over from a LiteLLM configuration.
_MAX_RETRIES: Final = 100
_PROBE_CAP_SECONDS: Final = 10.0
"""The breaker's default, if a cool-down is not longer."""


def convert(
    root: SourceNode, known: Mapping[str, str], overridden: Sequence[SourceNode] = ()
) -> tuple[Draft, ImportReport]:
    """`known`: variables whose values are known here. `overridden`: settings of the source without effect."""
    _check(root)
    report = ImportReport(root, overridden)
    report.begin()
    secrets = Secrets(known)
    draft = Draft(secrets)
    draft.discover = False
    listed = root.get("model_list")
    entries = listed.items if listed is not None else []
    _reserve(root, entries, secrets)
    _environment(root, secrets)
    reader = Entries(report, secrets, _credentials(root))
    deployments = [found for entry in entries if (found := reader.read(entry)) is not None]
    _put_defaults(root, deployments, report)
    routes = LitellmRoutes(draft, report)
    routes.add(deployments)
    _aliases_and_fallbacks(root, routes)
    routes.write()
    _tell_spread(root, report)
    report.carried(root.get("include"), "the file was read along with this one")
    _master_key(root, draft, report)
    _callbacks(root, draft, report)
    _tell_environment(root, secrets, report)
    tell_known(report, "litellm")
    report.close()
    return draft, report


def _check(root: SourceNode) -> None:
    if not isinstance(root.value, dict):
        raise UnreadableSource(
            f"line {root.line}: expected a table with model_list in it, found {kind(root)}"
        )
    if not any(name in root.fields for name in _SECTIONS):
        raise UnreadableSource(f"is not a configuration of LiteLLM: it has none of {', '.join(_SECTIONS)}")
    listed = root.get("model_list")
    if listed is not None and not isinstance(listed.value, list):
        raise UnreadableSource(
            f"line {listed.line}: model_list: expected a list of models, found {kind(listed)}"
        )
    for name in _TABLES:
        section = root.get(name)
        if section is not None and not isinstance(section.value, dict):
            raise UnreadableSource(f"line {section.line}: {name}: expected a table, found {kind(section)}")


def _reserve(root: SourceNode, entries: Sequence[SourceNode], secrets: Secrets) -> None:
    """The variables that the file uses, even implicitly: no key in clear text gets their names."""
    for leaf in root.leaves():
        if name := variable_of(leaf):
            secrets.reserve(name)
    prefixes: dict[str, Any] = table("litellm", "prefixes.toml")["prefix"]
    for entry in entries:
        params = entry.get("litellm_params")
        model = params.get("model") if params is not None else None
        if params is not None and model is not None and params.get("api_key") is None:
            secrets.reserve(*prefixes.get(model.text.partition("/")[0], {}).get("env", ()))


def _environment(root: SourceNode, secrets: Secrets) -> None:
    section = root.get("environment_variables")
    for name, node in (section.fields if section is not None else {}).items():
        other = variable_of(node)
        found = secrets.value(other) if other else str(node.value) if not node.is_nothing else ""
        if found and not isinstance(node.value, dict | list):
            secrets.supplied(name, found)


def _tell_environment(root: SourceNode, secrets: Secrets, report: ImportReport) -> None:
    section = root.get("environment_variables")
    for name, node in (section.fields if section is not None else {}).items():
        if name in secrets.needed:
            report.carried(
                node, "env:NAME where it is used: set it in the environment, or store it with --keep-keys"
            )


def _credentials(root: SourceNode) -> dict[str, SourceNode]:
    listed = root.get("credential_list")
    found = {}
    for item in listed.items if listed is not None else []:
        name, values = item.get("credential_name"), item.get("credential_values")
        if name is not None and values is not None:
            found[name.text] = values
    return found


def _put_defaults(root: SourceNode, deployments: Sequence[Deployment], report: ImportReport) -> None:
    """Settings for all models that do not set them themselves. The router's are applied last."""
    for section_name, timeout_name in _TIMEOUTS.items():
        section = root.get(section_name)
        if section is None:
            continue
        timeout, retries = section.get(timeout_name), section.get("num_retries")
        if timeout is not None and timeout.number:
            _put(deployments, "timeouts", {"first_byte": timeout.number, "idle": timeout.number})
            report.carried(timeout, "first_byte and idle of every provider's timeouts")
        if retries is not None and retries.number is not None:
            _put(deployments, "retry", {"retries": int(min(_MAX_RETRIES, max(0, retries.number)))})
            report.carried(retries, "retries of every provider's retry")
    router = root.get("router_settings")
    fails = router.get("allowed_fails") if router is not None else None
    rest = router.get("cooldown_time") if router is not None else None
    breaker: dict[str, float] = {}
    if fails is not None and fails.number is not None:
        breaker["consecutive"] = int(max(0, fails.number)) + 1
        report.carried(fails, "consecutive of every provider's breaker: one more than the allowed failures")
    if rest is not None and rest.number:
        breaker |= {"probe_after": rest.number, "probe_cap": max(rest.number, _PROBE_CAP_SECONDS)}
        report.carried(rest, "probe_after of every provider's breaker")
    if breaker:
        _put(deployments, "breaker", breaker)


def _put(deployments: Sequence[Deployment], name: str, value: dict[str, Any]) -> None:
    """Later values override earlier ones; those of the entry itself override all."""
    for deployment in deployments:
        if name not in deployment.fields or name in deployment.general:
            deployment.fields[name] = value
            deployment.general.add(name)


def _aliases_and_fallbacks(root: SourceNode, routes: LitellmRoutes) -> None:
    for section in (root.get("router_settings"), root.get("litellm_settings")):
        if section is None:
            continue
        aliases = section.get("model_group_alias")
        for name, node in (aliases.fields if aliases is not None else {}).items():
            target = node.get("model") if node.fields else node
            if target is not None and target.text:
                routes.alias(name, target)
    for section in (root.get("router_settings"), root.get("litellm_settings")):
        listed = section.get("fallbacks") if section is not None else None
        for item in listed.items if listed is not None else []:
            for name, node in item.fields.items():
                routes.fall_back(name, node.items or [node])
            if item.text:
                routes.fall_back("*", [item])
        generic = section.get("default_fallbacks") if section is not None else None
        if generic is not None:
            routes.fall_back("*", generic.items or [generic])


def _tell_spread(root: SourceNode, report: ImportReport) -> None:
    router = root.get("router_settings")
    strategy = router.get("routing_strategy") if router is not None else None
    report.left(
        strategy,
        "targets of a name are tried in order; only keys of one provider share the load, as a pool "
        "(docs/migrate-litellm.md)",
    )


def _master_key(root: SourceNode, draft: Draft, report: ImportReport) -> None:
    """The key of LiteLLM's administrator becomes a client's key here: clients keep using it. Only its hash is
    stored."""
    general = root.get("general_settings")
    node = general.get("master_key") if general is not None else None
    name = variable_of(node) if node is not None else _MASTER_VARIABLE
    value = draft.secrets.value(name) if name else (node.text or str(node.value)) if node is not None else ""
    if value:
        draft.keys[_MASTER] = "sha256:" + hashlib.sha256(value.encode()).hexdigest()
        report.carried(
            node, f"its hash, as the client key {_MASTER} of [keys]; the admin API has a separate secret"
        )
    elif node is not None:
        draft.server["require_key"] = True
        draft.hints.append(
            f"{name} is not set here, so its hash is not in [keys]: create keys with wireglot keys create"
        )
        report.left(
            node,
            "its hash would be in [keys], but the variable is not set here: clients need a key anyway "
            "(require_key); create one with wireglot keys create NAME",
        )


def _callbacks(root: SourceNode, draft: Draft, report: ImportReport) -> None:
    """Two of LiteLLM's callbacks are part of the gateway."""
    settings = root.get("litellm_settings")
    for name in _CALLBACKS:
        node = settings.get(name) if settings is not None else None
        for item in (node.items or [node]) if node is not None else []:
            if item.text == "prometheus":
                report.default(
                    item, "GET /metrics is always served; if clients need keys, set server.metrics_key"
                )
            elif item.text == "otel":
                draft.server["telemetry"] = True
                draft.hints.append(f"telemetry = true needs packages: {install_hint('otel')}")
                report.carried(item, "telemetry of [server]; OTEL_ variables set the destination")


def with_included(
    root: SourceNode, read: Callable[[str], tuple[SourceNode, list[SourceNode]]]
) -> tuple[SourceNode, list[SourceNode]]:
    """The whole document, and its overridden settings. `read` gets the names of files."""
    listed = root.fields.get("include")
    if listed is None or not isinstance(root.value, dict):
        return root, []
    if not isinstance(listed.value, list):
        raise UnreadableSource(f"line {listed.line}: include: expected a list of files, found {kind(listed)}")
    merged = dict(root.value)
    hidden: list[SourceNode] = []
    for item in listed.items:
        if not item.text:
            raise UnreadableSource(
                f"line {item.line}: include: expected the name of a file, found {kind(item)}"
            )
        try:
            other, overridden = read(item.text)
        except UnreadableSource as fault:
            raise UnreadableSource(f"line {item.line}: the included {item.text}: {fault}") from None
        hidden.extend(overridden)
        for name, node in other.fields.items():
            earlier = merged.get(name)
            if name == "include":
                hidden.append(node)  # LiteLLM follows one step only
            elif earlier is not None and isinstance(earlier.value, list) and isinstance(node.value, list):
                merged[name] = SourceNode(
                    [*earlier.value, *node.value], earlier.path, earlier.line, earlier.file
                )
            else:
                hidden.extend([earlier] if earlier is not None else [])
                merged[name] = node
    return SourceNode(merged, root.path, root.line, root.file), hidden
