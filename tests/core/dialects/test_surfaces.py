"""What the dialects are over HTTP."""

from typing import Any

import pytest

from tests.core.dialects import acme
from tests.core.laws.cases import every_dialect, of_kind
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.dialects.paths import Paths
from wireglot_core.dialects.registry import NAMES, dialect, surface, surfaces
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError, ClientFault
from wireglot_core.testing import codec_laws as laws
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.splice import Outline

PATHS = Paths(surfaces())


class Read:
    """A body that somebody has looked at."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.body = encode(document)
        self.outline = Outline(self.body)

    def document(self) -> dict[str, Any]:
        value: dict[str, Any] = decode(self.body)
        return value


def nothing(name: str) -> str:
    return ""


# Paths.


@rows(
    ("method", "path", "name", "reported"),
    [
        ("POST", "/v1/messages", "anthropic", ("generate", "", None, "", ())),
        ("POST", "/anthropic/v1/messages/count_tokens", "anthropic", ("count", "", None, "", ())),
        ("POST", "/v1beta/openai/chat/completions", "openai-chat", ("generate", "", None, "", ())),
        ("POST", "/openai/v1/responses", "openai-responses", ("generate", "", None, "", ())),
        ("POST", "/v1/responses/compact", "openai-responses", ("compact", "", None, "compact", ())),
        ("GET", "/v1/responses/a%20b", "openai-responses", ("state", "", None, "responses.get", ("a%20b",))),
        ("DELETE", "/openai/v1/conversations/c/items/i", "openai-responses", ("state", "", None, "items.delete", ("c", "i"))),
        ("POST", "/v1beta/models/x:streamGenerateContent", "gemini", ("generate", "x", True, "", ())),
        ("POST", "/v1beta/a/b:generateContent", "gemini", ("generate", "a/b", False, "", ())),
        ("POST", "/v1/embeddings", "openai-chat", ("embed", "", False, "", ())),
        ("POST", "/v1beta/openai/embeddings", "openai-chat", ("embed", "", False, "", ())),
        ("POST", "/v1beta/models/x:embedContent", "gemini", ("embed", "x", False, "embed_one", ())),
        ("POST", "/v1beta/models/a/b:batchEmbedContents", "gemini", ("embed", "a/b", False, "embed", ())),
        ("POST", "/v1/projects/p/models/x:countTokens", "gemini", ("count", "x", None, "", ())),
        ("POST", "/v1internal:generateContent", "code-assist", ("generate", "", False, "generateContent", ())),
        ("POST", "/v1internal:loadCodeAssist", "code-assist", ("assist", "", None, "loadCodeAssist", ())),
        ("GET", "/v1internal/operations/x", "code-assist", ("operation", "", None, "operations/x", ())),
        ("POST", "/v1/gemini", "gemini-simple", ("generate", "", None, "", ())),
    ],
)  # fmt: skip
def test_a_path_means_one_thing_of_one_dialect(method, path, name, reported):
    found = PATHS.find(method, path)
    assert found is not None
    match = found.match
    assert found.surface.name == name
    assert (match.operation, match.model, match.stream, match.verb, match.ids) == reported


@rows(
    ("method", "path"),
    [
        ("GET", "/v1/messages"),
        ("PUT", "/v1beta/models/x:generateContent"),
        ("GET", "/v1beta/models/x:embedContent"),
        ("POST", "/v2/models/x:generateContent"),
        ("GET", "/v1internal:loadCodeAssist"),
        ("PUT", "/v1internal:generateContent"),
        ("GET", "/v1/responses//input_items"),
        ("POST", "/nowhere"),
    ],
)
def test_what_is_no_path_is_none(method, path):
    assert PATHS.find(method, path) is None


def test_lists_are_found_apart_because_dialects_share_them():
    whole = PATHS.listed("/v1/models")
    assert whole is not None
    assert whole.operation == "models"
    one = PATHS.listed("/openai/v1/models/a/b")
    assert one is not None
    assert (one.operation, one.model) == ("model", "a/b")
    assert PATHS.listed("/v1/other") is None


def test_an_operation_of_a_model_is_no_model() -> None:
    """A client that polls one would be given a model for ever, and never its end."""
    assert PATHS.listed("/v1beta/models/veo-3.1/operations/vz341u0pmdlc") is None


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/v1/messages", ("POST",)),
        ("/v1/conversations/c", ("GET", "POST", "DELETE")),
        ("/v1beta/models/x:generateContent", ("POST",)),
        ("/nowhere", ()),
    ],
)
def test_the_methods_of_a_path_are_known(path, methods):
    assert PATHS.methods(path) == methods


@rows(
    ("path", "headers", "key", "name"),
    [
        ("/v1/messages", (), "", "anthropic"),
        ("/v1/models", ("anthropic-version",), "", "anthropic"),
        ("/v1beta/models", ("anthropic-version",), "", "anthropic"),
        ("/anthropic/nowhere", (), "", "anthropic"),
        ("/v1beta/openai/nowhere", (), "", "openai-chat"),
        ("/v1beta/nowhere", (), "", "gemini"),
        ("/v1/responses/x/y", ("x-goog-api-key",), "", "openai-responses"),
        ("/openai/v1/conversations", (), "", "openai-responses"),
        ("/v1/models", ("x-goog-api-client",), "", "gemini"),
        ("/v1/models", (), "k", "gemini"),
        ("/v1internal:x", (), "", "code-assist"),
        ("/v1/models", ("authorization",), "", None),
        ("/", (), "", None),
    ],
)
def test_a_caller_is_given_errors_that_it_can_read(path, headers, key, name):
    found = PATHS.speaker(path, headers, lambda asked: key if asked == "key" else "")
    assert (found.name if found is not None else None) == name


def test_a_dialect_from_outside_has_its_own_paths_and_callers():
    paths = Paths([*surfaces(), acme.SURFACE])
    found = paths.find("POST", "/acme/talk")
    assert found is not None
    assert found.surface is acme.SURFACE
    assert paths.speaker("/acme/nowhere", (), nothing) is acme.SURFACE
    assert paths.speaker("/", ("x-acme-version",), nothing) is acme.SURFACE
    assert paths.speaker("/v1/messages", ("x-acme-version",), nothing) is surface("anthropic")


def test_probes_of_a_dialects_own_clients_are_answered():
    probe = PATHS.probe("HEAD", "/api/hello")
    assert probe is not None
    assert probe.body == {"message": "hello"}
    assert PATHS.probe("POST", "/api/hello") is None


# Streams that pass through.


@rows("case", of_kind("streams"))
def test_a_tap_hears_what_the_reader_reads(case):
    laws.tap_hears_what_the_reader_reads(dialect(case.dialect), case.data)
    laws.cut_is_heard(dialect(case.dialect), case.data)


@rows("case", of_kind("streams"))
def test_a_tap_hears_the_same_however_the_bytes_arrive(case):
    def heard(size: int) -> tuple[object, ...]:
        tap = surface(case.dialect).tap(1 << 20)
        for at in range(0, len(case.data), size):
            tap.feed(case.data[at : at + size])
        tap.close()
        return tap.usage, tap.stop, tap.complete, tap.ended, tap.error, tap.next_event, tap.settled

    assert heard(1) == heard(7) == heard(len(case.data))


@rows("case", of_kind("streams"))
def test_a_ping_does_not_show(case):
    laws.ping_does_not_show(dialect(case.dialect), case.data)


@rows("case", of_kind("responses"))
def test_a_glance_sees_what_the_parser_reads(case):
    laws.glance_sees_what_the_parser_reads(dialect(case.dialect), case.body)


@every_dialect
def test_a_glance_at_what_is_no_answer_sees_nothing_or_says_so(name):
    glance = surface(name).glance
    for body in (b"{}", b'{"usage": 1, "choices": 2, "candidates": 3, "response": 4}'):
        assert (glance(body).usage, glance(body).stop) == (None, "")
    for body in (b"[1]", b"{", b""):
        with pytest.raises(BadJson):
            glance(body)


def test_frames_that_only_our_question_brought_are_hidden():
    upstream = surface("openai-chat").upstream
    assert upstream is not None
    usage = upstream.stream_usage
    assert usage is not None
    assert not usage.is_asked({"include_usage": False})
    assert usage.is_asked(usage.asking({"x": 1}))
    assert usage.asking({"x": 1}) == {"x": 1, "include_usage": True}
    said = b'data: {"choices":[{"delta":{"content":"\\"choices\\":[]"}}]}\n\n'
    cost = b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'
    for gap in (b"\n\n", b"\r\n\r\n"):
        data = (said + cost + b"data: [DONE]\n\n").replace(b"\n\n", gap)
        assert usage.hide(data) == (said + b"data: [DONE]\n\n").replace(b"\n\n", gap)


def test_framing_is_reported_by_the_query_where_there_are_two():
    for name in NAMES:
        two = name in ("gemini", "code-assist")
        assert surface(name).framing("") == ("json-array" if two else "sse")
        assert surface(name).framing("key=x&alt=sse") == "sse"
        assert set(surface(name).client.pings) == ({"sse", "json-array"} if two else {"sse"})


# Errors.


@rows(
    ("name", "error", "status"),
    [
        ("anthropic", ApiError("overloaded", "x"), 529),
        ("openai-chat", ApiError("overloaded", "x", status=529), 503),
        ("gemini", ApiError("overloaded", "x", status=529), 503),
        ("anthropic", ApiError("server", "x", status=502, code="upstream_auth_failed"), 500),
        ("gemini", ApiError("server", "x", status=502, code="upstream_auth_failed"), 500),
        ("openai-responses", ApiError("server", "x", status=502, code="upstream_auth_failed"), 502),
        ("gemini-simple", ApiError("auth", "x", status=401), 400),
        ("code-assist", ApiError("billing", "x"), 429),
        ("gemini", ApiError("invalid_request", "x", status=422), 400),
        ("gemini", ApiError("invalid_request", "x", status=405), 405),
        ("openai-chat", ApiError("invalid_request", "x", status=422), 422),
    ],
)
def test_an_error_is_reported_under_the_status_that_clients_expect(name, error, status):
    assert surface(name).status(error) == status


# Bodies.


@rows(
    ("name", "body", "model", "stream"),
    [
        ("anthropic", {"model": "m", "stream": True}, "m", True),
        ("openai-chat", {}, "", None),
        ("gemini-simple", {"model": "m", "stream": False}, "m", False),
        ("code-assist", {"model": "models/m"}, "m", None),
        ("code-assist", {"request": {"model": "models/m"}}, "m", None),
        ("code-assist", {"request": 1}, "", None),
    ],
)
def test_a_glance_at_a_body_finds_its_model_and_stream_flag(name, body, model, stream):
    glance = surface(name).client.glance
    assert glance is not None
    seen = glance(Read(body))
    assert (seen.model, seen.stream) == (model, stream)


@pytest.mark.parametrize(
    ("body", "reported"),
    [({"model": 1}, "model: expected a string"), ({"stream": "yes"}, "stream: expected true or false")],
)
def test_a_field_of_another_type_is_reported(body, reported):
    glance = surface("openai-chat").client.glance
    assert glance is not None
    with pytest.raises(ClientFault) as caught:
        glance(Read(body))
    assert caught.value.message == reported


def test_gemini_and_the_clouds_name_the_model_in_the_path():
    assert [name for name in NAMES if surface(name).model_in_path] == [
        "gemini",
        "anthropic-vertex",
        "anthropic-bedrock",
    ]
    assert [name for name in NAMES if surface(name).client.glance is None] == ["gemini"]


@rows(
    ("name", "body", "output", "answers"),
    [
        ("anthropic", {"max_tokens": 5}, 5, 1),
        ("openai-chat", {"max_tokens": 5, "max_completion_tokens": 7, "n": 3}, 7, 3),
        ("openai-chat", {"max_tokens": "5", "n": -1}, 0, 0),
        ("openai-chat", {"max_tokens": 5}, 5, 0),
        ("openai-responses", {"max_output_tokens": 5}, 5, 1),
        ("gemini", {"generationConfig": {"maxOutputTokens": 5, "candidateCount": 2}}, 5, 2),
        ("gemini", {"generation_config": {"max_output_tokens": 5}}, 5, 0),
        ("code-assist", {"request": {"generationConfig": {"maxOutputTokens": 5}}}, 5, 0),
        ("code-assist", {}, 0, 0),
        ("gemini-simple", {"maxOutputTokens": 5}, 5, 1),
    ],
)
def test_what_a_request_lets_a_model_say_is_found(name, body, output, answers):
    client = surface(name).client
    assert client.asked_output(Read(body)) == output
    assert client.asked_answers(Read(body)) == answers


# Counts.


@rows("case", of_kind("requests"))
def test_a_count_is_asked_so_that_its_own_side_understands_it(case):
    request = dialect(case.dialect).parse_request(case.body, Context())
    for each in surfaces():
        if each.counts is not None:
            asked = each.counts.render_request(request, Context(model="m"), "https://example.com").value
            assert not asked.keys() & {"max_tokens", "stream", "temperature", "max_output_tokens"}
            each.counts.parse_request(asked, Context())
            assert each.counts.parse_answer(each.counts.render_answer(7)) == 7


def test_vertex_takes_system_and_tools_beside_the_contents():
    counts = surface("gemini").counts
    assert counts is not None
    body = {
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
        "systemInstruction": {"parts": [{"text": "y"}]},
    }
    request = counts.parse_request(body, Context())
    nested = counts.render_request(request, Context(model="m"), "https://example.com/v1beta").value
    assert nested["generateContentRequest"]["model"] == "models/m"
    beside = counts.render_request(request, Context(), "https://x/v1/projects/p/publishers/google").value
    assert set(beside) == {"contents", "systemInstruction"}


def test_dialects_without_a_counter_have_none():
    without = [name for name in NAMES if surface(name).counts is None]
    assert without == ["openai-chat", "gemini-interactions", "gemini-simple", "ollama", "ollama-generate"]


# Models.

LISTING = [ListedModel(f"m{number}", "p", context=10, thinking="effort") for number in range(60)]


def test_lists_come_in_pages_that_hold_every_model_once():
    seen: list[str] = []
    query: dict[str, list[str]] = {}
    while True:
        page = surface("anthropic").models.render_list(LISTING, query)
        seen += (model["id"] for model in page["data"])
        if not page["has_more"]:
            break
        query = {"after_id": [page["last_id"]]}
    assert seen == [model.id for model in LISTING]
    seen = []
    query = {"pageSize": ["7"]}
    while True:
        page = surface("gemini").models.render_list(LISTING, query)
        seen += (model["baseModelId"] for model in page["models"])
        if "nextPageToken" not in page:
            break
        query = {"pageSize": ["7"], "pageToken": [page["nextPageToken"]]}
    assert seen == [model.id for model in LISTING]
    whole = surface("openai-chat").models.render_list(LISTING, {})
    assert [model["id"] for model in whole["data"]] == [model.id for model in LISTING]


@pytest.mark.parametrize(
    "query", [{"limit": ["0"]}, {"limit": ["x"]}, {"after_id": ["no"]}, {"before_id": ["no"]}]
)
def test_a_page_that_is_none_is_the_clients_fault(query):
    with pytest.raises(ClientFault):
        surface("anthropic").models.render_list(LISTING, query)


# Usage that cannot be.


@rows(
    ("name", "fields", "found"),
    [
        ("anthropic", {"input_tokens": 1, "output_tokens": 2}, ()),
        ("anthropic", {"input_tokens": -1}, ("negative_count",)),
        (
            "openai-chat",
            {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 4},
            ("total_is_not_the_sum",),
        ),
        (
            "openai-responses",
            {"input_tokens": 1.5, "output_tokens": 10**13},
            ("count_absurd", "count_not_whole"),
        ),
        ("gemini", {"prompt_token_count": 1, "cached_content_token_count": 2}, ("cached_exceeds_input",)),
        ("code-assist", {"promptTokenCount": 1, "totalTokenCount": 1}, ()),
    ],
)
def test_numbers_that_do_not_add_up_are_reported(name, fields, found):
    check = surface(name).check_usage
    assert check is not None
    assert check(Extra("any", form=fields)) == found


# What only some have.


def test_capabilities_are_where_their_endpoints_are():
    assert [each.name for each in surfaces() if each.assist is not None] == ["code-assist", "ollama"]
    storing = ["openai-responses", "gemini-interactions"]
    assert [each.name for each in surfaces() if each.stored is not None] == storing
    operations = {
        each.name: {
            route.operation
            for route in each.client.routes
            if route.operation in ("state", "compact") and route.verb != "budgets"
        }
        for each in surfaces()
    }
    assert [name for name, found in operations.items() if found] == storing
    budgets = [each for each in surfaces() if any(route.verb == "budgets" for route in each.client.routes)]
    assert [each.name for each in budgets] == ["anthropic"]
    assert [each for each in surfaces() if each.client.budgets is not None] == budgets


@rows(
    ("body", "store", "previous", "background", "refers"),
    [
        ({}, None, "", False, False),
        ({"store": False, "background": True}, False, "", True, False),
        ({"previous_response_id": "r"}, None, "r", False, False),
        ({"input": [{"type": "item_reference", "id": "i"}]}, None, "", False, True),
        ({"input": [{"id": "i"}]}, None, "", False, True),
        ({"input": [{"role": "user", "content": "item_reference"}]}, None, "", False, False),
    ],
)
def test_what_a_request_says_of_state(body, store, previous, background, refers):
    stored = surface("openai-responses").stored
    assert stored is not None
    said = stored.options(Read(body), "")
    assert (said.store, said.previous, said.background, said.refers) == (store, previous, background, refers)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"store": 1}, "invalid_type"),
        ({"previous_response_id": 1}, "invalid_type"),
        ({"previous_response_id": "r", "conversation": "c"}, "mutually_exclusive_parameters"),
    ],
)
def test_what_a_request_may_not_say_of_state(body, code):
    stored = surface("openai-responses").stored
    assert stored is not None
    with pytest.raises(ClientFault) as caught:
        stored.options(Read(body), "")
    assert getattr(caught.value, "code", "") == code


def test_code_assist_is_asked_beside_its_requests():
    assist = surface("code-assist").assist
    assert assist is not None
    assert assist.answer("nothing", {}, ()) is None
    quota = assist.answer("retrieveUserQuota", {}, [ListedModel("gemini-x", "p"), ListedModel("y", "p")])
    assert quota == {"buckets": [{"modelId": "gemini-x", "tokenType": "REQUESTS", "remainingFraction": 1}]}
    assert assist.operation("operations/onboarding") is not None
    assert assist.operation("other") is None


@every_dialect
def test_families_are_dialects_and_share_their_own(name):
    family = surface(name).family
    assert surface(family).family == family
