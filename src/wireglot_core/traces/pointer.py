"""JSON pointers (RFC 6901), and the paths of losses (`$.messages[2].content[0]`) as pointers."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot_core.wire.json import BadJson, decode

Steps = tuple[str | int, ...]

_STEP: Final = re.compile(r'\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')
_NUMBER: Final = re.compile(r"0|[1-9]\d*")


def steps_of(path: str) -> Steps | None:
    """The member names and indexes of a path; None if it cannot be parsed."""
    if not path.startswith("$"):
        return None
    at, steps = 1, []
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        at = found.end()
        name, number, quoted = found.groups()
        if name is not None:
            steps.append(name)
        elif number is not None:
            steps.append(int(number))
        else:
            try:
                steps.append(str(decode(quoted)))
            except BadJson:
                return None
    return tuple(steps)


def pointer(steps: Steps) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def pointer_of(path: str) -> str:
    """A path as a pointer; "" if it is the whole document or cannot be parsed."""
    return pointer(steps_of(path) or ())


def found(document: Any, at: str) -> bool:
    """Whether a pointer resolves."""
    try:
        resolve(document, at)
    except LookupError:
        return False
    return True


def resolve(document: Any, at: str) -> Any:
    """The value at a pointer. Raises LookupError."""
    value = document
    for step in at.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if type(value) is list and _NUMBER.fullmatch(name) and int(name) < len(value):
            value = value[int(name)]
        elif type(value) is dict and name in value:
            value = value[name]
        else:
            raise LookupError(at)
    return value
