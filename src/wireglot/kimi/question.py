"""The request to Kimi, and its result in the form that all adapters share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from wireglot.kimi.options import CallArguments, Turn
from wireglot.kimi.setup import DIALECT, PROVIDER
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Message, Reasoning, Text, ToolCall
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.translate import Plan, plan
from wireglot_core.wire.json import encode, encode_text

SOURCE: Final = "anthropic"

_STAND_IN: Final = {"role": "user", "content": "-"}
"""A placeholder if every turn is neutral and there is none to parse: a request without any is refused."""
_OWN: Final = ("model", "messages", "system", "tools", "max_tokens", "stream")


class Question(msgspec.Struct, frozen=True):
    """`body` is sent; `plan` is needed to translate the answer."""

    body: bytes
    plan: Plan
    losses: tuple[Loss, ...]


def question(asked: CallArguments, model: str) -> Question:
    request = _request(asked, model)
    # Made-up ids must differ from those of earlier turns of the same conversation.
    context = Context(seed=str(len(request.messages)), emulates=False)
    if all(map(_is_blank, request.messages)):
        raise ClientFault("expected a message with content", "$.messages")
    planned = plan(request, source=SOURCE, target=DIALECT, model=model, provider=PROVIDER, context=context)
    rendered = dialect(DIALECT).render_request(planned.upstream, planned.context)
    return Question(encode(rendered.value), planned, planned.losses + planned.retraced(rendered.losses))


def _request(asked: CallArguments, model: str) -> Request:
    turns = list(asked.messages or ())
    if asked.prompt is not None:
        if not isinstance(asked.prompt, str):
            raise TypeError(f"the prompt must be a string, not {type(asked.prompt).__name__}")
        turns.append(Message("user", (Text(asked.prompt),)))
    if not turns:
        raise TypeError("a prompt or messages must be given")
    said = [_plain(turn) for turn in turns if not isinstance(turn, Message)]
    body = _document(asked, model, said or [_STAND_IN])
    request = dialect(SOURCE).parse_request(body, Context())
    return msgspec.structs.replace(request, messages=tuple(_in_place(request, turns, bool(asked.system))))


def _is_blank(message: Message) -> bool:
    return all(type(part) is Text and not part.text.strip() for part in message.content)


def _plain(value: Any) -> Any:
    """The parser accepts dicts; anything but a mapping it refuses itself, with its place."""
    return dict(value) if isinstance(value, Mapping) else value


def _document(asked: CallArguments, model: str, messages: list[Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": messages, "stream": asked.stream}
    if asked.system:
        system = asked.system
        body["system"] = system if isinstance(system, str) else [_plain(block) for block in system]
    if asked.tools:
        body["tools"] = [_plain(tool) for tool in asked.tools]
    if asked.max_tokens is not None:
        body["max_tokens"] = asked.max_tokens
    for name, value in (asked.fields or {}).items():
        if name in _OWN:
            raise ClientFault("has a parameter of its own", f"$.{name}")
        body[name] = value
    return body


def _in_place(request: Request, turns: list[Turn], system: bool) -> Iterator[Message]:
    """System text first; then every turn in its place, parsed or as it was given."""
    parsed = iter(request.messages)
    if system:
        yield next(parsed)
    for turn in turns:
        yield turn if isinstance(turn, Message) else next(parsed)


Block = dict[str, Any]


class CompletionResult(msgspec.Struct, frozen=True):
    """An answer.

    `content` is the contract's string: the text, or, if tools were called, the JSON of the blocks (text
    first, then every call). `blocks` is the whole answer in Anthropic's form, thinking included: append it to
    the conversation unchanged. `raw` is Kimi's own document.
    """

    content: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    latency_ms: int
    stop_reason: str
    blocks: list[Block]
    text: str
    reasoning: str
    raw: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    """The parts of the request that could not be sent to Kimi unchanged."""


def result_of(
    response: Response, raw: dict[str, Any], latency_ms: int, losses: tuple[Loss, ...], context: Context
) -> CompletionResult:
    message = dialect("anthropic").render_response(response, context).value
    calls = [part for part in response.content if isinstance(part, ToolCall)]
    blocks = _with_own_ids(message["content"], calls)
    text = "".join(part.text for part in response.content if isinstance(part, Text))
    usage = response.usage
    return CompletionResult(
        content=encode_text([block for block in blocks if block["type"] != "thinking"]) if calls else text,
        model=response.model,
        prompt_tokens=usage.total_input if usage is not None else 0,
        completion_tokens=usage.total_output if usage is not None else 0,
        latency_ms=latency_ms,
        stop_reason=_stop_reason(response, message["stop_reason"]),
        blocks=blocks,
        text=text,
        reasoning="".join(part.text for part in response.content if isinstance(part, Reasoning)),
        raw=raw,
        losses=losses,
    )


def _with_own_ids(blocks: list[Block], calls: list[ToolCall]) -> list[Block]:
    """Kimi's ids contain characters (`functions.name:0`) that Anthropic's API refuses, and the dialect
    replaces them. These blocks go back to Kimi, which knows its own. The contract's blocks have no null
    fields."""
    left = iter(calls)
    said = [
        {key: block[key] for key in block if key != "caller" and block[key] is not None} for block in blocks
    ]
    return [{**block, "id": next(left).id} if block["type"] == "tool_use" else block for block in said]


def _stop_reason(response: Response, reported: str) -> str:
    """Anthropic's word; an unknown one is passed on unchanged."""
    stop = response.stop
    return stop.raw if stop.reason == "other" and stop.raw else reported
