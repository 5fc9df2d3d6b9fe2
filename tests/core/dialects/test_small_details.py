"""Details of single dialects that others have no word for."""

from typing import Any

import pytest

from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.registry import DialectName, dialect, surface
from wireglot_core.ir.errors import ApiError
from wireglot_core.wire.json import encode

UNKNOWN_PICTURE = "AAAAAAAAAAAAAAAA"
BILLING = "x-anthropic-billing-header: cc_version=2; cch=1;"


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_a_picture_of_unknown_type_has_a_type_in_its_address(target: DialectName) -> None:
    """OpenAI refuses `data:;base64`; the guess is the one made toward Gemini."""
    body = {"model": "m", "messages": [{"role": "user", "content": "x", "images": [UNKNOWN_PICTURE]}]}
    sent = translate_request(body, source="ollama", target=target, model="m")
    assert f"data:image/jpeg;base64,{UNKNOWN_PICTURE}".encode() in encode(sent.value)
    assert [(loss.path, loss.action) for loss in sent.losses if loss.feature == "image"] == [
        ("$.messages[0].images[0]", "invented")
    ]


def _asked(place: str, text: str) -> dict[str, Any]:
    hello: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    blocks = [{"type": "text", "text": text}]
    if place == "system":
        return {"model": "m", "max_tokens": 9, "system": blocks, "messages": hello}
    return {"model": "m", "max_tokens": 9, "messages": [*hello, {"role": "system", "content": blocks}]}


@pytest.mark.parametrize("place", ["system", "messages"])
def test_an_instruction_behind_a_billing_line_is_sent(place: str) -> None:
    sent = translate_request(
        _asked(place, f"{BILLING}\n\nBe brief."), source="anthropic", target="openai-chat", model="m"
    )
    assert b"Be brief." in encode(sent.value)


@pytest.mark.parametrize("place", ["system", "messages"])
def test_a_billing_line_alone_is_not(place: str) -> None:
    sent = translate_request(
        _asked(place, f"{BILLING}\n"), source="anthropic", target="openai-chat", model="m"
    )
    assert b"billing" not in encode(sent.value)


CLIENTS: tuple[DialectName, ...] = ("anthropic", "openai-chat", "openai-responses", "gemini", "ollama")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_cancelled_interaction_is_an_error(client: DialectName) -> None:
    said = [{"type": "model_output", "content": [{"type": "text", "text": "par"}]}]
    body = {"id": "v1", "object": "interaction", "status": "cancelled", "model": "m", "steps": said}
    answer = translate_response(body, source="gemini-interactions", target=client)
    error = dialect(client).parse_error(answer.value)
    assert error is not None
    assert "cancelled" in error.message


@pytest.mark.parametrize(
    "message",
    [
        '"qwen3" does not support thinking',
        "json: cannot unmarshal string into Go struct field ChatRequest.think of type bool",
        'invalid think value: "high"',
    ],
)
def test_a_server_that_takes_no_level_of_thinking_is_recognized(message: str) -> None:
    """The request is repeated without `think`."""
    has_none = surface("ollama").reasoning.has_none
    assert has_none is not None
    assert has_none(ApiError("invalid_request", message, 400))
    assert not has_none(ApiError("invalid_request", "json: cannot unmarshal string into field options", 400))


MCP = {
    "name": "s",
    "streamableHttpTransport": {"url": "https://m.x/mcp", "headers": {"Authorization": "Bearer t"}},
}
SERVERS: dict[DialectName, dict[str, Any]] = {
    "anthropic": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "x"}],
        "mcp_servers": [{"type": "url", "url": "https://m.x/mcp", "name": "s", "authorization_token": "t"}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "s"}],
    },
    "openai-responses": {
        "model": "m",
        "input": "x",
        "tools": [
            {
                "type": "mcp",
                "server_label": "s",
                "server_url": "https://m.x/mcp",
                "require_approval": "never",
                "authorization": "t",
            }
        ],
    },
    "gemini-interactions": {
        "model": "m",
        "input": "x",
        "tools": [
            {
                "type": "mcp_server",
                "name": "s",
                "url": "https://m.x/mcp",
                "headers": {"Authorization": "Bearer t"},
            }
        ],
    },
}


@pytest.mark.parametrize("source", SERVERS)
def test_a_server_of_tools_reaches_gemini_and_comes_from_it(source: DialectName) -> None:
    sent = translate_request(SERVERS[source], source=source, target="gemini", model="m")
    assert sent.value["tools"] == [{"mcpServers": [MCP]}]
    assert [(loss.action, loss.grade) for loss in sent.losses if "tools" in loss.path] == [
        ("emulated", "harmless")
    ]
    back = translate_request(
        {"contents": [{"role": "user", "parts": [{"text": "x"}]}], "tools": [{"mcpServers": [MCP]}]},
        source="gemini",
        target=source,
        model="m",
    )
    for field in ("tools", "mcp_servers"):
        assert back.value.get(field) == SERVERS[source].get(field)


@pytest.mark.parametrize(
    "more", [{"allowed_tools": ["a"]}, {"allowed_tools": {"read_only": True}}, {"require_approval": "always"}]
)
def test_a_server_whose_tools_may_not_all_be_called_is_not_sent_to_gemini(more: dict[str, Any]) -> None:
    tool = {**SERVERS["openai-responses"]["tools"][0], **more}
    body = {"model": "m", "input": "x", "tools": [tool]}
    sent = translate_request(body, source="openai-responses", target="gemini", model="m")
    assert "tools" not in sent.value
    assert [(loss.feature, loss.grade) for loss in sent.losses] == [("hosted_tool", "serious")]


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "gemini", "gemini-interactions"])
def test_several_summaries_come_back_as_several(client: DialectName) -> None:
    summary = [{"type": "summary_text", "text": f"**{title}**\n\nIt **is** so.\n\nMore."} for title in "AB"]
    thought = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "xyz"}
    text = {"type": "output_text", "text": "hi", "annotations": []}
    answer = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": [
        thought, {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]},
    ]}  # fmt: skip
    shown = translate_response(answer, source="openai-responses", target=client).value
    hello = "hello"
    match client:
        case "anthropic":
            turns: dict[str, Any] = {"max_tokens": 9, "messages": [
                {"role": "user", "content": hello},
                {"role": "assistant", "content": shown["content"]},
                {"role": "user", "content": hello},
            ]}  # fmt: skip
        case "openai-chat":
            turns = {"messages": [
                {"role": "user", "content": hello}, shown["choices"][0]["message"], {"role": "user", "content": hello},
            ]}  # fmt: skip
        case "gemini":
            user = {"role": "user", "parts": [{"text": hello}]}
            turns = {"contents": [user, shown["candidates"][0]["content"], user]}
        case _:
            said = {"type": "user_input", "content": [{"type": "text", "text": hello}]}
            turns = {"input": [said, *shown["steps"], said]}
    back = translate_request({"model": "m", **turns}, source=client, target="openai-responses", model="m")
    assert [item for item in back.value["input"] if item["type"] == "reasoning"] == [thought]


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini", "ollama"])
def test_a_cancelled_response_is_an_error_whole_and_streamed(target: DialectName) -> None:
    answer = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "cancelled",
        "model": "m",
        "output": [],
    }
    whole = translate_response(answer, source="openai-responses", target=target)
    assert "the response was cancelled" in str(whole.value)
    assert dialect(target).parse_error(whole.value, 500) is not None
    stream = StreamTranslator(source="openai-responses", target=target)
    event = {"type": "response.cancelled", "sequence_number": 0, "response": answer}
    out = stream.feed(b"event: response.cancelled\ndata: %b\n\n" % encode(event)) + stream.close()
    assert stream.failed
    assert b"the response was cancelled" in out
