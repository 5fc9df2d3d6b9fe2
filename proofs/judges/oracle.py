"""The vendors' published schemas as an oracle: what is wrong with a document, by the rules of its vendor.

The schemas are those of Anthropic's, OpenAI's and Google's OpenAPI and discovery documents, read from where
judges are installed (`make judges ARGS=schemas`); none of them is part of this project. What we do otherwise
on purpose is in exceptions.toml, what the documents do not describe in `NOT_DESCRIBED`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import jsonschema_rs

from proofs.judges import environments, exceptions
from proofs.judges.json_schemas import DOCUMENT, Schema, discovery, openapi
from wireglot_core.wire.json import decode
from wireglot_core.wire.sse import SseDecoder

Kind = Literal["request", "answer", "event", "error", "models", "count", "count request"]

PACKAGES: Final = ("llm-comply", "google-api-python-client")
OPENAI: Final = ("openai-openapi", "openai/openai-openapi")

_ANTHROPIC_EVENT: Final = ("MessageStreamEvent", "BetaMessageStreamEvent")
SCHEMAS: Final[dict[tuple[str, Kind], tuple[str, ...]]] = {
    ("anthropic", "request"): ("CreateMessageParams", "BetaCreateMessageParams"),
    ("anthropic", "answer"): ("Message", "BetaMessage"),
    ("anthropic", "event"): _ANTHROPIC_EVENT,
    ("anthropic", "error"): ("ErrorResponse", "BetaErrorResponse"),
    ("anthropic", "models"): ("ListResponse_ModelInfo_", "BetaListResponse_ModelInfo_"),
    ("anthropic", "count"): ("CountMessageTokensResponse", "BetaCountMessageTokensResponse"),
    ("anthropic", "count request"): ("CountMessageTokensParams", "BetaCountMessageTokensParams"),
    ("openai-chat", "request"): ("CreateChatCompletionRequest",),
    ("openai-chat", "answer"): ("CreateChatCompletionResponse",),
    ("openai-chat", "event"): ("CreateChatCompletionStreamResponse",),
    ("openai-chat", "error"): ("ErrorResponse",),
    ("openai-chat", "models"): ("ListModelsResponse",),
    ("openai-responses", "request"): ("CreateResponse",),
    ("openai-responses", "answer"): ("Response",),
    ("openai-responses", "event"): ("ResponseStreamEvent",),
    ("openai-responses", "error"): ("ErrorResponse",),
    ("openai-responses", "models"): ("ListModelsResponse",),
    ("openai-responses", "count"): ("TokenCountsResource",),
    ("openai-responses", "count request"): ("TokenCountsBody",),
    ("gemini", "request"): ("GenerateContentRequest",),
    ("gemini", "answer"): ("GenerateContentResponse",),
    ("gemini", "event"): ("GenerateContentResponse",),
    ("gemini", "count"): ("CountTokensResponse",),
}
"""Which schemas of its vendor describe a document; one of them must hold."""
NOT_DESCRIBED: Final = {
    "anthropic ping": "Anthropic's document has no schema of the `ping` event",
    "gemini error": "Google's discovery documents describe no error body",
    "gemini models": "no package has a discovery document of generativelanguage.googleapis.com, and the list "
    "of models differs from that of Vertex AI",
}


class Problem(NamedTuple):
    """One way in which a document breaks a schema. `place`: as `choices[].message`."""

    dialect: str
    kind: str
    place: str
    rule: str
    detail: str = ""

    @property
    def name(self) -> str:
        return f"{self.dialect} {self.text}"

    @property
    def text(self) -> str:
        return f"{self.kind} {self.place or '$'}: {self.rule}"


def is_exception(problem: Problem) -> bool:
    return exceptions.of(problem.dialect, problem.text) is not None


class Oracle:
    """`versions`: of each document, by vendor."""

    def __init__(self, documents: dict[str, Schema], versions: dict[str, str]) -> None:
        self.versions = versions
        self._vendors = documents
        self._validators: dict[tuple[str, Kind], jsonschema_rs.Draft202012Validator] = {}

    def problems(self, dialect: str, kind: Kind, document: Any) -> list[Problem]:
        """What is wrong, apart from the known exceptions. Nothing, where the vendor does not describe it."""
        return [found for found in self.all_problems(dialect, kind, document) if not is_exception(found)]

    def all_problems(self, dialect: str, kind: Kind, document: Any) -> list[Problem]:
        if kind == "event" and isinstance(document, dict):
            if dialect == "anthropic" and document.get("type") == "ping":
                return []
            if (dialect == "anthropic" and document.get("type") == "error") or (
                dialect in ("openai-chat", "gemini") and "error" in document
            ):
                kind = "error"
        if (dialect, kind) not in SCHEMAS:
            return []
        validator = self._validator(dialect, kind)
        if validator.is_valid(document):
            return []
        title = f"event {document['type']}" if kind == "event" and "type" in document else kind
        return [
            Problem(dialect, title, _place(error.instance_path), rule, error.message[:300])
            for error in _leaves(list(validator.iter_errors(document)))
            for rule in _rules(error)
        ]

    def stream_problems(self, dialect: str, data: bytes) -> list[Problem]:
        """Those of each event of a stream."""
        return [problem for document in events(data) for problem in self.problems(dialect, "event", document)]

    def _validator(self, dialect: str, kind: Kind) -> jsonschema_rs.Draft202012Validator:
        found = self._validators.get((dialect, kind))
        if found is None:
            vendor = self._vendors[dialect]
            names = [name for name in SCHEMAS[dialect, kind] if name in vendor]
            if not names:
                raise KeyError(f"{dialect} {kind}: no schema of {SCHEMAS[dialect, kind]}")
            root = {
                "anyOf": [{"$ref": f"#/$defs/{name}{DOCUMENT}".replace(" ", "%20")} for name in names],
                "$defs": vendor,
            }
            found = self._validators[dialect, kind] = jsonschema_rs.Draft202012Validator(root)
        return found


def events(data: bytes) -> Iterator[Any]:
    """The documents of an event stream."""
    decoder = SseDecoder()
    for frame in decoder.feed(data) + decoder.close():
        if frame.data and frame.data != b"[DONE]":
            yield decode(frame.data)


# Where the documents are


@cache
def oracle(install: bool = False) -> Oracle:
    """The oracle of the documents that are installed, or that `install` brings; `Missing` without them."""
    if install:
        environments.python("schemas", *PACKAGES)
    packages = next((environments.FOLDER / "schemas").glob("lib/python*/site-packages"), None)
    if packages is None:
        raise environments.Missing("the vendors' schemas are not installed: make judges ARGS=schemas")
    anthropic = packages / "llm_comply" / "specs" / "anthropic.json"
    google = packages / "googleapiclient" / "discovery_cache" / "documents" / "aiplatform.v1beta1.json"
    openai = environments.checkout(*OPENAI) / "openapi.json"
    described, revision = discovery(google)
    chat = openapi(openai)
    documents = {
        "anthropic": openapi(anthropic),
        "openai-chat": chat,
        "openai-responses": chat,
        "gemini": described,
    }
    versions = {
        "Anthropic": "llm-comply " + _release(packages, "llm_comply"),
        "OpenAI": f"openai-openapi {environments.commit(openai.parent)}",
        "Google": f"aiplatform.v1beta1 {revision}",
    }
    return Oracle(documents, versions)


@cache
def installed() -> Oracle | None:
    """The oracle, for those who check what they write only where the documents are there."""
    try:
        return oracle()
    except environments.Missing:
        return None


def _release(packages: Path, name: str) -> str:
    return next(packages.glob(f"{name}-*.dist-info")).name.removeprefix(f"{name}-").removesuffix(".dist-info")


# From a validator's errors to problems


def _leaves(errors: list[jsonschema_rs.ValidationError]) -> Iterator[jsonschema_rs.ValidationError]:
    """The errors that say what is wrong: of a union, those of the branch that was meant."""
    for error in errors:
        branches = _branches(error) if error.kind.name == "anyOf" else []
        if branches:
            distances = [_distance(branch, len(error.instance_path)) for branch in branches]
            yield from _leaves(branches[distances.index(min(distances))])
        else:
            yield error


def _branches(error: jsonschema_rs.ValidationError) -> list[list[jsonschema_rs.ValidationError]]:
    """What each branch of a union has against a document."""
    return [list(branch) for branch in error.kind.as_dict()["context"] if branch]


def _distance(branch: list[jsonschema_rs.ValidationError], depth: int) -> tuple[int, int, int]:
    """How far a document is from a branch: another type, another tag, then the number of errors."""
    other = tags = 0
    for error in branch:
        below = error.instance_path[depth:]
        if not below and error.kind.name == "type":
            other += 1
        elif (
            len(below) == 1
            and below[0] in ("type", "role", "object")
            and error.kind.name in ("const", "enum")
        ):
            tags += 1
        elif error.kind.name == "anyOf":
            nearest = min(
                (_distance(each, len(error.instance_path)) for each in _branches(error)), default=(0, 0, 0)
            )
            if not below:
                other, tags = other + nearest[0], tags + nearest[1]
            elif not depth and (nearest[0] or nearest[1]):
                tags += 1  # a document that does not know this part
    return other, tags, len(branch)


def _place(path: list[Any]) -> str:
    return re.sub(r"\.\[", "[", ".".join("[]" if isinstance(step, int) else str(step) for step in path))


def _rules(error: jsonschema_rs.ValidationError) -> Iterator[str]:
    """What was broken, without the values of this one document."""
    kind = error.kind
    match kind.name:
        case "required":
            yield f"{kind.as_dict()['property']} is missing"
        case "additionalProperties":
            yield from (f"unknown {name}" for name in sorted(kind.as_dict()["unexpected"]))
        case "enum" | "const" | "type":
            value = error.instance
            shown = json.dumps(value)[:40] if isinstance(value, str | bool | None) else type(value).__name__
            yield f"{kind.name}: {shown}"
        case name:
            yield name
