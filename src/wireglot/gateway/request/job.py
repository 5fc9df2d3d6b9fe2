"""One request as it was asked: read once, never changed. What is still open of it is its `Exchange`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.dialects.base import Context, EmbedOperation, Surface
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.request.client_body import ClientBody
from wireglot.gateway.setting_tables import SafeguardSettings
from wireglot.gateway.settings import LossPolicy, Settings
from wireglot.http.application import Head
from wireglot.wire.splice import Outline

EMULATE_HEADER: Final = "x-wireglot-emulate"
"""Of a request: `off` where the gateway shall not do itself what the upstream cannot."""


class Incoming(msgspec.Struct, frozen=True):
    """Who asks for what, before its body is read. It keeps the settings it came in under."""

    settings: Settings
    head: Head
    asked: Asked
    caller: Caller

    @property
    def safeguards(self) -> SafeguardSettings:
        """Of the caller's group, or of all."""
        key = self.caller.key
        group = self.settings.groups.get(key.group) if key is not None else None
        return group.safeguards if group is not None and group.safeguards else self.settings.safeguards


CANDIDATE: Final = "candidate"
"""The operation of a request for one more answer (`n`) of a model that gives one."""


class Job(Incoming, frozen=True, eq=False, kw_only=True):
    """Implements the dialects' `Body`.

    Four fields of `Incoming` and thirteen: with one more, Python makes a dictionary of all of them for each
    that is built, which takes six times as long.
    """

    id: str
    dialect: str
    """That of `asked`: wanted so often that a look through it would show."""
    surface: Surface
    """What the client's dialect is over HTTP."""
    content: ClientBody
    body: bytes
    outline: Outline
    model: str
    """As the client named it, "" where it did not."""
    stream: bool
    conversation: str
    """The one that we hold for the client: what came before is not in its request. "": none."""
    session: str
    """By which the client groups its requests."""
    policy: LossPolicy | None
    """What the caller wants done about losses, where it said so."""
    timeout: float | None
    """Seconds for the whole answer, where the caller gives it a time."""
    context: Context
    """Without a memory: whether there is one is known once the body was decoded."""

    @property
    def thread(self) -> bool:
        """The conversation is held by the provider itself: only its own vendor can go on with it."""
        held = self.surface.client.thread
        return held is not None and self.outline.get(held.field) is not None

    @property
    def agent_field(self) -> str:
        """The field that names an agent in place of a model; "": the request names a model."""
        field = self.surface.client.agent_field
        names_agent = field and field in self.outline.members and not self.outline.get("model")
        return field if names_agent else ""

    @property
    def embed_operation(self) -> EmbedOperation:
        """The endpoint of a request for embeddings, among those of its dialect."""
        return "embed_one" if self.asked.verb == "embed_one" else "embed"

    @property
    def emulates(self) -> bool:
        """Whether the gateway may do itself what the upstream cannot."""
        return self.context.emulates

    def document(self) -> dict[str, Any]:
        """The whole body as JSON, decoded once."""
        return self.content.document()
