"""Where a provider takes which request: the paths of a dialect behind its base URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wireglot.dialects.base import UpstreamOperation as Operation
from wireglot.dialects.registry import surface
from wireglot.providers.spec import ProviderSpec

__all__ = ["NoEndpoint", "Operation", "endpoint", "placeholders"]

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._~@/-]")
"""Characters of a model name that would mean something else in a path."""


class NoEndpoint(ValueError):
    pass


def placeholders(url: str) -> list[str]:
    return _PLACEHOLDER.findall(url)


def endpoint(
    spec: ProviderSpec, dialect: str, operation: Operation, model: str = "", variables: Mapping[str, str] = {}
) -> str:
    """The URL for one request. A name that could leave its place in the path is refused."""
    upstream = surface(dialect).upstream
    path = upstream.paths.get(operation) if upstream is not None else None
    if path is None:
        raise NoEndpoint(f"{dialect} has no endpoint to {operation}")
    base = spec.base_urls.get(dialect, spec.base_url).rstrip("/")
    if "{" in base:
        known = {**spec.variables, **variables}
        base = _PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), base)
    if "{model}" in path:
        if not all(segment.strip(".") for segment in model.split("/")):
            raise NoEndpoint(f"{model!r} cannot stand in a path")
        path = path.replace("{model}", _UNSAFE.sub(lambda found: _quoted(found[0]), model))
    return base + path


def _quoted(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))
