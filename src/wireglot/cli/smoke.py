"""`wireglot smoke`: checks a gateway that listens somewhere, or one that is started here for it."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from wireglot.cli.argument_parser import near
from wireglot.cli.remote_gateway import (
    GatewayAddress,
    GatewayAnswer,
    GatewayUnreachable,
    address_of,
    ask,
    usable_key,
)
from wireglot.cli.terminal import (
    MAX_FAILURES,
    Failed,
    Paint,
    Unusable,
    count,
    fitted,
    one_line,
)
from wireglot_core.dialects.arguments import arguments_object
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Message, Part, Text, ToolCall
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Event, Failure, fold
from wireglot_core.wire.json import BadJson, decode

_TOOL: Final = Tool(
    "get_weather",
    "Tells the weather in a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The name of the city"}},
        "required": ["city"],
    },
)
_GREETING: Final = "Say hello in one short sentence."
_QUESTION: Final = "What is the weather in Paris? Call the tool get_weather to find out."
# Output tokens of one answer to `wireglot smoke`: enough for a model that thinks before it says hello.
MAX_SMOKE_TOKENS: Final = 2048

_MODEL_SECONDS: Final = 120.0
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404
_VERSION_HEADER: Final = {"anthropic-version": "2023-06-01"}

_PATHS: Final[dict[str, tuple[str, str]]] = {
    # dialect: paths for a whole answer and for a stream
    "anthropic": ("/v1/messages", "/v1/messages"),
    "openai-chat": ("/v1/chat/completions", "/v1/chat/completions"),
    "openai-responses": ("/v1/responses", "/v1/responses"),
    "gemini": (
        "/v1beta/models/{model}:generateContent",
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
    ),
    "gemini-interactions": ("/v1/interactions", "/v1/interactions"),
    "code-assist": ("/v1internal:generateContent", "/v1internal:streamGenerateContent?alt=sse"),
    "gemini-simple": ("/v1/gemini", "/v1/gemini"),
    "ollama": ("/api/chat", "/api/chat"),
    "ollama-generate": ("/api/generate", "/api/generate"),
}
_WITHOUT_TOOLS: Final = frozenset({"ollama-generate"})
_SHOW: Final = "/api/show"
_CONTEXT: Final = ".context_length"
_COUNTS: Final[dict[str, tuple[str, str]]] = {
    # dialect: path for a count, and the field of the answer
    "anthropic": ("/v1/messages/count_tokens", "input_tokens"),
    "openai-responses": ("/v1/responses/input_tokens", "input_tokens"),
    "gemini": ("/v1beta/models/{model}:countTokens", "totalTokens"),
    "code-assist": ("/v1internal:countTokens", "totalTokens"),
}
_LISTS: Final[dict[str, tuple[str, str]]] = {
    # dialect: path for its list of models, and the field of the answer
    "anthropic": ("/v1/models?limit=1000", "data"),
    "openai-chat": ("/v1/models", "data"),
    "gemini": ("/v1beta/models?pageSize=1000", "models"),
    "ollama": ("/api/tags", "models"),
}


class SmokeTarget(msgspec.Struct, frozen=True):
    address: GatewayAddress
    key: str = ""

    @property
    def url(self) -> str:
        return self.address.url

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> GatewayAnswer:
        """Requests to a model may take long. Raises NoAnswer."""
        return ask(
            self.address,
            method,
            path,
            key=self.key,
            body=body,
            headers=headers or {},
            seconds=_MODEL_SECONDS,
        )


class SmokeResult(msgspec.Struct, frozen=True):
    """The result of one check; `fault` is empty if it passed. Times in seconds."""

    endpoint: str
    check: str
    seconds: float = 0.0
    fault: str = ""
    route: str = ""
    losses: str = ""


class CheckFailed(Exception):
    """A check did not pass, and why."""


def listed_models(gateway: SmokeTarget) -> list[str]:
    """The names that the gateway lists for an OpenAI client. Raises NoAnswer, Unusable, CheckFailed."""
    path, field = _LISTS["openai-chat"]
    answer = ask(gateway.address, "GET", path, key=gateway.key)
    if answer.status == _UNAUTHORIZED:
        fix = "set --key to a key from `wireglot keys create NAME`"
        if not gateway.key:
            raise Unusable(f"{gateway.url} requires a client key: {fix}")
        raise CheckFailed(f"the client key was rejected: {fix}")
    found = answer.document().get(field)
    if not isinstance(found, list):
        raise CheckFailed(answer.complaint())
    return [str(model.get("id")) for model in found if isinstance(model, dict)]


def refusal(gateway: SmokeTarget, model: str) -> str:
    """The gateway's error for a model that it does not serve; "" if it does. Raises NoAnswer."""
    answer = ask(gateway.address, "GET", f"/v1/models/{quote(model, safe='/')}", key=gateway.key)
    return answer.complaint() if answer.status == _NOT_FOUND else ""


def checks(gateway: SmokeTarget, model: str) -> Iterator[SmokeResult]:
    """Runs every check in turn, and yields each result as soon as it is done."""
    for name, (path, field) in _LISTS.items():
        yield _timed("GET " + path.partition("?")[0], f"models, {name}", _Models(gateway, name, path, field))
    yield _context(gateway, model)
    for name, (path, field) in _COUNTS.items():
        yield _timed("POST " + path.partition("?")[0], "count", _Count(gateway, name, model, path, field))
    for name, (whole, streamed) in _PATHS.items():
        for check, path, streams, tools in (
            ("sync", whole, False, False),
            ("stream", streamed, True, False),
            ("tools", whole, False, True),
            ("tools, stream", streamed, True, True),
        ):
            if tools and name in _WITHOUT_TOOLS:
                continue
            call = _Generate(gateway, name, model, path, streams=streams, tools=tools)
            yield _timed("POST " + path.partition("?")[0], check, call)


def _timed(endpoint: str, check: str, call: Callable[[], GatewayAnswer]) -> SmokeResult:
    began = time.perf_counter()
    fault, route, losses = "", "", ""
    try:
        answer = call()
        route = answer.headers.get("x-wireglot-route", "")
        losses = answer.headers.get("x-wireglot-losses", "")
    except (CheckFailed, WireglotError) as failed:
        fault = str(failed)
    except GatewayUnreachable as failed:
        fault = f"no answer: {failed}"
    seconds = time.perf_counter() - began
    return SmokeResult(endpoint, check, seconds, fault, route=route, losses=losses)


class _Models(msgspec.Struct, frozen=True):
    gateway: SmokeTarget
    dialect: str
    path: str
    field: str

    def __call__(self) -> GatewayAnswer:
        headers = _VERSION_HEADER if self.dialect == "anthropic" else {}
        answer = self.gateway.ask("GET", self.path, headers=headers)
        found = _document(answer, self.dialect).get(self.field)
        if not isinstance(found, list) or not found:
            raise CheckFailed("the list is empty")
        return answer


def _context(gateway: SmokeTarget, model: str) -> SmokeResult:
    """The model's context, by which clients decide when to shorten a conversation."""
    size = 0

    def shown() -> GatewayAnswer:
        nonlocal size
        answer = gateway.ask("POST", _SHOW, {"model": model})
        info = _document(answer, "ollama").get("model_info")
        sizes = info.items() if isinstance(info, dict) else ()
        size = next((n for name, n in sizes if name.endswith(_CONTEXT) and type(n) is int), 0)
        return answer

    result = _timed(f"POST {_SHOW}", "context", shown)
    return msgspec.structs.replace(result, check=f"context {size or 'unknown'}")


class _Count(msgspec.Struct, frozen=True):
    gateway: SmokeTarget
    dialect: str
    model: str
    path: str
    field: str

    def __call__(self) -> GatewayAnswer:
        body: dict[str, Any]
        match self.dialect:
            case "anthropic":
                body = {"model": self.model, "messages": [{"role": "user", "content": _GREETING}]}
            case "openai-responses":
                body = {"model": self.model, "input": _GREETING}
            case _:
                body = {"contents": [{"role": "user", "parts": [{"text": _GREETING}]}]}
                if self.dialect == "code-assist":
                    body = {"request": {"model": f"models/{self.model}", **body}}
        answer = self.gateway.ask("POST", _filled(self.path, self.model), body, _headers(self.dialect))
        tokens = _document(answer, self.dialect).get(self.field)
        if type(tokens) is not int or tokens < 1:
            raise CheckFailed(f"expected a count in {self.field}")
        return answer


class _Generate(msgspec.Struct, frozen=True):
    gateway: SmokeTarget
    dialect: str
    model: str
    path: str
    streams: bool
    tools: bool

    def __call__(self) -> GatewayAnswer:
        codec = dialect(self.dialect)
        text = _QUESTION if self.tools else _GREETING
        request = Request(
            self.model,
            (Message("user", (Text(text),)),),
            (_TOOL,) if self.tools else (),
            max_tokens=MAX_SMOKE_TOKENS,
            stream=None if self.dialect in ("gemini", "code-assist") else self.streams,
        )
        body = codec.render_request(request, Context()).value
        answer = self.gateway.ask("POST", _filled(self.path, self.model), body, _headers(self.dialect))
        if self.streams and answer.status == 200:
            content = self._streamed(answer)
        else:
            content = codec.parse_response(_document(answer, self.dialect), Context()).content
        self._judge(content)
        return answer

    def _streamed(self, answer: GatewayAnswer) -> tuple[Part, ...]:
        kind = answer.headers.get("content-type", "")
        framing = dialect(self.dialect).surface.client.framing
        if not kind.startswith(framing.content_type if framing is not None else "text/event-stream"):
            raise CheckFailed(f"expected a stream, got {kind or 'no content type'}")
        reader = dialect(self.dialect).stream_reader(Context())
        events: list[Event] = [*reader.read(answer.body), *reader.end()]
        last = events[-1] if events else None
        if type(last) is Failure:
            raise CheckFailed(f"the stream failed: {last.error.message}")
        return fold(events).content

    def _judge(self, content: tuple[Part, ...]) -> None:
        if not self.tools:
            if not any(type(part) is Text and part.text.strip() for part in content):
                raise CheckFailed("the answer has no text")
            return
        calls = [part for part in content if type(part) is ToolCall]
        if not calls:
            raise CheckFailed("the model did not call the tool")
        if calls[0].name != _TOOL.name or "city" not in arguments_object(calls[0].arguments):
            raise CheckFailed(f"the model called {calls[0].name} with {calls[0].arguments[:80]}")


def _headers(name: str) -> dict[str, str]:
    return _VERSION_HEADER if name == "anthropic" else {}


def _filled(path: str, model: str) -> str:
    return path.replace("{model}", quote(model, safe="/-._~@"))


def _document(answer: GatewayAnswer, name: str) -> dict[str, Any]:
    """The JSON object of an answer that is not an error."""
    try:
        value = decode(answer.body)
    except BadJson as fault:
        raise CheckFailed(f"status {answer.status}, and no JSON: {fault}") from None
    error = dialect(name).parse_error(value, answer.status)
    if error is not None:
        raise CheckFailed(f"status {answer.status}: {error.message}")
    if not isinstance(value, dict):
        raise CheckFailed("expected a JSON object")
    return value


def smoke(gateway: SmokeTarget, provider: str | None, model: str | None, *, as_json: bool = False) -> int:
    """Check one gateway and print the table; the number of failures is the exit status."""
    try:
        chosen = _model(gateway, provider, model)
    except CheckFailed as fault:
        raise Failed(f"{gateway.url}: {one_line(str(fault))}") from None
    if as_json:
        return _print_json(gateway, chosen)
    paint = Paint(sys.stdout)
    print(fitted(f"{gateway.url}, model {one_line(chosen)}\n", sys.stdout))
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < _WIDE_COLUMNS
    if not narrow:
        print(paint(_ROW.format("endpoint", "check", "", "ms", "route", "losses").rstrip(), "bold"))
    results = []
    for result in checks(gateway, chosen):
        results.append(result)
        print("\n".join(_narrow(result, chosen, paint)) if narrow else _line(result, paint), flush=True)
    failures = sum(1 for result in results if result.fault)
    print(f"\n{count(len(results) - failures, 'check')} passed, {failures} failed")
    return min(failures, MAX_FAILURES)


def _print_json(gateway: SmokeTarget, model: str) -> int:
    failures = 0
    for result in checks(gateway, model):
        failures += bool(result.fault)
        document = {
            "url": gateway.url,
            "model": model,
            "endpoint": result.endpoint,
            "check": result.check,
            "passed": not result.fault,
            "fault": result.fault or None,
            "milliseconds": round(result.seconds * 1000, 1),
            "route": result.route or None,
            "losses": [name.strip() for name in result.losses.split(",") if name.strip()],
        }
        print(msgspec.json.encode(document).decode(), flush=True)
    return min(failures, MAX_FAILURES)


_ROW = "{:<50} {:<20} {:<4} {:>7}  {:<28} {}"


_WIDE_COLUMNS: Final = 121


def _narrow(result: SmokeResult, chosen: str, paint: Paint) -> Iterator[str]:
    """For a terminal of 80 columns: unexpected results have separate lines."""
    verdict = paint("FAIL", "dropped") if result.fault else paint("PASS", "ok")
    yield f"{verdict} {result.seconds * 1000:5.0f} {result.check:<19} {result.endpoint}"
    for name, text in (("", result.fault), ("losses: ", result.losses)):
        if text:
            yield textwrap.fill(
                f"{name}{one_line(text)[:400]}", 80, initial_indent=" " * 11, subsequent_indent=" " * 11
            )
    if result.route and result.route != chosen:
        yield f"{'':11}by {one_line(result.route)}"


def _line(result: SmokeResult, paint: Paint) -> str:
    verdict = paint("FAIL", "dropped") if result.fault else paint("PASS", "ok")
    milliseconds = f"{result.seconds * 1000:.0f}"
    if result.fault:
        reported = one_line(result.fault)[:200]
        return f"{result.endpoint:<50} {result.check:<20} {verdict} {milliseconds:>7}  {reported}"
    line = _ROW.format(
        result.endpoint, result.check, verdict, milliseconds, one_line(result.route), one_line(result.losses)
    )
    return line.rstrip()


def _model(gateway: SmokeTarget, provider: str | None, model: str | None) -> str:
    """The named model, or the first that is listed. The list is requested in any case: a gateway that does
    not answer that answers no check."""
    names = listed_models(gateway)
    if model:
        named = f"{provider}/{model}" if provider else model
        if refused := refusal(gateway, named):
            meant = near(named, names)
            hint = f"did you mean {meant}?" if meant else "`wireglot models` lists the available models"
            raise Unusable(f"{refused}: {hint}")
        return named
    wanted = [name for name in names if not provider or name.startswith(f"{provider}/")]
    if wanted:
        return wanted[0]
    if not provider:
        raise Unusable("the gateway lists no models: name one with --model")
    meant = near(provider, {name.partition("/")[0] for name in names if "/" in name})
    hint = f"did you mean {meant}?" if meant else "name one with --model"
    raise Unusable(f"the gateway lists no model of provider {one_line(provider)}: {hint}")


_CALLER: Final = "wireglot-smoke"


def run(arguments: argparse.Namespace) -> int:
    key = usable_key(arguments.key or "", "--key")
    if arguments.url is not None:
        target = SmokeTarget(address_of(arguments.url), key)
        return smoke(target, arguments.provider, arguments.model, as_json=arguments.json)
    return _smoke_own(key, arguments.provider, arguments.model, as_json=arguments.json)


def _smoke_own(key: str, provider: str | None, model: str | None, *, as_json: bool) -> int:
    """With the configuration that `wireglot serve` would find."""
    from wireglot.cli.own_gateway import ask_own_gateway, key_of_its_own
    from wireglot.cli.trust import trusted_config

    own = ""
    more: dict[str, Any] = {}
    if not key:  # the configuration or the store may require one
        own, more = key_of_its_own(_CALLER)

    def ask(host: str, port: int) -> int:
        target = SmokeTarget(GatewayAddress("http", host, port), key or own)
        return smoke(target, provider, model, as_json=as_json)

    return ask_own_gateway(ask, file=trusted_config(None), more=more)
