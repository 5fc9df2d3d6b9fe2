"""Differences between two documents, by JSON pointer; and between two answers, by content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from wireglot_core.ir.content import Foreign, Media, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.outcome import Response
from wireglot_core.traces.pointer import Steps, pointer, resolve
from wireglot_core.traces.trace import Link, TracedLoss
from wireglot_core.wire.json import BadJson, decode, encode_text

ABSENT: Final = object()
_SHOWN: Final = 160


class Difference(msgspec.Struct, frozen=True):
    """The value at a JSON pointer before and after; `absent` where there is none."""

    pointer: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.pointer or 'the document'}: {self.before} -> {self.after}"


def differences(before: Any, after: Any) -> list[Difference]:
    """JSON does not distinguish 1 from 1.0; arguments in a text are compared as JSON."""
    return [Difference(pointer(at), shown(one), shown(other)) for at, one, other in _walk(before, after, ())]


def first_difference(before: Any, after: Any) -> tuple[Steps, Any, Any] | None:
    """The first difference: its path and both values; None if the documents are equal."""
    return next(_walk(before, after, ()), None)


def _walk(one: Any, other: Any, at: Steps) -> Iterator[tuple[Steps, Any, Any]]:
    if type(one) is dict and type(other) is dict:
        for key in {**one, **other}:
            yield from _walk(one.get(key, ABSENT), other.get(key, ABSENT), (*at, key))
    elif type(one) is list and type(other) is list:
        for number in range(max(len(one), len(other))):
            first = one[number] if number < len(one) else ABSENT
            second = other[number] if number < len(other) else ABSENT
            yield from _walk(first, second, (*at, number))
    elif not _equal(one, other):
        yield at, one, other


def _equal(one: Any, other: Any) -> bool:
    if type(one) is bool or type(other) is bool:
        return one is other
    if type(one) is str and type(other) is str and one != other:
        first, second = object_in(one), object_in(other)
        return first is not None and first == second
    return bool(one == other)


def object_in(text: str) -> dict[str, Any] | None:
    """The JSON object in a text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = decode(text)
    except BadJson:
        return None
    return value if type(value) is dict else None


def shown(value: Any, most: int = _SHOWN) -> str:
    """A value on one line, cut to a readable length."""
    if value is ABSENT:
        return "absent"
    text = encode_text(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def outline(response: Response) -> dict[str, Any]:
    """The content of an answer, independent of dialect and provider."""
    usage = response.usage
    reported: dict[str, Any] = {
        "text": "".join(part.text for part in response.content if type(part) is Text),
        "reasoning": "".join(part.text for part in response.content if type(part) is Reasoning),
        "calls": list(_calls(response.content)),
        "stop": response.stop.reason,
    }
    if usage is not None:
        reported["tokens"] = {"input": usage.total_input, "output": usage.total_output}
    others = [part for part in response.content if type(part) in (Media, Foreign, ToolResult)]
    if others:
        reported["others"] = [type(part).__name__ for part in others]
    return reported


def _calls(content: Iterable[Part]) -> Iterator[dict[str, Any]]:
    for part in content:
        if type(part) is ToolCall:
            given = object_in(part.arguments)
            yield {"name": part.name, "arguments": part.arguments if given is None else given}


Fate = Literal["kept", "rewritten", "lost", "put in"]
_FATES: Final[dict[str, Fate]] = {"dropped": "lost", "invented": "put in"}
_FORM: Final = frozenset({"type", "role", "object", "status"})


class Side(msgspec.Struct, frozen=True):
    fate: Fate
    client: str = ""
    """A pointer into the client's request; "" if the part is not there."""
    upstream: str = ""
    detail: str = ""


def sides(
    body: dict[str, Any], sent: dict[str, Any], links: Sequence[Link], losses: Sequence[TracedLoss]
) -> list[Side]:
    """Both sides in the order of the client's document; parts that only the upstream's has come last."""
    lost = [loss for loss in losses if loss.document == "request"]
    within: dict[str, list[TracedLoss]] = {}
    for loss in lost:
        for place in {loss.pointer, *_around((loss.pointer,))}:
            within.setdefault(place, []).append(loss)
    out: list[Side] = []
    for link in _innermost(links):
        here, there = resolve(body, link.client), resolve(sent, link.upstream)
        fate: Fate = "kept" if words(here) == words(there) else "rewritten"
        out.append(Side(fate, link.client, link.upstream))
        out += [_lost(loss) for loss in within.get(link.client, ())]
    reported = {side.client for side in out}
    out += [_lost(loss) for loss in lost if loss.pointer not in reported or not loss.pointer]
    linked = {link.upstream for link in links}
    linked |= _around(linked)
    out += [Side("put in", "", f"/{name}") for name in sent if f"/{name}" not in linked]
    return list(dict.fromkeys(out))


def _lost(loss: TracedLoss) -> Side:
    detail = f"{loss.feature} {loss.action}" + (f": {loss.detail}" if loss.detail else "")
    return Side(_FATES.get(loss.action, "rewritten"), loss.pointer or loss.path, loss.upstream, detail)


def _innermost(links: Sequence[Link]) -> Iterable[Link]:
    """The links of parts, without those of the turns around them."""
    around = _around({link.client for link in links})
    inner = [link for link in links if link.client not in around]
    there: dict[str, set[str]] = {}
    for link in inner:
        there.setdefault(link.client, set()).add(link.upstream)
    return [link for link in inner if link.upstream not in _around(there[link.client])]


def _around(places: Iterable[str]) -> set[str]:
    """All containers of these places."""
    return {place[:end] for place in places for end, letter in enumerate(place) if letter == "/" and end}


def words(value: Any) -> list[str]:
    """The content of a value: its texts, numbers and names, in any order, without words that belong to its
    form."""
    out: list[str] = []
    stack = [value]
    while stack:
        each = stack.pop()
        if type(each) is dict:
            stack += [item for key, item in each.items() if key not in _FORM]
        elif type(each) is list:
            stack += each
        elif type(each) is str and each.startswith("{") and (inside := object_in(each)) is not None:
            stack.append(inside)  # arguments, which some dialects write as a text
        elif each is not None:
            out.append(str(each))
    return sorted(out)
