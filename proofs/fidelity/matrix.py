"""The fidelity matrix, measured: every probe sent in every direction, and what became of it.

A direction is client > upstream. Settings and questions go that way, answers come back the other way, and
state an upstream minted goes through the client and back to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Any, Literal

from proofs.fidelity.answer_probes import RESPONSES, server_part_probe, state_probes
from proofs.fidelity.probes import RequestProbe, ResponseProbe, StateProbe
from proofs.fidelity.request_probes import REQUESTS, hosted_probe, unknown_probe
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect, dialect_name
from wireglot_core.ir.content import Message, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ClientFault, Unsupported
from wireglot_core.ir.loss import Feature, Loss
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import Request
from wireglot_core.testing.laws import crossed_request, crossed_response, opened
from wireglot_core.translate import translate_request, translate_response

Grade = Literal["kept", "side channel", "approximated", "refused", "dropped", "n/a", "LOST", "FALSE ALARM"]
"""The last two are lies: lost without a loss, or a loss without a change. The laws forbid them."""

LETTERS = {
    "anthropic": "A",
    "openai-chat": "C",
    "openai-responses": "R",
    "gemini": "G",
    "gemini-interactions": "I",
    "ollama": "O",
}
"""Dialects that are another one in an envelope are left out: they have its grades."""
DIRECTIONS = tuple(permutations(LETTERS, 2))
_CONTEXT = Context()
_MODEL = "model"
_DETAILS = (".mime", ".name", ".strict")
"""Ends of paths that speak of something beside the feature itself: a file's name, not the file."""


def title(client: str, upstream: str) -> str:
    return f"{LETTERS[client]}>{LETTERS[upstream]}"


def run_matrix() -> dict[str, dict[str, Grade]]:
    """feature -> direction -> grade. `n/a`: the side that would have to say it has no word for it."""
    matrix: dict[str, dict[str, Grade]] = {}
    for client, upstream in DIRECTIONS:
        for name, grade in _grades(dialect_name(client), dialect_name(upstream)):
            matrix.setdefault(name, {})[title(client, upstream)] = grade
    for row in matrix.values():
        for client, upstream in DIRECTIONS:
            row.setdefault(title(client, upstream), "n/a")
    return matrix


def _grades(client: DialectName, upstream: DialectName) -> Iterator[tuple[str, Grade]]:
    requests: list[RequestProbe | None] = [*REQUESTS, hosted_probe(client), unknown_probe(client)]
    for request in requests:
        if request is not None:
            yield request.name, grade_request(request, client, upstream)
    responses: list[ResponseProbe | None] = [*RESPONSES, server_part_probe(upstream)]
    for response in responses:
        if response is not None:
            yield response.name, grade_response(response, client, upstream)
    for state in state_probes(upstream):
        yield state.name, grade_state(state, client, upstream)


def grade_request(probe: RequestProbe, client: DialectName, upstream: DialectName) -> Grade:
    source, target = dialect(client), dialect(upstream)
    wanted = probe.look(probe.request)
    try:
        body = source.render_request(probe.request, _CONTEXT).value
    except Unsupported:
        return "n/a"
    try:
        if probe.look(source.parse_request(body, _CONTEXT)) != wanted:
            return "n/a"
    except ClientFault:  # it was all that was said
        return "n/a"
    try:
        rendered = crossed_request(body, client, upstream, _MODEL)
    except Unsupported:
        return "refused"
    try:
        parsed = target.parse_request(rendered.value, _CONTEXT)
    except ClientFault:
        return _grade(False, rendered.losses, probe.features)
    grade = _grade(probe.look(parsed) == wanted, rendered.losses, probe.features)
    if grade == "approximated" and _comes_back(probe, body, parsed, client, upstream):
        return "side channel"
    return grade


def _comes_back(
    probe: RequestProbe, body: dict[str, Any], asked: Request, client: DialectName, upstream: DialectName
) -> bool:
    """Whether a call of the tool as the upstream knows it reaches the client as the tool it declared."""
    ours, theirs = (
        [tool for tool in tools if not hasattr(tool, "native")]
        for tools in (probe.request.tools, asked.tools)
    )
    if (
        len(ours) != 1
        or len(theirs) != 1
        or not probe.features & {"tool.custom", "tool.namespace", "tool.name"}
    ):
        return False
    declared, known = ours[0], theirs[0]
    call = ToolCall("call_1", getattr(known, "name", ""), '{"input":"x"}', getattr(known, "kind", "function"))
    answer = Response("resp_1", _MODEL, (call,), Stop("tool_calls"), Usage(input=1, output=1))
    upstream_body = dialect(upstream).render_response(answer, _CONTEXT).value
    client_body = translate_response(upstream_body, source=upstream, target=client, request=body).value
    calls = [
        (part.name, part.kind, part.namespace)
        for part in dialect(client).parse_response(client_body, _CONTEXT).content
        if isinstance(part, ToolCall)
    ]
    return calls == [
        (getattr(declared, "name", ""), getattr(declared, "kind", ""), getattr(declared, "namespace", ""))
    ]


def grade_response(probe: ResponseProbe, client: str, upstream: str) -> Grade:
    source, target = dialect(upstream), dialect(client)
    wanted = probe.look(probe.response)
    body = source.render_response(probe.response, _CONTEXT).value
    if probe.look(source.parse_response(body, _CONTEXT)) != wanted:
        return "n/a"
    rendered = crossed_response(body, upstream, client)
    if target.parse_error(rendered.value) is not None:  # no answer to act on, and the client is informed
        return "refused"
    parsed = opened(target.parse_response(rendered.value, _CONTEXT))
    return _grade(probe.look(parsed) == wanted, rendered.losses, probe.features)


def grade_state(probe: StateProbe, client: DialectName, upstream: DialectName) -> Grade:
    """Send the answer to the client, let it say it back, and look at what the upstream gets."""
    calls = [probe.part] if isinstance(probe.part, ToolCall) else []
    content = (probe.part, *(() if calls else (Text("Yes."),)))
    answer = Response(
        "resp_1", _MODEL, content, Stop("tool_calls" if calls else "end"), Usage(input=1, output=1)
    )
    body = dialect(upstream).render_response(answer, _CONTEXT).value
    there = translate_response(body, source=upstream, target=client)
    question = dialect(client).render_request(_question(calls), _CONTEXT).value
    back = translate_request(
        said_back(client, question, there.value), source=client, target=upstream, model=_MODEL
    )
    returned = dialect(upstream).parse_request(back.value, _CONTEXT)
    parts = tuple(part for message in returned.messages for part in message.content)
    if probe.look(parts) == probe.look((probe.part,)):
        return "side channel"
    return _grade(False, (*there.losses, *back.losses), probe.features)


def _question(calls: list[ToolCall]) -> Request:
    """The turns around the answer; where it stood, a placeholder the answer replaces."""
    asked = Message("user", (Text("?"),))
    results = tuple(ToolResult(call.id, (Text("21"),), name=call.name) for call in calls)
    return Request(
        _MODEL,
        (asked, Message("assistant", (Text("-"),)), Message("user", results or (Text("Go on"),))),
        max_tokens=100,
    )


def said_back(client: str, question: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The client's next request: its own words, with the answer in its place, as clients send it back."""
    match client:
        case "anthropic":
            turns: list[Any] = [{"role": "assistant", "content": answer["content"]}]
            key = "messages"
        case "openai-chat":
            turns, key = [answer["choices"][0]["message"]], "messages"
        case "openai-responses":
            turns, key = answer["output"], "input"
        case "gemini-interactions":
            turns, key = answer["steps"], "input"
        case "ollama":
            turns, key = [answer["message"]], "messages"
        case _:
            turns, key = [answer["candidates"][0]["content"]], "contents"
    first, _, *rest = question[key]
    return {**question, key: [first, *turns, *rest]}


def _grade(equal: bool, losses: Iterable[Loss], features: frozenset[Feature]) -> Grade:
    spoken = [loss for loss in losses if loss.feature in features]
    actions = {loss.action for loss in spoken}
    if not actions:
        return "kept" if equal else "LOST"
    if equal and all(loss.path.endswith(_DETAILS) for loss in spoken):
        return "approximated"
    if equal and actions == {"emulated"}:
        return "side channel"
    if actions & {"approximated", "emulated", "invented"}:
        return "approximated"
    return "FALSE ALARM" if equal else "dropped"
