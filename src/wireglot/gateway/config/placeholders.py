"""Values for the `{placeholders}` of a provider's base URLs (project, location)."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot.gateway.config.problems import kind, shown
from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table
from wireglot.providers.endpoints import variables_of
from wireglot.providers.spec import ProviderSpec

_VALUE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")


def _regional(rule: dict[str, str], read: dict[str, str]) -> str | None:
    """A default that follows from another variable; None where that one is missing, which is told already."""
    by = read.get(rule["by"])
    return None if by is None else rule.get(by, rule["*"]).replace("{}", by)


def read_variables(table: Table, spec: ProviderSpec | None, references: References) -> dict[str, str]:
    """Values of the placeholders in base URLs: the table's, else the catalog's, which may be `env:` ones."""
    nested = table.table("variables")
    given: dict[str, tuple[str, Any]] = {
        name: (nested.at(name), value) for name, value in nested.values.items()
    }
    for name in ("project", "location"):
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
        path, value = given.get(name, (table.at(name), spec.variables.get(name)))
        if value is None and name in spec.regional:
            value = _regional(spec.regional[name], read)
        if value is None:
            references.problems.add(path, f"a value for {{{name}}} in the base URL", "nothing")
            continue
        secret = references.text(value, path)
        if secret is not None and not _VALUE.fullmatch(secret.value):
            references.problems.add(path, "letters, digits, '.', '_', ':' and '-'", kind(secret.value))
        elif secret is not None:
            read[name] = secret.value
    return read
