"""Write docs/limits.md: every bound in the source, with the comment that says what it bounds and why.

A bound is a constant of a module whose name has MAX or MOST. The comment is directly above it, or the text
directly below; one without either is a failure.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Final, NamedTuple

from tools.structure import Module, modules

_NAME: Final = re.compile(r"(?:^|_)(?:MAX|MOST)(?:_|$)")
_NOT_BOUNDS: Final = frozenset({"_ARENA_MAX", "_INT_MAX"})
"""Numbers of the operating system."""
_TESTING: Final = ("wireglot.testing", "wireglot_core.testing")
_SIZES: Final = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_AREAS: Final = {
    "http": "Connections",
    "wire": "Streams and documents",
    "ir": "Streams and documents",
    "dialects": "Translation",
    "providers": "Translation",
    "translate": "Translation",
    "dialects/schema": "JSON schemas",
    "cache": "Cached conversations",
    "gateway/config": "Configuration",
    "gateway/entry": "Access to the gateway",
    "gateway/login": "Signing in",
    "logins": "Signing in",
    "gateway/request": "Requests and answers",
    "gateway/streams": "Requests and answers",
    "gateway/websockets.py": "Requests and answers",
    "gateway": "Requests and answers",
    "gateway/relay": "Calls to providers",
    "gateway/targets": "Calls to providers",
    "gateway/hosted": "Hosted tools",
    "web": "Hosted tools",
    "gateway/state": "Stored data",
    "stores": "Stored data",
    "gateway/pages": "Lists of models, and telemetry",
    "gateway/observe": "Logs and metrics",
    "gateway/inspector": "The inspector's page",
    "gateway/trace": "The list of exchanges, and traces",
    "traces": "The list of exchanges, and traces",
    "history": "The library",
    "kimi": "The library",
    "cli": "The command line",
    "demo": "The demo model",
    "probe": "The probe",
}
"""Package -> section, in the page's order; the longest name that fits counts."""
_OPENINGS: Final = re.compile(
    r"(?:Maximum|Limit|For|Per|Up to|More|Above|In one|The same|Used|At most|This many|A longer|With)\b"
    r"|\w+\.$|.*\b_[a-z]"
)
"""How a sentence begins that cannot be understood without its constant, or has a private name in it."""
_INTRODUCTION: Final = (
    "# Limits",
    "",
    "What one client, provider, page or file can cost all others is bounded. Work on their text is linear in",
    "its length, or has one of these limits. These are constants; each links to its module, whose comment",
    "gives the reason.",
    "Limits that you can change are in the configuration: [`[limits]`](configuration.md#limits) for all",
    "clients (size of a body, requests at once, memory, timeouts), [`[keys]`](keys.md) for one.",
)


class Undescribed(Exception):
    """A bound without a comment, or with one that cannot be understood on the page."""


class Bound(NamedTuple):
    file: str
    name: str
    value: float
    text: str


def bounds() -> list[Bound]:
    """Raises Undescribed."""
    found = [bound for module in modules().values() for bound in bounds_of(module)]
    lacking = [
        f"{each.file}: {each.name} has no comment that says what it bounds" for each in found if not each.text
    ]
    lacking += [
        f"{each.file}: {each.name}: begin with what is counted, as in 'Bytes of a form': {each.text}"
        for each in found
        if _OPENINGS.match(each.text)
    ]
    texts = Counter(each.text for each in found if each.text)
    lacking += [
        f"{number} bounds are described alike: {text}" for text, number in texts.items() if number > 1
    ]
    if lacking:
        raise Undescribed("\n".join(lacking))
    return found


def bounds_of(module: Module) -> Iterator[Bound]:
    if module.name.startswith(_TESTING):
        return
    lines = module.path.read_text(encoding="utf-8").splitlines()
    for number, node in enumerate(module.tree.body):
        name = _assigned(node)
        if _NAME.search(name) is None or name in _NOT_BOUNDS:
            continue
        value = getattr(import_module(module.name), name)
        if type(value) in (int, float):
            after = module.tree.body[number + 1 : number + 2]
            text = _above(lines, node.lineno - 1) or _below(after) or _beside(lines[node.lineno - 1])
            yield Bound(module.file, name, value, text)


def _assigned(node: ast.stmt) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _above(lines: list[str], at: int) -> str:
    found: list[str] = []
    while at and lines[at - 1].startswith("# "):
        at -= 1
        found.insert(0, lines[at].removeprefix("# "))
    return " ".join(found)


def _below(nodes: list[ast.stmt]) -> str:
    for node in nodes:
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and type(node.value.value) is str
        ):
            return " ".join(node.value.value.split())
    return ""


def _beside(line: str) -> str:
    comment = line.partition("  # ")[2]
    return f"{comment[:1].upper()}{comment[1:]}." if comment else ""


def page() -> list[str]:
    sections: dict[str, list[Bound]] = {title: [] for title in _AREAS.values()}
    for bound in bounds():
        sections[area(bound.file.partition("/")[2])].append(bound)
    lines = list(_INTRODUCTION)
    for title, found in sections.items():
        if found:
            lines += ["", f"## {title}", ""]
            lines += [
                f"- **{shown(each)}**: {_escaped(_counted(each.text))} ({_link(each)})" for each in found
            ]
    return lines


def area(file: str) -> str:
    fitting = [name for name in _AREAS if f"{file}/".startswith(f"{name}/")]
    return _AREAS[max(fitting, key=len)]


def _link(bound: Bound) -> str:
    return f"[`{bound.name.lstrip('_')}`](../src/{bound.file})"


def shown(bound: Bound) -> str:
    value = bound.value
    if re.search(r"BYTES|BODY|FRAME|ANSWER$", bound.name) or bound.text.startswith("Bytes"):
        for size, unit in _SIZES:
            if value >= size and value % size == 0:
                return f"{int(value) // size:,} {unit}"
    return f"{int(value) if value == int(value) else value:,}"


def _counted(text: str) -> str:
    """The sentence that says what is counted, without the reason that may follow it."""
    for end in re.finditer(r"[.:](?= )", text):
        before = text[: end.start()]
        if before.count("(") == before.count(")"):
            return before
    return text.removesuffix(".")


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")
