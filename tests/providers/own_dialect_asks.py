"""What the usual clients of a dialect send, cut short: the shapes are theirs, the words are not."""

from typing import Any

_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "The file"}, "limit": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}
_EPHEMERAL = {"type": "ephemeral"}


def claude_code(thinking: bool = True) -> dict[str, Any]:
    """Claude Code, second turn of a tool loop."""
    tools = [
        {"name": "Read", "description": "Reads a file.", "input_schema": _SCHEMA},
        {"name": "mcp__files__list", "description": "Lists files.", "input_schema": {"type": "object"}},
    ]
    thought = {"type": "thinking", "thinking": "I should read it.", "signature": "c2ln"}
    call = {"type": "tool_use", "id": "toolu_01A", "name": "Read", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "1\tx = 1"}
    body: dict[str, Any] = {
        "max_tokens": 32000,
        "system": [
            {"type": "text", "text": "You are a command line agent.", "cache_control": _EPHEMERAL},
            {"type": "text", "text": "The working directory is /src.", "cache_control": _EPHEMERAL},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Explain a.py"}]},
            {"role": "assistant", "content": [thought, call] if thinking else [call]},
            {"role": "user", "content": [{**result, "cache_control": _EPHEMERAL}]},
        ],
        "tools": tools,
        "metadata": {"user_id": "user_1_account__session_2"},
        "temperature": 1,
        "stream": True,
    }
    if thinking:
        body["thinking"] = {"type": "enabled", "budget_tokens": 31999}
    return body


def opencode() -> dict[str, Any]:
    """opencode over the AI SDK's openai-compatible provider, second turn of a tool loop."""
    function = {"name": "read", "description": "Reads a file.", "parameters": _SCHEMA}
    call = {
        "id": "call_01A",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path": "a.py"}'},
    }
    return {
        "messages": [
            {"role": "system", "content": "You are a coding agent."},
            {"role": "user", "content": "Explain a.py"},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": "I should read it.",
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": "call_01A", "content": "x = 1"},
        ],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "auto",
        "max_tokens": 32000,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def codex() -> dict[str, Any]:
    """Codex with a model that is not OpenAI's, second turn of a tool loop."""
    return {
        "instructions": "You are a coding agent.",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Explain a.py"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z0FBQUFB"},
            {"type": "function_call", "call_id": "call_01A", "name": "shell", "arguments": '{"path": "a.py"}'},
            {"type": "function_call_output", "call_id": "call_01A", "output": "x = 1"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "shell",
                "description": "Runs a command.",
                "strict": False,
                "parameters": _SCHEMA,
            }
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "high", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199-session",
    }
