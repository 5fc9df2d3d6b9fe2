"""`embedContent` and `batchEmbedContents`.

Since 2026 both answers contain usage (https://ai.google.dev/api/embeddings#EmbeddingUsageMetadata).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from wireglot_core.dialects.capabilities import EmbeddingForm, Embeddings, EmbedOperation
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.embeddings import by_name, no_inputs, read_dimensions, read_vector
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.lost_fields import LOST
from wireglot_core.dialects.gemini.names import OWN, Names
from wireglot_core.dialects.gemini.outcome import read_usage
from wireglot_core.dialects.gemini.parts import PartParser
from wireglot_core.dialects.gemini.render_parts import PartRenderer
from wireglot_core.dialects.passthrough import shaped
from wireglot_core.dialects.usage_checks import losses_of_usage
from wireglot_core.ir.content import Extra, Part
from wireglot_core.ir.embedding import (
    Embedding,
    EmbeddingInput,
    EmbeddingRequest,
    EmbeddingResponse,
    TokenIds,
)
from wireglot_core.ir.errors import ClientFault, Unsupported, UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.usage import counts_of
from wireglot_core.wire.json import encode, repair_escapes
from wireglot_core.wire.splice import Outline, decode_items, splice

_PREFIX: Final = "models/"
_REQUEST: Final = Names("model", "content", "taskType", "title", "outputDimensionality", "embedContentConfig")
_CONFIG: Final = Names("taskType", "title", "outputDimensionality", "autoTruncate")
_BATCH: Final = Names("requests")
_ANSWER: Final = Names("embedding", "embeddings", "usageMetadata")
_VECTOR: Final = Names("values")
_SETTINGS: Final = ("taskType", "title", "outputDimensionality", "embedContentConfig")
_UNNAMED: Final = ""
"""Placeholder for the model of a request that names none."""
_UNSPECIFIED: Final = "TASK_TYPE_UNSPECIFIED"
_TASKS: Final = (
    _UNSPECIFIED,
    "RETRIEVAL_QUERY",
    "RETRIEVAL_DOCUMENT",
    "SEMANTIC_SIMILARITY",
    "CLASSIFICATION",
    "CLUSTERING",
    "QUESTION_ANSWERING",
    "FACT_VERIFICATION",
    "CODE_RETRIEVAL_QUERY",
)
"""The tasks, by enum number."""
_USAGE: Final = frozenset({"promptTokenCount", "prompt_token_count"})


# --- requests


def parse_one(body: dict[str, Any], context: Context) -> EmbeddingRequest:
    fields = _REQUEST.read(body, "$", ClientFault)
    given = _input(fields, context)
    return EmbeddingRequest(_model(fields), (given,))


def parse_batch(body: dict[str, Any], context: Context) -> EmbeddingRequest:
    fields = _BATCH.read(body, "$", ClientFault)
    requests = names.listed(fields.value.get("requests"))
    if not requests:
        raise no_inputs("$.requests")
    inputs = []
    model = ""
    for index, item in enumerate(requests):
        each = _REQUEST.read(item, f"$.requests[{index}]", ClientFault)
        named = _model(each)
        if model and named and named != model:
            raise ClientFault("expected the same model in all requests", f"{each.path}.model")
        model = model or named
        inputs.append(_input(each, context, batched=True))
    return EmbeddingRequest(model, tuple(inputs), extra=fields.rest(_BATCH.known, OWN))


def _model(fields: Fields) -> str:
    return fields.text_or("model").removeprefix(_PREFIX)


def _input(fields: Fields, context: Context, *, batched: bool = False) -> EmbeddingInput:
    content = names.CONTENT.child(fields, "content")
    beside = {key: value for key, value in content.value.items() if key != "parts"}
    unknown = {f"content.{key}": value for key, value in beside.items() if key != "role"}
    form: dict[str, Any] = {}
    if beside:
        form["content"] = beside
    config = fields.object_or_none("embedContentConfig")
    if config is not None:
        config = _CONFIG.read(config.value, config.path, ClientFault)
        unknown |= {
            f"embedContentConfig.{key}": value
            for key, value in config.value.items()
            if key not in _CONFIG.known
        }
    stated = {key: fields.value[key] for key in _SETTINGS if key in fields.value}
    settings = EmbeddingInput(
        _content(content, context),
        _dimensions(config) or _dimensions(fields),
        task=_task(config) or _task(fields),
        title=_title(config) or _title(fields),
        truncates=config.boolean("autoTruncate") if config is not None else None,
    )
    if stated != _plain_settings(settings):
        form["settings"] = stated
    if batched or "model" in fields.value:
        form["model"] = fields.value.get("model", _UNNAMED)
    rest = {
        key: value
        for key, value in fields.value.items()
        if key not in _REQUEST.known or (value is None and key not in _SETTINGS)
    }
    if rest or unknown or form:
        extra = Extra(OWN, {**rest, **unknown}, form)
        return msgspec.structs.replace(settings, extra=extra)
    return settings


def _content(content: Fields, context: Context) -> str | tuple[Part, ...]:
    """The content; the text alone if there is nothing else, as in most."""
    given = names.listed(content.value.get("parts"))
    if not given:
        raise ClientFault("expected at least one part", f"{content.path}.parts")
    only = given[0]
    if len(given) == 1 and type(only) is dict and len(only) == 1 and type(text := only.get("text")) is str:
        return text
    parser = PartParser(context, ClientFault)
    return tuple([parser.parse(part, f"{content.path}.parts[{at}]") for at, part in enumerate(given)])


def _dimensions(fields: Fields | None) -> int | None:
    if fields is None:
        return None
    value = names.integer(fields, "outputDimensionality")
    return read_dimensions(value, f"{fields.path}.outputDimensionality") if value else None


def _task(fields: Fields | None) -> str:
    if fields is None:
        return ""
    value = fields.value.get("taskType")
    if value is not None and type(value) not in (str, int):
        raise fields.wrong("taskType", "a string")
    task = names.enum_name(value, _TASKS)
    return "" if task == _UNSPECIFIED else task


def _title(fields: Fields | None) -> str:
    return "" if fields is None else fields.text_or("title")


def _plain_settings(given: EmbeddingInput) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if given.task:
        settings["taskType"] = given.task
    if given.title:
        settings["title"] = given.title
    if given.dimensions is not None:
        settings["outputDimensionality"] = given.dimensions
    return settings


def render_one(request: EmbeddingRequest, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    LOST.of(request, "$", losses)
    body = _rendered(request.inputs[0], "$.inputs[0]", context, losses)
    form = own_form(request.inputs[0].extra, OWN)
    if "model" in form:
        body = {"model": _renamed(form["model"], request.model), **body}
    return Rendered(body, tuple(losses))


def render_batch(request: EmbeddingRequest, context: Context) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    LOST.of(request, "$", losses)
    model = request.model or context.model
    requests = []
    for index, given in enumerate(request.inputs):
        body = _rendered(given, f"$.inputs[{index}]", context, losses)
        stated = own_form(given.extra, OWN).get("model")
        if stated != _UNNAMED:
            body = {"model": _renamed(stated, model), **body}  # Google requires it in each of them
        requests.append(body)
    return Rendered({"requests": requests, **own_fields(request.extra, OWN)}, tuple(losses))


def _renamed(stated: Any, model: str) -> str:
    if type(stated) is str and stated.removeprefix(_PREFIX) == model:
        return stated
    return _resource(model)


def _resource(model: str) -> str:
    return model if model.startswith(_PREFIX) else f"{_PREFIX}{model}"


def _rendered(given: EmbeddingInput, path: str, context: Context, losses: list[Loss]) -> dict[str, Any]:
    form = own_form(given.extra, OWN)
    body: dict[str, Any] = {
        "content": {"parts": _written(given, path, context, losses), **form.get("content", {})},
        **(form["settings"] if "settings" in form else _plain_settings(given)),
    }
    if given.truncates is not None and "settings" not in form:
        losses.append(Loss(f"{path}.truncates", "embedding.truncation", "dropped", "Gemini uses its default"))
    LOST.of(given, path, losses)
    rest = own_fields(given.extra, OWN)
    return {**body, **{key: value for key, value in rest.items() if "." not in key}}


def _written(given: EmbeddingInput, path: str, context: Context, losses: list[Loss]) -> list[dict[str, Any]]:
    content = given.content
    if type(content) is str:
        return [{"text": content}]
    if isinstance(content, TokenIds):
        raise Unsupported("only the model's own provider can read token ids: send the text", path)
    assert not isinstance(content, str)
    renderer = PartRenderer(context, "upstream", losses)
    return [_part(renderer, part, f"{path}.content[{index}]") for index, part in enumerate(content)]


def _part(renderer: PartRenderer, part: Part, path: str) -> dict[str, Any]:
    written = renderer.render(part, path)
    if written is None:
        raise Unsupported("this part cannot be embedded by Gemini", path)
    return written


# --- answers


def parse_response(body: dict[str, Any], context: Context) -> EmbeddingResponse:
    fields = _ANSWER.read(body, "$", UpstreamFault)
    if fields.value.get("embedding") is not None:
        vectors = [_vector(_VECTOR.child(fields, "embedding"))]
    else:
        given = fields.array("embeddings")
        read = (_VECTOR.read(item, f"$.embeddings[{at}]", UpstreamFault) for at, item in enumerate(given))
        vectors = [_vector(each) for each in read]
    usage = fields.dict_or_none("usageMetadata")
    return EmbeddingResponse(
        "",
        tuple(vectors),
        usage=_usage(usage) if usage else None,
        extra=fields.rest(_ANSWER.known, OWN),
    )


def _vector(fields: Fields) -> Embedding:
    values = read_vector(fields.value.get("values"), f"{fields.path}.values")
    rest = fields.rest(_VECTOR.known, OWN)
    if rest is not None and rest.fields.get("shape") == [len(values)]:  # it repeats the length
        kept = {key: value for key, value in rest.fields.items() if key != "shape"}
        rest = Extra(OWN, kept, {"shape": [len(values)]})
    return Embedding(values, rest)


def _usage(raw: dict[str, Any]) -> Usage | None:
    """Returns None without a count: an estimate by the gateway is better than 0."""
    if _USAGE.isdisjoint(raw):
        return None
    usage = read_usage(raw)
    kept = usage.raw
    if kept is None or "promptTokenDetails" not in kept.fields:
        return usage
    # Embeddings have another name for the tokens by modality, which repeat the count for texts.
    details = kept.fields["promptTokenDetails"]
    if read_usage({"promptTokensDetails": details}).raw != Extra(OWN, {}, {"promptTokensDetails": details}):
        return usage
    fields = {key: value for key, value in kept.fields.items() if key != "promptTokenDetails"}
    return msgspec.structs.replace(usage, raw=Extra(OWN, fields, kept.form))


def render_response_one(
    response: EmbeddingResponse, context: Context, request: EmbeddingRequest
) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    vector = _render_vector(response.embeddings[0], "$.embedding", losses)
    return _answer({"embedding": vector}, response, losses)


def render_response_batch(
    response: EmbeddingResponse, context: Context, request: EmbeddingRequest
) -> Rendered[dict[str, Any]]:
    losses: list[Loss] = []
    vectors = [
        _render_vector(embedding, f"$.embeddings[{index}]", losses)
        for index, embedding in enumerate(response.embeddings)
    ]
    return _answer({"embeddings": vectors}, response, losses)


def _render_vector(embedding: Embedding, path: str, losses: list[Loss]) -> dict[str, Any]:
    LOST.of(embedding, path, losses)
    return {
        "values": list(embedding.values),
        **own_form(embedding.extra, OWN),
        **own_fields(embedding.extra, OWN),
    }


def _answer(
    body: dict[str, Any], response: EmbeddingResponse, losses: list[Loss]
) -> Rendered[dict[str, Any]]:
    usage = response.usage
    if usage is not None:
        raw = own_form(usage.raw, OWN)
        if raw and counts_of(read_usage(raw)) == counts_of(usage):
            body["usageMetadata"] = raw
        else:
            losses_of_usage(usage.raw, OWN, "$.usageMetadata", losses)
            body["usageMetadata"] = {"promptTokenCount": usage.total}
    LOST.of(response, "$", losses)
    return Rendered({**body, **own_fields(response.extra, OWN)}, tuple(losses))


class _Glance(msgspec.Struct, rename={"usage": "usageMetadata"}):
    usage: Any = None


_read: Final = msgspec.json.Decoder(_Glance).decode


def _glance(body: bytes) -> Usage | None:
    answer = shaped(body, _read)
    usage = answer.usage if answer is not None else None
    return _usage(usage) if type(usage) is dict else None


def _operation(body: dict[str, Any]) -> EmbedOperation:
    return "embed" if "requests" in body else "embed_one"


def _rename_one(body: bytes, model: str) -> bytes:
    """The path contains the model; if the body names it too, it must be the same."""
    outline = Outline(body)
    return outline.replaced("model", encode(_resource(model))) if "model" in outline.members else body


def _rename_batch(body: bytes, model: str) -> bytes:
    outline = Outline(body)
    span = outline.members.get("requests")
    if span is None or body[span[0] : span[0] + 1] != b"[":
        return body
    text = body
    try:
        items = decode_items(text[span[0] : span[1]])
    except ValueError:
        text = repair_escapes(body)  # of the same length
        items = decode_items(text[span[0] : span[1]])
    pieces: list[bytes] = []
    at = span[0]
    for item in items:
        raw = bytes(item)
        start = text.index(raw, at)
        raw = body[start : start + len(raw)]
        pieces += (
            body[at:start],
            splice(raw, {"model": encode(_resource(model))}) if raw[:1] == b"{" else raw,
        )
        at = start + len(raw)
    return b"".join((body[: span[0]], *pieces, body[at:]))


_FIELDS: Final = {
    "content": "content",
    "dimensions": "outputDimensionality",
    "task": "taskType",
    "truncates": "embedContentConfig.autoTruncate",
}

_SETTING: Final = re.compile(r"\$\.inputs\[(\d+)\]\.(?:task|title|dimensions)")


def _placed(items: str = "") -> Callable[[str, EmbeddingRequest], str]:
    """The items, whose settings may be in a separate object."""
    usual = by_name(_FIELDS, items)

    def place(path: str, request: EmbeddingRequest) -> str:
        found, place = _SETTING.fullmatch(path), usual(path.replace(".content[", ".content.parts["), request)
        if found is None:
            return place
        settings = own_form(request.inputs[int(found[1])].extra, OWN).get("settings") or {}
        before, _, name = place.rpartition(".")
        config = settings.get("embedContentConfig")
        inside = type(config) is dict and name in _CONFIG.camel(config)
        return f"{before}.embedContentConfig.{name}" if inside else place

    return place


EMBEDDINGS: Final = Embeddings(
    forms={
        "embed_one": EmbeddingForm(
            parse_request=parse_one,
            render_request=render_one,
            render_response=render_response_one,
            place=_placed(),
            rename=_rename_one,
            max_inputs=1,
            tells_usage=False,
        ),
        "embed": EmbeddingForm(
            parse_request=parse_batch,
            render_request=render_batch,
            render_response=render_response_batch,
            place=_placed("requests"),
            rename=_rename_batch,
            max_inputs=100,  # more are a 400: "at most 100 requests can be in one batch"
            tells_usage=False,
        ),
    },
    operation=_operation,
    parse_response=parse_response,
    usage=_glance,
)
