"""Pinned: what the probe's readers say where one field of a good answer is missing or of another type.

Each field of the demo model's answers in turn, whole and streamed. A reader that no longer looks at a field
shows here. `WIREGLOT_UPDATE=1 pytest tests/probe/test_pinned_demands.py` writes the files again.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.core.laws.cases import FIXTURES
from wireglot.probe.cases.prompts import HELLO, WEATHER_FORCED
from wireglot.probe.question import ProbeQuestion, ask
from wireglot.probe.reply import Broken, ProbeFrame
from wireglot.probe.run import WIRES, DemoEndpoint
from wireglot.probe.talk import ProbeLedger, Talk

PINS: Final = FIXTURES / "probe"
UPDATE: Final = bool(os.environ.get("WIREGLOT_UPDATE"))
QUESTIONS: Final = {
    "a text": ask(HELLO),
    "a call": WEATHER_FORCED,
    "thoughts": ask(HELLO, thinking=0),
}
OTHER: Final = {"removed": None, "a number": 17, "a text": "x"}
WORDS: Final = 110

Path = tuple[str | int, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Of every member, the first of a list for all of its kind."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield (*path, name)
            yield from paths(member, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from paths(item, (*path, number))


def changed(document: Any, path: Path, how: str) -> Any | None:
    """None: it would be what it was."""
    other = copy.deepcopy(document)
    holder = other
    for step in path[:-1]:
        holder = holder[step]
    if how == "removed":
        del holder[path[-1]]
    elif type(holder[path[-1]]) is type(OTHER[how]):
        return None
    else:
        holder[path[-1]] = OTHER[how]
    return other


def shown(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def answered(dialect: str, question: ProbeQuestion) -> bytes:
    return Talk(DemoEndpoint(dialect), WIRES[dialect], "demo", ProbeLedger()).send(question).body


def of_whole(dialect: str, question: ProbeQuestion) -> Iterator[str]:
    document = json.loads(answered(dialect, question))
    for path in paths(document):
        for how in OTHER:
            if (other := changed(document, path, how)) is None:
                continue
            try:
                said = "; ".join(text for _, text in WIRES[dialect].read(other).faults)
            except Broken as broken:
                said = str(broken)
            if said:
                yield f"${shown(path)} {how}: {said[:WORDS]}"


def of_stream(dialect: str, question: ProbeQuestion) -> Iterator[str]:
    """Of frames that have the same fields the first is changed."""
    frames = WIRES[dialect].frames(answered(dialect, replace(question, stream=True)))
    seen: set[str] = set()
    for number, frame in enumerate(frames):
        document = frame.document()
        for path in paths(document) if isinstance(document, dict) else ():
            kind = document.get("type") or document.get("event_type", "chunk")
            place = f"{kind} {shown(path)}"
            if place in seen:
                continue
            seen.add(place)
            for how in OTHER:
                if (other := changed(document, path, how)) is None:
                    continue
                broken = ProbeFrame(frame.event, json.dumps(other), frame.lines, frame.spaced)
                reader = WIRES[dialect].stream_reader(question)
                reply = reader.read([*frames[:number], broken, *frames[number + 1 :]])
                if reply.faults:
                    rule, said = reply.faults[0]
                    yield f"{place} {how}: {rule}: {said[:WORDS]}"


@pytest.mark.parametrize("dialect", WIRES)
def test_a_field_that_is_missing_or_of_another_type_is_complained_of(dialect: str) -> None:
    lines: list[str] = []
    for name, question in QUESTIONS.items():
        lines += [f"# {name}", *of_whole(dialect, question), ""]
        lines += [f"# {name}, streamed", *of_stream(dialect, question), ""]
    path, text = PINS / f"demands-{dialect}.txt", "\n".join(lines)
    if UPDATE:
        PINS.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
