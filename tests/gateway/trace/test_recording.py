"""Bodies that are recorded: what is in a trace, and which exchanges have one."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.gateway.faults.faults_kit import BY_NAME, Answered, ask, post, provider, start
from tests.gateway.trace.trace_kit import Document, Stage, id_of, stage, text_of
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.gateway.trace import search
from wireglot.gateway.trace.recording import MAX_SHORTENED_BYTES
from wireglot.http.account import MemoryLease
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.traces.file import read_trace
from wireglot_core.traces.trace import Trace
from wireglot_core.wire.json import decode, encode

A, C, R, G = (BY_NAME[name] for name in ("anthropic", "openai-chat", "openai-responses", "gemini"))
FOUR = ("anthropic", "openai-chat", "openai-responses", "gemini")
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(24)).decode()


@pytest.fixture(scope="module")
def all_bodies() -> Iterator[Stage]:
    with stage() as made:
        yield made


@rows("upstream", FOUR)
@rows("name", FOUR)
def test_a_whole_answer_is_recorded_on_both_sides(all_bodies: Stage, name: str, upstream: str) -> None:
    """R-K-01, R-K-02, R-K-03"""
    client = BY_NAME[name]
    all_bodies.upstream.requests.clear()
    answer = ask(all_bodies.gateway, client, f"{upstream}-up/m1", "What is recorded?")
    trace = all_bodies.look.trace(id_of(answer))
    assert trace["format"] == "wireglot-trace/1"
    assert "What is recorded?" in trace["request"]["body"]
    assert trace["request"]["method"] == "POST"
    assert trace["answer"]["body"].encode() == answer.body
    assert trace["answer"]["status"] == 200
    (attempt,) = trace["attempts"]
    (asked,) = all_bodies.upstream.requests
    assert attempt["request"]["body"].encode() == asked.body
    assert attempt["request"]["url"].startswith(all_bodies.upstream.url)
    assert attempt["answer"]["status"] == 200
    assert decode(attempt["answer"]["body"])
    assert attempt["dialect"] == upstream
    assert attempt["limits"]
    steps = {step["name"] for step in trace["steps"]}  # but for those that took no time
    assert "first byte" in steps <= {"store", "queue", "translation", "first byte", "answer"}
    msgspec.convert(trace, Trace)


@rows("upstream", FOUR)
@rows("name", FOUR)
def test_a_stream_is_recorded_event_by_event_with_times(all_bodies: Stage, name: str, upstream: str) -> None:
    answer = ask(all_bodies.gateway, BY_NAME[name], f"{upstream}-up/m1", "Stream it.", stream=True)
    trace = all_bodies.look.trace(id_of(answer))
    assert text_of(trace["answer"]).encode() == answer.body
    assert "body" not in trace["answer"]
    for side in (trace["answer"], trace["attempts"][0]["answer"]):
        frames = side["frames"]
        assert len(frames) > 2
        assert [frame["ms"] for frame in frames] == sorted(frame["ms"] for frame in frames)
        assert all(frame["data"].endswith("\n\n") for frame in frames)
    assert trace["row"]["stream"]
    assert trace["answer"]["caused_by"] == "events"
    assert all(frame["causes"] for frame in trace["answer"]["frames"])


def test_an_array_is_linked_piece_by_piece(all_bodies: Stage) -> None:
    path = "/v1beta/models/{}:streamGenerateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "As an array."}]}]}
    for upstream in FOUR:
        answer = post(all_bodies.gateway.port, path.format(f"{upstream}-up%2Fm1"), encode(body))
        assert answer.body.startswith(b"[")
        reported = all_bodies.look.trace(id_of(answer))["answer"]
        assert reported["caused_by"] == "events"
        assert any(frame.get("causes") for frame in reported["frames"])


def test_bodies_are_reported_at_once_and_their_links_after_them(all_bodies: Stage) -> None:
    id = id_of(ask(all_bodies.gateway, A, "openai-chat-up/m1", "What becomes of this?", stream=True))
    whole = all_bodies.look.trace(id)
    recorded = all_bodies.look.get(f"exchanges/{id}?only=recorded")
    reported = all_bodies.look.get(f"exchanges/{id}?only=told")
    assert recorded["request"] == whole["request"]
    assert text_of(recorded["answer"]) == text_of(whole["answer"])
    assert "links" not in recorded["attempts"][0]
    assert reported["attempts"][0]["links"] == whole["attempts"][0]["links"] != []
    assert reported["answer"]["folded"] == whole["answer"]["folded"]
    assert len(reported["answer"]["frames"]) == len(whole["answer"]["frames"])
    assert "What becomes of this?" not in str(reported["request"])
    assert text_of(reported["answer"]) == ""


def test_a_wait_between_attempts_is_a_step_of_its_own() -> None:
    retry = "retry = {retries = 1, base = 0.3}\n"
    with stage(more=lambda upstream: provider("flaky", upstream, "gemini", retry)) as made:
        made.upstream.next(Behaviour(error=503, retry_after=0.5))
        steps = made.look.trace(id_of(ask(made.gateway, C, "flaky/m1")))["steps"]
    (waited,) = [step for step in steps if step["name"] == "retry wait"]
    assert waited["ended_ms"] - waited["began_ms"] >= 450, "the provider asked for half a second"
    after = [step["name"] for step in steps if step["began_ms"] >= waited["ended_ms"]]
    assert "first byte" in after
    others = [step for step in steps if step is not waited]
    assert all(s["ended_ms"] <= waited["began_ms"] or s["began_ms"] >= waited["ended_ms"] for s in others)


def test_every_attempt_is_recorded_with_its_own_answer() -> None:
    retry = "retry = {retries = 2, base = 0.01}\n"
    models = '[models]\n"both" = ["flaky/m1", "anthropic-up/m1"]\n'
    with stage(more=lambda upstream: provider("flaky", upstream, "gemini", retry) + models) as made:
        made.upstream.next(*[Behaviour(error=503)] * 3)
        trace = made.look.trace(id_of(ask(made.gateway, C, "both")))
    statuses = [(each["provider"], each["answer"]["status"]) for each in trace["attempts"]]
    assert statuses == [("flaky", 503)] * 3 + [("anthropic-up", 200)]
    assert all(each["error"] for each in trace["attempts"][:3])
    assert "error" not in trace["attempts"][3]
    assert trace["row"]["attempts"] == 4


def test_an_upstream_that_is_not_there_is_an_attempt_without_an_answer(all_bodies: Stage) -> None:
    all_bodies.upstream.next(Behaviour(fault="garbage"))
    answer = ask(all_bodies.gateway, A, "gemini-up/m1")
    trace = all_bodies.look.trace(id_of(answer))
    assert answer.status >= 500
    (attempt,) = trace["attempts"]
    assert "answer" not in attempt
    assert attempt["error"]
    assert trace["answer"]["body"].encode() == answer.body


def test_a_stream_that_breaks_off_is_recorded_as_far_as_it_came(all_bodies: Stage) -> None:
    all_bodies.upstream.next(Behaviour(fault="reset-midstream"))
    answer = ask(all_bodies.gateway, A, "openai-chat-up/m1", stream=True)
    trace = all_bodies.look.trace(id_of(answer))
    assert trace["row"]["state"] == "failed"
    assert text_of(trace["answer"]).encode() == answer.body
    assert len(trace["attempts"][0]["answer"]["frames"]) >= 1


def test_a_client_that_is_killed_leaves_what_it_got(all_bodies: Stage) -> None:
    gate = threading.Event()
    all_bodies.upstream.next(Behaviour(gate=gate, after=2))
    call = start(all_bodies.gateway, A, "anthropic-up/killed", stream=True)
    got = call.until(b"data:")
    call.leave(reset=True)
    row = wait_until(lambda: next(iter(all_bodies.look.rows("model=anthropic-up/killed&status=left")), None))
    gate.set()
    trace = all_bodies.look.trace(row["id"])
    assert text_of(trace["answer"]).encode().startswith(got)


def in_background(made: Stage, upstream: str, stream: bool) -> tuple[Document, Document, Answered]:
    """What was recorded of a request for a response in the background, and of that response."""
    asked = {"model": f"{upstream}-up/m1", "input": "Later.", "background": True, "stream": stream}
    answer = post(made.gateway.port, "/v1/responses", encode(asked))
    id = id_of(answer)
    found = wait_until(
        lambda: [row for row in made.look.rows() if row.get("belongs_to") == id and "state" in row]
    )
    return made.look.trace(id), made.look.trace(found[0]["id"]), answer


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", ["anthropic", "openai-responses"])
def test_a_response_in_the_background_is_recorded_beside_its_request(
    all_bodies: Stage, upstream: str, stream: bool
) -> None:
    asker, made, answer = in_background(all_bodies, upstream, stream)
    assert asker["attempts"] == []
    assert asker["notes"] == [f"its response was made in the background: {made['row']['id']}"]
    assert made["notes"] == [f"made in the background for {asker['row']['id']}"]
    (attempt,) = made["attempts"]
    assert attempt["answer"]["frames"]
    assert attempt["links"]
    final = decode(made["answer"]["frames"][-1]["data"].partition("data: ")[2])
    assert final["type"] == "response.completed"
    named = re.search(rb'"id":"(resp_[0-9a-f]+)"', answer.body)
    assert named is not None
    assert final["response"]["id"] == named[1].decode()
    if stream:
        assert text_of(made["answer"]).encode() == text_of(asker["answer"]).encode()


def test_a_response_in_the_background_that_fails_is_recorded_with_its_last_event() -> None:
    with stage('mode = "errors"') as made:
        made.upstream.next(Behaviour(error=400))
        asked = {"model": "anthropic-up/m1", "input": "Later.", "background": True}
        id = id_of(post(made.gateway.port, "/v1/responses", encode(asked)))
        (row,) = wait_until(lambda: made.look.rows("status=failed"))
        assert row["belongs_to"] == id
        trace = made.look.trace(row["id"])
        assert trace["attempts"][0]["answer"]["status"] == 400
        assert "response.failed" in trace["answer"]["frames"][-1]["data"]
        assert not made.look.over(id).get("recorded")


def test_a_response_in_the_background_without_room_leaves_no_recording(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(lease: MemoryLease, size: int) -> None:
        raise lease.refused()

    with stage() as made:
        traces = made.gateway.process.gateway.traces
        monkeypatch.setattr(MemoryLease, "take", full)
        asked = {"model": "anthropic-up/m1", "input": "Later.", "background": True}
        answer = post(made.gateway.port, "/v1/responses", encode(asked))
        assert answer.status == 503
        assert made.look.over(id_of(answer))["state"] != "running"
        assert not traces.running


def test_a_body_that_is_no_json_is_recorded_as_it_came(all_bodies: Stage) -> None:
    answer = post(all_bodies.gateway.port, "/v1/messages", b"\xff\xfe no text")
    trace = all_bodies.look.trace(id_of(answer))
    assert base64.b64decode(trace["request"]["body"]) == b"\xff\xfe no text"
    assert trace["request"]["base64"]
    assert trace["row"]["status"] == 400


def test_losses_are_reported_with_their_places(all_bodies: Stage) -> None:
    answer = ask(all_bodies.gateway, A, "openai-chat-up/m1", top_k=5)
    trace = all_bodies.look.trace(id_of(answer))
    (loss,) = [each for each in trace["losses"] if each["feature"] == "sampling.top_k"]
    assert loss["pointer"] == "/top_k"
    assert loss["grade"] in ("serious", "degraded", "harmless")


def test_parts_are_linked_to_what_became_of_them(all_bodies: Stage) -> None:
    answer = ask(all_bodies.gateway, A, "gemini-up/m1", "Link me.", system="Be brief.")
    (attempt,) = all_bodies.look.trace(id_of(answer))["attempts"]
    assert attempt["links"]
    assert attempt["summary"]


def test_an_exported_trace_is_one_file_that_reads_as_it_was(all_bodies: Stage) -> None:
    id = id_of(ask(all_bodies.gateway, C, "anthropic-up/m1"))
    shown = all_bodies.look.trace(id)
    file = all_bodies.look.raw(f"exchanges/{id}/export")
    assert file.headers["content-disposition"] == f'attachment; filename="{id}.wgtrace.json"'
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.headers["cross-origin-resource-policy"] == "same-origin"
    assert read_trace(file.body).row.id == id
    assert read_trace(file.body).request.body == shown["request"]["body"]


def test_a_picture_of_an_exchange_is_shown_by_its_bytes(all_bodies: Stage) -> None:
    source = {"type": "base64", "media_type": "text/html", "data": PNG}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "<svg onload=alert(1)>"}]
    answer = ask(all_bodies.gateway, A, "openai-chat-up/m1", messages=[{"role": "user", "content": content}])
    id = id_of(answer)
    all_bodies.look.trace(id)
    place = "/messages/0/content/0/source/data"
    picture = all_bodies.look.raw(f"exchanges/{id}/image?part=client&pointer={place}")
    assert (picture.status, picture.headers["content-type"]) == (200, "image/png")
    assert picture.headers["x-content-type-options"] == "nosniff"
    assert picture.headers["cross-origin-resource-policy"] == "same-origin"
    assert picture.headers["content-disposition"] == "inline"
    assert picture.body == base64.b64decode(PNG)
    for wrong in (
        "/messages/0/content/1/text",
        "/messages/9",
        "",
        "/model",
        "/messages/0/content/0/source/media_type",
    ):
        assert all_bodies.look.raw(f"exchanges/{id}/image?part=client&pointer={wrong}").status == 404


def test_bodies_are_searched(all_bodies: Stage) -> None:
    id = id_of(ask(all_bodies.gateway, R, "gemini-up/m1", "a needle in the hay, spelt Zwölfkämpfer"))
    all_bodies.look.trace(id)
    assert [row["id"] for row in all_bodies.look.rows("q=zw%C3%B6lfk%C3%A4mpfer")] == [id]
    assert not all_bodies.look.rows("q=nowhere-in-any-body")


def test_letters_written_by_their_numbers_are_found(all_bodies: Stage) -> None:
    """As Python's json writes all that is not ASCII."""
    said = json.dumps([{"role": "user", "content": "Gr\u00fcezi, Z\u00dcRICH"}])
    body = f'{{"model": "openai-chat-up/m1", "messages": {said}}}'
    assert "\\u00fc" in body
    id = id_of(post(all_bodies.gateway.port, "/v1/chat/completions", body.encode()))
    all_bodies.look.trace(id)
    for words in ("gr%C3%BCezi", "z%C3%BCrich"):
        assert [row["id"] for row in all_bodies.look.rows(f"q={words}")] == [id]


def test_a_search_of_many_bodies_goes_on_from_where_it_ended(
    all_bodies: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [
        id_of(ask(all_bodies.gateway, R, "gemini-up/pieces", word))
        for word in ("quokka 1", "-", "-", "-", "quokka 2", "-", "-")
    ]
    for id in ids:
        all_bodies.look.trace(id)
    monkeypatch.setattr(search, "_MAX_BODIES", 2)
    found, before, asked = list[str](), "", 0
    while True:
        query = "exchanges?q=quokka&model=gemini-up/pieces" + (f"&before={before}" if before else "")
        page = all_bodies.look.get(query)
        found += [row["id"] for row in page["rows"]]
        asked += 1
        before = page["next"]
        if before is None:
            break
    assert found == [ids[4], ids[0]]
    assert asked == 3  # words of a title are found without its body


def test_what_a_stream_says_in_many_events_is_found_and_so_are_quotes(all_bodies: Stage) -> None:
    prompt = 'She said "a sentence of many words, reported bit by bit".'
    id = id_of(ask(all_bodies.gateway, A, "openai-chat-up/reported", prompt, stream=True))
    answer = all_bodies.look.trace(id)["answer"]
    said = "".join(frame["data"] for frame in answer["frames"])
    words = answer["folded"]
    phrase = re.findall(r'"text":"([^"\\]{24,})', words)[0][:24].lower()
    assert phrase not in said.lower()
    found = all_bodies.look.rows(f"q={quote(phrase)}&model=openai-chat-up/reported")
    assert [row["id"] for row in found] == [id]
    quoted = quote('said "a sentence')
    assert [row["id"] for row in all_bodies.look.rows(f"q={quoted}&model=openai-chat-up/reported")] == [id]


def test_without_recording_there_is_no_file_and_no_trace() -> None:
    """C33"""
    with stage('mode = "off"') as made:
        id = id_of(ask(made.gateway, A, "gemini-up/m1"))
        made.look.over(id)
        assert "format" not in made.look.get(f"exchanges/{id}")
        assert made.look.raw(f"exchanges/{id}/export").status == 404
        assert made.look.raw("exchanges/req_unknown").status == 404
        assert not made.files


def recorded(made: Stage, model: str, **more: Any) -> bool:
    row: Document = made.look.over(id_of(ask(made.gateway, A, model, **more)))
    return bool(row.get("recorded"))


def test_mode_errors_keeps_what_failed_or_lost_something_serious() -> None:
    with stage('mode = "errors"') as made:
        assert not recorded(made, "openai-chat-up/m1")
        made.upstream.next(Behaviour(error=400))
        assert recorded(made, "openai-chat-up/m1")
        made.upstream.next(Behaviour(fault="error-midstream"))
        assert recorded(made, "openai-chat-up/m1", stream=True)
        assert recorded(made, "nobody/knows-it")
        tools = [{"type": "web_search_20250305", "name": "web_search"}]
        serious = ask(made.gateway, A, "openai-chat-up/m1", tools=tools)
        row = made.look.over(id_of(serious))
        assert bool(row.get("recorded")) == bool(row.get("losses", {}).get("serious"))
        assert made.gateway.process.gateway.traces.room.held == 0


def test_a_share_of_none_records_nothing_and_of_one_everything() -> None:
    with stage('mode = "all"\nsample = 0') as made:
        assert not recorded(made, "gemini-up/m1")
    with stage('mode = "all"\nsample = 1.0') as made:
        assert recorded(made, "gemini-up/m1")


def test_only_the_routes_that_are_named_are_recorded() -> None:
    with stage('mode = "all"\nroutes = ["gemini-up/*"]') as made:
        assert recorded(made, "gemini-up/m1")
        assert not recorded(made, "anthropic-up/m1")


def test_all_bodies_are_recorded_for_so_many_minutes_and_then_no_more() -> None:
    with stage('mode = "off"') as made:
        assert made.look.get("recording")["mode"] == "off"
        assert not recorded(made, "gemini-up/m1")
        reported = made.look.post("recording", {"minutes": 5})
        assert reported["mode"] == "all"
        assert reported["until"] > 0
        assert recorded(made, "gemini-up/m1")
        assert made.look.post("recording", {"minutes": 0})["mode"] == "off"
        assert not recorded(made, "gemini-up/m1")
        for wrong in (-1, "5", None, True, 100000):
            assert made.look.raw("recording", "POST", {"minutes": wrong}).status == 400


def test_a_new_configuration_turns_it_on_and_off() -> None:
    with stage('mode = "off"') as made:
        toml = (made.gateway.folder / "wireglot.toml").read_text()
        made.gateway.reconfigure(toml.replace('mode = "off"', 'mode = "all"'))
        made.gateway.wait_log(1, "reloaded")
        assert recorded(made, "gemini-up/m1")
        made.gateway.reconfigure(toml)
        made.gateway.wait_log(2, "reloaded")
        assert not recorded(made, "gemini-up/m1")


def test_of_a_long_body_its_beginning_is_kept() -> None:
    with stage('mode = "all"\nbody_bytes = 100') as made:
        text = "é" * 500
        trace = made.look.trace(id_of(ask(made.gateway, A, "gemini-up/m1", text)))
        assert trace["request"]["truncated"]
        assert trace["request"]["bytes"] > 1000
        assert len(trace["request"]["body"].encode()) <= 100
        assert "base64" not in trace["request"]


def test_a_long_request_keeps_its_end_its_title_and_its_links_and_long_strings_are_cut() -> None:
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(300_000)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": picture}
    shown = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]
    messages = [
        {"role": "user", "content": shown},
        {"role": "assistant", "content": "It is dark."},
        {"role": "user", "content": "Say so in one word."},
    ]
    with stage('mode = "all"\nbody_bytes = 50_000') as made:
        body = json.dumps({"model": "openai-chat-up/m1", "max_tokens": 9, "messages": messages}).encode()
        trace = made.look.trace(id_of(post(made.gateway.port, "/v1/messages", body)))
        (attempt,) = trace["attempts"]
        for side in (trace["request"], attempt["request"]):
            assert (side["truncated"], side["shortened"]) == (True, 1)
            assert len(side["body"]) <= 50_000 < side["bytes"]
            assert json.loads(side["body"])["messages"][-1]["content"] == "Say so in one word."
        assert trace["row"]["title"] == "Say so in one word."
        linked = {link["client"]: link["upstream"] for link in attempt["links"]}
        assert linked["/messages/2"] == "/messages/2"
        assert trace.get("notes", []) == []
        # What was sent is not known any more: it is not sent again.
        sent = {"id": trace["row"]["id"], "to": "openai-chat-up/m1"}
        assert made.look.raw("replay", "POST", sent).status == 404


def test_a_long_answer_keeps_its_end_and_its_links_and_one_that_is_far_too_long_its_beginning() -> None:
    with stage('mode = "all"\nbody_bytes = 50_000') as made:

        def answered(picture_bytes: int) -> dict[str, Any]:
            picture = base64.b64encode(bytes(picture_bytes)).decode()
            parts = [{"inlineData": {"mimeType": "image/png", "data": picture}}, {"text": "Here it is."}]
            content = {"role": "model", "parts": parts}
            document = {
                "candidates": [{"content": content, "finishReason": "STOP"}],
                "modelVersion": "the end",
            }
            made.upstream.next(Behaviour(body=json.dumps(document).encode()))
            trace = made.look.trace(id_of(ask(made.gateway, A, "gemini-up/m1", "Draw")))
            attempt: dict[str, Any] = trace["attempts"][-1]
            return attempt

        attempt = answered(300_000)
        answer = attempt["answer"]
        assert (answer["truncated"], answer["shortened"]) == (True, 1)
        assert len(answer["body"]) <= 50_000 < answer["bytes"]
        assert json.loads(answer["body"])["modelVersion"] == "the end"
        assert "/candidates/0/content/parts/1" in [link["upstream"] for link in attempt["answer_links"]]
        answer = answered(MAX_SHORTENED_BYTES)["answer"]
        assert answer["truncated"]
        assert "shortened" not in answer
        assert len(answer["body"]) == 50_000


def test_what_finds_no_room_is_counted_and_the_client_has_its_answer() -> None:
    """R-K-06"""
    with stage() as made:
        made.gateway.process.gateway.traces.room.most = 100
        answer = ask(made.gateway, A, "gemini-up/m1", stream=True)
        assert answer.whole
        assert not made.look.over(id_of(answer)).get("recorded")
        assert made.look.get("recording")["dropped"] == 1
        made.gateway.process.gateway.traces.room.most = 1 << 20
        assert recorded(made, "gemini-up/m1")
        wait_until(lambda: made.gateway.process.gateway.traces.room.held == 0)
