"""A private OpenID Connect provider for tests: a real HTTP server on its own port, gone when it is closed.

    with IdentityProvider() as provider:
        provider.user = User("ada", "ada@example.com", ("dev", "ops"))
        ... configure issuer = provider.url, client_id = provider.client_id,
            client_secret = provider.client_secret ...
        callback = provider.log_in(authorization_url)    # the URL the browser is sent back to

`GET /authorize` logs `provider.user` in without a prompt and redirects; `log_in` plays the browser for it. A
code is valid once, with the redirect URI it was issued for and the verifier to its challenge (S256; with
`provider.pkce = "optional"` a request may have no challenge). The token endpoint accepts client_secret_basic
and client_secret_post, and issues an access token, a refresh token (rotated at each use) and an RS256 ID
token with `sub`, `email`, `email_verified`, `name`, `groups`, `nonce`. Every request is in
`provider.requests`.

`provider.fault` makes it misbehave, one way at a time: see `Fault`. `provider.sign_out()` invalidates all
refresh and access tokens, `provider.rotate()` replaces the signing key, `provider.skew` moves its clock
(seconds).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
import secrets
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from proofs.http_double import DoubleHandler, HttpDouble

_KEY_NUMBERS: Final = itertools.count()


@cache
def _signing_key(number: int) -> rsa.RSAPrivateKey:
    """A few keys that providers take turns with: each takes 0.1 s to make."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


Fault = Literal[
    "",
    # The ID token
    "wrong_nonce",
    "no_nonce",
    "wrong_audience",
    "other_audiences",  # two audiences, ours among them, issued to the other party (azp)
    "wrong_issuer",
    "expired",
    "issued_in_future",
    "bad_signature",
    "unknown_key",  # signed with a key that is not in the JWKS
    "alg_none",
    "alg_hs256",  # signed with HMAC and the public key as the secret
    "no_subject",
    "no_id_token",
    # The endpoints
    "denied",  # authorize redirects with error=access_denied
    "wrong_state",
    "wrong_code",
    "token_error",  # 500 with an HTML page
    "jwks_error",  # 500
    "discovery_error",  # 500
    "discovery_issuer",  # the document names another issuer
    "userinfo_subject",  # userinfo of somebody else
]

ID_TOKEN_SECONDS: Final = 3600
CODE_SECONDS: Final = 60
_FORM: Final = "application/x-www-form-urlencoded"


class User(NamedTuple):
    subject: str
    email: str | None = None
    groups: tuple[str, ...] | None = ()
    """None: no `groups` claim at all."""
    email_verified: bool = True
    name: str | None = None


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True)
class _Grant:
    user: User
    redirect_uri: str
    nonce: str | None
    challenge: str | None
    expires: float


class Refused(Exception):
    """An answer of the token endpoint or of userinfo that is an error."""

    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.status = status
        self.document = {"error": error, "error_description": description}


class IdentityProvider(HttpDouble):
    """`url` is the issuer."""

    def __init__(
        self, *, client_id: str = "gateway", client_secret: str = "client-secret-0123456789"
    ) -> None:
        super().__init__()
        self.client_id = client_id
        self.client_secret = client_secret
        self.user = User("ada", "ada@example.com", ("dev",))
        self.fault: Fault = ""
        self.pkce: Literal["required", "optional"] = "required"
        self.groups_in: Literal["id_token", "userinfo"] = "id_token"
        self.names_keys = True
        """Whether tokens say which key they are signed with."""
        self.skew = 0.0
        self.requests: list[Request] = []
        self._codes: dict[str, _Grant] = {}
        self._refreshable: dict[str, User] = {}
        self._access: dict[str, User] = {}
        self._lock = threading.Lock()
        self.rotate()

    def now(self) -> float:
        return time.time() + self.skew

    def rotate(self) -> None:
        """A new signing key; the previous one is no longer published."""
        self._key = _signing_key(next(_KEY_NUMBERS) % 4)
        self._key_id = secrets.token_hex(4)

    def sign_out(self) -> None:
        """All refresh and access tokens end: what deprovisioning a user does."""
        with self._lock:
            self._refreshable.clear()
            self._access.clear()

    def log_in(self, authorization_url: str) -> str:
        """Play the browser at the authorization endpoint and return where it is sent back to."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
        try:
            with opener.open(authorization_url) as answer:
                raise RuntimeError(f"no redirect: {answer.status}")
        except urllib.error.HTTPError as answer:
            if answer.status != 302:
                raise RuntimeError(f"{answer.status}: {answer.read().decode()}") from None
            return answer.headers["location"]

    # Endpoints

    def discovery(self) -> dict[str, Any]:
        issuer = "https://elsewhere.example" if self.fault == "discovery_issuer" else self.url
        return {
            "issuer": issuer,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "scopes_supported": ["openid", "profile", "email", "groups", "offline_access"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
            "claims_supported": ["sub", "email", "email_verified", "name", "groups"],
            "authorization_response_iss_parameter_supported": True,
        }

    def jwks(self) -> dict[str, Any]:
        numbers = self._key.public_key().public_numbers()
        modulus = numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8, "big")
        public = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self._key_id}
        return {"keys": [{**public, "n": _unpadded(modulus), "e": _unpadded(b"\x01\x00\x01")}]}

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser is redirected to; `Refused` when it must not be redirected at all."""
        if query.get("client_id") != self.client_id:
            raise Refused(400, "unauthorized_client", "unknown client_id")
        target = query.get("redirect_uri", "")
        if urlsplit(target).scheme not in {"http", "https"}:
            raise Refused(400, "invalid_request", "redirect_uri is no absolute URL")
        back = {"state": query["state"]} if "state" in query else {}
        if error := self._authorization_error(query):
            return _with_query(target, {**error, **back, "iss": self.url})
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._codes[code] = _Grant(
                self.user,
                target,
                query.get("nonce"),
                query.get("code_challenge"),
                self.now() + CODE_SECONDS,
            )
        if self.fault == "wrong_code":
            code = code[::-1]
        if self.fault == "wrong_state":
            back = {"state": "somebody-elses"}
        return _with_query(target, {"code": code, **back, "iss": self.url})

    def _authorization_error(self, query: dict[str, str]) -> dict[str, str]:
        if self.fault == "denied":
            return {"error": "access_denied", "error_description": "The user did not agree."}
        if query.get("response_type") != "code":
            return {"error": "unsupported_response_type"}
        if "openid" not in query.get("scope", "").split():
            return {"error": "invalid_scope", "error_description": "openid is missing"}
        if "code_challenge" in query and query.get("code_challenge_method") != "S256":
            return {"error": "invalid_request", "error_description": "code_challenge_method must be S256"}
        if "code_challenge" not in query and self.pkce == "required":
            return {"error": "invalid_request", "error_description": "code_challenge is missing"}
        return {}

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        self._check_client(form, authorization)
        match form.get("grant_type"):
            case "authorization_code":
                with self._lock:
                    grant = self._codes.pop(form.get("code", ""), None)
                if grant is None or grant.expires <= self.now():
                    raise Refused(400, "invalid_grant", "unknown, used or expired code")
                if form.get("redirect_uri") != grant.redirect_uri:
                    raise Refused(400, "invalid_grant", "redirect_uri is not the one of the request")
                verifier = form.get("code_verifier", "")
                hashed = _unpadded(hashlib.sha256(verifier.encode()).digest())
                if grant.challenge is not None and not hmac.compare_digest(hashed, grant.challenge):
                    raise Refused(400, "invalid_grant", "code_verifier does not match code_challenge")
                return self._tokens(grant.user, grant.nonce)
            case "refresh_token":
                with self._lock:
                    user = self._refreshable.pop(form.get("refresh_token", ""), None)
                if user is None:
                    raise Refused(400, "invalid_grant", "unknown, used or revoked refresh_token")
                return self._tokens(user, None)
            case _:
                raise Refused(400, "unsupported_grant_type", "authorization_code or refresh_token")

    def userinfo(self, authorization: str) -> dict[str, Any]:
        user = self._access.get(authorization.removeprefix("Bearer "))
        if user is None:
            raise Refused(401, "invalid_token", "unknown access token")
        if self.fault == "userinfo_subject":
            user = user._replace(subject="somebody-else")
        return _claims(user, groups=True)

    def _check_client(self, form: dict[str, str], authorization: str) -> None:
        client, secret = form.get("client_id", ""), form.get("client_secret", "")
        if authorization.startswith("Basic "):
            client, _, secret = base64.b64decode(authorization[6:]).decode().partition(":")
            # RFC 6749 2.3.1: both are form-encoded before they are joined.
            client, secret = unquote_plus(client), unquote_plus(secret)
        if client != self.client_id or not hmac.compare_digest(secret, self.client_secret):
            raise Refused(401, "invalid_client", "wrong client_id or client_secret")

    # Tokens

    def _tokens(self, user: User, nonce: str | None) -> dict[str, Any]:
        access, refresh = f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
        with self._lock:
            self._access[access] = user
            self._refreshable[refresh] = user
        answer = {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": ID_TOKEN_SECONDS,
            "refresh_token": refresh,
            "scope": "openid profile email groups offline_access",
        }
        if self.fault != "no_id_token":
            answer["id_token"] = self.id_token(user, nonce)
        return answer

    def id_token(self, user: User, nonce: str | None) -> str:
        now = int(self.now())
        claims = {
            "iss": self.url,
            "aud": self.client_id,
            "iat": now,
            "exp": now + ID_TOKEN_SECONDS,
            "auth_time": now,
            **_claims(user, groups=self.groups_in == "id_token"),
        }
        if nonce is not None:
            claims["nonce"] = nonce
        match self.fault:
            case "wrong_nonce":
                claims["nonce"] = "somebody-elses"
            case "no_nonce":
                claims.pop("nonce", None)
            case "wrong_audience":
                claims["aud"] = "another-client"
            case "other_audiences":
                claims |= {"aud": [self.client_id, "another-client"], "azp": "another-client"}
            case "wrong_issuer":
                claims["iss"] = "https://elsewhere.example"
            case "expired":
                claims |= {"iat": now - 7200, "exp": now - 3600}
            case "issued_in_future":
                claims |= {"iat": now + 7200, "nbf": now + 7200, "exp": now + 10_800}
            case "no_subject":
                del claims["sub"]
            case _:
                pass
        return self._signed(claims)

    def _signed(self, claims: dict[str, Any]) -> str:
        algorithm = {"alg_none": "none", "alg_hs256": "HS256"}.get(self.fault, "RS256")
        header = {"alg": algorithm, "typ": "JWT", **({"kid": self._key_id} if self.names_keys else {})}
        key = self._key
        if self.fault == "unknown_key":
            key = _signing_key(-1)
            header["kid"] = "unpublished"
        text = ".".join(_unpadded(json.dumps(part).encode()) for part in (header, claims))
        if algorithm == "none":
            return f"{text}."
        if algorithm == "HS256":
            public = key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            return f"{text}.{_unpadded(hmac.digest(public, text.encode(), 'sha256'))}"
        signature = key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        if self.fault == "bad_signature":
            signature = bytes([signature[0] ^ 1]) + signature[1:]
        return f"{text}.{_unpadded(signature)}"

    class Handler(DoubleHandler):
        owner: IdentityProvider

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            path, query = urlsplit(self.path).path, dict(parse_qsl(urlsplit(self.path).query))
            request = Request(self.command, path, query, dict(parse_qsl(body.decode())), headers)
            self.owner.requests.append(request)
            try:
                self._route(request)
            except Refused as refused:
                self._send(refused.status, "application/json", json.dumps(refused.document))

        def _route(self, request: Request) -> None:
            owner, authorization = self.owner, request.headers.get("authorization", "")
            if request.method == "POST" and request.headers.get("content-type") != _FORM:
                raise Refused(400, "invalid_request", f"the content type is not {_FORM}")
            match request.method, request.path:
                case "GET", "/.well-known/openid-configuration":
                    self._json(owner.discovery(), fails=owner.fault == "discovery_error")
                case "GET", "/jwks":
                    self._json(owner.jwks(), fails=owner.fault == "jwks_error")
                case "GET", "/authorize":
                    self._send(302, "text/plain", "", ("location", owner.authorize(request.query)))
                case "POST", "/token":
                    if owner.fault == "token_error":
                        self._json({}, fails=True)
                    else:
                        self._json(owner.token(request.form, authorization))
                case "GET" | "POST", "/userinfo":
                    self._json(owner.userinfo(authorization))
                case _:
                    self._send(404, "text/plain", "not found")

        def _json(self, document: Any, *, fails: bool = False) -> None:
            if fails:
                self._send(500, "text/html", "<h1>Internal Server Error</h1>")
            else:
                self._send(200, "application/json", json.dumps(document))

        def _send(self, status: int, kind: str, text: str, *more: tuple[str, str]) -> None:
            self.send(status, text.encode(), ("content-type", kind), ("cache-control", "no-store"), *more)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _claims(user: User, *, groups: bool) -> dict[str, Any]:
    claims: dict[str, Any] = {"sub": user.subject}
    if user.email is not None:
        claims |= {"email": user.email, "email_verified": user.email_verified}
    if user.name is not None:
        claims["name"] = user.name
    if groups and user.groups is not None:
        claims["groups"] = list(user.groups)
    return claims


def _with_query(url: str, parameters: dict[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(parameters)}"


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
