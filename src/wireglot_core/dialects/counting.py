"""Counting tokens with a provider's own endpoint: code common to the dialects that have one."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import msgspec

from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.ir.errors import UpstreamFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request, Sampling


def without_settings(request: Request) -> Request:
    """Removes generation settings, which do not affect a count and must not be reported as lost."""
    return msgspec.structs.replace(
        request,
        max_tokens=None,
        stop=(),
        sampling=Sampling(),
        verbosity="",
        stream=None,
        user="",
        metadata={},
        service_tier="",
        cache_key="",
    )


def counted(body: dict[str, Any], losses: tuple[Loss, ...]) -> Rendered[dict[str, Any]]:
    """A request body for a count, without a limit for an answer."""
    return Rendered(body, tuple(loss for loss in losses if loss.feature != "max_tokens"))


def only(body: dict[str, Any], names: Container[str]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name in names}


def tokens_in(body: Any, name: str) -> int:
    """The count in the field `name` of an answer."""
    tokens = body.get(name) if type(body) is dict else None
    if type(tokens) is not int or tokens < 0:
        raise UpstreamFault("expected a count of tokens", f"$.{name}")
    return tokens


def input_tokens(body: Any) -> int:
    """The count in the form of Anthropic and Responses."""
    return tokens_in(body, "input_tokens")


def counting_only(
    render: Callable[[Request, Context], Rendered[dict[str, Any]]], names: Container[str]
) -> Callable[[Request, Context, str], Rendered[dict[str, Any]]]:
    """A renderer of count requests with only these fields, for any base URL."""

    def render_count(request: Request, context: Context, base_url: str) -> Rendered[dict[str, Any]]:
        rendered = render(without_settings(request), context)
        return counted(only(rendered.value, names), rendered.losses)

    return render_count
