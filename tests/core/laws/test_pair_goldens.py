"""Pinned translations: every fixture, as every other dialect gets it.

The laws say what must hold; these files show what it looks like, and make every change of it visible in a
review. `WIREGLOT_UPDATE=1 pytest tests/core/laws/test_pair_goldens.py` writes them again.
"""

import json
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tests.core.laws.cases import FIXTURES, of_kind
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.registry import NAMES, DialectName, dialect_name, surface
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.loss import Loss
from wireglot_core.testing.check_dialect import Case, fixtures

GOLDENS = FIXTURES / "pairs"
UPDATE = bool(os.environ.get("WIREGLOT_UPDATE"))
MODELS: dict[DialectName, str] = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-4.1",
    "openai-responses": "gpt-5",
    "gemini": "gemini-2.5-pro",
    "gemini-interactions": "gemini-2.5-pro",
    "code-assist": "gemini-2.5-pro",
    "gemini-simple": "gemini-2.5-pro",
    "ollama": "qwen3",
}

Reported = tuple[list[str], Iterable[Loss]]
"""The lines of a translation, and what it lost."""


def pinned(case: Case, translated: Callable[[DialectName], Reported]) -> None:
    lines: list[str] = []
    for target in NAMES:
        # In a cloud's form the same documents have other paths and headers: see the tests of its dialect.
        # A prompt of Ollama's has the same answers as its chats, in other fields.
        if target in MODELS and target != case.dialect and surface(target).client.cloud is None:
            lines += [f"# {target}", *_section(partial(translated, target)), ""]
    path = golden(case)
    text = "\n".join(lines)
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def golden(case: Case) -> Path:
    path = GOLDENS / case.id
    return path.with_name(f"{path.name}.txt")


def _section(translated: Callable[[], Reported]) -> list[str]:
    try:
        lines, losses = translated()
    except Unsupported as refused:
        return [f"refused: {refused}"]
    return [*(f"- {loss.path} {loss.feature} {loss.action}: {loss.detail}" for loss in losses), *lines]


def by_field(body: dict[str, Any]) -> list[str]:
    """A document with a line for each field, and for each element of a list in it."""
    lines = []
    for name, value in body.items():
        if isinstance(value, list) and value:
            lines += [f"{name}[{index}] = {_json(each)}" for index, each in enumerate(value)]
        else:
            lines.append(f"{name} = {_json(value)}")
    return lines


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@rows("case", of_kind("requests"))
def test_a_request_reaches_the_upstreams_like_this(case):
    def translated(target: DialectName) -> Reported:
        rendered = translate_request(
            case.body, source=dialect_name(case.dialect), target=target, model=MODELS[target]
        )
        return by_field(rendered.value), rendered.losses

    pinned(case, translated)


@rows("case", [*of_kind("responses"), *of_kind("errors")])
def test_an_answer_reaches_the_clients_like_this(case):
    def translated(target: DialectName) -> Reported:
        status = case.status if case.status != 200 else 0
        rendered = translate_response(
            case.body, source=dialect_name(case.dialect), target=target, status=status
        )
        return by_field(rendered.value), rendered.losses

    pinned(case, translated)


@rows("case", of_kind("streams"))
def test_a_stream_reaches_the_clients_like_this(case):
    def translated(target: DialectName) -> Reported:
        translator = StreamTranslator(source=dialect_name(case.dialect), target=target)
        data = translator.feed(case.data) + translator.close()
        return data.decode().replace("\r\n", "\n").splitlines(), translator.losses

    pinned(case, translated)


def test_nothing_is_pinned_that_is_not_translated():
    kinds = ("requests", "responses", "errors", "streams")
    cases = {golden(case) for name in NAMES for kind in kinds for case in fixtures(FIXTURES, name, kind)}
    assert set(GOLDENS.rglob("*.*")) == cases
