"""`wireglot translate --jsonl`, line by line."""

import json

import pytest

import wireglot
from tests.cli.running import request_case, response_case, run, run_lines, stream_case
from tests.tiers import rows
from wireglot.cli import translate_dataset
from wireglot.cli.examples import conversation
from wireglot.cli.translate_dataset import Defaults, translate_line


def test_each_kind_of_case_has_its_kind_of_result():
    request, response, stream = run_lines(cases=[request_case("a"), response_case("b"), stream_case("c")])
    assert list(request) == ["id", "ok", "body", "losses"]
    assert list(response) == ["id", "ok", "body", "losses"]
    assert list(stream) == ["id", "ok", "sse", "losses"]
    assert [result["id"] for result in (request, response, stream)] == ["a", "b", "c"]


def test_results_are_what_the_library_makes_of_the_cases():
    (result,) = run_lines(cases=[request_case()])
    rendered = wireglot.translate_request(
        conversation.document("anthropic", "request"), source="anthropic", target="openai-chat"
    )
    assert result["body"] == rendered.value
    assert [loss["feature"] for loss in result["losses"]] == [loss.feature for loss in rendered.losses]
    keys = ["path", "feature", "action", "detail", "grade", "document"]
    assert all(list(loss) == keys for loss in result["losses"])


@rows("identity", [None, 0, 1.5, "é", ["a"], {"b": None}, 2**70])
def test_any_id_comes_back_as_it_was(identity):
    good, bad = run_lines(cases=[request_case(identity), {"id": identity}])
    assert good["id"] == identity
    assert bad["id"] == identity


def test_a_bad_line_never_stops_the_rest():
    cases = [
        request_case(1),
        "{not json",
        b"\xff\xfe\x00",
        "[1, 2]",
        "[" * 100_000,
        {"id": 6},
        {"id": 7, "kind": "poem"},
        {"id": 8, "kind": "request", "from": "klingon", "to": "gemini", "body": {}},
        {"id": 9, "kind": "request", "from": "gemini", "body": {}},
        {"id": 10, "kind": "request", "from": "gemini", "to": "gemini"},
        {"id": 11, "kind": "request", "from": "gemini", "to": "gemini", "body": []},
        {"id": 12, "kind": "stream", "from": "gemini", "to": "gemini", "body": {}},
        {"id": 13, "kind": "response", "from": "gemini", "to": "gemini", "body": "text"},
        {**request_case(14), "provider": "acme"},
        {**request_case(15), "model": 7},
        {**response_case(16), "status": "500"},
        {**response_case(17), "request": []},
        request_case(18),
    ]
    results = run_lines(cases=cases)
    assert len(results) == len(cases)
    assert [result["ok"] for result in results] == [True] + [False] * 16 + [True]
    errors = [result["error"] for result in results if not result["ok"]]
    assert {error["type"] for error in errors} == {"bad_line"}
    assert [error["path"] for error in errors] == [
        "$",
        "$",
        "$",
        "$",
        "$.kind",
        "$.kind",
        "$.from",
        "$.to",
        "$.body",
        "$.body",
        "$.sse",
        "$.body",
        "$.provider",
        "$.model",
        "$.status",
        "$.request",
    ]
    assert all("expected " in error["message"] for error in errors)
    assert errors[0]["message"].startswith("line 2: ")


def test_blank_lines_are_skipped_and_still_count():
    done = run("translate", "--jsonl", given=b"\n  \n\r\n{\n")
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["error"]["message"].startswith("line 4: ")


def test_lines_may_end_in_crlf_and_the_last_one_in_nothing():
    line = json.dumps(request_case()).encode()
    done = run("translate", "--jsonl", given=line + b"\r\n" + line)
    assert [json.loads(result)["ok"] for result in done.stdout.splitlines()] == [True, True]


def test_a_fault_says_whose_it_is():
    bad_request = request_case(1)
    bad_request["body"] = {"model": "m", "max_tokens": 1, "messages": [{"role": 7}]}
    bad_response = response_case(2, "anthropic", "gemini")
    bad_response["body"] = {"type": "message", "content": 7}
    bad_asked = response_case(3, request={"model": "m", "max_tokens": 1, "messages": 7})
    results = run_lines(cases=[bad_request, bad_response, bad_asked])
    assert [result["error"]["type"] for result in results] == [
        "client_fault",
        "upstream_fault",
        "client_fault",
    ]
    assert [result["error"]["path"] for result in results] == [
        "$.messages[0].role",
        "$.content",
        "$.messages",
    ]


def test_strict_makes_a_loss_an_error():
    lossy = request_case(1, "openai-chat", "anthropic")
    lossy["body"]["seed"] = 7
    plain = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    cases = [lossy, {**request_case(2), "body": plain}]
    assert [result["ok"] for result in run_lines(cases=cases)] == [True, True]
    refused, passed = run_lines("--strict", cases=cases)
    assert refused["error"]["type"] == "strict_loss"
    assert refused["error"]["path"].startswith("$.")
    assert passed["ok"]


def test_strict_holds_for_streams():
    frame = 'data: {"candidates":[{"content":{"role":"model","parts":[{"somethingNew":{"a":1}}]},"finishReason":"STOP"}]}\n\n'
    (refused,) = run_lines("--strict", cases=[{**stream_case(), "sse": frame}])
    assert refused["error"]["type"] == "strict_loss"


@pytest.mark.parametrize("source", list(conversation.MODELS))
def test_splits_cut_the_bytes_anywhere_and_change_nothing(source):
    target = "gemini" if source == "anthropic" else "anthropic"
    whole = stream_case(0, source, target)
    size = len(whole["sse"].encode())
    cases = [
        whole,
        {**whole, "splits": []},
        {**whole, "splits": [size // 2]},
        {**whole, "splits": [0, 1, 1, size]},
        {**whole, "splits": list(range(1, size))},
    ]
    results = run_lines(cases=cases)
    assert [result.get("fed_chunks") for result in results] == [None, 1, 2, 5, size]
    assert len({result["sse"] for result in results}) == 1


def test_a_split_may_fall_inside_a_character():
    case = stream_case(
        sse='data: {"candidates":[{"content":{"parts":[{"text":"größer 👩‍💻"}]},"finishReason":"STOP"}]}\n\n'
    )
    size = len(case["sse"].encode())
    assert size > len(case["sse"])
    (result,) = run_lines(cases=[{**case, "splits": list(range(size))}])
    assert result["fed_chunks"] == size + 1
    assert "größer 👩‍💻" in result["sse"]


@rows("splits", [[5, 3], [-1], [10**9], ["1"], [1.5], [True], [None]])
def test_splits_that_are_no_ascending_offsets_are_refused(splits):
    (result,) = run_lines(cases=[stream_case(splits=splits)])
    assert result["error"]["type"] == "bad_line"
    assert result["error"]["path"] == f"$.splits[{len(splits) - 1}]"
    assert "expected byte offsets in ascending order" in result["error"]["message"]


def test_splits_that_are_no_array_are_refused():
    (result,) = run_lines(cases=[stream_case(splits=7)])
    assert result["error"]["path"] == "$.splits"


def test_a_stream_cut_short_is_translated_to_its_error_event():
    case = stream_case()
    case["sse"] = case["sse"][: len(case["sse"]) // 2]
    (result,) = run_lines(cases=[case])
    assert result["ok"]
    assert "event: error" in result["sse"]


def test_options_stand_in_where_a_line_has_none():
    case = {"id": 1, "kind": "request", "body": conversation.document("anthropic", "request")}
    options = ("--from", "anthropic", "--to", "openai-chat", "--model", "gpt-x")
    default, own = run_lines(*options, cases=[case, {**case, "to": "gemini", "model": "gemini-2.5-pro"}])
    assert default["body"]["model"] == "gpt-x"
    assert "contents" in own["body"]


def test_a_line_may_name_its_provider_model_and_request():
    body = {
        "model": "x",
        "max_tokens": 9,
        "temperature": 0.3,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    case = {**request_case(), "body": body, "provider": "kimi", "model": "kimi-k3"}
    asked = response_case(2, request=conversation.document("anthropic", "request"))
    result, _ = run_lines(cases=[case, asked])
    expected = wireglot.translate_request(
        body, source="anthropic", target="openai-chat", provider="kimi", model="kimi-k3"
    )
    assert result["body"] == expected.value


def test_a_response_line_may_carry_its_status():
    (result,) = run_lines(
        cases=[{**response_case(1, "openai-chat"), "body": {"detail": "busy"}, "status": 503}]
    )
    assert result["body"]["type"] == "error"


def test_an_error_wrapped_in_an_array_is_still_one():
    body = [{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}]
    (result,) = run_lines(cases=[{**response_case(), "body": body}])
    assert result["body"]["error"]["type"] == "rate_limit_error"


def test_half_a_surrogate_pair_is_no_reason_to_refuse_a_line():
    line = json.dumps(
        {
            **request_case(),
            "body": {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "X"}]},
        }
    )
    (result,) = run_lines(cases=[line.replace('"X"', '"\\ud83d"')])
    assert result["ok"]


def test_unknown_keys_of_a_line_are_ignored():
    (result,) = run_lines(cases=[{**request_case(), "note": "mine", "tags": [1]}])
    assert result["ok"]


def test_a_bug_of_ours_stops_one_line_only_and_quotes_nothing(monkeypatch):
    def broken(*_, **__):
        raise KeyError("a secret of the document")

    monkeypatch.setattr(translate_dataset, "translate_request", broken)
    result = translate_line(json.dumps(request_case("x")).encode(), 1, Defaults())
    answer = json.loads(result.line)
    assert answer["id"] == "x"
    assert answer["error"]["type"] == "internal_error"
    assert "KeyError" in answer["error"]["message"]
    assert "secret" not in answer["error"]["message"]


@rows("source", list(conversation.MODELS))
@rows("target", list(conversation.MODELS))
def test_the_examples_cross_in_every_direction(source, target):
    results = run_lines(
        cases=[
            request_case(1, source, target),
            response_case(2, source, target),
            stream_case(3, source, target),
        ]
    )
    assert all(result["ok"] for result in results)
