"""Pinned: the tables of each dialect. What it is over HTTP, how it lists models, how it reads errors, stop
reasons and accounts of every spelling that was seen in the wild.

`WIREGLOT_UPDATE=1 pytest tests/core/laws/test_table_goldens.py` writes the files again.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from tests.core.laws.cases import FIXTURES, every_dialect
from tests.core.laws.test_pair_goldens import UPDATE, by_field
from tests.core.sent_body import SentBody
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.dialects.registry import NAMES, dialect, surface
from wireglot_core.ir.content import Extra, Message, Text
from wireglot_core.ir.errors import ApiError, ClientFault, ErrorKind, WireglotError
from wireglot_core.ir.request import Request
from wireglot_core.testing.check_dialect import Case, fixtures

GOLDENS = FIXTURES / "tables"
CONTEXT = Context(now=1700000001)


def pinned(name: str, kind: str, lines: list[str]) -> None:
    path = GOLDENS / kind / f"{name}.txt"
    text = "\n".join([*lines, ""])
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


# What it is over HTTP

ODD_KEYS = (
    "messages",
    "input",
    "contents",
    "system",
    "tools",
    "content",
    "choices",
    "output",
    "candidates",
    "steps",
)


def declared(value: Any, path: str) -> Iterator[str]:
    """One line for each thing that is said; what is a function or a class only by its being there."""
    match value:
        case None | str() | int() | float():
            yield f"{path} = {value!r}"
        case bytes():
            yield f"{path} = {value.decode()!r}"
        case re.Pattern():
            yield f"{path} = /{value.pattern}/"
        case tuple() | list() if not any(isinstance(each, msgspec.Struct | tuple) for each in value):
            yield f"{path} = {', '.join(map(str, value))}"
        case tuple() | list():
            for number, each in enumerate(value):
                yield from declared(each, f"{path}[{number}]")
        case frozenset() | set():
            yield f"{path} = {', '.join(sorted(map(str, value)))}"
        case dict():
            for key, each in value.items():
                yield from declared(each, f"{path}[{key}]")
        case msgspec.Struct():
            for key in value.__struct_fields__:
                yield from declared(getattr(value, key), f"{path}.{key}".removeprefix("."))
        case _:
            yield f"{path}: there"


@every_dialect
def test_a_dialect_is_this_over_http(name):
    """What `SURFACE` declares, word for word."""
    lines = [line for line in declared(surface(name), "") if not line.endswith(("= None", "= ''", "= "))]
    pinned(name, "surfaces", lines)


_NUMBER = re.compile(r"\[\d+\]")
ODD: tuple[Any, ...] = (
    None, 7, "words", [], [None, 7, "words", []], {}, [{}], [{"type": 7, "role": 7, "name": 7, "content": 7}],
)  # fmt: skip
ODD_DOCUMENTS = tuple(Case("odd", "", body=dict.fromkeys(ODD_KEYS, value)) for value in ODD)


@every_dialect
def test_things_stand_at_these_places(name):
    """What `PLACES` declares: where a client looks for what a loss names, the nearest place first; and what it
    finds in the dialect's own documents, each kind of thing in each kind of place once."""
    places = dialect(name).places
    assert places is not None
    found: dict[str, None] = {}
    for case in (*fixtures(FIXTURES, name, "requests"), *ODD_DOCUMENTS):
        inner = case.body.get(places.request_envelope, case.body) if places.request_envelope else case.body
        turns = places.turns(inner)
        nodes = [("turn", turn.path, "") for turn in turns]
        nodes += [("part", node.path, node.kind) for turn in turns for node in places.parts(turn)]
        nodes += [("tool", node.path, node.kind) for node in places.tools(inner)]
        found.update(dict.fromkeys(f"{what} at {_NUMBER.sub('[n]', at)}: {kind}" for what, at, kind in nodes))
    for case in (*fixtures(FIXTURES, name, "responses"), *ODD_DOCUMENTS):
        inner = case.body.get(places.response_envelope, case.body) if places.response_envelope else case.body
        nodes = [("answer", node.path, node.kind) for node in places.answer_parts(inner)]
        found.update(dict.fromkeys(f"{what} at {_NUMBER.sub('[n]', at)}: {kind}" for what, at, kind in nodes))
    pinned(name, "places", [*declared(places, ""), "", *sorted(found)])


MODELS = (
    ListedModel("bare", "p"),
    ListedModel(
        "all", "p", "All of it", 200000, 64000, ("anthropic", "gemini"), "adaptive",
        ("low", "medium", "high", "xhigh", "max"), True, True, ("image", "document", "audio", "video"),
        ("json", "schema"),
    ),
    ListedModel("budgets", "anthropic", "", 1000, 0, ("anthropic",), "budget", (), False),
    ListedModel("efforts", "openai", "", 0, 500, ("openai-responses",), "effort", ("low", "high"), hosted_tools=True),
    ListedModel("levels", "google", "", 1, 1, ("gemini",), "level", ("minimal",), media=("image",)),
    ListedModel("fixed", "kimi", "", 1, 1, ("openai-chat",), "fixed", output_formats=("json",)),
    ListedModel("org/with:odd name", "p", media=("document",), output_formats=("schema",)),
    ListedModel("vectors", "p", "Vectors", 8192, embeds=True, dimensions=768),
)  # fmt: skip
QUERIES: tuple[dict[str, list[str]], ...] = (
    {},
    {"limit": ["2"], "pageSize": ["2"]},
    {"after_id": ["all"], "limit": ["2"], "pageToken": ["2"]},
    {"before_id": ["fixed"], "limit": ["2"]},
    {"before_id": ["budgets"]},
    {"before_id": ["bare"]},
    {"after_id": ["org/with:odd name"]},
    {"after_id": ["fixed"], "limit": ["1"]},
    {"after_id": ["levels"], "limit": ["2"]},
    {"limit": ["many"], "pageSize": ["many"]},
)


@every_dialect
def test_models_are_listed_like_this(name):
    """`MODELS` of each dialect."""
    lines: list[str] = []
    models = surface(name).models
    for model in MODELS:
        alone = models.render_model(model)
        lines += [f"# {model.id}", *by_field(alone), ""]
        (listed,) = next(value for value in models.render_list([model], {}).values() if type(value) is list)
        if listed != alone:
            lines += [f"# {model.id}, listed", *by_field(listed), ""]
    for query in QUERIES:
        lines.append(f"# {json.dumps(query)}")
        try:
            page = models.render_list(MODELS, query)
        except WireglotError as refused:
            lines += [f"refused: {refused}", ""]
            continue
        names = [
            [each.get("id") or each["name"] for each in listed]
            for listed in page.values()
            if type(listed) is list
        ]
        rest = {key: value for key, value in page.items() if type(value) is not list}
        lines += [*(", ".join(each) for each in names), *by_field(rest), ""]
    pinned(name, "models", lines)


# Stored answers

SAYINGS: tuple[dict[str, Any], ...] = (
    {},
    {"store": True},
    {"store": False},
    {"store": None, "background": None, "previous_interaction_id": None, "previous_response_id": None},
    {"background": True},
    {"background": False, "store": False},
    {"previous_interaction_id": "p1", "previous_response_id": "p1"},
    {"previous_interaction_id": "", "previous_response_id": ""},
    {"store": False, "conversation": {"id": "conv_1"}, "input": "hi"},
    {"previous_response_id": "p1", "conversation": "conv_1"},
    {"store": "yes"},
    {"background": "yes"},
    {"previous_interaction_id": 7, "previous_response_id": 7},
    {"input": [{"type": "item_reference", "id": "msg_1"}]},
)
INPUTS: tuple[Any, ...] = (
    None,
    7,
    "",
    "hi",
    {"type": "text", "text": "hi"},
    [],
    [{"type": "text", "text": "hi"}, {"type": "image", "data": "QQ=="}],
    [
        {"role": "user", "content": "hi"},
        {"type": "message", "role": "assistant", "content": "ho", "id": "m1"},
    ],
    [{"type": "function_call", "name": "f", "arguments": "{}"}, {"type": "odd"}],
    [{"type": "user_input", "content": [{"type": "text", "text": "hi"}]}, {"type": "thought"}],
)
DOCUMENTS: tuple[dict[str, Any], ...] = (
    {"id": "a", "status": "completed", "created": "2025-10-09T08:53:20Z", "created_at": 1760000000},
    {"id": "a", "status": "failed", "steps": [{"type": "thought"}], "output": [], "created_at": 1.5},
    {"id": "a", "status": "incomplete", "steps": 7, "created": 7, "created_at": "7"},
)


@pytest.mark.parametrize("name", [name for name in NAMES if surface(name).stored is not None])
def test_stored_answers_look_like_this(name):
    """`STORED`: what a request says of state, and the documents and events about an answer that is kept."""
    stored = surface(name).stored
    assert stored is not None
    lines: list[str] = []
    for said in SAYINGS:
        try:
            read = str(stored.options(SentBody(json.dumps(said).encode()), "held"))
        except ClientFault as refused:
            read = f"refused at {refused.path}: {refused}"
        lines.append(f"{json.dumps(said)}: {read}")
        own = Extra(name, {"other": 1, **said}, {"input": "text", "store": False, **said})
        without = stored.without_state(Request("m", (), extra=own)).extra
        kept = stored.reported(Request("m", (), extra=own), {"id": "a"}).extra
        lines.append(f"  without: {without and (without.fields, without.form)}")
        lines.append(f"  reported: {kept and (kept.fields, kept.form)}")
    for input in INPUTS:
        items = stored.whole_items(input, lambda prefix, number: f"{prefix}_{number}")
        lines.append(f"input {json.dumps(input)}: {json.dumps(items)}")
        lines.append(f"  references: {[stored.is_reference(item) for item in items]}")
    events = stored.events
    for body in DOCUMENTS:
        lines.append(f"# {json.dumps(body)}")
        for query in ({}, {"include_input": "true"}, {"include_input": "false"}):
            lines.append(f"shown {query}: {json.dumps(stored.shown(body, [{'type': 'given'}], query))}")
        kind, content = events.last(body)
        event = events.event(kind, 3, content)
        lines.append(f"last: {json.dumps(event)}, {events.kind(event)} {events.number(event)}")
        lines.append(f"ends: {kind in events.ends}")
        lines.append(f"begun: {stored.begun(body)}")
        lines += [f"ended: {json.dumps(stored.ended(body, end, 'why'))}" for end in ("failed", "cancelled")]
    for asked in ({}, {stored.previous: "p1"}, {"conversation": {"id": "c1"}}, {"conversation": "c1"}):
        lines.append(f"background {json.dumps(asked)}: {json.dumps(stored.patch('a', 1760000000, asked))}")
    lines.append(f"deleted: {json.dumps(stored.deleted('a'))}")
    for message in (
        stored.instructions("Do."),
        Message("system", (Text("Do."),)),
        Message("user", (Text("Do."),)),
    ):
        lines.append(f"instructions {message.role}: {stored.is_instructions(message)}")
    pinned(name, "stored", lines)


# Errors

WORDS = (
    "invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error",
    "conflict_error", "request_too_large", "rate_limit_error", "overloaded_error", "api_error", "timeout_error",
    "gateway_timeout_error", "invalid_authentication_error", "exceeded_current_quota_error", "insufficient_quota",
    "permission_denied_error", "access_terminated_error", "resource_not_found_error", "rate_limit_reached_error",
    "engine_overloaded_error", "server_error", "content_filter", "context_length_exceeded",
    "billing_hard_limit_reached", "rate_limit_exceeded", "slow_down", "invalid_api_key", "model_not_found",
    "previous_response_not_found", "content_policy_violation", "INVALID_ARGUMENT", "UNAUTHENTICATED",
    "PERMISSION_DENIED", "NOT_FOUND", "ALREADY_EXISTS", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL",
    "DEADLINE_EXCEEDED", "FAILED_PRECONDITION", "CANCELLED", "OUT_OF_RANGE", "ABORTED", "UNKNOWN", "UNIMPLEMENTED",
    "DATA_LOSS", "invalid_request", "context_length_exceeded", "authentication", "payment_required",
    "permission_denied", "not_found", "conflict", "service_unavailable", "gateway_timeout", "content_blocked",
    "parameter_unknown", "quota_exceeded", "too_many_requests", "overloaded", "internal_error", "never_heard_of",
)  # fmt: skip
_SAID = "It went wrong."
BODIES: tuple[Any, ...] = (
    None,
    "",
    "plain words",
    b"bytes \xff",
    "<html><title>502 Bad Gateway</title></html>",
    [],
    [{"error": {"message": _SAID, "type": "api_error"}}],
    [{"error": {"message": _SAID}}, {"error": {"message": "Another."}}],
    ["odd"],
    {},
    7,
    {"type": "error"},
    {"type": "error", "error": {}},
    {"type": "error", "error": {"type": 7, "message": 7}, "request_id": 7},
    {"type": "error", "error": {"type": "overloaded_error", "message": _SAID}, "request_id": "req_1"},
    {"type": "error", "message": _SAID},
    {
        "type": "error",
        "error": {"type": "x", "message": _SAID, "details": {"error_code": "insufficient_quota"}},
    },
    {"type": "error", "error": {"type": "x", "message": _SAID, "details": 7, "code": "insufficient_quota"}},
    {"type": "error", "error": {"type": "x", "message": _SAID, "code": "insufficient_quota"}},
    {"type": "error", "error": _SAID},
    {"type": "message", "content": []},
    {"type": "message", "content": [], "error": None},
    {"error": {"message": _SAID, "code": 503, "status": "UNAVAILABLE"}},
    {"error": {"message": _SAID, "code": "503"}},
    {"error": {"message": _SAID, "status": 404}},
    {"error": {"message": _SAID, "status_code": 429}},
    {"error": {"message": _SAID, "code": 399}},
    {"error": {"message": _SAID, "code": 600}},
    {"error": {"message": _SAID, "param": "messages", "code": None}},
    {"error": {"message": _SAID, "param": 7, "type": 7}},
    {"error": {"message": _SAID, "retry_after": 12}},
    {"error": {"message": _SAID, "resets_in_seconds": 3.5}},
    {"error": {"message": "Try again in 20s."}},
    {"error": {"message": "Please retry after 7 seconds."}},
    {"error": {"message": "This model's maximum context length is 8192 tokens, however you requested 9000."}},
    {"error": {"message": "Your credit balance is too low."}},
    {"error": {"msg": _SAID}},
    {"error": {"metadata": {"raw": _SAID}}},
    {"error": _SAID},
    {"error": _SAID, "message": "Beside it."},
    {"error": ""},
    {"error": {}},
    {"error": 7},
    {"error": [_SAID]},
    {"error": True},
    {"errors": [{"message": _SAID}]},
    {"errors": [_SAID]},
    {"errors": []},
    {"object": "error", "message": _SAID, "code": 40303},
    {"message": _SAID},
    {"message": _SAID, "id": "x"},
    {"detail": _SAID},
    {"detail": [{"loc": ["body", "model"], "msg": "field required"}]},
    {"request_id": "req_1", "error": {"message": _SAID}},
    {"request_id": 7, "error": {"message": _SAID}},
    {"choices": []},
    {"choices": [], "error": {"message": _SAID}},
    {"choices": [{"finish_reason": "error"}]},
    {"choices": [{"finish_reason": "stop", "error": {"message": _SAID, "code": 429}}]},
    {"choices": [{"finish_reason": "stop", "error": {}}]},
    {"choices": ["odd"]},
    {"choices": 7},
    {"candidates": [], "error": {"message": _SAID}},
    {"response": {"error": {"message": _SAID, "code": 401}}},
)


def _in_short(error: ApiError | None) -> str:
    if error is None:
        return "none"
    reported = msgspec.to_builtins(error)
    reported.pop("extra", None)
    reported.pop("status", None)
    kept = "" if error.extra is None else ", kept"
    return f"{json.dumps(reported, ensure_ascii=False)}{kept}"


@every_dialect
def test_errors_are_read_like_this(name):
    """`_KINDS` of Anthropic, `_CODES` and `_TYPES` of OpenAI, and whatever hosts wrap around them."""
    read = dialect(name).parse_error
    lines: list[str] = []
    for body in BODIES:
        lines.append(f"# {body!r}")
        by_error: dict[str, list[str]] = {}
        for status in (0, 400, 409):
            by_error.setdefault(_in_short(read(body, status)), []).append(str(status))
        lines += [f"{', '.join(statuses)}: {reported}" for reported, statuses in by_error.items()]
    for word in WORDS:
        kinds = []
        for error in ({"type": word}, {"code": word}, {"status": word}, {"details": {"error_code": word}}):
            found = read({"type": "error", "error": {"message": _SAID, **error}}, 400)
            kinds.append(found.kind if found is not None else "none")
        lines.append(f"{word}: {', '.join(kinds)}")
    for status in (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529, 599):
        found = read({"error": {"message": _SAID}}, status)
        lines.append(f"{status}: {found.kind if found is not None else 'none'}")
    pinned(name, "errors", lines)


@every_dialect
def test_errors_have_these_statuses(name):

    lines = []
    for kind in get_args(ErrorKind):
        reported = [surface(name).status(ApiError(kind, "x", status)) for status in (0, 400, 418, 502, 529)]
        own = surface(name).status(ApiError(kind, "x", 502, code="upstream_auth_failed"))
        lines.append(f"{kind}: {', '.join(map(str, reported))}, of the upstream's key {own}")
    refusals = (
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "Invalid `data` in `redacted_thinking` block",
        "`thinking` blocks in the latest assistant message cannot be modified",
        "the thinking block is bound to a different conversation",
        "bound to a different organization",
        "Expected `thinking` or `redacted_thinking`, but found `text`",
        "content cannot contain `redacted_thinking`",
        "messages.1.content.0.thinking.signature: Field required",
        "redacted_thinking.data: wrong",
        "Thought signature is not valid",
        "Function call is missing a thought_signature",
        "The encrypted content could not be verified",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "some other words about thinking",
    )
    state = surface(name).reasoning
    refused = getattr(state, "is_refusal", None)
    if refused is not None:
        lines += [f"{words!r}: {refused(ApiError('invalid_request', words))}" for words in refusals]
        for code in ("invalid_thinking_signature", "invalid_encrypted_content", "other"):
            lines.append(f"{code}: {refused(ApiError('invalid_request', 'x', code=code))}")
    pinned(name, "statuses", lines)


# Stops and accounts

STOPS = (
    "end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "tool_use", "refusal", "pause_turn",
    "stop", "length", "tool_calls", "content_filter", "function_call", "eos", "eos_token", "model_length",
    "tool_call", "safety", "error", "", None, 7, "never_heard_of",
)  # fmt: skip


def _chat(**said: Any) -> dict[str, Any]:
    message = {"role": "assistant", **said.pop("message", {"content": "Hi."})}
    choice = {"index": 0, "message": message, "finish_reason": said.pop("finish_reason", "stop")}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **said}


def _message(**said: Any) -> dict[str, Any]:
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**body, "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn", **said}


_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_USE = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}


def test_stop_reasons_are_read_like_this():
    """`REASONS` and `_REASONS`."""
    lines = []
    for raw in STOPS:
        whole = (
            dialect("anthropic").parse_response(_message(stop_reason=raw), CONTEXT),
            dialect("anthropic").parse_response(_message(stop_reason=raw, content=[_USE]), CONTEXT),
        )
        chats = (
            dialect("openai-chat").parse_response(_chat(finish_reason=raw), CONTEXT),
            dialect("openai-chat").parse_response(
                _chat(finish_reason=raw, message={"tool_calls": [_CALL]}), CONTEXT
            ),
            dialect("openai-chat").parse_response(
                _chat(finish_reason=raw, message={"refusal": "No."}), CONTEXT
            ),
        )
        read = [answer.stop.reason for answer in (*whole, *chats)]
        lines.append(
            f"{raw!r}: message {read[0]}, calling {read[1]}; chat {read[2]}, calling {read[3]}, refusing {read[4]}"
        )
    pinned("stops", "outcomes", lines)


ACCOUNTS: dict[str, tuple[dict[str, Any], ...]] = {
    "anthropic": (
        {"input_tokens": 1, "output_tokens": 2},
        {"input_tokens": 1.0, "output_tokens": -2},
        {"input_tokens": 1.5, "output_tokens": "2"},
        {"input_tokens": -1.0, "output_tokens": None},
        {"input_tokens": 5, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}},
        {"input_tokens": 5, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 10}},
        {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 0, "told": 1}},
        {"output_tokens": 9, "output_tokens_details": 7},
        {"cache_read_input_tokens": 8, "cache_creation_input_tokens": 6},
        {"cache_creation_input_tokens": 6, "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 4}},
        {"cache_creation_input_tokens": 6, "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 9}},
        {"cache_creation_input_tokens": 6, "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 5}},
        {"cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 4}},
        {"cache_creation": {"ephemeral_1h_input_tokens": 4, "other": 1}},
        {"input_tokens": 5, "inference_geo": "not_available", "server_tool_use": {"web_search_requests": 1}},
        {"input_tokens": 5, "inference_geo": "eu", "prompt_tokens": 5, "completion_tokens": 1, "cached_tokens": 0, "total_tokens": 6},
        {"input_tokens": 5, "output_tokens": 1, "service_tier": "priority"},
    ),
    "openai-chat": (
        {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14},
        {"prompt_tokens": 10.0, "completion_tokens": "4", "total_tokens": None},
        {"prompt_tokens": -1, "completion_tokens": 10**10},
        {"prompt_tokens": 10, "cached_tokens": 3},
        {"prompt_tokens": 10, "prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 7},
        {"prompt_tokens": 10, "cached_tokens": 30},
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2, "text_tokens": 9, "audio_tokens": 1}},
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 20}},
        {"prompt_tokens": 10, "prompt_tokens_details": 7, "completion_tokens_details": 7},
        {"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4, "text_tokens": 5}},
        {"prompt_tokens": 1, "completion_tokens": 9, "reasoning_tokens": 4, "cost": 0.25},
        {"prompt_tokens": 1, "completion_tokens": 9, "total_tokens": 14, "completion_tokens_details": {"reasoning_tokens": 4}},
        {"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 10}},
        {"prompt_tokens": 1, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 0}},
        {"prompt_tokens": 1, "completion_tokens": 9, "total_tokens": 11},
        {"prompt_tokens": 1, "cached_tokens": 2, "prompt_tokens_details": {"cache_write_tokens": 1}},
        {"prompt_tokens": 1, "prompt_cache_hit_tokens": 2},
    ),
    "openai-responses": (
        {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14},
        {"input_tokens": 10.0, "output_tokens": "4", "total_tokens": 15},
        {"input_tokens": -1, "output_tokens": 10**13},
        {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 10}},
        {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 11, "audio_tokens": 1}},
        {"output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 9}},
        {"output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 10, "text_tokens": 0}},
        {"input_tokens": 5, "input_tokens_details": 7, "output_tokens_details": None, "more": 1},
    ),
    "gemini": (
        {"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14},
        {"promptTokenCount": 10.0, "candidatesTokenCount": "4", "totalTokenCount": 15},
        {"promptTokenCount": -1, "candidatesTokenCount": 10**13},
        {"promptTokenCount": 10, "cachedContentTokenCount": 10},
        {"promptTokenCount": 10, "cachedContentTokenCount": 11},
        {"promptTokenCount": 1, "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "toolUsePromptTokenCount": 4, "totalTokenCount": 10},
        {"promptTokenCount": 1, "thoughtsTokenCount": 3, "totalTokenCount": 5},
        {"prompt_token_count": 1, "candidates_token_count": 2, "total_token_count": 4},
        {"promptTokenCount": 1, "trafficType": "ON_DEMAND", "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1}]},
    ),
    "gemini-interactions": (
        {"total_input_tokens": 10, "total_output_tokens": 4, "total_tokens": 14},
        {"total_input_tokens": 10.0, "total_output_tokens": "4", "total_tokens": 15},
        {"total_input_tokens": -1, "total_output_tokens": 10**13},
        {"total_input_tokens": 10, "total_cached_tokens": 10},
        {"total_input_tokens": 10, "total_cached_tokens": 11},
        {"total_input_tokens": 1, "total_output_tokens": 2, "total_thought_tokens": 3, "total_tool_use_tokens": 4, "total_tokens": 10},
        {"total_input_tokens": 1, "total_thought_tokens": 3, "total_tokens": 5},
        {"total_input_tokens": 1, "input_tokens_by_modality": [{"modality": "text", "tokens": 1}], "more": 1},
    ),
    "ollama": (
        {"prompt_eval_count": 10, "eval_count": 4, "total_duration": 5, "load_duration": 1},
        {"prompt_eval_count": 10.0, "eval_count": "4", "eval_duration": 1.5},
        {"prompt_eval_count": -1, "eval_count": 10**13},
        {"prompt_eval_count": 10.5, "eval_count": None},
        {"total_duration": 5},
    ),
}  # fmt: skip


def _answer(name: str, usage: dict[str, Any]) -> dict[str, Any]:
    """With this account, where the dialect has it."""
    match name:
        case "anthropic":
            return _message(usage=usage)
        case "openai-chat":
            return _chat(usage=usage)
        case "gemini":
            return {"candidates": [{"content": {"parts": [{"text": "Hi."}]}}], "usageMetadata": usage}
        case "ollama":
            return {"model": "m", "message": {"role": "assistant", "content": "Hi."}, "done": True, **usage}
    return {"id": "a", "model": "m", "status": "completed", "output": [], "steps": [], "usage": usage}


def test_accounts_are_read_like_this():
    """`_COUNTED`, and the checks of `_USAGE`."""
    for name, accounts in ACCOUNTS.items():
        lines: list[str] = []
        for usage in accounts:
            body = _answer(name, usage)
            spoken = dialect(name)
            answer = spoken.parse_response(body, CONTEXT)
            reported = msgspec.json.decode(msgspec.json.encode(answer.usage))
            reported.get("raw", {}).pop("form", None)
            again = spoken.render_response(answer, CONTEXT, None).value
            counts = {name: again[name] for name in usage if name in again}
            counts = next((again[name] for name in ("usage", "usageMetadata") if name in again), counts)
            check = surface(name).check_usage
            assert check is not None
            lines += [
                f"# {json.dumps(usage)}",
                f"{json.dumps(reported)}; problems: {', '.join(check(Extra(name, form=usage)))}",
                f"served at {answer.service_tier!r}, again {counts == usage}",
            ]
        pinned(name, "outcomes", lines)
