"""The source of an import: documents parsed from YAML and JSON5, with the places of their values."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from wireglot.gateway.config.problems import key_path

Scalar: TypeAlias = "str | int | float | bool | None"
_INDEX: Final = re.compile(r"\[\d+\]")
_NUMBER: Final = re.compile(r"[+-]?(\d{1,12}\.?\d{0,15}|\.\d{1,15})([eE]-?\d{1,2})?")
_MAX_NUMBER: Final = 1e12
"""The largest number in an imported configuration. No setting is larger, and NaN is not a setting either."""


class NotCarried(Exception):
    """A setting that is not carried over. The message says why, and what to do."""


class NotKnownHere(ValueError):
    """A value that is unavailable or unusable. The message says why, without the value."""


class UnreadableSource(Exception):
    """An invalid file. The message names the place, but no value."""


class SourceNode:
    """One value, and what is inside it. Equal values are different nodes: each has its own place."""

    __slots__ = ("file", "line", "path", "value")

    def __init__(
        self, value: Scalar | dict[str, SourceNode] | list[SourceNode], path: str, line: int, file: str = ""
    ) -> None:
        """`file`: the included file that it is in, "" for the main one."""
        self.value = value
        self.path = path
        self.line = line
        self.file = file

    @property
    def name(self) -> str:
        """The path without the numbers of list items."""
        return _INDEX.sub("[]", self.path)

    @property
    def fields(self) -> Mapping[str, SourceNode]:
        """The members of a table; empty if it is not one."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[SourceNode]:
        """The items of a list; empty if it is not one."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """A text that is not empty, else ""."""
        return self.value.strip() if isinstance(self.value, str) else ""

    @property
    def number(self) -> float | None:
        """A number, also one that was written as text: YAML reads `1e-6` as a text."""
        if isinstance(self.value, bool):
            return None
        if isinstance(self.value, int | float):
            return float(self.value) if abs(self.value) < _MAX_NUMBER else None
        return float(self.text) if _NUMBER.fullmatch(self.text) else None

    @property
    def is_nothing(self) -> bool:
        return self.value is None or self.value == ""

    def get(self, *names: str) -> SourceNode | None:
        """The first of these fields that is present and not empty."""
        for name in names:
            found = self.fields.get(name)
            if found is not None and not found.is_nothing:
                return found
        return None

    def leaves(self) -> Iterator[SourceNode]:
        """All values without anything inside, including empty tables and lists."""
        inner = list(self.fields.values()) or self.items
        if not inner:
            yield self
        for node in inner:
            yield from node.leaves()


def child_path(path: str, key: str) -> str:
    return key_path(path, key)


def kind(node: SourceNode) -> str:
    """The type of the value, in words."""
    match node.value:
        case dict():
            return "a table"
        case list():
            return "a list"
        case None:
            return "nothing"
        case bool():
            return "a switch"
        case int() | float():
            return "a number"
        case _:
            return "text" if node.value else "empty text"


# Values of an imported configuration, each alias of YAML counted as what it repeats.
_MAX_NODES: Final = 200_000
_MAX_DEPTH: Final = 64
"""Nesting of an imported configuration. A file of a few lines with aliases of aliases can expand to billions
of values."""


def read_yaml(text: str, file: str = "") -> tuple[SourceNode, list[SourceNode]]:
    """The document, and its overridden values: those whose key occurs again later."""
    yaml = importlib.import_module("yaml")
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        _limit_lists(loader)
        root = loader.get_single_node()
        if root is None:
            raise UnreadableSource("is empty")
        walker = _Walker(yaml, loader, file)
        walker.limit_merges(root)
        return walker.node(root, "", 0), walker.overridden
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise UnreadableSource(f"{where}not YAML: {fault.problem or fault.context}") from None
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1
        raise UnreadableSource(f"line {line}: not YAML: a control character") from None
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date that does not exist
        raise UnreadableSource("not YAML") from None
    finally:
        if loader is not None:
            loader.dispose()


def _limit_lists(loader: Any) -> None:
    """For each token the scanner looks at every list in brackets that is open."""
    begin = loader.fetch_flow_collection_start

    def begin_within(token: Any) -> None:
        if loader.flow_level > _MAX_DEPTH:
            raise UnreadableSource(f"line {loader.line + 1}: nested too deep")
        begin(token)

    loader.fetch_flow_collection_start = begin_within


_MERGE: Final = "tag:yaml.org,2002:merge"


class _Walker:
    def __init__(self, yaml: Any, loader: Any, file: str) -> None:
        self._yaml = yaml
        self._loader = loader
        self._file = file
        self._seen = 0
        self._flattened: dict[int, int] = {}
        self.overridden: list[SourceNode] = []

    def limit_merges(self, root: Any) -> None:
        """Refuses `<<: [*a, *a]` where the tables that refer to each other become too large: each step of a
        chain of them doubles it."""
        sizes, merged = dict[int, int](), 0
        left, seen = [root], {id(root)}
        while left:
            source = left.pop()
            inner: list[Any] = []
            if isinstance(source, self._yaml.MappingNode):
                merged += self._pairs(source, sizes) - len(source.value)
                inner = [each for pair in source.value for each in pair]
            elif isinstance(source, self._yaml.SequenceNode):
                inner = source.value
            if merged > _MAX_NODES:
                raise UnreadableSource(f"line {source.start_mark.line + 1}: too many values")
            for each in inner:
                if id(each) not in seen:
                    seen.add(id(each))
                    left.append(each)

    def _pairs(self, source: Any, sizes: dict[int, int]) -> int:
        """The number of its values after merging."""
        if id(source) not in sizes:
            sizes[id(source)] = found = 0  # for a table that refers to itself
            for key, value in source.value:
                if key.tag != _MERGE:
                    found += 1
                    continue
                tables = value.value if isinstance(value, self._yaml.SequenceNode) else [value]
                for each in tables:
                    if isinstance(each, self._yaml.MappingNode):
                        found += self._pairs(each, sizes)
            sizes[id(source)] = found
        return sizes[id(source)]

    def node(self, source: Any, path: str, depth: int) -> SourceNode:
        self._seen += 1
        line = source.start_mark.line + 1
        if self._seen > _MAX_NODES or depth > _MAX_DEPTH:
            raise UnreadableSource(f"line {line}: too many values, or nested too deep")
        value: Scalar | dict[str, SourceNode] | list[SourceNode]
        if isinstance(source, self._yaml.MappingNode):
            value = self._table(source, path, depth)
        elif isinstance(source, self._yaml.SequenceNode):
            value = [
                self.node(one, f"{path}[{number}]", depth + 1) for number, one in enumerate(source.value)
            ]
        else:
            value = self._scalar(source)
        return SourceNode(value, path, line, self._file)

    def _table(self, source: Any, path: str, depth: int) -> dict[str, SourceNode]:
        merged = self._merged(source)
        found: dict[str, SourceNode] = {}
        own: set[str] = set()
        for number, (key_node, value_node) in enumerate(source.value):
            if not isinstance(key_node, self._yaml.ScalarNode):
                raise UnreadableSource(f"line {key_node.start_mark.line + 1}: a key that is no text")
            key = str(key_node.value)
            node = self.node(value_node, child_path(path, key), depth + 1)
            if key in own:
                self.overridden.append(found[key])
            if number >= merged:
                own.add(key)
            found[key] = node
        return found

    def _merged(self, source: Any) -> int:
        """Inserts what `<<: *defaults` refers to before the table's own values; returns how many there are. A
        node with an anchor is visited again: it is flat by then."""
        if id(source) not in self._flattened:
            own = sum(key.tag != _MERGE for key, _ in source.value)
            self._loader.flatten_mapping(source)
            self._flattened[id(source)] = len(source.value) - own
        return self._flattened[id(source)]

    def _scalar(self, source: Any) -> Scalar:
        if source.tag.startswith("!"):
            line = source.start_mark.line + 1
            raise UnreadableSource(
                f"line {line}: not YAML: the tag {source.tag}, which cannot be read safely"
            )
        value = self._loader.construct_object(source)
        plain = value is None or isinstance(value, str | int | float | bool)
        return value if plain else str(source.value)  # a version like 2024-10-21 is no date


_BLANK: Final = re.compile(r"(?:[\s\ufeff]|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_NAME: Final = re.compile(r"(?:[^\W\d]|[$_])[\w$\u200c\u200d]*")
_JSON5_NUMBER: Final = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$.])"
)
_PLAIN: Final = {'"': re.compile(r'[^"\\\n\r]*'), "'": re.compile(r"[^'\\\n\r]*")}
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_HEX: Final = {"x": re.compile(r"[0-9a-fA-F]{2}"), "u": re.compile(r"[0-9a-fA-F]{4}")}
_WORDS: Final[dict[str, Scalar]] = {"true": True, "false": False, "null": None}
_LINE_END: Final = re.compile(r"\r\n|[\n\r\u2028\u2029]")


def read_json5(text: str) -> SourceNode:
    """The document; raises Unreadable, with the line, if it is invalid."""
    return _Reader(text).document()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0
        """The position up to which line ends are counted in `_line`."""

    def document(self) -> SourceNode:
        self._skip()
        if self._at == len(self._text):
            raise UnreadableSource("is empty")
        root = self._value("", 0)
        self._skip()
        if self._at < len(self._text):
            self._fail("something after the end of the document")
        return root

    def _value(self, path: str, depth: int) -> SourceNode:
        self._skip()
        if depth > _MAX_DEPTH:
            self._fail("tables or lists nested too deep")
        line = self._here()
        letter = self._peek()
        if letter == "{":
            return SourceNode(self._table(path, depth), path, line)
        if letter == "[":
            return SourceNode(self._list(path, depth), path, line)
        if letter in _PLAIN:
            return SourceNode(self._string(), path, line)
        return SourceNode(self._word(), path, line)

    def _table(self, path: str, depth: int) -> dict[str, SourceNode]:
        self._at += 1
        found: dict[str, SourceNode] = {}
        while not self._closes("}"):
            key = self._key()
            self._skip()
            if self._peek() != ":":
                self._fail("a name without a colon after it")
            self._at += 1
            node = self._value(child_path(path, key), depth + 1)
            if key in found:
                self._fail(f"the name {key!r} twice in one table" if key.isprintable() else "a name twice")
            found[key] = node
            self._separate("}")
        return found

    def _list(self, path: str, depth: int) -> list[SourceNode]:
        self._at += 1
        found: list[SourceNode] = []
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
        number = _JSON5_NUMBER.match(self._text, self._at)
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
        raise UnreadableSource(f"line {self._here()}: not JSON: {what}")


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
