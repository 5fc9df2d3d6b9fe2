"""What the SDKs raise when an upstream fails, when the gateway refuses, and when a stream breaks."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors
from google.genai import types

from tests.gateway.sdk.sdk_kit import FRAIL, LOCKED, MODEL, UNLISTED, UPSTREAMS, Stage, stage_fixtures
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

Raised = tuple[int, str, str, dict[str, str]]
"""Status, class, message and headers of what an SDK raised."""
running, stage = stage_fixtures()


def ask_claude(stage: Stage, model: str, text: str, stream: bool) -> Any:
    asked: Any = [{"role": "user", "content": text}]
    answer: Any = stage.claude.messages.create(model=model, max_tokens=100, messages=asked, stream=stream)
    return list(answer) if stream else answer


def ask_chat(stage: Stage, model: str, text: str, stream: bool) -> Any:
    asked: Any = [{"role": "user", "content": text}]
    answer: Any = stage.gpt.chat.completions.create(model=model, messages=asked, stream=stream)
    return list(answer) if stream else answer


def ask_responses(stage: Stage, model: str, text: str, stream: bool) -> Any:
    answer: Any = stage.gpt.responses.create(model=model, input=text, stream=stream)
    return list(answer) if stream else answer


def ask_genai(stage: Stage, model: str, text: str, stream: bool) -> Any:
    if stream:
        return list(stage.gemini.models.generate_content_stream(model=model, contents=text))
    return stage.gemini.models.generate_content(model=model, contents=text)


SDKS: dict[str, Callable[[Stage, str, str, bool], Any]] = {
    "anthropic": ask_claude,
    "openai-chat": ask_chat,
    "openai-responses": ask_responses,
    "genai": ask_genai,
}


def raised(sdk: str, stage: Stage, model: str, text: str = "x", stream: bool = False) -> Raised:
    with pytest.raises((anthropic.APIStatusError, openai.APIStatusError, genai_errors.APIError)) as caught:
        SDKS[sdk](stage, model, text, stream)
    problem: Any = caught.value
    headers = dict(problem.response.headers)
    if isinstance(problem, genai_errors.APIError):
        assert problem.status, "a word such as INVALID_ARGUMENT"
        assert headers["x-wireglot-request-id"]
        return problem.code, type(problem).__name__, str(problem.message), headers
    assert problem.request_id, "the SDK shows people this id"
    assert problem.request_id == headers["x-wireglot-request-id"]
    return problem.status_code, type(problem).__name__, problem.message, headers


CLASSES = {
    # status of the upstream -> what each SDK calls it
    400: ("BadRequestError", "BadRequestError", "ClientError"),
    404: ("NotFoundError", "NotFoundError", "ClientError"),
    413: ("ContentTooLargeError", "APIStatusError", "ClientError"),
    429: ("RateLimitError", "RateLimitError", "ClientError"),
    500: ("InternalServerError", "InternalServerError", "ServerError"),
    529: ("OverloadedError", "InternalServerError", "ServerError"),
}


def class_of(sdk: str, status: int) -> str:
    place = 0 if sdk == "anthropic" else 2 if sdk == "genai" else 1
    return CLASSES[status][place]


@pytest.mark.sampled("sdk", each=3)
@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("status", CLASSES)
def test_an_upstreams_error_keeps_its_class(stage: Stage, sdk: str, status: int) -> None:
    for stream in (False, True):
        stage.upstream.reset()
        stage.upstream.next(Behaviour(error=status))
        # Each error has a model of its own: one that was asked to wait would be asked later otherwise.
        model = f"{FRAIL}-{status}-{sdk}-{stream}"
        reported, name, message, headers = raised(sdk, stage, model, stream=stream)
        assert name == class_of(sdk, status)
        own = sdk == stage.dialect or (sdk == "genai" and stage.dialect == "gemini")
        # Only Anthropic has a 529; from an upstream of one's own dialect every status is as it came.
        assert reported == (503 if status == 529 and sdk != "anthropic" and not own else status)
        assert f"status {status}" in message
        assert headers["x-wireglot-route"] == f"frail/{model.removeprefix('frail-')}"
        assert len(stage.upstream.requests) == 1


@pytest.mark.sampled("sdk", each=3)
@pytest.mark.parametrize("sdk", SDKS)
def test_a_rejected_upstream_key_is_not_blamed_on_the_client(stage: Stage, sdk: str) -> None:
    """A client that is reported 401 throws away its own key."""
    stage.upstream.next(Behaviour(error=401))
    reported, _, message, headers = raised(sdk, stage, LOCKED)
    assert reported >= 500
    assert "credential" in message
    assert headers["x-should-retry"] == "false"
    assert "upstream-key" not in message


def test_an_sdk_that_retries_does_not_repeat_what_is_not_supported(stage: Stage) -> None:
    """Both vendors' SDKs repeat every 5xx, but not one with `x-should-retry: false`."""
    claude, gpt = stage.claude.with_options(max_retries=2), stage.gpt.with_options(max_retries=2)
    asked: Any = [{"role": "user", "content": "x"}]
    calls: list[Callable[[], Any]] = [
        lambda: claude.messages.create(model=f"{FRAIL}-501-a", max_tokens=9, messages=asked),
        lambda: gpt.chat.completions.create(model=f"{FRAIL}-501-c", messages=asked),
        lambda: gpt.responses.create(model=f"{FRAIL}-501-r", input="x"),
    ]
    for call in calls:
        stage.upstream.reset()
        stage.upstream.otherwise = Behaviour(status=501, body=b"")
        with pytest.raises((anthropic.APIStatusError, openai.APIStatusError)) as caught:
            call()
        problem: Any = caught.value
        assert problem.status_code == 501
        assert problem.response.headers["x-should-retry"] == "false"
        assert len(stage.upstream.requests) == 1
    stage.upstream.reset()


@pytest.mark.sampled("sdk", "stream", each=2)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("sdk", SDKS)
def test_what_an_upstream_has_not_implemented_is_a_501(stage: Stage, sdk: str, stream: bool) -> None:
    """In the words of its dialect; the model stays open to other requests."""
    stage.upstream.reset()
    for _ in range(6):
        stage.upstream.next(Behaviour(error=501))
        reported, _, message, headers = raised(sdk, stage, f"{FRAIL}-unimplemented", stream=stream)
        assert reported == 501
        assert "status 501" in message
        assert headers["x-should-retry"] == "false"
    assert len(stage.upstream.requests) == 6


@pytest.mark.sampled("sdk", each=2)
@pytest.mark.parametrize("sdk", SDKS)
def test_the_wait_an_upstream_asks_for_is_reported(stage: Stage, sdk: str) -> None:
    stage.upstream.next(Behaviour(error=429, retry_after=7))
    _, _, _, headers = raised(sdk, stage, f"{FRAIL}-wait-{sdk}")
    assert headers["retry-after"] == "7"


@pytest.mark.sampled("sdk", each=2)
@pytest.mark.parametrize("sdk", SDKS)
def test_a_model_that_leads_nowhere_is_not_found(stage: Stage, sdk: str) -> None:
    reported, name, message, _ = raised(sdk, stage, UNLISTED)
    assert reported == 404
    assert name == class_of(sdk, 404)
    assert UNLISTED in message
    assert not stage.upstream.requests


def test_what_is_not_served_is_reported_as_elsewhere(stage: Stage) -> None:
    """[L14] In the words that the vendors' SDKs read."""
    with pytest.raises(openai.NotFoundError, match="images are not served") as caught:
        stage.gpt.images.generate(model="gpt-image-1", prompt="x")
    assert caught.value.code == "not_served"
    with pytest.raises(genai_errors.ClientError, match="explicit caches are not served") as refused:
        list(stage.gemini.caches.list())
    assert (refused.value.code, refused.value.status) == (404, "NOT_FOUND")
    assert not stage.upstream.requests


@pytest.mark.sampled("sdk", each=2)
@pytest.mark.parametrize("sdk", SDKS)
def test_a_bad_value_is_refused_by_its_place(stage: Stage, sdk: str) -> None:
    bodies: dict[str, tuple[str, bytes]] = {
        "anthropic": ("/v1/messages", b'{"model": "m1", "max_tokens": 9, "messages": "x", "stream": 1}'),
        "openai-chat": ("/v1/chat/completions", b'{"model": 1, "messages": []}'),
        "openai-responses": ("/v1/responses", b'{"model": "m1", "stream": "yes", "input": "x"}'),
        "genai": (f"/v1beta/models/{MODEL}:generateContent", b"[]"),
    }
    path, body = bodies[sdk]
    if sdk == "genai" and stage.dialect == "gemini":
        pytest.skip("passed through as it is, for the upstream to judge")
    answer = stage.post(path, body)
    assert answer.status == 400
    assert b'"error"' in answer.body
    assert answer.headers["x-wireglot-request-id"] == answer.headers["x-request-id"]
    assert ("request-id" in answer.headers) is (sdk == "anthropic")
    assert not stage.upstream.requests


@pytest.mark.sampled("sdk", each=2)
@pytest.mark.parametrize("sdk", SDKS)
def test_failures_that_pass_are_not_seen(stage: Stage, sdk: str) -> None:
    for _ in range(5):  # retries may be a fifth of the requests: these pay for it
        SDKS[sdk](stage, MODEL, "x", False)
    stage.upstream.reset()
    stage.upstream.next(Behaviour(fault="close"))
    assert SDKS[sdk](stage, MODEL, "x", False)
    assert len(stage.upstream.requests) == 2


@pytest.mark.sampled("fault", each=3)
@pytest.mark.parametrize("fault", ["error-midstream", "close-midstream", "no-terminal", "bad-json"])
def test_a_broken_stream_raises_in_every_sdk(stage: Stage, fault: Any) -> None:
    text = "[[demo:text 60]]"

    def again() -> str:
        stage.upstream.next(Behaviour(fault=fault))
        return FRAIL

    def problems(dialect: str, usual: type[Exception]) -> tuple[type[Exception], ...]:
        """Bytes that are passed on as they are, the SDK finds wrong by itself."""
        return (usual, ValueError) if fault == "bad-json" and dialect == stage.dialect else (usual,)

    with (
        pytest.raises(problems("anthropic", anthropic.APIError)),
        stage.claude.messages.stream(
            model=again(), max_tokens=400, messages=[{"role": "user", "content": text}]
        ) as stream,
    ):
        stream.until_done()
    with pytest.raises(problems("openai-chat", openai.APIError)):
        list(
            stage.gpt.chat.completions.create(
                model=again(), messages=[{"role": "user", "content": text}], stream=True
            )
        )
    with pytest.raises(problems("openai-responses", openai.APIError)):
        list(stage.gpt.responses.create(model=again(), input=text, stream=True))
    with pytest.raises(problems("gemini", genai_errors.APIError)):
        list(stage.gemini.models.generate_content_stream(model=again(), contents=text))


@pytest.mark.sampled("sdk", each=3)
@pytest.mark.parametrize("sdk", SDKS)
def test_an_error_before_the_first_word_is_an_error_with_a_status(stage: Stage, sdk: str) -> None:
    stage.upstream.next(Behaviour(fault="error-first"))
    reported, _, message, _ = raised(sdk, stage, FRAIL, "[[demo:text 20]]", True)
    assert reported == (529 if sdk == "anthropic" else 503)
    assert "overloaded" in message


@rows("dialect", UPSTREAMS)
def test_a_wrong_client_key_is_refused_by_every_sdk(dialect: str) -> None:
    keys = f'[keys]\nteam = "sha256:{sha256(b"right").hexdigest()}"\n'
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect, keys) as gateway:
        claude = anthropic.Anthropic(
            base_url=gateway.url,
            api_key="wrong",
            max_retries=0,
            http_client=anthropic.DefaultHttpxClient(verify=False),
        )
        with pytest.raises(anthropic.AuthenticationError) as refused:
            claude.messages.create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "x"}])
        assert refused.value.request_id
        assert refused.value.response.headers["x-should-retry"] == "false"
        gpt = openai.OpenAI(
            base_url=f"{gateway.url}/v1",
            api_key="wrong",
            max_retries=0,
            http_client=openai.DefaultHttpxClient(verify=False),
        )
        with pytest.raises(openai.AuthenticationError):
            gpt.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x"}])
        with pytest.raises(openai.AuthenticationError):
            gpt.responses.create(model=MODEL, input="x")
        gemini = genai.Client(
            api_key="wrong",
            http_options=types.HttpOptions(base_url=gateway.url, client_args={"verify": False}),
        )
        with pytest.raises(genai_errors.ClientError, match=r"API_KEY|API key|key"):
            gemini.models.generate_content(model=MODEL, contents="x")
        assert not upstream.requests
        right = claude.with_options(api_key="right")
        assert right.messages.create(
            model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "x"}]
        ).content
