"""Embeddings: the texts that a client wants as vectors, and the returned vectors."""

from __future__ import annotations

from typing import Literal

import msgspec

from wireglot_core.ir.content import Extra, Part
from wireglot_core.ir.outcome import Usage

Encoding = Literal["", "float", "base64"]
"""The encoding of vectors that the client requests; "": not specified. base64 is of little-endian float32."""


class TokenIds(msgspec.Struct, frozen=True):
    """A text as the tokens of a tokenizer, which only the model's own provider can read."""

    ids: tuple[int, ...]


class EmbeddingInput(msgspec.Struct, frozen=True, omit_defaults=True):
    """The input of one vector: a text, its tokens, or several parts (texts, pictures) together."""

    content: str | TokenIds | tuple[Part, ...]
    dimensions: int | None = None
    task: str = ""
    """The purpose of the vector, as one of Google's values (`RETRIEVAL_QUERY`): no other vendor has any."""
    title: str = ""
    """The title of the document that the text is from."""
    truncates: bool | None = None
    """Whether the end of a text that is too long is cut off; False: it is an error."""
    extra: Extra | None = None


class EmbeddingRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    model: str
    inputs: tuple[EmbeddingInput, ...]
    encoding: Encoding = ""
    user: str = ""
    extra: Extra | None = None


class Embedding(msgspec.Struct, frozen=True, omit_defaults=True):
    values: tuple[float, ...]
    extra: Extra | None = None


class EmbeddingResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """`embeddings` are in the order of the inputs."""

    model: str
    embeddings: tuple[Embedding, ...]
    usage: Usage | None = None
    extra: Extra | None = None
