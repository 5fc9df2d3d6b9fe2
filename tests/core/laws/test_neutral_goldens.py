"""Pinned: everything the neutral form can say, as each dialect says it, with what each cannot say.

`WIREGLOT_UPDATE=1 pytest tests/core/laws/test_neutral_goldens.py` writes the files again.
"""

import json
from collections.abc import Callable, Iterable
from typing import TypeVar

from tests.core.laws import neutral
from tests.core.laws.cases import FIXTURES, every_dialect
from tests.core.laws.test_pair_goldens import UPDATE, by_field
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, check

Case = TypeVar("Case")

GOLDENS = FIXTURES / "neutral"
CONTEXT = Context(model="m", now=1700000001)


def reported(losses: Iterable[Loss]) -> list[str]:
    return [f"- {loss.path} {loss.feature} {loss.action}: {loss.detail}" for loss in losses]


def pinned(name: str, kind: str, lines: list[str]) -> None:
    path = GOLDENS / kind / f"{name}.txt"
    text = "\n".join([*lines, ""])
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def both(
    cases: Callable[[str], Iterable[tuple[str, Case]]], name: str, said: Callable[[Case], list[str]]
) -> list[str]:
    """From a dialect that is none of ours; and from the one it goes to, where that makes a difference."""
    lines: list[str] = []
    for (title, alien), (_, own) in zip(cases(neutral.ELSEWHERE), cases(name), strict=True):
        from_alien, from_own = said(alien), said(own)
        lines += [f"# {title}", *from_alien, ""]
        if from_own != from_alien:
            lines += [f"# {title}, from its own", *from_own, ""]
    return lines


@every_dialect
def test_a_request_is_said_like_this(name):
    def said(request: Request) -> list[str]:
        try:
            rendered = dialect(name).render_request(request, CONTEXT)
        except Unsupported as refused:
            return [f"refused: {refused}"]
        return [*reported(rendered.losses), *by_field(rendered.value)]

    pinned(name, "requests", both(neutral.requests, name, said))


@every_dialect
def test_an_answer_is_said_like_this(name):
    def said(answer: Response) -> list[str]:
        rendered = dialect(name).render_response(answer, CONTEXT, neutral.ASKED)
        return [*reported(rendered.losses), *by_field(rendered.value)]

    pinned(name, "answers", both(neutral.answers, name, said))


@every_dialect
def test_a_stream_is_said_like_this(name):
    def said(events: list[Event]) -> list[str]:
        writer = dialect(name).stream_writer(CONTEXT, neutral.ASKED)
        data = b"".join(writer.write([event]) for event in check(events))
        lines = data.decode().replace("\r\n", "\n").splitlines()
        return [*reported(writer.losses), *(line for line in lines if line)]

    pinned(name, "streams", both(neutral.streams, name, said))


@every_dialect
def test_an_error_is_said_like_this(name):
    lines: list[str] = []
    for error in neutral.errors():
        rendered = dialect(name).render_error(error, CONTEXT)
        said = json.dumps(rendered.value, ensure_ascii=False)
        lines += [f"# {error.kind} {error.status}", *reported(rendered.losses), said, ""]
    pinned(name, "errors", lines)
