"""Joins arguments that Vertex streams piece by piece: JSON paths and values.

https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling
(streamFunctionCallArguments)
"""

from __future__ import annotations

import re
from typing import Any

from wireglot.dialects.gemini import names
from wireglot.dialects.gemini.names import listed
from wireglot.ir.content import Signature
from wireglot.ir.errors import UpstreamFault

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_MAX_INDEX = 100_000


class PartialCall:
    """A call whose arguments are still arriving."""

    def __init__(self, name: str, identifier: str, signature: Signature | None) -> None:
        self.name = name
        self.id = identifier
        self.signature = signature
        self.args: dict[str, Any] = {}
        self._growing = ""  # path of the string that continues in the next piece

    def add(self, pieces: Any) -> None:
        for item in listed(pieces):
            piece = names.PARTIAL_ARG.read(item, "$.partialArgs", UpstreamFault)
            path = piece.text_or("jsonPath")
            steps = _steps(path)
            if not steps:
                continue
            text = piece.value.get("stringValue")
            if type(text) is str:
                grown = _get(self.args, steps) if path == self._growing else None
                _set(self.args, steps, grown + text if type(grown) is str else text)
            else:
                _set(self.args, steps, _value(piece.value))
            self._growing = path if piece.value.get("willContinue") is True else ""


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
        if step[2] is not None:
            index = int(step[2])
            if index > _MAX_INDEX:
                raise UpstreamFault("an array index out of all proportion", "$.partialArgs.jsonPath")
            steps.append(index)
        else:
            name = step[1] if step[1] is not None else step[3] if step[3] is not None else step[4]
            steps.append(name if step[1] is not None else re.sub(r"\\(.)", r"\1", name))
        at = step.end()
    return steps


def _get(root: Any, steps: list[str | int]) -> Any:
    for step in steps:
        try:
            root = root[step]
        except (KeyError, IndexError, TypeError):
            return None
    return root


def _set(root: dict[str, Any], steps: list[str | int], value: Any) -> None:
    here: Any = root
    for place, step in enumerate(steps):
        last = place == len(steps) - 1
        fresh: Any = value if last else ([] if type(steps[place + 1]) is int else {})
        if type(here) is dict and type(step) is str:
            if last or type(here.get(step)) is not type(fresh):
                here[step] = fresh
            here = here[step]
        elif type(here) is list and type(step) is int:
            here.extend([None] * (step + 1 - len(here)))
            if last or type(here[step]) is not type(fresh):
                here[step] = fresh
            here = here[step]
        else:
            raise UpstreamFault("a JSON path that contradicts an earlier one", "$.partialArgs.jsonPath")
