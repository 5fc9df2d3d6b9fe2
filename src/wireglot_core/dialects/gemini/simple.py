"""The simplified form of `POST /v1/gemini`: one user turn per call; the server stores the history.

Request: `model`, `input` (a string), `tools`, `tool_config`, `tool_results`, `conversation`, `stream`,
`timeout` and sampling in both spellings. Answers and streams are Gemini's. Results name no call, so their ids
are made up: the server that stores the conversation pairs them by name.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.body import glance_body, one_answer, stated_in
from wireglot_core.dialects.common_losses import JOINED_TEXTS, RESULTS_FIRST
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.dialect import DIALECT as GEMINI
from wireglot_core.dialects.gemini.generation import SIMPLE_FIELDS
from wireglot_core.dialects.gemini.parse_request import parse_tool_config
from wireglot_core.dialects.gemini.parts import PartParser
from wireglot_core.dialects.gemini.places import SIMPLE_PLACES
from wireglot_core.dialects.gemini.render_parts import PartRenderer
from wireglot_core.dialects.gemini.response import parse_response
from wireglot_core.dialects.gemini.stream_reader import GeminiReader
from wireglot_core.dialects.gemini.tools import parse_tools, render_choice, render_tools
from wireglot_core.dialects.json_path import snake_case
from wireglot_core.dialects.lost_fields import Carries, Lost, LostFields
from wireglot_core.dialects.surface import ReasoningState, Route
from wireglot_core.dialects.unknown_fields import merge
from wireglot_core.ir.content import Extra, Media, Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.request import OutputFormat, Request, Sampling, Thinking

NAME = "gemini-simple"
_NAMES = names.Names(
    "model",
    "input",
    "tools",
    "toolConfig",
    "toolResults",
    "conversation",
    "timeout",
    *SIMPLE_FIELDS.names,
)
_TAKEN = SIMPLE_FIELDS.known.union({"model", "input", "tools", "toolConfig", "toolResults"})
_NO_FIELD: Final = "the simplified form has no such field"
LOST_HERE: Final = LostFields(
    NAME,
    {
        Request: Carries(
            "model messages tools tool_choice max_tokens stop sampling thinking stream",
            output=Lost("output_format", "dropped", _NO_FIELD, usual=(OutputFormat("text"),)),
            verbosity=Lost("verbosity", "dropped", _NO_FIELD),
            user=Lost("user", "dropped", _NO_FIELD),
            service_tier=Lost("service_tier", "dropped", _NO_FIELD),
            cache=Lost("cache_marker", "dropped", _NO_FIELD),
            cache_key=Lost("cache_key", "dropped", _NO_FIELD),
            metadata=Lost("metadata", "dropped", _NO_FIELD),
            safeguards=Lost("safeguards", "dropped", _NO_FIELD),
            parallel_tools=Lost("parallel_tools", "dropped", _NO_FIELD, usual=(True,)),
        ),
        Sampling: Carries(
            "temperature top_p top_k",
            frequency_penalty=Lost("sampling.frequency_penalty", "dropped", _NO_FIELD),
            presence_penalty=Lost("sampling.presence_penalty", "dropped", _NO_FIELD),
            seed=Lost("sampling.seed", "dropped", _NO_FIELD),
            candidates=Lost("candidates", "dropped", _NO_FIELD, usual=(1,)),
            logprobs=Lost("logprobs", "dropped", _NO_FIELD),
            top_logprobs=Lost("logprobs", "dropped", _NO_FIELD),
        ),
        Thinking: Carries(
            "",
            effort=Lost("thinking.effort", "dropped", _NO_FIELD),
            budget=Lost("thinking.budget", "dropped", _NO_FIELD),
            mode=Lost("thinking.mode", "dropped", _NO_FIELD),
            display=Lost("thinking.display", "dropped", _NO_FIELD),
        ),
        Message: Carries("role content", name=Lost("message.name", "dropped", "turns have no names")),
    },
)
"""What this form lacks besides what Gemini's parts and tools do."""
_SPELLED = ("toolConfig", "toolResults", "topP", "topK", "maxOutputTokens", "stopSequences")


def parse_request(body: dict[str, Any], context: Context) -> Request:
    fields = _NAMES.read(body, "$", ClientFault)
    form: dict[str, Any] = {"camel": [key for key in _SPELLED if key in body]}
    known = set(_TAKEN)
    settings = SIMPLE_FIELDS.read(fields, known)
    kept = {key: item for key, item in fields.value.items() if key not in known or item is None}
    tools, layout = parse_tools(fields)
    if layout is not None:
        form["tools"] = layout
    return Request(
        fields.text_or("model"),
        (Message("user", _parse_turn(fields, context, form)),),
        tools,
        parse_tool_config(fields, kept),
        extra=Extra(NAME, kept, form),
        **settings,
    )


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    renderer = PartRenderer(context, "upstream")
    out = renderer.losses
    form = own_form(request.extra, NAME)
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    body.update(_render_turn(request, renderer, form))
    tools = render_tools(request.tools, form.get("tools"), out)
    if tools:
        body["tools"] = tools
    if request.tool_choice is not None:
        config = render_choice(request.tool_choice, request.tools, out)
        if config is not None:
            body["toolConfig"] = {"functionCallingConfig": config}
    SIMPLE_FIELDS.write(request, body)
    LOST_HERE.of_fields(request.sampling, "$.sampling", out)
    LOST_HERE.of(request.thinking, "$.thinking", out)
    LOST_HERE.of(request, "$", out)
    camel = form.get("camel", [])
    body = merge(body, names.unfolded(own_fields(request.extra, NAME)))
    spelled = {
        key if key in camel or key not in _SPELLED else snake_case(key): item for key, item in body.items()
    }
    return Rendered(spelled, tuple(out))


def _parse_turn(fields: Fields, context: Context, form: dict[str, Any]) -> tuple[Part, ...]:
    parser = PartParser(context, ClientFault)
    parts: list[Part] = []
    for index, item in enumerate(names.listed(fields.value.get("toolResults"))):
        path = f"$.tool_results[{index}]"
        part = names.PART.read(item, path, ClientFault).value
        wrapped = {"functionResponse": part} if "name" in part and "functionResponse" not in part else part
        result = parser.parse(wrapped, path)
        if type(result) is not ToolResult:
            raise ClientFault("expected a functionResponse", path)
        parts.append(result)
    if fields.value.get("input") is None:
        form["input"] = "absent"
        if not parts:
            raise fields.wrong("input", "a string")
    else:
        parts.append(Text(fields.text("input")))
    return tuple(parts)


def _render_turn(request: Request, renderer: PartRenderer, form: dict[str, Any]) -> dict[str, Any]:
    """The last user turn. Everything before it is stored by the server, and reported as lost."""
    out = renderer.losses
    first = len(request.messages)
    while first and request.messages[first - 1].role == "user":
        first -= 1
    for index, message in enumerate(request.messages[:first]):
        for position in range(len(message.content)):
            place = f"$.messages[{index}].content[{position}]"
            out.append(Loss(place, "content.position", "dropped", "the server keeps the history"))
        if message.is_empty and not message.content:
            place = f"$.messages[{index}]"
            out.append(Loss(place, "content.empty", "dropped", "the server keeps the history"))
        renderer.names.update({part.id: part.name for part in message.content if type(part) is ToolCall})
    texts: list[str] = []
    results: list[dict[str, Any]] = []
    for index, message in enumerate(request.messages[first:], first):
        path = f"$.messages[{index}]"
        LOST_HERE.of(message, path, out)
        for position, part in enumerate(message.content):
            _render_part(part, f"{path}.content[{position}]", renderer, texts, results)
    if len(texts) > 1:
        out.append(JOINED_TEXTS.at("$.messages"))
    turn: dict[str, Any] = {}
    if texts or form.get("input") != "absent":
        turn["input"] = "\n\n".join(texts)
    if results:
        turn["toolResults"] = results
    return turn


def _render_part(
    part: Part, path: str, renderer: PartRenderer, texts: list[str], results: list[dict[str, Any]]
) -> None:
    out = renderer.losses
    if type(part) is Media:
        feature = "file_reference" if part.file_id is not None else part.kind
        out.append(Loss(path, feature, "dropped", "the input is one string"))
        return
    rendered = renderer.render(part, path)
    if rendered is None:
        return
    if type(part) is ToolResult:
        if texts:
            out.append(RESULTS_FIRST.at(path))
        if rendered["functionResponse"].pop("id", None) is not None:
            out.append(Loss(f"{path}.call_id", "tool_call.id", "dropped", "results are paired by name"))
        results.append(rendered)
    elif type(part) is Text:
        texts.append(part.text)
        # The simple form has a string here: unknown fields have no place next to it.
        if part.extra is not None and part.extra.dialect == names.OWN:
            losses_of_extra(part.extra, NAME, path, out)
        if "thoughtSignature" in rendered:
            out.append(Loss(f"{path}.signature", "reasoning.signature", "dropped", "the input is one string"))
    else:
        out.append(Loss(path, "foreign_part", "dropped", "the input is one string"))


# --- over HTTP


SURFACE: Final = replace(
    GEMINI.surface,
    name=NAME,
    client=replace(
        GEMINI.surface.client,
        routes=(Route("POST", "/v1/gemini", "generate"),),
        find=None,
        lists=(),
        unserved={},
        endpoints=("POST /v1/gemini",),
        prefixes=(),
        vendor_headers=(),
        glance=glance_body,
        asked_output=stated_in("maxOutputTokens"),
        asked_answers=one_answer,
        gateway_fields=frozenset({"conversation"}),
        results_without_calls=True,
        pings={"sse": b"\n"},
    ),
    upstream=None,
    model_field="model",
    sse_query="",
    # Its clients send no history: the server that stores the conversation stores its state.
    reasoning=ReasoningState(returns="all", returns_pieces=True, signs_texts=True),
    counts=None,
    embeddings=None,
)

DIALECT: Final = replace(
    GEMINI,
    surface=SURFACE,
    parse_request=parse_request,
    render_request=render_request,
    parse_response=parse_response,
    stream_reader=GeminiReader,
    places=SIMPLE_PLACES,
)
