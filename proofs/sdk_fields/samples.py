"""Small documents of an SDK's types: what is demanded, and one field more."""

from __future__ import annotations

import datetime
import enum
import functools
import inspect
import typing
from collections.abc import Iterable
from typing import Any, Final, get_args, get_origin

from proofs.sdk_fields.shapes import (
    Place,
    bare,
    fields_of,
    is_list,
    is_mapping,
    is_structure,
    is_union,
    required_of,
    structures_in,
)

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_OPTIONS = 6
"""Values of one field that are tried before it is called without effect."""
_TEXTS: dict[str, str] = {
    "arguments": '{"a": 1}',
    "data": _PIXEL,
    "file_data": f"data:application/pdf;base64,{_PIXEL}",
    "file_uri": "https://example.org/a.png",
    "fileUri": "https://example.org/a.png",
    "image_url": "https://example.org/a.png",
    "url": "https://example.org/a.png",
    "mimeType": "image/png",
    "mime_type": "image/png",
    "model": "model",
    "name": "look",
    "call_id": "call_1",
    "tool_call_id": "call_1",
    "tool_use_id": "toolu_1",
}
"""Texts that must have a form, by the field they stand in."""


def sample(hint: Any, field: str = "", other: bool = False) -> Any:
    """The simplest value of a type; with `other`, a second one that differs where there are two."""
    hint = bare(hint)
    origin = get_origin(hint)
    if is_union(hint):
        options = [option for option in map(bare, get_args(hint)) if option is not type(None)]
        return sample(options[0], field, other)
    if origin is typing.Literal:
        values = get_args(hint)
        return values[-1] if other else values[0]
    if is_mapping(hint):
        return {"key": sample(get_args(hint)[1], "", other)}
    if is_list(hint):
        return [sample(get_args(hint)[0], field, other)]
    if is_structure(hint):
        return minimal(hint)
    if inspect.isclass(hint):
        return _plain(hint, field, other)
    return {"a": 2 if other else 1}


def samples(hint: Any, field: str) -> list[Any]:
    """Values of a type that may mean different things: the first may be what holds anyway."""
    hint = bare(hint)
    if is_union(hint):
        options = [option for option in map(bare, get_args(hint)) if option is not type(None)]
        return [value for option in options[:_OPTIONS] for value in samples(option, field)]
    if get_origin(hint) is typing.Literal:
        return list(get_args(hint))[:_OPTIONS]
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return [each.value for each in hint if "UNSPECIFIED" not in str(each.value)][:_OPTIONS]
    if is_list(hint):
        return [[value] for value in samples(get_args(hint)[0], field)]
    if hint is bool:
        return [True, False]
    return [sample(hint, field)]


def words_of(hint: Any) -> list[str]:
    """The words that a field may hold, where its type lists them; in a list too."""
    hint = bare(hint)
    if is_union(hint) or is_list(hint):
        return [word for option in get_args(hint) for word in words_of(option)]
    if get_origin(hint) is typing.Literal:
        return [word for word in get_args(hint) if isinstance(word, str)]
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return [str(each.value) for each in hint if "UNSPECIFIED" not in str(each.value)]
    return []


def spoken(hint: Any, word: str) -> Any:
    """A word as the field holds it."""
    options = [option for option in map(bare, get_args(hint)) if words_of(option)]
    hint = bare(hint)
    if is_union(hint):
        return spoken(options[0], word) if options else word
    return [word] if is_list(hint) else word


_LIMITS: Final = dict.fromkeys(
    ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"), 9000
)
"""No endpoint raises or lowers these."""


def _plain(kind: type, field: str, other: bool) -> Any:
    if issubclass(kind, enum.Enum):
        values = [each.value for each in kind if "UNSPECIFIED" not in str(each.value)]
        return values[-1] if other else values[0]
    if kind is bool:
        return not other
    if kind is int and field in _LIMITS:
        return _LIMITS[field] + other
    if kind is int:
        return 9 if other else 7
    if kind is float:
        return 0.25 if other else 0.5
    if kind is str:
        text = _TEXTS.get(field, "text")
        return f"{text}2" if other else text
    if kind is bytes:
        return _PIXEL
    if issubclass(kind, datetime.datetime):
        return "2026-01-01T00:00:00Z"
    return {"a": 2 if other else 1}


def minimal(structure: type, root: bool = False) -> dict[str, Any]:
    """Only what the type demands. Lists of structures are empty, but for those of the root."""
    return dict(_minimal(structure, root))


@functools.cache
def _minimal(structure: type, root: bool) -> dict[str, Any]:
    hints = fields_of(structure)
    required = required_of(structure)
    return {
        name: [] if not root and _holds_structures(hint) else sample(hint, name)
        for name, hint in hints.items()
        if name in required
    }


def _holds_structures(hint: Any) -> bool:
    hint = bare(hint)
    return is_list(hint) and any(listed for _, listed, _ in structures_in(hint))


def embed(root: dict[str, Any], path: Place, leaf: dict[str, Any], inner: Iterable[dict[str, Any]]) -> None:
    """Put `leaf` at its place below `root`; `inner` are the documents of the structures on the way."""
    current = root
    for step, document in zip(path, [*inner, leaf], strict=True):
        value: Any = document
        for _ in range(step.listed):
            value = [value]
        current[step.field] = {"key": value} if step.keyed else value
        current = document
