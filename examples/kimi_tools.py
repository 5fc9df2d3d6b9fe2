"""A complete tool loop with Kimi.

    python examples/kimi_tools.py --demo

asks a scripted model: no key, no network. Kimi itself:

    MOONSHOT_API_KEY=sk-... python examples/kimi_tools.py "What is the weather in Rome?"
"""

import sys
from typing import Any

from wireglot import kimi

TOOLS = [
    {
        "name": "get_weather",
        "description": "The weather in a city, now.",
        "input_schema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    }
]


def run_tool(name: str, arguments: dict[str, Any]) -> str:
    if name != "get_weather":
        raise ValueError(f"no tool is called {name}")
    return f"In {arguments['city']} it is sunny, 24 degrees."


def answer_call(call: dict[str, Any]) -> dict[str, Any]:
    """The result of one call. A tool that fails tells the model why, which may then do better."""
    result = {"type": "tool_result", "tool_use_id": call["id"]}
    try:
        return {**result, "content": run_tool(call["name"], call["input"])}
    except (KeyError, ValueError) as problem:
        return {**result, "content": repr(problem), "is_error": True}


def agent(question: str, **options: Any) -> str:
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for _ in range(8):
        result = kimi.complete_with_tools_sync(None, TOOLS, messages=messages, **options)
        if result.stop_reason != "tool_use":
            return result.text
        calls = [block for block in result.blocks if block["type"] == "tool_use"]
        messages.append({"role": "assistant", "content": result.blocks})
        messages.append({"role": "user", "content": [answer_call(call) for call in calls]})
    return "Eight rounds of tools were not enough."


def main(arguments: list[str]) -> None:
    demo = "--demo" in arguments
    question = " ".join(word for word in arguments if word != "--demo") or "What is the weather in Rome?"
    if demo:
        from wireglot.testing.scripted_upstream import ScriptedUpstream

        with ScriptedUpstream() as upstream:
            answer = agent(question, api_key="demo", base_url=f"{upstream.url}/v1")
    else:
        answer = agent(question)
    sys.stdout.write(f"{answer}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except kimi.KimiError as problem:
        sys.exit(f"{problem.code}: {problem}")
