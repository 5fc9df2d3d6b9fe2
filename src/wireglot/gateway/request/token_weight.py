"""The weight of a request or an answer: a rough count of its tokens from lengths alone, rather too high than
too low.

Everything is counted in thousandths of a token and as a sum over the parts, so more content never weighs
less. Only integers: the sum is the same in any order.

An answer whose provider reports no usage gets an estimate, in every dialect whose answers report it: agents
decide by it when to compact, and zero would be wrong. It is marked: there is a loss in the log and on the
page of losses, a whole answer has a header, and the ledger calls it an estimate. What the provider reported
before for the same conversation calibrates it (`Estimator`).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from wireglot_core.dialects.surface import ClientSide
from wireglot_core.ir.content import Foreign, Media, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.embedding import EmbeddingInput, TokenIds
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.request import AnyTool, HostedTool, Request
from wireglot_core.ir.stream import Delta, Event, PartStart
from wireglot_core.wire.json import encode

TOKEN: Final = 1000

ESTIMATED: Final = Loss("$.usage", "usage.detail", "invented", "estimated: the upstream does not report it")

LETTER: Final = 300
"""A character of English or code: 3.3 per token; the newest tokenizers make more tokens than older ones."""
_JSON: Final = 340
"""Braces, quotes and names make shorter tokens."""
_BEYOND: Final = 450
"""For each UTF-8 byte after the first: 0.75 tokens per Cyrillic character, 1.2 per Chinese one."""
_OPAQUE: Final = 190
"""A character of an encrypted thought: base64 of about as many bytes as the thought had."""

_REQUEST: Final = 8 * TOKEN
_MESSAGE: Final = 4 * TOKEN
_CALL: Final = 12 * TOKEN
"""The frame of a call or a result, including its id."""
_TOOL: Final = 12 * TOKEN
_TOOLS: Final = 340 * TOKEN
"""The preamble that explains function calling to a model, once."""

_MEDIA: Final[dict[str, tuple[int, int, int, int]]] = {
    # kind: (base64 characters per token, minimum, maximum, default if the size is unknown), in tokens
    "image": (54, 85, 1_600, 1_600),
    "document": (27, 1_500, 1_000_000, 3_000),
    "audio": (530, 32, 1_000_000, 2_000),
    "video": (660, 300, 1_000_000, 10_000),
}
"""Images are billed by their pixels, up to a maximum; pages, seconds of audio and of video grow with
bytes."""


def token_weight(request: Request) -> int:
    """Thousandths of a token."""
    weight = _REQUEST
    for message in request.messages:
        weight += _MESSAGE
        for part in message.content:
            weight += text_weight(part.text) if type(part) is Text else part_weight(part)
    if request.tools:
        weight += _TOOLS
        for tool in request.tools:
            weight += _tool(tool)
    if request.output is not None and request.output.schema is not None:
        weight += len(encode(request.output.schema)) * _JSON
    return weight


def part_weight(part: Part) -> int:
    """Thousandths of a token."""
    match part:
        case Text():
            return text_weight(part.text)
        case ToolCall():
            return _CALL + text_weight(part.name) + text_weight(part.arguments, _JSON)
        case ToolResult():
            inside = sum(
                text_weight(item.text) if type(item) is Text else part_weight(item) for item in part.content
            )
            return _CALL + inside
        case Reasoning():
            # The text and its encrypted form are the same thought.
            hidden = len(part.signature.data) * _OPAQUE if part.signature is not None else 0
            return max(text_weight(part.text), hidden)
        case Media():
            return _media(part)
        case Foreign():
            return len(encode(part.value)) * _JSON
        case _:
            assert_never(part)


def embedding_tokens(inputs: Iterable[EmbeddingInput]) -> int:
    """An estimate of the tokens of inputs to embed."""
    weight = 0
    for each in inputs:
        content = each.content
        if isinstance(content, TokenIds):
            weight += len(content.ids) * TOKEN
        elif isinstance(content, str):
            weight += text_weight(content)
        else:
            weight += sum(map(part_weight, content))
    return max(1, -(-weight // TOKEN))


def text_weight(text: str, letter: int = LETTER) -> int:
    """Thousandths of a token."""
    if text.isascii():  # known without a scan
        return len(text) * letter
    return len(text) * letter + (len(text.encode("utf-8", "surrogatepass")) - len(text)) * _BEYOND


def _media(media: Media) -> int:
    if media.text is not None:
        return text_weight(media.text)
    characters, least, most, unknown = _MEDIA[media.kind]
    if media.data is None:
        return unknown * TOKEN
    return min(most, max(least, -(-len(media.data) // characters))) * TOKEN


def _tool(tool: AnyTool) -> int:
    if isinstance(tool, HostedTool):
        return _TOOL + len(encode(tool.native.value)) * _JSON
    weight = _TOOL + text_weight(tool.name + (tool.description or ""))
    if tool.schema is not None:
        weight += len(encode(tool.schema)) * _JSON
    if tool.grammar is not None:
        weight += text_weight(tool.grammar.definition, _JSON)
    return weight


# --- answers


def tells_usage(client: ClientSide, request: Request | None) -> bool:
    """Whether the answer reports its usage. For an unparsed request: the dialect's default."""
    return client.tells_usage is not None and (request is None or client.tells_usage(request))


def is_unreported(usage: Usage | None) -> bool:
    """No request costs nothing: a server that does not count reports zeros."""
    return usage is None or not usage.total


def events_weight(events: Iterable[Event]) -> int:
    """In thousandths of a token."""
    weight = 0
    for event in events:
        if type(event) is Delta:
            weight += text_weight(event.text)
        elif type(event) is PartStart:
            part = event.part
            if type(part) is not Text:
                weight += part_weight(part)
            elif part.text:  # most begin with nothing
                weight += text_weight(part.text)
    return weight


def parts_weight(parts: Iterable[Part]) -> int:
    return sum(part_weight(part) for part in parts)


# --- calibrated by what the provider reported before

# Conversations for which the bytes of a token, as the provider counted them, are known.
CONVERSATIONS_MAX: Final = 10_000
_HEAD: Final = 2048
"""Characters of a text that distinguish conversations; the rest is represented by its length."""


class _Seen(msgspec.Struct, frozen=True):
    """The weight of a request and the number of tokens that its provider counted."""

    weight: int
    tokens: int


class Estimator:
    """Estimates counts from what a provider reported last in the same conversation.

    Growth since then is weighed at the rate of that report, kept within reason; a smaller request gets a
    proportional part of the report. So the same request gets the reported number, and more content never gets
    less. Only lengths are kept, and no caller's numbers affect another.
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
        """`input_tokens`: everything that was read, from a cache or not; a report of 0 is ignored."""
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
    """A report that covers much that we do not see (a cached prompt), or little, must not distort the
    rate."""
    full = -(-more // TOKEN)
    return min(2 * full, max(-(-full // 2), -(-seen.tokens * more // seen.weight)))


def _beginnings(request: Request) -> list[str]:
    """The system's text and the first user message: they stay the same while a conversation grows."""
    texts: list[str] = []
    for message in request.messages:
        if message.role not in ("system", "user"):
            continue
        before = len(texts)
        for part in message.content:
            if type(part) is Text:
                texts.append(part.text)
        if message.role == "user":
            return [*texts[:before], "\x1f".join(texts[before:])]
    return texts
