"""Garbage: arbitrary bytes and documents raise a fault of ours or parse; nothing else, and no hang."""

from contextlib import suppress
from random import Random
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.laws.cases import DEEP, every_dialect, of_kind, partners
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import ClientFault, Unsupported, UpstreamFault
from wireglot_core.testing import codec_laws
from wireglot_core.testing.check_dialect import STRANGE, bent
from wireglot_core.testing.codec_laws import names_a_place
from wireglot_core.testing.laws import read_stream
from wireglot_core.wire.json import encode

CONTEXT = Context()
TIMES = 300 if DEEP else 60

json_values = st.recursive(
    st.sampled_from(STRANGE) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(
    st.sampled_from(
        [
            "messages",
            "input",
            "contents",
            "model",
            "max_tokens",
            "tools",
            "content",
            "choices",
            "output",
            "candidates",
        ]
    )
    | st.sampled_from(
        [
            "error",
            "type",
            "usage",
            "request",
            "response",
            "stop_reason",
            "system",
            "id",
            "role",
            "parts",
            "text",
        ]
    ),
    json_values,
    max_size=6,
)


def bent_versions(case):
    random = Random(crc32(case.id.encode()))
    for _ in range(TIMES):
        document = bent(case.body, random)
        if random.random() < 0.3:
            document = bent(document, random)
        if isinstance(document, dict):
            yield document


@every_dialect
@given(body=bodies)
def test_a_strange_request_is_the_clients_fault_or_parses(name, body):
    request = codec_laws.strange_request_is_the_clients_fault(dialect(name), body)
    if request is None:
        return
    for target in (name, *partners(name)):
        with suppress(Unsupported):
            dialect(target).render_request(request, CONTEXT)


@every_dialect
@given(body=bodies)
def test_a_strange_response_is_the_upstreams_fault_or_parses(name, body):
    response = codec_laws.strange_response_is_the_upstreams_fault(dialect(name), body)
    if response is None:
        return
    for target in (name, *partners(name)):
        dialect(target).render_response(response, CONTEXT)


@every_dialect
@given(body=json_values, status=st.sampled_from((0, 200, 400, 404, 429, 500, 529)))
def test_any_body_is_an_error_or_none(name, body, status):
    error = dialect(name).parse_error(body, status)
    assert (error is not None) or status < 400
    if error is not None:
        for target in (name, *partners(name)):
            dialect(target).render_error(error, CONTEXT)


@every_dialect
@given(data=st.binary(max_size=200), framed=st.booleans())
def test_arbitrary_bytes_are_no_stream_but_no_crash_either(name, data, framed):
    if framed:
        data = b"data: " + data + b"\n\n"
    read_stream(dialect(name), [data])
    translator = StreamTranslator(source=name, target="anthropic")
    assert translator.feed(data) + translator.close()


@every_dialect
@given(frames=st.lists(bodies, max_size=4))
def test_arbitrary_json_frames_are_no_stream_but_no_crash_either(name, frames):
    data = b"".join(b"data: %b\n\n" % encode(frame) for frame in frames)
    read_stream(dialect(name), [data])


@pytest.mark.sampled("case.dialect", each=3)
@rows("case", of_kind("requests"))
def test_a_bent_request_raises_a_fault_or_translates(case):
    targets = partners(case.dialect)
    for index, document in enumerate(bent_versions(case)):
        try:
            translate_request(document, source=case.dialect, target=targets[index % len(targets)])
        except (ClientFault, Unsupported) as fault:
            names_a_place(fault)


@pytest.mark.sampled("case.dialect", each=5)
@rows("case", of_kind("responses"))
def test_a_bent_response_raises_a_fault_or_translates(case):
    targets = partners(case.dialect)
    for index, document in enumerate(bent_versions(case)):
        try:
            translate_response(document, source=case.dialect, target=targets[index % len(targets)])
        except UpstreamFault as fault:
            names_a_place(fault)


@every_dialect
@rows("inside", ["parts", "content"])
def test_deep_nesting_is_no_crash(name, inside):
    deep: object = "x"
    for _ in range(300):
        # Once in each level: a value that holds itself twice over would be a document without end.
        deep = [{"type": "tool_result", inside: deep}]
    for key in ("messages", "input", "contents", "tools", "output", "candidates", "content"):
        with suppress(ClientFault, Unsupported):
            translate_request({"model": "m", "max_tokens": 1, key: deep}, source=name, target="anthropic")
        with suppress(UpstreamFault):
            translate_response({key: deep}, source=name, target="openai-chat")
