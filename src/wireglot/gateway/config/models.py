"""[models] -> rules, with aliases of aliases resolved and every target checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from wireglot.gateway.config.problems import Problems, key_path, kind, meant, shown
from wireglot.gateway.config.table import Misfit, Table, declared, fitted
from wireglot.gateway.settings import Provider, Rule
from wireglot_core.ir.purpose import PURPOSES
from wireglot_core.ir.request import EFFORTS
from wireglot_core.providers import spec as catalog
from wireglot_core.wire.wildcards import caught

_FORMS: Final = '"provider/model", a list of them, or tables { to = ... }'


def read_rules(
    value: object, providers: Mapping[str, Provider], named: Collection[str], problems: Problems
) -> tuple[Rule, ...]:
    """`named` are the providers of the file, including broken ones: those have a problem already."""
    if not isinstance(value, Mapping):
        problems.add("models", "a table", kind(value))
        return ()
    placed = [(path, rule) for match, given in value.items() for path, rule in _read(match, given, problems)]
    _refuse_twins(placed, problems)
    aliases = {rule.match: rule for _, rule in reversed(placed) if not rule.is_conditional}
    return tuple(
        msgspec.structs.replace(rule, targets=targets)
        for path, rule in placed
        if (targets := _Chain(path, aliases, providers, named, problems).followed(rule))
    )


def retired_targets(rules: Iterable[Rule], providers: Mapping[str, Provider]) -> Iterator[str]:
    """Notes on rules with a model that its provider has retired."""
    for rule in rules:
        for target in rule.targets:
            prefix, _, model = target.partition("/")
            entry = providers[prefix].spec.model(model) if prefix in providers else None
            if entry is not None and entry.retired and not providers[prefix].spec.moved:
                instead = f": use {entry.successor}" if entry.successor else ""
                yield f"models: {rule.match} resolves to {target}, which is retired{instead}"


def mixed_vectors(rules: Iterable[Rule], providers: Mapping[str, Provider]) -> Iterator[str]:
    """Notes on rules that fall back to another embedding model: an index with vectors of both is useless, and
    no answer shows it."""
    for rule in rules:
        embedding: dict[str, str] = {}
        for target in rule.targets:
            prefix, _, model = target.partition("/")
            entry = providers[prefix].spec.model(model) if prefix in providers else None
            if entry is not None and entry.embeds:
                embedding.setdefault(model.rpartition("/")[2], target)
        if len(embedding) > 1:
            first, other, *_ = embedding.values()
            yield (
                f"models: {rule.match} falls back from {first} to {other}, whose vectors cannot be compared: "
                "use one embedding model in a rule"
            )


def check_model(
    model: str,
    path: str,
    rules: Iterable[Rule],
    providers: Mapping[str, Provider],
    named: Collection[str],
    problems: Problems,
) -> None:
    """Report a setting that names a model without a route."""
    aliases = {rule.match: rule for rule in rules if not rule.is_conditional}
    if model and model not in aliases:
        _Chain(path, aliases, providers, named, problems).followed(Rule(model, (model,)))


def unreachable_rules(rules: Sequence[Rule], providers: Collection[str]) -> Iterator[str]:
    """Notes on rules that no request reaches, because an earlier one matches everything that they do. An
    exact name comes before every pattern; patterns are tried in their order in the file. Names that begin
    with a provider only match patterns that begin with it, too."""
    patterns: list[Rule] = []
    exact: dict[str, list[Rule]] = {}
    for rule in rules:
        prefix, slash, _ = rule.match.partition("/")
        start = f"{prefix}/" if slash and prefix in providers else ""
        alike = patterns if "*" in rule.match else exact.setdefault(rule.match, [])
        before = (one for one in alike if one.match.startswith(start))
        earlier = next((one for one in before if _covers(one, rule)), None)
        alike.append(rule)
        if earlier is not None:
            when = f" ({rule_conditions(rule)})" if rule.is_conditional else ""
            yield f"models: {rule.match}{when} is never reached: {earlier.match} comes before it"


def rule_conditions(rule: Rule) -> str:
    """The conditions of a rule in words; "" if it has none."""
    given = {"effort": rule.effort, "purpose": rule.purpose, "agent": rule.agent}
    when = [f"if the {name} is {' or '.join(values)}" for name, values in given.items() if values]
    if rule.prompt_over:
        when.append(f"if the prompt is over {rule.prompt_over} tokens")
    if rule.images:
        when.append("if there is an image")
    return ", ".join(when)


def _covers(earlier: Rule, later: Rule) -> bool:
    """Whether the earlier rule applies to everything that the later one does; both are patterns, or for one
    name."""
    return (
        _contains(earlier.effort, later.effort)
        and _contains(earlier.purpose, later.purpose)
        and _covers_agents(earlier.agent, later.agent)
        and earlier.prompt_over <= later.prompt_over
        and earlier.images <= later.images
        and _covers_pattern(earlier.match, later.match)
    )


def _contains(earlier: tuple[str, ...], later: tuple[str, ...]) -> bool:
    return not earlier or (bool(later) and {*later} <= {*earlier})


def _covers_agents(earlier: tuple[str, ...], later: tuple[str, ...]) -> bool:
    if not earlier:
        return True
    return bool(later) and all(
        any(_covers_pattern(one.lower(), name.lower()) for one in earlier) for name in later
    )


def _covers_pattern(earlier: str, later: str) -> bool:
    # The "*" of the later pattern is an ordinary character here, which a "*" of the earlier one must match.
    return caught(earlier, later) is not None


def without_providers(rules: Iterable[Rule], off: Collection[str]) -> tuple[Rule, ...]:
    """The rules without targets of providers that are off. A rule that would have none left keeps them: its
    name has no route, rather than one to another provider."""
    return tuple(_without(rule, off) for rule in rules)


def _without(rule: Rule, off: Collection[str]) -> Rule:
    left = tuple(target for target in rule.targets if target.partition("/")[0] not in off)
    return msgspec.structs.replace(rule, targets=left) if left else rule


def _read(match: str, given: Any, problems: Problems) -> list[tuple[str, Rule]]:
    path = key_path("models", match)
    if not match or not match.isprintable() or " " in match:
        problems.add(path, "a model name or a pattern", "a name with spaces, or an empty one")
        return []
    if isinstance(given, Mapping):
        return _table(match, given, path, problems)
    if type(given) is list and given and all(isinstance(one, Mapping) for one in given):
        return [
            read
            for number, one in enumerate(given)
            for read in _table(match, one, f"{path}[{number}]", problems)
        ]
    targets = _targets(given, path, problems)
    return [(path, Rule(match, targets))] if targets else []


def _table(match: str, given: Mapping[str, Any], path: str, problems: Problems) -> list[tuple[str, Rule]]:
    table = Table(given, path, problems)
    targets = _targets(table.raw("to"), table.at("to"), problems)
    texts = {name: _texts(table, name) for name in ("purpose", "agent")}
    rule = table.over(Rule(match, targets), targets=targets, **texts)
    for effort in rule.effort:
        if effort not in EFFORTS:
            table.wrong("effort", f"efforts out of {', '.join(EFFORTS)}", shown(effort))
    for purpose in rule.purpose:
        if purpose not in PURPOSES:
            table.wrong("purpose", f"purposes out of {', '.join(PURPOSES)}", shown(purpose))
    table.close()
    return [(path, rule)] if targets else []


def _texts(table: Table, name: str) -> tuple[str, ...]:
    """A text or a list of them."""
    given = table.raw(name)
    listed = [given] if type(given) is str else given
    if listed is None:
        return ()
    try:
        found: tuple[str, ...] = fitted(declared(Rule)[name], listed)
    except Misfit as misfit:
        table.wrong(name, misfit.expected, shown(given) if type(given) is str else misfit.found)
        return ()
    return found


def _targets(given: Any, path: str, problems: Problems) -> tuple[str, ...]:
    listed = [given] if type(given) is str else given
    if type(listed) is not list or not listed:
        problems.add(path, _FORMS, kind(given))
        return ()
    for number, one in enumerate(listed):
        if type(one) is not str or not one or not one.isprintable() or " " in one:
            problems.add(f"{path}[{number}]" if type(given) is list else path, _FORMS, shown(one))
            return ()
    return tuple(listed)


def _refuse_twins(placed: list[tuple[str, Rule]], problems: Problems) -> None:
    """Two rules for one name with the same conditions: the second would never be reached."""
    seen: dict[Rule, str] = {}
    for path, rule in placed:
        for effort in rule.effort or ("",):
            same = msgspec.structs.replace(
                rule,
                targets=(),
                losses=None,
                effort=(effort,) if effort else (),
                purpose=tuple(sorted({*rule.purpose})),
                agent=tuple(sorted({name.lower() for name in rule.agent})),
            )
            earlier = seen.setdefault(same, path)
            if earlier != path:
                when = rule_conditions(same) or "for every effort"
                problems.add(path, f"one rule {when}", f"a second one, in addition to {earlier}")
                break


class _Chain:
    """Resolves the targets of one rule until each is a provider's model."""

    def __init__(
        self,
        path: str,
        aliases: Mapping[str, Rule],
        providers: Mapping[str, Provider],
        named: Collection[str],
        problems: Problems,
    ) -> None:
        self.path = path
        self.aliases = aliases
        self.providers = providers
        self.named = named
        self.problems = problems

    def followed(self, rule: Rule) -> tuple[str, ...]:
        targets = [end for target in rule.targets for end in self._ends(target, rule.match, (rule.match,))]
        return tuple(dict.fromkeys(targets))

    def _ends(self, target: str, match: str, trail: tuple[str, ...]) -> list[str]:
        prefix, slash, model = target.partition("/")
        if slash and prefix in self.named:
            return [target] if self._sound(target, model, match) else []
        alias = self.aliases.get(target)
        if alias is not None and target in trail:
            if target == trail[0]:  # a rule that only leads into the cycle is not at fault
                self.problems.add(
                    self.path, "names that resolve to a provider", " -> ".join((*trail, target))
                )
            return []
        if alias is not None:
            return [end for one in alias.targets for end in self._ends(one, target, (*trail, target))]
        if "*" in target and "*" in match and not slash:
            return [target]  # what it matches is known with a request
        if any(provider.spec.knows(target) for provider in self.providers.values()):
            return [target]
        if len(trail) == 1:  # problems of later ones are reported at their own place
            self._report_unknown(target, prefix if slash else "")
        return []

    def _sound(self, target: str, model: str, match: str) -> bool:
        if not model:
            self.problems.add(self.path, "provider/model", shown(target))
        elif model.count("*") > match.count("*"):
            self.problems.add(self.path, f'a "*" only for each one of {shown(match)}', shown(target))
        else:
            return True
        return False

    def _report_unknown(self, target: str, prefix: str) -> None:
        on = ", ".join(self.providers) or "none"
        if prefix and prefix in catalog.names():
            expected = f"a provider that is on ({on}); [providers.{prefix}] turns it on"
        else:
            names = [*self.providers, *self.aliases]
            expected = f"provider/model of a provider that is on ({on}){meant(prefix or target, names)}"
        self.problems.add(self.path, expected, shown(target))
