"""docs/reference/fields/: one page for each dialect, every field of its SDK and what becomes of it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from proofs.sdk_fields.probe import MAIN, Row, Verdict, rows
from proofs.sdk_fields.stages import ENDPOINTS, Endpoint
from tools.blocks import table
from wireglot_core.dialects.registry import DialectName

_ALLOWED = Path(__file__).with_name("allowed.toml")
_LINE = re.compile(r"^- ((?:`\w+`(?:, )?)+): ((?:`[^`]+`(?:, )?)+)", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")
_CELLS: dict[Verdict, str] = {
    "mapped": "mapped",
    "bent": "approximated",
    "declared": "declared",
    "refused": "refused",
    "silent": "no effect",
}
_ABOUT = """\
# Fields of `{dialect}`

Every field of the types in `{sdk}` {version}, tested in a small document that is translated to the other
dialects. The results are measured. In its own dialect every field is kept.

| outcome | meaning |
|---|---|
| mapped | the target gets it |
| approximated | the target gets a changed value; a loss is reported for the field or for what contains it |
| declared | the target has no field for it; a loss is reported for the field or for what contains it |
| refused | the request is rejected with an error that names the field |
| no effect | it changes nothing; the reason is listed below |
"""


def allowed(path: Path = _ALLOWED) -> dict[str, str]:
    """The fields that may be without effect, as `dialect kind structure.field`, with their reasons."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        f"{dialect} {kind} {field}": reason
        for dialect, kinds in document.items()
        for kind, fields in kinds.items()
        for field, reason in fields.items()
    }


def silent(endpoint: Endpoint, found: Sequence[Row]) -> Iterator[str]:
    """The fields that go nowhere, without a word."""
    for row in found:
        if "silent" in row.verdicts.values():
            yield f"{endpoint.name} {row.structure}.{row.field}"


def judged(folder: Path) -> set[str]:
    """The fields that the written pages speak of, as `dialect structure.field`."""
    return {
        f"{path.stem} {structure}.{field}"
        for path in folder.glob("*.md")
        for structures, fields in _LINE.findall(path.read_text(encoding="utf-8"))
        for structure in _NAME.findall(structures)
        for field in _NAME.findall(fields)
    }


def pages() -> dict[str, str]:
    """Each dialect's page by its file name."""
    return {f"{dialect}.md": _page(dialect) for dialect in MAIN}


def _page(dialect: str) -> str:
    own = [endpoint for endpoint in ENDPOINTS if endpoint.dialect == dialect]
    sdk = own[0].sdk
    about = _ABOUT.format(dialect=dialect, sdk=sdk, version=version(sdk)).rstrip()
    return "\n\n".join([about, *(_section(endpoint) for endpoint in own)])


def _section(endpoint: Endpoint) -> str:
    found = rows(endpoint)
    targets = [name for name in MAIN if name != endpoint.dialect]
    counts = [
        (target, *(str(Counter(row.verdicts[target] for row in found)[verdict]) for verdict in _CELLS))
        for target in targets
    ]
    reasons = allowed()
    notes = [
        (f"`{name.rpartition(' ')[2]}`", reasons[name]) for name in silent(endpoint, found) if name in reasons
    ]
    parts = [
        f"## {endpoint.kind.capitalize()}s",
        f"{len({row.structure for row in found})} types, {len(found)} fields.",
        table(("to", *_CELLS.values()), counts),
        *_outcomes(found, targets),
    ]
    if notes:
        parts.append(table(("no effect", "reason"), notes))
    return "\n\n".join(parts)


def _outcomes(found: Sequence[Row], targets: Sequence[DialectName]) -> Iterator[str]:
    """The fields with the same outcome in each target together; first those with one outcome in all."""
    by_type: dict[tuple[Verdict, ...], dict[str, dict[str, None]]] = {}
    for row in found:
        outcome = tuple(row.verdicts[target] for target in targets)
        by_type.setdefault(outcome, {}).setdefault(row.structure, {})[row.field] = None
    order = list(_CELLS)
    for outcome in sorted(by_type, key=lambda each: (len(set(each)), [order.index(one) for one in each])):
        items = (f"- {types}: {fields}" for types, fields in _together(by_type[outcome]))
        yield f"{_stated(outcome, targets)}:\n\n" + "\n".join(items)


def _stated(outcome: Sequence[Verdict], targets: Sequence[str]) -> str:
    if len(set(outcome)) == 1:
        return f"**{_CELLS[outcome[0]]}** in every target"
    parts = []
    for verdict, cell in _CELLS.items():
        if named := [target for one, target in zip(outcome, targets, strict=True) if one == verdict]:
            parts.append(f"**{cell}** in {', '.join(named)}")
    return "; ".join(parts)


def _together(alike: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    """The types that have the same fields here, and those fields."""
    by_fields: dict[tuple[str, ...], list[str]] = {}
    for structure, fields in alike.items():
        by_fields.setdefault(tuple(fields), []).append(structure)
    for fields, structures in by_fields.items():
        yield _quoted(structures), _quoted(fields)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
