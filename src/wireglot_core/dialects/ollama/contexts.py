"""The size of a model's context at an Ollama server: its maximum, the loaded size, and the requested one.

A server cuts the beginning of prompts that are longer than the loaded size. Without `num_ctx` it loads a
model with its own default size, and reloads one that was loaded in another.
"""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.fields import text_in
from wireglot_core.dialects.ollama.models import LATEST
from wireglot_core.dialects.surface import ContextForm

_LENGTH: Final = ".context_length"
_SET: Final = "num_ctx"
_ARCHITECTURE: Final = "general.architecture"


def _shown(document: Any) -> tuple[int, int]:
    """`/api/show`: the length named by the model's file, and `num_ctx` of its Modelfile."""
    if not isinstance(document, dict):
        return 0, 0
    info = document.get("model_info")
    most = 0
    if isinstance(info, dict):
        own = f"{text_in(info.get(_ARCHITECTURE))}{_LENGTH}"
        names = (own, *(name for name in info if name.endswith(_LENGTH)))
        most = next((size for name in names if (size := _size(info.get(name)))), 0)
    set_to = 0
    for line in text_in(document.get("parameters")).splitlines():
        name, _, value = line.strip().partition(" ")
        if name == _SET and (digits := value.strip()).isdecimal() and len(digits) < _DIGITS:
            set_to = int(digits)
    return most, set_to


_DIGITS: Final = 10


def _size(value: Any) -> int:
    return value if type(value) is int and 0 < value < 10**_DIGITS else 0


def _running(document: Any) -> dict[str, int]:
    """`/api/ps`: each loaded model, with and without the default tag."""
    listed = document.get("models") if isinstance(document, dict) else None
    found: dict[str, int] = {}
    for entry in listed if isinstance(listed, list) else ():
        size = _size(entry.get("context_length")) if isinstance(entry, dict) else 0
        if size:
            for name in {text_in(entry.get("name")), text_in(entry.get("model"))} - {""}:
                found[name] = found[name.removesuffix(LATEST)] = size
    return found


def _write(body: dict[str, Any], size: int) -> None:
    body["options"] = {**(body.get("options") or {}), _SET: size}


CONTEXTS: Final = ContextForm(
    ask=lambda model: {"model": model}, shown=_shown, running=_running, write=_write
)
