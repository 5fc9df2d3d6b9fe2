"""`headers` of a provider: those of its catalog entry, and those of the configuration over them."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot.gateway.config.problems import key_path, kind
from wireglot.gateway.config.references import References
from wireglot.gateway.config.table import Table
from wireglot.providers.spec import ProviderSpec

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that the gateway sets itself."""
_VALUE: Final = re.compile(r"[\x20-\x7e]+")


def read_headers(
    table: Table, spec: ProviderSpec | None, references: References
) -> tuple[tuple[str, str], ...]:
    headers = dict(spec.headers) if spec is not None else {}
    for name, value in _named(table).items():
        path = key_path(table.at("headers"), name)
        secret = references.text(value, path)
        if secret is not None and not _VALUE.fullmatch(secret.value):
            references.problems.add(path, "text of printable ASCII characters", kind(secret.value))
        elif secret is not None:
            headers = {other: kept for other, kept in headers.items() if other.lower() != name.lower()}
            headers[name] = secret.value
    return tuple(headers.items())


def may_be_set(name: str, value: str) -> bool:
    """Whether a configuration may say it."""
    return bool(_NAME.fullmatch(name) and name.lower() not in _OURS and _VALUE.fullmatch(value))


def _named(table: Table) -> dict[str, Any]:
    """Header names that may be set; the values are still references."""
    given = table.table("headers")
    for name in given.values:
        if not _NAME.fullmatch(name):
            given.wrong(name, "the name of a header", "another text")
        elif name.lower() in _OURS:
            given.wrong(name, "a header that the gateway does not set itself", name.lower())
    return {name: value for name, value in given.values.items() if _NAME.fullmatch(name)}
