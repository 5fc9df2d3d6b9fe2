"""The order of turns: merging neighbours, and pairing every tool call with its result.

Targets refuse a conversation whose calls and results do not pair (a lost result, a result without its call, a
repeated one, one in the wrong place). The repair is deterministic, so a repaired prefix stays the same prefix
in every later request; each repair is a Loss.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from wireglot_core.ir.content import Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Action, Feature, Loss, losses_of_extra
from wireglot_core.ir.trail import Trail

INTERRUPTED = "The tool call was interrupted: no result was recorded."
WITHOUT_RESULTS: Final = "[tool results moved or left out]"
"""The text of a turn of the user that had only results of which none can stay there."""


_MAX_WORDS = 1000
"""Characters of a user's text that are used as the query of a forced web search: search engines take no
longer queries."""


def last_words(messages: tuple[Message, ...]) -> str:
    """The user's last text, as a query for a search engine."""
    for message in reversed(messages):
        if message.role == "user":
            said = " ".join(part.text for part in message.content if type(part) is Text).strip()
            if said:
                return said[:_MAX_WORDS]
    return ""


def joined(turn: list[Message]) -> Message:
    """One message with the content of all of them."""
    first = turn[0]
    content = tuple([part for message in turn for part in message.content])
    return Message(first.role, content, first.name, first.extra)


def merge_neighbours(
    messages: tuple[Message, ...],
    own: str,
    losses: list[Loss],
    trail: Trail,
    join: Callable[[list[Message]], Message] = joined,
) -> tuple[Message, ...]:
    """One message per turn. What only the source dialect knows about a merged message is reported as a loss.
    `join`: for a caller that caches joined messages."""
    turns: list[list[Message]] = []
    turn: list[Message] = []
    speaker = ""
    for message in messages:
        if message.role != speaker or speaker == "system":
            speaker = message.role
            turn = [message]
            turns.append(turn)
            continue
        if message.extra is not None:
            losses_of_extra(message.extra, own, trail.of(message), losses)
        if message.is_empty or (len(turn) == 1 and turn[0].is_empty):
            empty = message if message.is_empty else turn[0]
            losses.append(
                Loss(trail.of(empty), "content.empty", "dropped", "merged with the turn next to it")
            )
        if message.name and message.name != turn[0].name:
            losses.append(
                Loss(f"{trail.of(message)}.name", "message.name", "dropped", "merged with the turn before")
            )
        turn.append(message)
    if len(turns) == len(messages):
        return messages
    merged: list[Message] = []
    for turn in turns:
        whole = turn[0]
        if len(turn) > 1:
            whole = join(turn)
            trail.follow(turn[0], whole)
        merged.append(whole)
    return tuple(merged)


def is_paired(messages: tuple[Message, ...]) -> bool:
    """Whether every call is answered once, directly after its turn, in call order, results first."""
    return still_paired(messages, [], set())


def still_paired(messages: Iterable[Message], waiting: list[str], seen: set[str]) -> bool:
    """The same for messages that follow others. `waiting`: calls that are still unanswered; `seen`: all calls
    so far. Both are updated."""
    for message in messages:
        if message.role == "assistant":
            if waiting:
                return False
            for part in message.content:
                if type(part) is ToolCall:
                    if part.id in seen:
                        return False
                    seen.add(part.id)
                    waiting.append(part.id)
            continue
        answers = [part.call_id for part in message.content if type(part) is ToolResult]
        if answers != waiting:
            return False
        if answers:
            rest = message.content[len(answers) :]
            if rest and any(type(part) is ToolResult for part in rest):
                return False  # something else precedes them
            waiting.clear()
    return True


def repair_pairs(
    messages: tuple[Message, ...],
    losses: list[Loss],
    trail: Trail,
    unique_id: Callable[[str, int], str],
) -> tuple[Message, ...]:
    """Every call answered exactly once, directly after its turn and in call order.

    `unique_id(id, ordinal)` names the second and later calls that repeat an id (Kimi's ids recur every turn).
    Calls of the very last turn stay open: their results are not lost, only still to come.
    """
    if is_paired(messages):
        return messages
    return _Repair(messages, losses, trail, unique_id).run()


class _Repair:
    def __init__(
        self,
        messages: tuple[Message, ...],
        losses: list[Loss],
        trail: Trail,
        unique_id: Callable[[str, int], str],
    ) -> None:
        self.messages = messages
        self.losses = losses
        self.trail = trail
        self.unique_id = unique_id
        self.results: dict[str, deque[tuple[int, ToolResult]]] = defaultdict(deque)
        self.calls: dict[str, list[int]] = defaultdict(list)
        self.ordinal = 0
        self.seen: set[str] = set()
        self.turns_before = [0]
        """For each message, the number of the model's turns before it."""

    def run(self) -> tuple[Message, ...]:
        self._note_pairs()
        last_assistant = max((i for i, m in enumerate(self.messages) if m.role == "assistant"), default=-1)
        answers_follow = any(
            type(part) is ToolResult
            for message in self.messages[last_assistant + 1 :]
            for part in message.content
        )
        repaired: list[Message] = []
        before = ""
        after = self._speakers_after()
        for index, message in enumerate(self.messages):
            if message.role != "assistant":
                rest = tuple(part for part in message.content if type(part) is not ToolResult)
                if rest or not message.content:
                    repaired.append(self._with(message, rest))
                elif before == "assistant" and after[index] != "user":
                    repaired.append(self._noted(message))
                else:
                    continue
                before = before if message.role == "system" else message.role
                continue
            final = index == last_assistant and index == len(self.messages) - 1 and not answers_follow
            content, answers = self._answer(index, message, final)
            repaired.append(self._with(message, content))
            before = "assistant"
            if answers:
                repaired.append(Message("user", answers))
                before = "user"
        self._report_leftovers()
        return _join_answers(tuple(repaired), self.trail)

    def _note_pairs(self) -> None:
        """Where calls and results are."""
        for index, message in enumerate(self.messages):
            self.turns_before.append(self.turns_before[-1] + (message.role == "assistant"))
            for part in message.content:
                if type(part) is ToolResult:
                    self.results[part.call_id].append((index, part))
                elif type(part) is ToolCall:
                    self.calls[part.id].append(index)

    def _speakers_after(self) -> list[str]:
        """For each message, the role of the next turn; "" at the end."""
        speaker, speakers = "", [""] * len(self.messages)
        for index in reversed(range(len(self.messages))):
            speakers[index] = speaker
            if self.messages[index].role != "system":
                speaker = self.messages[index].role
        return speakers

    def _noted(self, message: Message) -> Message:
        """A turn of results of which none stays, as a note: without it, the model's turn before would be
        continued, or joined with the next."""
        path = self.trail.of(message)
        self.losses.append(Loss(path, "content.empty", "approximated", f'sent as "{WITHOUT_RESULTS}"'))
        losses_of_extra(message.extra, "", path, self.losses)
        noted = Message("user", (Text(WITHOUT_RESULTS),), message.name)
        self.trail.follow(message, noted)
        return noted

    def _lose(
        self, part: ToolCall | ToolResult, feature: Feature, action: Action, detail: str, field: str = ""
    ) -> None:
        self.losses.append(Loss(f"{self.trail.of(part)}{field}", feature, action, detail))

    def _with(self, message: Message, content: tuple[Part, ...]) -> Message:
        if len(content) == len(message.content) and all(map(operator.is_, content, message.content)):
            return message
        changed = Message(message.role, content, message.name, message.extra)
        self.trail.follow(message, changed)
        return changed

    def _answer(self, index: int, message: Message, final: bool) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """The turn's content, and the results to put after it."""
        content: list[Part] = []
        answers: list[Part] = []
        for part in message.content:
            if type(part) is not ToolCall:
                content.append(part)
                continue
            found = self._take(part.id, index) or self._take_nameless(index)
            call = part
            if part.id in self.seen:
                call = msgspec.structs.replace(part, id=self.unique_id(part.id, self.ordinal))
                self.trail.follow(part, call)
                self._lose(part, "tool_call.id", "approximated", "a repeated call id was made unique", ".id")
            self.seen.add(call.id)
            self.ordinal += 1
            content.append(call)
            if found is not None:
                answer = (
                    found if found.call_id == call.id else msgspec.structs.replace(found, call_id=call.id)
                )
                self.trail.follow(found, answer)
                answers.append(answer)
            elif not final:
                answers.append(ToolResult(call.id, (Text(INTERRUPTED),), is_error=True, kind=call.kind))
                self._lose(
                    part,
                    "tool_result.pairing",
                    "invented",
                    "the call had no result; an error result was put in its place",
                )
        return tuple(content), tuple(answers)

    def _take(self, call_id: str, call_index: int) -> ToolResult | None:
        queue = self.results.get(call_id)
        if not queue:
            return None
        calls = self.calls[call_id]
        later = bisect_right(calls, call_index)
        again = calls[later] if later < len(calls) else len(self.messages)
        # Results after a later call with the same id answer that call.
        if queue[0][0] > again:
            return None
        index, result = queue.popleft()
        shared = later > 1 and calls[later - 2] == call_index
        # Calls of one turn that share an id: a result for each, in order.
        while not shared and queue and queue[0][0] <= again:
            detail = "replaced by a later result for the same call"
            self._lose(result, "tool_result.pairing", "dropped", detail)
            index, result = queue.popleft()
        if index < call_index or self._has_turn_between(call_index, index):
            self._lose(
                result, "tool_result.pairing", "approximated", "a misplaced result was moved after its call"
            )
        return result

    def _has_turn_between(self, call_index: int, index: int) -> bool:
        return self.turns_before[index] > self.turns_before[call_index + 1]

    def _take_nameless(self, call_index: int) -> ToolResult | None:
        """A result without a call id answers the first call of the turn before that has no other result."""
        queue = self.results.get("")
        if not queue:
            return None
        index, result = queue[0]
        if index < call_index or self._has_turn_between(call_index, index):
            return None
        queue.popleft()
        detail = "a result without an id was given that of its call"
        self._lose(result, "tool_call.id", "approximated", detail)
        return result

    def _report_leftovers(self) -> None:
        for queue in self.results.values():
            for _, result in queue:
                known = result.call_id in self.seen
                detail = "a second result for one call" if known else "a result without its call"
                self._lose(result, "tool_result.pairing", "dropped", detail)


def _join_answers(messages: tuple[Message, ...], trail: Trail) -> tuple[Message, ...]:
    """Results and the user text after them form one user turn, results first."""
    turns: list[list[Message]] = []
    only_results = False
    for message in messages:
        if only_results and message.role == "user":
            turns[-1].append(message)
        else:
            turns.append([message])
        only_results = (
            message.role == "user"
            and message.extra is None
            and bool(turns[-1][0].content)
            and all(type(part) is ToolResult for part in message.content)
        )
    return tuple([_joined_answers(turn, trail) if len(turn) > 1 else turn[0] for turn in turns])


def _joined_answers(turn: list[Message], trail: Trail) -> Message:
    last = turn[-1]
    content = tuple([part for message in turn for part in message.content])
    whole = Message("user", content, last.name, last.extra)
    trail.follow(last, whole)
    return whole
