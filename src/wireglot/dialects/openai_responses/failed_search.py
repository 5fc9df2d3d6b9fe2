"""The items of a web search that failed: its call, and a word about it."""

from __future__ import annotations

from wireglot.dialects.context import Context
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.ir.content import Foreign, Part, Text
from wireglot.ir.request import Request
from wireglot.ir.turns import last_words


def failed_search(request: Request, why: str, context: Context) -> tuple[Part, ...]:
    asked = last_words(request.messages)
    call = {
        "type": "web_search_call",
        "id": context.new_id("ws", asked),
        "status": "failed",
        "action": {"type": "search", "query": asked, "queries": [asked]},
    }
    return Foreign(NAME, "web_search_call", call), Text(f"The web was not searched: {why}.")
