"""Signature Version 4, against Amazon's published example and its own signer."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.logins.clouds import signature_of
from tests.tiers import rows
from wireglot.logins.aws import SigningKey, signature_headers

KEY = SigningKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", "us-east-1", "bedrock")
TIME = "20150830T123600Z"
URLS = [
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-opus-5/invoke",
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke",
    "https://h.example/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/invoke-with-response-stream",
    "http://127.0.0.1:8080/openai/v1/chat/completions",
    "https://h.example:443/openai/v1/models?b=2&a=1&c",
    "https://h.example",
    "http://h.example:80/openai/v1/models",
    "http://h.example:443/openai/v1/models",
    "http://[::1]:8080/openai/v1/models",
]


def test_the_key_of_a_day_is_amazons_published_one() -> None:
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html"""
    from wireglot.logins.aws import _signing_key

    key = SigningKey("", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", "us-east-1", "iam")
    assert _signing_key(key, "20150830").hex() == (
        "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
    )


@rows("url", URLS)
@rows("token", ["", "a/session+token=="])
@rows("content_type", ["", "application/json"])
def test_amazons_own_signer_agrees(url: str, token: str, content_type: str) -> None:
    _agrees(url, token, content_type)


@given(
    st.lists(
        # Characters that sort before and after "=", so that a name may be the beginning of another one.
        st.tuples(
            st.text("x1-.~%AZ", min_size=1, max_size=3), st.sampled_from(["", "=", "=1", "=-", "=a%3D"])
        ),
        min_size=1,
        max_size=5,
    )
)
@example([("x", "=1"), ("x1", "=2")])
def test_amazons_own_signer_agrees_on_any_query(pairs: list[tuple[str, str]]) -> None:
    _agrees(f"https://h.example/v1/models?{'&'.join(map(''.join, pairs))}")


def _agrees(url: str, token: str = "", content_type: str = "") -> None:
    pytest.importorskip("botocore", reason="the extra wireglot[bedrock]")
    auth, requests, credentials = (
        import_module(f"botocore.{name}") for name in ("auth", "awsrequest", "credentials")
    )
    key = SigningKey(KEY.access_key, KEY.secret_key, token, KEY.region, KEY.service)
    body = '{"x":"ü"}'.encode()
    ours = dict(signature_headers(key, "POST", url, body, TIME, content_type))
    sent = {name: value for name, value in ours.items() if name != "authorization"}
    if content_type:
        sent["content-type"] = content_type
    request = requests.AWSRequest("POST", url.removesuffix("?"), headers=sent, data=body)
    request.context["timestamp"] = TIME
    request.params = {}
    keys = credentials.Credentials(key.access_key, key.secret_key, token)
    signer = auth.SigV4Auth(keys, key.service, key.region)
    canonical = signer.canonical_request(request)
    theirs = signer.signature(signer.string_to_sign(request, canonical), request)
    found = re.search("Signature=([0-9a-f]{64})$", ours["authorization"])
    assert found is not None
    assert found[1] == theirs, canonical


@rows("content_type", ["", "application/json"])
def test_all_that_is_sent_for_the_signature_is_signed_in_order(content_type: str) -> None:
    """Amazon takes no request with a header of its own that is not signed."""
    key = SigningKey(KEY.access_key, KEY.secret_key, "a-session", KEY.region, KEY.service)
    sent = dict(signature_headers(key, "POST", URLS[0], b"{}", TIME, content_type))
    assert sent["x-amz-security-token"] == "a-session"
    names = re.search("SignedHeaders=([^,]*),", sent.pop("authorization"))
    assert names is not None
    signed = names[1].split(";")
    assert signed == sorted({"host", *sent, *(["content-type"] if content_type else [])})


@rows("url", URLS)
def test_the_double_recomputes_the_same(url: str) -> None:
    body = b"{}"
    ours = dict(signature_headers(KEY, "POST", url, body, TIME, "application/json"))
    path = url.split("/", 3)[3] if url.count("/") > 2 else ""
    host = url.split("/")[2]
    host = host.removesuffix(":443" if url.startswith("https") else ":80")
    headers = {**ours, "host": host, "content-type": "application/json"}
    assert (
        signature_of("POST", "/" + path, headers, body, {KEY.access_key: KEY.secret_key})
        in ours["authorization"]
    )


def test_a_byte_that_changes_changes_the_signature() -> None:
    def signed(
        key: SigningKey = KEY, method: str = "POST", url: str = URLS[0], body: bytes = b"", time: str = TIME
    ) -> str:
        return dict(signature_headers(key, method, url, body, time))["authorization"].rpartition("=")[2]

    other = SigningKey(KEY.access_key, "another", "", KEY.region, KEY.service)
    far = SigningKey(KEY.access_key, KEY.secret_key, "", "eu-west-1", KEY.service)
    changed = {
        signed(),
        signed(body=b"x"),
        signed(method="GET"),
        signed(url=URLS[1]),
        signed(time="20150830T123601Z"),
    }
    assert len(changed | {signed(other), signed(far)}) == 7


def test_no_secret_is_in_the_headers_or_the_key_s_own_words() -> None:
    key = SigningKey("AKID", "very-secret-key", "token", "us-east-1", "bedrock")
    assert "very-secret-key" not in str(signature_headers(key, "POST", URLS[0], b"", TIME)) + repr(key)
