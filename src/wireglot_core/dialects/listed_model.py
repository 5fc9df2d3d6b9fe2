"""What is known of a model that clients may use, to be listed in any dialect's form, and the paging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from wireglot_core.ir.errors import ClientFault

Query = dict[str, list[str]]
"""As `urllib.parse.parse_qs` reads one."""

# Models on one page of a list of models.
PAGE_MAX: Final = 1000
# Characters of a model's title and owner in a list.
_MAX_NAME: Final = 256


class ModelFile(msgspec.Struct, frozen=True):
    """The file from which a self-hosted server has loaded a model, as far as it is reported."""

    size: int = 0
    """Bytes."""
    digest: str = ""
    modified: str = ""
    """ISO 8601."""
    format: str = ""
    family: str = ""
    parameters: str = ""
    """The number of parameters as text: "8.2B"."""
    quantization: str = ""


class ListedModel(msgspec.Struct, frozen=True):
    """A model name that clients may use. Unknown figures are 0."""

    id: str
    provider: str
    title: str = ""
    context: int = 0
    """Maximum input tokens."""
    output: int = 0
    """Maximum output tokens."""
    dialects: tuple[str, ...] = ()
    """The dialects of its provider."""
    thinking: str = ""
    """Its thinking style, as named in the catalog; "": it does not think."""
    efforts: tuple[str, ...] = ()
    thinking_off: bool = True
    hosted_tools: bool = False
    media: tuple[str, ...] = ()
    output_formats: tuple[str, ...] = ()
    embeds: bool = False
    """An embedding model: it returns vectors for texts and generates no answers."""
    dimensions: int = 0
    """The length of its vectors."""
    can: frozenset[str] | None = None
    """Capabilities reported by its own server, as in `UpstreamModel`; None: not reported."""
    file: ModelFile | None = None

    @property
    def thinks(self) -> bool:
        return bool(self.thinking) if self.can is None else "thinking" in self.can

    @property
    def calls_tools(self) -> bool:
        """Whether the model calls tools, as nearly all do."""
        return not self.embeds and (self.can is None or "tools" in self.can)


def page_size(query: Query, name: str, usual: int, *, zero_is_usual: bool = False) -> int:
    """The page size; more than the maximum means the maximum, as it does for the vendors."""
    text = query.get(name, [""])[-1]
    if not text:
        return usual
    if not (text.isascii() and text.isdigit()):
        raise ClientFault(f"expected a whole number from 1 to {PAGE_MAX}", name)
    number = int(text[:6])  # enough digits to be too many
    if number == 0:
        if zero_is_usual:
            return usual
        raise ClientFault(f"expected a whole number from 1 to {PAGE_MAX}", name)
    return min(number, PAGE_MAX)


def position(listing: Sequence[ListedModel], identifier: str, name: str) -> int:
    """The index of the model that a cursor names."""
    for index, model in enumerate(listing):
        if model.id == identifier:
            return index
    raise ClientFault("expected the id of a listed model", name)


class UpstreamModel(msgspec.Struct, frozen=True):
    """A model as its server lists it. Figures that are not reported are 0."""

    id: str
    title: str = ""
    context: int = 0
    output: int = 0
    dimensions: int = 0
    can: frozenset[str] | None = None
    """Capabilities, as named by Ollama: `completion`, `tools`, `vision`, `audio`, `thinking`, `embedding`;
    None: not in the list."""
    file: ModelFile | None = None

    @property
    def embeds(self) -> bool:
        return self.can is not None and "embedding" in self.can and "completion" not in self.can

    @property
    def media(self) -> tuple[str, ...]:
        return tuple(medium for word, medium in _MEDIA if self.can is not None and word in self.can)


_MEDIA: Final = (("vision", "image"), ("audio", "audio"))
_CONTEXT: Final = (
    "context_length", "context_window", "max_model_len", "max_context_length", "max_input_tokens",
    "inputTokenLimit",
)  # fmt: skip
_OUTPUT: Final = ("max_output_tokens", "max_completion_tokens", "outputTokenLimit", "max_tokens")
_NO_ANSWERS: Final = frozenset({"embedding", "embeddings", "rerank", "moderation", "image", "audio", "video"})


def read_list(document: Any, most: int) -> tuple[UpstreamModel, ...]:
    """The models of a list in any dialect's form: servers that imitate one mix them. Models that generate no
    answers (image or embedding models) are left out, unless the list reports capabilities. A document that is
    not a list has none."""
    entries = document
    if isinstance(document, dict):
        entries = document.get("data", document.get("models"))
    if not isinstance(entries, list):
        return ()
    found: dict[str, UpstreamModel] = {}
    for entry in entries:
        model = _read_model(entry) if isinstance(entry, dict) else None
        if model is not None and len(found) < most:
            found.setdefault(model.id, model)
    return tuple(found.values())


def _read_model(entry: dict[str, Any]) -> UpstreamModel | None:
    name = next((value for key in ("id", "name", "model") if _is_name(value := entry.get(key))), "")
    methods = entry.get("supportedGenerationMethods")
    if not name or (isinstance(methods, list) and "generateContent" not in methods):
        return None
    if isinstance(kind := entry.get("type"), str) and kind in _NO_ANSWERS:
        return None
    titles = (entry.get(key) for key in ("display_name", "displayName", "name"))
    title = next((text for text in titles if isinstance(text, str) and text and text != name), "")
    details = entry.get("details")
    details = details if isinstance(details, dict) else {}
    return UpstreamModel(
        name.removeprefix("models/"),
        title[:_MAX_NAME],
        context=_figure(entry, _CONTEXT) or _figure(details, _CONTEXT),
        output=_figure(entry, _OUTPUT),
        dimensions=_figure(details, ("embedding_length",)),
        can=_read_words(entry.get("capabilities")),
        file=_read_file(entry, details) if details else None,
    )


def _read_words(can: Any) -> frozenset[str] | None:
    """Other servers have lists of this name with their own values."""
    words = frozenset(word for word in can if isinstance(word, str)) if isinstance(can, list) else frozenset()
    return words if words & {"completion", "embedding"} else None


def _read_file(entry: dict[str, Any], details: dict[str, Any]) -> ModelFile:
    def text(holder: dict[str, Any], key: str) -> str:
        value = holder.get(key)
        return value[:_MAX_NAME] if isinstance(value, str) else ""

    return ModelFile(
        size=_figure(entry, ("size",)),
        digest=text(entry, "digest"),
        modified=text(entry, "modified_at"),
        format=text(details, "format"),
        family=text(details, "family"),
        parameters=text(details, "parameter_size"),
        quantization=text(details, "quantization_level"),
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME and value.isprintable() and " " not in value


def _figure(entry: dict[str, Any], keys: tuple[str, ...]) -> int:
    return next((value for key in keys if type(value := entry.get(key)) is int and value > 0), 0)
