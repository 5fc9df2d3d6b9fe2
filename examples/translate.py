"""The library: a request into another dialect, the answer back, whole and as a stream, and what was lost.

    python examples/translate.py

No network and no account: the provider's answers stand below.
"""

import json
from typing import Any

import wireglot_core as wireglot  # as `import wireglot`, without the gateway

# What a program that was written for Anthropic's API would send.
ASKED: dict[str, Any] = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 500,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
    "tools": [
        {
            "name": "get_weather",
            "description": "The weather in a city, now.",
            "input_schema": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        }
    ],
}

# What Gemini answers, whole and as a stream.
CALL = {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}}
ANSWER: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": [CALL]}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 41, "candidatesTokenCount": 7, "totalTokenCount": 48},
    "modelVersion": "gemini-2.5-pro",
    "responseId": "r1",
}
STREAM = f"data: {json.dumps(ANSWER)}\r\n\r\n".encode()


def shown(title: str, value: Any) -> None:
    print(f"\n{title}\n{json.dumps(value, indent=2)}")


def main() -> None:
    request = wireglot.translate_request(ASKED, source="anthropic", target="gemini", model="gemini-2.5-pro")
    shown("The request, for Gemini", request.value)
    print("\nWhat cannot be expressed to Gemini as it was meant")
    for loss in request.losses:
        print(f"  {loss.grade}: {loss.feature} {loss.action} at {loss.path} ({loss.detail})")

    # `request` is the client's own: names that had to be changed on the way there are turned back.
    answer = wireglot.translate_response(ANSWER, source="gemini", target="anthropic", request=ASKED)
    shown("The answer, for Anthropic's client", answer.value)

    print("\nThe same as a stream, however its bytes are cut")
    stream = wireglot.StreamTranslator(source="gemini", target="anthropic", request=ASKED)
    for start in range(0, len(STREAM), 64):
        print(stream.feed(STREAM[start : start + 64]).decode(), end="")
    print(stream.close().decode(), end="")


if __name__ == "__main__":
    main()
