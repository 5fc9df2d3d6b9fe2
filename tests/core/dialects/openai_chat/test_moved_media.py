"""What a result shows that Chat's results cannot hold."""

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Media, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Request

CALL = Message("assistant", (ToolCall("c", "look", "{}"),))


def test_what_moving_a_picture_costs_beside_its_place_is_reported():
    picture = Media("image", "image/png", url="https://example.org/a.png", name="a.png")
    request = Request("m", (CALL, Message("user", (ToolResult("c", (Text("seen"), picture)),))))
    losses = dialect("openai-chat").render_request(request, Context()).losses
    place = "$.messages[1].content[0].content[1]"
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        (place, "tool_result.media", "approximated"),
        (f"{place}.mime", "image", "dropped"),
        (f"{place}.name", "image", "dropped"),
    ]
