"""google-genai's own tests of generateContent, countTokens, chats and models, on four upstream dialects.

They run in the suite's mode "api", which calls a live API, with the base URL at the gateway. The distribution
lacks the files that tests upload (pictures, a PDF); small ones are put in their place.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.judges import environments, pytest_run
from tools.judges.pytest_run import MODELS, Rule
from tools.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

PACKAGES: Final = (
    "google-genai[aiohttp,local-tokenizer]",
    *("pytest", "pytest-asyncio", "pytest-xdist", "pytest-mock", "mcp", "Pillow", "httpx"),
)
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
RULES: Final = (
    Rule(
        "Skipping Vertex AI tests",
        "on Vertex: the same requests with Google Cloud credentials, which are not here",
        is_run=False,
    ),
)
_OTHER: Final = "the gateway does not serve this API"
_OFFLINE: Final = "tests of the client alone: they send nothing, or to a mock transport inside the process"


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
        for model in os.environ.get("GENAI_MODELS", " ".join(MODELS)).split():
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
        "the SDK's tests of generateContent, countTokens, chats and models on the Gemini API, on four models",
        found,
        RULES,
        never_run(every),
    )


def never_run(every: dict[str, int]) -> Iterator[Case]:
    for path, count in every.items():
        if path not in {FOLDER + each for each in SERVED}:
            yield Case(path, _OTHER if ELSEWHERE.match(path) else _OFFLINE, count)
