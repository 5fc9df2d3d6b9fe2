"""What is known of one request: filled by the application and the relay as it goes on, read by every sink."""

from __future__ import annotations

from typing import Literal

import msgspec

from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Usage

Outcome = Literal["ok", "error", "client_abort", "gateway_abort"]
UsageSource = Literal["provider", "partial", "estimated", "none"]


class Record(msgspec.Struct):
    """Times are monotonic seconds. "" and None: not known, or not reached."""

    id: str
    started: float
    dialect: str = ""
    operation: str = ""
    caller: str = ""
    """The name of the client's key."""
    model: str = ""
    """As the client asked for it."""
    stream: bool = False
    session: str = ""
    """By the client's own header, or the conversation it named."""
    path: str = ""
    """Without its query; told where there is no operation, or for an error."""
    agent: str = ""
    traceparent: str = ""
    """The client's own, if it traces."""

    provider: str = ""
    upstream_model: str = ""
    upstream_dialect: str = ""
    upstream_url: str = ""
    """Only its host and port are ever told."""
    passthrough: bool = False
    account: str = ""
    attempts: int = 0
    fallbacks: list[str] = []
    """The targets (`provider/model`) given up before this one."""

    status: int = 0
    outcome: Outcome = "ok"
    stop: str = ""
    error_kind: str = ""
    error_code: str = ""
    error_message: str = ""
    usage: Usage | None = None
    usage_source: UsageSource = "none"
    losses: list[Loss] = []
    response_model: str = ""
    """As the provider names it in its answer."""
    upstream_request_id: str = ""
    notes: list[str] = []

    first_byte: float | None = None
    """When the first byte of the answer went to the client."""
    begun: bool = False
    """Set by `Observer.begin`: it counts among those in flight."""
    finished: float = 0.0
    """Set by `Observer.finish` where it is 0; not 0 also says that the request has been counted."""

    @property
    def seconds(self) -> float:
        return self.finished - self.started

    @property
    def route(self) -> str:
        return f"{self.provider}/{self.upstream_model}" if self.provider else ""
