"""How `make contract` compares two answers, and when it does not run."""

from __future__ import annotations

import json
import time

import pytest

from proofs.contract import __main__ as program
from proofs.contract.browser import Button, Page
from proofs.contract.cases import ANY, CASES, PROJECT, Case, Intended
from proofs.contract.compare import Difference, differences, facts
from proofs.contract.gateways import Answer, Gateway
from proofs.contract.results import Row
from proofs.contract.upstream import Received

GATEWAY = Gateway()
GATEWAY.url = "http://127.0.0.1:1"


def case(exact: bool = False, forwarded: bool = False, **differs: Intended) -> Case:
    return Case(
        "a case", lambda gateway: pytest.fail("not sent"), differs=differs, exact=exact, forwarded=forwarded
    )


def seen(
    body: object = None,
    status: int = 200,
    received: tuple[Received, ...] = (),
    of: Case | None = None,
    **headers,
):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, bytes):
        answer = Answer(status, named, body)
    else:
        answer = Answer(
            status, {"content-type": "application/json; charset=utf-8", **named}, json.dumps(body).encode()
        )
    return facts(GATEWAY, of or case(), answer, list(received))


def test_equal_answers_do_not_differ():
    one = seen({"id": "msg_1", "content": [{"text": "a"}]}, etag='"1"')
    assert list(differences(case(), one, dict(one))) == []


def test_each_member_and_each_header_of_the_contract_is_compared():
    theirs = seen({"limits": [{"percent": 81}]}, x_should_retry="false", server="a")
    ours = seen({"limits": [{"percent": 82}]}, server="b")
    assert list(differences(case(), theirs, ours)) == [
        Difference("body.limits.0.percent", "81", "82"),
        Difference("x-should-retry", "false", "none"),
    ]


def test_messages_and_tokens_are_compared_by_their_kind_unless_exact():
    theirs = {"error": {"message": "prompt is too long"}, "access_token": "a"}
    ours = {"error": {"message": "too long"}, "access_token": "b"}
    assert list(differences(case(), seen(theirs), seen(ours))) == []
    exact = case(exact=True)
    (found,) = differences(exact, seen(theirs, of=exact), seen(ours, of=exact))
    assert found.fact == "body.error.message"


def test_an_empty_message_is_a_difference():
    theirs, ours = seen({"error": {"message": "a"}}), seen({"error": {"message": ""}})
    assert list(differences(case(), theirs, ours)) == [Difference("body.error.message", "text", '""')]


def test_an_intended_difference_holds_for_its_value_only():
    listed = case(status=Intended("529", "why"))
    assert list(differences(listed, {"status": "502"}, {"status": "529"})) == [
        Difference("status", "502", "529", "status", "why")
    ]
    assert list(differences(listed, {"status": "502"}, {"status": "500"})) == [
        Difference("status", "502", "500", "status")
    ]


def test_an_intended_difference_that_does_not_occur_is_one():
    (found,) = differences(case(etag=Intended("x", "why")), {"status": "200"}, {"status": "200"})
    assert (found.fact, found.reason) == ("etag", "")
    assert list(differences(case(etag=Intended(ANY, "why")), {"status": "200"}, {"status": "200"})) == []


def test_of_another_status_only_the_error_and_what_is_listed_is_compared():
    theirs = {"status": "200", "body.id": "1"}
    ours = {"status": "404", "body.error.type": "x", "body.error.message": "text", "etag": "2"}
    found = differences(case(etag=Intended("2", "why")), theirs, ours)
    assert [each.fact for each in found] == ["body.error.type", "etag", "status"]


def test_upstream_ids_in_our_answer_are_a_difference_even_if_the_reference_has_them():
    answer = seen({"error": {"message": f"projects/{PROJECT} failed"}}, status=500)
    (found,) = differences(case(), answer, dict(answer))
    assert (found.ours, found.reason) == (PROJECT, "")
    hidden = seen({"error": {"message": "failed"}}, status=500)
    assert list(differences(case(), answer, hidden)) == []


def test_events_are_compared_without_blanks_pings_and_comments():
    theirs = b'event: a\ndata: {"type": "a", "n": 1}\n\nevent: ping\ndata: {"type": "ping"}\n\n'
    ours = b': hello\n\nevent: a\ndata: {"n":1,"type":"a"}\n\n'
    assert (
        list(
            differences(
                case(),
                seen(theirs, content_type="text/event-stream"),
                seen(ours, content_type="text/event-stream"),
            )
        )
        == []
    )
    (found,) = differences(
        case(),
        seen(theirs, content_type="text/event-stream"),
        seen(ours.replace(b"1", b"2"), content_type="text/event-stream"),
    )
    assert found.fact == "event.0"


def test_the_message_of_an_error_event_is_compared_by_its_kind():
    theirs = b'event: error\ndata: {"type": "error", "error": {"type": "api_error", "message": "a"}}\n\n'
    ours = theirs.replace(b'"a"}', b'"b"}, "request_id": "req_1"')
    seen_theirs, seen_ours = (seen(each, content_type="text/event-stream") for each in (theirs, ours))
    assert list(differences(case(), seen_theirs, seen_ours)) == []


def test_what_the_upstream_received_is_compared_where_a_case_says_so():
    forwarded = case(forwarded=True)
    theirs = Received("/v1/messages?beta=true", {"anthropic-beta": "a"}, b'{"x": 1, "y": 2}')
    ours = Received("/v1/messages", {"anthropic-beta": "a"}, b'{"y":2,"x":1}')
    found = differences(
        forwarded, seen({}, received=(theirs,), of=forwarded), seen({}, received=(ours,), of=forwarded)
    )
    assert list(found) == [Difference("upstream.query.beta", "true", "none")]


def test_retry_after_is_the_time_to_the_reset():
    reset = str(int(time.time()) + 5000)
    right = seen({}, retry_after="5000", anthropic_ratelimit_unified_reset=reset)
    wrong = seen({}, retry_after="7", anthropic_ratelimit_unified_reset=reset)
    assert right["retry-after"] == "seconds to the reset"
    assert wrong["retry-after"] == "7"


def test_a_row_differs_if_one_difference_is_not_intended():
    same = {"status": "200"}
    intended, wrong = Difference("etag", "1", "2", "etag", "why"), Difference("status", "200", "404")
    assert Row.of("s", "c", same, same, []).verdict == "same"
    assert Row.of("s", "c", same, same, [intended]).verdict == "differs as intended"
    row = Row.of("s", "c", same, {"status": "404", "body.error.type": '"not_found_error"'}, [intended, wrong])
    assert (row.verdict, row.ours) == ("differs", "404 not_found_error")


def test_every_case_has_a_name_of_its_own_in_its_section_and_every_difference_a_reason():
    for section, cases in CASES.items():
        names = [each.name for each in cases]
        assert len(set(names)) == len(names), section
        assert all(intended.reason for each in cases for intended in each.differs.values())


def test_the_forms_of_a_page_have_their_fields_and_buttons():
    page = Page(
        "http://127.0.0.1:1/device",
        200,
        '<form method="post" action="/device"><input name="user_code" value="A"><input type="checkbox" name="no">'
        '<button>Go</button><button formaction="/device/deny">Deny</button></form><input name="outside"><a href="/device/sign-in">in</a>',
    )
    (form,) = page.forms()
    assert page.links() == ["http://127.0.0.1:1/device/sign-in"]
    assert (form.method, form.action, form.fields) == ("post", "/device", {"user_code": "A"})
    assert form.buttons == [Button("", "", ""), Button("", "", "/device/deny")]


@pytest.mark.parametrize(
    ("missing", "reason"), [("claude", "no `claude` program"), ("postgres", "no PostgreSQL")]
)
def test_it_is_skipped_with_its_reason(missing, reason, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["contract"])
    found = "" if missing == "claude" else "/usr/bin/claude"
    monkeypatch.setattr("shutil.which", lambda *_, **__: found)
    monkeypatch.setattr(program, "find_postgres", lambda: None)
    assert program.main() == 0
    assert capsys.readouterr().out.startswith(f"skipped: there is {reason}")
