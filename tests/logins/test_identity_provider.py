"""The OpenID Connect provider that other tests sign in with is strict, and misbehaves as it is set to."""

from __future__ import annotations

import base64
import hashlib
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from proofs.identity_provider import Fault, IdentityProvider, User

VERIFIER = "verifier-0123456789-0123456789-0123456789-0123"
CALLBACK = "http://127.0.0.1:9/oauth/callback"


@pytest.fixture
def provider():
    with IdentityProvider() as made:
        yield made


def authorization_url(provider: IdentityProvider, **changes: str | None) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    query = {
        "client_id": provider.client_id,
        "response_type": "code",
        "scope": "openid email",
        "redirect_uri": CALLBACK,
        "state": "state-1",
        "nonce": "nonce-1",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        **changes,
    }
    return f"{provider.url}/authorize?{urlencode({k: v for k, v in query.items() if v is not None})}"


def redirected(provider: IdentityProvider, **changes: str | None) -> dict[str, str]:
    callback = provider.log_in(authorization_url(provider, **changes))
    assert callback.startswith(f"{CALLBACK}?")
    return dict(parse_qsl(urlsplit(callback).query))


def token(provider: IdentityProvider, **form: str) -> tuple[int, dict[str, Any]]:
    basic = base64.b64encode(f"{provider.client_id}:{provider.client_secret}".encode()).decode()
    request = urllib.request.Request(
        f"{provider.url}/token", urlencode(form).encode(), {"authorization": f"Basic {basic}"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as answer:
        return answer.code, json.load(answer)


def exchanged(provider: IdentityProvider, **changes: str) -> tuple[int, dict[str, Any]]:
    form = {
        "grant_type": "authorization_code",
        "code": redirected(provider)["code"],
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
    }
    return token(provider, **form | changes)


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def id_token(provider: IdentityProvider) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Header, claims, and whether the published key verifies it."""
    status, answer = exchanged(provider)
    assert status == 200
    header, claims, signature = answer["id_token"].split(".")
    with urllib.request.urlopen(f"{provider.url}/jwks") as published:
        key = json.load(published)["keys"][0]
    numbers = [int.from_bytes(decoded(key[name]), "big") for name in ("e", "n")]
    try:
        rsa.RSAPublicNumbers(*numbers).public_key().verify(
            decoded(signature), f"{header}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        verified = True
    except InvalidSignature:
        verified = False
    return json.loads(decoded(header)), json.loads(decoded(claims)), verified


def test_an_id_token_names_the_user_and_verifies(provider):
    provider.user = User("ada", "ada@example.com", ("dev", "ops"), name="Ada")
    header, claims, verified = id_token(provider)
    assert verified
    assert header["alg"] == "RS256"
    named = {name: claims[name] for name in ("iss", "aud", "sub", "email", "groups", "nonce", "name")}
    assert named == {
        "iss": provider.url,
        "aud": provider.client_id,
        "sub": "ada",
        "email": "ada@example.com",
        "groups": ["dev", "ops"],
        "nonce": "nonce-1",
        "name": "Ada",
    }


def test_a_code_is_valid_once(provider):
    code = redirected(provider)["code"]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    assert token(provider, **form, code_verifier=VERIFIER)[0] == 200
    status, answer = token(provider, **form, code_verifier=VERIFIER)
    assert (status, answer["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "changes", [{"code_verifier": "another-verifier"}, {"redirect_uri": "http://127.0.0.1:9/else"}]
)
def test_a_code_needs_its_verifier_and_its_redirect_uri(provider, changes):
    status, answer = exchanged(provider, **changes)
    assert (status, answer["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"scope": "email"}, "invalid_scope"),
    ],
)
def test_an_authorization_request_is_checked(provider, changes, error):
    answer = redirected(provider, **changes)
    assert (answer["error"], answer["state"], "code" in answer) == (error, "state-1", False)


def test_a_refresh_token_is_rotated_and_ends_with_a_sign_out(provider):
    first = exchanged(provider)[1]["refresh_token"]
    status, answer = token(provider, grant_type="refresh_token", refresh_token=first)
    assert status == 200
    assert token(provider, grant_type="refresh_token", refresh_token=first)[1]["error"] == "invalid_grant"
    provider.sign_out()
    ended = token(provider, grant_type="refresh_token", refresh_token=answer["refresh_token"])
    assert (ended[0], ended[1]["error"]) == (400, "invalid_grant")


def test_a_wrong_client_secret_gets_nothing(provider):
    provider.client_secret, right = "another", provider.client_secret
    code = redirected(provider)["code"]
    request = urlencode({"grant_type": "authorization_code", "code": code, "client_secret": right})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{provider.url}/token", f"{request}&client_id=gateway".encode())
    assert refused.value.code == 401


FAULTY_CLAIMS: list[tuple[Fault, str, object]] = [
    ("wrong_nonce", "nonce", "somebody-elses"),
    ("no_nonce", "nonce", None),
    ("wrong_audience", "aud", "another-client"),
    ("wrong_issuer", "iss", "https://elsewhere.example"),
    ("no_subject", "sub", None),
]


@pytest.mark.parametrize(("fault", "claim", "value"), FAULTY_CLAIMS)
def test_a_fault_changes_one_claim_of_a_verified_token(provider, fault, claim, value):
    provider.fault = fault
    _, claims, verified = id_token(provider)
    assert verified
    assert claims.get(claim) == value


@pytest.mark.parametrize(
    ("fault", "algorithm"),
    [("bad_signature", "RS256"), ("unknown_key", "RS256"), ("alg_none", "none"), ("alg_hs256", "HS256")],
)
def test_a_fault_of_the_signature_does_not_verify(provider, fault, algorithm):
    provider.fault = fault
    header, _, verified = id_token(provider)
    assert (header["alg"], verified) == (algorithm, False)


def test_an_expired_token_is_past_its_time(provider):
    provider.fault = "expired"
    _, claims, verified = id_token(provider)
    assert verified
    assert claims["exp"] < provider.now()
