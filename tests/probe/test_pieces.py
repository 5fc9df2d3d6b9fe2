"""Pieces of the probe without an endpoint: addresses, talks, readers, runs, reports."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.tiers import rows
from wireglot.http.transport import Timeouts, TransportFault, TransportProblem
from wireglot.probe import endpoint as endpoints
from wireglot.probe.cases import answers as answer_cases
from wireglot.probe.cases import errors
from wireglot.probe.endpoint import EndpointRequest, Got, NoReply, UnusableEndpoint, patience, root_of
from wireglot.probe.question import ask as question
from wireglot.probe.reply import At, Broken, Inconclusive, NotApplicable, ProbeFrame, ProbeReply, frames_of
from wireglot.probe.report import (
    ProbeReport,
    Score,
    catalog_entry,
    page,
    rows_of,
    score_of,
    tally,
)
from wireglot.probe.run import (
    CASES,
    WIRES,
    DemoEndpoint,
    ProbeFinding,
    Rehearsal,
    cases_for,
    rehearse,
    run_cases,
)
from wireglot.probe.run import Part as RehearsedPart
from wireglot.probe.talk import ProbeCase, ProbeExchange, ProbeLedger, Refused, Talk

# --- addresses

ROOTS = [
    ("http://h", "anthropic", "http://h"),
    ("http://h/", "openai-chat", "http://h/v1"),
    ("http://h", "openai-responses", "http://h/v1"),
    ("http://h:1", "gemini", "http://h:1/v1beta"),
    ("https://h/v1/", "anthropic", "https://h"),
    ("https://h/x/v1", "openai-chat", "https://h/x/v1"),
    ("http://[::1]:8/a b", "openai-chat", "http://[::1]:8/a%20b"),
    ("http://a-b_c.example", "anthropic", "http://a-b_c.example"),
    ("http://h:11434", "ollama", "http://h:11434"),
    ("https://h/api", "ollama", "https://h"),
    ("http://h", "gemini-interactions", "http://h/v1beta"),
]


@rows("url, dialect, root", ROOTS)
def test_a_base_url_gets_the_usual_path_of_its_dialect(url, dialect, root):
    assert root_of(url, dialect) == root


@rows("url", ["h", "ftp://h", "http://", "http://h:x", "http://ü", "http://a b", "http://h?x", "http://h#x",
              "http://u@h", "http://u:p@h", "http://[::1"])  # fmt: skip
def test_another_base_url_cannot_be_used(url):
    with pytest.raises(UnusableEndpoint, match=r"BASE_URL: (expected|must not)"):
        root_of(url, "anthropic")


WORDS: dict[TransportProblem, str] = {
    "dns": "unknown host name",
    "connect": "connection refused",
    "tls": "TLS handshake failed: text",
    "first_byte_timeout": "timed out",
    "idle_timeout": "timed out",
    "total_timeout": "timed out",
    "broken": "the connection was closed too early",
    "protocol": "text",
    "too_large": "text",
    "busy": "text",
}


@rows("problem", WORDS)
def test_why_nothing_came_back_is_said_in_words(problem):
    assert endpoints._words(TransportFault(problem, "text")) == WORDS[problem]


def test_an_answer_may_be_silent_for_two_minutes():
    assert patience() == Timeouts(connect=10.0, tls=10.0, first_byte=120.0, idle=120.0, total=300.0)
    assert patience(2).total == 5.0


# --- talks


class Scripted:
    """Answers one after another; an exception is raised."""

    def __init__(self, *answers: Got | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[EndpointRequest] = []

    def ask(self, ask: EndpointRequest) -> Got:
        self.asked.append(ask)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def got(status: int = 200, body: str | None = None, **headers: str) -> Got:
    return Got(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, (body or CHAT).encode()
    )


CHAT = (
    '{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":'
    '{"role":"assistant","content":"hi","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":'
    '{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}'
)
ERROR = '{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'
WIRE = WIRES["openai-chat"]
QUESTION = question("Hello")


def talking(*answers: Got | Exception, fresh: bool = False) -> tuple[Talk, Scripted, ProbeLedger]:
    endpoint, ledger = Scripted(*answers), ProbeLedger()
    return Talk(endpoint, WIRE, "a model", ledger, case="theme.name", fresh=fresh), endpoint, ledger


def test_an_answer_is_counted_and_the_same_question_is_not_asked_twice():
    talk, endpoint, ledger = talking(got(content_type="application/json", x_wireglot_losses="image,audio"))
    for _ in range(2):
        assert talk.ask(QUESTION).text == "hi"
    (asked,) = endpoint.asked
    assert (asked.method, asked.path, asked.key) == ("POST", "/chat/completions", None)
    assert ("content-type", "application/json") in asked.headers
    assert asked.headers[-1] == ("user-agent", "wireglot-probe")
    assert (ledger.requests, ledger.input, ledger.output) == (1, 3, 4)
    assert ledger.bytes_sent == len(asked.body)
    assert [each.shared for each in talk.exchanges] == [False, True]
    first = talk.exchanges[0]
    assert (first.status, first.kind, first.left_out) == (200, "application/json", ("image", "audio"))
    again, endpoint, ledger = talking(got(), got(), fresh=True)
    again.ask(QUESTION)
    again.ask(QUESTION)
    assert (len(endpoint.asked), ledger.requests, ledger.input) == (2, 2, 6)


@rows("status, body, kind, words", [
    (400, ERROR, Refused, "status 400 (invalid_request_error): no"),
    (501, ERROR, Refused, "status 501 (invalid_request_error): no"),
    (500, ERROR, Broken, "status 500 (invalid_request_error): no"),
    (429, ERROR, Inconclusive, "status 429: busy"),
    (408, ERROR, Inconclusive, "status 408: busy"),
    (503, ERROR, Inconclusive, "status 503: busy"),
    (529, ERROR, Inconclusive, "status 529: busy"),
    (400, "<html>", Broken, "status 400, and the body is not JSON"),
    (200, "<html>", Broken, "status 200, and the body is not JSON"),
])  # fmt: skip
def test_what_is_no_answer_is_told_by_its_status(status, body, kind, words):
    talk, _, ledger = talking(got(status, body))
    with pytest.raises(kind) as caught:
        talk.ask(QUESTION)
    assert str(caught.value).startswith(words)
    assert type(caught.value) is kind
    assert bool(ledger.known) is (status not in (408, 429, 503, 529))


def test_nothing_that_comes_back_is_inconclusive():
    talk, _, ledger = talking(NoReply("connection refused"))
    with pytest.raises(Inconclusive, match="no answer: connection refused"):
        talk.ask(QUESTION)
    (kept,) = talk.exchanges
    assert (kept.status, kept.answer, kept.kind) == (0, "connection refused", "")
    assert ledger.requests == 1


def test_a_stream_without_an_event_is_broken():
    for answer, words in (
        (got(body=" "), "(no type)"),
        (got(body=": ping\n\n", content_type="a/b"), "(a/b)"),
        (got(body="{}"), "b'{}'"),
    ):
        talk, _, _ = talking(answer)
        with pytest.raises(Broken, match=re.escape(words)):
            talk.stream(QUESTION)


@rows("status, applies", [(400, False), (404, False), (422, False), (501, False), (401, True), (403, True)])
def test_an_optional_feature_does_not_apply_where_it_is_properly_rejected(status, applies):
    talk, _, ledger = talking(got(status, ERROR))
    with pytest.raises(Refused if applies else NotApplicable):
        talk.optional(QUESTION, "media", "image")
    assert ledger.facts == (
        {}
        if applies
        else {"media": {"image": (False, f"theme.name: status {status} (invalid_request_error): no")}}
    )
    talk, _, ledger = talking(got())
    talk.optional(QUESTION, "media", "image")
    assert ledger.facts == {"media": {"image": (True, "theme.name: the request was accepted")}}
    talk.unlearn("it had no effect")
    assert ledger.facts == {"media": {"image": (False, "theme.name: it had no effect")}}


def test_what_is_learned_by_another_case_stays():
    talk, _, ledger = talking()
    ledger.facts["x"] = {"": (True, "other.case: yes")}
    talk.unlearn("no")
    talk.learn("", "", True, "nothing")
    assert ledger.facts == {"x": {"": (True, "other.case: yes")}}
    talk.learn("y", "v", True, "h" * 300)
    assert ledger.facts["y"] == {"v": (True, "theme.name: " + "h" * 200)}


def test_a_refusal_must_have_one_of_the_statuses():
    talk, _, _ = talking()
    assert talk.refuses(got(400, ERROR), 400, 422).status == 400
    with pytest.raises(Broken, match="expected status 401 or 403, found status 400"):
        talk.refuses(got(400, ERROR), 401, 403)
    with pytest.raises(Broken, match="the invalid request was accepted"):
        talk.refusal(got())
    assert len(str(Refused(400, "k", "m" * 400))) == len("status 400 (k): ") + 300


def test_evidence_is_kept_up_to_4000_bytes_and_limits_of_answers_are_added_up():
    talk, _, ledger = talking(got(), got(), got(), got())
    talk.post(b"x" * 4000, "/a")
    talk.post(b"y" * 4001, "/a")
    assert talk.exchanges[0].request == "x" * 4000
    assert talk.exchanges[1].request == "y" * 4000 + "… (4,001 bytes)"
    assert ledger.most_output == 0
    talk.post(b'{"max_tokens": 7}', "/a")
    talk.post(b'{"max_tokens": 200000}', "/a")
    assert ledger.most_output == 7 + 100_000
    for wire, body in (
        ("gemini", b'{"generationConfig": {"maxOutputTokens": 20}}'),
        ("ollama", b'{"options": {"num_predict": 300}}'),
    ):
        Talk(Scripted(got()), WIRES[wire], "m", ledger).post(body, "/a")
    assert ledger.most_output == 7 + 100_000 + 20 + 300


def test_paths_hold_the_model_and_others_do_not_apply():
    talk = Talk(Scripted(), WIRES["gemini"], "a/b c", ProbeLedger())
    assert talk.path("generate") == "/models/a/b%20c:generateContent"
    assert talk.path("generate", "x") == "/models/x:generateContent"
    with pytest.raises(NotApplicable, match="no such path"):
        talk.path("nothing")
    talk, endpoint, _ = talking(got())
    talk.get("/models", key="")
    assert (endpoint.asked[0].method, endpoint.asked[0].body, endpoint.asked[0].key) == ("GET", b"", "")


# --- readers


def test_a_value_is_read_with_its_place():
    at = At({"a": [1, "x"], "n": None, "t": "", "k": -1})
    assert at.get("a").each()[1].path == "$.a[1]"
    assert at.get("n").value is None
    assert (at.has("a"), at.has("n"), at.has("z"), At([]).has("a")) == (True, False, False, False)
    for work, words in (
        (lambda: at.get("z"), "$: the field z is missing"),
        (lambda: at.get("a").object(), '$.a: expected an object, found [1,"x"]'),
        (lambda: at.get("t").each(), '$.t: expected a list, found ""'),
        (lambda: at.text("a"), "$.a: expected a text, found"),
        (lambda: at.text("t", filled=True), '$.t: expected a text that is not empty, found ""'),
        (lambda: at.number("k"), "$.k: expected an integer, found -1"),
        (lambda: At(True).number(), "$: expected an integer, found true"),
        (lambda: at.is_("t", "x", None), "$.t: expected 'x' or null, found"),
    ):
        check: Callable[[], object] = work
        with pytest.raises(Broken) as caught:
            check()
        assert str(caught.value).startswith(words)
    assert (at.text("t"), At(0).number(), at.maybe_number("n"), at.is_("n", "x", None)) == ("", 0, None, None)
    assert len(str(At("y" * 500).broken("z"))) == len("$: expected z, found ") + 120


def test_a_field_that_is_not_even_null_is_a_fault_of_its_own_kind():
    reply = ProbeReply()
    At({"a": None}).nullables(("a", "b"), reply)
    assert reply.faults == [("nulls", "$: the field b is missing (null is allowed)")]
    reply.require()
    reply.require_all()
    reply.faults += [("repeated", "r"), ("usage", "u"), ("calls", "c")]
    with pytest.raises(Broken, match="c"):
        reply.require()
    with pytest.raises(Broken, match="u"):
        reply.require_all()
    with pytest.raises(Broken, match="r"):
        reply.require("repeated")
    reply.require("order")
    reply.add_thought("t", "s1")
    reply.add_thought("u", "s2")
    assert reply.state == "s1s2"


@rows("body, frames", [
    (b"", []),
    (b"data: 1\r\n\r\ndata: 2", [ProbeFrame("", "1"), ProbeFrame("", "2")]),
    (b"event: a \ndata: 1\ndata: 2\n\n", [ProbeFrame("a", "1\n2")]),
    (b"data:1\n\n\n\n: c\nid: 5\n\n", [ProbeFrame("", "1", (), False), ProbeFrame("", "", (": c", "id: 5"))]),
    (b"data\n\ndata: 1\rdata:2\r\r", [ProbeFrame("", "", ("data",)), ProbeFrame("", "1\n2", (), False)]),
])  # fmt: skip
def test_a_stream_is_cut_into_frames_with_all_their_lines(body, frames):
    assert frames_of(body) == frames


def test_a_frame_may_be_no_json():
    assert ProbeFrame("", "[1]").document() == [1]
    assert ProbeFrame("", "[DONE]").document() is None


# --- runs


def case(check: Callable[[Talk], object], **fields: Any) -> ProbeCase:
    texts = {"title": "T", "sends": "S", "expects": "E", "why": "W", "id": "theme.name"}
    return ProbeCase(check=check, **{**texts, **fields})


def raising(*problems: Exception | None) -> Callable[[Talk], None]:
    left = list(problems)

    def check(talk: Talk) -> None:
        problem = left.pop(0)
        if problem is not None:
            raise problem

    return check


@rows("problem, level, verdict", [
    (None, "must", "pass"),
    (Broken("x"), "must", "fail"),
    (Broken("x"), "should", "warn"),
    (NotApplicable("x"), "must", "not applicable"),
])  # fmt: skip
def test_a_case_ends_as_its_check_does(problem, level, verdict):
    clock = iter([1.0, 2.5])
    found = list(
        run_cases(
            [case(raising(problem), level=level)],
            Scripted(),
            WIRE,
            "m",
            ProbeLedger(),
            wait=lambda _: pytest.fail("there is nothing to wait for"),
            clock=lambda: next(clock),
        )
    )
    words = "x" if problem else ""
    assert found == [ProbeFinding(id="theme.name", verdict=verdict, words=words, seconds=1.5)]


def test_what_is_inconclusive_is_tried_once_more_after_a_pause():
    for answers, waits in (([], []), ([NoReply("x")], [2.0]), ([got()], [])):
        waited: list[float] = []

        def check(talk: Talk, asks: bool = bool(answers)) -> None:
            if asks:
                talk.ask(QUESTION)
            raise Inconclusive("again")

        endpoint = Scripted(*answers, *answers)
        (finding,) = run_cases([case(check)], endpoint, WIRE, "m", ProbeLedger(), wait=waited.append)
        assert (finding.verdict, finding.tries, waited) == ("inconclusive", 2, waits)
        assert len(endpoint.asked) == 2 * len(answers), "the second time it is asked again"
    (finding,) = run_cases([case(raising(Inconclusive("x"), None))], Scripted(), WIRE, "m", ProbeLedger())
    assert (finding.verdict, finding.tries) == ("pass", 2)


def test_what_an_answer_says_it_left_out_excuses_a_case():
    def check(talk: Talk) -> None:
        talk.ask(QUESTION)
        raise Broken("x")

    for excuses, verdict in ((("image", "other"), "not applicable"), (("other",), "fail")):
        (found,) = run_cases(
            [case(check, excuses=excuses)],
            Scripted(got(x_wireglot_losses="audio,image")),
            WIRE,
            "m",
            ProbeLedger(),
        )
        assert found.verdict == verdict
        assert (found.words == "x") is (verdict == "fail")


def test_what_cannot_be_afforded_is_not_run():
    (finding,) = run_cases(
        [case(raising())], Scripted(), WIRE, "m", ProbeLedger(), affordable=lambda each: f"no {each.id}"
    )
    assert finding == ProbeFinding(id="theme.name", verdict="not run", words="no theme.name", tries=0)


def test_a_rehearsal_adds_up_what_cases_may_cost():
    def check(talk: Talk) -> None:
        talk.post(b'{"max_tokens": 9}', "/a")

    found = rehearse([case(check), case(check)], WIRE, "m")
    assert found.parts == (RehearsedPart("theme.name", 1, 9, 9), RehearsedPart("theme.name", 0, 0, 0))
    whole = Rehearsal((), (RehearsedPart("a", 1, 2, 3), RehearsedPart("b", 10, 20, 30)))
    assert (whole.requests, whole.input, whole.output) == (11, 22, 33)
    nothing = DemoEndpoint("openai-chat").ask(EndpointRequest("POST", "/nothing", (), b"{}"))
    assert nothing.status == 404
    assert b"nothing at /v1/nothing" in nothing.body


def test_cases_are_those_of_their_dialects():
    assert list(WIRES) == [
        "anthropic",
        "openai-chat",
        "openai-responses",
        "gemini",
        "ollama",
        "gemini-interactions",
    ]
    for name in WIRES:
        assert cases_for(name) == tuple(each for each in CASES if name in (*each.dialects, *each.lacking))
    assert not [each.id for each in CASES if {*each.dialects} & each.lacking.keys()]
    assert {each.theme for each in CASES} >= {"answers", "streams", "tools", "errors"}


# --- reports

MUST, SHOULD = case(raising(), id="answers.a"), case(raising(), id="answers.b", level="should")


def finding(id: str, verdict: Any, **more: Any) -> ProbeFinding:
    return ProbeFinding(id=id, verdict=verdict, **more)


@rows("verdicts, score", [
    (("pass", "pass"), Score(2, 2, 100.0)),
    (("pass", "warn"), Score(1, 2, 75.0)),
    (("fail", "pass"), Score(1, 2, 25.0)),
    (("pass", "not applicable"), Score(1, 1, 100.0)),
    (("inconclusive", "not run"), Score(0, 0, 0.0)),
])  # fmt: skip
def test_what_must_hold_weighs_three_times(verdicts, score):
    findings = [finding("answers.a", verdicts[0]), finding("answers.b", verdicts[1])]
    assert score_of((MUST, SHOULD), findings) == score
    assert sum(tally(findings).values()) == 2
    assert list(tally([])) == ["pass", "fail", "warn", "not applicable", "inconclusive", "not run"]


def exchange(secret: str = "") -> ProbeExchange:
    return ProbeExchange(
        method="POST",
        path=f"/p?{secret}",
        request=f"<r>{secret}",
        status=200,
        kind=f"a/b{secret}",
        answer=f"a{secret}",
        left_out=(secret,),
    )


def test_the_key_is_in_no_part_of_a_report():
    key = "Zq7rT0pL9vXw3KfJm2Hd8Bn5"
    found = finding(
        "answers.a", "fail", words=f"says {key}", seconds=1.5, tries=2, exchanges=(exchange(key),)
    )
    (made,) = rows_of((MUST, SHOULD), [found], key)
    assert key not in str(msgspec.to_builtins(made))
    assert (made.id, made.theme, made.title, made.level, made.cost) == (
        "answers.a",
        "answers",
        "T",
        "must",
        "small",
    )
    assert (made.sends, made.expects, made.why) == ("S", "E", "W")
    assert (made.verdict, made.words, made.seconds, made.tries) == ("fail", "says [redacted]", 1.5, 2)
    (plain,) = rows_of((MUST,), [found], "")
    assert key in plain.words


def report(**fields: Any) -> ProbeReport:
    findings = [
        finding("answers.a", "fail", words="<b>bad", exchanges=(exchange(),)),
        finding("answers.b", "not run"),
    ]
    given: dict[str, Any] = {
        "wireglot": "9.9",
        "endpoint": "http://<h>",
        "dialect": "gemini",
        "model": "m&m",
        "date": "2026-01-02",
        "complete": True,
        "score": Score(1, 3, 33.3),
        "verdicts": tally(findings),
        "requests": 1234,
        "input_tokens": 5678,
        "output_tokens": 9012,
        "catalog": "<toml>",
        "cases": rows_of((MUST, SHOULD), findings, ""),
    }
    return ProbeReport(**{**given, **fields})


def test_a_page_shows_all_of_a_report_and_runs_nothing():
    html = page(report())
    assert report().failed == 1
    for text in (
        "<title>gemini at http://&lt;h&gt;</title>",
        "<h1>gemini at http://&lt;h&gt;</h1>",
        "<p>Model m&amp;m, 2026-01-02, wireglot 9.9.</p>",
        "<strong>1 of 3 applicable cases passed: ",
        "33.3 %</strong> (1,234 requests, 5,678 tokens in, ",
        "9,012 out).</p>",
        "content=\"default-src 'none'; style-src 'unsafe-inline'\"",
        '<li class="v fail">✗ 1 fail</li>',
        '<li class="v pass">✓ 0 pass</li>',
        '<li class="v warn">! 0 warn</li>',
        '<li class="v other">– 0 not applicable</li>',
        '<li class="v other">? 0 inconclusive</li>',
        '<li class="v other">· 1 not run</li>',
        '<li class="fail"><a href="#answers.a">answers.a</a> &lt;b&gt;bad</li>',
        '<tr id="answers.a"><td class="v fail">✗ fail</td>',
        "<td><strong>T</strong> <code>answers.a</code> (must)<p>&lt;b&gt;bad</p>",
        "<p>Sends: S. Expects: E. Why: W.</p>",
        "<p><code>POST /p?</code></p><pre>&lt;r&gt;</pre><p>status 200 a/b</p><pre>a</pre>",
        '<tr id="answers.b"><td class="v other">· not run</td>',
        "<pre>&lt;toml&gt;</pre></body></html>\n",
        '<h2 id="answers">',
    ):
        assert text in html, text
    assert html.count("<h2") == 2
    assert "interrupted" not in html
    assert "<strong>interrupted: cases are missing</strong>." in page(report(complete=False))
    assert "<ul><li" not in page(report(cases=()))
    silent = rows_of(
        (MUST,),
        [finding("answers.a", "pass", exchanges=(msgspec.structs.replace(exchange(), status=0),))],
        "",
    )
    assert "<p>no answer</p>" in page(report(cases=silent))


def learned(**facts: dict[str, tuple[bool, str]]) -> ProbeLedger:
    ledger = ProbeLedger()
    ledger.facts.update(facts)
    return ledger


def entry(
    ledger: ProbeLedger, url: str = "https://api.my-host.example/v1", dialect: str = "openai-chat"
) -> str:
    return catalog_entry(url, dialect, 'a"m', ledger, date="2026-01-02", version="9.9")


def test_a_catalog_entry_has_what_was_found():
    yes, no = (True, "c: yes"), (False, "c: no")
    text = entry(
        learned(
            counts={"": yes},
            tool_choices={"required": yes, "none": no, "odd": yes},
            media={"image": no},
            parallel_switch={"": yes},
            developer_role={"": no},
            thinking={"": no, "0": yes},
            tool_result_media={"": no},
            system_midway={"": yes},
            cache_markers={"": yes},
            stop_max={"4": no},
            max_tokens_field={"max_completion_tokens": no},
            sampling={"": no},
            settings={"metadata": yes},
        )
    )
    assert (
        text
        == """\
# src/wireglot_core/providers/catalog/api-my-host-example.toml, found by `wireglot probe` with "a\\"m".
# Check each line: one model was tested, once. (9.9, 2026-01-02)
title = "api-my-host-example"
dialects = ["openai-chat"]
base_url = "https://api.my-host.example/v1"
api_key_env = ["API_MY_HOST_EXAMPLE_API_KEY"]
counts = ["openai-chat"]  # c: yes

[[sources]]
url = "https://api.my-host.example/v1"
date = "2026-01-02"
status = "read"
says = "found by wireglot probe"
limits = ["tool_choices", "media", "parallel_switch", "developer_role", "thinking", "tool_result_media", \
"system_midway", "cache_markers", "stop_max", "max_tokens_field", "sampling"]

[limits]
# required: c: yes; none: c: no
tool_choices = ["auto", "required"]
# none: c
media = []
# c: yes
parallel_switch = true
# c: no
developer_role = false
# c: yes
thinking = "effort"
# c: no
tool_result_media = "beside"
# c: yes
system_midway = "anywhere"
# c: yes
cache_markers = 4
# c: no
stop_max = 1
# c: no
max_tokens_field = "max_tokens"
# c: no
sampling = []
""".replace("# none: c\n", "# image: c: no\n")
    )


def test_an_entry_without_anything_found_has_no_limits():
    text = entry(learned(counts={"": (False, "no")}), "http://10.0.0.1:8/")
    assert "limits" not in text
    assert "counts" not in text
    assert 'title = "10-0-0-1"' in text
    assert 'api_key_env = ["MINE_API_KEY"]' in text
    local = entry(learned(sampling={"": (False, "a\nb" + "x" * 300)}), "http://localhost:8")
    assert 'url = "https://docs.example.com"  # its documentation' in local
    assert f"# {('a b' + 'x' * 300)[:240]}\n" in local


@rows("dialect, way, style", [
    ("anthropic", "0", "adaptive"), ("anthropic", "1", "budget"), ("openai-chat", "1", "effort"),
    ("openai-responses", "0", "effort"), ("openai-responses", "1", "effort"), ("gemini", "0", "level"),
    ("gemini", "1", "budget"),
])  # fmt: skip
def test_the_way_to_think_is_that_of_the_dialect(dialect, way, style):
    assert f'thinking = "{style}"' in entry(learned(thinking={way: (True, "x")}), dialect=dialect)
    assert 'thinking = "none"' in entry(learned(thinking={"": (False, "x")}), dialect=dialect)


# --- single rules


@rows("text, stop, kind, words", [
    ("red, ", "end_turn", None, ""),
    ("red, ", "stop_sequence", None, ""),
    ("", "stop_sequence", None, ""),
    ("blue", "end_turn", Inconclusive, "the model said 'blue'"),
    ("red, yellow", "end_turn", Broken, "the text contains the stop sequence"),
    ("red, green", "end_turn", Broken, "the text continues after the stop sequence"),
    ("red", "max_tokens", Broken, "expected the stop reason 'stop_sequence', found 'max_tokens'"),
])  # fmt: skip
def test_an_answer_ends_before_the_stop_sequence(text, stop, kind, words):
    reply = ProbeReply(texts=[text], stop_word=stop)
    if kind is None:
        answer_cases._halted(reply, "anthropic")
    else:
        with pytest.raises(kind, match=words):
            answer_cases._halted(reply, "anthropic")
    for name, word in (("openai-chat", "stop"), ("gemini", "STOP")):
        answer_cases._halted(ProbeReply(texts=["red"], stop_word=word), name)


@rows("status, body, kind, fact", [
    (200, '{"input_tokens": 7}', None, (True, "c.n: it counts tokens")),
    (404, "{}", NotApplicable, (False, "c.n: status 404")),
    (405, "{}", NotApplicable, (False, "c.n: status 405")),
    (501, "{}", NotApplicable, (False, "c.n: status 501")),
    (400, '{"type":"error","error":{"type":"x","message":"no"}}', Broken, None),
])  # fmt: skip
def test_an_endpoint_may_not_count(status, body, kind, fact):
    ledger = ProbeLedger()
    talk = Talk(Scripted(got(status, body)), WIRES["anthropic"], "m", ledger, case="c.n")
    if kind is None:
        assert errors._count(talk, QUESTION) == 7
    else:
        with pytest.raises(kind):
            errors._count(talk, QUESTION)
    assert ledger.facts.get("counts", {}).get("") == fact
