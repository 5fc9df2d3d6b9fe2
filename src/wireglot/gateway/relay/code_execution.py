"""A request with code execution, for a provider that has none: it is refused.

The gateway runs no code. Without its tool a model would make up what the code printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wireglot.gateway.targets.routing import Target
from wireglot.http.failures import AttemptFailed
from wireglot.ir.errors import ApiError
from wireglot.ir.loss import Loss
from wireglot.ir.request import HostedTool, Request

_CODE: Final = "code_execution_unavailable"
_KIND: Final = "code_execution"


def refuse_code_execution(request: Request, target: Target, losses: Iterable[Loss]) -> None:
    """Raise where code execution does not reach the target. `losses`: in terms of the neutral request."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return
    places = {
        f"$.tools[{number}]"
        for number, tool in enumerate(request.tools)
        if type(tool) is HostedTool and tool.kind == _KIND
    }
    if not any(
        loss.feature == "hosted_tool" and loss.action == "dropped" and loss.path in places for loss in losses
    ):
        return
    message = (
        f"{target.provider.name} cannot execute code, and the gateway does not: send this request to a model "
        "whose provider can, or without the tool"
    )
    # The upstream was not asked; another one may be able to.
    raise AttemptFailed(ApiError("invalid_request", message, status=400, code=_CODE), "gateway")
