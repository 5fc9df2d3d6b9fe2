"""What the usual clients of a dialect send, cut short: the shapes are theirs, the words are not."""

from typing import Any

_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "The file"}, "limit": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}
_EMPTY = {"type": "object", "properties": {}}
_EPHEMERAL = {"type": "ephemeral"}


def claude_code(call_id: str = "toolu_01A") -> dict[str, Any]:
    """Claude Code, second turn of a tool loop."""
    tools = [
        {"name": "Read", "description": "Reads a file.", "input_schema": _SCHEMA},
        {"name": "mcp__files__list", "description": "Lists files.", "input_schema": _EMPTY},
    ]
    thought = {"type": "thinking", "thinking": "I should read it.", "signature": "c2ln"}
    call = {"type": "tool_use", "id": call_id, "name": "Read", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "1\tx = 1"}
    return {
        "max_tokens": 32000,
        "system": [
            {"type": "text", "text": "You are a command line agent.", "cache_control": _EPHEMERAL},
            {"type": "text", "text": "The working directory is /src.", "cache_control": _EPHEMERAL},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Explain a.py"}]},
            {"role": "assistant", "content": [thought, call]},
            {"role": "user", "content": [{**result, "cache_control": _EPHEMERAL}]},
        ],
        "tools": tools,
        "metadata": {"user_id": "user_1_account__session_2"},
        "temperature": 1,
        "thinking": {"type": "enabled", "budget_tokens": 31999},
        "stream": True,
    }


def opencode(call_id: str = "call_01A") -> dict[str, Any]:
    """opencode over the AI SDK's openai-compatible provider, second turn of a tool loop."""
    function = {"name": "read", "description": "Reads a file.", "parameters": _SCHEMA}
    call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
    return {
        "messages": [
            {"role": "system", "content": "You are a coding agent."},
            {"role": "user", "content": "Explain a.py"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "I should read it.",
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": call_id, "content": "x = 1"},
        ],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "auto",
        "max_tokens": 32000,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def codex(call_id: str = "call_01A") -> dict[str, Any]:
    """Codex with a model that is not OpenAI's, second turn of a tool loop."""
    return {
        "instructions": "You are a coding agent.",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Explain a.py"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Z0FBQUFB"},
            {"type": "function_call", "call_id": call_id, "name": "read", "arguments": '{"path": "a.py"}'},
            {"type": "function_call_output", "call_id": call_id, "output": "x = 1"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "read",
                "description": "Reads a file.",
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
