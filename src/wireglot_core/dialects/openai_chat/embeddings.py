"""OpenAI's embeddings API."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot_core.dialects.capabilities import EmbeddingForm, Embeddings, EmbedOperation
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.embeddings import (
    by_name,
    lose_task,
    no_inputs,
    packed,
    read_dimensions,
    read_vector,
    same_dimensions,
    text_of,
)
from wireglot_core.dialects.fields import Fields, describe, own_fields, own_form
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.dialects.openai_chat.lost_fields import LOST
from wireglot_core.dialects.openai_chat.outcome import parse_usage
from wireglot_core.dialects.passthrough import shaped
from wireglot_core.dialects.usage_checks import losses_of_usage
from wireglot_core.ir.embedding import (
    Embedding,
    EmbeddingInput,
    EmbeddingRequest,
    EmbeddingResponse,
    Encoding,
    TokenIds,
)
from wireglot_core.ir.errors import ClientFault, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.usage import counts_of
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import splice

_REQUEST: Final = frozenset({"model", "input", "dimensions", "encoding_format", "user"})
_RESPONSE: Final = frozenset({"object", "data", "model", "usage"})
_ENTRY: Final = frozenset({"object", "index", "embedding"})
_ENCODINGS: Final[dict[str, Encoding]] = {"float": "float", "base64": "base64"}
_ONE: Final = "one"
"""Form value of `input` if it is not an array of inputs."""


# --- requests


def parse_request(body: dict[str, Any], context: Context) -> EmbeddingRequest:
    fields = Fields(body)
    given = fields.value.get("input")
    contents, form = _contents(given, fields)
    dimensions = read_dimensions(fields.integer("dimensions"), "$.dimensions")
    return EmbeddingRequest(
        fields.text_or("model"),
        tuple([EmbeddingInput(content, dimensions) for content in contents]),
        encoding=_encoding(fields),
        user=fields.text_or("user"),
        extra=fields.rest(_REQUEST, NAME, form),
    )


def _contents(given: Any, fields: Fields) -> tuple[list[str | TokenIds], dict[str, Any]]:
    """The inputs: a text, the tokens of one, or an array of either."""
    if type(given) is str:
        return [given], {"input": _ONE}
    if type(given) is not list:
        raise fields.wrong("input", "a string or an array")
    if not given:
        raise no_inputs("$.input")
    if type(given[0]) is int:
        return [TokenIds(_ids(given, "$.input"))], {"input": _ONE}
    contents: list[str | TokenIds] = []
    for index, item in enumerate(given):
        path = f"$.input[{index}]"
        if type(item) is str:
            contents.append(item)
        elif type(item) is list:
            contents.append(TokenIds(_ids(item, path)))
        else:
            raise ClientFault(f"expected a string or an array of token ids, got {describe(item)}", path)
    return contents, {}


def _ids(given: list[Any], path: str) -> tuple[int, ...]:
    if not given:
        raise ClientFault("expected at least one token id", path)
    for index, item in enumerate(given):
        if type(item) is not int or item < 0:
            raise ClientFault(f"expected a token id, got {describe(item)}", f"{path}[{index}]")
    return tuple(given)


def _encoding(fields: Fields) -> Encoding:
    stated = fields.text_or("encoding_format")
    if stated and stated not in _ENCODINGS:
        raise ClientFault("expected float or base64", "$.encoding_format")
    return _ENCODINGS.get(stated, "")


def render_request(request: EmbeddingRequest, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    contents: list[Any] = []
    for index, given in enumerate(request.inputs):
        path = f"$.inputs[{index}]"
        content = given.content
        contents.append(list(content.ids) if isinstance(content, TokenIds) else text_of(given, path, losses))
        lose_task(given, path, losses)
        LOST.of(given, path, losses)
    one = len(contents) == 1 and own_form(request.extra, NAME).get("input") == _ONE
    body: dict[str, Any] = {
        "model": request.model or context.model,
        "input": contents[0] if one else contents,
    }
    dimensions = same_dimensions(request)
    if dimensions is not None:
        body["dimensions"] = dimensions
    if request.encoding:
        body["encoding_format"] = request.encoding
    if request.user:
        body["user"] = request.user
    LOST.of(request, "$", losses)
    return Rendered({**body, **own_fields(request.extra, NAME)}, tuple(losses))


# --- answers


def parse_response(body: dict[str, Any], context: Context) -> EmbeddingResponse:
    fields = Fields(body, fault=UpstreamFault)
    entries = list(fields.objects("data")) if fields.array("data") else []
    found: dict[int, Embedding] = {}
    for position, entry in enumerate(entries):
        index = entry.integer("index")
        if index is None:
            index = position
        if index in found or not 0 <= index < len(entries):
            raise UpstreamFault("expected each index once", f"{entry.path}.index")
        values = read_vector(entry.value.get("embedding"), f"{entry.path}.embedding")
        found[index] = Embedding(values, entry.rest(_ENTRY, NAME))
    usage = fields.dict_or_none("usage")
    return EmbeddingResponse(
        fields.text_or("model"),
        tuple([found[index] for index in range(len(entries))]),
        usage=parse_usage(usage) if usage else None,
        extra=fields.rest(_RESPONSE, NAME),
    )


def render_response(
    response: EmbeddingResponse, context: Context, request: EmbeddingRequest
) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    is_packed = request.encoding == "base64"
    data = []
    for index, embedding in enumerate(response.embeddings):
        path = f"$.data[{index}]"
        values = embedding.values
        written: Any = packed(values, f"{path}.embedding") if is_packed else list(values)
        LOST.of(embedding, path, losses)
        data.append(
            {
                "object": "embedding",
                "index": index,
                "embedding": written,
                **own_fields(embedding.extra, NAME),
            }
        )
    LOST.of(response, "$", losses)
    body = {
        "object": "list",
        "data": data,
        "model": response.model or request.model or context.model,
        "usage": _usage(response.usage, losses),
    }
    return Rendered({**body, **own_fields(response.extra, NAME)}, tuple(losses))


def _usage(usage: Usage | None, losses: list[Loss]) -> dict[str, Any]:
    if usage is None:
        losses.append(Loss("$.usage", "usage.detail", "invented", "the upstream does not report it"))
        usage = Usage()
    raw = own_form(usage.raw, NAME)
    if raw and counts_of(parse_usage(raw)) == counts_of(usage):
        return dict(raw)
    losses_of_usage(usage.raw, NAME, "$.usage", losses)
    return {"prompt_tokens": usage.total_input, "total_tokens": usage.total}


class _Answer(msgspec.Struct):
    """The fields to decode of an answer that passes through."""

    usage: Any = None


_read: Final = msgspec.json.Decoder(_Answer).decode


def _glance(body: bytes) -> Usage | None:
    answer = shaped(body, _read)
    usage = answer.usage if answer is not None else None
    return parse_usage(usage) if type(usage) is dict else None


def _operation(body: dict[str, Any]) -> EmbedOperation:
    return "embed"


def _rename(body: bytes, model: str) -> bytes:
    return splice(body, {"model": encode(model)})


EMBEDDINGS: Final = Embeddings(
    forms={
        "embed": EmbeddingForm(
            parse_request=parse_request,
            render_request=render_request,
            render_response=render_response,
            place=by_name({"content": "input"}),
            rename=_rename,
            max_inputs=2048,  # "any array must be 2048 dimensions or less" (openai-python)
        )
    },
    operation=_operation,
    parse_response=parse_response,
    usage=_glance,
)
