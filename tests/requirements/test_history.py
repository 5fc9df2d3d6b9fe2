"""Groups J, U and DB through the agent's history: what was said stays whole, saved, loaded and cut."""

from tests.requirements.wire import TODO, TODOS, candidate, sse
from wireglot.history import History, Message, Tool, ToolCall

TOOL = Tool("TodoWrite", "Keeps a list.", TODO)
CALL = {"functionCall": {"id": "x1", "name": "TodoWrite", "args": TODOS}, "thoughtSignature": "U0lH"}


def asked_and_answered(*parts: dict) -> History:
    history = History()
    history.user("Plan it.")
    asked = history.request("gemini", model="gemini-3-pro", tools=[TOOL])
    answer = asked.answer()
    for _ in answer.steps([sse(candidate(*parts))]):
        pass
    history.assistant(answer)
    return history


def test_a_saved_history_has_the_calls_in_its_next_request():
    """R-J-12, R-J-13, R-J-14, R-J-15, R-U-01, R-U-07, R-V-03: text, call and signature, with the result behind."""
    history = History.load(asked_and_answered({"text": "I will."}, CALL).save())
    (call,) = history.pending
    assert (call.id, call.name, call.input) == ("x1", "TodoWrite", TODOS)
    history.result(call, "Saved.")
    _, model, answer = history.request("gemini", model="gemini-3-pro", tools=[TOOL]).value["contents"]
    assert model == {"role": "model", "parts": [{"text": "I will."}, CALL]}
    assert answer["parts"] == [
        {"functionResponse": {"id": "x1", "name": "TodoWrite", "response": {"output": "Saved."}}}
    ]


def test_text_alone_is_one_text_block():
    """R-U-02, R-U-04: an answer of text, and one that was no more than a string."""
    heard, given = asked_and_answered({"text": "Done."}), History()
    given.user("Plan it.")
    given.assistant("Done.")
    for history in (heard, given):
        history.user("Thanks.")
        _, turn, _ = history.request("gemini", model="m").value["contents"]
        assert turn == {"role": "model", "parts": [{"text": "Done."}]}


def test_a_cut_never_parts_a_call_from_its_result():
    """R-DB-06"""
    history = History()
    for number in range(4):
        history.user(f"Question {number}")
        history.assistant(Message("assistant", (ToolCall(f"x{number}", "TodoWrite", "{}"),)))
        history.result(f"x{number}", "Saved.")
        history.assistant("Done.")
    for keep in range(1, len(history)):
        short = history.copy()
        assert short.cut(keep)
        reported = short.request("anthropic", model="m", tools=[TOOL])
        blocks = [
            block
            for turn in reported.value["messages"]
            for block in turn["content"]
            if isinstance(block, dict)
        ]
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert calls == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert not [loss for loss in reported.losses if loss.feature.startswith("tool_")]
