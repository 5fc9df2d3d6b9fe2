"""All figures of a run, as they are kept in a file: for the report, the charts and the plan of capacity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proofs.bench.scenarios import BY_KEY, Scenario
from proofs.bench.standing import Ratio, Reading, Undocumented, ratio

Figures = dict[str, Any]

OURS, BASE = "wireglot", "nginx"


class Results:
    """`runs[scenario][server]` and the like hold a list, a round each."""

    def __init__(self, given: Figures | None = None) -> None:
        given = given or {}
        self.setting: Figures = given.get("setting", {})
        self.runs: dict[str, dict[str, list[Figures]]] = given.get("runs", {})
        self.growing: dict[str, list[Figures]] = given.get("growing", {})
        self.bystanders: dict[str, list[Figures]] = given.get("bystanders", {})
        self.conversations: dict[str, dict[str, list[Figures]]] = given.get("conversations", {})
        self.workers: dict[str, dict[str, list[Figures]]] = given.get("workers", {})
        self.stores: dict[str, Figures] = given.get("stores", {})
        self.starts: dict[str, list[float]] = given.get("starts", {})
        self.idle: dict[str, Figures] = given.get("idle", {})
        self.aged: dict[str, Figures] = given.get("aged", {})
        """Memory after a load of some minutes, how long it was and how many requests it had."""
        self.sizes: dict[str, float] = given.get("sizes", {})
        """MiB on disk of what is installed."""
        self.probe: dict[str, Figures] = given.get("probe", {})
        """What the probe found: of how many cases how many work, in how many pairs of dialects."""

    def as_json(self) -> str:
        return json.dumps(vars(self), indent=1) + "\n"

    def servers(self) -> list[str]:
        """The peers among them last."""
        found = {name: None for by_server in self.runs.values() for name in by_server if name != "direct"}
        return sorted(found, key=lambda name: (name != BASE, name != OURS, name))

    def rounds(self, scenario: Scenario, server: str) -> list[Figures]:
        key = scenario.reference if server == BASE and scenario.reference else scenario.key
        return self.runs.get(key, {}).get(server, [])

    def readings(self, scenario: Scenario, server: str) -> list[Reading]:
        return [
            Reading(figures[scenario.cost], figures["cpu_s"], int(figures[scenario.finished]))
            for figures in self.rounds(scenario, server)
            if scenario.cost in figures and figures["ok"]
        ]

    def ratio(self, scenario: Scenario, server: str = OURS) -> Ratio | Undocumented:
        return ratio(self.readings(scenario, server), self.readings(scenario, BASE))

    def growing_ratio(self) -> Ratio | Undocumented:
        """Of whole conversations: processor time of all their turns."""
        return ratio(self._conversations(OURS), self._conversations(BASE))

    def remembering(self, crowd: str) -> Ratio | Undocumented:
        """Of a crowd of conversations: what a turn costs with the memory to what it costs without."""
        on, off = (
            [Reading(figures["cpu_us"], figures["cpu_s"], figures["ok"]) for figures in rounds]
            for rounds in (self.conversations.get(crowd, {}).get(kind, []) for kind in ("on", "off"))
        )
        return ratio(on, off, "wireglot without memory")

    def _conversations(self, server: str) -> list[Reading]:
        return [
            Reading(figures["cpu_s"] * 1e6 / max(figures["ok"], 1), figures["cpu_s"], figures["ok"])
            for figures in self.growing.get(server, [])
        ]

    def failures(self) -> list[str]:
        """Where some round of some server had no success at all."""
        return [
            f"{key} ({server})"
            for key, by_server in self.runs.items()
            for server, rounds in by_server.items()
            if not all(figures["ok"] for figures in rounds)
        ]

    def measured(self) -> list[Scenario]:
        return [scenario for key, scenario in BY_KEY.items() if key in self.runs]


def read(path: Path) -> Results:
    return Results(json.loads(path.read_text(encoding="utf-8")))
