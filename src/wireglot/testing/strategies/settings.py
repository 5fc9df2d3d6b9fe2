"""Requests: a conversation with its tools and settings."""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st

from wireglot.ir.request import (
    EFFORTS,
    AnyTool,
    Grammar,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot.testing.strategies import samples
from wireglot.testing.strategies.content import TOOL_NAMES, ContentSource

_RATIO = st.sampled_from((0, 0.2, 0.5, 1, 1.0, 0.95))


class RequestSource(ContentSource):
    def tools(self) -> tuple[AnyTool, ...]:
        tools: list[AnyTool] = []
        for name in TOOL_NAMES[: self.draw(st.integers(0, 3))]:
            if self.rare():
                grammar = self.one((None, Grammar("lark", 'start: "a"'), Grammar("regex", "[a-z]+")))
                tools.append(Tool(name, "freeform", kind="custom", grammar=grammar))
                continue
            tools.append(
                Tool(
                    name,
                    self.one((None, "", "Does things.")),
                    self.one(samples.SCHEMAS),
                    self.one((None, False, True)) if self.rare(3) else None,
                    namespace="files" if self.rare() else "",
                    deferred=self.rare(),
                    cache=self.cache(),
                    extra=self.extra("tool"),
                )
            )
        hosted = [tool for tool in samples.HOSTED if tool.native.dialect in self.origins]
        if hosted and self.rare():
            tools.append(self.one(hosted))
        return tuple(tools)

    def tool_choice(self, tools: tuple[AnyTool, ...]) -> ToolChoice | None:
        names = tuple(tool.name for tool in tools if isinstance(tool, Tool) and not tool.namespace)
        if not names or not self.chance(4):
            return None
        choices = [
            ToolChoice("auto"),
            ToolChoice("none"),
            ToolChoice("required"),
            ToolChoice("required", names[:1]),
        ]
        if not self.plain and len(names) > 1:
            choices += [ToolChoice("auto", names[:2]), ToolChoice("required", names[:2])]
        return self.one(choices)

    def sampling(self) -> Sampling:
        if not self.chance(4):
            return Sampling()
        if self.plain:
            return Sampling(temperature=self.draw(_RATIO))
        logprobs = True if self.chance(2) else None
        return Sampling(
            temperature=self.maybe(lambda: self.draw(_RATIO), 3),
            top_p=self.maybe(lambda: self.draw(_RATIO), 3),
            top_k=self.maybe(lambda: 40, 2),
            frequency_penalty=self.maybe(lambda: 0.5, 2),
            presence_penalty=self.maybe(lambda: -1, 2),
            seed=self.maybe(lambda: 42, 2),
            candidates=self.maybe(lambda: self.one((1, 2)), 2),
            logprobs=logprobs,
            top_logprobs=3 if logprobs else None,
        )

    def thinking(self) -> Thinking:
        if not self.rare(4):
            return Thinking()
        displays: tuple[Literal["summary", "omitted"] | None, ...] = (None, None, "summary", "omitted")
        display = self.one(displays)
        return self.one(
            (
                Thinking(effort=self.one(EFFORTS)),
                Thinking(effort="high", display=display),
                Thinking(mode="on", budget=2048, display=display),
                Thinking(mode="auto", display=display),
                Thinking(mode="auto", effort=self.one(EFFORTS[2:5]), display=display),
                Thinking(mode="off"),
                Thinking(display="summary"),
            )
        )

    def output(self) -> OutputFormat | None:
        if not self.rare(2):
            return None
        return self.one(
            (
                OutputFormat("text"),
                OutputFormat("json"),
                OutputFormat("schema", samples.OUTPUT_SCHEMA, "answer", strict=True),
                OutputFormat("schema", samples.OUTPUT_SCHEMA, "answer", "What to answer."),
            )
        )

    def request(self) -> Request:
        tools = self.tools()
        return Request(
            self.one(("some-model", "other-model")),
            self.messages(),
            tools,
            tool_choice=self.tool_choice(tools),
            parallel_tools=self.one((None, True, False)) if tools and self.rare(3) else None,
            max_tokens=self.draw(st.integers(1, 64000)) if self.chance(8) else None,
            stop=self.one(((), ("END",), ("\n\n", "STOP"))) if self.rare(2) else (),
            sampling=self.sampling(),
            thinking=self.thinking(),
            output=self.output(),
            verbosity=self.one(("low", "medium", "high")) if self.rare() else "",
            stream=self.one((None, True, False)),
            user="user-1" if self.rare() else "",
            metadata={"trace": "t-1"} if self.rare() else {},
            service_tier=self.one(("auto", "standard", "flex", "priority")) if self.rare() else "",
            cache=self.cache(),
            cache_key="cache-key-1" if self.rare() else "",
            safeguards=samples.SAFEGUARDS if self.rare() else (),
            extra=self.extra("request"),
        )
