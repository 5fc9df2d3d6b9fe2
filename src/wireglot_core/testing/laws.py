"""Building blocks of the laws: run a codec, open what it sealed, report differences.

Everything takes a `Dialect`, so the laws apply to a custom one as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import msgspec
from msgspec.structs import replace

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.envelope import Holder, unseal
from wireglot_core.dialects.registry import dialect as registered
from wireglot_core.ir.content import (
    FOREIGN,
    UNSIGNED,
    Media,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
)
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Failure, Finish, check
from wireglot_core.ir.verdict import NoAnswer, accept
from wireglot_core.providers.carried import with_minter
from wireglot_core.translate import plan

_HOLDERS: dict[type[Part], Holder] = {Text: "text", ToolCall: "call", Media: "media"}


def read_stream(dialect: Dialect, pieces: Iterable[bytes], context: Context | None = None) -> list[Event]:
    """The events of a stream that arrives in these pieces. Raises BrokenGrammar if they are out of order."""
    reader = dialect.stream_reader(context or Context())
    events: list[Event] = []
    for piece in pieces:
        events += reader.read(piece)
    events += reader.end()
    return list(check(events))


def write_stream(
    dialect: Dialect, events: Iterable[Event], context: Context | None = None, request: Request | None = None
) -> Rendered[bytes]:
    writer = dialect.stream_writer(context or Context(), request)
    value = writer.write(events)
    return Rendered(value, tuple(writer.losses))


def crossed_request(
    body: dict[str, Any], source: str, target: str, model: str | None = None
) -> Rendered[dict[str, Any]]:
    """A request in another dialect, like `translate_request`; its losses keep their neutral places, for
    comparison with the parsed request."""
    context = Context()
    request = registered(source).parse_request(body, context)
    planned = plan(request, source=source, target=target, model=model, context=context)
    rendered = registered(target).render_request(planned.upstream, planned.context)
    return Rendered(rendered.value, planned.losses + planned.retraced(rendered.losses))


def crossed_response(
    body: dict[str, Any], source: str, target: str, *, judged: bool = False
) -> Rendered[dict[str, Any]]:
    """An answer in another dialect; its losses keep their neutral places.

    `judged`: as a gateway passes it on, without calls that a limit has cut off.
    """
    context = Context(call_prefix=registered(target).surface.client.call_prefix or Context().call_prefix)
    error = registered(source).parse_error(body)
    if error is not None:
        return registered(target).render_error(error, context)
    response = registered(source).parse_response(body, context)
    losses: tuple[Loss, ...] = ()
    if judged and source != target and response.stop.reason != "malformed_call":
        try:
            accepted = accept(response, None, may_be_empty=True)
        except NoAnswer as failed:
            return registered(target).render_error(failed.error, context)
        response, losses = accepted.response, accepted.losses
    family = registered(source).surface.family
    unseen: list[Loss] = []
    if family != registered(target).surface.family:
        response = with_minter(response, Origin(family, model=response.model), unseen)
    rendered = registered(target).render_response(response, context)
    return Rendered(rendered.value, (*losses, *unseen, *rendered.losses))


def ending(events: list[Event]) -> type[Event]:
    """How a stream ended: `Finish` or `Failure`."""
    last = type(events[-1])
    assert last in (Finish, Failure), f"a stream must not end in {last.__name__}"
    return last


def opened(response: Response, secret: bytes = Context().secret) -> Response:
    """The response with its sealed envelopes opened, as the client's next request sends them back.

    A foreign signature reaches the client inside a field of the client's dialect; the response parser, which
    expects an upstream on the other side, takes the envelope for the signature. This is its inverse. It also
    joins a signature that a stream could only send after the text it signs, as a separate empty part.
    """
    parts: list[Part] = []
    waiting: dict[Holder, Signature] = {}
    for part in response.content:
        signature = getattr(part, "signature", None)
        sealed = unseal(signature.data, secret) if signature is not None else None
        if sealed is None:
            _append(parts, _signed(part, waiting))
            continue
        inside, holder = sealed.signature, sealed.holder
        if not isinstance(part, Reasoning):
            _append(parts, replace(part, signature=inside))
        elif holder == "redacted":
            parts.append(Reasoning("", inside, redacted=True))
        elif holder == "reasoning":
            _append(parts, replace(part, signature=inside))
        elif holder == "unsigned":
            parts.append(replace(part, signature=None))
        else:
            waiting[holder] = inside
            if part.text:
                parts.append(replace(part, signature=None))
    return replace(response, content=tuple(_plain(part) for part in parts if not _is_unseen(part)))


def _is_unseen(part: Part) -> bool:
    """Content that the client carries without showing it."""
    return isinstance(part, Reasoning) and part.signature is not None and part.signature.id == FOREIGN


def _plain(part: Part) -> Part:
    """An unsigned thought, without its minter's name."""
    if isinstance(part, Reasoning) and part.signature is not None and part.signature.id == UNSIGNED:
        return replace(part, signature=None)
    return part


def _append(parts: list[Part], part: Part) -> None:
    last = parts[-1] if parts else None
    if not isinstance(part, Text | Reasoning) or part.signature is None or part.text:
        parts.append(part)
    elif isinstance(last, Text | Reasoning) and type(last) is type(part) and last.signature is None:
        parts[-1] = replace(last, signature=part.signature)
    else:
        parts.append(part)


def _signed(part: Part, waiting: dict[Holder, Signature]) -> Part:
    holder = _HOLDERS.get(type(part))
    if holder is None or holder not in waiting:
        return part
    return replace(part, signature=waiting.pop(holder))


def differences(one: Any, other: Any, path: str = "$") -> list[str]:
    """Readable differences of two values; empty if there are none."""
    return list(_differences(msgspec.to_builtins(one), msgspec.to_builtins(other), path))


def _differences(one: Any, other: Any, path: str) -> Iterable[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:  # in order: a set's order differs between processes
            if key not in one:
                yield f"{path}.{key}: absent != {_short(other[key])}"
            elif key not in other:
                yield f"{path}.{key}: {_short(one[key])} != absent"
            else:
                yield from _differences(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            yield f"{path}: {len(one)} items != {len(other)}: {_short(one)} != {_short(other)}"
            return
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{path}[{index}]")
    elif (type(one) is not type(other) and not _numbers(one, other)) or one != other:
        yield f"{path}: {_short(one)} != {_short(other)}"


def _numbers(one: Any, other: Any) -> bool:
    """JSON does not distinguish 1 from 1.0, but both from true."""
    return type(one) in (int, float) and type(other) in (int, float)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


# Up to this size every split into two pieces is tried; above it only some.
_SHORT = 400


def cut_at(data: bytes, offsets: Iterable[int]) -> list[bytes]:
    """The pieces between those offsets, which may be unordered, repeated (an empty piece) or out of range."""
    inside = sorted(min(max(offset, 0), len(data)) for offset in offsets)
    return [data[start:end] for start, end in pairwise([0, *inside, len(data)])]


def every_cut(data: bytes, random_cuts: int = 8, seed: int = 0) -> Iterator[list[bytes]]:
    """Whole, byte by byte, in two at each place (if short), and at random, the same each time.

    >>> for pieces in every_cut(recorded):
    ...     assert read_all(pieces) == expected
    """
    yield [data]
    yield [data[at : at + 1] for at in range(len(data))]
    if len(data) <= _SHORT:
        for at in range(1, len(data)):
            yield cut_at(data, [at])
    random = Random(seed)
    for _ in range(random_cuts):
        count = random.randint(1, max(1, min(len(data), 40)))
        yield cut_at(data, [random.randint(0, len(data)) for _ in range(count)])
