"""Values for the `{placeholders}` of a provider's base URLs (project, location)."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot.gateway.config.problems import kind, shown
from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table
from wireglot.providers.endpoints import variables_of
from wireglot.providers.spec import ProviderSpec

_SHORT: Final = ("project", "location")
"""Variables that a provider's own table may name, too."""
_VALUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")


def _regional(rule: dict[str, str], read: dict[str, str]) -> str | None:
    """A default that follows from another variable; None where that one is missing, which is told already."""
    by = read.get(rule["by"])
    return None if by is None else rule.get(by, rule["*"]).replace("{}", by)


def _unset(value: str | None, references: References) -> str:
    """The variable that a default of the catalog is looked for in, where it is not there."""
    name = value.removeprefix("env:") if value is not None and value.startswith("env:") else ""
    return "" if references.environ.get(name, "").strip() else name


def read_variables(table: Table, spec: ProviderSpec | None, references: References) -> dict[str, str]:
    """Values of the placeholders in base URLs: the table's, else the catalog's, which may be `env:` ones."""
    nested = table.table("variables")
    given: dict[str, tuple[str, Any]] = {
        name: (nested.at(name), value) for name, value in nested.values.items()
    }
    for name in _SHORT:
        value = table.raw(name)
        if value is not None:
            given[name] = (table.at(name), value)
    if spec is None:
        return {}
    wanted = dict.fromkeys(variables_of(spec))
    if "code-assist" in spec.dialects and "project" in given:
        wanted.setdefault("project")  # it goes into the body
    for name, (path, _) in given.items():
        if name not in wanted:
            expected = f"one of {', '.join(wanted)}" if wanted else "no variables: the base URL has none"
            references.problems.add(path, expected, shown(name))
    read: dict[str, str] = {}
    for name in sorted(wanted, key=lambda name: name in spec.regional):  # after what they follow from
        usual = table.at(name) if name in _SHORT else nested.at(name)
        path, value = given.get(name, (usual, spec.variables.get(name)))
        if value is None and name in spec.regional:
            value = _regional(spec.regional[name], read)
        unset = "" if name in given else _unset(value, references)
        if value is None or unset:
            instead = f", or {unset} in the environment" if unset else ""
            references.problems.add(path, f"a value for {{{name}}} in the base URL{instead}", "nothing")
            continue
        secret = references.text(value, path)
        if secret is not None and not _VALUE.fullmatch(secret.value):
            references.problems.add(path, "letters, digits, '.', '_', ':' and '-'", kind(secret.value))
        elif secret is not None:
            read[name] = secret.value
    return read
