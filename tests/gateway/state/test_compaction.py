"""Long conversations made short on every provider (`POST /v1/responses/compact`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.tiers import rows
from wireglot.gateway.state.responses.compaction import NOW, PREFACE
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

UPSTREAMS = ("anthropic", "openai-chat", "openai-responses", "gemini")
KEYS = "".join(
    f'[keys.{name}]\nhash = "sha256:{hashlib.sha256(f"wg-{name}-0123456789".encode()).hexdigest()}"\n'
    for name in ("one", "two")
)
ONCE = {"retry": "{retries = 0}", "breaker": "{consecutive = 1000000, minimum = 1000000}"}
TALK: list[Any] = [
    {"role": "developer", "content": "Metric units only."},
    {"role": "user", "content": "How high is the tower?"},
    {"type": "function_call", "call_id": "call_1", "name": "measure", "arguments": '{"what":"tower"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "330 metres"},
    {"role": "assistant", "content": "It is 330 metres high."},
    {"role": "user", "content": "Thanks. Remember that."},
]


@pytest.fixture(scope="module", params=UPSTREAMS)
def stage(request: pytest.FixtureRequest) -> Iterator[tuple[ScriptedUpstream, LiveGateway]]:
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, request.param, KEYS, **ONCE) as gateway,
    ):
        yield upstream, gateway


def client(gateway: LiveGateway, name: str = "one") -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{gateway.url}/v1",
        api_key=f"wg-{name}-0123456789",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(verify=False),
    )


def sent(upstream: ScriptedUpstream) -> str:
    return json.dumps(upstream.requests[-1].json, ensure_ascii=False)


def as_input(compacted: Any) -> list[Any]:
    """As clients give it back."""
    return list(json.loads(compacted.model_dump_json(exclude_none=True, warnings=False))["output"])


def test_a_conversation_becomes_its_user_messages_and_one_sealed_item(
    stage: tuple[ScriptedUpstream, LiveGateway],
) -> None:
    upstream, gateway = stage
    compacted = client(gateway).responses.compact(model="m1", input=TALK, instructions="Be brief.")
    assert compacted.object == "response.compaction"
    assert compacted.id.startswith("resp_")
    assert compacted.usage.total_tokens > 0
    kinds = [item.type for item in compacted.output]
    assert kinds == ["message", "message", "message", "compaction"]
    said = [item["content"][0]["text"] for item in as_input(compacted)[:-1]]
    assert said == ["Metric units only.", "How high is the tower?", "Thanks. Remember that."]
    asked = sent(upstream)
    assert "330 metres" in asked
    assert NOW in asked
    assert "Be brief." not in asked, "the client's instructions come with each request anyway"
    body = upstream.requests[-1].json
    assert not body.get("tools")
    assert body.get("store") in (None, False)


def test_the_sealed_item_is_a_text_for_every_upstream(
    stage: tuple[ScriptedUpstream, LiveGateway],
) -> None:
    upstream, gateway = stage
    compacted = client(gateway).responses.compact(model="m1", input=TALK)
    sealed = compacted.output[-1]
    assert sealed.type == "compaction"
    again = client(gateway).responses.create(
        model="m1", input=[*as_input(compacted), {"role": "user", "content": "Go on."}], store=False
    )
    assert again.status == "completed"
    asked = sent(upstream)
    assert json.dumps(PREFACE)[1:-1] in asked
    assert sealed.encrypted_content not in asked
    assert "Thanks. Remember that." in asked


def test_a_compacted_conversation_is_chained_on(stage: tuple[ScriptedUpstream, LiveGateway]) -> None:
    """The item is stored as the client sent it, and is text again whenever a model is asked."""
    upstream, gateway = stage
    gpt = client(gateway)
    first = gpt.responses.create(model="m1", input="My name is Ada.")
    compacted = gpt.responses.compact(model="m1", previous_response_id=first.id)
    assert "My name is Ada." in json.dumps(as_input(compacted)[0])
    second = gpt.responses.create(
        model="m1", input=[*as_input(compacted), {"role": "user", "content": "Who am I?"}]
    )
    gpt.responses.create(model="m1", input="And now?", previous_response_id=second.id)
    asked = sent(upstream)
    assert json.dumps(PREFACE)[1:-1] in asked
    assert "And now?" in asked
    items = gpt.responses.input_items.list(second.id, order="asc").data
    assert [item.type for item in items] == ["message", "compaction", "message"]


def test_nobody_else_can_use_the_item(stage: tuple[ScriptedUpstream, LiveGateway]) -> None:
    upstream, gateway = stage
    compacted = client(gateway).responses.compact(model="m1", input=TALK)
    asked = len(upstream.requests)
    with pytest.raises(openai.BadRequestError) as refused:
        client(gateway, "two").responses.create(model="m1", input=as_input(compacted), store=False)
    assert refused.value.code == "invalid_encrypted_content"
    assert len(upstream.requests) == asked


def test_a_summary_of_a_summary_keeps_what_the_first_one_says(
    stage: tuple[ScriptedUpstream, LiveGateway],
) -> None:
    upstream, gateway = stage
    gpt = client(gateway)
    once = gpt.responses.compact(model="m1", input=TALK)
    twice = gpt.responses.compact(
        model="m1", input=[*as_input(once), {"role": "user", "content": "More of it."}]
    )
    assert json.dumps(PREFACE)[1:-1] in sent(upstream)
    assert [item.type for item in twice.output].count("compaction") == 1


def test_what_the_upstream_refuses_is_reported(stage: tuple[ScriptedUpstream, LiveGateway]) -> None:
    upstream, gateway = stage
    upstream.next(Behaviour(error=500))
    with pytest.raises(openai.InternalServerError):
        client(gateway).responses.compact(model="m1", input=TALK)
    with pytest.raises(openai.BadRequestError, match="at least one item"):
        client(gateway).responses.compact(model="m1", input=[])
    with pytest.raises(openai.BadRequestError, match="nothing to compact"):
        client(gateway).responses.compact(model="m1", input=[{"type": "compaction_trigger"}])


def test_a_compaction_with_a_key_is_made_once(stage: tuple[ScriptedUpstream, LiveGateway]) -> None:
    """FAULTS 40."""
    upstream, gateway = stage
    gpt, asked = client(gateway), len(upstream.requests)
    named = {"Idempotency-Key": "compact-once"}
    first = gpt.responses.compact(model="m1", input=TALK, extra_headers=named)
    again = gpt.responses.compact(model="m1", input=TALK, extra_headers=named)
    assert again.id == first.id
    assert len(upstream.requests) == asked + 1


OPENAI = (
    '[providers.openai]\nbase_url = "{url}/v1"\napi_key = "upstream-key-0123456789"\n'
    '[models]\n"*" = "openai/*"\n'
)
THEIRS: dict[str, Any] = {
    "id": "resp_theirs",
    "object": "response.compaction",
    "created_at": 1,
    "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAtheirs"}],
    "usage": {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    },
}


def test_openai_compacts_by_itself() -> None:
    with ScriptedUpstream() as upstream, LiveGateway(OPENAI.format(url=upstream.url)) as gateway:
        upstream.next(Behaviour(body=json.dumps(THEIRS).encode()))
        compacted = client(gateway).responses.compact(model="gpt-5.5", input=TALK)
        assert compacted.id == "resp_theirs"
        assert upstream.requests[-1].path == "/v1/responses/compact"
        assert upstream.requests[-1].json == {"model": "gpt-5.5", "input": TALK}
        line = gateway.wait_log()[-1]
        assert line["status"] == 200

        # Its item goes back to it as it is, beside whatever we hold.
        given_back = [*THEIRS["output"], {"role": "user", "content": "Go on."}]
        client(gateway).responses.create(model="gpt-5.5", input=given_back, store=False)
        assert upstream.requests[-1].json["input"][0]["encrypted_content"] == "gAAAAtheirs"


def test_what_only_the_gateway_holds_is_compacted_here_even_for_openai() -> None:
    with ScriptedUpstream() as upstream, LiveGateway(OPENAI.format(url=upstream.url)) as gateway:
        gpt = client(gateway)
        first = gpt.responses.create(model="gpt-5.5", input="My name is Ada.")
        compacted = gpt.responses.compact(model="gpt-5.5", previous_response_id=first.id)
        assert upstream.requests[-1].path == "/v1/responses"
        assert compacted.output[-1].type == "compaction"


def test_what_the_provider_stores_is_compacted_by_a_summary_that_rests_on_it() -> None:
    """Where the settings leave storing to a provider that has no endpoint to compact."""
    settings = '[store]\nresponses = "upstream"\n'
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, "openai-responses", KEYS + settings, **ONCE) as gateway,
    ):
        gpt = client(gateway)
        compacted = gpt.responses.compact(model="m1", previous_response_id="resp_theirs")
        body = upstream.requests[-1].json
        assert upstream.requests[-1].path == "/v1/responses"
        assert (body["previous_response_id"], body["store"]) == ("resp_theirs", False)
        assert NOW in sent(upstream)
        assert [item.type for item in compacted.output] == ["compaction"]

        more = gpt.responses.compact(model="m1", previous_response_id="resp_theirs", input="And this.")
        assert upstream.requests[-1].json["previous_response_id"] == "resp_theirs"
        assert "And this." in sent(upstream)
        assert [item.type for item in more.output] == ["message", "compaction"]

        given_back = [*as_input(compacted), {"role": "user", "content": "Go on."}]
        gpt.responses.create(model="m1", input=given_back)
        assert json.dumps(PREFACE)[1:-1] in sent(upstream)
        assert "previous_response_id" not in upstream.requests[-1].json


@rows("given", ["A plain text.", [{"role": "user", "content": "A plain text."}]])
def test_the_words_of_the_user_stay_however_they_are_written(
    stage: tuple[ScriptedUpstream, LiveGateway], given: Any
) -> None:
    compacted = client(stage[1]).responses.compact(model="m1", input=given)
    message, sealed = as_input(compacted)
    assert message["content"] == [{"type": "input_text", "text": "A plain text."}]
    assert sealed["type"] == "compaction"


CODEX_TOOLS: list[Any] = [
    {"type": "function", "name": "measure", "parameters": {"type": "object", "properties": {}}}
]


@rows("streamed", [False, True])
def test_a_trigger_in_the_input_gives_exactly_one_compaction_item_back(
    stage: tuple[ScriptedUpstream, LiveGateway], streamed: bool
) -> None:
    """[L3] Codex with its built-in provider asks `/v1/responses` for it, counts the items of the stream, and
    dies unless there is exactly one."""
    upstream, gateway = stage
    gpt = client(gateway)
    asked: dict[str, Any] = {
        "model": "m1",
        "instructions": "Be brief.",
        "input": [*TALK, {"type": "compaction_trigger"}],
        "tools": CODEX_TOOLS,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "store": False,
    }
    if streamed:
        kinds: list[str] = []
        done: list[Any] = []
        response = None
        for event in gpt.responses.create(**asked, stream=True):
            kinds.append(event.type)
            if event.type == "response.output_item.done":
                done.append(event.item)
            elif event.type == "response.completed":
                response = event.response
        assert kinds == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
        ]
        assert response is not None
        assert [item.id for item in done] == [item.id for item in response.output]
    else:
        response = gpt.responses.create(**asked)
    assert [item.type for item in response.output] == ["compaction"]
    assert response.status == "completed"
    assert response.usage is not None
    assert response.usage.total_tokens > 0
    reported = sent(upstream)
    assert "330 metres" in reported
    assert NOW in reported
    assert "compaction_trigger" not in reported
    assert not upstream.requests[-1].json.get("tools")

    sealed = as_input(response)
    again = gpt.responses.create(
        model="m1", input=[*sealed, {"role": "user", "content": "Go on."}], store=False
    )
    assert again.status == "completed"
    assert json.dumps(PREFACE)[1:-1] in sent(upstream)


def test_a_trigger_whose_summary_fails_is_an_error_and_no_answer(
    stage: tuple[ScriptedUpstream, LiveGateway],
) -> None:
    """[L3] What the upstream refuses is reported under its status, also to who asked for a stream."""
    upstream, gateway = stage
    upstream.next(Behaviour(error=500))
    with pytest.raises(openai.InternalServerError):
        client(gateway).responses.create(
            model="m1", input=[*TALK, {"type": "compaction_trigger"}], store=False, stream=True
        )


def test_a_trigger_passes_to_the_vendor_that_compacts_by_itself() -> None:
    """[L3] OpenAI is given the request as it came."""
    with ScriptedUpstream() as upstream, LiveGateway(OPENAI.format(url=upstream.url)) as gateway:
        items = [*TALK, {"type": "compaction_trigger"}]
        client(gateway).responses.create(model="gpt-5.5", input=items, store=False)
        assert upstream.requests[-1].path == "/v1/responses"
        assert upstream.requests[-1].json["input"] == items
