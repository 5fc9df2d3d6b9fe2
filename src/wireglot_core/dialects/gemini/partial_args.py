"""Joins arguments that Vertex streams piece by piece: JSON paths and values.

https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling
(streamFunctionCallArguments)
"""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.names import listed
from wireglot_core.ir.content import Signature
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.wire.json import MAX_DEPTH

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
# Places of arrays that a call in pieces may leave empty, beyond one for each character of its paths: an index
# names a size, and the arrays are filled up to it.
MAX_EMPTY_PLACES: Final = 64


class PartialCall:
    """A call whose arguments are still arriving."""

    def __init__(self, name: str, identifier: str, signature: Signature | None) -> None:
        self.name = name
        self.id = identifier
        self.signature = signature
        self._args: dict[str, Any] = {}
        self._growing = ""  # path of the string that continues in the next piece
        self._texts: list[str] = []  # its pieces
        self._room = MAX_EMPTY_PLACES

    def add(self, pieces: Any) -> None:
        for item in listed(pieces):
            piece = names.PARTIAL_ARG.read(item, "$.partialArgs", UpstreamFault)
            path = piece.text_or("jsonPath")
            steps = _steps(path)
            if not steps:
                continue
            self._room += len(path)
            text = piece.value.get("stringValue")
            if path != self._growing or type(text) is not str:
                self._join()
            if not self._texts:
                self._set(steps, text if type(text) is str else _value(piece.value))
            self._growing = path
            if type(text) is str:
                self._texts.append(text)
            if piece.value.get("willContinue") is not True:
                self._join()

    def arguments(self) -> dict[str, Any]:
        self._join()
        return self._args

    def _join(self) -> None:
        """Ends the string that was growing."""
        if len(self._texts) > 1:
            self._set(_steps(self._growing), "".join(self._texts))
        self._growing = ""
        self._texts.clear()

    def _set(self, steps: list[str | int], value: Any) -> None:
        here: Any = self._args
        for place, step in enumerate(steps):
            last = place == len(steps) - 1
            fresh: Any = value if last else ([] if type(steps[place + 1]) is int else {})
            if type(here) is dict and type(step) is str:
                if last or type(here.get(step)) is not type(fresh):
                    here[step] = fresh
            elif type(here) is list and type(step) is int:
                empty = step - len(here)
                if empty > self._room:
                    raise UpstreamFault("an array index out of all proportion", "$.partialArgs.jsonPath")
                if empty >= 0:
                    self._room -= empty
                    here.extend([None] * (empty + 1))
                if last or type(here[step]) is not type(fresh):
                    here[step] = fresh
            else:
                raise UpstreamFault("a JSON path that contradicts an earlier one", "$.partialArgs.jsonPath")
            here = here[step]


def _value(piece: dict[str, Any]) -> Any:
    if "boolValue" in piece:
        return piece["boolValue"] is True
    number = piece.get("numberValue")
    if type(number) is float and number.is_integer() and abs(number) < 2**53:
        return int(number)  # every number is a double on this wire
    return number


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 1 if path.startswith("$") else 0
    if not at and path:
        path = "." + path
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise UpstreamFault(f"expected a JSON path, got {path[:40]!r}", "$.partialArgs.jsonPath")
        if len(steps) == MAX_DEPTH:
            raise UpstreamFault(f"a path of more than {MAX_DEPTH} steps", "$.partialArgs.jsonPath")
        if step[2] is not None:
            steps.append(int(step[2]))
        else:
            name = step[1] if step[1] is not None else step[3] if step[3] is not None else step[4]
            steps.append(name if step[1] is not None else re.sub(r"\\(.)", r"\1", name))
        at = step.end()
    return steps
