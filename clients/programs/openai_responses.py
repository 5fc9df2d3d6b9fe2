"""Two tool loops with responses of the openai SDK, one whole and one streamed, history kept by the client."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI
from openai.types.responses import FunctionToolParam, Response

from clients.programs.marker import ABOUT, KEY, NAME, PROMPT, SCHEMA, URL, get_marker

MODEL = "gpt-5.5"
TOOLS: list[FunctionToolParam] = [
    {"type": "function", "name": NAME, "description": ABOUT, "parameters": SCHEMA, "strict": True}
]
client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=60)


def whole(items: list[Any]) -> Response:
    return client.responses.create(
        model=MODEL,
        input=items,
        tools=TOOLS,
        store=False,
        instructions="Be brief.",
        include=["reasoning.encrypted_content"],
    )


def streamed(items: list[Any]) -> Response:
    with client.responses.stream(
        model=MODEL,
        input=items,
        tools=TOOLS,
        store=False,
        reasoning={"effort": "low", "summary": "auto"},
        include=["reasoning.encrypted_content"],
    ) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


for turn in (whole, streamed):
    history: list[Any] = [{"role": "user", "content": PROMPT}]
    response = turn(history)
    calls = [item for item in response.output if item.type == "function_call"]
    assert calls, response
    # As a user of the SDK would: the items go back as they came.
    history += [item.model_dump(exclude_none=True) for item in response.output]
    for call in calls:
        output = get_marker(**json.loads(call.arguments))
        history.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    response = turn(history)
    assert response.usage is not None
    assert response.usage.total_tokens > 0
    print(response.output_text)
