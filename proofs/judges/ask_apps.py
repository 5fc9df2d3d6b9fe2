"""What applications do with Python libraries that call models. Prints [{name, problem}] as JSON.

Runs in an environment of its own, with those libraries and the variables that point them at the gateway.
Arguments: the gateway's address, the models.
"""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from google.adk.agents import Agent
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings
from pydantic import BaseModel

URL, NAMES = sys.argv[1:3]

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

WEATHER = "What is the weather in Paris?"
RESULT = "24 degrees and a purple sky"
GREETING = "Hello! I am demo"


def get_weather(city: str) -> str:
    """The weather of a city."""
    return RESULT


class River(BaseModel):
    name: str
    size: int


def expect(holds: Any, seen: Any) -> None:
    if not holds:
        raise AssertionError(f"got {seen!r}"[:300])


def adk(*, interactions: bool, streams: bool) -> Callable[[str], None]:
    """An agent with a tool: two turns of one session, the second of which needs the first."""

    async def run(model: str) -> None:
        from google.adk.agents.run_config import RunConfig, StreamingMode

        agent = Agent(
            name="helper",
            model=Gemini(model=model, use_interactions_api=interactions),
            instruction="Be brief.",
            tools=[get_weather],
        )
        runner = InMemoryRunner(agent, app_name="app")
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        config = RunConfig(streaming_mode=StreamingMode.SSE if streams else StreamingMode.NONE)

        async def ask(text: str) -> list[Any]:
            message = types.Content(role="user", parts=[types.Part(text=text)])
            found = runner.run_async(
                user_id="u", session_id=session.id, new_message=message, run_config=config
            )
            return [event async for event in found]

        def text_of(events: list[Any]) -> str:
            parts = [
                part for each in events if each.content and not each.partial for part in each.content.parts
            ]
            return "".join(part.text or "" for part in parts)

        events = await ask(WEATHER)
        errors = [each.error_message for each in events if each.error_code]
        calls = [call for each in events if not each.partial for call in each.get_function_calls()]
        expect(len(calls) == 1 and RESULT in text_of(events), (errors, len(calls), text_of(events)))
        if streams:
            expect(any(each.partial for each in events), "no piece of a stream")
        again = await ask("Hello there")
        expect(GREETING in text_of(again), text_of(again))

    return lambda model: asyncio.run(run(model))


def chat(model: str) -> None:
    answer = ChatOllama(model=model, base_url=URL).invoke("Hello there")
    expect(answer.content.startswith(GREETING) and answer.usage_metadata["output_tokens"], answer)


def chat_stream(model: str) -> None:
    pieces = list(ChatOllama(model=model, base_url=URL).stream("Hello there"))
    text = "".join(each.content for each in pieces)
    expect(len(pieces) > 3 and text.startswith(GREETING), text)


def chat_tools(model: str) -> None:
    bound = ChatOllama(model=model, base_url=URL).bind_tools([tool(get_weather)])
    asked: list[Any] = [HumanMessage(WEATHER)]
    answer = bound.invoke(asked)
    expect(answer.tool_calls and answer.tool_calls[0]["name"] == "get_weather", answer)
    asked += [answer, ToolMessage(RESULT, tool_call_id=answer.tool_calls[0]["id"])]
    expect(RESULT in bound.invoke(asked).content, "the result is not in the answer")


def chat_schema(model: str) -> None:
    river = ChatOllama(model=model, base_url=URL).with_structured_output(River).invoke("A river")
    expect(isinstance(river, River), river)


def chat_thinks(model: str) -> None:
    answer = ChatOllama(model=model, base_url=URL, reasoning=True).invoke("Hello there")
    expect(answer.additional_kwargs.get("reasoning_content"), answer)


def embed(_: str) -> None:
    found = OllamaEmbeddings(model="demo-embedding", base_url=URL).embed_documents(["a", "b"])
    expect(len(found) == 2 and len(found[0]) > 8, found)


def llm(model: str) -> None:
    program = Path(sys.executable).with_name("llm")
    done = subprocess.run(
        [program, "-m", f"ollama/{model}", "Hello there"], capture_output=True, text=True, check=False
    )
    expect(done.stdout.startswith(GREETING), (done.stdout, done.stderr))


CASES: dict[str, Callable[[str], None]] = {
    "adk generateContent": adk(interactions=False, streams=False),
    "adk generateContent stream": adk(interactions=False, streams=True),
    "adk interactions": adk(interactions=True, streams=False),
    "adk interactions stream": adk(interactions=True, streams=True),
    "langchain-ollama text": chat,
    "langchain-ollama stream": chat_stream,
    "langchain-ollama tools": chat_tools,
    "langchain-ollama schema": chat_schema,
    "langchain-ollama thinking": chat_thinks,
    "langchain-ollama embed": embed,
    "llm-ollama": llm,
}


def outcomes() -> Iterator[dict[str, str]]:
    for name, run in CASES.items():
        for model in NAMES.split(","):
            problem = ""
            try:
                run(model)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            yield {"name": f"{name} {model}", "problem": problem}


print(json.dumps(list(outcomes())))
