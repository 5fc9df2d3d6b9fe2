"""Two tool loops with the google-genai SDK, one whole and one streamed, the calls made by hand."""

from __future__ import annotations

from google import genai
from google.genai import types

from clients.programs.marker import ABOUT, KEY, NAME, PROMPT, SCHEMA, URL, get_marker

MODEL = "gemini-2.5-flash"
CONFIG = types.GenerateContentConfig(
    system_instruction="Be brief.",
    tools=[
        types.Tool(
            function_declarations=[
                types.FunctionDeclaration(name=NAME, description=ABOUT, parameters_json_schema=SCHEMA)
            ]
        )
    ],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    thinking_config=types.ThinkingConfig(include_thoughts=True),
)
client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL, timeout=60_000))


def whole(contents: list[types.Content]) -> types.Content:
    answer = client.models.generate_content(model=MODEL, contents=contents, config=CONFIG)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.total_token_count
    assert answer.candidates
    content = answer.candidates[0].content
    assert content is not None
    return content


def streamed(contents: list[types.Content]) -> types.Content:
    parts: list[types.Part] = []
    for chunk in client.models.generate_content_stream(model=MODEL, contents=contents, config=CONFIG):
        for candidate in chunk.candidates or []:
            parts += (candidate.content and candidate.content.parts) or []
    return types.Content(role="model", parts=parts)


for turn in (whole, streamed):
    history = [types.Content(role="user", parts=[types.Part(text=PROMPT)])]
    content = turn(history)
    calls = [part.function_call for part in content.parts or [] if part.function_call]
    assert calls, content
    history.append(content)
    answers = [
        types.FunctionResponse(
            id=call.id, name=call.name, response={"output": get_marker(**(call.args or {}))}
        )
        for call in calls
    ]
    history.append(
        types.Content(role="user", parts=[types.Part(function_response=answer) for answer in answers])
    )
    content = turn(history)
    print("".join(part.text or "" for part in content.parts or [] if not part.thought))
