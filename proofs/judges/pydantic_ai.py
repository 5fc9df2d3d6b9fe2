"""pydantic-ai's own tests of its models with recorded answers of the vendors, replayed as the upstream.

A test that has a recording usually gets it inside its process. Here requests to the vendors' addresses go to
the gateway, and a server with the recorded answers is the gateway's upstream, of the same dialect: what the
test expects of the vendor's answer must arrive through the gateway. A case that fails without the gateway too
says nothing about it.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

from proofs.judges import environments, pytest_run
from proofs.judges.reasons import Reason
from proofs.judges.results import Verdict
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream

REPOSITORY: Final = "pydantic/pydantic-ai"
FILES: Final = (
    *("tests/models/test_openai.py", "tests/models/test_openai_responses.py"),
    *("tests/models/test_anthropic.py", "tests/models/anthropic"),
    *("tests/models/test_google.py", "tests/models/google"),
)
_MORE: Final = (
    *(
        "pytest",
        "pytest-recording",
        "pytest-mock",
        "vcrpy",
        "inline-snapshot",
        "dirty-equals",
        "anyio",
        "pyyaml",
    ),
    *(
        "pytest-examples",
        "pytest-pretty",
        "pytest-xdist",
        "coverage",
        "genai-prices",
        "pillow",
        "httpx",
        "httpx2",
    ),
    *("fastmcp<5", "blockbuster", "devtools", "brotli", "asgi-lifespan"),
)
_EXTRAS: Final = "openai,anthropic,google,cli,mcp,logfire,evals,retries,web-fetch,bedrock,groq,spec"
_QUIET: Final = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
"""A connection that an earlier test has left open is no failure of this one."""
_CASSETTE: Final = "/recording"
_BASE: Final = re.compile("^/v1(beta(/openai)?)?")
_PLUGIN: Final = """
import base64, importlib, json, os, urllib.request
import pytest
from blockbuster import BlockBuster

UPSTREAM = os.environ.get("UPSTREAM")
VENDORS = ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com")
BlockBuster.activate = lambda self: None  # it looks for blocking calls in pydantic-ai


def call(data=None):
    with urllib.request.urlopen(urllib.request.Request(UPSTREAM + "/recording", data)) as answer:
        return json.load(answer)


def through_gateway(client):
    usual = client.send

    def send(self, request, **more):
        if request.url.host in VENDORS:
            request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=int(os.environ["PORT"]))
            request.headers["host"] = request.url.netloc.decode()
        return usual(self, request, **more)

    client.send = send


if UPSTREAM:
    for name in ("httpx", "httpx2"):
        module = importlib.import_module(name)
        through_gateway(module.Client)
        through_gateway(module.AsyncClient)


@pytest.fixture(autouse=True)
def recording_as_upstream(vcr):
    if vcr is None or not vcr.data:
        pytest.skip("has no recorded answer")
    if not UPSTREAM:
        yield
        return
    type(vcr).all_played = property(lambda self: True)
    answers = [
        {
            "method": request.method,
            "path": request.path,
            "status": answer["status"]["code"],
            "type": next((v[0] for k, v in answer["headers"].items() if k.lower() == "content-type"), ""),
            "body": base64.b64encode(answer["body"]["string"] or b"").decode(),
        }
        for request, answer in vcr.data
        if request.host in VENDORS
    ]
    call(json.dumps(answers).encode())
    yield
    if not call()["served"]:
        pytest.skip("sends nothing to the vendor's own API")
"""
REASONS: Final = (
    Reason(
        "are not served by this gateway", "uploads a file; the gateway does not serve this API", is_run=False
    ),
    Reason(
        "Event loop is closed",
        "the client closes a connection of an earlier test, whose loop has ended; passes with its file alone",
        is_run=False,
    ),
    Reason("conversation_id.*conv_", "conversations are the gateway's, under ids of its own"),
    Reason("_compact_", "the gateway compacts by itself, and only what it holds"),
    Reason(
        "test_background_mode",
        "the gateway runs background work by itself; what a provider stores is the provider's to show",
    ),
    Reason(
        "thinking_with_modified_history",
        "OpenAI refuses reasoning without the item after it: the gateway repairs the history and tries again",
    ),
)


def judge() -> Verdict:
    folder = environments.checkout("pydantic-ai", REPOSITORY)
    described = environments.run(Path("git"), "-C", str(folder), "describe", "--tags").strip()
    release = described.split("-")[0].removeprefix("v")
    interpreter = environments.python(
        "pydantic-ai", f"pydantic-ai-slim[{_EXTRAS}]=={release}", f"clai=={release}", *_MORE
    )
    with tempfile.TemporaryDirectory() as temporary:
        (Path(temporary) / "recording_as_upstream.py").write_text(_PLUGIN, encoding="utf-8")
        arguments = ("-p", "recording_as_upstream", "-m", "vcr", "--inline-snapshot=disable", *_QUIET, *FILES)
        alone = partial(pytest_run.run, interpreter, folder, *arguments, environ={"PYTHONPATH": temporary})
        with (
            ScriptedUpstream(decide=Recordings().decide) as upstream,
            LiveGateway(_toml(upstream.url)) as gateway,
        ):
            environ = {"PYTHONPATH": temporary, "UPSTREAM": upstream.url, "PORT": str(gateway.port)}
            through = pytest_run.run(interpreter, folder, *arguments, environ=environ)
        found = pytest_run.compared(through, alone)
    return pytest_run.verdict(
        "pydantic-ai",
        f"{release} ({environments.commit(folder)})",
        "tests of pydantic-ai's OpenAI, Anthropic and Google models with recorded answers, forwarded",
        found,
        REASONS,
    )


def _toml(url: str) -> str:
    return (
        '[providers.mine]\ndialects = ["openai-chat", "openai-responses", "anthropic", "gemini"]\n'
        f'base_url = "{url}/v1"\nbase_urls = {{ anthropic = "{url}", gemini = "{url}/v1beta" }}\n'
        'api_key = "upstream-key-0123456789"\n[models]\n"*" = "mine/*"\n[store]\nresponses = "upstream"\n'
    )


class Recordings:
    """The answers of one test: each is given once, to the first request with its method and path."""

    def __init__(self) -> None:
        self._left = list[dict[str, Any]]()
        self._served = 0

    def decide(self, request: Recorded) -> Behaviour:
        if request.path == _CASSETTE:
            if request.method == "POST":
                self._left, self._served = request.json, 0
            return Behaviour(body=json.dumps({"served": self._served}).encode())
        self._served += 1
        for at, answer in enumerate(self._left):
            if answer["method"] == request.method and _same_path(answer["path"], request.path):
                del self._left[at]
                return _behaviour(answer)
        return Behaviour(status=404, body=b'{"error": {"message": "there is no such recording"}}')


def _same_path(recorded: str, sent: str) -> bool:
    return _BASE.sub("", recorded) == _BASE.sub("", sent)


def _behaviour(answer: dict[str, Any]) -> Behaviour:
    body, kind = base64.b64decode(answer["body"]), answer["type"]
    headers = (("content-type", kind or "application/json"),)
    if "event-stream" in kind:
        pieces = tuple(piece + b"\n\n" for piece in re.split(rb"\r?\n\r?\n", body) if piece.strip())
        return Behaviour(status=answer["status"], headers=headers, pieces=pieces)
    return Behaviour(status=answer["status"], headers=headers, body=body)
