"""Reasoning of a history that another model cannot read: a Responses client finds it named in its answer."""

import httpx2
import pytest

from wireglot import translate_response
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.wire.json import decode

USER = {"role": "user", "content": "Hello"}
HISTORY = [
    USER,
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB-of-openai"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
    },
    USER,
]
WITHHELD = [{"id": "rs_1", "action": "removed", "reason": "model_mismatch", "type": "reasoning"}]


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "gemini"])
def test_an_answer_names_the_reasoning_that_its_model_did_not_get(dialect):
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect) as gateway:
        asked = {"model": "some-model", "input": HISTORY, "store": False}
        answer = httpx2.post(f"{gateway.url}/v1/responses", json=asked).json()
        assert answer["input_transformations"] == WITHHELD
        streamed = httpx2.post(f"{gateway.url}/v1/responses", json={**asked, "stream": True}).text
        last = [decode(line[6:].encode()) for line in streamed.splitlines() if line.startswith("data: ")][-1]
        assert last["response"]["input_transformations"] == WITHHELD


def test_an_answer_to_a_history_without_reasoning_has_no_such_field():
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "gemini") as gateway:
        asked = {"model": "some-model", "input": [USER], "store": False}
        assert "input_transformations" not in httpx2.post(f"{gateway.url}/v1/responses", json=asked).json()


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_what_a_provider_withheld_is_a_loss_of_reasoning(target):
    message = HISTORY[2]
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    body |= {"output": [message], "input_transformations": WITHHELD}
    losses = translate_response(body, source="openai-responses", target=target).losses
    assert [(loss.feature, loss.action) for loss in losses] == [("reasoning.signature", "dropped")]
