"""What is measured, and how many times nginx's processor time each may take."""

from __future__ import annotations

from typing import NamedTuple

from proofs.bench.bodies import TOOL_COUNTS, body
from wireglot_core.dialects.registry import DialectName

EVENTS = 200
"""Of every stream."""
GAP = 20
"""Milliseconds between the events of a paced stream, about as many as a model takes for a few words."""
FEW_EVENTS, WIDE_GAP = 80, 50
"""Of the streams where there are a thousand: at the other pace they would be more than one core can carry,
and what is then measured is how events pile up."""
ONE_STREAM_SECONDS = 4.1
"""Such a stream with its beginning and its end, so that each is counted once with the events between."""
STREAMS = 200
GAPS_TO_BEGIN = 10.5
"""In how many gaps all streams out of step begin: half a one more than whole ones, so that no two of a few
streams share their moments."""

GOALS = {
    "A": 7.0,
    "B": 5.0,
    "D": 11.0,
    "DB": 14.0,
    "P": 1.8,
    "DP": 2.2,
    "PS": 1.8,
    "DPS": 2.2,
    "E": 1.6,
    "DE": 1.8,
    "E1000": 1.6,
    "D1000": 1.8,
}
"""Times nginx's processor time, in the same run."""
GROWING_GOAL = 7.0
START_GOAL_SECONDS = 0.35
IDLE_GOAL_MIB = 45.0
LONE_GOALS_US = {"A1": 350.0, "D1": 500.0}
"""What a request that is alone waits longer than without us, in the median."""
STREAM_GOAL_KIB = 64.0
"""Memory of one stream more, where there are a thousand."""
DELAY_GOAL = 2.0
"""Times the 99th percentile of the delay that nginx adds to an event of 500 cross streams."""
BYSTANDER_GOAL_MS = 100.0
WORKERS_GOAL = 1.8
"""Requests a second of two workers, to those of one."""

DIALECTS: dict[str, DialectName] = {
    "c": "openai-chat",
    "a": "anthropic",
    "r": "openai-responses",
    "g": "gemini",
}
"""The letters of keys: `D-ac` is an Anthropic client and a Chat upstream."""
PROVIDERS = {"c": "mine", "a": "ant", "r": "resp", "g": "gem"}
"""Names in the configurations, see targets.PROVIDERS."""
NAMES = {"c": "Chat", "a": "Anthropic", "r": "Responses", "g": "Gemini"}

_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "openai-responses": "/v1/responses",
}


class Scenario(NamedTuple):
    key: str
    size: str
    connections: int
    events: int = 0
    """Of its stream; 0 where the answer is whole."""
    gap: int = 0
    reference: str = ""
    """Where nginx would be given the same bytes: the scenario that already measures it with them."""
    varied: bool = False
    """No two bodies are the same."""
    direct: bool = False
    """The mock upstream is measured alone, too."""
    fresh: bool = False
    """The servers are started again before each measurement, for the memory it takes."""
    seconds: float = 0.0
    """How long at least it is measured."""
    out_of_step: bool = False
    """The streams begin one after the other, so that each event comes at a moment of its own."""

    @property
    def family(self) -> str:
        return self.key.partition("-")[0]

    @property
    def client(self) -> str:
        """The letter of the client's dialect."""
        return self.key.partition("-")[2][0]

    @property
    def upstream(self) -> str:
        return self.key.partition("-")[2][1]

    @property
    def pair(self) -> str:
        return f"{NAMES[self.client]} > {NAMES[self.upstream]}"

    @property
    def goal(self) -> float | None:
        return GOALS.get(self.family)

    @property
    def cost(self) -> str:
        """The figure that the goal is about."""
        return "cpu_us_ev" if self.events else "cpu_us_req"

    @property
    def finished(self) -> str:
        return "events" if self.events else "ok"

    @property
    def begun_a_second(self) -> float:
        """Streams, where they do not all begin at once; else 0."""
        return self.connections * 1000 / (GAPS_TO_BEGIN * self.gap) if self.out_of_step else 0.0

    @property
    def model(self) -> str:
        gap = f"-g{self.gap}" if self.gap else ""
        return f"{PROVIDERS[self.upstream]}/mock-c{self.events or EVENTS}{gap}"

    @property
    def path(self) -> str:
        return path_of(DIALECTS[self.client], self.model, stream=bool(self.events))

    def body(self, model: str = "") -> bytes:
        return body(DIALECTS[self.client], self.size, model or self.model, stream=bool(self.events))


def path_of(dialect: DialectName, model: str, *, stream: bool) -> str:
    if dialect != "gemini":
        return _PATHS[dialect]
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/{model}:{verb}"


def _pairs(same: str, cross: str, size: str, connections: int, *, varied: bool = False) -> list[Scenario]:
    """A client after the other, so that each is near the run of nginx that it is held against."""
    found = []
    for client in DIALECTS:
        own = f"{same}-{client}{client}"
        if same:
            found.append(Scenario(own, size, connections))
        others = [letter for letter in DIALECTS if letter != client]
        for upstream in others:
            reference = own if same else f"{cross}-{client}{others[0]}"
            # The pair that the goals are about has an nginx of its own beside it.
            key = f"{cross}-{client}{upstream}"
            measured = key == reference or key == "D-ac"
            found.append(
                Scenario(key, size, connections, reference="" if measured else reference, varied=varied)
            )
    return found


def _headlines(scenarios: list[Scenario]) -> list[Scenario]:
    """Those of a pair or two, for a short run."""
    return [one for one in scenarios if not one.reference and one.key in _HEADLINES]


_HEADLINES = {"A-cc", "A-gg", "D-ac", "B-cc", "DB-ac"}

PACED = [
    Scenario("P-cc", "2k", 20, EVENTS, GAP, seconds=ONE_STREAM_SECONDS),
    Scenario("DP-ac", "2k", 20, EVENTS, GAP, seconds=ONE_STREAM_SECONDS),
    Scenario("PS-cc", "2k", 20, EVENTS, GAP, seconds=ONE_STREAM_SECONDS, out_of_step=True),
    Scenario("DPS-ac", "2k", 20, EVENTS, GAP, seconds=ONE_STREAM_SECONDS, out_of_step=True),
    Scenario("DP-ga", "2k", 20, EVENTS, GAP, seconds=ONE_STREAM_SECONDS),
    Scenario("DP-rg", "2k", 20, EVENTS, GAP, seconds=ONE_STREAM_SECONDS),
]
"""At the pace of a model every event is a read and a write of its own: what a gateway mostly does."""

SMALL = _pairs("A", "D", "2k", 16)
LARGE = [Scenario(f"B-{letter}{letter}", "100k", 8) for letter in DIALECTS]
FIRST_SEEN = _pairs("", "DB", "100k", 8, varied=True)

LONE = [
    Scenario("A1-cc", "2k", 1, direct=True),
    Scenario("D1-ac", "2k", 1, direct=True),
    Scenario("B1-cc", "100k", 1, direct=True),
    Scenario("DB1-ac", "100k", 1, direct=True),
]
"""One request after the other: what a client waits."""

CROWDS = [
    Scenario("E-cc", "2k", STREAMS, EVENTS, GAP, seconds=ONE_STREAM_SECONDS),
    Scenario("DE-ac", "2k", STREAMS, EVENTS, GAP, seconds=ONE_STREAM_SECONDS),
    Scenario("D500-ac", "2k", 500, EVENTS, GAP, direct=True, seconds=ONE_STREAM_SECONDS),
    Scenario("E1000-cc", "2k", 1000, FEW_EVENTS, WIDE_GAP, fresh=True, seconds=ONE_STREAM_SECONDS),
    Scenario("D1000-ac", "2k", 1000, FEW_EVENTS, WIDE_GAP, fresh=True, seconds=ONE_STREAM_SECONDS),
]
"""Many streams at that pace."""

UNPACED = [
    Scenario("C-cc", "2k", 8, EVENTS),
    Scenario("DC-ac", "2k", 8, EVENTS),
]
"""As fast as it goes: how many events one read holds, and so what one costs, is up to the machine."""

TOOLS = [Scenario(f"T{count}-ac", f"tools-{count}", 4) for count in TOOL_COUNTS]

WORKERS = [Scenario("A-cc", "2k", 32), Scenario("D-ac", "2k", 32)]
"""Measured with one worker and with two, see workers.py."""

QUICK = [*PACED[:2], *_headlines(SMALL + LARGE), Scenario("DB-ac", "100k", 8, varied=True), *LONE[:2]]

EVERYTHING = [*PACED, *SMALL, *LARGE, *FIRST_SEEN, *LONE, *UNPACED, *CROWDS, *TOOLS]
BY_KEY = {scenario.key: scenario for scenario in EVERYTHING}
