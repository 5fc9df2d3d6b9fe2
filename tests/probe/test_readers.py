"""What the probe reads out of answers that no double gives."""

from __future__ import annotations

import json
import tomllib
from typing import Any, Final
from urllib.parse import unquote

import pytest

from tests.probe.breakages import _SILENT, sent, swap
from tests.probe.test_exact_breakages import BrokenEndpoint
from tests.tiers import rows
from wireglot.probe.endpoint import EndpointRequest, Got
from wireglot.probe.question import ask
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, ProbeReply
from wireglot.probe.report import catalog_entry
from wireglot.probe.run import CASES, WIRES, DemoEndpoint, cases_for, run_cases
from wireglot.probe.talk import ProbeLedger, Refused, Talk

MESSAGE: Final[dict[str, Any]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5, "output_tokens": 3},
}
RESPONSE: Final[dict[str, Any]] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "incomplete",
    "incomplete_details": {"reason": "content_filter"},
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    },
}


@pytest.mark.parametrize(
    ("reported", "input", "cached"),
    [
        ({}, 5, None),
        ({"cache_read_input_tokens": 7}, 12, 7),
        ({"cache_creation_input_tokens": 11}, 16, None),
        ({"cache_read_input_tokens": 7, "cache_creation_input_tokens": 11}, 23, 7),
    ],
)
def test_anthropics_input_is_counted_with_what_the_cache_read_and_wrote(
    reported: dict[str, int], input: int, cached: int | None
) -> None:
    reply = WIRES["anthropic"].read({**MESSAGE, "usage": {**MESSAGE["usage"], **reported}})
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.cached, reply.usage.output) == (input, cached, 3)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("max_output_tokens", "length"), ("content_filter", "other"), ("anything", "other")],
)
def test_why_a_response_is_incomplete(reason: str, stop: str) -> None:
    reply = WIRES["openai-responses"].read({**RESPONSE, "incomplete_details": {"reason": reason}})
    assert (reply.stop, reply.stop_word) == (stop, reason)


class Without(DemoEndpoint):
    """The demo model, whose answers lack a field."""

    def __init__(self, dialect: str, field: str) -> None:
        super().__init__(dialect)
        self._field = field

    def ask(self, ask: EndpointRequest) -> Got:
        got = super().ask(ask)
        document = json.loads(got.body)
        document.pop(self._field, None)
        return Got(got.status, got.headers, json.dumps(document).encode())


@pytest.mark.parametrize(("field", "what"), [("responseId", "id"), ("modelVersion", "model")])
def test_an_answer_without_its_id_or_its_model_lacks_something(field: str, what: str) -> None:
    shape = next(case for case in CASES if case.id == "answers.shape")
    endpoint = Without("gemini", field)
    (finding,) = run_cases([shape], endpoint, WIRES["gemini"], "demo", ProbeLedger())
    assert (finding.verdict, finding.words) == (
        "fail",
        "the answer names no model" if what == "model" else f"the answer has no {what}",
    )


@pytest.mark.parametrize("field", ["parallel_tool_calls", "tool_choice", "tools"])
def test_a_setting_that_a_response_does_not_repeat_fails_one_case_and_not_all(field: str) -> None:
    named = ("answers.shape", "stops.length", "usage.grows", "tools.call")
    cases = [case for case in CASES if case.id in named]
    endpoint = Without("openai-responses", field)
    found = run_cases(cases, endpoint, WIRES["openai-responses"], "demo", ProbeLedger())
    failed = {finding.id: finding.words for finding in found if finding.verdict != "pass"}
    assert failed == {"answers.shape": f"$: the field {field} is missing"}


def test_a_missing_null_does_not_fail_a_case_about_calls_that_were_not_made() -> None:
    reply = ProbeReply(faults=[("nulls", "no logprobs"), ("repeated", "no tools")])
    reply.require_all()
    reply.faults.append(("indexes", "a gap"))
    with pytest.raises(Broken, match="a gap"):
        reply.require_all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"role": "user"}, "$.role: expected 'assistant', found \"user\""),
        ({"stop_reason": "done"}, "$.stop_reason: expected 'end_turn' or 'max_tokens'"),
        (
            {"usage": {"input_tokens": -1, "output_tokens": 3}},
            "$.usage.input_tokens: expected an integer",
        ),
        ({"content": {}}, "$.content: expected a list, found {}"),
        ({"id": ""}, "$.id: expected a text that is not empty"),
    ],
)
def test_a_broken_rule_is_named_with_its_place(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Broken) as broken:
        WIRES["anthropic"].read(MESSAGE | change)
    assert str(broken.value).startswith(words)


class Distracted(DemoEndpoint):
    """The demo model, which says something else at first."""

    asked = 0

    def ask(self, ask: EndpointRequest) -> Got:
        got = super().ask(ask)
        self.asked += 1
        body = got.body.replace(b"orange", b"purple") if self.asked == 1 else got.body
        return Got(got.status, got.headers, body)


def test_a_case_that_says_nothing_is_asked_again_and_not_looked_up() -> None:
    obeys = next(case for case in CASES if case.id == "answers.obeys")
    endpoint = Distracted("gemini")
    (finding,) = run_cases([obeys], endpoint, WIRES["gemini"], "demo", ProbeLedger())
    assert (finding.verdict, finding.tries, endpoint.asked) == ("pass", 2, 2)


class Answers:
    """An endpoint that always answers the same."""

    def __init__(self, status: int, document: object) -> None:
        self._got = Got(status, {"content-type": "application/json"}, json.dumps(document).encode())

    def ask(self, ask: EndpointRequest) -> Got:
        return self._got


def openai_error(status: int) -> Answers:
    return Answers(status, {"error": {"type": "invalid_request_error", "message": "no"}})


@rows(
    ("status", "asked", "optional"),
    [
        (400, Refused, NotApplicable),
        (401, Refused, Refused),
        (404, Refused, NotApplicable),
        (422, Refused, NotApplicable),
        (429, Inconclusive, Inconclusive),
        (499, Refused, Refused),
        (500, Broken, Broken),
        (501, Refused, NotApplicable),
        (502, Broken, Broken),
        (503, Inconclusive, Inconclusive),
        (529, Inconclusive, Inconclusive),
    ],
)
def test_what_a_status_says_of_a_feature(
    status: int, asked: type[Exception], optional: type[Exception]
) -> None:
    """As docs/probe.md has it: what is refused in good order does not apply, and a server error is a fault."""
    talk = Talk(openai_error(status), WIRES["openai-chat"], "m", ProbeLedger())
    with pytest.raises(asked) as refused:
        talk.ask(ask("Hello"))
    assert type(refused.value) is asked
    with pytest.raises(optional) as optionally:
        talk.optional(ask("Hello"), "media", "image")
    assert type(optionally.value) is optional


def test_what_was_asked_before_is_not_asked_again_and_is_spent_once() -> None:
    ledger = ProbeLedger()
    talk = Talk(DemoEndpoint("openai-chat"), WIRES["openai-chat"], "demo", ledger)
    assert (ledger.requests, ledger.input, ledger.output, ledger.bytes_sent, ledger.most_output) == (0,) * 5
    usage = talk.ask(ask("Hello")).usage
    assert usage is not None
    body = len(talk.exchanges[0].request)
    for _ in range(2):
        assert (ledger.requests, ledger.input, ledger.output) == (1, usage.input, usage.output)
        assert ledger.bytes_sent == body
        assert ledger.most_output >= usage.output
        talk.ask(ask("Hello"))
    assert [each.shared for each in talk.exchanges] == [False, True, True]
    assert {(each.method, each.path, each.status) for each in talk.exchanges} == {
        ("POST", "/chat/completions", 200)
    }
    again = Talk(DemoEndpoint("openai-chat"), WIRES["openai-chat"], "demo", ledger, fresh=True)
    again.ask(ask("Hello"))
    assert (ledger.requests, ledger.bytes_sent, again.exchanges[0].shared) == (2, 2 * body, False)


def test_what_an_endpoint_takes_becomes_the_limits_of_its_entry() -> None:
    def limits(*taken: bool) -> dict[str, Any]:
        ledger = ProbeLedger()
        talk = Talk(DemoEndpoint("openai-chat"), WIRES["openai-chat"], "demo", ledger, case="a.case")
        for what, value in (
            *(("tool_choices", value) for value in ("none", "required", "named")),
            *(("text_parts", value) for value in ("system", "user", "tool")),
            *(("output_formats", value) for value in ("json", "schema")),
            ("media", "image"),
            ("parallel_switch", ""),
            ("strict_tools", ""),
            ("developer_role", ""),
            ("thinking", "1"),
            ("tool_result_media", ""),
            ("system_midway", ""),
            ("cache_markers", ""),
            ("stop_max", "4"),
            ("max_tokens_field", "max_completion_tokens"),
            ("sampling", ""),
            ("settings", "metadata"),
            ("counts", ""),
        ):
            for each in taken:
                talk.learn(what, value, each, "so it said")
        entry = catalog_entry(
            "https://api.example.org/v1", "openai-chat", "m", ledger, date="2026-01-02", version="9"
        )
        return tomllib.loads(entry)

    everything = limits(True)
    assert everything["limits"] == {
        "tool_choices": ["auto", "none", "required", "named"],
        "text_parts": ["system", "user", "tool"],
        "output_formats": ["json", "schema"],
        "media": ["image"],
        "parallel_switch": True,
        "strict_tools": True,
        "developer_role": True,
        "thinking": "effort",
        "tool_result_media": "inside",
        "system_midway": "anywhere",
        "cache_markers": 4,
        "stop_max": 4,
    }
    assert everything["counts"] == everything["dialects"] == ["openai-chat"]
    assert (everything["title"], everything["base_url"]) == ("api-example-org", "https://api.example.org/v1")
    assert everything["api_key_env"] == ["API_EXAMPLE_ORG_API_KEY"]
    (source,) = everything["sources"]
    assert (source["url"], source["date"]) == ("https://api.example.org/v1", "2026-01-02")
    assert source["limits"] == list(everything["limits"])
    nothing = limits(False)
    assert nothing["limits"] == {
        "tool_choices": ["auto"],
        "text_parts": [],
        "output_formats": [],
        "media": [],
        "parallel_switch": False,
        "strict_tools": False,
        "developer_role": False,
        "thinking": "none",
        "tool_result_media": "beside",
        "system_midway": "no",
        "cache_markers": 0,
        "stop_max": 1,
        "max_tokens_field": "max_tokens",
        "sampling": [],
        "settings": [],
    }
    assert "counts" not in nothing
    unknown = limits()
    assert not unknown.keys() & {"limits", "sources", "counts"}


@pytest.mark.parametrize("dialect", WIRES)
def test_an_endpoint_that_counts_and_says_nothing_passes_no_case_about_texts(dialect: str) -> None:
    counting = "texts.system-stream"  # compares two counts
    cases = [case for case in cases_for(dialect) if case.theme == "texts" and case.id != counting]
    endpoint = BrokenEndpoint(dialect, sent(_SILENT))
    findings = list(run_cases(cases, endpoint, WIRES[dialect], "demo", ProbeLedger(), wait=lambda _: None))
    assert [finding.id for finding in findings if finding.verdict == "pass"] == []


def test_usage_before_the_end_of_a_stream_fails_its_case() -> None:
    early = swap(('"usage":null', '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}'))
    case = next(case for case in CASES if case.id == "streams.usage")
    endpoint = BrokenEndpoint("openai-chat", sent(early))
    (finding,) = run_cases([case], endpoint, WIRES["openai-chat"], "demo", ProbeLedger())
    assert finding.verdict == "fail", finding.words


ERRORS: Final[dict[str, dict[int, tuple[str, ...]]]] = {
    "anthropic": {
        400: ("invalid_request_error",),
        401: ("authentication_error",),
        403: ("permission_error",),
        404: ("not_found_error",),
        413: ("request_too_large",),
        429: ("rate_limit_error",),
        529: ("overloaded_error",),
        418: ("anything",),
    },
    "gemini": {
        400: ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"),
        401: ("UNAUTHENTICATED",),
        403: ("PERMISSION_DENIED",),
        404: ("NOT_FOUND",),
        429: ("RESOURCE_EXHAUSTED",),
        500: ("INTERNAL",),
        503: ("UNAVAILABLE",),
        418: ("anything",),
    },
}


@rows(
    ("dialect", "status", "kind"),
    [(name, status, kind) for name, by in ERRORS.items() for status, kinds in by.items() for kind in kinds],
)
def test_an_error_has_the_kind_of_its_status(dialect: str, status: int, kind: str) -> None:
    def error(kind: str) -> dict[str, Any]:
        if dialect == "anthropic":
            return {"type": "error", "error": {"type": kind, "message": "no"}}
        return {"error": {"code": status, "status": kind, "message": "no"}}

    wire = WIRES[dialect]
    assert wire.error(error(kind), status) == (kind, "no")
    if kind != "anything":
        with pytest.raises(Broken):
            wire.error(error("anything"), status)


def test_an_error_of_gemini_repeats_its_status() -> None:
    with pytest.raises(Broken, match="the HTTP status, 404"):
        WIRES["gemini"].error({"error": {"code": 400, "status": "NOT_FOUND", "message": "no"}}, 404)


def test_an_error_of_gemini_may_be_alone_in_a_list() -> None:
    error = {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no"}}
    assert (
        WIRES["gemini"].error([error], 400) == WIRES["gemini"].error(error, 400) == ("INVALID_ARGUMENT", "no")
    )


class PagedEndpoint:
    """Lists these models, one on each page; `again`: the first page, whatever is requested."""

    def __init__(self, dialect: str, names: list[str], *, again: bool = False) -> None:
        self._dialect, self._names, self._again = dialect, names, again
        self.paths: list[str] = []

    def ask(self, ask: EndpointRequest) -> Got:
        self.paths.append(ask.path)
        after = unquote(ask.path.partition("=")[2])
        at = self._names.index(after) + 1 if after and not self._again else 0
        name, more = self._names[at], at + 1 < len(self._names)
        entry: dict[str, Any]
        document: dict[str, Any]
        if self._dialect == "gemini":
            entry = {"name": f"models/{name}", "supportedGenerationMethods": ["generateContent"]}
            document = {"models": [entry], **({"nextPageToken": name} if more else {})}
        else:
            entry = {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
            document = {"data": [entry], "has_more": more, "first_id": name, "last_id": name}
        return Got(200, {"content-type": "application/json"}, json.dumps(document).encode())


@rows(("dialect", "query"), [("anthropic", "after_id"), ("gemini", "pageToken")])
def test_a_model_is_listed_on_any_page(dialect: str, query: str) -> None:
    case = next(case for case in CASES if case.id == "lists.listed")
    names = ["vendor/one", "two", "three"]

    def run(model: str, *, again: bool = False) -> list[str]:
        endpoint = PagedEndpoint(dialect, names, again=again)
        talk = Talk(endpoint, WIRES[dialect], model, ProbeLedger())
        case.check(talk)
        return [path.partition("?")[2] for path in endpoint.paths]

    assert run("vendor/one") == [""]
    assert run("three") == ["", f"{query}=vendor%2Fone", f"{query}=two"]
    for again, count in ((False, 3), (True, 1)):
        with pytest.raises(Broken, match=f"four is not one of the {count} listed models"):
            run("four", again=again)


def test_a_feature_that_a_dialect_lacks_does_not_apply_and_nothing_is_sent() -> None:
    lacking = [case for case in cases_for("ollama") if "ollama" in case.lacking]
    assert {"tools.required", "usage.total", "lists.count"} <= {case.id for case in lacking}
    ledger = ProbeLedger()
    findings = list(run_cases(lacking, DemoEndpoint("ollama"), WIRES["ollama"], "demo", ledger))
    assert [(each.verdict, each.words) for each in findings] == [
        ("not applicable", case.lacking["ollama"]) for case in lacking
    ]
    assert ledger.requests == 0


def test_no_tool_choice_is_learned_of_a_dialect_without_one() -> None:
    ledger = ProbeLedger()
    case = next(case for case in CASES if case.id == "tools.names")
    (finding,) = run_cases([case], DemoEndpoint("ollama"), WIRES["ollama"], "demo", ledger)
    assert finding.verdict == "pass"
    assert "tool_choices" not in ledger.facts


def test_calls_of_ollama_need_no_ids() -> None:
    """Servers before 0.12.10 send none: results are paired by name and place."""
    wanted = {"tools.id", "tools.parallel", "results.several", "results.result"}
    cases = [case for case in CASES if case.id in wanted]
    endpoint = BrokenEndpoint("ollama", sent(swap((r'"id":"call_demo[0-9a-f]+",', ""))))
    findings = run_cases(cases, endpoint, WIRES["ollama"], "demo", ProbeLedger())
    assert {each.id: each.verdict for each in findings} == dict.fromkeys(wanted, "pass") | {
        "tools.id": "not applicable"
    }


def test_calls_of_ollama_without_an_index_are_not_judged_by_it() -> None:
    case = next(case for case in CASES if case.id == "streams.indexes")
    endpoint = BrokenEndpoint("ollama", sent(swap((r'"index":0,', ""))))
    (finding,) = run_cases([case], endpoint, WIRES["ollama"], "demo", ProbeLedger())
    assert (finding.verdict, finding.words) == ("not applicable", "its calls have no index")


def test_a_model_of_ollama_is_listed_with_the_tag_that_says_nothing() -> None:
    entry = {"modified_at": "2026-01-01T00:00:00Z", "size": 0, "digest": "", "details": {}}
    names = ["one:latest", "two:7b"]
    document = {"models": [{**entry, "name": name, "model": name} for name in names]}
    assert WIRES["ollama"].models(document) == ["one:latest", "one", "two:7b"]
