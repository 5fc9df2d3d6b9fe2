"""Makes streamed tool arguments valid JSON whatever the model writes.

Arguments are passed on as they arrive, so it is too late to wrap them when they turn out to be invalid JSON.
But every prefix that was passed on is checked, and a valid beginning can always be completed: the open
strings and brackets are closed, and the whole raw text is added as `_raw`, from which the request parser
restores it. What can be repaired is repaired immediately: a comma is held back until the next character is
known, control characters are escaped, and text after the last brace is judged at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from wireglot_core.dialects.arguments import (
    ESCAPED,
    PARSE_ERROR,
    RAW,
    Form,
    declare_arguments,
    read_arguments,
    repaired_object,
)
from wireglot_core.ir.content import ToolCall
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.stream import Delta, Event, PartEnd, PartStart
from wireglot_core.wire.json import MAX_DEPTH, encode_text

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_SPACE = " \t\n\r"
_BLANKS = re.compile(r"[ \t\n\r]*")
_UNTIL_QUOTE = re.compile(r'[^"\\]*')
_IN_STRING = re.compile(r'[^"\\\x00-\x1f]*')
_IN_NUMBER = frozenset("0123456789+-.eE")
# What each state of a number may be followed by, and the state after it.
_INTEGER = {".": "point", "e": "e", "E": "e"}
_NUMBER: dict[str, dict[str, str]] = {
    "-": {"0": "zero", **dict.fromkeys("123456789", "integer")},
    "zero": _INTEGER,
    "integer": {**dict.fromkeys("0123456789", "integer"), **_INTEGER},
    "point": dict.fromkeys("0123456789", "fraction"),
    "fraction": {**dict.fromkeys("0123456789", "fraction"), "e": "e", "E": "e"},
    "e": {**dict.fromkeys("0123456789", "exponent"), "+": "sign", "-": "sign"},
    "sign": dict.fromkeys("0123456789", "exponent"),
    "exponent": dict.fromkeys("0123456789", "exponent"),
}
_WHOLE_NUMBER = frozenset(("zero", "integer", "fraction", "exponent"))
# Characters of one number in streamed tool arguments. Python and this package's own JSON decoder refuse an
# integer of more digits, so that a client could not read it; the arguments are then wrapped as text.
MAX_NUMBER_CHARS: Final = 4300
_LITERALS = {"t": "true", "f": "false", "n": "null"}

# What may follow. Inside a string, an escape or a number the place is STRING, ESCAPE, NUMBER, LITERAL.
_ROOT, _FIRST_KEY, _KEY, _COLON, _VALUE, _FIRST_VALUE, _LATER_VALUE = range(7)
_NEXT, _STRING, _ESCAPE, _NUMERAL, _LITERAL, _DONE = range(7, 13)
_AFTER_COMMA = (_KEY, _LATER_VALUE)
_WORDS = (_ESCAPE, _NUMERAL, _LITERAL)


class ArgumentStream(msgspec.Struct, eq=False):
    """Feed it the model's text; what it returns may be passed on. `finish` returns the rest.

    The last brace is held back until then: what follows may show that it was not the end. So is a comma at
    the end of the text, until more arrives.
    """

    opened: bool = False  # whether the opening brace was passed on
    form: Form = ""  # how the text was changed
    _raw: list[str] = []
    _place: int = _ROOT
    _stack: list[str] = []
    _is_key: bool = False
    _key_count: int = 0  # keys seen at the root
    _escape: str = ""  # of the current escape sequence
    _word: str = ""  # the current literal, or the state of the current number
    _number_size: int = 0
    _broken: bool = False
    _comma: list[str] = []  # a comma that is held back, and the blanks after it

    @property
    def raw(self) -> str:
        return "".join(self._raw)

    @property
    def is_bent(self) -> bool:
        """Whether the text so far is not the beginning of valid JSON, or is more than one document."""
        return self._broken or self.form != ""

    @property
    def waits(self) -> bool:
        """Whether the last text may have to be taken back."""
        empty = self._place == _DONE and not self._key_count
        return bool(self._comma) or empty or self._broken or self.form != ""

    def feed(self, text: str) -> str:
        self._raw.append(text)
        if self._place == _ROOT and text[:1] == "{" and text[-1] == "}" and len(self._raw) == 1:
            try:
                whole = _decode(text)
            except (ValueError, RecursionError):
                pass  # read character by character
            else:
                self._place, self._key_count, self.opened = _DONE, len(whole), True
                return text[:-1]
        if self._place == _DONE and text.strip(_SPACE):
            self._broken = True  # something follows the last brace
        if self._broken or self._place == _DONE:
            return ""
        passed: list[str] = []
        start = at = 0  # text[start:at] is checked and neither passed on nor held
        size = len(text)
        while at < size:
            if self._place == _STRING:
                match = _IN_STRING.match(text, at)
                assert match is not None
                at = match.end()
                if at == size:
                    break
                if text[at] < " ":
                    passed.append(text[start:at])
                    start, at = at, _UNTIL_QUOTE.match(text, at).end()  # type: ignore[union-attr]  # it always matches
                    passed.append(text[start:at].translate(ESCAPED))
                    start, self.form = at, "repaired"
                    continue
            before = self._place
            if not self._take(text[at]):
                if not self._repair(text[start:at], text[at], passed):
                    self._broken = True
                    break
                self.form = "repaired"
                start = at + 1
            elif self._place in _AFTER_COMMA:
                if before not in _AFTER_COMMA:
                    passed.append(text[start:at])
                    start = at
            elif self._comma:
                passed += self._comma
                self._comma.clear()
            if self._place == _DONE:
                self._broken = not _BLANKS.fullmatch(text, at + 1)
                break
            at += 1
        if start < at:
            (self._comma if self._place in _AFTER_COMMA else passed).append(text[start:at])
        made = "".join(passed)
        if not self.opened:
            made = made.lstrip(_SPACE)
            self.opened = bool(made)
        return made

    def _repair(self, checked: str, char: str, passed: list[str]) -> bool:
        """Pass on the checked text and what was meant by `char`, which is not valid after it; False if that
        is not clear. A closing brace of the root is held back."""
        after_comma = self._place in _AFTER_COMMA
        if char < " " and self._place not in _WORDS:
            (self._comma if after_comma else passed).append(checked)
        elif after_comma and char == ("}" if self._stack[-1] == "{" else "]"):
            self._comma.clear()
            self._pop()
            if self._place != _DONE:
                passed.append(char)
        else:
            return False
        return True

    def finish(self) -> str:
        """The rest of the output: the held brace, or the text that completes a broken document."""
        if self._place == _DONE and not self._broken:
            return "}"
        raw = self.raw
        if raw.strip() in ("", "null"):
            return ""
        if self._place == _DONE and (meant := repaired_object(raw)) is not None:
            self.form = "repaired"
            return "}" if self._key_count else encode_text(meant)[1:]
        if self._comma:
            self._place = _NEXT  # it was not passed on
        self.form = "wrapped"
        wrapped, form = read_arguments(raw)
        problem = wrapped[PARSE_ERROR] if form == "wrapped" else "invalid tool arguments JSON"
        members = encode_text({PARSE_ERROR: problem, RAW: raw})
        if not self.opened:
            return members
        if self._place == _DONE:
            return ("," if self._key_count else "") + members[1:]
        return self._close() + members[1:]

    def _take(self, char: str) -> bool:
        """Advance by one character; False, without advancing, if it is not valid there."""
        place = self._place
        if place == _STRING:
            return self._take_in_string(char)
        if place == _ESCAPE:
            return self._take_escape(char)
        if place == _NUMERAL:
            if char in _IN_NUMBER:
                following = _NUMBER[self._word].get(char)
                self._number_size += 1
                if following is None or self._number_size > MAX_NUMBER_CHARS:
                    return False
                self._word = following
                return True
            if self._word not in _WHOLE_NUMBER:
                return False
            self._place = place = _NEXT
        elif place == _LITERAL:
            whole = _LITERALS[self._word[0]]
            if not whole.startswith(self._word + char):
                return False
            self._word += char
            if self._word == whole:
                self._place = _NEXT
            return True
        if char in _SPACE:
            return True
        if place == _ROOT:
            return char == "{" and self._push("{")
        if place in (_FIRST_KEY, _KEY):
            if char == '"':
                self._place, self._is_key = _STRING, True
                self._key_count += len(self._stack) == 1
                return True
            return char == "}" and place == _FIRST_KEY and self._pop()
        if place == _COLON:
            self._place = _VALUE if char == ":" else _COLON
            return char == ":"
        if place == _NEXT:
            return self._take_next(char)
        return self._take_value(char)

    def _take_in_string(self, char: str) -> bool:
        if char == '"':
            self._place = _COLON if self._is_key else _NEXT
            return True
        if char == "\\":
            self._place, self._escape = _ESCAPE, ""
            return True
        return False  # a control character

    def _take_escape(self, char: str) -> bool:
        if not self._escape:
            if char == "u":
                self._escape = "u"
                return True
            if char not in '"\\/bfnrt':
                return False
            self._place = _STRING
            return True
        if char not in "0123456789abcdefABCDEF":
            return False
        self._escape += char
        if len(self._escape) == 5:
            self._place = _STRING
        return True

    def _take_next(self, char: str) -> bool:
        inside = self._stack[-1]
        if char == ",":
            self._place = _KEY if inside == "{" else _LATER_VALUE
            return True
        return char == ("}" if inside == "{" else "]") and self._pop()

    def _take_value(self, char: str) -> bool:
        if char == '"':
            self._place, self._is_key = _STRING, False
        elif char in "{[":
            return self._push(char)
        elif char == "]" and self._place == _FIRST_VALUE:
            return self._pop()
        elif char in _LITERALS:
            self._place, self._word = _LITERAL, char
        elif char == "-" or (char.isascii() and char.isdigit()):
            self._place, self._number_size = _NUMERAL, 1
            self._word = {"-": "-", "0": "zero"}.get(char, "integer")
        else:
            return False
        return True

    def _push(self, bracket: str) -> bool:
        if len(self._stack) == MAX_DEPTH:
            return False
        self._stack.append(bracket)
        self._place = _FIRST_KEY if bracket == "{" else _FIRST_VALUE
        return True

    def _pop(self) -> bool:
        self._stack.pop()
        self._place = _NEXT if self._stack else _DONE
        return True

    def _close(self) -> str:
        """The text that closes everything open in the passed text, up to a place inside the root where
        members may follow. The passed text never ends in a comma, which is held back until more has
        arrived."""
        closing = []
        place = self._place
        if place == _ESCAPE:
            # `\` becomes an escaped backslash, `\u12` is filled up.
            closing.append("\\" if not self._escape else "0" * (5 - len(self._escape)))
            place = _STRING
        if place == _STRING:
            closing.append('"')
            place = _COLON if self._is_key else _NEXT
        elif place == _NUMERAL:
            closing.append("" if self._word in _WHOLE_NUMBER else "0")
        elif place == _LITERAL:
            closing.append(_LITERALS[self._word[0]][len(self._word) :])
        if place == _COLON:
            closing.append(":null")
        elif place == _VALUE:
            closing.append("null")
        for bracket in reversed(self._stack[1:]):
            closing.append("}" if bracket == "{" else "]")
        at_key = len(self._stack) == 1 and self._place == _FIRST_KEY
        return "".join(closing) + ("" if at_key else ",")


class MendedArguments:
    """Passes arguments on as they arrive, and repairs them if their meaning is clear. Only superfluous text
    is held back: a comma, an empty object, and everything from the first error on."""

    __slots__ = ("_arguments", "_held", "_sent", "form")

    def __init__(self) -> None:
        self.form: Form = ""
        self._arguments = ArgumentStream()
        self._held: list[str] = []
        self._sent = 0
        """Number of characters passed on."""

    @property
    def is_bent(self) -> bool:
        return self._arguments.is_bent

    @property
    def waits(self) -> bool:
        return self._arguments.waits

    def feed(self, piece: str) -> str:
        self._arguments.feed(piece)
        self._held.append(piece)
        return "" if self.waits else self.release()

    def release(self) -> str:
        """The held text, unchanged."""
        held = "".join(self._held)
        self._held.clear()
        self._sent += len(held)
        return held

    def finish(self) -> str:
        """The rest of the output."""
        if not self._arguments.is_bent:
            return self.release()
        raw = self._arguments.raw
        again = ArgumentStream()
        whole = again.feed(raw) + again.finish()
        sent = raw[: self._sent].lstrip()
        if sent.rstrip() == whole:
            sent = whole  # blanks after the last brace
        if again.form != "repaired" or not whole.startswith(sent):
            return self.release()  # cannot be fixed any more
        self.form = again.form
        self._held.clear()
        return whole[len(sent) :]


class MendedCalls:
    """Events of an answer, with the arguments of its calls repaired on the way."""

    __slots__ = ("_losses", "_open")

    def __init__(self, losses: list[Loss]) -> None:
        self._losses = losses
        self._open: dict[int, MendedArguments] = {}

    def events(self, events: Iterable[Event]) -> Iterable[Event]:
        came = events if type(events) is list else list(events)
        if not self._open and not any(type(event) is PartStart for event in came):
            return came
        return self._fixed(came)

    def _fixed(self, events: Iterable[Event]) -> Iterable[Event]:
        for event in events:
            if type(event) is PartStart:
                part = event.part
                if type(part) is ToolCall and part.kind == "function":
                    self._open[event.index] = arguments = MendedArguments()
                    passed = arguments.feed(part.arguments) if part.arguments else ""
                    event = PartStart(event.index, msgspec.structs.replace(part, arguments=passed))
            elif type(event) is Delta and event.index in self._open:
                if event.text:
                    event = Delta(event.index, self._open[event.index].feed(event.text))
                    if not event.text:
                        continue
            elif type(event) is PartEnd and event.index in self._open:
                arguments = self._open.pop(event.index)
                rest = arguments.release() if event.cut else arguments.finish()
                declare_arguments(arguments.form, f"$.content[{event.index}]", self._losses)
                if rest:
                    yield Delta(event.index, rest)
            yield event
