"""One JSON array that arrives, or leaves, element by element: Gemini's stream without `alt=sse`."""

import re
from typing import Literal, assert_never

from wireglot_core.wire.json import BadJson

_BOM = b"\xef\xbb\xbf"
_NOT_SPACE = re.compile(rb"[^ \t\n\r]")
_BRACKET_OR_QUOTE = re.compile(rb'["{}\[\]]')
_SCALAR_END = re.compile(rb"[,\] \t\n\r]")
_QUOTE = ord('"')
_BACKSLASH = ord("\\")

# What may come next: the array's "[", its first element or "]", an element, "," or "]", nothing more;
# or we are inside an element that is an object, array or string ("nested") or anything else ("scalar").
_Place = Literal["opening", "first", "element", "separator", "end", "nested", "scalar"]


class ArrayDecoder:
    """Decodes an array into the raw bytes of each element, delivered as soon as its last byte arrives,
    however the bytes are split.

    Elements are found by their brackets and quotes; whether one is valid JSON is left to the JSON decoder.
    """

    __slots__ = (
        "_at",
        "_buffer",
        "_depth",
        "_fault",
        "_in_string",
        "_max_element",
        "_offset",
        "_place",
        "settled",
    )

    def __init__(self, max_element: int) -> None:
        self._max_element = max_element
        self._buffer = bytearray()  # starts at the current element, if there is one
        self._offset = 0  # where in the stream the buffer starts
        self._place: _Place = "opening"
        self.settled = 0  # where in the stream the last whole element ends, or the array
        self._depth = 0
        self._in_string = False
        self._fault: BadJson | None = None

    @property
    def fault(self) -> BadJson | None:
        """The error after the elements already returned: the next call would raise it."""
        return self._fault

    @property
    def complete(self) -> bool:
        """Whether the array's closing bracket has arrived (and nothing wrong after it)."""
        return self._place == "end" and self._fault is None

    def feed(self, data: bytes) -> list[bytes]:
        """The elements that `data` completes. Elements before invalid bytes are returned; the next call
        raises."""
        if self._fault is not None:
            raise self._fault
        self._buffer += data
        elements: list[bytes] = []
        try:
            while self._step(elements):
                pass
        except BadJson as fault:
            self._fault = fault
            self._buffer.clear()
            if not elements:
                raise
        return elements

    def _step(self, elements: list[bytes]) -> bool:
        """Read one token; False if that needs more bytes."""
        match self._place:
            case "nested":
                return self._read_nested(elements)
            case "scalar":
                return self._read_scalar(elements)
            case "opening" | "first" | "element" | "separator" | "end":
                return self._read_between()
            case _ as never:
                assert_never(never)

    def _read_between(self) -> bool:
        found = _NOT_SPACE.search(self._buffer)
        if found is None:
            self._drop(len(self._buffer))
            return False
        byte = found[0]  # before the drop: a match reads its bytes from the buffer as it then is
        self._drop(found.start())
        match self._place:
            case "opening" if byte == b"[":
                self._place = "first"
            case "opening" if self._offset == 0 and byte == _BOM[:1]:
                return self._skip_bom()
            case "separator" if byte == b",":
                self._place = "element"
            case "separator" | "first" if byte == b"]":
                self._place = "end"
                self.settled = self._offset + 1
            case "first" | "element" if byte not in b",]}:":
                self._at = 0  # where in the buffer to read on
                self._place = "nested" if byte in b'{["' else "scalar"
                return True
            case _:
                raise BadJson(f"expected {_EXPECTED[self._place]}", self._offset)
        self._drop(1)
        return True

    def _skip_bom(self) -> bool:
        start = bytes(self._buffer[:3])
        if start == _BOM:
            self._drop(3)
            return True
        if _BOM.startswith(start):
            return False
        raise BadJson(f"expected {_EXPECTED['opening']}", 0)

    def _read_nested(self, elements: list[bytes]) -> bool:
        buffer = self._buffer
        at = self._at
        depth = self._depth
        while True:
            if not self._in_string:
                found = _BRACKET_OR_QUOTE.search(buffer, at)
                if found is None:
                    break
                at = found.end()
                byte = buffer[at - 1]
                if byte != _QUOTE:
                    depth += 1 if byte in b"{[" else -1
                    if depth == 0:
                        self._depth = 0
                        self._take(at, elements)
                        return True
                    continue
            # Inside a string, which ends at the next quote that no backslash escapes.
            quote = buffer.find(b'"', at)
            while quote >= 0 and buffer[quote - 1] == _BACKSLASH and _is_escaped(buffer, quote):
                quote = buffer.find(b'"', quote + 1)
            self._in_string = quote < 0
            if quote < 0:
                break
            at = quote + 1
            if depth == 0:
                self._take(at, elements)
                return True
        self._depth = depth
        return self._wait()

    def _read_scalar(self, elements: list[bytes]) -> bool:
        found = _SCALAR_END.search(self._buffer, self._at)
        if found is None:
            return self._wait()
        self._take(found.start(), elements)
        return True

    def _wait(self) -> bool:
        self._at = len(self._buffer)
        if self._at > self._max_element:
            raise BadJson(f"an element is larger than {self._max_element} bytes", self._offset)
        return False

    def _take(self, end: int, elements: list[bytes]) -> None:
        if end > self._max_element:
            raise BadJson(f"an element is larger than {self._max_element} bytes", self._offset)
        elements.append(bytes(memoryview(self._buffer)[:end]))
        self._drop(end)
        self._place = "separator"
        self.settled = self._offset

    def _drop(self, count: int) -> None:
        del self._buffer[:count]  # cheap: a bytearray only moves its start
        self._offset += count


_EXPECTED: dict[_Place, str] = {
    "opening": "'['",
    "first": "an element or ']'",
    "element": "an element",
    "separator": "',' or ']'",
    "end": "nothing after the array",
}


def _is_escaped(buffer: bytearray, quote: int) -> bool:
    at = quote
    while buffer[at - 1] == _BACKSLASH:  # ends at the latest at the quote that opened the string
        at -= 1
    return (quote - at) % 2 == 1


class ArrayEncoder:
    """Writes the elements of one array as they come."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        self._opened = False

    def element(self, data: bytes) -> bytes:
        before = b",\n" if self._opened else b"["
        self._opened = True
        return b"%b%b\n" % (before, data)

    def close(self) -> bytes:
        return b"]" if self._opened else b"[]"
