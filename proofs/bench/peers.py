"""Other gateways beside ours and nginx, in one run, in turns, with the probe's score: `make bench-peers`.

Those of DEFAULT are installed or built as for `make probe-peers`, at the same versions; any other is given by
a recipe (recipe.py): `make bench-peers ARGS="--recipe mine.toml"`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, Final

from proofs.bench import charts, gateway, page, recipe, setting, tables
from proofs.bench.results import BASE, OURS, Results, read
from proofs.bench.scenarios import BY_KEY, EVENTS, Scenario
from proofs.bench.standing import Undocumented
from proofs.bench.tables import NONE, Section, number
from proofs.bench.targets import Target
from proofs.boards.recipe import BadRecipe

LONE = [BY_KEY[key] for key in ("A1-cc", "D1-ac")]
SCENARIOS = [BY_KEY[key] for key in ("P-cc", "DP-ac", "A-cc", "B-cc", "D-ac", "DB-ac")]
AGEING = [BY_KEY[key]._replace(connections=2) for key in ("P-cc", "DP-ac")]
"""At the pace of a model: all servers are given about the same number of requests, however fast they are."""
SUMMARY = [BY_KEY[key] for key in ("A-cc", "D-ac", "P-cc", "DP-ac")]
DEFAULT = ("litellm", "llm-rosetta", "claude-code-router", "portkey", "bifrost", "cliproxyapi")
ROOT: Final = Path(__file__).parents[2]
PROBED: Final = ROOT / "docs" / "figures" / "probe-peers.json"
_HOUR: Final = 3600.0


def sections(results: Results) -> list[Section]:
    servers = [server for server in results.servers() if server != BASE]
    header = ["", f"{BASE} us", *(name for server in servers for name in (f"{server} us", "ratio (range)"))]
    rows, reasons = [], []
    for scenario in SCENARIOS:
        if scenario.key not in results.runs:
            continue
        row = [f"{scenario.pair}, {_what(scenario)} ({scenario.family})", _cost(results, scenario, BASE)]
        for server in servers:
            found = results.ratio(scenario, server)
            row += [_cost(results, scenario, server), str(found)]
            rounds = results.rounds(scenario, server)
            if rounds and not any(figures["ok"] for figures in rounds):
                reasons.append(f"{scenario.key}, {server}: no request was answered in the time.")
            elif rounds and isinstance(found, Undocumented):
                reasons.append(f"{scenario.key}, {server}: {found.what}: {found.why}.")
            failed = sum(figures["err"] for figures in rounds)
            if failed:
                reasons.append(f"{scenario.key}, {server}: {failed} requests failed.")
        rows.append(row)
    note = "Processor time of a request, or of an event of 20 paced streams; in turns, one worker each."
    return [
        _summary(results),
        Section("Compared with other gateways", " ".join([note, *reasons]), header, rows, "peers"),
    ]


def _summary(results: Results) -> Section:
    """Speed, size and correctness, a server in each row."""
    header = ["", *(f"{scenario.pair} {_what(scenario)}" for scenario in SUMMARY)]
    header += [f"{scenario.pair} adds p50 / p99 ms" for scenario in LONE]
    header += ["start s", "memory idle MiB", "later", "installed MiB", "probe: works", "share", "pairs"]
    rows = []
    for server in results.servers():
        row = [server]
        for scenario in SUMMARY:
            cost = _cost(results, scenario, server)
            times = "" if server == BASE or cost == NONE else f" ({results.ratio(scenario, server)})"
            row.append(cost + times)
        row += [_added(results, scenario, server) for scenario in LONE]
        starts = results.starts.get(server, [])
        row += [number(median(starts)) if starts else NONE]
        row += [number(memory.get(server, {}).get("pss")) for memory in (results.idle, results.aged)]
        row += [number(results.sizes.get(server)), *_probed(results.probe.get(server))]
        rows.append(row)
    note = [
        "Processor time of a request of 2 KB or of an event, in microseconds, and its ratio to that of nginx "
        "(lowest to highest round); what a lone request takes longer than without the server;",
        "memory as PSS;",
        "installed without Python, Node or Go.",
        "The score is the probe's at the same version, over all pairs of dialects that the gateway serves "
        "(docs/probe.md); a gateway that serves fewer pairs is tried in less.",
    ]
    if aged := results.aged:
        seconds = min(figures["seconds"] for figures in aged.values())
        requests = [figures["ok"] for figures in aged.values()]
        long = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
        said = f"Later: after {long} of {AGEING[0].connections} streams of {EVENTS} events at a time"
        note.append(f"{said} ({min(requests):,} to {max(requests):,} streams), all servers at once.")
        commits = {figures["commit"] for figures in aged.values() if "commit" in figures}
        if others := sorted(commits - {results.setting.get("commit")}):
            note.append(f"Measured at commit {', '.join(others)}.")
    return Section("Speed and correctness", " ".join(note), header, rows)


def _added(results: Results, scenario: Scenario, server: str) -> str:
    """Milliseconds, the median of the rounds."""
    direct = results.runs.get(scenario.key, {}).get("direct", [])
    rounds = [figures for figures in results.rounds(scenario, server) if figures["ok"]]
    if not direct or not rounds:
        return NONE
    parts = [
        (median(one[name] for one in rounds) - median(one[name] for one in direct)) / 1000
        for name in ("p50", "p99")
    ]
    return " / ".join(number(part) for part in parts)


def _probed(found: Mapping[str, Any] | None) -> list[str]:
    if not found:
        return [NONE, NONE, NONE]
    share = f"{100 * found['works'] / found['cases']:.1f} %"
    return [f"{found['works']} of {found['cases']}", share, str(found["pairs"])]


def scores(probed: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """What the probe found of the servers that are measured at the same version."""
    return {
        peer["name"]: {
            "works": sum(run["works"] for run in peer["runs"]),
            "cases": sum(run["cases"] for run in peer["runs"]),
            "pairs": len(peer["runs"]),
        }
        for peer in probed["peers"]
        if versions.get(peer["name"]) == peer["version"]
    }


def _what(scenario: Scenario) -> str:
    return "event" if scenario.events else f"{scenario.size.upper()}B"


def _cost(results: Results, scenario: Scenario, server: str) -> str:
    costs = sorted(reading.cost for reading in results.readings(scenario, server))
    return number(costs[len(costs) // 2]) if costs else tables.NONE


def age(bench: gateway.Bench, seconds: float) -> None:
    """All of them at once: memory is read, and no time."""

    def one(server: Target) -> None:
        scenario = next(scenario for scenario in AGEING if server.takes(scenario))
        before = time.monotonic()
        figures = bench.driver.drive(server, scenario, seconds, 0.0)
        kept = {"ok": figures["ok"], "err": figures["err"], "seconds": time.monotonic() - before}
        kept["commit"] = bench.results.setting.get("commit", "")
        bench.results.aged[server.name] = {**kept, **server.memory()._asdict()}

    with ThreadPoolExecutor(len(bench.servers)) as pool:
        list(pool.map(one, bench.servers))


def own_size(cache: Path) -> float:
    """Of this checkout, in an environment with it and what it needs."""
    venv = cache / "wireglot-size"
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", "--clear", str(venv)], [*pip, str(ROOT)]):
        subprocess.run(command, check=True, capture_output=True)
    return recipe.tree_size(venv)


def run(arguments: argparse.Namespace, directory: Path, results: Results) -> None:
    recipes = [recipe.read(recipe.find(name)) for name in arguments.recipe]
    made = []
    for one in recipes:
        try:
            made.append((one, recipe.install(one, arguments.cache)))
        except BadRecipe as fault:  # the others can still be measured
            print(f"{one.name} cannot be had here: {fault}", file=sys.stderr)
    results.sizes = {one.name: recipe.size(one, installed) for one, installed in made}
    results.sizes[OURS] = own_size(arguments.cache)
    bench = gateway.Bench(arguments, directory, results)
    bench.servers += [recipe.Peer(one, installed, bench.upstream, directory) for one, installed in made]
    results.setting = setting.read(bench.tools.title, pinned=bench.server_core is not None)
    versions = {one.name: installed.version for one, installed in made}
    results.setting["versions"] |= versions
    probed = json.loads(PROBED.read_text(encoding="utf-8"))
    ours = next(peer["version"] for peer in probed["peers"] if peer["name"] == OURS)
    results.probe = scores(probed, {**versions, OURS: ours})
    try:
        bench.start(arguments.starts)
        bench.measure([*SCENARIOS, *LONE])
        age(bench, arguments.age)
    finally:
        with suppress(KeyboardInterrupt):
            bench.close()
    bench.save()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure other gateways beside ours and nginx.")
    parser.add_argument(
        "--recipe", action="append", default=[], help=f"a file, or {', '.join(DEFAULT)}; again for more"
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wireglot-probe"
    parser.add_argument("--cache", type=Path, default=cache, help="where what is installed is kept")
    parser.add_argument("--age", type=float, default=60.0, help="seconds of load before memory is read again")
    parser.add_argument("--hour", dest="age", action="store_const", const=_HOUR, help="an hour of it")
    # Some need many milliseconds for a request.
    reported = gateway.options(parser, seconds=4.0)
    reported.recipe = reported.recipe or list(DEFAULT)
    reported.starts, reported.warm = 2, 1.0
    return reported


def main() -> None:
    arguments = _options()
    if arguments.source:
        results = read(arguments.source)
    else:
        results = read(arguments.json) if arguments.resume and arguments.json.exists() else Results()
        with tempfile.TemporaryDirectory(prefix="wireglot-peers-") as temporary:
            directory = arguments.keep or Path(temporary)
            directory.mkdir(parents=True, exist_ok=True)
            try:
                run(arguments, directory.resolve(), results)
            except BadRecipe as fault:
                raise SystemExit(f"bench-peers: {fault}") from None
    found = sections(results)
    print(tables.as_text(setting.sentence(results.setting), found))
    if arguments.write:
        drawn = charts.write_peers(results, arguments.write.parent / "figures")
        text = tables.as_markdown(setting.sentence(results.setting), found, drawn)
        page.write(arguments.write, text, page.PEERS)
    if failed := [name for name in results.failures() if OURS in name]:
        raise SystemExit(f"bench-peers: nothing succeeded in {', '.join(failed)}")


if __name__ == "__main__":
    main()
