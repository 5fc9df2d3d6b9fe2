# ruff: noqa: B023, PT017
# mypy: ignore-errors
"""The surfaces say what the gateway's own tables say. Goes when the gateway asks the surfaces alone."""

import random
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest

from tests.laws.cases import FIXTURES, all_hold, of_kind, recorded
from wireglot.dialects.base import Body, ClientSide, Context, ListedModel, Surface
from wireglot.dialects.paths import Paths
from wireglot.dialects.registry import COMMON, NAMES, surface, surfaces
from wireglot.gateway.entry import guard, probes, routes
from wireglot.gateway.errors import status_of
from wireglot.gateway.observe import telemetry
from wireglot.gateway.pages import code_assist, models
from wireglot.gateway.relay import attempt, recovery, relay
from wireglot.gateway.request import client_stream, estimator, job
from wireglot.gateway.state.conversations import items
from wireglot.gateway.state.ledger.usage_checks import usage_checks
from wireglot.gateway.state.quotas import amounts
from wireglot.gateway.streams import feeder, tap
from wireglot.http.application import Head
from wireglot.ir.content import Extra
from wireglot.ir.errors import ApiError, ClientFault
from wireglot.ir.outcome import Usage
from wireglot.testing.fixtures import Case, fixtures
from wireglot.wire.json import BadJson, decode, encode
from wireglot.wire.splice import Outline

PATHS = Paths(surfaces())
every_dialect = pytest.mark.parametrize("name", NAMES)


def head(method: str, path: str, headers: dict[str, str] | None = None, query: str = "") -> Head:
    return SimpleNamespace(method=method, path=path, headers=headers or {}, query=query)  # type: ignore[return-value]


class Read:
    """A body, as the gateway's job holds it."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.outline = Outline(body)

    def document(self) -> dict[str, Any]:
        return decode(self.body)


# Paths.

SEEN = (
    "/v1/messages", "/anthropic/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches",
    "/v1/chat/completions", "/openai/v1/chat/completions", "/v1beta/openai/chat/completions",
    "/v1/responses", "/openai/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact",
    "/v1/responses/resp_1", "/openai/v1/responses/resp_1", "/v1/responses/resp_1/cancel",
    "/v1/responses/resp_1/input_items", "/v1/conversations", "/v1/conversations/c/items/i%201",
    "/v1/conversations/c/items", "/v1/conversations/c", "/v1/conversations//items",
    "/v1/gemini", "/v1beta/models/x:generateContent", "/v1beta/models/x:streamGenerateContent",
    "/v1/models/a%2Fb:countTokens", "/v1beta/a/b:generateContent", "/v1beta/models/:generateContent",
    "/v1beta1/projects/p/locations/l/publishers/google/models/x:generateContent",
    "/v1beta/models/x:embedContent", "/v2/models/x:generateContent",
    "/v1internal:generateContent", "/v1internal:loadCodeAssist", "/v1internal:nothing",
    "/v1internal:getCodeAssistGlobalUserSetting", "/v1internal/operations/onboarding", "/v1internalx",
    "/v1/models", "/v1beta/models", "/v1/models/x", "/v1/models/models/x", "/openai/v1/models/a%2Fb",
    "/v1beta/openai/models", "/anthropic/v1/models", "/v1alpha/models", "/v1beta1/models/y",
    "/api/hello", "/api/event_logging/batch", "/api/event_logging/v2/batch", "/nowhere", "/v1/nowhere",
    "/v1beta/nowhere", "/anthropic/nowhere",
)  # fmt: skip
HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"anthropic-version": "2023-06-01"},
    {"x-goog-api-key": "k"},
    {"x-goog-api-client": "genai"},
    {"authorization": "Bearer k"},
)
METHODS = ("GET", "POST", "DELETE", "PATCH", "PUT")


def asked_by_surfaces(request: Head) -> tuple[Any, ...] | None:
    def spoken() -> str:
        found = PATHS.speaker(
            request.path, request.headers, lambda name: routes.query_value(request.query, name)
        )
        return found.name if found is not None else COMMON

    found = PATHS.find(request.method, request.path)
    if found is not None:
        match = found.match
        ids = tuple(map(unquote, match.ids))
        return (
            found.surface.name,
            match.operation,
            unquote(match.model),
            match.stream,
            match.verb,
            ids,
        )
    listed = PATHS.listed(request.path) if request.method == "GET" else None
    if listed is not None:
        return spoken(), listed.operation, unquote(listed.model), None, "", ()
    if PATHS.probe(request.method, request.path) is not None:
        return "openai-chat", "stub", "", None, "", ()
    return None


@pytest.mark.parametrize("path", SEEN)
def test_a_path_means_the_same(path):
    for method in METHODS:
        for headers in HEADERS:
            for query in ("", "key=k", "key=", "alt=sse&key=k"):
                request = head(method, path, headers, query)
                try:
                    asked = routes.match(request)
                    known: Any = (
                        asked.dialect, asked.operation, asked.model, asked.stream, asked.verb, asked.ids
                    )  # fmt: skip
                except routes.NoRoute as nowhere:
                    known = None
                    allowed = PATHS.methods(path) or (("GET",) if _is_listed(path) else ())
                    assert set(allowed) == set(nowhere.allowed), (method, path)
                except Exception:
                    continue  # refused for the form of its path, whoever's it is
                assert asked_by_surfaces(request) == known, (method, path, headers, query)


def _is_listed(path: str) -> bool:
    return PATHS.listed(path) is not None and ":" not in path


@pytest.mark.parametrize("path", SEEN)
def test_the_same_dialect_is_spoken_to_whom_no_path_tells(path):
    for headers in HEADERS:
        if "anthropic-version" in headers and path.startswith(("/v1internal", "/v1/responses/", "/v1/conv")):
            continue  # nobody's client
        for query in ("", "key=k", "key="):
            request = head("GET", path, headers, query)
            found = PATHS.speaker(path, headers, lambda name, query=query: routes.query_value(query, name))
            assert (found.name if found else COMMON) == routes.dialect_of(request), (path, headers, query)


def test_the_endpoints_that_are_told_are_the_same():
    assert {each.name: each.client.endpoints for each in surfaces()} == probes.ENDPOINTS


def test_probes_are_the_same():
    ours = {
        path: (probe.methods, probe.body) for each in surfaces() for path, probe in each.client.probes.items()
    }
    theirs = {path: (stub.methods, stub.body) for path, stub in probes.STUBS.items() if path != "/"}
    assert ours == theirs


@every_dialect
def test_keys_are_offered_the_same_way(name):
    headers = {"authorization": "BEARER one", "x-api-key": "two", "x-goog-api-key": " three "}
    request = head("POST", "/", headers, "key=four")
    asked = routes.Asked(name, "generate")
    offered = []
    wanted = dict.fromkeys(pair for each in surfaces() for pair in each.client.key_headers)
    for header, prefix in wanted:
        value = headers[header]
        if value[: len(prefix)].lower() == prefix:
            offered.append(value[len(prefix) :].strip())
    query = surface(name).client.key_query
    offered += [routes.query_value(request.query, query)] if query else []
    assert offered == guard._offered(request, asked)


# Errors and streams.


@every_dialect
def test_the_status_of_an_error_is_the_same(name):
    kinds = (
        "invalid_request", "context_overflow", "auth", "billing", "permission", "not_found", "conflict",
        "too_large", "rate_limit", "overloaded", "server", "timeout", "content_policy",
    )  # fmt: skip
    for kind in kinds:
        for status in (0, 200, 400, 401, 404, 405, 408, 415, 422, 426, 429, 500, 503, 529, 600):
            for code in ("", "upstream_auth_failed"):
                error = ApiError(kind, "x", status=status, code=code)
                assert surface(name).status(error) == status_of(error, name)


@every_dialect
def test_pings_are_the_same(name):
    for framing, ping in surface(name).client.pings.items():
        known = client_stream._PINGS.get(name, client_stream._BLANK_LINE)
        assert ping == (known if framing == "sse" else client_stream._BLANK)
    for query in ("", "alt=sse", "alt=json"):
        sse = name not in ("gemini", "code-assist") or "alt=sse" in query
        assert surface(name).framing(query) == ("sse" if sse else "json-array")


def heard(listener: tap.Tap, pieces: list[bytes]) -> list[object]:
    told: list[object] = []
    for piece in pieces:
        listener.feed(piece)
        told.append((listener.complete, listener.ended, listener.stop, listener.settled, listener.next_event))
    listener.close()
    return [
        *told,
        listener.usage,
        listener.stop,
        listener.complete,
        listener.ended,
        listener.error,
        listener.next_event,
        listener.settled,
    ]


def same_is_heard(case: Case) -> None:
    chance = random.Random(case.id)
    cuts = sorted(chance.randrange(len(case.data) + 1) for _ in range(3))
    pieces = [case.data[a:b] for a, b in zip([0, *cuts], [*cuts, len(case.data)], strict=True)]
    for cut in ([case.data], pieces, [case.data[: len(case.data) // 2]]):
        for most in (1 << 20, 200):
            expected, found = (
                _heard_or_fault(listener, cut)
                for listener in (tap.tap(case.dialect, most), surface(case.dialect).tap(most))
            )
            assert expected == found


def _heard_or_fault(listener: Any, pieces: list[bytes]) -> object:
    try:
        return heard(listener, pieces)
    except Exception as problem:
        return type(problem), str(problem)


@pytest.mark.parametrize("case", of_kind("streams"))
def test_taps_hear_the_same(case):
    same_is_heard(case)


@every_dialect
def test_taps_hear_the_same_of_recorded_streams(name):
    all_hold(recorded(name, "streams", 60), same_is_heard)


def same_is_seen(case: Case) -> None:
    if case.dialect == "gemini-simple":
        return  # the gateway took it for Chat
    for body in (encode(case.body), encode(case.body)[:-1], b"[1]", b'{"usage": 1, "choices": 2}', b"{}"):
        found = []
        for look in (lambda b: tap.glance(case.dialect, b), surface(case.dialect).glance):
            try:
                glance = look(body)
                found.append((glance.usage, glance.stop))
            except BadJson as bad:
                found.append(str(bad))
        assert found[0] == found[1]


@pytest.mark.parametrize("case", of_kind("responses"))
def test_a_glance_at_a_whole_answer_sees_the_same(case):
    same_is_seen(case)


@every_dialect
def test_a_glance_at_recorded_answers_sees_the_same(name):
    all_hold(recorded(name, "responses", 60), same_is_seen)


@pytest.mark.parametrize(
    "case", [param for param in of_kind("streams") if param.values[0].dialect == "openai-chat"]
)
def test_the_same_frames_are_hidden(case):
    usage = surface("openai-chat").upstream.stream_usage
    assert usage is not None
    hidden = feeder._without_usage(case.data) if feeder._NO_CHOICE.search(case.data) else case.data
    assert usage.hide(case.data) == hidden


# Counts and lists.


@pytest.mark.parametrize("case", of_kind("requests"))
def test_counts_are_asked_and_answered_the_same_way(case):
    counts = surface(case.dialect).counts
    assert (counts is not None) is estimator.can_count(case.dialect)
    if counts is None:
        return
    context = Context(model="m")
    bodies = [case.body, {"generateContentRequest": case.body}, {"generateContentRequest": 1}]
    bodies.append({key: value for key, value in case.body.items() if key != "input"})
    for body in bodies:
        expected = _or_fault(lambda: estimator.parse_count_request(case.dialect, body, context))
        assert _or_fault(lambda: counts.parse_request(body, context)) == expected
    request = counts.parse_request(case.body, context)
    for target in surfaces():
        if target.counts is None:
            continue
        for nested, url in ((True, "https://x/v1beta"), (False, "https://x/publishers/google")):
            ours = _or_fault(lambda: target.counts.render_request(request, context, url))
            theirs = _or_fault(
                lambda: estimator.render_count_request(target.name, request, context, nested=nested)
            )
            assert ours == theirs
        answer = target.counts.render_answer(7)
        assert answer == estimator.render_count_answer(target.name, 7)
        for told in (answer, {}, 7, {**dict.fromkeys(answer, -1)}):
            assert _or_fault(lambda: target.counts.parse_answer(told)) == _or_fault(
                lambda: estimator.parse_count_answer(target.name, told)
            )


def _or_fault(action: Any) -> Any:
    try:
        return action()
    except Exception as fault:
        return type(fault), str(fault)


def listing() -> list[models.ListedModel]:
    from wireglot.providers.spec import limits_of, provider
    from wireglot.providers.spec import names as providers

    found = []
    for name in providers():
        spec = provider(name)
        for entry in spec.models:
            if entry.is_name:
                spoken = entry.dialects or spec.dialects
                limits = limits_of(spec, spoken[0], entry.match)
                found.append(
                    models.ListedModel(entry.match, name, entry.match, entry, spoken, limits, entry.title)
                )
    return list({model.id: model for model in found}.values())


def neutral(model: models.ListedModel) -> ListedModel:
    limits = model.limits
    return ListedModel(
        model.id,
        model.provider,
        model.title,
        model.context,
        model.output,
        model.dialects,
        thinking=limits.thinking if model.thinks else "",
        efforts=limits.efforts,
        thinking_off=limits.thinking_off,
        hosted_tools=limits.hosted_tools,
        media=limits.media,
        output_formats=limits.output_formats,
    )


@every_dialect
def test_models_are_listed_the_same_way(name):
    from urllib.parse import parse_qs

    known = listing()
    ours = [neutral(model) for model in known]
    middle = known[len(known) // 2].id
    for query in ("", "limit=3", "limit=0", "limit=x", f"after_id={middle}", f"before_id={middle}", "after_id=no",
                  "pageSize=0", "pageSize=2000000", "pageSize=2", f"pageToken={middle}", "pageToken=no"):  # fmt: skip
        expected = _or_fault(lambda: models.render_list(name, known, query))
        found = _or_fault(
            lambda: surface(name).models.render_list(ours, parse_qs(query, keep_blank_values=True))
        )
        assert found == expected, query


def test_code_assist_is_answered_the_same_way():
    assist = surface("code-assist").assist
    assert assist is not None
    known = listing()
    ours = [neutral(model) for model in known]
    for verb in (*code_assist.VERBS, "nothing"):
        for body in ({}, {"cloudaicompanionProject": "p"}):
            assert assist.answer(verb, body, ours) == code_assist.answer(verb, body, known)
    for name in (code_assist.OPERATION, "operations/other"):
        assert assist.operation(name) == code_assist.operation(name)


# Requests.


class _Asked(SimpleNamespace):
    def document(self):
        return self.read.document()


@pytest.mark.parametrize("case", of_kind("requests"))
def test_as_much_is_reserved_for_an_answer(case):
    read: Body = Read(encode(case.body))
    client: ClientSide = surface(case.dialect).client
    old: Any = _Asked(dialect=case.dialect, outline=read.outline, read=read)
    assert client.asked_output(read) == amounts._asked_output(old)
    assert min(max(1, client.asked_answers(read)), 128) == amounts._answers(old)


def test_odd_numbers_are_found_the_same_way():
    for name in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        for kind in ("responses",):
            for case in fixtures(FIXTURES, name, kind):
                usage = case.body.get("usage") or case.body.get("usageMetadata") or {}
                for bent in _bent(usage):
                    raw = Extra(name, bent)
                    check = surface(name).check_usage
                    assert check is not None
                    assert check(raw) == usage_checks(Usage(raw=raw))


def _bent(usage: dict[str, Any]) -> list[dict[str, Any]]:
    found = [usage]
    for key, value in usage.items():
        others = (-1, "7", 1.5, 10**13, None, "x") if type(value) is int else ()
        found += [{**usage, key: other} for other in others]
        if type(value) is dict:
            found += [{**usage, key: {**value, inner: 10**6}} for inner in value]
    import re

    found.append(
        {re.sub("([A-Z])", lambda m: "_" + m[1].lower(), key): value for key, value in usage.items()}
    )
    return found


def test_what_goes_on_to_an_upstream_is_the_same():
    for each in surfaces():
        if each.upstream is None:
            assert each.name not in attempt._PASSED
            continue
        assert each.upstream.passed_headers == attempt._PASSED[each.name]
        assert each.model_in_path is (each.name in attempt._MODEL_IN_PATH)
        assert each.upstream.telemetry_operation == telemetry._OPERATIONS.get(each.name, "chat")
    fixed = {each.name: each.upstream.fixed_headers for each in surfaces() if each.upstream}
    assert fixed.pop("anthropic") == (("anthropic-version", attempt.ANTHROPIC_VERSION),)
    assert not any(fixed.values())
    returned = {name for each in surfaces() if each.upstream for name in each.upstream.returned_headers}
    assert {"x-ratelimit-", *returned} == set(relay._PASSED_BACK)
    ids = dict.fromkeys(
        name for each in surfaces() if each.upstream for name in each.upstream.request_id_headers
    )
    assert (*ids, "msh-request-id") == relay._UPSTREAM_IDS
    thread = surface("anthropic").client.thread
    assert thread is not None
    assert (thread.error, thread.body) == (attempt.ThreadUnsupported.ERROR, attempt.ThreadUnsupported.BODY)
    usage = surface("openai-chat").upstream.stream_usage
    assert usage is not None
    for options in (None, {}, {"include_usage": False}, {"include_usage": True, "x": 1}, 3):
        assert usage.asking(options) == attempt._with_usage(options)


@every_dialect
def test_the_same_fields_are_the_gateways(name):
    client = surface(name).client
    made = SimpleNamespace(dialect=name)
    assert client.gateway_fields == job.Job._ours(made)
    assert (client.call_prefix or "call") == ("toolu" if name == "anthropic" else "call")
    marks = (job._SEALED, job._UNSIGNED) if name == "openai-responses" else (job._SEALED,)
    assert client.sealed_marks == marks
    identity = [header for header, _ in job.identity("x", name)][2:]
    assert list(client.identity_headers) == identity
    assert client.media_marks == amounts._MEDIA
    assert client.words is not None
    assert client.words.pattern == amounts._SAID.pattern


SAID = (
    "Invalid thought signature", "thoughtSignature is missing", "messages.1: Invalid `signature` in `thinking` block",
    "thinking blocks cannot be modified", "bound to a different organization", "Expected `thinking` or `redacted_thinking`",
    "cannot contain `redacted_thinking`", "messages.1.content.0.thinking.signature: Field required",
    "The encrypted content gAAA could not be verified", "invalid_encrypted_content",
    "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'.",
    "Item with id 'rs_1' \n not found", "something else", "the model is overloaded",
)  # fmt: skip


@pytest.mark.parametrize("message", SAID)
def test_the_same_refusals_are_about_state(message):
    for code in ("", "invalid_encrypted_content", "invalid_thinking_signature"):
        error = ApiError("invalid_request", message, code=code)
        ours = any(each.reasoning.is_refusal(error) for each in surfaces() if each.reasoning.is_refusal)
        assert ours is recovery.is_about_state(error)


def test_an_item_without_its_id_is_the_same():
    strip = surface("openai-responses").reasoning.without_state
    assert strip is not None
    for form in ({}, {"id": "msg_1"}, {"item": {"id": "fc_1", "type": "x"}, "y": 1}, {"item": {"type": "x"}}):
        extra = Extra("openai-responses", {"a": 1}, form)
        assert strip(extra) == recovery._nameless(extra)


# What is stored.


def test_items_are_the_same():
    stored = surface("openai-responses").stored
    assert stored is not None
    context = Context(seed="s", now=1)
    for name in NAMES:
        for case in fixtures(FIXTURES, name, "requests"):
            from wireglot.dialects.registry import dialect

            request = dialect(name).parse_request(case.body, context)
            kept = items.items_of(request.messages, context)
            cut = [
                (prefix, content) for message in request.messages for prefix, content in stored.cut(message)
            ]
            assert [item.message.content for item in kept if item.message] == [content for _, content in cut]
            assert [item.id.partition("_")[0] for item in kept] == [prefix for prefix, _ in cut]
            for item in kept:
                assert item.message is not None
                assert _or_fault(lambda: stored.render_item(item.message, item.id, context)) == _or_fault(
                    lambda: items.as_wire(item, context)
                )
    stem = items.Stem(context, "x")
    for case in fixtures(FIXTURES, "openai-responses", "requests"):
        value = case.body.get("input")
        assert stored.whole_items(value, stem.id) == items.whole_items(value, stem)
        for item in value if isinstance(value, list) else ():
            assert stored.is_reference(item) is items.is_reference(item)


def needs(client: Surface, target: Surface, text: bool) -> bool:
    match client.reasoning.returns:
        case "all":
            return False
        case "own":
            return target.family != client.family or text
        case "leading":
            return target.reasoning.signs_texts


def test_the_vault_is_asked_for_the_same_pairs():
    from wireglot.gateway.state.reasoning import vault

    for client in surfaces():
        for target in surfaces():
            if target.upstream is None:
                continue
            for text in (False, True):
                if text and target.name != "openai-chat":
                    continue  # nobody else's reasoning is its text
                limits = SimpleNamespace(reasoning="text" if text else "signed")
                known: Any = SimpleNamespace(dialect=target.name, limits=limits)
                assert needs(client, target, text) is vault._needs(client.name, known), (
                    client.name,
                    target.name,
                )
        dropped = vault._FAMILY.get(client.name, client.name) in vault._DROPPED_BY_CLIENTS
        assert client.reasoning.drops_thoughts is dropped


def test_faults_of_fields_name_them():
    glance = surface("openai-chat").client.glance
    assert glance is not None
    with pytest.raises(ClientFault) as caught:
        glance(Read(b'{"model": 1}'))
    assert (caught.value.message, caught.value.path) == ("model: expected a string", "$.model")
