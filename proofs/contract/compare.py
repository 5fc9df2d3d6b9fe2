"""An answer as facts, a name and a value each, and how two of them differ."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from proofs.contract.cases import ANY, NONE, SECRETS, Case
from proofs.contract.gateways import Answer, Gateway
from proofs.contract.upstream import Received

HEADERS: Final = re.compile(
    r"x-should-retry|retry-after|www-authenticate|anthropic-ratelimit-.*|cache-control|etag|location|request-id"
)
"""Those of the contract."""
FORWARDED: Final = ("anthropic-version", "anthropic-beta", "content-type", "x-api-key")
_SECRET_VALUES: Final = re.compile(r"(device_code|access_token|refresh_token|request_id|uuid)$")
_RESET: Final = "anthropic-ratelimit-unified-reset"
_CLOCKS_AGREE: Final = 5.0
_OF_ANY_STATUS: Final = {"status", "body.error", "body.error.type"}
LEAKED: Final = "upstream ids"


class Difference(NamedTuple):
    fact: str
    reference: str
    ours: str
    listed: str = ""
    """The case's pattern for it."""
    reason: str = ""
    """Why it is intended; empty: it is not."""


def facts(gateway: Gateway, case: Case, answer: Answer, received: list[Received]) -> dict[str, str]:
    """What of an answer is compared."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    found = {"status": str(answer.status)}
    if kind:
        found["content-type"] = kind
    for name, value in sorted(answer.headers.items()):
        if HEADERS.fullmatch(name) and (name != "request-id" or answer.status < 400):
            found[name] = _header(name, value, answer.headers)
    found |= _body(gateway, case, kind, answer.body)
    if leaks := [secret for secret in SECRETS if secret.encode() in answer.body]:
        found[LEAKED] = ", ".join(leaks)
    if case.forwarded:
        found |= _received(received)
    return found


def differences(case: Case, reference: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[Difference]:
    """Those that are listed and do not occur, too.

    Of answers with another status only that, the error's type and what the case lists are compared.
    """
    names = (reference.keys() | ours.keys()) - {LEAKED}
    if "request-id" not in reference:  # one more of ours harms nobody
        names.discard("request-id")
    if reference["status"] != ours["status"]:
        names = {name for name in names if name in _OF_ANY_STATUS or _listed(case, name)}
    unused = {pattern for pattern, intended in case.differs.items() if intended.ours != ANY}
    for name in sorted(names):
        theirs, mine = reference.get(name, NONE), ours.get(name, NONE)
        pattern = _listed(case, name)
        intended = case.differs[pattern] if pattern else None
        if theirs != mine:
            unused.discard(pattern)
            reason = intended.reason if intended and intended.ours in {ANY, mine} else ""
            yield Difference(name, theirs, mine, pattern, reason)
    for pattern in sorted(unused):
        yield Difference(pattern, "listed as a difference", "there is none")
    if LEAKED in ours:
        yield Difference(LEAKED, "must not reach the client", ours[LEAKED])


def _listed(case: Case, name: str) -> str:
    return next((pattern for pattern in case.differs if fnmatchcase(name, pattern)), "")


def _header(name: str, value: str, headers: Mapping[str, str]) -> str:
    if name == "request-id":
        return "text"
    reset = headers.get(_RESET, "")
    if name == "retry-after" and reset and abs(time.time() + float(value) - float(reset)) <= _CLOCKS_AGREE:
        return "seconds to the reset"
    return value


def _body(gateway: Gateway, case: Case, kind: str, body: bytes) -> dict[str, str]:
    if not body:
        return {}
    text = body.decode(errors="replace").replace(gateway.url, "{base}")
    if kind == "application/json":
        return dict(_flat("body", json.loads(text), case.exact))
    if kind == "text/event-stream":
        return dict(_events(text))
    return {"body": "text"}


def _flat(path: str, value: Any, exact: bool) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            # Optional in RFC 6749.
            if name != "error_description":
                yield from _flat(f"{path}.{name}", inner, exact)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _flat(f"{path}.{index}", inner, exact)
    else:
        yield path, _value(path, value, exact)


def _value(path: str, value: Any, exact: bool) -> str:
    hidden = _SECRET_VALUES.search(path) or (path == "body.error.message" and not exact)
    if isinstance(value, str):
        if path.endswith("user_code"):
            return re.sub(r"[B-DF-HJ-NP-TV-Z]", "X", value)
        if path.startswith("body.verification_uri"):
            return re.sub(r"^{base}/.*", "{base}/...", value)
        if hidden and value:
            return "text"
    if path in {"body.expires_in", "body.interval"} and isinstance(value, int) and value > 0:
        return "seconds"
    return json.dumps(value, ensure_ascii=False)


def _events(text: str) -> Iterator[tuple[str, str]]:
    """Each event as JSON, without comments and pings; the message of an error counts as any text."""
    number = 0
    for block in re.split(r"\r?\n\r?\n", text):
        fields = [line.partition(":") for line in block.splitlines() if not line.startswith(":")]
        data = "".join(value.removeprefix(" ") for name, _, value in fields if name == "data")
        if not data:
            continue
        name = "".join(value.strip() for name, _, value in fields if name == "event")
        decoded = json.loads(data)
        if decoded.get("type") == "ping":
            continue
        if decoded.get("type") == "error":
            decoded = {"type": "error", "error": decoded["error"] | {"message": "text"}}
        yield f"event.{number}", f"{name} {json.dumps(decoded, sort_keys=True)}"
        number += 1


def _received(received: list[Received]) -> dict[str, str]:
    found = {"upstream.requests": str(len(received))}
    for request in received[:1]:
        path, _, query = request.path.partition("?")
        found["upstream.path"] = path
        found |= {f"upstream.query.{name}": value for name, value in parse_qsl(query)}
        found |= {f"upstream.{name}": request.headers[name] for name in FORWARDED if name in request.headers}
        found["upstream.body"] = json.dumps(json.loads(request.body), sort_keys=True)
    return found
