"""JSON as claude-code-router reads it (JSON5, https://spec.json5.org), with the line of every value.

Comments, trailing commas, single quotes, names without quotes, numbers with a sign, in hex or with a bare
point. A reader of our own: no JSON5 package tells where a value stood.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from wireglot.cli.import_.document import Node, Scalar, Unreadable, child_path

_DEPTH_MOST: Final = 64
_BLANK: Final = re.compile(r"(?:[\s\ufeff]|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_NAME: Final = re.compile(r"(?:[^\W\d]|[$_])[\w$\u200c\u200d]*")
_NUMBER: Final = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$.])"
)
_PLAIN: Final = {'"': re.compile(r'[^"\\\n\r]*'), "'": re.compile(r"[^'\\\n\r]*")}
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_HEX: Final = {"x": re.compile(r"[0-9a-fA-F]{2}"), "u": re.compile(r"[0-9a-fA-F]{4}")}
_WORDS: Final[dict[str, Scalar]] = {"true": True, "false": False, "null": None}
_LINE_END: Final = re.compile(r"\r\n|[\n\r\u2028\u2029]")


def read_json5(text: str) -> Node:
    """The document; Unreadable, with the line, where it is none."""
    return _Reader(text).document()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0
        """Up to where line ends are in `_line`."""

    def document(self) -> Node:
        self._skip()
        if self._at == len(self._text):
            raise Unreadable("is empty")
        root = self._value("", 0)
        self._skip()
        if self._at < len(self._text):
            self._fail("something after the end of the document")
        return root

    def _value(self, path: str, depth: int) -> Node:
        self._skip()
        if depth > _DEPTH_MOST:
            self._fail("tables or lists nested too deep")
        line = self._here()
        letter = self._peek()
        if letter == "{":
            return Node(self._table(path, depth), path, line)
        if letter == "[":
            return Node(self._list(path, depth), path, line)
        if letter in _PLAIN:
            return Node(self._string(), path, line)
        return Node(self._word(), path, line)

    def _table(self, path: str, depth: int) -> dict[str, Node]:
        self._at += 1
        found: dict[str, Node] = {}
        while not self._closes("}"):
            key = self._key()
            self._skip()
            if self._peek() != ":":
                self._fail("a name without a colon behind it")
            self._at += 1
            node = self._value(child_path(path, key), depth + 1)
            if key in found:
                self._fail(f"the name {key!r} twice in one table" if key.isprintable() else "a name twice")
            found[key] = node
            self._separate("}")
        return found

    def _list(self, path: str, depth: int) -> list[Node]:
        self._at += 1
        found: list[Node] = []
        while not self._closes("]"):
            found.append(self._value(f"{path}[{len(found)}]", depth + 1))
            self._separate("]")
        return found

    def _closes(self, bracket: str) -> bool:
        self._skip()
        if self._peek() != bracket:
            return False
        self._at += 1
        return True

    def _separate(self, bracket: str) -> None:
        self._skip()
        if self._peek() == ",":
            self._at += 1
        elif self._peek() != bracket:
            self._fail(f"no comma and no {bracket!r} behind a value")

    def _key(self) -> str:
        if self._peek() in _PLAIN:
            return self._string()
        name = _NAME.match(self._text, self._at)
        if name is None:
            self._fail("something that is no name")
        self._at = name.end()
        return name[0]

    def _word(self) -> Scalar:
        name = _NAME.match(self._text, self._at)
        if name is not None and name[0] in _WORDS:
            self._at = name.end()
            return _WORDS[name[0]]
        number = _NUMBER.match(self._text, self._at)
        if number is None:
            self._fail("something that is no value")
        self._at = number.end()
        return _as_number(number[0])

    def _string(self) -> str:
        quote = self._peek()
        self._at += 1
        pieces: list[str] = []
        while True:
            plain = _PLAIN[quote].match(self._text, self._at)
            assert plain is not None, "the pattern matches nothing, too"
            pieces.append(plain[0])
            self._at = plain.end()
            letter = self._peek()
            if letter == quote:
                self._at += 1
                return "".join(pieces)
            if letter != "\\":
                self._fail("a text that does not end on its line")
            self._at += 1
            pieces.append(self._escape())

    def _escape(self) -> str:
        end = _LINE_END.match(self._text, self._at)
        if end is not None:  # a text goes on on the next line
            self._at = end.end()
            return ""
        letter = self._peek()
        self._at += 1
        digits = _HEX[letter].match(self._text, self._at) if letter in _HEX else None
        if letter in _HEX and digits is None:
            self._fail("an escape without its digits")
        if digits is None:
            return _ESCAPES.get(letter, letter)
        self._at = digits.end()
        code = int(digits[0], 16)
        return "\ufffd" if 0xD800 <= code < 0xE000 and not self._is_pair(code) else self._letter(code)

    def _is_pair(self, high: int) -> bool:
        return high < 0xDC00 and re.compile(r"\\u[dD][c-fC-F]").match(self._text, self._at) is not None

    def _letter(self, code: int) -> str:
        if not 0xD800 <= code < 0xE000:
            return chr(code)
        low = int(self._text[self._at + 2 : self._at + 6], 16)
        self._at += 6
        return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00))

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        blank = _BLANK.match(self._text, self._at)
        assert blank is not None, "the pattern matches nothing, too"
        self._at = blank.end()

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _fail(self, what: str) -> NoReturn:
        if self._at >= len(self._text):
            what = "the end of the file in the middle of it"
        raise Unreadable(f"line {self._here()}: not JSON: {what}")


def _as_number(text: str) -> Scalar:
    bare = text.lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    if bare[:2] in ("0x", "0X"):
        return sign * int(bare, 16)
    if bare == "Infinity":
        return sign * float("inf")
    if bare == "NaN":
        return float("nan")
    try:
        return sign * int(bare)
    except ValueError:
        return sign * float(bare)
