"""What is measured, and how many times nginx's processor time each may take."""

from __future__ import annotations

from typing import NamedTuple

from tools.bench.bodies import body
from wireglot.dialects.registry import dialect_name

EVENTS = 200
"""Of every stream."""
GAP = 20
"""Milliseconds between the events of a slow stream."""
SLOW_STREAMS = 200

START_UP_GOAL = 0.8
MEMORY_GOAL = 60

_PATHS = {"openai-chat": "/v1/chat/completions", "anthropic": "/v1/messages"}


class Scenario(NamedTuple):
    key: str
    title: str
    dialect: str
    """The client's; `provider` is the upstream's, see targets.PROVIDERS."""
    provider: str
    size: str
    connections: int
    events: int = 0
    """Of its stream; 0 where the answer is whole."""
    gap: int = 0
    goal: float | None = None
    reference: str = ""
    """Where nginx would be given the same bytes: the scenario that already measures it with them."""

    @property
    def path(self) -> str:
        return _PATHS[self.dialect]

    @property
    def cost(self) -> str:
        """The figure that the goal is about."""
        return "cpu_us_ev" if self.events else "cpu_us_req"

    def body(self) -> bytes:
        gap = f"-g{self.gap}" if self.gap else ""
        model = f"{self.provider}/mock-c{self.events or EVENTS}{gap}"
        return body(dialect_name(self.dialect), self.size, model, stream=bool(self.events))


_CHAT, _MESSAGES = "openai-chat", "anthropic"

BUSY = (
    Scenario("A", "same dialect, 2 KB", _CHAT, "mine", "2k", 16, goal=12),
    Scenario("B", "same dialect, 100 KB", _CHAT, "mine", "100k", 8, goal=8),
    Scenario("C", "same dialect, stream event", _CHAT, "mine", "2k", 8, EVENTS, goal=2.5),
    Scenario("D", "Anthropic to Chat, 2 KB", _MESSAGES, "mine", "2k", 16, goal=15),
    Scenario("DB", "Anthropic to Chat, 100 KB", _MESSAGES, "mine", "100k", 8, goal=30),
    Scenario("DC", "Anthropic to Chat, stream event", _MESSAGES, "mine", "2k", 8, EVENTS, goal=4),
    Scenario("G", "Anthropic to Gemini, 2 KB", _MESSAGES, "gem", "2k", 16, goal=15, reference="D"),
    Scenario("GB", "Anthropic to Gemini, 100 KB", _MESSAGES, "gem", "100k", 8, goal=30, reference="DB"),
    Scenario(
        "GC", "Anthropic to Gemini, stream event", _MESSAGES, "gem", "2k", 8, EVENTS, goal=4, reference="DC"
    ),
)
"""As fast as it goes: what a request and an event cost."""

SINGLE = (
    Scenario("A1", "same dialect, 2 KB", _CHAT, "mine", "2k", 1),
    Scenario("B1", "same dialect, 100 KB", _CHAT, "mine", "100k", 1),
    Scenario("D1", "Anthropic to Chat, 2 KB", _MESSAGES, "mine", "2k", 1),
    Scenario("DB1", "Anthropic to Chat, 100 KB", _MESSAGES, "mine", "100k", 1),
)
"""One request after the other: what a client waits."""

SLOW = (
    Scenario("E", "same dialect", _CHAT, "mine", "2k", SLOW_STREAMS, EVENTS, GAP),
    Scenario("DE", "Anthropic to Chat", _MESSAGES, "mine", "2k", SLOW_STREAMS, EVENTS, GAP),
)
"""Many streams at the pace of a model."""
