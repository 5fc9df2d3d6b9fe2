"""A client's request: the conversation, the tools, and how to generate."""

from __future__ import annotations

from typing import Any, Final, Literal, final, get_args

import msgspec

from wireglot_core.ir.content import CacheMark, Extra, Foreign, Message
from wireglot_core.ir.safeguards import Safeguard

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)


class Grammar(msgspec.Struct, frozen=True, omit_defaults=True):
    """The format of a freeform tool's input. An absent grammar means plain text."""

    syntax: str
    definition: str


@final
class Tool(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """A tool the client runs. `schema` None means the dialect stated none (no arguments)."""

    name: str
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    kind: Literal["function", "custom"] = "function"
    grammar: Grammar | None = None
    namespace: str = ""
    deferred: bool = False
    native: Foreign | None = None
    """The declaration verbatim, if the tool is one of a vendor's own that its models know by type (bash,
    shell, apply_patch). Other upstreams are sent the function that the other fields define."""
    cache: CacheMark | None = None
    extra: Extra | None = None

    def is_plain(self) -> bool:
        """Whether it is a function with only name, description, schema and strictness."""
        return (
            self.kind == "function"
            and self.extra is None
            and self.cache is None
            and self.grammar is None
            and not self.namespace
            and not self.deferred
            and self.native is None
        )


_NARROWING: Final = ("configs", "allowed_tools")
"""Fields of a server that may forbid some of its tools."""


class McpServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An MCP server that the provider connects to itself. `allowed` None: all of its tools."""

    name: str
    url: str
    token: str = ""
    allowed: tuple[str, ...] | None = None
    deferred: bool = False
    approval: bool = False
    """A person must agree before a tool of it is called."""
    rest: tuple[str, ...] = ()
    """Names of the fields that only its own dialect has."""

    @property
    def is_narrowed(self) -> bool:
        """Whether only some of its tools may be called, or perhaps not all."""
        return self.allowed is not None or any(name.startswith(_NARROWING) for name in self.rest)


@final
class HostedTool(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """A tool the provider runs. `kind` is the shared concept (`web_search`, `code_execution`, ...), or the
    native type if there is none; `native` is the declaration verbatim.

    `options` are those that several dialects have: `allowed_domains`, `blocked_domains`, `location` (city,
    region, country, timezone), `max_uses`, `context_size`. `untold` names those that only this one has.
    """

    kind: str
    native: Foreign
    server: McpServer | None = None
    """For the kind `mcp`: the server with its tools."""
    options: dict[str, Any] = {}
    untold: tuple[str, ...] = ()


AnyTool = Tool | HostedTool

TOOLS_PART: Final = "system.tools"
"""The type of the `Foreign` part of a system message that declares tools in the middle of a conversation
(Kimi). The tools are listed among the request's other tools."""
MIDWAY: Final = "midway"
"""Key in the value of such a part and in the form of its tools, with the same number in both: which of the
parts declares them."""


class ToolChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change of the tools from a message on: it adds `tools` that it defines, or a declared one by name, or
    those of a server; or it withdraws one."""

    removes: bool = False
    name: str = ""
    server: str = ""
    tools: tuple[AnyTool, ...] = ()

    def names(self, tool: AnyTool) -> bool:
        if not self.server:
            return tool_name(tool) == self.name
        return isinstance(tool, HostedTool) and tool.server is not None and tool.server.name == self.server


def tool_name(tool: AnyTool) -> str:
    """The name by which a model calls it; "" for a declaration of several tools."""
    if isinstance(tool, Tool):
        return tool.name
    name = tool.native.value.get("name")
    return name if type(name) is str else ""


class HostedChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hosted tools that a choice names: all of a kind, those of one server, or one tool of it."""

    kind: str
    server: str = ""
    tool: str = ""

    def names(self, tool: HostedTool) -> bool:
        if tool.kind != self.kind:
            return False
        return not self.server or (tool.server is not None and tool.server.name == self.server)


class ToolChoice(msgspec.Struct, frozen=True, omit_defaults=True):
    """`only` and `hosted` narrow the choice to some tools: no other may be called. `required` with one name
    is the named choice."""

    mode: Literal["auto", "none", "required"]
    only: tuple[str, ...] = ()
    extra: Extra | None = None
    hosted: tuple[HostedChoice, ...] = ()

    @property
    def narrows(self) -> bool:
        return bool(self.only or self.hosted) and self.mode != "none"

    @property
    def is_named(self) -> bool:
        """Whether it forces one tool of the client."""
        return self.mode == "required" and len(self.only) == 1 and not self.hosted

    def allows(self, tool: AnyTool) -> bool:
        if not self.narrows:
            return self.mode != "none"
        if isinstance(tool, Tool):
            return tool.name in self.only
        return any(chosen.names(tool) for chosen in self.hosted)


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    temperature: float | int | None = None
    top_p: float | int | None = None
    top_k: int | float | None = None
    frequency_penalty: float | int | None = None
    presence_penalty: float | int | None = None
    seed: int | None = None
    candidates: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


class Thinking(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much to think and what to show of it. Unset values are None: the provider's default.

    mode: `on` (with a budget: manual), `auto` (the model decides), `off`. display: `summary` shows (a summary
    of) the thinking, `omitted` hides it.
    """

    mode: Literal["on", "auto", "off"] | None = None
    effort: Effort | None = None
    budget: int | None = None
    display: Literal["summary", "omitted"] | None = None
    extra: Extra | None = None


UNNAMED_FORMAT: Final = "response"
"""The name of a format where a dialect demands one and none was given."""


class OutputFormat(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: Literal["text", "json", "schema"]
    schema: dict[str, Any] | None = None
    name: str = ""
    description: str | None = None
    strict: bool | None = None
    extra: Extra | None = None
    bare: bool = False
    """The answer is a string without the quotes of JSON (Gemini's `text/x.enum`)."""


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """`model` may be empty (Gemini names it in the path). System text is a message, in its place.

    `stream` None: the dialect states it elsewhere (Gemini: in the path).
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[AnyTool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tools: bool | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    sampling: Sampling = Sampling()
    thinking: Thinking = Thinking()
    output: OutputFormat | None = None
    verbosity: str = ""
    stream: bool | None = None
    user: str = ""
    metadata: dict[str, str] = {}
    service_tier: str = ""
    cache: CacheMark | None = None
    cache_key: str = ""
    extra: Extra | None = None
    safeguards: tuple[Safeguard, ...] = ()
    """The checks that the client requests before it acts on the answer."""
