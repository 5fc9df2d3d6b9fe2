"""Counts the steps of regular expressions: a matcher that goes back like Python's, and inputs that make it.

`grows` pumps a pattern: for each of its repetitions it makes texts of a prefix that leads there, a piece that the
repetition matches, repeated, and an end that does not fit. It counts the steps of a search with 24 pieces and with 96.
Python's own engine counts nothing, and a time says as much about the machine as about the pattern.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from re import _constants as codes  # type: ignore[attr-defined]  # without types
from re import _parser as parser  # type: ignore[attr-defined]  # without types
from typing import Any, Final, Literal

Mode = Literal["search", "match", "fullmatch"]

PIECES: Final = 24
GROWTH: Final = 4
MAX_RATIO: Final = 5
SLACK: Final = 300
MAX_STEPS: Final = 60_000
"""For the shorter text: more of them are exponential."""
MAX_BOUND: Final = 400
"""A repetition of at most this many is linear, and costs each character so many steps at most. It is counted as one of
`_SCALED`, so that few pieces show it."""
_SCALED: Final = 10
_ENDS: Final = ("\0", "\n~")
_PLAIN: Final = "a0 _-.,/"
_SAMPLES: Final = 3

Test = Callable[[str], bool]


class TooManySteps(Exception):
    pass


class Program:
    """A pattern as instructions: (name, argument, argument). It goes back through a stack of its own."""

    def __init__(self, pattern: str | bytes, flags: int = 0, mode: Mode = "search") -> None:
        self.tree = parser.parse(pattern, flags)
        self.flags = self.tree.state.flags
        self.code: list[tuple[Any, ...]] = []
        self.steps = 0
        self.limit = sys.maxsize
        self.anchored = mode != "search"
        self._registers = 0
        self._sequence(self.tree)
        if mode == "fullmatch":
            self.code.append(("at", codes.AT_END_STRING, None))
        self.code.append(("end", None, None))

    # From a tree to instructions.

    def _sequence(self, nodes: Iterable[Any]) -> None:
        for operator, argument in nodes:
            self._node(operator, argument)

    def _node(self, operator: Any, argument: Any) -> None:
        if operator in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
            self.code.append(("char", Memo(test_of(operator, argument, self.flags)), None))
        elif operator is codes.BRANCH:
            self._branch(argument[1])
        elif operator is codes.SUBPATTERN:
            group, added, removed, inner = argument
            before, self.flags = self.flags, (self.flags | added) & ~removed
            if group is not None:
                self.code.append(("save", 2 * group, None))
            self._sequence(inner)
            if group is not None:
                self.code.append(("save", 2 * group + 1, None))
            self.flags = before
        elif operator in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            self._repeat(*argument, lazy=operator is codes.MIN_REPEAT)
        elif operator is codes.POSSESSIVE_REPEAT:
            self._inner("atomic", lambda: self._repeat(*argument, lazy=False))
        elif operator is codes.ATOMIC_GROUP:
            self._inner("atomic", lambda: self._sequence(argument))
        elif operator in (codes.ASSERT, codes.ASSERT_NOT):
            direction, inner = argument
            width = inner.getwidth()[0] if direction < 0 else 0
            name = "ahead" if operator is codes.ASSERT else "not ahead"
            self._inner(name, lambda: self._sequence(inner), width)
        elif operator is codes.AT:
            self.code.append(("at", argument, None))
        elif operator is codes.GROUPREF:
            self.code.append(("again", argument, None))
        elif operator is codes.GROUPREF_EXISTS:
            self._branch([each for each in argument[1:] if each is not None])
        elif operator is not codes.FAILURE:
            raise NotImplementedError(str(operator))
        else:
            self.code.append(("char", Memo(lambda character: False), None))

    def _branch(self, alternatives: Sequence[Any]) -> None:
        ends: list[int] = []
        for number, alternative in enumerate(alternatives):
            if number < len(alternatives) - 1:
                split = self._hole()
                self._sequence(alternative)
                ends.append(self._hole())
                self.code[split] = ("split", split + 1, len(self.code))
            else:
                self._sequence(alternative)
        for end in ends:
            self.code[end] = ("jump", len(self.code), None)

    def _repeat(self, least: int, most: int, inner: Any, *, lazy: bool) -> None:
        for _ in range(min(least, _SCALED)):
            self._sequence(inner)
        if most == codes.MAXREPEAT or most > MAX_BOUND:
            register = self._registers = self._registers + 1
            split = self._hole()
            self.code.append(("mark", register, None))
            self._sequence(inner)
            self.code.append(("moved", register, None))
            self.code.append(("jump", split, None))
            self.code[split] = self._split(split + 1, len(self.code), lazy)
            return
        holes = []
        for _ in range(min(most, _SCALED) - min(least, _SCALED)):
            holes.append(self._hole())
            self._sequence(inner)
        for hole in holes:
            self.code[hole] = self._split(hole + 1, len(self.code), lazy)

    def _inner(self, name: str, write: Callable[[], None], width: int = 0) -> None:
        hole = self._hole()
        write()
        self.code.append(("end", None, None))
        self.code[hole] = (name, len(self.code), width)

    def _hole(self) -> int:
        self.code.append(())
        return len(self.code) - 1

    @staticmethod
    def _split(inside: int, after: int, lazy: bool) -> tuple[Any, ...]:
        return ("split", after, inside) if lazy else ("split", inside, after)

    # Matching.

    def count(self, text: str, limit: int) -> int:
        """The steps that it takes to find all matches in a text. Raises TooManySteps."""
        self.steps, self.limit = 0, limit
        at = 0
        while at <= len(text):
            end = self._run(0, text, at, {})
            if self.anchored:
                break
            at = end if end > at else at + 1
        return self.steps

    def _run(self, pc: int, text: str, at: int, saved: dict[int, int]) -> int:
        """Where a match ends that begins at a place; -1 for none."""
        code, length = self.code, len(text)
        stack: list[tuple[int, int, dict[int, int]]] = []
        steps, limit = self.steps, self.limit
        while True:
            steps += 1
            if steps > limit:
                raise TooManySteps
            name, first, second = code[pc]
            if name == "char":
                if at < length and first[text[at]]:
                    pc, at = pc + 1, at + 1
                    continue
            elif name == "split":
                stack.append((second, at, saved))
                pc = first
                continue
            elif name == "jump":
                pc = first
                continue
            elif name == "save" or name == "mark":
                saved = {**saved, first if name == "save" else -first: at}
                pc += 1
                continue
            elif name == "moved":
                if saved[-first] != at:
                    pc += 1
                    continue
            elif name == "at":
                if self._is_at(first, text, at):
                    pc += 1
                    continue
            elif name == "again":
                word = text[saved.get(2 * first, 0) : saved.get(2 * first + 1, 0)]
                if text.startswith(word, at):
                    steps += len(word)
                    pc, at = pc + 1, at + len(word)
                    continue
            elif name == "end":
                self.steps = steps
                return at
            else:
                self.steps = steps
                end = self._run(pc + 1, text, at - second, saved) if at >= second else -1
                steps = self.steps
                if name == "atomic" and end >= 0:
                    pc, at = first, end
                    continue
                if name != "atomic" and (end >= 0) is (name == "ahead"):
                    pc = first
                    continue
            if not stack:
                self.steps = steps
                return -1
            pc, at, saved = stack.pop()

    def _is_at(self, place: Any, text: str, at: int) -> bool:
        before = text[at - 1] if at else ""
        after = text[at : at + 1]
        if place in (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING):
            many = self.flags & re.MULTILINE and place is codes.AT_BEGINNING
            return not before or bool(many and before == "\n")
        if place is codes.AT_END:
            return not after or text[at:] == "\n" or bool(self.flags & re.MULTILINE and after == "\n")
        if place is codes.AT_END_STRING:
            return not after
        return (_is_word(before) != _is_word(after)) is (place is codes.AT_BOUNDARY)


class Memo(dict[str, bool]):
    """What a test of characters has said."""

    def __init__(self, test: Test) -> None:
        self._test = test

    def __missing__(self, character: str) -> bool:
        self[character] = found = self._test(character)
        return found


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_CATEGORIES: Final[dict[Any, Test]] = {
    codes.CATEGORY_DIGIT: str.isdigit,
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: _is_word,
    codes.CATEGORY_NOT_DIGIT: lambda character: not character.isdigit(),
    codes.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    codes.CATEGORY_NOT_WORD: lambda character: not _is_word(character),
}


def test_of(operator: Any, argument: Any, flags: int) -> Test:
    """Whether a character matches."""
    if operator is codes.ANY:
        return lambda character: bool(flags & re.DOTALL) or character != "\n"
    items = argument if operator is codes.IN else [(codes.LITERAL, argument)]
    negated = operator is codes.NOT_LITERAL or items[0][0] is codes.NEGATE
    tests = [_item(item, value) for item, value in items if item is not codes.NEGATE]

    def holds(character: str) -> bool:
        forms = (character, character.lower(), character.upper()) if flags & re.IGNORECASE else (character,)
        return any(test(form) for test in tests for form in forms if len(form) == 1) is not negated

    return holds


def _item(item: Any, value: Any) -> Test:
    if item is codes.LITERAL:
        return lambda character: ord(character) == value
    if item is codes.RANGE:
        return lambda character: bool(value[0] <= ord(character) <= value[1])
    return _CATEGORIES[value]


# Texts that make it go back.


def texts(tree: Any) -> Iterator[Callable[[int], str]]:
    """Functions of the number of pieces, each once."""
    flags = tree.state.flags
    alphabet = "".join(dict.fromkeys(_literals(tree)))
    usual = alphabet[:40] + _PLAIN
    ends = dict.fromkeys(_refused_ends(tree, flags, usual))
    seen = set[tuple[str, str, str]]()
    for before, body, after in _repetitions(list(tree), "", "", flags, usual):
        bodies = list(dict.fromkeys(body))
        found = [*bodies, *(one + other for one in bodies for other in bodies if one != other)]
        seen.update((before, piece, end) for piece in found for end in ends)
        found += [before, bodies[0] + after, after, before + bodies[0] + after]
        seen.update((start, piece, end) for start in ("", before) for piece in found for end in _ENDS)
        seen.update(("", before + piece, end) for piece in bodies for end in _ENDS)
    whole = next(iter(_samples(list(tree), flags, usual)), "")
    seen.update(("", piece, end) for piece in (whole, *alphabet[:12]) for end in _ENDS)
    for start, piece, end in sorted(seen):
        if piece:
            yield partial(_pumped, start, piece, end)


def _refused_ends(nodes: Iterable[Any], flags: int, usual: str) -> Iterator[str]:
    """What may not follow, as `(?!x)`, `[^x]` and `\\b` say: a repetition before it goes back."""
    for operator, argument in nodes:
        if operator is codes.ASSERT_NOT and argument[0] > 0:
            yield from islice(_samples(list(argument[1]), flags, usual), _SAMPLES)
        elif operator is codes.IN and argument[0][0] is codes.NEGATE:
            yield from islice(_literals([(operator, argument)]), _SAMPLES)
        elif operator is codes.AT and argument in (codes.AT_BOUNDARY, codes.AT_NON_BOUNDARY):
            yield "_"
        if operator in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _refused_ends(argument[2], flags, usual)
        for inner in _children(operator, argument):
            yield from _refused_ends(inner, flags, usual)


def _pumped(start: str, piece: str, end: str, count: int) -> str:
    return start + piece * count + end


def _repetitions(
    nodes: Sequence[Any], before: str, after: str, flags: int, usual: str
) -> Iterator[tuple[str, list[str], str]]:
    """Of each repetition: a text that leads to it, texts that it matches once, and one that follows it."""
    for number, (operator, argument) in enumerate(nodes):
        lead = before + _first(nodes[:number], flags, usual)
        follow = _first(nodes[number + 1 :], flags, usual) or after
        if operator in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            inner = list(argument[2])
            if argument[1] > MAX_BOUND:
                samples = list(islice(_samples(inner, flags, usual), 2 * _SAMPLES))
                if samples and any(samples):
                    yield lead, [each for each in samples if each], follow
            yield from _repetitions(inner, lead, follow, flags, usual)
        else:
            for inner in _children(operator, argument):
                yield from _repetitions(inner, lead, follow, flags, usual)


def _children(operator: Any, argument: Any) -> list[list[Any]]:
    if operator is codes.SUBPATTERN:
        return [list(argument[3])]
    if operator is codes.BRANCH:
        return [list(each) for each in argument[1]]
    if operator is codes.ATOMIC_GROUP:
        return [list(argument)]
    if operator in (codes.ASSERT, codes.ASSERT_NOT):
        return [list(argument[1])]
    if operator is codes.GROUPREF_EXISTS:
        return [list(each) for each in argument[1:] if each is not None]
    return []


def _literals(nodes: Iterable[Any]) -> Iterator[str]:
    for operator, argument in nodes:
        if operator in (codes.LITERAL, codes.NOT_LITERAL):
            yield chr(argument)
        elif operator is codes.IN:
            yield from (chr(value) for item, value in argument if item is codes.LITERAL)
        elif operator in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _literals(argument[2])
        else:
            for inner in _children(operator, argument):
                yield from _literals(inner)


def _first(nodes: Sequence[Any], flags: int, usual: str) -> str:
    return next(iter(_samples(nodes, flags, usual)), "")


def _samples(nodes: Sequence[Any], flags: int, usual: str) -> Iterator[str]:
    """Some texts that a sequence matches, by and large."""
    if not nodes:
        yield ""
        return
    heads = list(dict.fromkeys(islice(_samples_of(nodes[0][0], nodes[0][1], flags, usual), _SAMPLES)))
    rests = list(dict.fromkeys(islice(_samples(nodes[1:], flags, usual), _SAMPLES)))
    yield from (head + rest for head in heads for rest in rests)


def _samples_of(operator: Any, argument: Any, flags: int, usual: str) -> Iterator[str]:
    if operator in (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN):
        if operator is codes.LITERAL:
            yield chr(argument)
            return
        test = test_of(operator, argument, flags)
        found = [each for each in usual if test(each)]
        if found:  # one of a word and one of none first: `\\b` is between them
            other = next((each for each in found if _is_word(each) != _is_word(found[0])), found[0])
            yield from dict.fromkeys((found[0], other, *found))
        yield from (chr(number) for number in range(32, 0x250) if test(chr(number)))
    elif operator is codes.BRANCH:
        for alternative in argument[1]:
            yield from islice(_samples(list(alternative), flags, usual), 1)
    elif operator in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least, most, inner = argument
        for sample in islice(_samples(list(inner), flags, usual), _SAMPLES):
            yield sample * min(max(least, min(1, most)), _SCALED)
        if not least:
            yield ""
    elif operator in (codes.SUBPATTERN, codes.ATOMIC_GROUP):
        yield from _samples(_children(operator, argument)[0], flags, usual)
    else:
        yield ""


def grows(pattern: str | bytes, flags: int = 0, mode: Mode = "search") -> str:
    """A text that shows that its steps grow faster than the text, or ""."""
    program = Program(pattern, flags, mode)
    for text in texts(program.tree):
        if _grows(program, text, PIECES, MAX_STEPS):
            return text(2)
    return ""


def _grows(program: Program, text: Callable[[int], str], pieces: int, limit: int) -> bool:
    try:
        first = program.count(text(pieces), limit)
        program.count(text(GROWTH * pieces), MAX_RATIO * first + SLACK)
    except TooManySteps:
        return True
    return False
