"""Embeddings as the vendors' own SDKs ask for them and read them, from an upstream of each dialect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import openai
import pytest
from google.genai import errors as genai_errors

from tests.gateway.sdk.sdk_kit import Stage

TEXTS = ["the first text", "a second one"]


@pytest.fixture(scope="module", params=["openai-chat", "gemini"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    with Stage(request.param) as made:
        yield made


def test_openai_reads_vectors_in_either_encoding(stage: Stage) -> None:
    """Without a format the SDK asks for base64 and unpacks it."""
    usual = stage.gpt.embeddings.create(model="m1", input=TEXTS, dimensions=16)
    plain = stage.gpt.embeddings.create(model="m1", input=TEXTS, dimensions=16, encoding_format="float")
    assert [entry.index for entry in usual.data] == [0, 1]
    for packed, floats in zip(usual.data, plain.data, strict=True):
        assert packed.embedding == pytest.approx(floats.embedding, abs=1e-6)
        assert len(packed.embedding) == 16
        assert sum(number * number for number in packed.embedding) == pytest.approx(1.0, abs=1e-5)
    assert usual.usage.prompt_tokens == plain.usage.total_tokens > 0
    one = stage.gpt.embeddings.create(model="m1", input=TEXTS[0], dimensions=16)
    assert one.data[0].embedding == pytest.approx(usual.data[0].embedding)


def test_openai_asks_asynchronously(stage: Stage) -> None:
    async def ask() -> int:
        async with stage.async_gpt() as client:
            answer = await client.embeddings.create(model="m1", input=TEXTS)
        return len(answer.data)

    assert asyncio.run(ask()) == 2


def test_openai_may_send_tokens_to_who_can_read_them(stage: Stage) -> None:
    if stage.dialect == "openai-chat":
        answer = stage.gpt.embeddings.create(model="m1", input=[[1, 2], [3]])
        assert len(answer.data) == 2
        assert stage.sent()["input"] == [[1, 2], [3]]
        return
    with pytest.raises(
        openai.BadRequestError, match="only the model's own provider can read token ids"
    ) as caught:
        stage.gpt.embeddings.create(model="m1", input=[[1, 2], [3]])
    assert caught.value.param == "input[0]"


def test_genai_reads_vectors(stage: Stage) -> None:
    contents: list[str] = list(TEXTS)
    answer = stage.gemini.models.embed_content(
        model="m1",
        contents=contents,
        config={"output_dimensionality": 16, "task_type": "RETRIEVAL_DOCUMENT", "title": "t"},
    )
    assert answer.embeddings is not None
    assert [len(each.values or []) for each in answer.embeddings] == [16, 16]
    other = stage.gpt.embeddings.create(model="m1", input=TEXTS, dimensions=16, encoding_format="float")
    assert [each.values for each in answer.embeddings] == [entry.embedding for entry in other.data]


def test_a_refusal_is_an_error_of_the_sdk(stage: Stage) -> None:
    """By the gateway where it translates, by the upstream where it forwards."""
    with pytest.raises(openai.BadRequestError, match="dimensions: expected a number above 0"):
        stage.gpt.embeddings.create(model="m1", input=TEXTS, dimensions=-1)
    with pytest.raises(genai_errors.ClientError, match="expected at most 4096") as caught:
        stage.gemini.models.embed_content(model="m1", contents="x", config={"output_dimensionality": 100_000})
    assert caught.value.code == 400
