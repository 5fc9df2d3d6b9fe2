"""One call carried out: asked, answered whole or as a stream, and told in the log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.faults import broken
from wireglot.dialects.registry import dialect
from wireglot.http.failures import of_error
from wireglot.ir.content import Message, Reasoning, Text, ToolCall
from wireglot.ir.errors import ClientFault, UpstreamFault
from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Response, Usage
from wireglot.ir.request import Request
from wireglot.ir.stream import Event, Failure, Finish, Start, UsageReport
from wireglot.kimi.attempts import Attempts, Report, policy_of
from wireglot.kimi.carrier import Reply, opened
from wireglot.kimi.options import LIMITS, Asked, Turn
from wireglot.kimi.setup import DIALECT, PROVIDER, Setup
from wireglot.providers.event_restorer import EventRestorer
from wireglot.translate import Plan, plan
from wireglot.wire.json import BadJson, decode, encode, encode_text

SOURCE: Final = "anthropic"

_STAND_IN: Final = {"role": "user", "content": "-"}
"""Where every turn is a neutral one there is none to parse, and a request without any is refused."""
_OWN: Final = ("model", "messages", "system", "tools", "max_tokens", "stream")


class Question(msgspec.Struct, frozen=True):
    """`body` goes out; `plan` knows the way back for what is answered."""

    body: bytes
    plan: Plan
    losses: tuple[Loss, ...]


def question(asked: Asked, model: str) -> Question:
    request = _request(asked, model)
    # Ids that we make up must differ from those of earlier turns of the same conversation.
    context = Context(seed=str(len(request.messages)))
    planned = plan(request, source=SOURCE, target=DIALECT, model=model, provider=PROVIDER, context=context)
    if not planned.upstream.messages:
        raise ClientFault("expected something said: blank text is refused", "$.messages")
    rendered = dialect(DIALECT).render_request(planned.upstream, planned.context)
    return Question(encode(rendered.value), planned, planned.losses + planned.retraced(rendered.losses))


def _request(asked: Asked, model: str) -> Request:
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


def _plain(value: Any) -> Any:
    """The parser takes dicts; what is no mapping at all it refuses itself, and says where it stands."""
    return dict(value) if isinstance(value, Mapping) else value


def _document(asked: Asked, model: str, messages: list[Any]) -> dict[str, Any]:
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
    """System text first; then every turn where it stood, parsed or as it was given."""
    parsed = iter(request.messages)
    if system:
        yield next(parsed)
    for turn in turns:
        yield turn if isinstance(turn, Message) else next(parsed)


Block = dict[str, Any]


class CompletionResult(msgspec.Struct, frozen=True):
    """An answer.

    `content` is the contract's string: the text, or, where tools were called, the JSON of the blocks (text
    first, then every call). `blocks` is the whole answer in Anthropic's form, thinking included: append it to
    the conversation as it is. `raw` is Kimi's own document.
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
    """What of the request Kimi could not be told as it was said."""


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
    """Kimi's ids hold letters (`functions.name:0`) that Anthropic's API refuses, and the dialect replaces
    them. These blocks go back to Kimi, which knows its own. The contract's blocks have no null fields."""
    left = iter(calls)
    said = [
        {key: block[key] for key in block if key != "caller" and block[key] is not None} for block in blocks
    ]
    return [{**block, "id": next(left).id} if block["type"] == "tool_use" else block for block in said]


def _stop_reason(response: Response, told: str) -> str:
    """Anthropic's word; one that nobody knows is passed on as it is."""
    stop = response.stop
    return stop.raw if stop.reason == "other" and stop.raw else told


_CHAT = dialect(DIALECT)


class Call:
    def __init__(self, asked: Asked, setup: Setup, question: Question) -> None:
        self._question = question
        self._transport = asked.transport
        self._report = Report(asked.log, setup.key)
        policy = policy_of(asked.retry)
        self._attempts = Attempts(setup, question.body, policy, asked.sleep, self._report)

    async def whole(self) -> CompletionResult:
        question, attempts = self._question, self._attempts
        async with opened(self._transport) as send:
            response, raw, latency = await attempts.answer(send, self._read_whole, "application/json")
        result = result_of(response, raw, latency, question.losses, question.plan.context)
        self._tell(result.model, response.usage, latency)
        return result

    async def events(self) -> AsyncGenerator[Event, None]:
        """The events up to Finish. A stream that fails raises: it must not look like one that ended."""
        reader = _CHAT.stream_reader(self._question.plan.context)
        restorer = EventRestorer(self._question.plan.aliases)
        seen = _Seen()
        async with opened(self._transport) as send:
            reply = await self._attempts.answer(send, _as_it_is, "text/event-stream")
            async with aclosing(self._pieces(reply)) as pieces:
                async for piece in pieces:
                    for event in restorer.events(reader.read(piece)):
                        self._check(event, seen, reply.status)
                        yield event
                        if type(event) is Finish:  # a server that lingers behind it is not waited for
                            return
            for event in restorer.events(reader.end()):
                self._check(event, seen, reply.status)
                yield event

    def _check(self, event: Event, seen: _Seen, status: int) -> None:
        """Before the event goes out: whoever has Finish need not come back for more."""
        match event:
            case Start():
                seen.model, seen.usage = event.model, event.usage
            case UsageReport():
                seen.usage = event.usage
            case Finish():
                usage = event.usage if event.usage is not None else seen.usage
                self._tell(seen.model, usage, self._attempts.latency_ms)
            case Failure(error=error):
                self._attempts.fail(of_error(error, error.status or status), midway=True)
            case _:
                pass

    def _tell(self, model: str, usage: Usage | None, latency: int) -> None:
        usage = usage if usage is not None else Usage()
        self._report.success(model, usage.total_input, usage.total_output, latency)

    async def _pieces(self, reply: Reply) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. What a consumer throws in between is not the network's fault."""
        async with aclosing(reply.pieces()) as pieces:
            while True:
                failed = None
                try:
                    piece = await anext(pieces, None)
                except Exception as problem:  # a caller's transport may raise anything
                    failed, piece = self._attempts.of_network(problem), None
                if failed is not None:
                    self._attempts.fail(failed, midway=True)
                if piece is None:
                    return
                yield piece

    async def _read_whole(self, reply: Reply) -> tuple[Response, dict[str, Any], int]:
        try:
            data = await reply.read(LIMITS.response)
        except Exception as problem:  # a caller's transport may raise anything
            failed = self._attempts.of_network(problem)
            raise failed from failed.__cause__
        latency = self._attempts.latency_ms
        try:
            document = decode(data)
            response = self._parse(document, reply.status)
        except BadJson as problem:
            page = _CHAT.parse_error(data.decode("utf-8", "replace"), reply.status)
            raise of_error(page if page is not None else broken(problem), reply.status) from None
        except UpstreamFault as problem:
            raise of_error(broken(problem), reply.status) from None
        return response, document, latency

    def _parse(self, document: Any, status: int) -> Response:
        error = _CHAT.parse_error(document, status)
        if error is not None:
            raise of_error(error, error.status or status)
        if type(document) is not dict or not document.get("choices"):
            raise UpstreamFault("expected choices")
        response = _CHAT.parse_response(_with_usage(document), self._question.plan.context)
        restore = self._question.plan.aliases.restore
        return msgspec.structs.replace(response, content=tuple(restore(part) for part in response.content))


class _Seen:
    """What the log line of a stream needs, as far as it has been told."""

    model = ""
    usage: Usage | None = None


def _with_usage(document: dict[str, Any]) -> dict[str, Any]:
    """Older deployments of Kimi put the usage into the choice."""
    if document.get("usage"):
        return document
    first = document["choices"][0] if type(document["choices"]) is list else None
    usage = first.get("usage") if type(first) is dict else None
    return {**document, "usage": usage} if type(usage) is dict else document


async def _as_it_is(reply: Reply) -> Reply:
    return reply
