"""LangChain's standard tests of chat models (langchain-tests), for the integrations of three vendors.

Each runs with its base URL at the gateway and on every dialect of an upstream. What a test downloads is
given to it from memory; the rest of the test is unchanged.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from proofs.judges import environments, pytest_run
from proofs.judges.pytest_run import MODELS
from proofs.judges.reasons import Reason
from proofs.judges.results import Verdict
from wireglot.testing.live_gateway import LiveGateway

PACKAGES: Final = (
    *("langchain-tests", "langchain-openai", "langchain-anthropic", "langchain-google-genai"),
    *("pytest-asyncio", "pytest-socket", "pytest-xdist"),
)


class Integration(NamedTuple):
    package: str
    name: str
    parameters: str
    more: str = ""
    """Further lines of the test class."""


INTEGRATIONS: Final = {
    "langchain-openai": Integration(
        "langchain-openai",
        "ChatOpenAI",
        '"base_url": URL + "/v1", "stream_usage": True',
        "supports_audio_inputs = True",
    ),
    "langchain-openai-responses": Integration(
        "langchain-openai", "ChatOpenAI", '"base_url": URL + "/v1", "use_responses_api": True'
    ),
    "langchain-anthropic": Integration(
        "langchain-anthropic",
        "ChatAnthropic",
        '"base_url": URL, "max_tokens": 2000',
        "supports_anthropic_inputs = True",
    ),
    "langchain-google-genai": Integration(
        "langchain-google-genai",
        "ChatGoogleGenerativeAI",
        '"base_url": URL',
        "supports_audio_inputs = True",
    ),
}
_FILE: Final = """
import base64, os, types
from langchain_tests.integration_tests import ChatModelIntegrationTests, chat_models
from {module} import {name}

URL, MODEL = os.environ["GATEWAY"], os.environ["MODEL"]
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
chat_models.httpx.get = lambda *arguments, **more: types.SimpleNamespace(content=PIXEL)


class Test{name}(ChatModelIntegrationTests):
    chat_model_class = {name}
    chat_model_params = {{"model": MODEL, "api_key": "x", {parameters}}}
    supports_image_inputs = supports_image_urls = supports_image_tool_message = True
    supports_pdf_inputs = supports_pdf_tool_message = True
    supports_json_mode = supports_model_override = True
    model_override_value = MODEL
    {more}
"""
REASONS: Final = (
    Reason(
        r"test_tool_calling(_async)?(\[|:).*\{'input': 1\}|test_unicode_tool_call",
        "the demo model makes a call's arguments from the schema: it cannot read them out of the question",
        is_run=False,
    ),
    Reason(
        "test_json_mode.*Failed to parse Joke",
        "the demo model is a script: without a schema it cannot know which keys the question wants",
        is_run=False,
    ),
    Reason(
        "demo-anthropic .*test_json_mode.*Invalid json output",
        "Messages has no JSON mode (a reported loss), and the demo model does not follow the prompt instead",
    ),
    Reason(
        "GenerateContentConfig model Extra inputs",
        "the integration takes no other model for one call: it fails before a request",
        is_run=False,
    ),
    Reason(
        "test_image_inputs.*raw.githubusercontent.com",
        "the integration itself downloads the picture, and the machine of this run has no Internet",
        is_run=False,
    ),
    Reason("VCR not set up", "a benchmark over a recording that the integration brings", is_run=False),
    Reason("does not explicitly support", "the integration has no such input", is_run=False),
)


def judge(name: str) -> Verdict:
    integration = INTEGRATIONS[name]
    interpreter = environments.python("langchain", *PACKAGES)
    file = _FILE.format(module=integration.package.replace("-", "_"), **integration._asdict())
    found = list[pytest_run.Outcome]()
    with tempfile.TemporaryDirectory() as temporary, LiveGateway("[providers.demo]\n") as gateway:
        (Path(temporary) / "test_chat_model.py").write_text(file, encoding="utf-8")
        for model in MODELS:
            found += pytest_run.run(
                interpreter,
                Path(temporary),
                *("-o", "asyncio_mode=auto", "-o", "asyncio_default_test_loop_scope=session"),
                "-oasyncio_default_fixture_loop_scope=session",
                environ={"GATEWAY": gateway.url, "MODEL": model},
                label=f"{model} ",
            )
    versions = [
        f"{each} {environments.version(interpreter, each)}"
        for each in ("langchain-tests", integration.package)
    ]
    return pytest_run.verdict(
        name,
        ", ".join(versions),
        f"LangChain's standard tests of {integration.name}"
        + (" on the Responses API" if "responses" in name else "")
        + ", on four models",
        found,
        REASONS,
    )


JUDGES: Final = {name: partial(judge, name) for name in INTEGRATIONS}
