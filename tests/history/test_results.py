"""Tool results toward Gemini: who is answered, under which key, with which media."""

import pytest

from tests.history.support import gemini_chunk, stream
from wireglot.history import History, Media, Message, ToolCall
from wireglot_core.testing.strategies import samples

PICTURE = Media("image", "image/png", samples.PNG)


def response_to(call: dict, model: str = "gemini-3-pro", **result) -> dict:
    """What Gemini is sent as the result of a call it made."""
    history = History()
    history.user("Go")
    answer = history.request("gemini", model=model).answer()
    list(answer.steps([stream(gemini_chunk({"functionCall": call}))]))
    history.assistant(answer)
    history.result(answer.calls[0].id, **result)
    asked = history.request("gemini", model=model)
    (part,) = asked.value["contents"][2]["parts"]
    assert part.keys() == {"functionResponse"}
    return dict(part["functionResponse"])


NAMED = {"id": "fc-1", "name": "read_file", "args": {}}
UNNAMED = {"name": "read_file", "args": {}}


def test_a_result_becomes_a_function_response_with_id_name_and_output():
    """R-V-01, R-V-02, R-V-03, R-V-04, R-V-06: the id Gemini gave, the name of the call, the text."""
    assert response_to(NAMED, text="contents") == {
        "id": "fc-1",
        "name": "read_file",
        "response": {"output": "contents"},
    }


def test_an_id_that_gemini_did_not_make_is_not_sent():
    """R-V-02 (C7), R-V-06 (C7): a synthetic id is never sent as Gemini's."""
    assert response_to(UNNAMED, text="contents") == {"name": "read_file", "response": {"output": "contents"}}


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-2.0-flash"])
def test_older_models_pair_by_order_and_get_no_ids(model):
    """R-V-02 (C7)"""
    assert "id" not in response_to(NAMED, model, text="contents")


def test_the_name_is_looked_up_from_the_call_of_the_one_that_made_it():
    """R-V-03, R-E-05, C46: another dialect's results name no tool."""
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "contents"},
        ],
    }  # fmt: skip
    contents = History.of("openai-chat", body).request("gemini", model="gemini-3-pro").value["contents"]
    assert contents[2]["parts"][0]["functionResponse"]["name"] == "read_file"


def test_a_failure_stands_under_error():
    """R-V-04 (C8)"""
    assert response_to(NAMED, text="no such file", error=True)["response"] == {"error": "no such file"}


def test_media_in_a_result_is_not_lost():
    """R-V-05 (C8): pictures stand in the parts of the response, not as empty strings."""
    answer = response_to(NAMED, text="a picture", media=[PICTURE])
    assert answer["response"] == {"output": "a picture"}
    assert answer["parts"] == [{"inlineData": {"mimeType": "image/png", "data": samples.PNG}}]


def test_a_result_of_media_alone_and_one_of_nothing_still_answer():
    """R-V-05, R-V-06 (C8)"""
    alone = response_to(NAMED, media=[PICTURE])
    assert alone["response"] == {"output": ""}
    assert len(alone["parts"]) == 1
    assert response_to(NAMED)["response"] == {"output": ""}


def test_text_items_are_joined_by_newlines():
    """R-V-04"""
    body = {
        "model": "claude-opus-5",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read_file", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [
                {"type": "text", "text": "one"}, {"type": "text", "text": "two"}
            ]}]},
        ],
    }  # fmt: skip
    contents = History.of("anthropic", body).request("gemini", model="gemini-3-pro").value["contents"]
    assert contents[2]["parts"][0]["functionResponse"]["response"] == {"output": "one\ntwo"}


def test_results_stand_in_the_order_of_the_calls_however_they_came_in():
    """R-V-01"""
    history = History()
    history.user("Go")
    history.append(Message("assistant", (ToolCall("a", "first", "{}"), ToolCall("b", "second", "{}"))))
    history.result("b", "2")
    history.result("a", "1")
    parts = history.request("gemini", model="gemini-3-pro").value["contents"][2]["parts"]
    assert [part["functionResponse"]["name"] for part in parts] == ["first", "second"]


def test_the_same_results_are_reported_to_every_other_dialect():
    """R-V-04, R-D-03"""
    history = History()
    history.user("Go")
    history.append(Message("assistant", (ToolCall("a", "x", "{}"),)))
    history.result("a", "it failed", error=True, media=[PICTURE])
    blocks = history.request("anthropic", model="claude-opus-5").value["messages"][2]["content"]
    assert blocks[0]["is_error"] is True
    assert [item["type"] for item in blocks[0]["content"]] == ["text", "image"]
    chat = history.request("openai-chat", model="m").value["messages"]
    assert "it failed" in chat[2]["content"]
    assert [part["type"] for part in chat[3]["content"]] == ["text", "image_url"]
    (output,) = [
        item for item in history.request("openai-responses", model="m").value["input"] if "output" in item
    ]
    assert [part["type"] for part in output["output"]] == ["input_text", "input_image"]
