"""The gateway beside nginx as a plain reverse proxy, in one run: `make bench`.

Wireglot runs as it is run, with client keys, usage accounting, log lines; nginx forwards the same requests.
Both stand on one core, the mock upstream and the load generator on another, and take turns in every round:
who else uses the machine disturbs both alike. Processor time is read from the clocks of the server's
processes and is what the goals are about; a ratio is the median of those of the rounds, reported with their
range, and only where enough was measured (standing.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from proofs.bench import (
    bystanders,
    charts,
    conversations,
    growing,
    page,
    processes,
    report,
    setting,
    store_calls,
    tables,
    targets,
    toolbox,
)
from proofs.bench.driving import Driver, Figures
from proofs.bench.results import Results, read
from proofs.bench.scenarios import (
    CROWDS,
    FIRST_SEEN,
    LARGE,
    LONE,
    PACED,
    QUICK,
    SMALL,
    TOOLS,
    UNPACED,
    WORKERS,
    Scenario,
)

EXTRAS = ("growing", "conversations", "bystanders", "workers", "stores", "start")
"""What is measured otherwise than by a load; `--only` takes these names, too."""
QUICK_EXTRAS = ("growing", "bystanders", "start")
_CROWD_CONNECTIONS = 100
"""From so many on, the load takes a stream's length until all of them are under way."""


class Bench:
    """The processes of one run, and what they did."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        directory: Path,
        results: Results,
        peers: Sequence[targets.Target] = (),
    ) -> None:
        self.arguments = arguments
        self.directory = directory
        self.results = results
        self.tools = toolbox.choose(arguments.tools, directory)
        self.tool_core, self.server_core = processes.cores()
        self.upstream = processes.free_port()
        self._upstream = processes.start(
            [*self.tools.upstream, str(self.upstream)], directory / "upstream.log", self.tool_core
        )
        if not processes.answers(self.upstream, 10):
            raise SystemExit("bench: the mock upstream did not start")
        self.driver = Driver(self.tools, toolbox.own(), self._upstream.pid, directory, self.tool_core)
        self.direct = targets.Target("direct", [], self.upstream, directory / "direct.log")
        self.wireglot = targets.wireglot(arguments.command, self.upstream, directory)
        self.nginx = targets.nginx(self.upstream, directory)
        self.servers: list[targets.Target] = [*([self.nginx] if self.nginx else []), self.wireglot, *peers]

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        processes.stop(self._upstream)

    def start(self, times: int) -> None:
        """Several starts, for the time each takes; the last one stays."""
        for server in list(self.servers):
            try:
                taken = [self._started(server) for _ in range(times)]
            except targets.NotStarted as fault:
                if not server.optional:
                    raise
                self.servers.remove(server)
                _say("start", server.name, str(fault))
                continue
            if times > 1:
                self.results.starts[server.name] = taken
        time.sleep(1)
        if times > 1:
            self.results.idle = {server.name: server.memory()._asdict() for server in self.servers}

    def _started(self, server: targets.Target) -> float:
        server.stop()
        return server.start(self.server_core)

    def measure(self, scenarios: Iterable[Scenario]) -> None:
        """All of them in every round, so that those that are held against one another are near in time."""
        open_ones = [scenario for scenario in scenarios if self._is_open(scenario)]
        for turn in range(self.arguments.rounds):
            for scenario in open_ones:
                self._round(scenario, turn)
            self.save()

    def _is_open(self, scenario: Scenario) -> bool:
        """Whether it is wanted, and not there from an earlier run that is resumed."""
        if not wanted(scenario, self.arguments.only):
            return False
        done = self.results.runs.get(scenario.key, {})
        needed = [server.name for server in self._measured(scenario)]
        if all(len(done.get(name, ())) >= self.arguments.rounds for name in needed):
            return False
        self.results.runs[scenario.key] = {name: [] for name in needed}
        return True

    def _measured(self, scenario: Scenario) -> list[targets.Target]:
        servers = [server for server in self.servers if server.takes(scenario)]
        if scenario.reference:
            servers = [server for server in servers if server is not self.nginx]
        return [*([self.direct] if scenario.direct else []), *servers]

    def _round(self, scenario: Scenario, turn: int) -> None:
        # Who comes second finds the caches of the first: turn about.
        everyone = self._measured(scenario)
        for target in everyone if turn % 2 == 0 else reversed(everyone):
            idle = 0.0
            if scenario.fresh:
                self._started(target)
                idle = target.memory().pss
            seconds = max(self.arguments.seconds, scenario.seconds)
            warm = scenario.seconds if scenario.connections >= _CROWD_CONNECTIONS else self.arguments.warm
            figures = self.driver.drive(target, scenario, seconds, warm)
            if scenario.fresh and "pss_mb" in figures:
                figures["kib_stream"] = (figures["pss_mb"] - idle) * 1024 / scenario.connections
            self.results.runs[scenario.key][target.name].append(figures)
            _tell(scenario, target.name, figures)

    def grow(self) -> None:
        for turn in range(self.arguments.rounds):
            for server in self.servers if turn % 2 == 0 else reversed(self.servers):
                figures = growing.drive(server)
                self.results.growing.setdefault(server.name, []).append(figures)
                cost = figures["cpu_s"] * 1e6 / max(figures["ok"], 1)
                _say("growing", server.name, f"{cost:8.1f} us a turn, {figures['err']} failed")

    def remember(self) -> None:
        """With the memory and without, on all cores, since two workers need them."""
        for workers in (1, 2):
            servers = {}
            for kind, limits in (("on", {}), ("off", conversations.OFF)):
                directory = self.directory / f"memory-{kind}-{workers}"
                directory.mkdir(exist_ok=True)
                servers[kind] = targets.wireglot(
                    self.arguments.command, self.upstream, directory, workers=workers, limits=limits
                )
                servers[kind].start(None)
            try:
                for crowd in (one for one in conversations.CROWDS if one.workers == workers):
                    for turn in range(self.arguments.rounds):
                        self._remember(crowd, servers if turn % 2 == 0 else dict(reversed(servers.items())))
            finally:
                for server in servers.values():
                    server.stop()

    def _remember(self, crowd: conversations.Crowd, servers: dict[str, targets.Target]) -> None:
        for kind, server in servers.items():
            figures = conversations.drive(server, crowd)
            self.results.conversations.setdefault(crowd.key, {}).setdefault(kind, []).append(figures)
            text = f"{figures['cpu_us']:8.1f} us a turn, {figures['err']} failed"
            _say(crowd.key, conversations.TITLES[kind], f"  {text}")

    def stand_by(self) -> None:
        for turn in range(self.arguments.rounds):
            for server in self.servers:
                figures = bystanders.drive(server, int(time.time() * 10) % 1_000_000)
                self.results.bystanders.setdefault(server.name, []).append(figures)
                _say("10 MB", server.name, f"others waited {figures['worst_ms']:.1f} ms; round {turn + 1}")

    def work(self) -> None:
        """One worker and two, on all cores, which they share with the tools."""
        driver = self.driver._replace(core=None)
        for workers in (1, 2):
            directory = self.directory / f"workers-{workers}"
            directory.mkdir(exist_ok=True)
            target = targets.wireglot(self.arguments.command, self.upstream, directory, workers=workers)
            target.start(None)
            try:
                for scenario in WORKERS:
                    for _ in range(self.arguments.rounds):
                        figures = driver.drive(target, scenario, self.arguments.seconds, self.arguments.warm)
                        rounds = self.results.workers.setdefault(scenario.key, {})
                        rounds.setdefault(str(workers), []).append(figures)
                        _tell(scenario, f"{workers} workers", figures)
            finally:
                target.stop()

    def ask_stores(self) -> None:
        if not store_calls.available():
            _say("stores", "-", "PostgreSQL or Redis is missing: `make servers` installs them")
            return
        directory = self.directory / "stores"
        directory.mkdir(exist_ok=True)
        self.results.stores = store_calls.drive(self.arguments.command, self.upstream, directory)
        for kind, figures in self.results.stores.items():
            text = ", ".join(f"{name} {value:.2f}" for name, value in figures.items() if "cpu" not in name)
            _say("stores", kind, text)

    def save(self) -> None:
        if self.arguments.json:
            self.arguments.json.parent.mkdir(parents=True, exist_ok=True)
            self.arguments.json.write_text(self.results.as_json(), encoding="utf-8")


def wanted(scenario: Scenario, only: Sequence[str]) -> bool:
    return not only or scenario.key in only or scenario.family in only


def _tell(scenario: Scenario, name: str, figures: Figures) -> None:
    if not figures["ok"]:
        line = "no request succeeded"
    else:
        line = f"{figures['rps']:9.1f} /s  {figures[scenario.cost]:8.2f} us  p50 {figures['p50']:8.1f}"
    trouble = f"  {figures['err']} failed: {figures['error'][:200]}" if figures["err"] else ""
    _say(scenario.key, name, line + trouble)


def _say(key: str, name: str, line: str) -> None:
    print(f"  {key:9}{name:12}{line}", file=sys.stderr, flush=True)


def options(
    parser: argparse.ArgumentParser, argv: list[str] | None = None, *, seconds: float = 1.5
) -> argparse.Namespace:
    """Those that a run beside peers has, too."""
    parser.add_argument("--rounds", type=int, default=3, help="below three no ratio is reported")
    parser.add_argument("--seconds", type=float, default=seconds, help="of each measurement, at least")
    parser.add_argument("--only", help="families, scenarios or extras, with commas between: A,D-ac,growing")
    parser.add_argument(
        "--tools", choices=("auto", "own", "c"), default="auto", help="mock upstream and load generator"
    )
    parser.add_argument("--command", help="how wireglot is run, instead of the one beside this Python")
    parser.add_argument("--json", metavar="FILE", type=Path, help="every figure of every round, as it comes")
    parser.add_argument("--resume", action="store_true", help="go on with what --json has not yet")
    parser.add_argument(
        "--write", metavar="PAGE", type=Path, help="put tables and charts into this page, too"
    )
    parser.add_argument("--keep", metavar="DIR", type=Path, help="where configurations and logs stay behind")
    parser.add_argument(
        "--from", dest="source", metavar="FILE", type=Path, help="measure nothing, report these"
    )
    reported = parser.parse_args(argv)
    if reported.resume and not reported.json:
        parser.error("--resume needs --json, the file to go on with")
    reported.only = reported.only.split(",") if reported.only else []
    reported.command = (
        reported.command.split() if reported.command else [str(Path(sys.executable).with_name("wireglot"))]
    )
    return reported


def _plan(arguments: argparse.Namespace) -> tuple[list[list[Scenario]], Sequence[str]]:
    """The scenarios in groups that are measured round by round, and the extras."""
    if arguments.quick:
        return [QUICK], arguments.only or QUICK_EXTRAS
    return [PACED, SMALL, LARGE, FIRST_SEEN, LONE, UNPACED, TOOLS, CROWDS], arguments.only or EXTRAS


def run(arguments: argparse.Namespace, directory: Path, results: Results) -> None:
    bench = Bench(arguments, directory, results)
    results.setting = setting.read(bench.tools.title, pinned=bench.server_core is not None)
    groups, extras = _plan(arguments)
    try:
        bench.start(arguments.starts if "start" in extras and not results.starts else 1)
        for group in groups:
            bench.measure(group)
        pieces = (
            ("growing", results.growing, bench.grow),
            ("conversations", results.conversations, bench.remember),
            ("bystanders", results.bystanders, bench.stand_by),
            ("workers", results.workers, bench.work),
            ("stores", results.stores, bench.ask_stores),
        )
        for name, done, piece in pieces:
            if name in extras and not done:
                piece()
                bench.save()
    finally:
        with suppress(KeyboardInterrupt):
            bench.close()
    bench.save()


def measured(arguments: argparse.Namespace) -> Results:
    """What is reported in a file, or measured now."""
    if arguments.source:
        return read(arguments.source)
    results = read(arguments.json) if arguments.resume and arguments.json.exists() else Results()
    with tempfile.TemporaryDirectory(prefix="wireglot-bench-") as temporary:
        directory = arguments.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        run(arguments, directory.resolve(), results)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the gateway beside nginx.")
    parser.add_argument("--quick", action="store_true", help="a few scenarios, in under four minutes")
    reported = options(parser)
    reported.starts = 3 if reported.quick else 5
    reported.warm = 0.3
    results = measured(reported)
    sections = report.sections(results)
    print(tables.as_text(setting.sentence(results.setting), sections))
    if reported.write:
        drawn = charts.write(results, reported.write.parent / "figures")
        page.write(reported.write, tables.as_markdown(setting.sentence(results.setting), sections, drawn))
    if failed := results.failures():
        raise SystemExit(f"bench: nothing succeeded in {', '.join(failed)}")


if __name__ == "__main__":
    main()
