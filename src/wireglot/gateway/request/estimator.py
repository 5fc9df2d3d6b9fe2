"""Counting tokens: by the provider's own endpoint in its dialect's words, else by a calibrated estimate."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from wireglot.dialects.base import Context, Rendered
from wireglot.dialects.registry import dialect as dialect_of
from wireglot.gateway.request.token_weight import TOKEN, token_weight
from wireglot.ir.content import Message, Text
from wireglot.ir.errors import ClientFault, Unsupported, UpstreamFault
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request, Sampling
from wireglot.wire.json import encode_text

_NESTED: Final = ("generateContentRequest", "generate_content_request")

_COUNTED: Final[dict[str, frozenset[str]]] = {
    "anthropic": frozenset(
        {
            "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
            "cache_control", "context_management", "compaction", "mcp_servers", "speed",
        }
    ),
    "openai-responses": frozenset(
        {
            "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning",
            "text", "truncation", "previous_response_id", "conversation", "personality",
        }
    ),
    "gemini": frozenset({"contents", "systemInstruction", "tools", "toolConfig", "cachedContent"}),
}  # fmt: skip
"""What each counter takes of a request; more (max_tokens, stream, sampling) it refuses or does not need."""

_SCHEMAS: Final = ("responseMimeType", "responseSchema", "responseJsonSchema")
"""Of `generationConfig`, what Gemini puts before the model."""

_ANSWERS: Final[dict[str, str]] = {
    "anthropic": "input_tokens",
    "openai-responses": "input_tokens",
    "gemini": "totalTokens",
    "code-assist": "totalTokens",
}

CONVERSATIONS_MAX: Final = 10_000
_HEAD: Final = 2048
"""Characters of a text that tell one conversation from another; the rest is in its length."""


def can_count(dialect: str) -> bool:
    """Whether a dialect has words to ask for a count."""
    return dialect in _ANSWERS


# --- the client's side


def parse_count_request(dialect: str, body: dict[str, Any], context: Context) -> Request:
    """What a client wants counted. Gemini's may be whole requests inside one field."""
    if dialect == "gemini":
        for name in _NESTED:
            if body.get(name) is not None:
                return _parse_nested(name, body[name], context)
    if dialect == "openai-responses" and body.get("input") is None:
        # Instructions and tools alone can be counted, though not answered.
        body = {**body, "input": []}
    return dialect_of(dialect).parse_request(body, context)


def _parse_nested(name: str, inner: Any, context: Context) -> Request:
    if type(inner) is not dict:
        raise ClientFault("expected an object", f"$.{name}")
    try:
        return dialect_of("gemini").parse_request(inner, context)
    except ClientFault as fault:
        raise ClientFault(fault.message, fault.path.replace("$", f"$.{name}", 1)) from None


def render_count_answer(dialect: str, tokens: int) -> dict[str, Any]:
    if dialect == "openai-responses":
        return {"object": "response.input_tokens", "input_tokens": tokens}
    return {_ANSWERS[dialect]: tokens}


# --- the upstream's side


def render_count_request(
    dialect: str, request: Request, context: Context, *, nested: bool = True
) -> Rendered[dict[str, Any]]:
    """A count in the words of an upstream that has an endpoint for it.

    `nested`: whether a Gemini upstream takes system and tools as a whole request inside (the Developer API)
    or beside the contents (Vertex).
    """
    request = _without_settings(request)
    match dialect:
        case "gemini":
            return _gemini_request(request, context, nested)
        case "code-assist":
            return _code_assist_request(request, context)
        case "anthropic" | "openai-responses":
            rendered = dialect_of(dialect).render_request(request, context)
            return _rendered(_only(rendered.value, _COUNTED[dialect]), rendered.losses)
        case _:
            raise Unsupported(f"{dialect} has no endpoint that counts tokens")


def _gemini_request(request: Request, context: Context, nested: bool) -> Rendered[dict[str, Any]]:
    rendered = dialect_of("gemini").render_request(request, context)
    body = _only(rendered.value, _COUNTED["gemini"])
    schema = _only(rendered.value.get("generationConfig") or {}, _SCHEMAS)
    if schema:
        body["generationConfig"] = schema
    if nested and len(body) > 1:
        model = request.model or context.model
        body = {"generateContentRequest": {"model": _resource(model), **body}}
    return _rendered(body, rendered.losses)


def _code_assist_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    """Its counter takes contents and nothing else, so system and tools are counted as text before them."""
    rendered = dialect_of("gemini").render_request(request, context)
    contents = rendered.value["contents"]
    before = [
        {"text": encode_text(rendered.value[name])}
        for name in ("systemInstruction", "tools")
        if rendered.value.get(name)
    ]
    if before:
        contents = [{"role": "user", "parts": before}, *_as_list(contents)]
    model = _resource(request.model or context.model)
    return _rendered({"request": {"model": model, "contents": contents}}, rendered.losses)


def parse_count_answer(dialect: str, body: Any) -> int:
    name = _ANSWERS[dialect]
    tokens = body.get(name) if type(body) is dict else None
    if type(tokens) is not int or tokens < 0:
        raise UpstreamFault("expected a count of tokens", f"$.{name}")
    return tokens


def _without_settings(request: Request) -> Request:
    """How to answer does not matter to a count, and must not be reported as lost."""
    return msgspec.structs.replace(
        request,
        max_tokens=None,
        stop=(),
        sampling=Sampling(),
        verbosity="",
        stream=None,
        user="",
        metadata={},
        service_tier="",
        cache_key="",
    )


def _rendered(body: dict[str, Any], losses: tuple[Loss, ...]) -> Rendered[dict[str, Any]]:
    return Rendered(body, tuple(loss for loss in losses if loss.feature != "max_tokens"))


def _only(body: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name in names}


def _resource(model: str) -> str:
    return model if model.startswith("models/") else f"models/{model}"


def _as_list(contents: Any) -> list[Any]:
    return contents if type(contents) is list else [contents]


# --- without an endpoint


class _Seen(msgspec.Struct, frozen=True):
    """What a request weighed and how many tokens its provider found in it."""

    weight: int
    tokens: int


class Estimator:
    """Estimates counts from what a provider reported last in the same conversation.

    Growth since then is weighed at the rate that report gave, kept within reason; less than then is its part
    of the report. So the same request gives the reported number, and more content never gives less. Nothing
    but lengths is kept, and no caller's numbers reach another.
    """

    def __init__(self, conversations: int = CONVERSATIONS_MAX) -> None:
        self._most = conversations
        self._seen: OrderedDict[tuple[str, str, str], _Seen] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    @staticmethod
    def conversation(request: Request, session: str = "", caller: str = "") -> str:
        """A name for the conversation: the caller with its session id, or with how the conversation began."""
        state = hashlib.blake2b(digest_size=16)
        beginnings = (session,) if session else _beginnings(request)
        for text in (caller, "session" if session else "texts", *beginnings):
            state.update(f"{len(text)}:{text[:_HEAD]}".encode("utf-8", "surrogatepass"))
        return state.hexdigest()

    def learn(
        self, provider: str, model: str, conversation: str, request: Request, input_tokens: int
    ) -> None:
        """`input_tokens` is all that was read, from a cache or not; a report of none teaches nothing."""
        if input_tokens <= 0:
            return
        key = (provider, model, conversation)
        self._seen[key] = _Seen(token_weight(request), input_tokens)
        self._seen.move_to_end(key)
        if len(self._seen) > self._most:
            self._seen.popitem(last=False)

    def estimate(self, provider: str, model: str, conversation: str, request: Request) -> int:
        weight = token_weight(request)
        key = (provider, model, conversation)
        seen = self._seen.get(key)
        if seen is None:
            return max(1, -(-weight // TOKEN))
        self._seen.move_to_end(key)
        if weight <= seen.weight:
            return max(1, -(-seen.tokens * weight // seen.weight))
        return seen.tokens + _growth(seen, weight - seen.weight)


def _growth(seen: _Seen, more: int) -> int:
    """A report on much that we do not see (a cached prompt), or on little, must not set the price of text."""
    full = -(-more // TOKEN)
    return min(2 * full, max(-(-full // 2), -(-seen.tokens * more // seen.weight)))


def _beginnings(request: Request) -> Iterable[str]:
    """The system's text and the first user message: they stay the same while a conversation grows."""
    first: Message | None = None
    for message in request.messages:
        if message.role == "user":
            first = message
            break
        if message.role == "system":
            yield from _texts(message)
    if first is not None:
        yield "\x1f".join(_texts(first))


def _texts(message: Message) -> Iterable[str]:
    return (part.text for part in message.content if type(part) is Text)
