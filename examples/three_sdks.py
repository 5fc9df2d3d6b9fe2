"""One agent, one conversation, one key, three SDKs: each step goes through another vendor's own.

    pip install openai anthropic google-genai
    wireglot run --env openai --env anthropic --env gemini --model demo/demo -- python examples/three_sdks.py

`wireglot run` starts a gateway and sets the variables of the three SDKs, all with the same key: nothing here
names an address. The gateway holds the conversation (the header below says which), so a call that the model
made through one SDK is answered through the next, and nobody sends the history. `--model kimi/kimi-k3` asks
another model.
"""

import json
import os
from collections.abc import Callable
from itertools import cycle
from typing import Any, NamedTuple
from uuid import uuid4

from anthropic import Anthropic
from google import genai
from google.genai import types
from openai import OpenAI

QUESTIONS = ("What is the weather in Oslo?", "And what is the weather in Rome?")
HELD = {"x-wireglot-session": f"three-sdks-{uuid4()}"}
NAME, ABOUT = "get_weather", "The weather in a city, now."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


class Call(NamedTuple):
    id: str
    city: str


class Result(NamedTuple):
    call: Call
    text: str


class Answer(NamedTuple):
    text: str
    calls: list[Call]


def get_weather(city: str) -> str:
    return {"Oslo": "4 degrees, rain", "Rome": "24 degrees, sunny"}.get(city, "unknown")


def with_openai(said: str | list[Result]) -> Answer:
    if isinstance(said, str):
        messages: list[Any] = [{"role": "user", "content": said}]
    else:
        messages = [{"role": "tool", "tool_call_id": one.call.id, "content": one.text} for one in said]
    tool: Any = {"type": "function", "function": {"name": NAME, "description": ABOUT, "parameters": SCHEMA}}
    client = OpenAI(default_headers=HELD)
    completion: Any = client.chat.completions.create(
        model=os.environ["OPENAI_MODEL"], messages=messages, tools=[tool]
    )
    message = completion.choices[0].message
    calls = [Call(call.id, json.loads(call.function.arguments)["city"]) for call in message.tool_calls or ()]
    return Answer(message.content or "", calls)


def with_anthropic(said: str | list[Result]) -> Answer:
    content: Any = said
    if not isinstance(said, str):
        content = [{"type": "tool_result", "tool_use_id": one.call.id, "content": one.text} for one in said]
    tool: Any = {"name": NAME, "description": ABOUT, "input_schema": SCHEMA}
    client = Anthropic(default_headers=HELD)
    message: Any = client.messages.create(
        model=os.environ["ANTHROPIC_MODEL"],
        max_tokens=1000,
        messages=[{"role": "user", "content": content}],
        tools=[tool],
    )
    calls = [Call(block.id, block.input["city"]) for block in message.content if block.type == "tool_use"]
    return Answer("".join(block.text for block in message.content if block.type == "text"), calls)


def with_google(said: str | list[Result]) -> Answer:
    if isinstance(said, str):
        parts = [types.Part(text=said)]
    else:
        parts = [types.Part.from_function_response(name=NAME, response={"output": one.text}) for one in said]
    declared = types.FunctionDeclaration(name=NAME, description=ABOUT, parameters_json_schema=SCHEMA)
    client = genai.Client(http_options=types.HttpOptions(headers=HELD))
    answer = client.models.generate_content(
        model=os.environ["GEMINI_MODEL"],
        contents=[types.Content(role="user", parts=parts)],
        config=types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])]),
    )
    calls = [Call(call.id or "", (call.args or {})["city"]) for call in answer.function_calls or ()]
    found = answer.candidates[0].content if answer.candidates else None
    return Answer("".join(part.text or "" for part in (found and found.parts) or ()), calls)


SDKS: dict[str, Callable[[str | list[Result]], Answer]] = {
    "openai": with_openai,
    "anthropic": with_anthropic,
    "google-genai": with_google,
}


def main() -> None:
    turns = cycle(SDKS.items())
    for question in QUESTIONS:
        print(f"you           {question}")
        said: str | list[Result] = question
        while said:
            sdk, ask = next(turns)
            answer = ask(said)
            if answer.text:
                print(f"{sdk:<13} {answer.text}")
            said = [Result(call, get_weather(call.city)) for call in answer.calls]
            for one in said:
                print(f"{sdk:<13} calls {NAME}({one.call.city}): {one.text}")


if __name__ == "__main__":
    main()
