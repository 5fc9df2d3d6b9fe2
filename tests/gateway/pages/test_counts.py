"""Token counts: the four ways to ask for one, and the estimate where nobody counts."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types as gemini_types
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.tiers import rows
from wireglot.gateway.pages.counts import Counting
from wireglot.gateway.request.token_weight import TOKEN, Estimator, token_weight
from wireglot_core.dialects.anthropic import surface as anthropic_surface
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_responses import surface as responses_surface
from wireglot_core.dialects.registry import surface
from wireglot_core.dialects.surface import Counts
from wireglot_core.ir.content import (
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ClientFault, UpstreamFault
from wireglot_core.ir.request import Grammar, HostedTool, OutputFormat, Request, Sampling, Tool
from wireglot_core.testing.strategies import requests

CONTEXT = Context()
HELLO = Request("m", (Message("user", (Text("Hello"),)),))
FULL = Request(
    "m",
    (
        Message("system", (Text("Be brief."),)),
        Message("user", (Text("What is in a.txt?"),)),
        Message("assistant", (ToolCall("c1", "read", '{"path":"a.txt"}'),)),
        Message("user", (ToolResult("c1", (Text("nothing"),)),)),
    ),
    tools=(Tool("read", "Reads a file", {"type": "object", "properties": {"path": {"type": "string"}}}),),
    max_tokens=1000,
    stop=("END",),
    sampling=Sampling(temperature=0.5, top_k=3, seed=1),
    stream=True,
    user="u",
    metadata={"a": "b"},
    service_tier="flex",
    cache_key="k",
)
VERTEX = "https://x.test/v1/projects/p/locations/l/publishers/google"
COUNTED = {"anthropic": anthropic_surface.COUNTED, "openai-responses": responses_surface.COUNTED}


def _counts(dialect: str) -> Counts:
    counts = surface(dialect).counts
    assert counts is not None
    return counts


# --- what clients send


def test_anthropic_asks_without_a_limit():
    """R-DE-01"""
    request = _counts("anthropic").parse_request(
        {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": []}, CONTEXT
    )
    assert request.messages[0].content == (Text("Hi"),)


@pytest.mark.parametrize("name", ["generateContentRequest", "generate_content_request"])
def test_gemini_asks_with_contents_or_with_a_whole_request_inside(name):
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    inner = {
        "model": "models/g",
        "contents": contents,
        "systemInstruction": {"parts": [{"text": "Short."}]},
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
    }
    plain = _counts("gemini").parse_request({"contents": contents}, CONTEXT)
    whole = _counts("gemini").parse_request({name: inner}, CONTEXT)
    assert [message.role for message in plain.messages] == ["user"]
    assert [message.role for message in whole.messages] == ["system", "user"]
    assert (whole.model, len(whole.tools)) == ("g", 1)


def test_a_fault_inside_a_whole_request_is_reported_with_its_place():
    with pytest.raises(ClientFault) as fault:
        _counts("gemini").parse_request({"generateContentRequest": {"contents": 5}}, CONTEXT)
    assert fault.value.path == "$.generateContentRequest.contents"
    with pytest.raises(ClientFault) as fault:
        _counts("gemini").parse_request({"generateContentRequest": "x"}, CONTEXT)
    assert fault.value.path == "$.generateContentRequest"


def test_code_assist_asks_with_the_model_inside_its_envelope():
    """R-DE-03, C50"""
    body = {
        "request": {"model": "models/gemini-3", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    }
    request = _counts("code-assist").parse_request(body, CONTEXT)
    assert request.model == "gemini-3"
    assert request.messages[0].content[0] == Text("Hi")


@pytest.mark.parametrize("body", [{}, {"input": None}, {"input": "Hi"}])
def test_responses_may_ask_about_instructions_alone(body):
    request = _counts("openai-responses").parse_request(
        {"model": "m", "instructions": "Short.", **body}, CONTEXT
    )
    assert request.messages[0].content == (Text("Short."),)


# --- what upstreams are asked


@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses"])
def test_settings_a_counter_refuses_are_left_out_and_no_loss(dialect):
    rendered = _counts(dialect).render_request(FULL, CONTEXT, "")
    assert not set(rendered.value) - COUNTED[dialect]
    assert {"model", "tools"} <= set(rendered.value)
    features = {loss.feature for loss in rendered.losses}
    assert not {
        name for name in features if name.startswith(("sampling", "max_tokens", "stop", "user", "meta"))
    }


def test_gemini_is_asked_with_contents_alone_where_that_is_all():
    assert _counts("gemini").render_request(HELLO, CONTEXT, "").value == {
        "contents": [{"role": "user", "parts": [{"text": "Hello"}]}]
    }


def test_gemini_is_asked_with_a_whole_request_where_there_is_more():
    body = _counts("gemini").render_request(FULL, CONTEXT, "").value
    assert set(body) == {"generateContentRequest"}
    inner = body["generateContentRequest"]
    assert set(inner) == {"model", "contents", "systemInstruction", "tools"}
    assert inner["model"] == "models/m"
    assert "generateContentRequest" not in _counts("gemini").render_request(FULL, CONTEXT, VERTEX).value


def test_gemini_counts_the_output_schema_and_no_other_setting():
    request = replace(FULL, output=OutputFormat("schema", {"type": "object"}))
    inner = _counts("gemini").render_request(request, CONTEXT, "").value["generateContentRequest"]
    assert set(inner["generationConfig"]) <= {"responseMimeType", "responseJsonSchema", "responseSchema"}
    assert len(inner["generationConfig"]) == 2


def test_code_assist_counts_system_and_tools_as_text_before_the_contents():
    body = _counts("code-assist").render_request(FULL, Context(model="gemini-3"), "").value
    assert set(body) == {"request"}
    assert set(body["request"]) == {"model", "contents"}
    assert body["request"]["model"] == "models/m"
    first = body["request"]["contents"][0]
    assert "Be brief." in first["parts"][0]["text"]
    assert "Reads a file" in first["parts"][1]["text"]
    bare = _counts("code-assist").render_request(HELLO, CONTEXT, "").value
    assert bare["request"]["contents"] == [{"role": "user", "parts": [{"text": "Hello"}]}]


def test_chat_has_nobody_to_ask():
    assert surface("openai-chat").counts is None
    assert surface("code-assist").counts is not None


@given(requests(plain=True))
def test_what_is_rendered_for_a_counter_is_read_back_as_the_same_conversation(request):
    for dialect in ("anthropic", "openai-responses", "gemini"):
        body = _counts(dialect).render_request(request, CONTEXT, "").value
        again = _counts(dialect).parse_request(json.loads(json.dumps(body)), CONTEXT)
        assert _calls(again) == _calls(request)
        assert len(again.tools) == len(request.tools)


def _calls(request: Request) -> list[str]:
    return [part.name for message in request.messages for part in message.content if type(part) is ToolCall]


# --- answers


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "openai-responses", "code-assist"])
def test_an_answer_comes_back_as_it_was_given(dialect):
    assert _counts(dialect).parse_answer(_counts(dialect).render_answer(42)) == 42


@rows("body", [{}, [], None, "x", {"input_tokens": "5"}, {"input_tokens": -1}])
def test_an_answer_without_a_count_is_the_upstreams_fault(body):
    with pytest.raises(UpstreamFault):
        _counts("anthropic").parse_answer(body)


def _server(dialect: str, seen: list[Request]) -> httpx2.Client:
    def reply(request: httpx2.Request) -> httpx2.Response:
        seen.append(_counts(dialect).parse_request(json.loads(request.content), CONTEXT))
        return httpx2.Response(200, json=_counts(dialect).render_answer(42))

    return httpx2.Client(transport=httpx2.MockTransport(reply))


def test_anthropics_sdk_reads_its_count():
    seen: list[Request] = []
    client = anthropic.Anthropic(
        api_key="x", base_url="http://g.test", http_client=_server("anthropic", seen)
    )
    answer = client.messages.count_tokens(
        model="m", system="Short.", messages=[{"role": "user", "content": "Hi"}]
    )
    assert (answer.input_tokens, len(seen[0].messages)) == (42, 2)


def test_openais_sdk_reads_its_count():
    seen: list[Request] = []
    http = _server("openai-responses", seen)
    client = openai.OpenAI(api_key="x", base_url="http://g.test/v1", http_client=http)
    answer = client.responses.input_tokens.count(model="m", input="Hi", instructions="Short.")
    assert (answer.input_tokens, answer.object) == (42, "response.input_tokens")
    assert len(seen[0].messages) == 2


def test_googles_sdk_reads_its_count():
    seen: list[Request] = []
    options = gemini_types.HttpOptions(base_url="http://g.test", httpx_client=_server("gemini", seen))
    client = genai.Client(api_key="x", http_options=options)
    assert client.models.count_tokens(model="m", contents="Hi").total_tokens == 42
    assert seen[0].messages[0].content[0] == Text("Hi")


# --- estimates


def _with(*parts: Part) -> Request:
    return replace(HELLO, messages=(*HELLO.messages, Message("user", parts)))


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
ADDITIONS: list[Request] = [
    _with(Text("more")),
    _with(Text("больше")),
    _with(Media("image", "image/png", data="A" * 40_000)),
    _with(Media("document", "application/pdf", url="http://x.test/a.pdf")),
    _with(Media("document", "text/plain", text="a text")),
    _with(Media("audio", "audio/wav", data="A" * 9000)),
    _with(Media("video", "video/mp4", file_id="f")),
    _with(ToolCall("c", "read", "{}")),
    _with(ToolResult("c", (Text("x"), Media("image", url="http://x.test/a.png")))),
    _with(Reasoning("I think")),
    _with(Reasoning("", Signature("A" * 400, Origin("anthropic")), redacted=True)),
    _with(Foreign("anthropic", "search_result", {"a": "b"})),
    replace(HELLO, tools=(Tool("t", None, SCHEMA),)),
    replace(HELLO, tools=(Tool("t", kind="custom", grammar=Grammar("lark", "start: x")),)),
    replace(HELLO, tools=(HostedTool("web_search", Foreign("anthropic", "web_search", {"max_uses": 8})),)),
    replace(HELLO, output=OutputFormat("schema", SCHEMA)),
]


@rows("request_", ADDITIONS)
def test_everything_a_model_reads_is_counted(request_):
    assert token_weight(request_) > token_weight(HELLO)


def test_a_schema_and_a_description_weigh_what_they_say():
    bare = replace(HELLO, tools=(Tool("t"),))
    described = replace(HELLO, tools=(Tool("t", "word " * 100),))
    typed = replace(HELLO, tools=(Tool("t", None, {"type": "object", "description": "word " * 100}),))
    assert token_weight(described) - token_weight(bare) >= 100 * TOKEN
    assert token_weight(typed) - token_weight(bare) >= 100 * TOKEN


def test_chinese_weighs_about_a_token_a_letter_and_english_a_third():
    def tokens(text: str) -> int:
        return (token_weight(_with(Text(text))) - token_weight(_with(Text("")))) // TOKEN

    assert 250 <= tokens("a" * 1000) <= 400
    assert 900 <= tokens("字" * 1000) <= 1500
    assert 500 <= tokens("ж" * 1000) <= 900


def test_pictures_have_a_most_and_pages_have_none():
    def tokens(kind: Any, size: int) -> int:
        return (token_weight(_with(Media(kind, data="A" * size))) - token_weight(_with())) // TOKEN

    assert tokens("image", 10_000_000) == 1600
    assert tokens("image", 100) == 85
    assert tokens("document", 10_000_000) > 100_000


def test_a_thought_is_not_counted_twice():
    text = "thinking " * 50
    signed = Reasoning(text, Signature("A" * 10, Origin("anthropic")))
    assert token_weight(_with(signed)) == token_weight(_with(Reasoning(text)))


@given(requests(), requests())
def test_more_content_never_lowers_an_estimate(request, more):
    estimator = Estimator()
    grown = replace(
        request,
        messages=request.messages + more.messages,
        tools=request.tools + more.tools,
        output=request.output,
    )
    assert 1 <= estimator.estimate("p", "m", "c", request) <= estimator.estimate("p", "m", "c", grown)


@given(requests(), requests(), requests(), st.integers(1, 2_000_000))
def test_nor_does_it_after_calibration(request, more, learnt, tokens):
    estimator = Estimator()
    estimator.learn("p", "m", "c", learnt, tokens)
    grown = replace(request, messages=request.messages + more.messages, tools=request.tools + more.tools)
    assert 1 <= estimator.estimate("p", "m", "c", request) <= estimator.estimate("p", "m", "c", grown)


@given(requests(), requests(), st.integers(1, 2_000_000), st.integers(1, 2_000_000))
def test_the_same_request_is_estimated_at_what_was_last_reported(request, other, first, tokens):
    estimator = Estimator()
    estimator.learn("p", "m", "c", other, first)
    estimator.learn("p", "m", "c", request, tokens)
    assert estimator.estimate("p", "m", "c", request) == tokens


def test_growth_is_weighed_at_the_reported_rate():
    estimator = Estimator()
    base = _with(Text("word " * 1000))
    cold = estimator.estimate("p", "m", "c", base)
    estimator.learn("p", "m", "c", base, cold * 3 // 2)
    grown = _with(Text("word " * 2000))
    plain = Estimator().estimate("p", "m", "c", grown)
    assert estimator.estimate("p", "m", "c", grown) == pytest.approx(plain * 1.5, rel=0.01)


def test_a_report_on_an_unseen_prompt_does_not_set_the_price_of_new_text():
    estimator = Estimator()
    estimator.learn("p", "m", "c", HELLO, 1_000_000)
    grown = estimator.estimate("p", "m", "c", _with(Text("word " * 1000)))
    assert 1_000_000 < grown < 1_000_000 + 5000


def test_a_report_of_no_tokens_teaches_nothing():
    estimator = Estimator()
    estimator.learn("p", "m", "c", HELLO, 0)
    assert len(estimator) == 0
    assert estimator.estimate("p", "m", "c", HELLO) == -(-token_weight(HELLO) // TOKEN)


@pytest.mark.parametrize(("provider", "model", "name"), [("q", "m", "c"), ("p", "n", "c"), ("p", "m", "d")])
def test_another_provider_model_or_conversation_is_not_touched(provider, model, name):
    estimator = Estimator()
    cold = estimator.estimate(provider, model, name, HELLO)
    estimator.learn("p", "m", "c", HELLO, 5000)
    assert estimator.estimate(provider, model, name, HELLO) == cold


def test_a_conversation_keeps_its_name_while_it_grows():
    name = Estimator.conversation(FULL, caller="a")
    grown = replace(FULL, messages=(*FULL.messages, Message("assistant", (Text("Empty."),))), tools=())
    assert Estimator.conversation(grown, caller="a") == name
    assert Estimator.conversation(HELLO, caller="a") != name
    longer = replace(HELLO, messages=(Message("user", (Text("x" * 5000),)),))
    longest = replace(HELLO, messages=(Message("user", (Text("x" * 5001),)),))
    assert Estimator.conversation(longer) != Estimator.conversation(longest)


def test_callers_and_sessions_are_kept_apart():
    names = {
        Estimator.conversation(FULL, session, caller)
        for session, caller in (
            ("", ""),
            ("", "a"),
            ("", "b"),
            ("s", "a"),
            ("s", "b"),
            ("t", "a"),
            ("sa", ""),
        )
    }
    assert len(names) == 7
    assert Estimator.conversation(FULL, "s", "a") == Estimator.conversation(HELLO, "s", "a")


def test_only_so_many_conversations_are_kept_and_the_oldest_go_first():
    estimator = Estimator(conversations=2)
    cold = estimator.estimate("p", "m", "c0", HELLO)
    estimator.learn("p", "m", "c0", HELLO, 5000)
    estimator.learn("p", "m", "c1", HELLO, 5000)
    assert estimator.estimate("p", "m", "c0", HELLO) == 5000
    estimator.learn("p", "m", "c2", HELLO, 5000)
    assert len(estimator) == 2
    assert estimator.estimate("p", "m", "c1", HELLO) == cold
    assert estimator.estimate("p", "m", "c0", HELLO) == 5000


@pytest.mark.parametrize(("others", "learned"), [({"other"}, 1), (set(), 0)])
def test_an_answer_that_is_itself_the_first_to_need_an_estimate_is_learned_from(
    others: set[str], learned: int
) -> None:
    """Where anybody has needed one, and it did not fail."""
    heard = list[Any]()

    class Heard(Counting):
        def learn(self, exchange: Any) -> None:
            heard.append(exchange)

    counting = Heard(None)  # type: ignore[arg-type]  # nobody is asked
    counting.estimated_for = set(others)
    counting.learn = heard.append  # type: ignore[assignment, method-assign]  # a double in its place
    exchange: Any = SimpleNamespace(at_end=[])
    for problem in (None, RuntimeError()):
        counting.watch(exchange)
        counting.estimated_for.add("mine")  # its stream begins with an estimate
        for ended in exchange.at_end:
            ended(problem)
        exchange.at_end.clear()
        counting.estimated_for = set(others)
    assert len(heard) == learned
