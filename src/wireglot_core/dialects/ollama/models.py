"""`/api/tags`, `/api/show`, `/api/pull`, `/api/ps` and `/api/version`, as Ollama's clients read them.

Of a model's file a gateway knows only what its server lists: otherwise sizes are 0, and nothing is loaded
here. Known is what clients decide by: capabilities and the context length. GitHub Copilot in VS Code reads
the latter as `{architecture}.context_length`, and requires version 0.6.4 or newer. Koog (JetBrains) reads
that field and `{architecture}.embedding_length` wherever there is a `general.architecture`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final

from wireglot_core.dialects.capabilities import Assist
from wireglot_core.dialects.fields import Fields, text_in
from wireglot_core.dialects.listed_model import ListedModel, ModelFile, Query
from wireglot_core.dialects.surface import ModelLists

LATEST: Final = ":latest"
"""The default tag: `name` and `name:latest` are one model."""
VERSION: Final = "0.30.0"
"""The API served here is that of this version of Ollama, read 2026-08-21."""
_UNKNOWN_DATE: Final = "1970-01-01T00:00:00Z"
_ARCHITECTURE: Final = "wireglot"
_NO_FILE: Final = ModelFile()


def capabilities(model: ListedModel) -> list[str]:
    """Capabilities of a listed model: it generates text and calls tools, or embeds."""
    if model.embeds:
        return ["embedding"]
    found = ["completion", "tools"] if model.calls_tools else ["completion"]
    if "image" in model.media:
        found.append("vision")
    if "audio" in model.media:
        found.append("audio")
    if model.thinks:
        found.append("thinking")
    return found


def _details(model: ListedModel) -> dict[str, Any]:
    file = model.file or _NO_FILE
    family = file.family or model.provider
    details: dict[str, Any] = {
        "parent_model": "",
        "format": file.format,
        "family": family,
        "families": [family],
        "parameter_size": file.parameters,
        "quantization_level": file.quantization,
    }
    if model.context:
        details["context_length"] = model.context
    if model.dimensions:
        details["embedding_length"] = model.dimensions
    return details


def _render_entry(model: ListedModel) -> dict[str, Any]:
    file = model.file or _NO_FILE
    return {
        "name": model.id,
        "model": model.id,
        "modified_at": file.modified or _UNKNOWN_DATE,
        "size": file.size,
        "digest": file.digest or sha256(model.id.encode()).hexdigest(),
        "details": _details(model),
        "capabilities": capabilities(model),
    }


def render_list(listing: Sequence[ListedModel], query: Query) -> dict[str, Any]:
    return {"models": [_render_entry(model) for model in listing]}


def render_model(model: ListedModel) -> dict[str, Any]:
    return {
        "modelfile": f"FROM {model.id}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _details(model),
        "model_info": _info(model),
        "capabilities": capabilities(model),
        "modified_at": (model.file or _NO_FILE).modified or _UNKNOWN_DATE,
    }


def _info(model: ListedModel) -> dict[str, Any]:
    """An architecture is named only if both figures that follow it are known: clients that read one require
    the other. For a model that only generates text the length of its vectors is 0."""
    info: dict[str, Any] = {"general.basename": model.title or model.id}
    if model.context and (model.dimensions or not model.embeds):
        info["general.architecture"] = _ARCHITECTURE
        info[f"{_ARCHITECTURE}.context_length"] = model.context
        info[f"{_ARCHITECTURE}.embedding_length"] = model.dimensions
    return info


def _confirm(model: ListedModel) -> dict[str, Any]:
    """The answer for a model that has been pulled already; also the one line of a stream."""
    return {"status": "success"}


def named(body: dict[str, Any]) -> str:
    """The model that a request to `/api/show` names; `name` is the old field."""
    name = text_in(body.get("model")) or text_in(body.get("name"))
    if not name:
        raise Fields(body).wrong("model", "the name of a model")
    return name


MODELS: Final = ModelLists(
    render_list=render_list, render_model=render_model, named=named, confirm=_confirm, tells_more=True
)


def _answer(verb: str, body: dict[str, Any], models: Iterable[ListedModel] = ()) -> dict[str, Any] | None:
    match verb:
        case "version":
            return {"version": VERSION}
        case "ps":
            return {"models": []}
    return None


def _operation(name: str) -> dict[str, Any] | None:
    return None


ASSIST: Final = Assist(answer=_answer, operation=_operation)
