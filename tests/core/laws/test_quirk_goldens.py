"""Pinned: documents that are out of the ordinary, as they are read, said again and translated.

Hosts that leave things out, spellings of old, answers of which no SDK could make anything: the laws do not hold
of all of these, so they stand apart (`tests/fixtures/quirks`), and what is made of them is written down.
`WIREGLOT_UPDATE=1 pytest tests/core/laws/test_quirk_goldens.py` writes the files again.
"""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.core.laws.cases import FIXTURES
from tests.core.laws.test_pair_goldens import MODELS, UPDATE, by_field
from tests.core.laws.test_read_goldens import answer_places_of, neutral, places_of
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, dialect, dialect_name
from wireglot_core.ir.errors import WireglotError
from wireglot_core.testing.check_dialect import Case, fixtures
from wireglot_core.testing.laws import read_stream, write_stream

QUIRKS = FIXTURES / "quirks"
CONTEXT = Context(now=1700000001)


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(case, id=case.id) for name in NAMES for case in fixtures(QUIRKS, name, kind)]


def said(way: Callable[[], tuple[list[str], Any]]) -> list[str]:
    try:
        lines, losses = way()
    except WireglotError as refused:
        return [f"refused: {refused}"]
    return [*(f"- {loss.path} {loss.feature} {loss.action}: {loss.detail}" for loss in losses), *lines]


def pinned(case: Case, read: list[str], ways: dict[str, Callable[[], tuple[list[str], Any]]]) -> None:
    lines = ["# read", *read, ""]
    for name, way in ways.items():
        lines += [f"# {name}", *said(way), ""]
    path = QUIRKS / "pinned" / case.id
    path = path.with_name(f"{path.name}.txt")
    text = "\n".join(lines)
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@rows("case", of_kind("requests"))
def test_an_odd_request_becomes_this(case):
    spoken = dialect(case.dialect)
    request = spoken.parse_request(case.body, CONTEXT)

    def again() -> tuple[list[str], Any]:
        rendered = spoken.render_request(request, CONTEXT)
        return by_field(rendered.value), rendered.losses

    def translated(target: Any) -> Callable[[], tuple[list[str], Any]]:
        def way() -> tuple[list[str], Any]:
            source = dialect_name(case.dialect)
            rendered = translate_request(case.body, source=source, target=target, model=MODELS[target])
            return by_field(rendered.value), rendered.losses

        return way

    others = {name: translated(name) for name in MAIN if name != case.dialect}
    read = [*neutral(request), "", *places_of(spoken, case.body, request)]
    pinned(case, read, {"again": again, **others})


MAIN = ("anthropic", "openai-chat", "openai-responses", "gemini")


@rows("case", of_kind("responses"))
def test_an_odd_answer_becomes_this(case):
    spoken = dialect(case.dialect)
    answer = spoken.parse_response(case.body, CONTEXT)

    def again() -> tuple[list[str], Any]:
        rendered = spoken.render_response(answer, CONTEXT, None)
        return by_field(rendered.value), rendered.losses

    def translated(target: Any) -> Callable[[], tuple[list[str], Any]]:
        def way() -> tuple[list[str], Any]:
            rendered = translate_response(case.body, source=dialect_name(case.dialect), target=target)
            return by_field(rendered.value), rendered.losses

        return way

    others = {name: translated(name) for name in MAIN if name != case.dialect}
    read = [*neutral(answer), "", *answer_places_of(spoken, case.body, answer)]
    pinned(case, read, {"again": again, **others})


@rows("case", of_kind("streams"))
def test_an_odd_stream_becomes_this(case):
    spoken = dialect(case.dialect)
    events = read_stream(spoken, [case.data], CONTEXT)
    read = [json.dumps(msgspec.to_builtins(event), ensure_ascii=False) for event in events]

    def again() -> tuple[list[str], Any]:
        written = write_stream(spoken, events, CONTEXT)
        return [line for line in written.value.decode().splitlines() if line], written.losses

    def translated(target: Any) -> Callable[[], tuple[list[str], Any]]:
        def way() -> tuple[list[str], Any]:
            translator = StreamTranslator(source=dialect_name(case.dialect), target=target)
            data = translator.feed(case.data) + translator.close()
            lines = data.decode().replace("\r\n", "\n").splitlines()
            return [line for line in lines if line], translator.losses

        return way

    others = {name: translated(name) for name in MAIN if name != case.dialect}
    pinned(case, read, {"again": again, **others})
