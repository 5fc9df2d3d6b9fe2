"""OpenID Connect as a relying party: only the authorization code flow with PKCE.

The provider's documents are fetched with the gateway's own HTTP client, which follows no redirect. Signatures
and claims are checked by PyJWT.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

from wireglot.gateway.config.urls import is_loopback, split
from wireglot.gateway.login.tokens import Person, SignInRefused
from wireglot.gateway.settings import LoginSettings
from wireglot.http.application import Headers
from wireglot.http.transport import Outbound, Timeouts, Transport, TransportFault
from wireglot_core.wire.json import BadJson, decode

if TYPE_CHECKING:
    from jwt import PyJWK

_TIMEOUTS: Final = Timeouts(connect=5.0, tls=5.0, first_byte=10.0, idle=10.0, total=15.0)
# Bytes of a document of an identity provider.
_MAX_BYTES: Final = 1 << 20
# Characters of a token of an identity provider.
_MAX_TOKEN_LETTERS: Final = 64 * 1024
_FRESH_SECONDS: Final = 3600.0
_AGAIN_SECONDS: Final = 30.0
"""Between two fetches of the keys because of an unknown key id."""
_LEEWAY_SECONDS: Final = 60
_ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
"""Only asymmetric signatures: with none, or with a public key used as a shared secret, anyone could sign."""
_REQUIRED: Final = ["iss", "sub", "aud", "exp", "iat"]
# Groups of one user that are read.
_MAX_GROUPS: Final = 1000
_OK: Final = 200


class ProviderDown(Exception):
    """The identity provider cannot be used now; the message is for the log."""


class ProviderAttempt(msgspec.Struct, frozen=True):
    """The values that one browser must bring back from the provider."""

    state: str
    nonce: str
    verifier: str


class _Metadata(msgspec.Struct, frozen=True):
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    issuer: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _Cached(msgspec.Struct):
    metadata: _Metadata
    metadata_at: float
    keys: dict[str, PyJWK] = {}
    keys_at: float = -1e9


def new_attempt() -> ProviderAttempt:
    return ProviderAttempt(*(secrets.token_urlsafe(32) for _ in range(3)))


class IdentityProvider:
    """The provider of `[login]`, by its settings: a reload may configure another one."""

    def __init__(
        self, transports: Mapping[str, Transport], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._transports = transports
        self._clock = clock
        self._cached: dict[str, _Cached] = {}

    async def authorization_url(
        self, login: LoginSettings, attempt: ProviderAttempt, redirect_uri: str
    ) -> str:
        """The URL that the browser is sent to. Raises ProviderDown."""
        metadata = (await self._known(login)).metadata
        digest = hashlib.sha256(attempt.verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": login.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(login.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        joint = "&" if urlsplit(metadata.authorization_endpoint).query else "?"
        return f"{metadata.authorization_endpoint}{joint}{urlencode(parameters)}"

    async def person(
        self, login: LoginSettings, attempt: ProviderAttempt, answer: Mapping[str, str], redirect_uri: str
    ) -> tuple[Person, str]:
        """The person who signed in, by the query of the browser's return, and the provider's refresh token,
        if any. Raises ProviderDown and SignInRefused."""
        if not hmac.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise SignInRefused("this sign-in was begun in another window or has expired: start again")
        known = await self._known(login)
        names_itself = "iss" in answer or known.metadata.authorization_response_iss_parameter_supported
        if names_itself and answer.get("iss") != login.issuer:
            # RFC 9207: an answer of another provider must not be sent to this one's token endpoint.
            raise SignInRefused("the answer is from another identity provider: start again")
        if answer.get("error"):
            raise SignInRefused("the identity provider did not sign you in")
        code = answer.get("code", "")
        if not code:
            raise SignInRefused("the identity provider returned no code: start again")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
        }
        id_token, refresh_token = await self._exchanged(login, known.metadata, form)
        if not id_token:
            raise ProviderDown("token endpoint: no ID token")
        claims = await self._verified(login, known, id_token)
        given = claims.get("nonce")
        if type(given) is not str or not hmac.compare_digest(given.encode(), attempt.nonce.encode()):
            raise SignInRefused("the identity provider's token belongs to another sign-in: start again")
        return who(login, claims), refresh_token

    async def renewed(self, login: LoginSettings, refresh_token: str) -> tuple[Person | None, str]:
        """The person's current data, if the provider reports them, and its next refresh token, if it issued
        one. Raises ProviderDown, and SignInRefused if it does not know the person any more."""
        known = await self._known(login)
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        id_token, refresh_token = await self._exchanged(login, known.metadata, form)
        if not id_token:
            return None, refresh_token
        try:
            claims = await self._verified(login, known, id_token)
        except SignInRefused as wrong:  # the provider's fault, and not about the person
            raise ProviderDown(f"renewal: {wrong}") from None
        return who(login, claims), refresh_token

    async def _exchanged(
        self, login: LoginSettings, metadata: _Metadata, form: dict[str, str]
    ) -> tuple[str, str]:
        """The ID token and the refresh token for a code or a refresh token; "" if one is missing."""
        headers: Headers = [("content-type", "application/x-www-form-urlencoded")]
        secret = login.client_secret.value
        methods = metadata.token_endpoint_auth_methods_supported
        if secret and ("client_secret_basic" in methods or "client_secret_post" not in methods):
            # RFC 6749, 2.3.1: both are form-encoded before they are joined.
            pair = f"{quote_plus(login.client_id)}:{quote_plus(secret)}"
            headers.append(("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        else:
            form |= {"client_id": login.client_id, **({"client_secret": secret} if secret else {})}
        status, document = await self._fetched(
            "POST", metadata.token_endpoint, headers, urlencode(form).encode()
        )
        if status != _OK:
            error = document.get("error")
            if error == "invalid_grant":
                raise SignInRefused("the identity provider's code has been used or has expired: start again")
            raise ProviderDown(f"token endpoint: status {status}, {_legible(error)}")
        return _token(document, "id_token"), _token(document, "refresh_token")

    async def _verified(self, login: LoginSettings, known: _Cached, token: str) -> dict[str, Any]:
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in _ALGORITHMS:
                raise SignInRefused("the identity provider's token is not signed with a key pair")
            key = await self._key(login, known, header.get("kid"))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(_ALGORITHMS),
                audience=login.client_id,
                issuer=login.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": _REQUIRED},
            )
        except jwt.PyJWTError as wrong:
            raise SignInRefused(
                f"the identity provider's token is not valid: {type(wrong).__name__}"
            ) from None
        audiences = claims["aud"]
        if claims.get("azp", login.client_id) != login.client_id or (
            isinstance(audiences, list) and len(audiences) > 1 and "azp" not in claims
        ):
            raise SignInRefused("the identity provider's token was issued to another application")
        return claims

    async def _key(self, login: LoginSettings, known: _Cached, id: object) -> PyJWK:
        """The public key that a token names; an unknown one causes a new fetch, since providers rotate
        them."""
        now = self._clock()
        age = now - known.keys_at
        if (id not in known.keys and age > _AGAIN_SECONDS) or age > _FRESH_SECONDS:
            known.keys = await self._fetched_keys(known.metadata.jwks_uri)
            known.keys_at = now
        if id is None and len(known.keys) == 1:
            return next(iter(known.keys.values()))
        found = known.keys.get(id) if type(id) is str else None
        if found is None:
            raise SignInRefused("the identity provider's token is signed with an unknown key")
        return found

    async def _fetched_keys(self, url: str) -> dict[str, PyJWK]:
        import jwt

        status, document = await self._fetched("GET", url)
        listed = document.get("keys")
        if status != _OK or not isinstance(listed, list):
            raise ProviderDown(f"keys: status {status}")
        keys: dict[str, PyJWK] = {}
        for each in listed:
            if not isinstance(each, dict) or each.get("use", "sig") != "sig" or each.get("kty") == "oct":
                continue
            try:
                keys[str(each.get("kid", ""))] = jwt.PyJWK.from_dict(each)
            except jwt.PyJWTError:
                continue  # of an unknown kind: others may be known
        return keys

    async def _known(self, login: LoginSettings) -> _Cached:
        now = self._clock()
        cached = self._cached.get(login.issuer)
        if cached is not None and now - cached.metadata_at < _FRESH_SECONDS:
            return cached
        url = f"{login.issuer.rstrip('/')}/.well-known/openid-configuration"
        status, document = await self._fetched("GET", url)
        if status != _OK:
            raise ProviderDown(f"discovery: status {status}")
        try:
            metadata = msgspec.convert(document, _Metadata)
        except msgspec.ValidationError as wrong:
            raise ProviderDown(f"discovery: {wrong}") from None
        if metadata.issuer != login.issuer:
            raise ProviderDown(
                f"discovery: the issuer is {_legible(metadata.issuer)}, not the configured one"
            )
        for endpoint in (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri):
            _check_url(endpoint, login.issuer)
        self._cached = {login.issuer: _Cached(metadata, now)}
        return self._cached[login.issuer]

    async def _fetched(
        self, method: str, url: str, headers: Headers | None = None, body: bytes = b""
    ) -> tuple[int, dict[str, Any]]:
        """The status and the JSON object of an answer; {} if it is not one."""
        request = Outbound(
            method, url, [("accept", "application/json"), *(headers or [])], body, pool="login"
        )
        try:
            answer = await self._transports[url.partition(":")[0]].send(request, _TIMEOUTS)
            body = await answer.read(_MAX_BYTES)
        except TransportFault as fault:
            raise ProviderDown(f"{urlsplit(url).path}: {fault.problem}") from None
        try:
            document = decode(body)
        except BadJson:
            document = {}
        return answer.status, document if isinstance(document, dict) else {}


def who(login: LoginSettings, claims: Mapping[str, Any]) -> Person:
    """The person of verified claims, if they may use the gateway. Raises SignInRefused."""
    subject = claims.get("sub")
    if type(subject) is not str or not subject:
        raise SignInRefused("the identity provider did not return your identity")
    email = claims.get("email")
    if type(email) is not str or not email.isprintable() or email.count("@") != 1:
        email = ""
    # Some providers send the text "true".
    if email and login.require_verified_email and claims.get("email_verified") not in (True, "true"):
        raise SignInRefused("your e-mail address is not verified at the identity provider")
    domain = email.rpartition("@")[2].lower()
    if login.allowed_domains and domain not in login.allowed_domains:
        raise SignInRefused("the domain of your e-mail address is not allowed to use this gateway")
    return Person(f"{login.issuer}\n{subject}", (email or subject)[:200], _group(login, claims))


def _group(login: LoginSettings, claims: Mapping[str, Any]) -> str:
    listed = claims.get(login.groups_claim)
    values = listed[:_MAX_GROUPS] if isinstance(listed, list) else [listed]
    theirs = {each for each in values if type(each) is str}
    for claim, group in login.groups.items():
        if claim in theirs:
            return group
    if login.groups and not login.default_group:
        raise SignInRefused("you are not in a group that is allowed to use this gateway")
    return login.default_group


def _token(document: Mapping[str, Any], name: str) -> str:
    token = document.get(name)
    return token if type(token) is str and len(token) <= _MAX_TOKEN_LETTERS else ""


def _check_url(url: str, issuer: str) -> None:
    """Checks an endpoint that secrets are sent to: TLS, unless the issuer itself is this machine."""
    parts = split(url)
    if parts is not None and parts.hostname and "@" not in parts.netloc and url.isprintable():
        local = urlsplit(issuer).scheme == "http" and is_loopback(parts.hostname)
        if parts.scheme == "https" or (parts.scheme == "http" and local):
            return
    raise ProviderDown(f"discovery: {_legible(url)} is not an https URL")


def _legible(value: object) -> str:
    text = str(value)[:100]
    return text if text.isprintable() else "unreadable text"
