"""Proto-JSON names every field twice: what is written in snake_case is read as if it were camelCase."""

import json
import re

import pytest

from tests.core.laws.cases import FIXTURES
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.json_path import nearest
from wireglot_core.dialects.registry import dialect
from wireglot_core.testing.check_dialect import fixtures
from wireglot_core.testing.laws import differences

CONTEXT = Context()
VERBATIM = frozenset(
    [
        "args",
        "response",
        "parameters",
        "parametersJsonSchema",
        "responseJsonSchema",
        "responseSchema",
        "schema",
        "labels",
        "safetySettings",
        "retrievalConfig",
        "speechConfig",
        "imageConfig",
        "audioTranscriptionConfig",
        "routingConfig",
        "modelSelectionConfig",
        "modelArmorConfig",
        "generationOutputConfig",
        "googleSearchRetrieval",
        "googleMaps",
        "fileSearch",
        "computerUse",
        "mcpServers",
        "retrieval",
        "parallelAiSearch",
        "exaAiSearch",
        "partMetadata",
        "image",
        "videoMetadata",
        "mediaProcessing",
        "speechMetadata",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
        "mediaResolution",
        "sketch",
        "promptFeedback",
        "modelStatus",
        "urlContextMetadata",
        "automaticFunctionCallingHistory",
        "safetyRatings",
        "promptTokensDetails",
        "cacheTokensDetails",
        "candidatesTokensDetails",
        "toolUsePromptTokensDetails",
        "searchEntryPoint",
        "retrievalMetadata",
    ]
)
"""What is inside these goes back as it was: the codec does not look into it."""
UNKNOWN = re.compile(r"x[A-Z]|spokenBy|thinkingPace")
"""Nobody's fields keep their spelling."""


def snake(value, inside=""):
    if isinstance(value, list):
        return [snake(item, inside) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name if UNKNOWN.match(name) else re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): (
            item
            if name in VERBATIM and (name != "response" or inside == "functionResponse")
            else snake(item, name)
        )
        for name, item in value.items()
    }


def of(kind):
    return [
        pytest.param(case, id=case.id)
        for case in fixtures(FIXTURES, "gemini", kind)
        if ("snake" not in case.id and not case.id.endswith(".json")) or kind != "streams"
    ]


@rows("case", of("requests"))
def test_a_request_in_snake_case_is_the_same_request(case):
    """R-AF-10..13"""
    codec = dialect("gemini")
    assert snake(case.body) != case.body or set(case.body) == {"contents"}
    back = codec.render_request(codec.parse_request(snake(case.body), CONTEXT), CONTEXT)
    assert back.losses == ()
    hosted = {"tools"}  # what Google runs goes back as it was written
    expected, found = ({k: v for k, v in body.items() if k not in hosted} for body in (case.body, back.value))
    assert not differences(expected, found)
    for target in ("anthropic", "openai-chat", "openai-responses"):
        one, other = (
            translate_request(body, source="gemini", target=target, model="m")
            for body in (case.body, snake(case.body))
        )
        assert other.value == one.value
        assert [(loss.feature, loss.action) for loss in other.losses] == [
            (loss.feature, loss.action) for loss in one.losses
        ]
        for loss in other.losses:
            assert nearest(snake(case.body), [loss.path], False) == loss.path or loss.action == "invented"


@rows("case", of("responses"))
def test_an_answer_in_snake_case_is_the_same_answer(case):
    for target in ("anthropic", "openai-chat", "openai-responses"):
        one, other = (
            translate_response(body, source="gemini", target=target) for body in (case.body, snake(case.body))
        )
        assert other.value == one.value
        assert [(loss.feature, loss.action) for loss in other.losses] == [
            (loss.feature, loss.action) for loss in one.losses
        ]


@rows("case", of("streams"))
def test_a_stream_in_snake_case_is_the_same_stream(case):
    def translated(data, target):
        translator = StreamTranslator(source="gemini", target=target)
        return translator.feed(data) + translator.close()

    chunks = [json.loads(line[6:]) for line in case.data.decode().splitlines() if line.startswith("data: ")]
    data = b"".join(b"data: %b\n\n" % json.dumps(snake(chunk)).encode() for chunk in chunks)
    for target in ("anthropic", "openai-chat", "openai-responses"):
        assert translated(data, target) == translated(case.data, target)
