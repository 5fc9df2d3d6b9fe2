"""The agent's side of a conversation: keeps its turns, reads answers and builds the next request.

    history = History()
    history.user("What is in notes.txt?")
    asked = history.request("gemini", model="gemini-3-pro", tools=tools)  # asked.value, asked.losses
    answer = asked.answer()
    for step in answer.steps(chunks): ...  # text, reasoning and calls, as they come
    history.assistant(answer)  # all of it, not only its text
    for call in history.pending:
        history.result(call, run(call.name, call.input))

No I/O: sending `asked.value` and reading the chunks is up to you.
"""

from wireglot.history.ask import Asked, Settings
from wireglot.history.assistant import Assistant, Step, Unfinished
from wireglot.history.calls import Call, native_calls
from wireglot.history.conversation import BadHistory, History, NoSuchCall
from wireglot_core.ir.content import Media, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Thinking, Tool, ToolChoice

__all__ = [
    "Asked",
    "Assistant",
    "BadHistory",
    "Call",
    "History",
    "Media",
    "Message",
    "NoSuchCall",
    "Settings",
    "Step",
    "Text",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolResult",
    "Unfinished",
    "native_calls",
]
