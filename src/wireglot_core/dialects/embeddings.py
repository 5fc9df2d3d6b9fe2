"""Embeddings on the wire: code common to the dialects that have them."""

from __future__ import annotations

import math
import re
import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from wireglot_core.dialects.capabilities import EmbeddingForm, EmbedOperation
from wireglot_core.dialects.common_losses import JOINED_TEXTS
from wireglot_core.dialects.fields import describe
from wireglot_core.dialects.lost_fields import Lost
from wireglot_core.ir.content import Text
from wireglot_core.ir.embedding import (
    Embedding,
    EmbeddingInput,
    EmbeddingRequest,
    EmbeddingResponse,
    TokenIds,
)
from wireglot_core.ir.errors import ClientFault, Unsupported, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import added

_FLOAT: Final = "f"
_MAX_INTEGER: Final = 2**53
"""The largest integer that a number of an embedding request may have: floats are exact up to here."""
_BIG_ENDIAN: Final = sys.byteorder == "big"
_PLACE: Final = re.compile(r"\$\.inputs\[(\d+)\](?:\.(\w+))?(.*)", re.DOTALL)


# --- vectors


def read_vector(value: Any, path: str) -> tuple[float, ...]:
    """A vector as numbers, or as base64 of little-endian float32. It must be finite: no index accepts
    others."""
    if type(value) is str:
        return _unpacked(value, path)
    if type(value) is not list or not value:
        raise UpstreamFault(f"expected numbers, got {describe(value)}", path)
    for index, number in enumerate(value):
        if type(number) is not float and type(number) is not int:
            raise UpstreamFault(f"expected a number, got {describe(number)}", f"{path}[{index}]")
        if type(number) is int and abs(number) > _MAX_INTEGER:
            raise UpstreamFault("expected a number in the range of float32", f"{path}[{index}]")
    return tuple(value)


def _unpacked(text: str, path: str) -> tuple[float, ...]:
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        raise UpstreamFault("expected base64", path) from None
    if not data or len(data) % 4:
        raise UpstreamFault("expected base64 of float32 numbers", path)
    numbers = array(_FLOAT, data)
    if _BIG_ENDIAN:
        numbers.byteswap()
    if not all(map(math.isfinite, numbers)):
        raise UpstreamFault("expected finite numbers", path)
    return tuple(numbers)


def packed(values: Sequence[float], path: str) -> str:
    """base64 of little-endian float32."""
    try:
        numbers = array(_FLOAT, values)
    except OverflowError:  # more than float32 has
        raise UpstreamFault("expected numbers in the range of float32", path) from None
    if not all(map(math.isfinite, numbers)):
        raise UpstreamFault("expected numbers in the range of float32", path)
    if _BIG_ENDIAN:
        numbers.byteswap()
    return b64encode(numbers.tobytes()).decode()


def plain_vectors(value: Any, path: str) -> tuple[Embedding, ...]:
    """Vectors without anything but their numbers."""
    if type(value) is not list:
        raise UpstreamFault(f"expected an array, got {describe(value)}", path)
    return tuple(Embedding(read_vector(item, f"{path}[{index}]")) for index, item in enumerate(value))


# --- inputs


def read_dimensions(value: int | None, path: str) -> int | None:
    if value is not None and value <= 0:
        raise ClientFault("expected a number above 0", path)
    return value


def no_inputs(path: str) -> ClientFault:
    return ClientFault("expected at least one input", path)


def text_of(given: EmbeddingInput, path: str, losses: list[Loss]) -> str:
    """The text of an input, for dialects that embed only texts. Anything else would give a different
    vector."""
    content = given.content
    if type(content) is str:
        return content
    if isinstance(content, TokenIds):
        raise Unsupported("only the model's own provider can read token ids: send the text", path)
    texts = []
    for index, part in enumerate(content):
        if type(part) is not Text:
            raise Unsupported("only texts can be embedded by this model's API", f"{path}.content[{index}]")
        texts.append(part.text)
    if len(texts) > 1:
        losses.append(JOINED_TEXTS.at(f"{path}.content"))
    return "\n".join(texts)


def same_dimensions(request: EmbeddingRequest) -> int | None:
    """The number of dimensions, for dialects that set it once for all inputs."""
    first = request.inputs[0].dimensions if request.inputs else None
    for index, each in enumerate(request.inputs):
        if each.dimensions != first:
            path = f"$.inputs[{index}].dimensions"
            raise Unsupported("all inputs of a request must have the same dimensions", path)
    return first


NO_TITLE: Final = Lost("embedding.title", "dropped", "titles cannot be sent")


def lose_task(given: EmbeddingInput, path: str, losses: list[Loss]) -> None:
    """Reports the purpose, which only Google's dialects accept in addition to a text."""
    if given.task:
        losses.append(
            Loss(f"{path}.task", "embedding.task", "dropped", f"{given.task}: no task can be named")
        )


def by_name(names: Mapping[str, str], items: str = "") -> Callable[[str, EmbeddingRequest], str]:
    """A function that converts a neutral path to a path in a client's request. `names`: the names of the
    fields of an input; `items`: the array of inputs, "": they are fields of the request."""

    def place(path: str, request: EmbeddingRequest) -> str:
        found = _PLACE.fullmatch(path)
        if found is None:
            return path
        index, field, rest = found.groups()
        name = names.get(field or "content", field or "")
        if items:
            return f"$.{items}[{index}].{name}{rest}"
        several = len(request.inputs) > 1 and (field or "content") == "content"
        return f"$.{name}[{index}]{rest}" if several else f"$.{name}{rest}"

    return place


# --- endpoints


def fitting_form(
    forms: Iterable[tuple[EmbedOperation, EmbeddingForm]], inputs: int
) -> tuple[EmbedOperation, EmbeddingForm]:
    """The first form that accepts this many inputs; else the one that accepts the most."""
    there = list(forms)
    for operation, form in there:
        if not form.max_inputs or form.max_inputs >= inputs:
            return operation, form
    return max(there, key=lambda each: each[1].max_inputs)


def joined_embeddings(answers: Sequence[EmbeddingResponse], counts: Sequence[int]) -> EmbeddingResponse:
    """Joins the answers to the parts of one request. `counts`: the inputs of each part. Each input must have
    its vector: a client that got fewer could not know which are missing."""
    for answer, inputs in zip(answers, counts, strict=True):
        if len(answer.embeddings) != inputs:
            raise UpstreamFault(f"{len(answer.embeddings)} vectors for {inputs} inputs")
    whole = answers[0]
    for answer in answers[1:]:
        whole = msgspec.structs.replace(
            whole, embeddings=whole.embeddings + answer.embeddings, usage=added(whole.usage, answer.usage)
        )
    return whole
