"""Groups J, S and T: native calls of a Code Assist stream, on their way to a client and back."""

import json

from tests.requirements.live import PATHS, ask, question, stage
from tests.requirements.wire import (
    TODOS,
    asked,
    blocks_of,
    candidate,
    chat,
    frames,
    messages,
    sse,
    streamed,
)

USER = {"role": "user", "content": "Plan it."}
CALL = {"functionCall": {"id": "x1", "name": "TodoWrite", "args": TODOS}, "thoughtSignature": "U0lH"}
STREAM = sse(
    {"response": candidate({"text": "I will."}, finish=None), "traceId": "t1"},
    {"response": candidate(CALL), "traceId": "t1"},
)


def turn() -> dict:
    """The assistant's message as a client keeps it."""
    data = streamed(STREAM, "code-assist", "anthropic", request=messages(USER), model="gemini-3-pro")
    content: list[dict] = []
    for block in blocks_of(frames(data)):
        text = "".join(
            str(next(iter(delta[key] for key in delta if key != "type"))) for delta in block.pop("deltas")
        )
        match block["type"]:
            case "text":
                content.append({"type": "text", "text": text})
            case "thinking":
                content.append({"type": "thinking", "thinking": "", "signature": text})
            case _:
                content.append({**block, "input": json.loads(text)})
    return {"role": "assistant", "content": content}


def test_native_calls_are_part_of_the_message():
    """R-J-09, R-J-10, R-J-11, R-T-01, R-T-08: beside its text, complete, under the provider's id."""
    kinds = [block["type"] for block in turn()["content"]]
    assert (kinds[0], kinds[-1]) == ("text", "tool_use")
    call = turn()["content"][-1]
    assert (call["id"], call["name"], call["input"]) == ("x1", "TodoWrite", TODOS)


def test_the_next_request_has_the_call_and_its_result():
    """R-J-13, R-J-14, R-J-15, R-S-02, R-U-07, R-V-03: as the provider wants them, signature included."""
    result = {"type": "tool_result", "tool_use_id": "x1", "content": "Saved."}
    body = messages(USER, turn(), {"role": "user", "content": [result]})
    sent = asked(body, "anthropic", "code-assist", model="gemini-3-pro")
    _, model, answer = sent["request"]["contents"]
    assert model["parts"] == [{"text": "I will."}, CALL]
    assert answer["parts"] == [
        {"functionResponse": {"id": "x1", "name": "TodoWrite", "response": {"output": "Saved."}}}
    ]


def test_without_tools_nothing_about_calls_is_sent():
    """R-S-09"""
    assert not {"tools", "toolConfig"} & set(
        asked(chat(), "openai-chat", "code-assist", model="g")["request"]
    )


def test_the_provider_is_reached_with_the_callers_own_token():
    """R-S-11, C49, C35: a bearer token from the configuration, and no login of ours."""
    with stage("code-assist", auth='"bearer"') as (gateway, upstream):
        assert ask(gateway, PATHS["anthropic"], question("anthropic")).status == 200
        request = upstream.requests[0]
    assert request.headers["authorization"] == "Bearer upstream-key-0123456789"
    assert request.path == "/v1internal:generateContent"
    assert request.json["request"]["contents"]
    assert len(upstream.requests) == 1
