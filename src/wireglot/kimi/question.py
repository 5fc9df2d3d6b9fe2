"""What is asked: Anthropic's form or the neutral one in, Kimi's request out. The translation core does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.ir.content import Message, Text
from wireglot.ir.errors import ClientFault
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.kimi.options import Asked, Turn
from wireglot.kimi.setup import DIALECT, PROVIDER
from wireglot.translate import Plan, plan
from wireglot.wire.json import encode

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
