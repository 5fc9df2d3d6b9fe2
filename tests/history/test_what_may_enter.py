"""What is no text and no media is refused when it comes, not when the conversation is sent or saved."""

from typing import Any

import pytest

from tests.tiers import rows
from wireglot.history import History, Media
from wireglot_core.ir.content import Message, ToolCall


def asked() -> History:
    history = History()
    history.user("hi")
    history.assistant(Message("assistant", (ToolCall("call_1", "f", "{}"),)))
    return history


@rows("text", [5, None, {"a": 1}, ["a"], b"a"])
def test_a_result_is_text(text: Any):
    history = asked()
    with pytest.raises(TypeError, match="text: expected a string"):
        history.result("call_1", text)
    history.result("call_1", "done")
    assert History.load(history.save()).messages == history.messages


def test_an_error_is_true_or_false():
    error: Any = "yes"
    with pytest.raises(TypeError, match="error"):
        asked().result("call_1", "x", error=error)


def test_media_are_media():
    other: Any = "picture.png"
    with pytest.raises(TypeError, match="media: expected Media"):
        History().user("x", other)
    with pytest.raises(TypeError, match="media: expected Media"):
        asked().result("call_1", "x", media=[other])
    History().user("x", Media("image", "image/png", data="aGk="))
