"""The gateway beside nginx as a plain reverse proxy, in one run: `make bench`.

Wireglot runs as it is run, with client keys, usage accounting, log lines; nginx forwards the same requests.
Both stand on one core, the mock upstream and the load generator on another, and take turns in every round:
who else uses the machine disturbs both alike. Processor time is read from the server's processes and is what
the goals are about; the ratio is the median of those of the rounds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tools.bench import page, processes, report, targets, toolbox
from tools.bench.scenarios import BUSY, SINGLE, SLOW, Scenario

Figures = dict[str, Any]


class Bench:
    """The processes of one run and what they did: `runs[scenario][target]` is a list, a round each."""

    def __init__(self, arguments: argparse.Namespace, directory: Path) -> None:
        self.arguments = arguments
        self.directory = directory
        self.tools = toolbox.choose(arguments.tools, directory)
        self.tool_core, self.server_core = processes.cores()
        self.runs: dict[str, dict[str, list[Figures]]] = defaultdict(lambda: defaultdict(list))
        self.memory: dict[str, processes.Memory] = {}
        self.after: dict[str, processes.Memory] = {}
        self.starts: dict[str, list[float]] = defaultdict(list)
        upstream = processes.free_port()
        self._upstream = processes.start(
            [*self.tools.upstream, str(upstream)], directory / "upstream.log", self.tool_core
        )
        if not processes.answers(upstream, 10):
            raise SystemExit("bench: the mock upstream did not start")
        self.direct = targets.Target("direct", [], upstream, directory / "direct.log")
        self.wireglot = targets.wireglot(arguments.command, upstream, directory)
        self.nginx = targets.nginx(upstream, directory)
        self.servers = [server for server in (self.nginx, self.wireglot) if server]

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        processes.stop(self._upstream)

    def start(self) -> None:
        """Several starts, for the time each takes; the last one stays."""
        for turn in range(self.arguments.starts):
            for server in self.servers:
                self.starts[server.name].append(server.start(self.server_core))
                if turn < self.arguments.starts - 1:
                    server.stop()
        time.sleep(1)
        for server in self.servers:
            self.memory[server.name] = server.memory()

    def measure(
        self, scenarios: Iterable[Scenario], *, rounds: int, seconds: float, warm: float, direct: bool
    ) -> None:
        everyone = [*([self.direct] if direct else []), *self.servers]
        for scenario in scenarios:
            if self.arguments.only and scenario.key not in self.arguments.only:
                continue
            body = self.directory / f"{scenario.key}.json"
            body.write_bytes(scenario.body())
            for turn in range(rounds):
                # Who comes second finds the caches of the first: turn about.
                for target in everyone if turn % 2 == 0 else reversed(everyone):
                    if target is self.nginx and scenario.reference:
                        continue
                    figures = self._drive(target, scenario, body, seconds, warm)
                    self.runs[scenario.key][target.name].append(figures)
                    self._tell(scenario, target.name, figures)
        for server in self.servers:
            self.after[server.name] = server.memory()

    def _drive(
        self, target: targets.Target, scenario: Scenario, body: Path, seconds: float, warm: float
    ) -> Figures:
        url = f"http://127.0.0.1:{target.port}{scenario.path}"
        command = [*self.tools.load, url, "-f", str(body), "-c", str(scenario.connections)]
        command += ["-d", str(seconds), "-w", str(warm), "-p", str(target.pid or self._upstream.pid)]
        command += ["-m", str(self._upstream.pid)]
        for header in targets.HEADERS:
            command += ["-H", header]
        if scenario.events:
            command.append("-s")
        try:
            done = subprocess.run(
                processes.pinned(command, self.tool_core),
                capture_output=True,
                text=True,
                timeout=seconds + warm + 60,
                check=False,
            )
            figures: Figures = json.loads(done.stdout)
        except (ValueError, subprocess.TimeoutExpired):
            return {"ok": 0, "err": 1, "error": "the load generator gave no figures"}
        return figures

    def _tell(self, scenario: Scenario, name: str, figures: Figures) -> None:
        if not figures["ok"]:
            line = "no request succeeded"
        else:
            line = f"{figures['rps']:9.1f} /s  {figures[scenario.cost]:8.2f} us  p50 {figures['p50']:8.1f}"
        trouble = f"  {figures['err']} failed: {figures['error'][:200]}" if figures["err"] else ""
        print(f"  {scenario.key:4}{name:10}{line}{trouble}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the gateway beside nginx.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--quick", action="store_true", help="one short round of everything")
    parser.add_argument("--only", help="scenarios, with commas between: A,DC,E")
    parser.add_argument(
        "--tools", choices=("auto", "own", "c"), default="auto", help="mock upstream and load generator"
    )
    parser.add_argument("--command", help="how wireglot is run, instead of the one beside this Python")
    parser.add_argument("--json", metavar="FILE", type=Path, help="every figure of every round")
    parser.add_argument("--write", metavar="PAGE", type=Path, help="put the tables into this page, too")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="where configurations and logs stay behind")
    told = parser.parse_args()
    told.starts = 2 if told.quick else 5
    if told.quick:
        told.rounds, told.seconds = 1, 1.0
    told.only = told.only.split(",") if told.only else []
    told.command = told.command.split() if told.command else [str(Path(sys.executable).with_name("wireglot"))]
    return told


def run(told: argparse.Namespace, directory: Path) -> Bench:
    bench = Bench(told, directory)
    try:
        bench.start()
        warm = 0.3 if told.quick else 1.0
        bench.measure(BUSY, rounds=told.rounds, seconds=told.seconds, warm=warm, direct=False)
        bench.measure(SINGLE, rounds=told.rounds, seconds=told.seconds, warm=warm, direct=True)
        # A stream takes four seconds: all are under way before the measurement begins.
        slow = max(told.seconds, 4.0 if told.quick else 8.0)
        bench.measure(SLOW, rounds=min(told.rounds, 2), seconds=slow, warm=5.0, direct=True)
    finally:
        with suppress(KeyboardInterrupt):
            bench.close()
    return bench


def main() -> None:
    told = _options()
    with tempfile.TemporaryDirectory(prefix="wireglot-bench-") as temporary:
        directory = told.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        bench = run(told, directory.resolve())
    results = report.Results(bench.runs, bench.starts, bench.memory, bench.after)
    setting = report.setting(bench.tools.title, pinned=bench.server_core is not None)
    sections = report.sections(results)
    print(report.as_text(setting, sections))
    if told.json:
        told.json.write_text(json.dumps(results._asdict(), indent=1), encoding="utf-8")
    if told.write:
        page.write(told.write, report.as_markdown(setting, sections))
    if broken := results.broken():
        raise SystemExit(f"bench: nothing succeeded in {', '.join(broken)}")


if __name__ == "__main__":
    main()
