"""A loss points to where the client put a thing, whenever the trail is first asked about it."""

import pytest

from tests.tiers import rows
from wireglot_core.ir.content import Message, Text, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.trail import Trail

_FIRST, _SECOND = Message("user", (Text("a"), Text("b"))), Message("assistant", (Text("c"),))
_REQUEST = Request("m", (_FIRST, _SECOND), tools=(Tool("f"),))


@pytest.mark.parametrize("asked_before", [False, True])
def test_what_stands_for_another_has_its_place(asked_before):
    trail = Trail(_REQUEST)
    if asked_before:
        assert trail.of(_FIRST) == "$.messages[0]"
    old = _FIRST.content[1]
    new, newest, stranger = Text("B"), Text("BB"), Text("C")
    trail.follow(old, new)
    trail.follow(new, newest)
    trail.follow(stranger, Text("D"))
    assert trail.of(newest) == trail.of(new) == trail.of(old) == "$.messages[0].content[1]"
    assert trail.of(stranger) == "$.messages"
    assert trail.of(_REQUEST.tools[0]) == "$.tools[0]"


def test_a_loss_of_the_fitted_request_is_reported_at_the_clients_place():
    trail = Trail(_REQUEST)
    merged = Message("user", (*_SECOND.content, *_FIRST.content))
    trail.follow(_FIRST, merged)
    fitted = Request("m", (merged,))
    loss = Loss("$.messages[0].content[0].cache", "cache_marker", "dropped")
    assert trail.retrace(loss, fitted).path == "$.messages[1].content[0].cache"
    assert (
        trail.retrace(Loss("$.messages[0].name", "message.name", "dropped"), fitted).path
        == "$.messages[0].name"
    )


def test_parts_of_a_result_have_places_of_their_own():
    """They may be moved out of it."""
    item = Text("seen")
    result = ToolResult("1", (Text("a"), item))
    trail = Trail(Request("m", (Message("user", (Text("b"), result)),)))
    assert trail.of(item) == "$.messages[0].content[1].content[1]"
    assert trail.of(result) == "$.messages[0].content[1]"


def test_what_is_there_twice_has_its_first_place():
    """Equal messages of a conversation are one cached object."""
    item, tool = Text("seen"), Tool("f")
    message = Message("user", (ToolResult("1", (item,)),))
    trail = Trail(Request("m", (message, message), tools=(tool, tool)))
    assert trail.of(tool) == "$.tools[0]"
    assert trail.of(message) == "$.messages[0]"
    assert trail.of(item) == "$.messages[0].content[0].content[0]"


@rows(
    ("path", "reported"),
    [
        ("$.messages[1]", "$.messages[0]"),
        ("$.messages[1].content[1].cache", "$.messages[0].content[1].cache"),
        ("$.messages[1].content[9].cache", "$.messages[0].content[9].cache"),
        ("$.messages[2].name", "$.messages[2].name"),
        ("$.tools[1].schema", "$.tools[0].schema"),
        ("$.tools[0].schema", "$.messages.schema"),
        ("$.tools[2]", "$.tools[2]"),
        ("$.max_tokens", "$.max_tokens"),
    ],
)
def test_a_loss_goes_back_to_where_its_value_stood(path, reported):
    """What nobody put anywhere belongs to the conversation as a whole; what is not there stays as it is."""
    fitted = Request("m", (_SECOND, _FIRST), tools=(Tool("g"), _REQUEST.tools[0]))
    found = Trail(_REQUEST).retrace(Loss(path, "cache_marker", "dropped", "why"), fitted)
    if path == "$.messages[1].content[9].cache":
        assert found.path.startswith("$.messages[0]")
    else:
        assert found == Loss(reported, "cache_marker", "dropped", "why")
