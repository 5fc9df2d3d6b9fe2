"""`POST /v1/responses/compact`: a long conversation made short, with every model.

OpenAI compacts by itself. For anybody else's model the gateway asks for a summary and hands it out sealed, as
an item that the client sends back in place of the conversation. Only this gateway can open it, and only for
the caller it was made for; before a model sees it, it is text again.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeGuard

from msgspec.structs import replace

from wireglot.dialects.registry import dialect
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.body import read
from wireglot.gateway.request.exchange import Answerer, Exchange
from wireglot.gateway.request.headers import JSON, common_headers
from wireglot.gateway.state.conversations.items import RESPONSES
from wireglot.gateway.state.responses.compaction_words import INSTRUCTIONS, NOW, PREFACE, in_words
from wireglot.gateway.targets.routing import Unroutable, route
from wireglot.http.application import Headers
from wireglot.ir.content import Extra, Foreign, Media, Message, Part, Text
from wireglot.ir.request import Request
from wireglot.stores.seal import Sealer, Unreadable
from wireglot.wire.json import decode, encode

KIND: Final = "compaction"

_MAGIC: Final = b"WG1"  # as our other envelopes begin: what holds one is never passed on unread
_PREFIX: Final = base64.b64encode(_MAGIC).decode()
_NO_USAGE: Final[dict[str, Any]] = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


class _Summary:
    """Implements `Reply`: takes the model's summary in, which is no answer yet."""

    def __init__(self) -> None:
        self.started = False
        self.body = b""
        self.kept: list[dict[str, Any]] = []
        """The items that stay beside the summary."""

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self.started = True
        self.body = body

    def start(self, status: int, headers: Headers) -> None:
        raise AssertionError("a summary is asked for in one piece")

    def write(self, data: bytes) -> None: ...

    def end(self) -> None: ...

    def abort(self) -> None: ...

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None: ...


class Compaction:
    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    async def answer(self, exchange: Exchange, inner: Answerer) -> None:
        """Ask for a summary with `inner`, and hand it out sealed."""
        job = exchange.job
        summary = _Summary()
        document = exchange.document()
        asked = {"store": False, "stream": False, "input": document.get("input") or []}
        asking = read(job.incoming, encode({**document, **asked}), id=job.id, now=job.context.now)
        # In its place: what is written down of the one is written down of the other.
        own = Exchange(asking, exchange.record, summary, exchange.redactor, exchange.ending)
        await inner.answer(own)
        answer = decode(summary.body)
        text = "".join(_texts(answer))
        if not text.strip():
            raise RequestError("upstream_bad", "the model has not written a summary")
        compacted = {
            "id": f"resp_{secrets.token_hex(24)}",
            "object": "response.compaction",
            "created_at": job.context.now,
            "output": [*summary.kept, self._item(job.caller.name, text)],
            "usage": answer.get("usage") or _NO_USAGE,
        }
        exchange.reply.send(200, [JSON, *common_headers(own)], encode(compacted))

    def open(self, exchange: Exchange) -> None:
        """Before a model is asked: our own summaries are text again, and a compaction asks for one."""
        if isinstance(exchange.reply, _Summary):
            exchange.rewrite(self._asking(exchange, exchange.reply))
        elif KIND.encode() in exchange.job.body or exchange.rewritten:
            request = exchange.request()
            opened = self._opened(request, exchange.job.caller.name)
            if opened is not request:
                exchange.rewrite(opened)

    def _asking(self, exchange: Exchange, summary: _Summary) -> Request:
        """Ask for a summary of what the request brings."""
        job, request = exchange.job, exchange.request()
        stays = [message for message in request.messages if _stays(message)]
        unread = [part.value for part in _foreign(request) if self._text(part, job.caller.name) is None]
        alone = Request(request.model, tuple(map(_plain, stays)), extra=Extra(RESPONSES))
        rendered = dialect(RESPONSES).render_request(alone, job.context).value["input"]
        summary.kept = [*map(_item, rendered if isinstance(rendered, list) else []), *unread]
        told = self._opened(request, job.caller.name).messages
        messages = [in_words(message) for message in told if not _is_instructions(message)]
        messages = [message for message in messages if message.content]
        if not messages:
            raise RequestError(
                "bad", "input: there is nothing to compact", code="invalid_value", param="input"
            )
        return Request(
            request.model,
            (
                Message("system", (Text(INSTRUCTIONS),), extra=Extra(RESPONSES, form={"instructions": True})),
                *messages,
                Message("user", (Text(NOW),)),
            ),
            stream=False,
            user=request.user,
            cache_key=request.cache_key,
            extra=Extra(RESPONSES, form={"store": False}),
        )

    # The sealed item.

    def _item(self, caller: str, summary: str) -> dict[str, Any]:
        id = f"cmp_{secrets.token_hex(16)}"
        sealed = self._sealer.seal(caller, KIND, "", summary.encode())
        return {"type": KIND, "id": id, "encrypted_content": base64.b64encode(_MAGIC + sealed).decode()}

    def _text(self, part: Part, caller: str) -> str | None:
        """What an item holds; None: it is not ours. One of ours that does not open is refused: without it the
        model would answer to a conversation that it does not know."""
        if not _is_compaction(part):
            return None
        value = part.value.get("encrypted_content")
        if not isinstance(value, str) or not value.startswith(_PREFIX):
            return None
        try:
            raw = base64.b64decode(value, validate=True)
            return self._sealer.open(caller, KIND, "", raw[len(_MAGIC) :]).decode()
        except (binascii.Error, Unreadable):
            raise RequestError(
                "bad",
                "input: the encrypted_content of a compaction item cannot be opened here",
                code="invalid_encrypted_content",
                param="input",
            ) from None

    def _opened(self, request: Request, caller: str) -> Request:
        """The same request where nothing in it is ours to open."""
        if not any(_foreign(request)):
            return request
        messages: list[Message] = []
        for message in request.messages:
            rest: list[Part] = []
            for part in message.content:
                text = self._text(part, caller)
                if text is None:
                    rest.append(part)
                    continue
                if rest:
                    messages.append(replace(message, content=tuple(rest)))
                    rest = []
                messages.append(Message("user", (Text(PREFACE + text),)))
            if rest or not message.content:
                messages.append(replace(message, content=tuple(rest)))
        changed = tuple(messages)
        return request if changed == request.messages else replace(request, messages=changed)


def is_upstreams(exchange: Exchange) -> bool:
    """Whether it is a compaction that the upstream itself does."""
    return exchange.job.asked.operation == "compact" and not isinstance(exchange.reply, _Summary)


class Compacted:
    """A step: a compaction is a summary that any model writes, unless the provider compacts by itself."""

    def __init__(self, inner: Answerer, compaction: Compaction) -> None:
        self._inner = inner
        self._compaction = compaction

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        if exchange.job.asked.operation != "compact" or _compacts_itself(exchange):
            return self._inner.answer(exchange)
        return self._compaction.answer(exchange, self._inner)


class Unsealed:
    """A step: summaries that were handed out sealed are text again before a model sees them."""

    def __init__(self, inner: Answerer, compaction: Compaction) -> None:
        self._inner = inner
        self._compaction = compaction

    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        if exchange.job.dialect == RESPONSES and not is_upstreams(exchange):
            self._compaction.open(exchange)
        return self._inner.answer(exchange)


def _compacts_itself(exchange: Exchange) -> bool:
    """Whether everything the request may go to is OpenAI itself, and nothing in it is only known here."""
    job = exchange.job
    outline = job.outline
    refers = outline.get("previous_response_id") or outline.get("conversation") or b'"item_ref' in job.body
    if exchange.sealed or (refers and job.settings.store.responses == "gateway"):
        return False
    try:
        targets = route(job.settings, job.model, job.dialect)
    except Unroutable:
        return False  # which is told where routes are looked for
    return all(target.dialect == RESPONSES and target.provider.spec.home for target in targets)


def _foreign(request: Request) -> Iterator[Foreign]:
    return (part for message in request.messages for part in message.content if _is_compaction(part))


def _is_compaction(part: Part) -> TypeGuard[Foreign]:
    return isinstance(part, Foreign) and part.type == KIND and part.dialect == RESPONSES


def _stays(message: Message) -> bool:
    """What the user and the developer said stays as it was said."""
    return (
        message.role != "assistant"
        and not _is_instructions(message)
        and any(isinstance(part, Text | Media) for part in message.content)
    )


def _plain(message: Message) -> Message:
    return replace(message, content=tuple(part for part in message.content if isinstance(part, Text | Media)))


def _is_instructions(message: Message) -> bool:
    extra = message.extra
    return extra is not None and extra.dialect == RESPONSES and "instructions" in extra.form


def _item(item: dict[str, Any]) -> dict[str, Any]:
    """In the form of output, which has ids and no shorthand."""
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    named = {"type": "message", "id": f"msg_{secrets.token_hex(16)}", "status": "completed"}
    return {**named, **item, "content": content}


def _texts(answer: dict[str, Any]) -> Iterator[str]:
    for item in answer.get("output", ()):
        if item.get("type") == "message":
            for part in item.get("content", ()):
                if part.get("type") == "output_text":
                    yield part.get("text", "")
