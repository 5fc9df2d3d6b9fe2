"""Pairs results with calls, and finds where a conversation may be cut without separating them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wireglot_core.ir.content import Message, ToolCall, ToolResult


class _Pairing:
    """Calls and results matched: a result answers the latest open call with its id before it.

    A result that comes too early answers nothing yet, but rendering moves it to a later call with its id: it
    is in `pairs`, and its call is still in `open`.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        self.pairs: list[tuple[int, int]] = []
        """Indexes of the message with the call and of the one with its result."""
        waiting: dict[str, list[tuple[int, int, ToolCall]]] = {}
        early: dict[str, list[int]] = {}
        count = 0
        for index, message in enumerate(messages):
            for part in message.content:
                if type(part) is ToolCall:
                    waiting.setdefault(part.id, []).append((index, count, part))
                    count += 1
                elif type(part) is ToolResult:
                    calls = waiting.get(part.call_id)
                    if not calls:
                        early.setdefault(part.call_id, []).append(index)
                        continue
                    latest = calls[-1][0]  # ids may recur in later turns; within one turn the order decides
                    at = next(at for at, (place, *_) in enumerate(calls) if place == latest)
                    self.pairs.append((calls.pop(at)[0], index))
        for identifier, places in early.items():
            calls = waiting.get(identifier, [])
            self.pairs += ((call, place) for (call, *_), place in zip(calls, places, strict=False))
        left = sorted((found for calls in waiting.values() for found in calls), key=lambda found: found[1])
        self.open = [(place, call) for place, _, call in left]


def open_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Every call without a result, in order."""
    return [call for _, call in _Pairing(messages).open]


def pending_calls(messages: Sequence[Message]) -> list[ToolCall]:
    """Those of the model's last turn: the calls still to be run."""
    first = _last_turn(messages)
    return [call for place, call in _Pairing(messages).open if place >= first]


def _last_turn(messages: Sequence[Message]) -> int:
    last = len(messages) - 1
    while last >= 0 and messages[last].role != "assistant":
        last -= 1
    while last > 0 and messages[last - 1].role == "assistant":
        last -= 1
    return last


def boundaries(messages: Sequence[Message]) -> list[int]:
    """The indexes at which the conversation may begin: no earlier call has its result after them."""
    pairing = _Pairing(messages)
    forbidden = [0] * (len(messages) + 1)
    spans = [(min(pair), max(pair)) for pair in pairing.pairs]
    last = _last_turn(messages)
    spans += ((place, len(messages) - 1) for place, _ in pairing.open if place >= last)
    for first, final in spans:
        forbidden[first + 1] += 1
        forbidden[final + 1] -= 1
    allowed, within = [], 0
    for place in range(len(messages)):
        within += forbidden[place]
        if not within:
            allowed.append(place)
    return allowed


def leading_system(messages: Sequence[Message]) -> int:
    """The number of system messages at the start."""
    head = 0
    while head < len(messages) and messages[head].role == "system":
        head += 1
    return head


def cut_place(messages: tuple[Message, ...], fits: Callable[[tuple[Message, ...]], bool]) -> int:
    """The first message to keep after the leading system text.

    The earliest index that fits, preferably one where the user speaks; the latest one if none does.
    """
    head = leading_system(messages)
    leading = messages[:head]
    if fits(messages):
        return head
    places = [place for place in boundaries(messages) if place > head]
    asking = [place for place in places if _is_question(messages[place])]
    for place in (*asking, *places):
        if fits(leading + messages[place:]):
            return place
    return places[-1] if places else head


def _is_question(message: Message) -> bool:
    return message.role == "user" and not any(type(part) is ToolResult for part in message.content)
