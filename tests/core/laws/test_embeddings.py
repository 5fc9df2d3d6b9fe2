"""The laws for embeddings, over every endpoint and every pair: identity, no silent loss, garbage, twice."""

from __future__ import annotations

import struct
from base64 import b64encode
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.dialects.capabilities import EmbeddingForm, Embeddings, EmbedOperation
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.embeddings import joined_embeddings
from wireglot_core.dialects.registry import surface, surfaces
from wireglot_core.ir.content import Extra, Media, Text
from wireglot_core.ir.embedding import (
    Embedding,
    EmbeddingInput,
    EmbeddingRequest,
    EmbeddingResponse,
    TokenIds,
)
from wireglot_core.ir.errors import ClientFault, Unsupported, UpstreamFault
from wireglot_core.ir.outcome import Usage
from wireglot_core.wire.json import decode, encode

CONTEXT = Context()


def embeddings(name: str) -> Embeddings:
    found = surface(name).embeddings
    assert found is not None
    return found


DIALECTS = tuple(each.name for each in surfaces() if each.embeddings is not None)
ENDPOINTS: list[tuple[str, EmbedOperation]] = [
    (name, operation) for name in DIALECTS for operation in embeddings(name).forms
]


def test_every_dialect_with_embeddings_keeps_the_laws() -> None:
    assert set(DIALECTS) == {"openai-chat", "gemini", "ollama"}
    assert {(name, operation) for name, operation, _ in REQUESTS} == set(ENDPOINTS)
    assert {(name, operation) for name, operation, _ in ANSWERS} == set(ENDPOINTS)
    for name in DIALECTS:
        upstream = surface(name).upstream
        assert upstream is not None
        assert set(embeddings(name).forms) <= set(upstream.paths)


def form_of(name: str, operation: EmbedOperation) -> EmbeddingForm:
    return embeddings(name).forms[operation]


def attempted(form: EmbeddingForm, request: EmbeddingRequest) -> tuple[Rendered[dict[str, Any]] | None, str]:
    """The request on the wire, or None and the place of what cannot be written."""
    try:
        return form.render_request(request, CONTEXT), ""
    except Unsupported as fault:
        return None, fault.path


# As openai-python, google-genai and the `ollama` package write them, and what their servers answer.
PNG = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
REQUESTS: list[tuple[str, EmbedOperation, dict[str, Any]]] = [
    ("openai-chat", "embed", {"input": "hi", "model": "m", "encoding_format": "base64"}),
    ("openai-chat", "embed", {"input": ["a", "b"], "model": "m", "dimensions": 8, "user": "u"}),
    ("openai-chat", "embed", {"input": [1, 2, 3], "model": "m"}),
    ("openai-chat", "embed", {"input": [[1, 2], [3]], "model": "m", "dimensions": None}),
    ("openai-chat", "embed", {"input": ["a"], "model": "m", "input_type": "query", "truncate": "END"}),
    ("gemini", "embed_one", {"content": {"parts": [{"text": "hi"}]}}),
    ("gemini", "embed_one", {"model": "models/m", "content": {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}}),
    ("gemini", "embed_one", {"content": {"parts": [{"text": "x"}, PNG]}, "taskType": "RETRIEVAL_DOCUMENT", "title": "t"}),
    ("gemini", "embed_one", {"content": {"parts": [{"text": "x"}]}, "embedContentConfig": {"taskType": "CLUSTERING", "autoTruncate": True, "documentOcr": True}}),
    ("gemini", "embed_one", {"content": {"parts": [{"text": ""}]}, "outputDimensionality": 4, "new": {"a": 1}}),
    ("gemini", "embed_one", {"content": {"parts": [{"text": "x"}]}, "taskType": "task_type_unspecified", "title": None}),
    ("gemini", "embed", {"requests": [{"model": "models/m", "content": {"parts": [{"text": "a"}]}, "taskType": "RETRIEVAL_QUERY"}, {"model": "models/m", "content": {"parts": [{"text": "b"}]}, "outputDimensionality": 4}]}),
    ("gemini", "embed", {"requests": [{"content": {"parts": [{"text": "a"}]}}], "x": 1}),
    ("ollama", "embed", {"model": "m", "input": "hi"}),
    ("ollama", "embed", {"model": "m", "input": ["a", "b"], "truncate": False, "dimensions": 8, "keep_alive": "5m", "options": {"num_ctx": 1}}),
    ("ollama", "embed", {"model": "m", "input": ["a"], "dimensions": 0}),
    ("ollama", "embed_one", {"model": "m", "prompt": "hi", "keep_alive": 0}),
]  # fmt: skip
USAGE = {"promptTokenCount": 3, "promptTokenDetails": [{"modality": "TEXT", "tokenCount": 3}]}
ANSWERS: list[tuple[str, EmbedOperation, dict[str, Any]]] = [
    ("openai-chat", "embed", {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -1.0, 1e-9]}], "model": "m", "usage": {"prompt_tokens": 3, "total_tokens": 3}}),
    ("openai-chat", "embed", {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [1]}], "model": "m", "usage": {"prompt_tokens": 3, "total_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}, "cost": 0.1}, "id": "e1"}),
    ("gemini", "embed_one", {"embedding": {"values": [0.5, 0.25], "shape": [2]}, "usageMetadata": USAGE}),
    ("gemini", "embed_one", {"embedding": {"values": [0.5], "statistics": {"tokenCount": 3}}, "truncated": True}),
    ("gemini", "embed", {"embeddings": [{"values": [0.5]}], "usageMetadata": {"promptTokenCount": 3, "trafficType": "PROVISIONED"}}),
    ("ollama", "embed", {"model": "m", "embeddings": [[0.5, 0.25]], "total_duration": 9, "load_duration": 1, "prompt_eval_count": 3}),
    ("ollama", "embed_one", {"embedding": [0.5, 0.25]}),
]  # fmt: skip


# Identity.


@rows(("name", "operation", "body"), REQUESTS)
def test_a_request_comes_back_as_it_was(name, operation, body):
    form = form_of(name, operation)
    before = encode(body)
    rendered = form.render_request(form.parse_request(body, CONTEXT), CONTEXT)
    assert rendered.value == body
    assert rendered.losses == ()
    assert encode(body) == before
    assert embeddings(name).operation(body) == operation


@rows(("name", "operation", "body"), ANSWERS)
def test_an_answer_comes_back_as_it_was(name, operation, body):
    spoken = embeddings(name)
    response = spoken.parse_response(body, CONTEXT)
    rendered = spoken.forms[operation].render_response(
        response, CONTEXT, EmbeddingRequest("m", (EmbeddingInput("x"),))
    )
    assert rendered.value == body
    assert rendered.losses == ()


@rows(("name", "operation", "body"), ANSWERS)
def test_what_passes_through_is_accounted_like_what_is_translated(name, operation, body):
    spoken = embeddings(name)
    assert spoken.usage(encode(body)) == spoken.parse_response(body, CONTEXT).usage


# Pairs.

words = st.text(max_size=12)
contents = st.one_of(
    words,
    st.lists(st.integers(0, 100_000), min_size=1, max_size=4).map(lambda ids: TokenIds(tuple(ids))),
    st.lists(words.filter(bool), min_size=2, max_size=3).map(lambda texts: tuple(map(Text, texts))),
    st.just((Text("a"), Media("image", "image/png", data="aGk="))),
)
inputs = st.builds(
    EmbeddingInput,
    contents,
    dimensions=st.none() | st.integers(1, 4096),
    task=st.sampled_from(["", "RETRIEVAL_QUERY", "CLUSTERING"]),
    title=st.sampled_from(["", "A title"]),
    truncates=st.none() | st.booleans(),
)
requests = st.builds(
    EmbeddingRequest,
    st.just("m"),
    st.lists(inputs, min_size=1, max_size=3).map(tuple),
    user=st.sampled_from(["", "u"]),
)


def _plain(request: EmbeddingRequest, *, refuses_long: bool = False) -> EmbeddingRequest:
    """What it means: without spellings. `refuses_long`: where too long a text is an error anyhow."""

    def meant(given: EmbeddingInput) -> EmbeddingInput:
        content = given.content
        if isinstance(content, tuple):
            content = tuple(Text(part.text) if type(part) is Text else part for part in content)
            content = tuple(
                msgspec.structs.replace(part, extra=None) if isinstance(part, Media) else part
                for part in content
            )
        truncates = None if refuses_long and given.truncates is False else given.truncates
        fields = given.extra.fields if given.extra is not None else {}
        extra = Extra(given.extra.dialect, fields) if given.extra is not None and fields else None
        return msgspec.structs.replace(given, content=content, truncates=truncates, extra=extra)

    extra = request.extra
    kept = Extra(extra.dialect, extra.fields) if extra is not None and extra.fields else None
    return msgspec.structs.replace(request, inputs=tuple(map(meant, request.inputs)), extra=kept, encoding="")


@pytest.mark.parametrize(("name", "operation"), ENDPOINTS)
@given(request=requests)
def test_silence_means_identity_and_a_loss_means_a_difference(
    name: str, operation: EmbedOperation, request: EmbeddingRequest
) -> None:
    form = form_of(name, operation)
    if form.max_inputs == 1:
        request = msgspec.structs.replace(request, inputs=request.inputs[:1])
    rendered, refused = attempted(form, request)
    if rendered is None:
        assert refused.startswith("$.inputs[")
        return
    assert encode(form.render_request(request, CONTEXT).value) == encode(rendered.value)
    written = decode(encode(rendered.value))
    try:
        back = form.parse_request(written, CONTEXT)
    except ClientFault:  # Ollama takes an empty text for none
        assert name == "ollama"
        assert "" in (each.content for each in request.inputs)
        return
    strict = name == "openai-chat"
    same = _plain(back, refuses_long=strict) == _plain(
        msgspec.structs.replace(request, model=back.model), refuses_long=strict
    )
    assert same == (not rendered.losses), rendered.losses
    for loss in rendered.losses:
        assert loss.grade in ("serious", "degraded", "harmless")


@rows(
    ("source", "target"),
    [
        pytest.param(row, target, id=f"{row[0]}-{row[1]}-{number}-{target[0]}-{target[1]}")
        for (number, row), target in product(enumerate(REQUESTS), ENDPOINTS)
    ],
)
def test_every_request_can_be_translated_or_is_refused_by_its_place(source, target):
    name, operation, body = source
    own, theirs = form_of(name, operation), form_of(*target)
    request = own.parse_request(body, CONTEXT)
    if theirs.max_inputs == 1 and len(request.inputs) > 1:
        return
    rendered, refused = attempted(theirs, request)
    if rendered is None:
        assert _at(body, own.place(refused, request)) is not None
        return
    back = theirs.parse_request(rendered.value, CONTEXT)
    assert len(back.inputs) == len(request.inputs)
    assert [each.dimensions for each in back.inputs] == [each.dimensions for each in request.inputs]
    for loss in rendered.losses:
        assert _at(body, own.place(loss.path, request)) is not None, loss
    # Whatever the client said beside texts, dimensions and its encoding is there, or reported.
    if name != target[0]:
        lost = {own.place(loss.path, request) for loss in rendered.losses}
        for field in ("user", "taskType", "title", "keep_alive", "options", "input_type", "truncate", "new"):
            if body.get(field) and body[field] != "task_type_unspecified":
                assert f"$.{field}" in lost or (
                    field == "truncate" and _carried(field, rendered.value, body)
                ), field


def _carried(field: str, value: dict[str, Any], body: dict[str, Any]) -> bool:
    return bool(value.get(field) == body[field] or body[field] is False)


def _at(body: Any, path: str) -> Any:
    """What is at a path of a document; None: nothing."""
    for piece in path.removeprefix("$").replace("[", ".[").split(".")[1:]:
        if not piece:
            continue
        if piece.startswith("["):
            index = int(piece[1:-1])
            if not isinstance(body, list) or index >= len(body):
                return None
            body = body[index]
        else:
            body = body.get(piece) if isinstance(body, dict) else None
    return body


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.mark.parametrize(("name", "operation"), ENDPOINTS)
@given(
    vectors=st.lists(st.lists(numbers, min_size=1, max_size=4), min_size=1, max_size=3),
    tokens=st.none() | st.integers(1, 1000),
    encoding=st.sampled_from(["", "float", "base64"]),
)
def test_vectors_and_usage_arrive_in_every_dialect(
    name: str, operation: EmbedOperation, vectors: list[list[float]], tokens: int | None, encoding: Any
) -> None:
    form = form_of(name, operation)
    vectors = vectors[:1] if form.max_inputs == 1 else vectors
    usage = None if tokens is None else Usage(input=tokens)
    response = EmbeddingResponse("m", tuple(Embedding(tuple(each)) for each in vectors), usage)
    asked = EmbeddingRequest("m", tuple(EmbeddingInput("x") for _ in vectors), encoding=encoding)
    rendered = form.render_response(response, CONTEXT, asked)
    back = embeddings(name).parse_response(decode(encode(rendered.value)), CONTEXT)
    assert [list(each.values) for each in back.embeddings] == vectors
    if form.tells_usage or tokens is not None:
        counted = back.usage.input if back.usage is not None else 0
        assert counted == (tokens or 0) or (name, operation) == ("ollama", "embed_one")


@rows(
    ("source", "target"),
    [
        pytest.param(row, target, id=f"{row[0]}-{number}-{target[0]}-{target[1]}")
        for (number, row), target in product(enumerate(ANSWERS), ENDPOINTS)
    ],
)
def test_an_answer_of_one_dialect_is_an_answer_of_every_other(source, target):
    name, _, body = source
    response = embeddings(name).parse_response(body, CONTEXT)
    form = form_of(*target)
    rendered = form.render_response(response, CONTEXT, EmbeddingRequest("m", (EmbeddingInput("x"),)))
    back = embeddings(target[0]).parse_response(rendered.value, CONTEXT)
    assert [each.values for each in back.embeddings] == [each.values for each in response.embeddings]
    if name != target[0]:
        lost = {loss.path.rpartition(".")[2] for loss in rendered.losses}
        for field in ("id", "truncated", "total_duration", "statistics", "cost"):
            if f'"{field}"' in encode(body).decode():
                assert field in lost or target == ("ollama", "embed_one"), field


# Vectors.


def packed(*values: float) -> str:
    return b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


def chat_answer(*entries: Any) -> dict[str, Any]:
    return {"object": "list", "data": list(entries), "model": "m"}


def entry(index: int | None, embedding: Any) -> dict[str, Any]:
    return {"object": "embedding", **({} if index is None else {"index": index}), "embedding": embedding}


def test_base64_is_of_little_endian_float32() -> None:
    response = EmbeddingResponse("m", (Embedding((0.5, -2.0, 0.1)),))
    asked = EmbeddingRequest("m", (EmbeddingInput("x"),), encoding="base64")
    rendered = form_of("openai-chat", "embed").render_response(response, CONTEXT, asked)
    assert rendered.value["data"][0]["embedding"] == packed(0.5, -2.0, 0.1)
    read = embeddings("openai-chat").parse_response(chat_answer(entry(0, packed(0.5, -2.0))), CONTEXT)
    assert read.embeddings[0].values == (0.5, -2.0)


def test_vectors_are_in_the_order_of_their_index() -> None:
    body = chat_answer(entry(2, [3]), entry(0, [1]), entry(1, [2]))
    read = embeddings("openai-chat").parse_response(body, CONTEXT)
    assert [each.values for each in read.embeddings] == [(1,), (2,), (3,)]
    unnumbered = chat_answer(entry(None, [1]), entry(None, [2]))
    read = embeddings("openai-chat").parse_response(unnumbered, CONTEXT)
    assert [each.values for each in read.embeddings] == [(1,), (2,)]


@rows(
    ("name", "body", "place"),
    [
        ("openai-chat", chat_answer(entry(0, [1]), entry(0, [1])), "$.data[1].index"),
        ("openai-chat", chat_answer(entry(5, [1])), "$.data[0].index"),
        ("openai-chat", chat_answer(entry(0, [])), "$.data[0].embedding"),
        ("openai-chat", chat_answer(entry(0, [1, None])), "$.data[0].embedding[1]"),
        ("openai-chat", chat_answer(entry(0, [True])), "$.data[0].embedding[0]"),
        ("openai-chat", chat_answer(entry(0, "a b")), "$.data[0].embedding"),
        ("openai-chat", chat_answer(entry(0, "AAA=")), "$.data[0].embedding"),
        ("openai-chat", chat_answer(entry(0, packed(float("nan")))), "$.data[0].embedding"),
        ("openai-chat", chat_answer(entry(0, packed(float("inf")))), "$.data[0].embedding"),
        ("openai-chat", chat_answer("x"), "$.data[0]"),
        ("openai-chat", {"model": "m"}, "$.data"),
        ("gemini", {}, "$.embeddings"),
        ("gemini", {"embeddings": [{}]}, "$.embeddings[0].values"),
        ("gemini", {"embedding": {"values": ["1"]}}, "$.embedding.values[0]"),
        ("ollama", {}, "$.embeddings"),
        ("ollama", {"embeddings": [1]}, "$.embeddings[0]"),
        ("ollama", {"embedding": []}, "$.embedding"),
    ],
)
def test_an_answer_that_is_none_is_the_upstreams_fault(name, body, place):
    with pytest.raises(UpstreamFault) as caught:
        embeddings(name).parse_response(body, CONTEXT)
    assert caught.value.path == place


def test_every_input_has_its_vector() -> None:
    one = EmbeddingResponse("m", (Embedding((1.0,)),), Usage(input=1))
    assert joined_embeddings([one, one], [1, 1]).usage == Usage(input=2)
    with pytest.raises(UpstreamFault, match="1 vectors for 2 inputs"):
        joined_embeddings([one], [2])
    two = EmbeddingResponse("m", (Embedding((1.0,)), Embedding((2.0,))))
    with pytest.raises(UpstreamFault, match="1 vectors for 2 inputs"):
        joined_embeddings([one, two], [2, 1])  # as many as there are inputs, for others than these


def test_a_number_that_float32_has_not_cannot_be_packed() -> None:
    response = EmbeddingResponse("m", (Embedding((1e300,)),))
    asked = EmbeddingRequest("m", (EmbeddingInput("x"),), encoding="base64")
    with pytest.raises(UpstreamFault, match="float32"):
        form_of("openai-chat", "embed").render_response(response, CONTEXT, asked)


# Requests that are wrong.


@rows(
    ("name", "operation", "body", "place"),
    [
        ("openai-chat", "embed", {"model": "m"}, "$.input"),
        ("openai-chat", "embed", {"input": []}, "$.input"),
        ("openai-chat", "embed", {"input": {"a": 1}}, "$.input"),
        ("openai-chat", "embed", {"input": ["a", 1]}, "$.input[1]"),
        ("openai-chat", "embed", {"input": [1, "a"]}, "$.input[1]"),
        ("openai-chat", "embed", {"input": [[1], []]}, "$.input[1]"),
        ("openai-chat", "embed", {"input": [[1, -1]]}, "$.input[0][1]"),
        ("openai-chat", "embed", {"input": [True]}, "$.input[0]"),
        ("openai-chat", "embed", {"input": "a", "dimensions": 0}, "$.dimensions"),
        ("openai-chat", "embed", {"input": "a", "dimensions": "8"}, "$.dimensions"),
        ("openai-chat", "embed", {"input": "a", "encoding_format": "int8"}, "$.encoding_format"),
        ("openai-chat", "embed", {"input": "a", "user": 1}, "$.user"),
        ("gemini", "embed_one", {}, "$.content"),
        ("gemini", "embed_one", {"content": {}}, "$.content.parts"),
        ("gemini", "embed_one", {"content": {"parts": [1]}}, "$.content.parts[0]"),
        ("gemini", "embed_one", {"content": {"parts": [{"text": "a"}]}, "taskType": []}, "$.taskType"),
        ("gemini", "embed_one", {"content": {"parts": [{"text": "a"}]}, "outputDimensionality": -1}, "$.outputDimensionality"),
        ("gemini", "embed", {}, "$.requests"),
        ("gemini", "embed", {"requests": []}, "$.requests"),
        ("gemini", "embed", {"requests": ["a"]}, "$.requests[0]"),
        ("gemini", "embed", {"requests": [{"model": "a", "content": {"parts": [{"text": "a"}]}}, {"model": "b", "content": {"parts": [{"text": "a"}]}}]}, "$.requests[1].model"),
        ("ollama", "embed", {"model": "m"}, "$.input"),
        ("ollama", "embed", {"input": ""}, "$.input"),
        ("ollama", "embed", {"input": ["a", 1]}, "$.input[1]"),
        ("ollama", "embed", {"input": 1}, "$.input"),
        ("ollama", "embed", {"input": "a", "truncate": "no"}, "$.truncate"),
        ("ollama", "embed_one", {"prompt": ""}, "$.prompt"),
        ("ollama", "embed_one", {"prompt": ["a"]}, "$.prompt"),
    ],
)  # fmt: skip
def test_a_request_that_is_none_is_refused_by_its_place(name, operation, body, place):
    with pytest.raises(ClientFault) as caught:
        form_of(name, operation).parse_request(body, CONTEXT)
    assert caught.value.path == place


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "input", "prompt", "model", "dimensions", "encoding_format", "user", "truncate", "content", "requests",
    "taskType", "title", "outputDimensionality", "embedContentConfig", "parts", "text", "embeddings", "embedding",
    "values", "data", "index", "usage", "usageMetadata", "prompt_eval_count", "prompt_tokens", "promptTokenCount",
)  # fmt: skip
documents = st.recursive(
    json_values,
    lambda inner: (
        st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4) | st.lists(inner, min_size=1, max_size=2)
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(("name", "operation"), ENDPOINTS)
@given(body=st.dictionaries(st.sampled_from(FIELDS), documents, max_size=5))
def test_garbage_is_a_fault_that_names_its_place_or_parses(
    name: str, operation: EmbedOperation, body: dict[str, Any]
) -> None:
    form, spoken = form_of(name, operation), embeddings(name)
    before = encode(body)
    places = []
    try:
        request = form.parse_request(body, CONTEXT)
    except ClientFault as fault:
        places.append(fault.path)
    else:
        rendered = form.render_request(request, CONTEXT)
        assert encode(rendered.value) == encode(form.render_request(request, CONTEXT).value)
        assert rendered.losses == ()
    try:
        spoken.parse_response(body, CONTEXT)
    except UpstreamFault as fault:
        places.append(fault.path)
    assert all(place.startswith("$") for place in places)
    spoken.usage(before)
    assert encode(body) == before


# The model's name.

spaces = st.sampled_from([b"", b" ", b"\n  "])


@pytest.mark.parametrize(("name", "operation"), ENDPOINTS)
@given(space=spaces, text=st.text(max_size=10))
def test_renaming_leaves_every_other_byte(
    name: str, operation: EmbedOperation, space: bytes, text: str
) -> None:
    word, old = encode(text), b'"OLD"'
    new = b'"models/new"' if name == "gemini" else b'"new"'
    body = b'{"prompt":%b,%b"model":%b%b,"z":1.50}' % (word, space, old, space)
    if (name, operation) == ("gemini", "embed"):
        one = b'{"content":{"parts":[{"text":%b}]},%b"model":%b}' % (word, space, old)
        body = b'{%b"requests":[%b,%b%b],"z":1.50}' % (space, one, space, one)
    assert form_of(name, operation).rename(body, "new") == body.replace(old, new)


def test_half_a_surrogate_pair_is_renamed_too() -> None:
    body = b'{"requests":[{"model":"models/old","content":{"parts":[{"text":"\\ud83d"}]}}]}'
    renamed = form_of("gemini", "embed").rename(body, "new")
    assert renamed == body.replace(b"models/old", b"models/new")


def test_a_body_that_does_not_name_the_model_stays() -> None:
    body = b'{"content":{"parts":[{"text":"x"}]}}'
    assert form_of("gemini", "embed_one").rename(body, "new") is body
