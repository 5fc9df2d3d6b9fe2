"""A draft and its report -> the text of a commented `wireglot.toml`."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from wireglot.cli.import_.document import Node
from wireglot.cli.import_.draft import Draft, DraftProvider, DraftRule
from wireglot.cli.import_.report import Fate, Finding, Report, places
from wireglot.cli.paint import count, one_line

_COLUMNS: Final = 78
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_HEADS: Final[tuple[tuple[Fate, str], ...]] = (
    ("left", "Not carried over: why, and what there is instead"),
    ("default", "Nothing to write: it is so anyway"),
    ("carried", "Carried over"),
)


def written(draft: Draft, report: Report, command: str) -> str:
    """The whole file. `command` is what it was made by."""
    parts = ["\n".join(_head(draft, report, command)), *_tables(draft), *_report(report)]
    return "\n\n".join(parts) + "\n"


def _head(draft: Draft, report: Report, command: str) -> Iterator[str]:
    yield from _comment(f"Made by `{one_line(command)}`.")
    yield from _comment(told_counts(report))
    if draft.secrets.needed:
        yield from _comment(f"Variables that it takes: {', '.join(draft.secrets.needed)}")
    yield from _comment("All settings: docs/configuration.md. Check it: wireglot config check FILE")


def told_counts(report: Report) -> str:
    """How many settings have which fate."""
    carried, default, left = (len(report.of(fate)) for fate in ("carried", "default", "left"))
    return (
        f"{count(carried + default + left, 'setting')}: {carried} carried over, {default} so by default, "
        f"{left} not carried over (told at the end)."
    )


def _tables(draft: Draft) -> Iterator[str]:
    if draft.server:
        yield "\n".join(["[server]", *_fields(draft.server)])
    if draft.discover is not None:
        about = _comment(
            "false: a provider that is not named here is off, even if its key is in the environment"
        )
        yield "\n".join(["[providers]", *about, f"discover = {value(draft.discover)}"])
    for provider in draft.providers.values():
        yield "\n".join(_provider(provider))
    if draft.rules:
        yield "\n".join(_models(draft))
    if draft.keys:
        about = _comment("By its hash. A table with models = [...] narrows what it may ask for: docs/keys.md")
        yield "\n".join(["[keys]", *about, *_fields(draft.keys)])
    if draft.prices:
        about = _comment("For a million tokens.")
        yield "\n".join(["[prices]", *about, *_fields(draft.prices)])


def _provider(provider: DraftProvider) -> Iterator[str]:
    for line in provider.about:
        yield from _comment(line)
    yield f"[providers.{key(provider.name)}]"
    inherited = provider.fields.get("catalog") == provider.name
    yield from _fields(
        {name: each for name, each in provider.fields.items() if name != "catalog" or not inherited}
    )


def _models(draft: Draft) -> Iterator[str]:
    yield "[models]"
    told: list[str] = []
    for match, rules in draft.rules.items():
        about = list(dict.fromkeys(rule.about for rule in rules))
        if about != told:
            for each in about:
                yield from _comment(each)
        told = about
        if len(rules) == 1 and not rules[0].effort:
            yield f"{key(match)} = {value(_targets(rules[0]))}"
            continue
        yield f"{key(match)} = ["
        for rule in rules:
            effort = {"effort": list(rule.effort)} if rule.effort else {}
            yield f"  {value({'to': _targets(rule), **effort})},"
        yield "]"


def _targets(rule: DraftRule) -> str | list[str]:
    return rule.targets[0] if len(rule.targets) == 1 else list(rule.targets)


def _report(report: Report) -> Iterator[str]:
    for fate, head in _HEADS:
        groups = _groups(report.of(fate))
        if groups:
            lines = [f"# {head} ".ljust(_COLUMNS, "-")]
            for (name, said), findings in groups.items():
                lines.extend(_comment(_told(name, findings), tail="    "))
                lines.extend(_comment(said, indent="    "))
            yield "\n".join(lines)


def _groups(findings: Iterable[Finding]) -> dict[tuple[str, str], list[Finding]]:
    """Settings of one name that the same was said of, together."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.at.name, finding.said), []).append(finding)
    return groups


def _told(name: str, findings: Sequence[Finding]) -> str:
    nodes: list[Node] = list(dict.fromkeys(finding.at for finding in findings))
    inner = f"; {count(len(findings), 'setting')}" if len(findings) > len(nodes) else ""
    return f"{one_line(name)} ({places(nodes)}{inner})"


def _comment(text: str, indent: str = "", tail: str = "") -> list[str]:
    return textwrap.wrap(
        one_line(text),
        _COLUMNS,
        initial_indent=f"# {indent}",
        subsequent_indent=f"# {tail or indent}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _fields(fields: dict[str, Any]) -> list[str]:
    return [f"{key(name)} = {value(each)}" for name, each in fields.items()]


def key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def value(given: Any) -> str:
    """A value as TOML writes it, on one line."""
    match given:
        case bool():
            return "true" if given else "false"
        case str():
            return _string(given)
        case int():
            return str(given)
        case float():
            return str(int(given)) if given.is_integer() else repr(given)
        case dict():
            return "{ " + ", ".join(f"{key(name)} = {value(each)}" for name, each in given.items()) + " }"
        case _:
            return "[" + ", ".join(map(value, given)) + "]"


def _string(text: str) -> str:
    """JSON's escapes are TOML's, too, but for the one letter that JSON lets stand."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
