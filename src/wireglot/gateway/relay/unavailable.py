"""Refuses a request for a hosted tool that neither provider nor gateway runs.

Without its tool the model would make results up, and clients (Claude Code's WebSearch, Gemini CLI's) show
them as found. So the target is skipped. If no other is left, a request for nothing but a search gets the
error of a failed search in the client's form, or a plain error if its dialect has no such form. The gateway
runs no code: a request that may execute some is refused if the tool does not reach the target.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.headers import JSON
from wireglot.gateway.targets.routing import Target
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.request import AnyTool, HostedTool, Request, ToolChoice, tool_name
from wireglot_core.ir.stream import unfold
from wireglot_core.wire.json import encode

UNSEARCHED: Final = "web_search_unavailable"
_NO_CODE: Final = "code_execution_unavailable"
_SEARCHES: Final = frozenset({"web_search", "web_fetch"})


def refuse_search(request: Request, target: Target, losses: Iterable[Loss]) -> None:
    """Raises if all tools that a request wants used are searches and none of them reaches the target."""
    dropped = 0
    for loss in losses:
        dropped += loss.feature == "hosted_tool" and loss.action == "dropped"
    tools, choice = request.tools, request.tool_choice
    if not dropped or not tools or (choice is not None and choice.mode == "none"):
        return
    if not all(isinstance(tool, HostedTool) and tool.kind in _SEARCHES for tool in _chosen(tools, choice)):
        return
    # A lost search for tools does no harm: every tool is declared instead.
    if dropped < sum(isinstance(tool, HostedTool) and tool.kind != "tool_search" for tool in tools):
        return
    message = (
        f"{target.provider.name} cannot search the web, and this request has no other tool: "
        "send it to a model that can, or without the tool"
    )
    # The upstream was not called; another one may support it.
    raise AttemptFailed(ApiError("invalid_request", message, status=400, code=UNSEARCHED), "gateway")


def _chosen(tools: tuple[AnyTool, ...], choice: ToolChoice | None) -> tuple[AnyTool, ...]:
    """The tools that the model must choose from: all of them, unless one is named."""
    if choice is None or choice.mode != "required":
        return tools
    return tuple(tool for tool in tools if choice.allows(tool) or tool_name(tool) in choice.only) or tools


def refuse_code_execution(request: Request, target: Target, losses: Iterable[Loss]) -> None:
    """Raises if code execution does not reach the target. `losses`: in terms of the neutral request."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return
    places = {
        f"$.tools[{number}]"
        for number, tool in enumerate(request.tools)
        if type(tool) is HostedTool and tool.kind == "code_execution"
    }
    if not any(
        loss.feature == "hosted_tool" and loss.action == "dropped" and loss.path in places for loss in losses
    ):
        return
    message = (
        f"{target.provider.name} cannot execute code, and the gateway does not: send this request to a model "
        "whose provider can, or without the tool"
    )
    # The upstream was not called; another one may support it.
    raise AttemptFailed(ApiError("invalid_request", message, status=400, code=_NO_CODE), "gateway")


def answer_unsearched(exchange: Exchange, failed: AttemptFailed) -> bool:
    """Answer with a failed search. False: the client's dialect has no form for one, or the gateway itself
    sent the request."""
    job = exchange.job
    form = job.surface.client.failed_search
    if form is None or exchange.record.within:  # the gateway's own search must fail
        return False
    request = exchange.request()
    content = form(request, failed.error.message, job.context)
    response = Response("", job.model, content, Stop("end"), Usage(), created=job.context.now)
    exchange.record.answered()
    speaks = exchange.codec
    if exchange.client is not None:
        writer = speaks.stream_writer(job.context, request)
        exchange.client.write(writer.write(list(unfold(response))), last=True)
        exchange.client.end()
        return True
    rendered = speaks.render_response(response, job.context, request)
    exchange.record.began()
    exchange.send(200, [JSON, *exchange.headers()], encode(rendered.value))
    return True
