"""google-genai's own tests of generateContent, countTokens, chats and models, forwarded and translated.

They run in the suite's mode "api", which calls a live API, with the base URL at the gateway. The distribution
lacks the files that tests upload (pictures, a PDF); small ones are put in their place.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from proofs.judges import environments, pytest_run
from proofs.judges.reasons import Reason
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

PACKAGES: Final = (
    "google-genai[aiohttp,local-tokenizer]",
    *("pytest", "pytest-asyncio", "pytest-xdist", "pytest-mock", "mcp", "Pillow", "httpx"),
)
MODELS: Final = ("demo-gemini", "demo-openai-chat")
"""Forwarded, and translated. The suite makes several TLS contexts for each case, so two must do."""
FOLDER: Final = "google/genai/tests/"
SERVED: Final = (
    "models/test_count_tokens.py",
    "models/test_function_call_streaming.py",
    "models/test_generate_content.py",
    "models/test_generate_content_config_zero_value.py",
    "models/test_generate_content_from_apikey.py",
    "models/test_generate_content_http_options.py",
    "models/test_generate_content_mcp.py",
    "models/test_generate_content_media_resolution.py",
    "models/test_generate_content_model.py",
    "models/test_generate_content_part.py",
    "models/test_generate_content_thought.py",
    "models/test_generate_content_tools.py",
    "models/test_get.py",
    "models/test_list.py",
    "chats/test_send_message.py",
    "shared/chats/test_send_message.py",
    "shared/chats/test_send_message_stream.py",
    "shared/models/test_count_tokens.py",
    "shared/models/test_generate_content.py",
    "shared/models/test_generate_content_stream.py",
    "shared/models/test_list.py",
)
ELSEWHERE: Final = re.compile(
    FOLDER + r"(shared/)?(batches|caches|documents|file_search_stores|files|gaos|interactions|live|live_api"
    r"|operations|tokens|tunings)/|" + FOLDER + r"(shared/)?models/"
)
_PLUGIN: Final = """
import os
from google.genai import _replay_api_client as replay, types

usual = replay.ReplayApiClient.__init__


def with_gateway(self, *arguments, http_options=None, **more):
    options = types.HttpOptions.model_validate(http_options or {})
    if not options.base_url:
        options = options.model_copy(update={"base_url": os.environ["GATEWAY"]})
    usual(self, *arguments, http_options=options, **more)


replay.ReplayApiClient.__init__ = with_gateway
"""
_PICTURES: Final = """
import pathlib, re, sys
from PIL import Image

for file in list(pathlib.Path(sys.argv[1]).rglob("*.py")):
    text = file.read_text()
    for name in re.findall(r"(?:data/|'data', *')([\\w-]+\\.(?:png|jpg|pdf|mp4|m4a|txt|wav))", text):
        path = pathlib.Path(sys.argv[1], "data", name)
        path.parent.mkdir(exist_ok=True)
        if path.suffix in (".png", ".jpg"):
            Image.new("RGB", (8, 8), (200, 30, 30)).save(path)
        else:
            path.write_bytes(b"%PDF-1.4 a short story")
"""
_CLEVER: Final = (
    "test_(pydantic_schema_with_none|(nested_)?list_of_pydantic_schema|multiple_(strings|parts|function_calls)"
    "|response_json_schema_with_one_of|from_function_call_response|2_function|automatic_function_calling"
    "|disable_automatic_function_calling|class_method_tools|code_execution_tool|stream_afc_thoughts|with_afc_"
    "|(async_)?stream_function_calling|function_call_streaming)"
)
REASONS: Final = (
    Reason(
        "Skipping Vertex AI tests|requires Vertex",
        "on Vertex: needs credentials of Google Cloud, which are not here",
        is_run=False,
    ),
    Reason(
        "Should have raised exception|DID NOT RAISE",
        "expects that Google's servers refuse (an unknown model or file, a limit); the demo model does not",
        is_run=False,
    ),
    Reason("tunedModels", "tuned models are not served", is_run=False),
    Reason(
        "is not a valid file path|/upload/|files:",
        "uploads a file; the gateway does not serve this API",
        is_run=False,
    ),
    Reason("Name or service not known", "calls an address on the Internet, which is not here", is_run=False),
    Reason(
        "config_override|sdk_logger_logs_warnings_once",
        "wants two candidates; the demo model gives one answer",
        is_run=False,
    ),
    Reason(
        "test_usage_metadata_part_types", "the demo model does not count tokens by modality", is_run=False
    ),
    Reason(
        "enum_mime_type",
        "text/x.enum: the value arrives as JSON, in quotes, because the upstream was asked for JSON",
    ),
    Reason(
        "cannot search the web, and this request has no other tool",
        "the only tool is Google's search, which a Chat upstream does not have; refused, not ignored",
    ),
    Reason(
        "test_(json|pydantic)_schema_with_streaming|non_empty_last_chunk",
        "the end of a stream is a chunk of its own with an empty text, so that no word waits for it",
    ),
    Reason(
        "test_generate_content_mcp",
        "expects a call without an id, as Gemini 2.5 made them; calls have ids here",
    ),
    Reason(
        "test_base_models_pager.*content-encoding",
        "expects a compressed list of models; the gateway does not compress",
    ),
    Reason(
        _CLEVER,
        "the demo model is a script: it does not choose the calls, facts or numbers that the question wants",
        is_run=False,
    ),
)


def judge() -> Verdict:
    interpreter = environments.python("google-genai", *PACKAGES)
    folder = pytest_run.source(interpreter, "google-genai")
    environments.run(interpreter, "-c", _PICTURES, str(folder / FOLDER))
    found = list[pytest_run.Outcome]()
    options = ("-o", "consider_namespace_packages=true", "-o", "asyncio_mode=auto")
    with tempfile.TemporaryDirectory() as temporary:
        (Path(temporary) / "through_gateway.py").write_text(_PLUGIN, encoding="utf-8")
        environ = {
            "GOOGLE_API_KEY": "x",
            "GOOGLE_GENAI_REPLAYS_DIRECTORY": temporary,
            "GOOGLE_GENAI_RUN_GEMINI_ONLY_IN_API_MODE": "1",
            "PYTHONPATH": temporary,
        }
        for model in MODELS:
            with LiveGateway(f'[providers.demo]\n[models]\n"*" = "demo/{model}"\n') as gateway:
                found += pytest_run.run(
                    interpreter,
                    folder,
                    *options,
                    *("-p", "through_gateway", "--mode", "api"),
                    *(FOLDER + each for each in SERVED),
                    environ={**environ, "GATEWAY": gateway.url},
                    label=f"{model} ",
                )
        every = pytest_run.collected(interpreter, folder, *options, FOLDER, environ=environ)
    return pytest_run.verdict(
        "google-genai",
        environments.version(interpreter, "google-genai"),
        "the SDK's tests of generateContent, countTokens, chats and models on the Gemini API, on two models",
        found,
        REASONS,
        never_run(every),
    )


def never_run(every: dict[str, int]) -> Iterator[Case]:
    for path, count in every.items():
        if path not in {FOLDER + each for each in SERVED}:
            yield Case(path, pytest_run.NOT_SERVED if ELSEWHERE.match(path) else pytest_run.OFFLINE, count)
