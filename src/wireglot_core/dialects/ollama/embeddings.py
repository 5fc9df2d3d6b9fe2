"""`/api/embed`, and its predecessor `/api/embeddings`.

According to ollama/ollama fb30760 (api/types.go: EmbedRequest, EmbeddingRequest; server/routes.go:
EmbedHandler).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot_core.dialects.body import Body, stated_model
from wireglot_core.dialects.capabilities import EmbeddingForm, Embeddings, EmbedOperation
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.embeddings import (
    by_name,
    lose_task,
    no_inputs,
    plain_vectors,
    read_dimensions,
    read_vector,
    same_dimensions,
    text_of,
)
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.ollama.answer import is_blank
from wireglot_core.dialects.ollama.extras import NAME
from wireglot_core.dialects.ollama.lost_fields import LOST
from wireglot_core.dialects.passthrough import shaped
from wireglot_core.dialects.usage_checks import losses_of_usage
from wireglot_core.ir.content import Extra
from wireglot_core.ir.embedding import Embedding, EmbeddingInput, EmbeddingRequest, EmbeddingResponse
from wireglot_core.ir.errors import Unsupported, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import splice

_REQUEST: Final = frozenset({"model", "input", "truncate", "dimensions"})
_LEGACY: Final = frozenset({"model", "prompt"})
_RESPONSE: Final = frozenset({"model", "embeddings", "embedding", "prompt_eval_count"})
_COUNT: Final = "prompt_eval_count"
_ONE: Final = "one"
"""Form value of `input` if it is a string."""


# --- requests


def parse_request(body: dict[str, Any], context: Context) -> EmbeddingRequest:
    fields = Fields(body)
    given = fields.value.get("input")
    form: dict[str, Any] = {}
    if type(given) is str:
        texts: tuple[str, ...] = (given,) if given else ()
        form["input"] = _ONE
    elif given is None or type(given) is list:
        texts = fields.texts("input")
    else:
        raise fields.wrong("input", "a string or an array of strings")
    if not texts:
        raise no_inputs("$.input")
    dimensions = fields.integer("dimensions")
    if dimensions == 0:
        form["dimensions"], dimensions = 0, None
    dimensions = read_dimensions(dimensions, "$.dimensions")
    truncates = fields.boolean("truncate")
    return EmbeddingRequest(
        fields.text_or("model"),
        tuple([EmbeddingInput(text, dimensions, truncates=truncates) for text in texts]),
        extra=fields.rest(_REQUEST, NAME, form),
    )


def parse_legacy_request(body: dict[str, Any], context: Context) -> EmbeddingRequest:
    fields = Fields(body)
    prompt = fields.text_or("prompt")
    if not prompt:
        raise no_inputs("$.prompt")
    return EmbeddingRequest(
        fields.text_or("model"), (EmbeddingInput(prompt),), extra=fields.rest(_LEGACY, NAME)
    )


def render_request(request: EmbeddingRequest, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    texts = _texts(request, losses)
    form = own_form(request.extra, NAME)
    body: dict[str, Any] = {
        "model": request.model or context.model,
        "input": texts[0] if len(texts) == 1 and form.get("input") == _ONE else texts,
    }
    dimensions = same_dimensions(request)
    if dimensions is not None or "dimensions" in form:
        body["dimensions"] = dimensions or 0
    truncates = request.inputs[0].truncates
    for index, given in enumerate(request.inputs):
        if given.truncates != truncates:
            path = f"$.inputs[{index}].truncates"
            raise Unsupported("all inputs of a request must be cut, or none", path)
    if truncates is not None:
        body["truncate"] = truncates
    return Rendered({**body, **own_fields(request.extra, NAME)}, tuple(losses))


def render_legacy_request(request: EmbeddingRequest, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    (text,) = _texts(request, losses)
    given = request.inputs[0]
    if given.dimensions is not None:
        raise Unsupported("this endpoint does not support dimensions", "$.inputs[0].dimensions")
    if given.truncates is not None:
        losses.append(
            Loss("$.inputs[0].truncates", "embedding.truncation", "dropped", "it cannot be chosen here")
        )
    body = {"model": request.model or context.model, "prompt": text}
    return Rendered({**body, **own_fields(request.extra, NAME)}, tuple(losses))


def _texts(request: EmbeddingRequest, losses: list[Loss]) -> list[str]:
    texts = []
    for index, given in enumerate(request.inputs):
        path = f"$.inputs[{index}]"
        texts.append(text_of(given, path, losses))
        lose_task(given, path, losses)
        LOST.of(given, path, losses)
    LOST.of(request, "$", losses)
    return texts


# --- answers


def parse_response(body: dict[str, Any], context: Context) -> EmbeddingResponse:
    fields = Fields(body, fault=UpstreamFault)
    if fields.value.get("embeddings") is None and "embedding" in fields.value:
        vectors: tuple[Embedding, ...] = (Embedding(read_vector(fields.value["embedding"], "$.embedding")),)
    else:
        vectors = plain_vectors(fields.value.get("embeddings"), "$.embeddings")
    return EmbeddingResponse(
        fields.text_or("model"),
        vectors,
        usage=_usage(fields.value.get(_COUNT)),
        extra=fields.rest(_RESPONSE, NAME),
    )


def _usage(count: Any) -> Usage | None:
    if type(count) is not int or count < 0:
        return None
    return Usage(input=count, raw=Extra(NAME, {}, {_COUNT: count}))


def render_response(
    response: EmbeddingResponse, context: Context, request: EmbeddingRequest
) -> Rendered[dict[str, Any]]:
    losses = _answer_losses(response)
    body: dict[str, Any] = {
        "model": response.model or request.model or context.model,
        "embeddings": [list(embedding.values) for embedding in response.embeddings],
        **own_fields(response.extra, NAME),
    }
    if response.usage is not None:
        body[_COUNT] = response.usage.total
    return Rendered(body, tuple(losses))


def render_legacy_response(
    response: EmbeddingResponse, context: Context, request: EmbeddingRequest
) -> Rendered[dict[str, Any]]:
    """The older form has no field for usage, nor do its clients expect one."""
    losses = _answer_losses(response)
    (embedding,) = response.embeddings
    return Rendered({"embedding": list(embedding.values), **own_fields(response.extra, NAME)}, tuple(losses))


def _answer_losses(response: EmbeddingResponse) -> list[Loss]:
    losses: list[Loss] = []
    for index, embedding in enumerate(response.embeddings):
        LOST.of(embedding, f"$.embeddings[{index}]", losses)
    if response.usage is not None:
        losses_of_usage(response.usage.raw, NAME, f"$.{_COUNT}", losses)
    LOST.of(response, "$", losses)
    return losses


class _Glance(msgspec.Struct):
    prompt_eval_count: Any = None


_read: Final = msgspec.json.Decoder(_Glance).decode


def _idle(body: Body, context: Context) -> dict[str, Any] | None:
    """For Ollama a request without inputs means to load the model, which needs no action here."""
    asks_nothing = is_blank(body.outline, {"input": ("", [])})
    return {"model": stated_model(body.outline), "embeddings": []} if asks_nothing else None


def _idle_legacy(body: Body, context: Context) -> dict[str, Any] | None:
    return {"embedding": []} if is_blank(body.outline, {"prompt": ("",)}) else None


def _glance(body: bytes) -> Usage | None:
    answer = shaped(body, _read)
    return _usage(answer.prompt_eval_count) if answer is not None else None


def _operation(body: dict[str, Any]) -> EmbedOperation:
    return "embed_one" if "prompt" in body and "input" not in body else "embed"


def _rename(body: bytes, model: str) -> bytes:
    return splice(body, {"model": encode(model)})


EMBEDDINGS: Final = Embeddings(
    forms={
        "embed": EmbeddingForm(
            parse_request=parse_request,
            render_request=render_request,
            render_response=render_response,
            place=by_name({"content": "input", "truncates": "truncate"}),
            rename=_rename,
            idle=_idle,
        ),
        "embed_one": EmbeddingForm(
            parse_request=parse_legacy_request,
            render_request=render_legacy_request,
            render_response=render_legacy_response,
            place=by_name({"content": "prompt"}),
            rename=_rename,
            idle=_idle_legacy,
            max_inputs=1,
            tells_usage=False,
        ),
    },
    operation=_operation,
    parse_response=parse_response,
    usage=_glance,
)
