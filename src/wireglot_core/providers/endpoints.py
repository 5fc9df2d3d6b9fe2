"""The URL of each operation at a provider: the dialect's paths after its base URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from wireglot_core.dialects.registry import surface
from wireglot_core.dialects.surface import UpstreamOperation as Operation
from wireglot_core.providers.spec import ProviderSpec

__all__ = ["NoEndpoint", "Operation", "endpoint", "key_check", "placeholders", "variables_of"]

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._~@/-]")
"""Characters of a model name that would mean something else in a path."""
_MODEL: Final = "model"


class NoEndpoint(ValueError):
    pass


def placeholders(url: str) -> list[str]:
    return _PLACEHOLDER.findall(url)


def variables_of(spec: ProviderSpec) -> list[str]:
    """The variables in a provider's URLs, except for the model."""
    paths = (path for form in spec.forms.values() for path in form.paths.values())
    urls = (spec.base_url, *spec.base_urls.values(), *paths)
    return list(dict.fromkeys(name for url in urls for name in placeholders(url) if name != _MODEL))


def endpoint(
    spec: ProviderSpec, dialect: str, operation: Operation, model: str = "", variables: Mapping[str, str] = {}
) -> str:
    """The URL for one request. A model name that could change other segments of the path is refused."""
    spoken = surface(dialect)
    upstream = spoken.upstream
    form = spec.forms.get(dialect) if spec.forms else None
    own = form is not None and bool(form.paths)
    paths = form.paths if form is not None and own else upstream.paths if upstream is not None else {}
    path = paths.get(operation)
    if path is None or operation in spec.lacks:
        raise NoEndpoint(f"{dialect} has no endpoint to {operation}")
    listed = spoken.family if upstream is not None and upstream.of_family else dialect
    base = spec.base_urls.get(listed, spec.base_url).rstrip("/")
    if "{" in base or own:
        known = {**spec.variables, **variables}
        base = _filled(base, known)
        path = _filled(path, known) if own else path
    if "{model}" in path:
        if not all(segment.strip(".") for segment in model.split("/")):
            raise NoEndpoint(f"{model!r} cannot be used in a path")
        name = _UNSAFE.sub(lambda found: _quoted(found[0]), model)
        # Names with a slash (an ARN of Amazon's) are one segment where the path has one for the model.
        path = path.replace("{model}", name.replace("/", "%2F") if own else name)
    return base + path


def key_check(spec: ProviderSpec, variables: Mapping[str, str] = {}) -> str:
    """The URL that requires a valid key; "" if the list of models does."""
    if not spec.key_check:
        return ""
    return _filled(spec.base_url.rstrip("/"), {**spec.variables, **variables}) + spec.key_check


def _filled(url: str, known: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), url)


def _quoted(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))
