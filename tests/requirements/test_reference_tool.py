"""Groups A, C, D, E and J: the reference tool goes to every upstream, is called, answered, and called again."""

import json

import pytest

import wireglot
from tests.requirements.wire import (
    MAIN,
    TODO,
    TODOS,
    asked,
    blocks_of,
    candidate,
    frames,
    message,
    messages,
    reported,
    sse,
    streamed,
)

CALLED = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "TodoWrite_15", "name": "TodoWrite", "input": TODOS}],
}
ANSWERED = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "TodoWrite_15", "content": "Saved."}],
}
USER = {"role": "user", "content": "Plan it."}
TYPED = json.loads(json.dumps(TODO).replace('{"enum"', '{"type": "string", "enum"'))
"""The schema for targets that demand a type."""


def test_any_model_name_is_taken():
    """R-A-01: what a name looks like is nobody's business but its provider's."""
    for name in ("kimi-k2-thinking-turbo", "vendor/model:free", "x"):
        for target in ("openai-chat", "openai-responses"):
            assert asked(messages(model=name), "anthropic", target)["model"] == name


@pytest.mark.parametrize(
    ("target", "limit"), [("openai-chat", "max_completion_tokens"), ("openai-responses", "max_output_tokens")]
)
def test_the_parts_of_a_request_are_carried(target, limit):
    """R-A-02, R-A-03, R-A-05, R-A-09: the limit, the roles, text and the wish for a stream."""
    body = asked(
        messages(USER, {"role": "assistant", "content": "Yes."}, USER, max_tokens=32000, stream=True),
        "anthropic",
        target,
    )
    assert (body[limit], body["stream"]) == (32000, True)
    turns = body["messages"] if target == "openai-chat" else body["input"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]


def test_a_schema_reaches_every_upstream_with_its_nested_keys():
    """R-A-08, R-A-13, R-D-01: arrays of objects, nested `properties` and `required`, values."""
    body = messages()
    (chat,) = asked(body, "anthropic", "openai-chat")["tools"]
    assert chat["function"] == {"name": "TodoWrite", "description": "Keeps a list.", "parameters": TODO}
    (flat,) = asked(body, "anthropic", "openai-responses")["tools"]
    assert (flat["name"], flat["description"], flat["parameters"]) == ("TodoWrite", "Keeps a list.", TODO)
    ((gemini,),) = (tool["functionDeclarations"] for tool in asked(body, "anthropic", "gemini")["tools"])
    assert (gemini["name"], gemini["parametersJsonSchema"]) == ("TodoWrite", TYPED)


def test_values_without_a_type_get_one_where_it_is_demanded():
    """R-A-14, C17: Moonshot refuses a property without a type, so does Gemini."""
    kimi = asked(messages(), "anthropic", "openai-chat", provider="kimi", model="kimi-k2.6")
    assert kimi["tools"][0]["function"]["parameters"] == TYPED


@pytest.mark.parametrize("target", MAIN[1:])
def test_a_result_is_reported_verbatim_directly_behind_its_call(target):
    """R-A-07, R-A-11, R-C-02, R-D-03: linked by the id, named where the target pairs by name, nothing added."""
    body = asked(messages(USER, CALLED, ANSWERED), "anthropic", target)
    match target:
        case "openai-chat":
            call, result = body["messages"][1:]
            assert (call["tool_calls"][0]["id"], result["tool_call_id"]) == ("TodoWrite_15", "TodoWrite_15")
            assert result == {"role": "tool", "tool_call_id": "TodoWrite_15", "content": "Saved."}
        case "openai-responses":
            call, result = body["input"][1:]
            assert call["call_id"] == "TodoWrite_15"
            assert result == {
                "type": "function_call_output",
                "call_id": "TodoWrite_15",
                "output": "Saved.",
            }
        case "gemini":
            call, result = body["contents"][1:]
            assert call["parts"][0]["functionCall"]["args"] == TODOS
            (part,) = result["parts"]
            assert part["functionResponse"]["name"] == "TodoWrite"
            assert part["functionResponse"]["response"] == {"output": "Saved."}


def test_counted_ids_of_a_long_session_stay_with_their_results():
    """R-A-12, R-D-04, R-E-04: `Tool_0`, `Tool_1`, ... over many turns, each request with the whole of it."""
    turns: list[dict] = [USER]
    for number in range(16):
        name = f"TodoWrite_{number}"
        turns.append(
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": name, "name": "TodoWrite", "input": {"todos": [number]}}
                ],
            }
        )
        turns.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": name, "content": str(number)}],
            }
        )
        sent = asked(messages(*turns), "anthropic", "openai-chat")["messages"]
        calls = {
            turn["tool_calls"][0]["id"]: turn["tool_calls"][0]["function"]["arguments"]
            for turn in sent
            if "tool_calls" in turn
        }
        results = {turn["tool_call_id"]: turn["content"] for turn in sent if turn["role"] == "tool"}
        assert calls == {key: f'{{"todos":[{value}]}}' for key, value in results.items()}
        assert len(results) == number + 1


@pytest.mark.parametrize("cold", [wireglot.Context(), wireglot.Context(seed="another process")])
def test_the_name_of_a_result_is_found_in_the_request_alone(cold):
    """R-E-01, R-E-02, R-E-05, R-N-01, C46: nothing was registered before, so nothing can be missing or mixed up."""
    body = asked(messages(USER, CALLED, ANSWERED), "anthropic", "gemini", context=cold)
    assert body["contents"][2]["parts"][0]["functionResponse"]["name"] == "TodoWrite"


def test_the_reference_round_trip():
    """R-J-01..07, R-C-01, R-D-02, R-E-03, R-J-15, R-N-04: there, called, back, answered, and there again."""
    question = messages(USER, stream=True)
    upstream = asked(question, "anthropic", "gemini", model="gemini-3-pro")
    assert upstream["tools"][0]["functionDeclarations"][0]["name"] == "TodoWrite"

    part = {"functionCall": {"name": "TodoWrite", "args": TODOS}, "thoughtSignature": "U0lH"}
    data = sse(candidate(part), candidate({"text": ""}, usageMetadata={"promptTokenCount": 3}))
    wire = frames(streamed(data, "gemini", "anthropic", request=question, model="gemini-3-pro"))
    carrier, call = blocks_of(wire)
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "TodoWrite", {})
    given = json.loads("".join(delta["partial_json"] for delta in call["deltas"]))
    assert given == TODOS
    assert call["id"].startswith("toolu_")

    (signature,) = (delta["signature"] for delta in carrier["deltas"] if delta["type"] == "signature_delta")
    turn = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "", "signature": signature},
            {"type": "tool_use", "id": call["id"], "name": "TodoWrite", "input": given},
        ],
    }
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "Saved."}
    following = asked(
        messages(USER, turn, {"role": "user", "content": [result]}),
        "anthropic",
        "gemini",
        model="gemini-3-pro",
    )
    user, model, answer = following["contents"]
    assert (user["role"], model["role"], answer["role"]) == ("user", "model", "user")
    (sent,) = model["parts"]
    assert sent["functionCall"]["args"] == TODOS
    assert sent["thoughtSignature"] == "U0lH"
    (paired,) = answer["parts"]
    assert paired["functionResponse"]["name"] == "TodoWrite"
    assert paired["functionResponse"]["response"] == {"output": "Saved."}


def test_an_object_in_three_pieces_is_one_call():
    """R-J-08, R-F-02, R-F-03, R-N-02: cut inside a key and inside a string; nothing lost, nothing twice."""
    data = sse(candidate({"functionCall": {"name": "TodoWrite", "args": TODOS}}))
    first, second = data.index(b"functionCall") + 5, data.index(b"Write it") + 3
    translator = wireglot.StreamTranslator(source="gemini", target="anthropic")
    early = translator.feed(data[:first]) + translator.feed(data[first:second])
    assert b"content_block" not in early
    late = translator.feed(data[second:]) + translator.close()
    (call,) = blocks_of(frames(early + late))
    assert json.loads("".join(delta["partial_json"] for delta in call["deltas"])) == TODOS


@pytest.mark.parametrize("target", MAIN[1:])
def test_an_input_reaches_the_client_as_the_object_it_was(target):
    """R-A-06, R-D-02: whichever dialect the client speaks."""
    called = message({"type": "tool_use", "id": "t1", "name": "TodoWrite", "input": TODOS}, stop="tool_use")
    answer = reported(called, "anthropic", target)
    match target:
        case "openai-chat":
            call = answer["choices"][0]["message"]["tool_calls"][0]["function"]
            assert (call["name"], json.loads(call["arguments"])) == ("TodoWrite", TODOS)
        case "openai-responses":
            (call,) = answer["output"]
            assert (call["name"], json.loads(call["arguments"])) == ("TodoWrite", TODOS)
        case "gemini":
            call = answer["candidates"][0]["content"]["parts"][0]["functionCall"]
            assert (call["name"], call["args"]) == ("TodoWrite", TODOS)
