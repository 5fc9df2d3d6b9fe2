"""openai-python's own tests of the APIs that the gateway serves, on every dialect of an upstream.

They are made for a mock server that accepts every request and at which every id exists. So a proxy creates
the stored response or conversation first and puts its id in the place of the made-up one.
"""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any, Final

from proofs.judges import environments, pytest_run
from proofs.judges.pytest_run import MODELS
from proofs.judges.reasons import Reason
from proofs.judges.results import Verdict
from proofs.judges.rewriting_proxy import RewritingProxy
from wireglot.testing.live_gateway import LiveGateway

PACKAGES: Final = (
    "openai[aiohttp,realtime,datalib]",
    *("pytest", "pytest-asyncio", "pytest-xdist", "inline-snapshot", "rich", "trio", "griffe"),
    *("azure-identity", "botocore", "Pillow"),
)
FOLDER: Final = "tests/api_resources/"
SERVED: Final = (
    "chat",
    "responses",
    "conversations",
    "test_responses.py",
    "test_conversations.py",
    "test_models.py",
)
REASONS: Final = (
    Reason(
        r"chat\.completions\.test_messages|test_completions\.\w+::test_\w+_(retrieve|update|list|delete)\b"
        r"|test_completions\.\w+::test_\w+_(retrieve|update|list|delete)_",
        "stored chat completions are not served",
        is_run=False,
    ),
    Reason(r"test_models\.\w+::test_\w+_delete", "fine-tuned models are not served", is_run=False),
    Reason(
        "model: expected the name of a model",
        "names no model, so there is nothing to route by; only a mock server answers that",
        is_run=False,
    ),
    Reason(
        "previous_response_id and conversation exclude each other",
        "sends previous_response_id and conversation at once, which OpenAI's reference excludes",
        is_run=False,
    ),
    Reason(
        "stream: only a response that was created with background and stream",
        "the stored response that stands in for the suite's id has no events to stream again",
        is_run=False,
    ),
    Reason(
        "limit: expected a whole number",
        "asks for a page of 0 items; OpenAI's reference says 1 to 100",
        is_run=False,
    ),
    Reason(
        "test_method_compact_with_all_params",
        "the compacted list keeps messages of the user, as OpenAI's document shows them; the SDK's type of "
        "an output item does not have them",
    ),
    Reason("input: expected at least one item", "compacts a conversation without an item"),
)
_IDS: Final = re.compile(r"/v1/responses/(resp_677efb5139a88190b512bc3fef8e535d|response_id)\b")


def judge() -> Verdict:
    interpreter = environments.python("openai-python", *PACKAGES)
    folder = pytest_run.source(interpreter, "openai")
    paths = [FOLDER + each for each in SERVED]
    found = list[pytest_run.Outcome]()
    for model in MODELS:
        toml = f'[providers.demo]\n[models]\n"*" = "demo/{model}"\n'
        with LiveGateway(toml) as gateway, RewritingProxy(gateway.url, Objects(gateway.url).rewrite) as proxy:
            environ = {"TEST_API_BASE_URL": proxy.url + "/v1"}
            found += pytest_run.run(
                interpreter, folder, "-n", "0", *paths, environ=environ, label=f"{model} "
            )
    every = pytest_run.collected(interpreter, folder, "-n", "0", "tests", environ={})
    return pytest_run.verdict(
        "openai-python",
        environments.version(interpreter, "openai"),
        "the SDK's tests of Chat Completions, Responses, Conversations and Models, on four models",
        found,
        REASONS,
        pytest_run.never_run(every, paths, FOLDER),
    )


class Objects:
    """Creates what a request of the suite takes for granted."""

    def __init__(self, url: str) -> None:
        self._url = url

    def rewrite(self, method: str, path: str, body: bytes) -> tuple[str, bytes]:
        if match := _IDS.search(path):
            path = path.replace(match[1], self._response(background="/cancel" in path))
        if "/v1/conversations/conv_123" in path:
            conversation = self._create("/v1/conversations", {"items": [_message("Hello")]})
            path = path.replace("conv_123", conversation)
            if "msg_abc" in path:
                path = path.replace("msg_abc", self._item(conversation))
        if b'"previous_response_id":"resp_123"' in body:
            body = body.replace(b"resp_123", self._response(background=False).encode())
        return path, body

    def _response(self, *, background: bool) -> str:
        text = "[[demo:hang]]" if background else "Hello"
        return self._create("/v1/responses", {"model": "any", "input": text, "background": background})

    def _item(self, conversation: str) -> str:
        with urllib.request.urlopen(f"{self._url}/v1/conversations/{conversation}/items") as answer:
            name: str = json.load(answer)["data"][0]["id"]
        return name

    def _create(self, path: str, document: dict[str, Any]) -> str:
        headers = {"content-type": "application/json"}
        data = json.dumps(document).encode()
        with urllib.request.urlopen(urllib.request.Request(self._url + path, data, headers)) as answer:
            name: str = json.load(answer)["id"]
        return name


def _message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}
