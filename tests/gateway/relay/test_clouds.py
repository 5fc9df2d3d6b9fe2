"""A gateway before doubles of the clouds: credentials, forms and framings from end to end."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from tests.logins.clouds import (
    ACCESS_KEY,
    API_KEY,
    CLAUDE_EVENTS,
    CLIENT,
    CLIENT_SECRET,
    SECRET_KEY,
    TENANT,
    Cloud,
    chunk,
    exception,
    service_account,
)
from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.wire.event_stream import message

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ASK: dict[str, Any] = {"max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as double:
        yield double


def aws(cloud: Cloud, login: str = "", **fields: str) -> str:
    keys = (
        login
        or f'kind = "aws", access_key = "{ACCESS_KEY}", secret_key = "{SECRET_KEY}", region = "us-east-1"'
    )
    return f'[providers.bedrock]\nbase_url = "{cloud.url}"\nlogin = {{ {keys} }}\n' + _lines(fields)


def azure(cloud: Cloud, secret: str = CLIENT_SECRET) -> str:
    login = f'kind = "entra", tenant = "{TENANT}", client = "{CLIENT}", secret = "{secret}", authority = "{cloud.url}"'
    return f'[providers.azure]\nbase_url = "{cloud.url}/openai/v1"\nlogin = {{ {login} }}\n'


def vertex(cloud: Cloud, folder: Path, name: str = "vertex", path: str = "") -> str:
    file = folder / "account.json"
    file.write_text(service_account(cloud.url))
    file.chmod(0o600)
    return f'[providers.{name}]\nbase_url = "{cloud.url}{path}"\nlogin = {{ kind = "google", key_file = "{file}" }}\n'


def _lines(fields: dict[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in fields.items())


def claude(gateway: LiveGateway) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=gateway.url, api_key="wg", max_retries=0)


def gpt(gateway: LiveGateway) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="wg", max_retries=0)


def said(answer: anthropic.types.Message) -> str:
    return "".join(part.text for part in answer.content if part.type == "text")


def post(gateway: LiveGateway, path: str, body: dict[str, Any], **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(
        gateway.url + path, json.dumps(body).encode(), {"content-type": "application/json", **named}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()


# Bedrock


def test_a_claude_client_is_served_by_bedrock_with_a_signature(cloud: Cloud) -> None:
    with LiveGateway(aws(cloud)) as gateway:
        answer = claude(gateway).messages.create(model=f"bedrock/{MODEL}", **ASK)
        assert said(answer) == "Hello."
        asked, headers, body = cloud.asked[-1]
        assert asked == "POST /model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke"
        document = json.loads(body)
        assert "model" not in document
        assert "stream" not in document
        assert document["anthropic_version"] == "2026-10-21"  # the client's own
        assert headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/")
        assert "/us-east-1/bedrock/aws4_request" in headers["authorization"]
        assert "anthropic-version" not in headers


@pytest.mark.parametrize("cut", [0, 1, 7])
def test_its_stream_comes_out_of_amazons_frames_whatever_their_cut(cloud: Cloud, cut: int) -> None:
    cloud.cut = cut
    with LiveGateway(aws(cloud)) as gateway:
        with claude(gateway).messages.stream(model=f"bedrock/{MODEL}", **ASK) as stream:
            assert "".join(stream.text_stream) == "Hello."
            assert stream.get_final_message().usage.output_tokens == 3
        assert cloud.asked[-1][0].endswith("/invoke-with-response-stream")
        assert b'"stream"' not in cloud.asked[-1][2]


def test_a_client_of_another_dialect_is_served_by_bedrock(cloud: Cloud) -> None:
    with LiveGateway(aws(cloud)) as gateway:
        chunks = list(
            gpt(gateway).chat.completions.create(
                model=f"bedrock/{MODEL}", messages=[{"role": "user", "content": "Hi"}], stream=True
            )
        )
        assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == "Hello."
        assert json.loads(cloud.asked[-1][2])["anthropic_version"] == "bedrock-2023-05-31"


def test_an_api_key_of_bedrock_is_a_bearer_token(cloud: Cloud) -> None:
    toml = f'[providers.bedrock]\nbase_url = "{cloud.url}"\napi_key = "{API_KEY}"\n'
    with LiveGateway(toml) as gateway:
        assert said(claude(gateway).messages.create(model=f"bedrock/{MODEL}", **ASK)) == "Hello."
        assert cloud.asked[-1][1]["authorization"] == f"Bearer {API_KEY}"
        assert "x-amz-date" not in cloud.asked[-1][1]


def test_an_inference_profile_is_one_segment_of_the_path(cloud: Cloud) -> None:
    profile = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
    with LiveGateway(aws(cloud)) as gateway:
        assert said(claude(gateway).messages.create(model=f"bedrock/{profile}", **ASK)) == "Hello."
        assert "application-inference-profile%2Fabc/invoke" in cloud.asked[-1][0]


def test_flags_that_bedrock_knows_go_into_the_body_and_others_are_declared(cloud: Cloud) -> None:
    """It refuses the whole request for one flag that it does not know, and Claude Code sends several."""
    with LiveGateway(aws(cloud)) as gateway:
        answer = claude(gateway).messages.with_raw_response.create(
            model=f"bedrock/{MODEL}",
            extra_headers={
                "anthropic-beta": "interleaved-thinking-2025-05-14,prompt-caching-scope-2026-01-05"
            },
            **ASK,
        )
        _, headers, body = cloud.asked[-1]
        assert json.loads(body)["anthropic_beta"] == ["interleaved-thinking-2025-05-14"]
        assert "anthropic-beta" not in headers
        assert answer.headers["x-wireglot-losses"] == "unknown_field"
        strict = {"anthropic-beta": "prompt-caching-scope-2026-01-05", "x-wireglot-loss-policy": "strict"}
        with pytest.raises(anthropic.BadRequestError, match="prompt-caching-scope"):
            claude(gateway).messages.create(model=f"bedrock/{MODEL}", extra_headers=strict, **ASK)


def test_a_session_token_is_sent_and_signed(cloud: Cloud) -> None:
    cloud.session_token = "session-token-0123456789"
    login = (
        f'kind = "aws", access_key = "{ACCESS_KEY}", secret_key = "{SECRET_KEY}", '
        f'session_token = "{cloud.session_token}", region = "eu-west-1"'
    )
    with LiveGateway(aws(cloud, login)) as gateway:
        assert said(claude(gateway).messages.create(model=f"bedrock/{MODEL}", **ASK)) == "Hello."
        assert "x-amz-security-token" in cloud.asked[-1][1]["authorization"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", "rate_limit_error"),
        ("validationException", "invalid_request_error"),
        ("internalServerException", "api_error"),
        ("modelTimeoutException", "timeout_error"),
        ("neverHeardOfException", "api_error"),
    ],
)
def test_an_exception_in_the_stream_is_an_error_of_the_stream(cloud: Cloud, name: str, kind: str) -> None:
    cloud.frames = [*(chunk(event) for event in CLAUDE_EVENTS[:4]), exception(name, "Too hot.")]
    with LiveGateway(aws(cloud)) as gateway:
        status, body = post(gateway, "/v1/messages", {"model": f"bedrock/{MODEL}", "stream": True, **ASK})
        assert status == 200
        assert b"lo." in body
        last = body.rstrip().rpartition(b"\n")[2].removeprefix(b"data: ")
        error = json.loads(last)["error"]
        assert error["type"] == kind
        assert "Too hot." in error["message"]


def test_an_exception_in_place_of_a_stream_is_an_error_with_its_status(cloud: Cloud) -> None:
    cloud.frames = [exception("validationException", "messages: too many of them")]
    with LiveGateway(aws(cloud)) as gateway:
        status, body = post(gateway, "/v1/messages", {"model": f"bedrock/{MODEL}", "stream": True, **ASK})
        assert status == 400
        assert b"too many of them" in body


@pytest.mark.parametrize("where", ["prelude", "message", "middle"])
def test_a_frame_with_a_wrong_checksum_breaks_the_stream_and_says_so(cloud: Cloud, where: str) -> None:
    frames = [chunk(event) for event in CLAUDE_EVENTS]
    bad = bytearray(frames[4])
    bad[{"prelude": 9, "message": -1, "middle": 60}[where]] ^= 1
    cloud.frames = [*frames[:4], bytes(bad), *frames[5:]]
    with LiveGateway(aws(cloud, retry="{ retries = 0 }")) as gateway:
        status, body = post(gateway, "/v1/messages", {"model": f"bedrock/{MODEL}", "stream": True, **ASK})
        assert status == 200
        assert b"lo." in body  # what came before it
        assert b"event: error" in body
        assert b"checksum" in body
        assert b"message_stop" not in body


def test_a_stream_that_ends_inside_a_frame_is_no_whole_answer(cloud: Cloud) -> None:
    frames = [chunk(event) for event in CLAUDE_EVENTS]
    cloud.frames = [*frames[:-2], frames[-2][:-5]]
    with LiveGateway(aws(cloud, retry="{ retries = 0 }")) as gateway:
        _, body = post(gateway, "/v1/messages", {"model": f"bedrock/{MODEL}", "stream": True, **ASK})
        assert b"event: error" in body
        assert b"inside a message" in body


def test_frames_of_other_kinds_are_stepped_over(cloud: Cloud) -> None:
    other = message({":message-type": "event", ":event-type": "initial-response"}, b"{}")
    cloud.frames = [other, *(chunk(event) for event in CLAUDE_EVENTS)]
    with (
        LiveGateway(aws(cloud)) as gateway,
        claude(gateway).messages.stream(model=f"bedrock/{MODEL}", **ASK) as stream,
    ):
        assert "".join(stream.text_stream) == "Hello."


def test_a_machine_with_a_wrong_clock_is_informed_in_amazons_words(cloud: Cloud) -> None:
    cloud.skew = 3600
    with LiveGateway(aws(cloud)) as gateway:
        status, body = post(gateway, "/v1/messages", {"model": f"bedrock/{MODEL}", **ASK})
        assert status == 500
        assert b"(it says: Signature expired" in body


def test_a_key_that_was_taken_back_is_reported_as_such_and_rests(cloud: Cloud) -> None:
    cloud.keys = {}
    with LiveGateway(aws(cloud)) as gateway:
        for _ in range(2):
            status, body = post(gateway, "/v1/messages", {"model": f"bedrock/{MODEL}", **ASK})
            assert status == 500
            assert b"bedrock does not accept this gateway's key" in body
            assert b"security token included in the request is invalid" in body
        assert len(cloud.asked) == 1
        assert SECRET_KEY not in (gateway.folder / "log").read_text()


def test_the_models_of_others_are_asked_in_openais_dialect(cloud: Cloud) -> None:
    toml = (
        aws(cloud)
        .replace("providers.bedrock", "providers.bedrock-openai")
        .replace(cloud.url, f"{cloud.url}/openai/v1")
    )
    with LiveGateway(toml) as gateway:
        answer = gpt(gateway).chat.completions.create(
            model="bedrock-openai/openai.gpt-oss-120b-1:0", messages=[{"role": "user", "content": "Hi"}]
        )
        assert answer.choices[0].message.content == "Hello."
        asked, headers, _ = cloud.asked[-1]
        assert asked == "POST /openai/v1/chat/completions"
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256")


# Azure


def test_azure_takes_its_key_in_a_header_of_its_own(cloud: Cloud) -> None:
    toml = f'[providers.azure]\nbase_url = "{cloud.url}/openai/v1"\napi_key = "{API_KEY}"\n'
    with LiveGateway(toml) as gateway:
        answer = gpt(gateway).chat.completions.create(
            model="azure/my-gpt", messages=[{"role": "user", "content": "Hi"}]
        )
        assert answer.choices[0].message.content == "Hello."
        asked, headers, body = cloud.asked[-1]
        assert asked == "POST /openai/v1/chat/completions"
        assert headers["api-key"] == API_KEY
        assert "authorization" not in headers
        assert json.loads(body)["model"] == "my-gpt"


def test_a_deployment_is_in_the_path_and_its_version_in_the_query(cloud: Cloud) -> None:
    toml = (
        f'[providers.azure-deployments]\nbase_url = "{cloud.url}/openai"\napi_key = "{API_KEY}"\n'
        'variables = { api_version = "2024-10-21" }\n'
    )
    with LiveGateway(toml) as gateway:
        answer = gpt(gateway).chat.completions.create(
            model="azure-deployments/my gpt".replace(" ", "-"), messages=[{"role": "user", "content": "Hi"}]
        )
        assert answer.choices[0].message.content == "Hello."
        assert cloud.asked[-1][0] == "POST /openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"


def test_entra_gives_a_token_that_is_sent_as_one(cloud: Cloud) -> None:
    with LiveGateway(azure(cloud)) as gateway:
        gpt(gateway).chat.completions.create(
            model="azure/my-gpt", messages=[{"role": "user", "content": "Hi"}]
        )
        headers = cloud.asked[-1][1]
        assert headers["authorization"] == f"Bearer {next(iter(cloud.tokens))}"
        assert "api-key" not in headers
        assert "azure/dep-1" in [model.id for model in gpt(gateway).models.list()]
        assert gateway.wait_log(event="signed in")[0]["provider"] == "azure"
        assert CLIENT_SECRET not in (gateway.folder / "log").read_text()


def test_a_refused_sign_in_is_reported_with_its_fix_and_without_the_secret(cloud: Cloud) -> None:
    with LiveGateway(azure(cloud, "wrong-secret-0123456789")) as gateway:
        status, body = post(
            gateway,
            "/v1/chat/completions",
            {"model": "azure/my-gpt", "messages": [{"role": "user", "content": "Hi"}]},
        )
        assert status in (500, 502)
        assert b"cannot sign in to azure" in body
        assert b"AADSTS7000215" in body
        noted = gateway.wait_log(event="login failed")[0]
        assert noted["fix"] == "set the value of the client secret, not its id"
        line = gateway.wait_log()[0]
        assert "login" in str(line)
        assert "wrong-secret" not in (gateway.folder / "log").read_text()
        assert not any("/chat/completions" in asked for asked, _, _ in cloud.asked)


# Vertex


def test_a_gemini_client_is_served_by_vertex_with_a_service_account(cloud: Cloud, tmp_path: Path) -> None:
    with LiveGateway(
        vertex(cloud, tmp_path, path="/v1/projects/p1/locations/global/publishers/google")
    ) as gateway:
        client = genai.Client(api_key="wg", http_options={"base_url": gateway.url})
        answer = client.models.generate_content(model="vertex/gemini-2.5-flash", contents="Hi")
        assert answer.text == "Hello."
        asked, headers, _ = cloud.asked[-1]
        assert asked.startswith(
            "POST /v1/projects/p1/locations/global/publishers/google/models/gemini-2.5-flash:"
        )
        assert headers["authorization"] == f"Bearer {next(iter(cloud.tokens))}"


def test_a_claude_client_is_served_by_vertex(cloud: Cloud, tmp_path: Path) -> None:
    with LiveGateway(vertex(cloud, tmp_path, "vertex-anthropic")) as gateway:
        with claude(gateway).messages.stream(
            model="vertex-anthropic/claude-sonnet-4-5@20250929",
            extra_headers={"anthropic-version": "2023-06-01", "anthropic-beta": "some-flag"},
            **ASK,
        ) as stream:
            assert "".join(stream.text_stream) == "Hello."
        asked, headers, body = cloud.asked[-1]
        assert asked == "POST /models/claude-sonnet-4-5@20250929:streamRawPredict"
        document = json.loads(body)
        assert document["anthropic_version"] == "vertex-2023-10-16"
        assert document["stream"] is True
        assert "model" not in document
        assert headers["anthropic-beta"] == "some-flag"


# Renewal


def test_fifty_requests_at_once_cause_one_renewal(cloud: Cloud) -> None:
    cloud.give.clear()
    with LiveGateway(azure(cloud)) as gateway, ThreadPoolExecutor(50) as threads:
        body = {"model": "azure/my-gpt", "messages": [{"role": "user", "content": "Hi"}]}
        answers = [threads.submit(post, gateway, "/v1/chat/completions", body) for _ in range(50)]
        wait_until(lambda: gateway.process.gateway.in_flight == 50 and cloud.renewals)
        assert cloud.renewals == 1
        cloud.give.set()
        assert {answer.result()[0] for answer in answers} == {200}
        assert (cloud.renewals, cloud.renewing_most) == (1, 1)


def test_a_token_that_runs_out_while_streams_run_harms_none_of_them(cloud: Cloud, tmp_path: Path) -> None:
    cloud.go_on.clear()
    with (
        LiveGateway(vertex(cloud, tmp_path, "vertex-anthropic")) as gateway,
        ThreadPoolExecutor(8) as threads,
    ):
        body = {"model": "vertex-anthropic/claude-x", "stream": True, **ASK}
        first = [threads.submit(post, gateway, "/v1/messages", body) for _ in range(4)]
        wait_until(lambda: cloud.streaming == 4)
        cloud.revoke()  # all tokens so far have run out
        _age(gateway)
        second = [threads.submit(post, gateway, "/v1/messages", body) for _ in range(4)]
        wait_until(lambda: cloud.streaming == 8)
        cloud.go_on.set()
        for answer in (*first, *second):
            status, said = answer.result()
            assert status == 200
            assert b"message_stop" in said
        assert cloud.renewals == 2


def test_a_revoked_token_is_renewed_once_and_the_request_goes_through(cloud: Cloud) -> None:
    with LiveGateway(azure(cloud)) as gateway:
        body = {"model": "azure/my-gpt", "messages": [{"role": "user", "content": "Hi"}]}
        assert post(gateway, "/v1/chat/completions", body)[0] == 200
        _age(gateway)
        cloud.revoke()
        assert post(gateway, "/v1/chat/completions", body)[0] == 200
        assert cloud.renewals == 2


def test_a_token_that_is_refused_fresh_is_not_renewed_without_end(cloud: Cloud) -> None:
    cloud.seconds = 3600
    with LiveGateway(azure(cloud)) as gateway:
        gateway.wait_log(event="signed in")
        cloud.revoke()
        body = {"model": "azure/my-gpt", "messages": [{"role": "user", "content": "Hi"}]}
        status, said = post(gateway, "/v1/chat/completions", body)
        assert status in (500, 502)
        assert b"does not accept" in said
        assert b"tok-1" not in said  # the cloud repeats it
        assert "tok-1" not in (gateway.folder / "log").read_text()
        assert cloud.renewals == 1


def test_a_reload_keeps_the_token(cloud: Cloud) -> None:
    toml = azure(cloud)
    with LiveGateway(toml) as gateway:
        gateway.wait_log(event="signed in")
        gateway.reconfigure(toml + "concurrency = 5\n")
        gateway.wait_log(event="reloaded")
        body = {"model": "azure/my-gpt", "messages": [{"role": "user", "content": "Hi"}]}
        assert post(gateway, "/v1/chat/completions", body)[0] == 200
        assert cloud.renewals == 1


def _age(gateway: LiveGateway) -> None:
    """As if the tokens had been given a while ago."""

    async def work() -> None:
        for entry in gateway.process.gateway.sign_ins._entries.values():
            entry.renewal._since -= 120

    gateway.call(work())
