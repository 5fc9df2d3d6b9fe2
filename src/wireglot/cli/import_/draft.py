"""The configuration that an import creates, before it is written as text."""

from __future__ import annotations

import itertools
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib import resources
from typing import Any, Final, Literal

import msgspec
import tomlkit

from wireglot.cli.import_.endpoints import Secrets
from wireglot.cli.import_.source import SourceNode
from wireglot.cli.terminal import count, one_line
from wireglot_core.providers import spec as catalog

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_TAKEN: Final = frozenset({"discover", "demo"})
# Characters of a model's name in an imported configuration.
_MAX_MODEL_LETTERS: Final = 256


class DraftProvider(msgspec.Struct):
    """A table of [providers]. `about` is the comment above it."""

    name: str
    fields: dict[str, Any]
    about: list[str] = []


class DraftRule(msgspec.Struct, frozen=True):
    """A line of [models]."""

    targets: tuple[str, ...]
    effort: tuple[str, ...] = ()
    about: str = ""
    prompt_over: int = 0
    images: bool = False

    def conditions(self) -> dict[str, Any]:
        """In the form of a table of [models]."""
        given = {"effort": list(self.effort), "prompt_over": self.prompt_over, "images": self.images}
        return {name: each for name, each in given.items() if each}


class Draft:
    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
        self.server: dict[str, Any] = {}
        self.discover: bool | None = None
        self.providers: dict[str, DraftProvider] = {}
        self.rules: dict[str, list[DraftRule]] = {}
        self.keys: dict[str, str] = {}
        self.prices: dict[str, dict[str, float]] = {}
        self.hints: list[str] = []
        """What the user has to do in addition to setting variables."""

    def provider(self, fields: dict[str, Any], wish: str) -> DraftProvider:
        """The provider with exactly these fields; a new one where there is none yet."""
        for known in self.providers.values():
            if known.fields == fields:
                return known
        name = self._free(wish, fields.get("catalog", ""))
        self.providers[name] = DraftProvider(name, fields)
        return self.providers[name]

    def rule(self, match: str, rule: DraftRule) -> None:
        self.rules.setdefault(match, []).append(rule)

    def _free(self, wish: str, entry: str) -> str:
        """The name of an entry is reserved for providers made from that entry: others would inherit from
        it."""
        plain = _NOT_IN_A_NAME.sub("-", wish).strip("-._") or "provider"
        if plain in _TAKEN or (plain in catalog.names() and plain != entry):
            plain = f"my-{plain}"
        names = (plain if number == 1 else f"{plain}-{number}" for number in itertools.count(1))
        others = {*self.providers, *(name for name in catalog.names() if name != entry)}
        return next(name for name in names if name not in others)


def is_model_name(name: str) -> bool:
    """Whether [models] accepts it."""
    return bool(name) and name.isprintable() and " " not in name and len(name) <= _MAX_MODEL_LETTERS


Fate = Literal["carried", "default", "left"]
_NO_SUCH_SETTING: Final = "no equivalent setting"
_EMPTY: Final = "it is empty"
_SAID_AGAIN: Final = "it is set again further down; the last value applies"


class ImportFinding(msgspec.Struct, frozen=True):
    """`leaf` is one setting; `at` is the setting, or the table around it, that the text is about."""

    leaf: SourceNode
    at: SourceNode
    fate: Fate
    said: str


class ImportReport:
    """The first report about a setting counts."""

    def __init__(self, root: SourceNode, overridden: Sequence[SourceNode] = ()) -> None:
        """`overridden`: settings of the source without effect, since they are set again later."""
        self.root = root
        self._overridden = overridden
        self.warnings: list[str] = []
        """Important warnings: models that were retired."""
        self._found: dict[SourceNode, ImportFinding] = {}

    def carried(self, node: SourceNode | None, said: str) -> None:
        self._tell(node, "carried", said)

    def default(self, node: SourceNode | None, said: str) -> None:
        """Nothing had to be written: it is the default."""
        self._tell(node, "default", said)

    def left(self, node: SourceNode | None, said: str) -> None:
        """Not carried over: why, and what to use instead."""
        self._tell(node, "left", said)

    def begin(self) -> None:
        """Report settings without a value or without effect."""
        for node in self._overridden:
            self.left(node, _SAID_AGAIN)
        for leaf in self.root.leaves():
            if leaf is not self.root and (leaf.is_nothing or isinstance(leaf.value, dict | list)):
                self.default(leaf, _EMPTY)

    def close(self) -> None:
        """Report every setting that has not been handled."""
        for leaf in self.root.leaves():
            if leaf is not self.root:
                self.left(leaf, _NO_SUCH_SETTING)

    @property
    def findings(self) -> list[ImportFinding]:
        """In the order of the source."""
        return [self._found[leaf] for leaf in self.leaves() if leaf in self._found]

    def leaves(self) -> Iterator[SourceNode]:
        """Every setting of the source."""
        for node in (self.root, *self._overridden):
            yield from node.leaves()

    def of(self, fate: Fate) -> list[ImportFinding]:
        return [finding for finding in self.findings if finding.fate == fate]

    def _tell(self, node: SourceNode | None, fate: Fate, said: str) -> None:
        if node is None:
            return
        for leaf in node.leaves():
            self._found.setdefault(leaf, ImportFinding(leaf, node, fate, said))


def place(node: SourceNode) -> str:
    """`line 12`, or `models.yaml, line 12`."""
    line = f"line {node.line}"
    return f"{node.file}, {line}" if node.file else line


def places(nodes: Iterable[SourceNode]) -> str:
    """`line 3`, `lines 3, 9 and 14`, each file by itself."""
    lines: dict[str, dict[int, None]] = {}
    for node in nodes:
        lines.setdefault(node.file, {})[node.line] = None
    return "; ".join(_of_file(file, seen) for file, seen in lines.items())


def _of_file(file: str, lines: Iterable[int]) -> str:
    *most, last = map(str, lines)
    text = f"lines {', '.join(most)} and {last}" if most else f"line {last}"
    return f"{file}, {text}" if file else text


@cache
def table(program: str, file: str) -> dict[str, Any]:
    text = resources.files("wireglot.cli.import_").joinpath(f"{program}_{file}").read_text(encoding="utf-8")
    return tomllib.loads(text)


def tell_known(report: ImportReport, program: str) -> None:
    """Report every setting that has not been handled yet and that the program's table knows."""
    known = table(program, "known.toml")
    handled = cache(partial(_handled, known=known))
    for node, (fate, said) in _known_nodes(report.root, handled):
        (report.default if fate == "default" else report.left)(node, said)


def _handled(name: str, known: Mapping[str, Mapping[str, str]]) -> tuple[Fate, str] | None:
    """The fate of a setting of this name, if the table has it: exactly, or else by a pattern."""
    default, left = _said(name, known["default"]), _said(name, known["left"])
    if default is not None and not _is_better(name, known["left"], known["default"]):
        return "default", default
    return ("left", left) if left is not None else None


def _known_nodes(
    node: SourceNode, handled: Callable[[str], tuple[Fate, str] | None]
) -> Iterator[tuple[SourceNode, tuple[Fate, str]]]:
    """From the outside in: a report about a table covers everything inside."""
    for inner in (*node.fields.values(), *node.items):
        if (found := handled(inner.name)) is not None:
            yield inner, found
        else:
            yield from _known_nodes(inner, handled)


def _said(name: str, known: Mapping[str, str]) -> str | None:
    if name in known:
        return known[name]
    patterns = (pattern for pattern in known if "*" in pattern and fnmatchcase(name, _plain(pattern)))
    return next((known[pattern] for pattern in patterns), None)


def _is_better(name: str, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether one table names it exactly, where the other has only a pattern."""
    return name in one and name not in other


def _plain(pattern: str) -> str:
    """Brackets of a path are not character sets."""
    return pattern.replace("[", "[[]")


_COLUMNS: Final = 78
_HEADS: Final[tuple[tuple[Fate, str], ...]] = (
    ("left", "Not carried over: reasons and alternatives"),
    ("default", "Already the default: nothing to set"),
    ("carried", "Carried over"),
)


def written(draft: Draft, report: ImportReport, command: str) -> str:
    """The whole file. `command`: the one that created it."""
    parts = ["\n".join(_head(draft, report, command)), *_tables(draft), *_report(report)]
    return "\n\n".join(parts) + "\n"


def _head(draft: Draft, report: ImportReport, command: str) -> Iterator[str]:
    yield from _comment(f"Created by `{one_line(command)}`.")
    yield from _comment(format_counts(report))
    if draft.secrets.needed:
        yield from _comment(f"Environment variables used: {', '.join(draft.secrets.needed)}")
    yield from _comment("All settings: docs/configuration.md. Check it: wireglot config check FILE")


def format_counts(report: ImportReport) -> str:
    """How many settings were handled in which way."""
    carried, default, left = (len(report.of(fate)) for fate in ("carried", "default", "left"))
    return (
        f"{count(carried + default + left, 'setting')}: {carried} carried over, {default} already default, "
        f"{left} not carried over (listed at the end)."
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
        about = _comment(
            "SHA-256 of the key. A table with models = [...] limits what it may request: docs/keys.md"
        )
        yield "\n".join(["[keys]", *about, *_fields(draft.keys)])
    if draft.prices:
        about = _comment("Per million tokens.")
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
    reported: list[str] = []
    for match, rules in draft.rules.items():
        about = list(dict.fromkeys(rule.about for rule in rules))
        if about != reported:
            for each in about:
                yield from _comment(each)
        reported = about
        if len(rules) == 1 and not rules[0].conditions():
            yield f"{key(match)} = {value(_targets(rules[0]))}"
            continue
        yield f"{key(match)} = ["
        for rule in rules:
            yield f"  {value({'to': _targets(rule), **rule.conditions()})},"
        yield "]"


def _targets(rule: DraftRule) -> str | list[str]:
    return rule.targets[0] if len(rule.targets) == 1 else list(rule.targets)


def _report(report: ImportReport) -> Iterator[str]:
    for fate, head in _HEADS:
        groups = _groups(report.of(fate))
        if groups:
            lines = [f"# {head} ".ljust(_COLUMNS, "-")]
            for (name, said), findings in groups.items():
                lines.extend(_comment(_reported(name, findings), tail="    "))
                lines.extend(_comment(said, indent="    "))
            yield "\n".join(lines)


def _groups(findings: Iterable[ImportFinding]) -> dict[tuple[str, str], list[ImportFinding]]:
    """Settings of one name with the same report, together."""
    groups: dict[tuple[str, str], list[ImportFinding]] = {}
    for finding in findings:
        groups.setdefault((finding.at.name, finding.said), []).append(finding)
    return groups


def _reported(name: str, findings: Sequence[ImportFinding]) -> str:
    nodes: list[SourceNode] = list(dict.fromkeys(finding.at for finding in findings))
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
    return tomlkit.key(name).as_string()


def value(given: Any) -> str:
    """A value as TOML writes it, on one line."""
    match given:
        case dict():
            return "{ " + ", ".join(f"{key(name)} = {value(each)}" for name, each in given.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(value, given)) + "]"
        case float() if given.is_integer():
            return value(int(given))
        case _:
            return str(tomlkit.item(given).as_string())
