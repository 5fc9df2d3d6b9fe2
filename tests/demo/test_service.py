"""Whatever a client asks the demo model, in whichever dialect, is answered, and readers understand it."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.tiers import rows
from wireglot.demo.service import DemoTarget, DemoTransport, serve, target_of
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Finish
from wireglot_core.testing.laws import read_stream
from wireglot_core.testing.strategies import requests
from wireglot_core.wire.json import decode, encode

DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist")


@given(requests(), st.sampled_from(DIALECTS), st.booleans())
@settings(suppress_health_check=list(HealthCheck))
def test_every_request_gets_an_answer_of_its_dialect(request: Request, name: str, stream: bool) -> None:
    speaks = dialect(name)
    try:
        body = encode(speaks.render_request(replace(request, stream=stream), Context()).value)
    except WireglotError:
        return  # the dialect cannot say it
    served = serve(DemoTarget(name, "stream" if stream else "generate", "demo"), body)
    assert served.status == 200, served.body
    assert served == serve(DemoTarget(name, "stream" if stream else "generate", "demo"), body)
    if served.streams:
        assert isinstance(read_stream(speaks, served.pieces)[-1], Finish)
    else:
        assert speaks.parse_response(decode(served.body), Context()).usage is not None


@given(
    st.sampled_from(DIALECTS),
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.integers() | st.text(),
        lambda v: (
            st.lists(v)
            | st.dictionaries(st.sampled_from(["messages", "input", "contents", "model", "request"]), v)
        ),
        max_leaves=6,
    ).map(encode),
)
def test_a_body_that_makes_no_sense_is_an_error_and_no_exception(name: str, body: bytes) -> None:
    assert serve(DemoTarget(name, "generate", "demo"), body).status in (200, 400)


@rows(
    ("path", "query", "target"),
    [
        ("/v1/messages", "beta=true", DemoTarget("anthropic", "generate")),
        ("/any/prefix/v1/messages/count_tokens", "", DemoTarget("anthropic", "count")),
        ("/chat/completions", "", DemoTarget("openai-chat", "generate")),
        ("/v1/responses/input_tokens", "", DemoTarget("openai-responses", "count")),
        ("/v1beta/models/a%2Fb:generateContent", "", DemoTarget("gemini", "generate", "a/b", False)),
        (
            "/v1/models/openai/gpt:streamGenerateContent",
            "alt=sse",
            DemoTarget("gemini", "stream", "openai/gpt"),
        ),
        (
            "/v1/projects/p/locations/l/publishers/google/models/m:countTokens",
            "",
            DemoTarget("gemini", "count", "m", False),
        ),
        ("/v1internal:streamGenerateContent", "alt=sse", DemoTarget("code-assist", "stream")),
        ("/v1/models/demo", "", DemoTarget("openai-chat", "models", "demo")),
        ("/v1/other", "", None),
    ],
)
def test_the_path_tells_the_dialect_and_the_operation(
    path: str, query: str, target: DemoTarget | None
) -> None:
    assert target_of(path, query) == target


def test_there_is_room_for_any_number_of_requests() -> None:
    assert DemoTransport().waiting == 0
