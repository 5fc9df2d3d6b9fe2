"""Doubles of the clouds: a real HTTP server that gives out tokens, checks them and signatures, and answers.

What it checks is written after the vendors' documents and not after our code: signatures are recomputed from the
request as it came, tokens run out by the server's own clock, refusals are in the vendor's words.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from proofs.http_double import DoubleHandler, HttpDouble
from wireglot_core.wire.event_stream import message

PRIVATE_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
TENANT, CLIENT, CLIENT_SECRET = "11111111-2222", "app-1", "entra-secret-0123456789"
ACCESS_KEY, SECRET_KEY = "AKIDDOUBLE0123456789", "aws-secret-key-0123456789/abcdef"
API_KEY: Final = "static-api-key-0123456789"
GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
CLOCK_SKEW_SECONDS: Final = 300

CLAUDE_EVENTS: Final[list[dict[str, Any]]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_bdrk_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 5, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo."}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 3},
    },
    {
        "type": "message_stop",
        "amazon-bedrock-invocationMetrics": {"inputTokenCount": 5, "outputTokenCount": 3},
    },
]
CLAUDE_ANSWER: Final[dict[str, Any]] = {
    **CLAUDE_EVENTS[0]["message"],
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5, "output_tokens": 3},
}
CHAT_ANSWER: Final[dict[str, Any]] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8},
}
GEMINI_ANSWER: Final[dict[str, Any]] = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP", "index": 0}
    ],
    "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8},
}


def chunk(event: Mapping[str, Any]) -> bytes:
    """One event as Bedrock frames it, with the padding that it puts beside it."""
    inside = base64.b64encode(json.dumps(event).encode()).decode()
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return message(headers, json.dumps({"bytes": inside, "p": "abcdefgh"}).encode())


def exception(name: str, text: str) -> bytes:
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return message(headers, json.dumps({"message": text}).encode())


def service_account(url: str) -> str:
    """The file of a service account, whose tokens the double gives out."""
    pem = PRIVATE_KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "p1",
            "private_key_id": "key-1",
            "private_key": pem.decode(),
            "client_email": "gateway@p1.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"{url}/token",
        }
    )


def signature_of(
    method: str, target: str, headers: Mapping[str, str], body: bytes, secrets: Mapping[str, str]
) -> str:
    """The signature that a request must have, from the request as it came. KeyError: an unknown key."""
    _, _, rest = headers["authorization"].partition(" ")
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    access, day, region, service, end = fields["Credential"].split("/")
    path, _, query = target.partition("?")
    lines = [method, quote(path, safe="/~")]
    pairs = sorted(parse_qsl(query, keep_blank_values=True))
    lines.append("&".join(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in pairs))
    names = fields["SignedHeaders"].split(";")
    assert names == sorted(names)
    assert {"host", "x-amz-date"} <= set(names)
    lines += [f"{name}:{' '.join(headers[name].split())}" for name in names]
    lines += ["", ";".join(names), hashlib.sha256(body).hexdigest()]
    canonical = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    reported = f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{day}/{region}/{service}/{end}\n{canonical}"
    key = ("AWS4" + secrets[access]).encode()
    for text in (day, region, service, end):
        key = hmac.digest(key, text.encode(), "sha256")
    return hmac.digest(key, reported.encode(), "sha256").hex()


class Refused(Exception):
    def __init__(self, status: int, document: Any) -> None:
        super().__init__(status)
        self.status = status
        self.document = document


class Cloud(HttpDouble):
    """`clock` is the server's: tokens run out by it. What came is in `asked`, what was given in `tokens`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.renewals = 0
        self.renewing_most = 0
        self.seconds = 3600.0
        self.skew = 0.0
        """Seconds by which the server's clock is before everybody else's."""
        self.tokens: dict[str, float] = {}
        self.client_secret = CLIENT_SECRET
        self.keys = {ACCESS_KEY: SECRET_KEY}
        self.session_token = ""
        self.give = threading.Event()
        """Whether tokens are given out now, or who asks waits."""
        self.give.set()
        self.go_on = threading.Event()
        """Whether streams go on behind their first half."""
        self.go_on.set()
        self.frames: list[bytes] = [chunk(event) for event in CLAUDE_EVENTS]
        self.cut = 0
        """Bytes of a stream written at once; 0: all."""
        self.streaming = 0
        self._renewing = 0
        self._lock = threading.Lock()

    def __exit__(self, *_: object) -> None:
        self.give.set()
        self.go_on.set()
        super().__exit__()

    def now(self) -> float:
        return time.time() + self.skew

    def revoke(self) -> None:
        self.tokens.clear()

    # Tokens

    def grant(self) -> dict[str, Any]:
        with self._lock:
            self.renewals += 1
            self._renewing += 1
            self.renewing_most = max(self.renewing_most, self._renewing)
            token = f"tok-{self.renewals}-0123456789abcdef"
        assert self.give.wait(60)
        with self._lock:
            self._renewing -= 1
            self.tokens[token] = self.now() + self.seconds
        return {"access_token": token, "expires_in": int(self.seconds), "token_type": "Bearer"}

    def google_token(self, body: bytes) -> dict[str, Any]:
        assertion = parse_qs(body.decode())["assertion"][0]
        signed, _, signature = assertion.rpartition(".")
        try:
            PRIVATE_KEY.public_key().verify(
                _unpadded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except Exception:
            raise Refused(
                400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
            ) from None
        claims = json.loads(_unpadded(signed.split(".")[1]))
        assert claims["scope"] == GOOGLE_SCOPE
        if not claims["iat"] - CLOCK_SKEW_SECONDS <= self.now() <= claims["exp"]:
            text = (
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
                "Check your iat and exp values in the JWT claim."
            )
            raise Refused(400, {"error": "invalid_grant", "error_description": text})
        return self.grant()

    def entra_token(self, body: bytes) -> dict[str, Any]:
        fields = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        assert fields["grant_type"] == "client_credentials"
        assert fields["scope"].endswith("/.default")
        if fields["client_id"] != CLIENT:
            text = f"AADSTS700016: Application with identifier '{fields['client_id']}' was not found. Trace ID: 1"
            raise Refused(400, {"error": "unauthorized_client", "error_description": text})
        assertion = fields.get("client_assertion")
        if assertion is not None:  # RFC 7523, 2.2
            kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            assert fields["client_assertion_type"] == kind
        if fields.get("client_secret") != self.client_secret and assertion != "platform-token":
            text = "AADSTS7000215: Invalid client secret provided. Trace ID: 1-2-3 Correlation ID: 4"
            raise Refused(401, {"error": "invalid_client", "error_description": text})
        return self.grant()

    # Who may come in

    def check_bearer(self, headers: Mapping[str, str]) -> None:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token == API_KEY:
            return
        if self.tokens.get(token, 0.0) <= self.now():
            text = f"Request had invalid authentication credentials: {token}"
            raise Refused(401, {"error": {"code": 401, "message": text, "status": "UNAUTHENTICATED"}})

    def check_signature(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        try:
            due = signature_of(method, target, headers, body, self.keys)
        except KeyError:
            text = "The security token included in the request is invalid."
            raise Refused(403, {"message": text}) from None
        signed_at = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        if abs(self.now() - signed_at) > CLOCK_SKEW_SECONDS:
            text = f"Signature expired: {headers['x-amz-date']} is now earlier than 20261116T000000Z (5 min.)"
            raise Refused(403, {"message": text})
        if not headers["authorization"].endswith(f"Signature={due}"):
            text = "The request signature we calculated does not match the signature you provided."
            raise Refused(403, {"message": text})
        if headers.get("x-amz-security-token", "") != self.session_token:
            raise Refused(403, {"message": "The security token included in the request is expired"})

    class Handler(DoubleHandler):
        owner: Cloud

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            self.owner.asked.append((f"{self.command} {self.path}", headers, body))
            try:
                self._route(urlsplit(self.path).path, headers, body)
            except Refused as refused:
                self._json(refused.document, refused.status)

        def _route(self, path: str, headers: dict[str, str], body: bytes) -> None:
            cloud = self.owner
            if path == "/token":
                self._json(cloud.google_token(body))
            elif path == f"/{TENANT}/oauth2/v2.0/token":
                self._json(cloud.entra_token(body))
            elif path == "/metadata/identity/oauth2/token":
                assert headers["metadata"] == "true"
                self._json({**cloud.grant(), "expires_in": str(int(cloud.seconds))})
            elif path.startswith("/model/"):
                self._enter_aws(headers, body)
                self._claude(path, body)
            elif path.startswith("/openai/"):
                self._enter_azure_or_aws(headers, body)
                self._json(
                    {"object": "list", "data": [{"id": "dep-1"}]} if path.endswith("/models") else CHAT_ANSWER
                )
            elif path.endswith((":rawPredict", ":streamRawPredict")):
                cloud.check_bearer(headers)
                self._sse(CLAUDE_EVENTS) if json.loads(body).get("stream") else self._json(CLAUDE_ANSWER)
            else:
                cloud.check_bearer(headers)
                self._gemini(path)

        def _enter_aws(self, headers: dict[str, str], body: bytes) -> None:
            if headers.get("authorization", "").startswith("Bearer "):
                if headers["authorization"] != f"Bearer {API_KEY}":
                    raise Refused(403, {"message": "Authentication failed: API Key not valid"})
                return
            self.owner.check_signature(self.command, self.path, headers, body)

        def _enter_azure_or_aws(self, headers: dict[str, str], body: bytes) -> None:
            if headers.get("authorization", "").startswith("AWS4"):
                self._enter_aws(headers, body)
            elif "api-key" in headers:
                if headers["api-key"] != API_KEY:
                    text = "Access denied due to invalid subscription key or wrong API endpoint."
                    raise Refused(401, {"error": {"code": "401", "message": text}})
            else:
                self.owner.check_bearer(headers)

        def _claude(self, path: str, body: bytes) -> None:
            document = json.loads(body)
            if "model" in document or "stream" in document or "anthropic_version" not in document:
                raise Refused(
                    400, {"message": "Malformed input request: extraneous key [model] is not permitted"}
                )
            if path.endswith("/invoke"):
                self._json(CLAUDE_ANSWER)
            else:
                self._chunked("application/vnd.amazon.eventstream", self.owner.frames)

        def _gemini(self, path: str) -> None:
            if not path.endswith(":streamGenerateContent"):
                self._json(GEMINI_ANSWER)
                return
            self._sse([GEMINI_ANSWER], named=False)

        def _sse(self, events: list[dict[str, Any]], named: bool = True) -> None:
            frames = []
            for event in events:
                name = f"event: {event['type']}\n" if named else ""
                frames.append(f"{name}data: {json.dumps(event)}\n\n".encode())
            self._chunked("text/event-stream", frames)

        def _json(self, document: Any, status: int = 200) -> None:
            self.send(status, json.dumps(document).encode(), ("content-type", "application/json"))

        def _chunked(self, kind: str, frames: list[bytes]) -> None:
            self.owner.streaming += 1
            try:
                self.send_chunks(kind, self._pieces(frames))
            except OSError:
                pass  # the client has left
            finally:
                self.owner.streaming -= 1

        def _pieces(self, frames: list[bytes]) -> Iterator[bytes]:
            half = max(1, len(frames) // 2)
            yield from self._cut(b"".join(frames[:half]))
            assert self.owner.go_on.wait(60)
            yield from self._cut(b"".join(frames[half:]))

        def _cut(self, data: bytes) -> Iterator[bytes]:
            step = self.owner.cut or max(1, len(data))
            return (data[at : at + step] for at in range(0, len(data), step))


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
