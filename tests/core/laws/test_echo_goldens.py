"""Pinned: how a request is counted, where its settings stand, and what an answer to it tells again.

`WIREGLOT_UPDATE=1 pytest tests/core/laws/test_echo_goldens.py` writes the files again.
"""

import pytest

from tests.core.laws.cases import FIXTURES
from tests.core.laws.test_pair_goldens import by_field
from tests.core.laws.test_table_goldens import pinned
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.places import RequestPlaces
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.content import Text
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import unfold
from wireglot_core.testing.check_dialect import fixtures

CONTEXT = Context(model="m", now=1760000000)
HOSTS = ("https://example.com/v1", "https://example.com/v1/projects/p/publishers/google")


@pytest.mark.parametrize("name", [name for name in NAMES if dialect(name).surface.counts is not None])
def test_a_count_is_asked_for_like_this(name):
    counts = dialect(name).surface.counts
    assert counts is not None
    lines = by_field(counts.render_answer(7))
    for case in fixtures(FIXTURES, name, "requests"):
        request = counts.parse_request(case.body, CONTEXT)
        said = [counts.render_request(request, CONTEXT, host) for host in HOSTS]
        for rendered in said[:1] if said[0] == said[1] else said:
            lines += [f"# {case.id}", *by_field(rendered.value)]
            lines += [f"- {loss.path} {loss.feature} {loss.action}" for loss in rendered.losses]
    pinned(name, "counts", lines)


@pytest.mark.parametrize("name", ["openai-responses", "gemini", "code-assist", "gemini-simple"])
def test_a_setting_of_a_request_stands_there(name):
    """As a loss of it would be reported; in every other dialect's words for settings too."""
    codec = dialect(name)
    settings = sorted({key for each in NAMES if (places := dialect(each).places) for key in places.settings})
    assert codec.places is not None
    lines = []
    for case in fixtures(FIXTURES, name, "requests"):
        found = RequestPlaces(codec.places, case.body, codec.parse_request(case.body, CONTEXT))
        lines.append(f"# {case.id}")
        lines += [f"{key} {place}" for key in settings if (place := found.of(f"$.{key}")) != "$"]
    pinned(name, "settings", lines)


def test_an_answer_tells_its_request_again_like_this():
    """Whole and streamed, to a request and to none: what is repeated, and what is made up."""
    codec = dialect("openai-responses")
    answer = Response("r-1", "told", (Text("Hi"),), Stop("end"), Usage(input=1, output=2), 1760000001)
    asked: list[tuple[str, Request | None]] = [("nobody", None)]
    asked += [
        (case.id, codec.parse_request(case.body, CONTEXT))
        for case in fixtures(FIXTURES, "openai-responses", "requests")
    ]
    lines = []
    for title, request in asked:
        lines += [f"# {title}", *by_field(codec.render_response(answer, CONTEXT, request).value)]
        events = codec.stream_writer(CONTEXT, request).write(unfold(answer)).decode().splitlines()
        lines += [events[1], events[-2]]
    pinned("openai-responses", "echoes", lines)
