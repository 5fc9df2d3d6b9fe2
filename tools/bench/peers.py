"""Other gateways beside ours and nginx, in one run, in turns: `make bench-peers`.

LiteLLM and llm-rosetta come with it, from the package index into environments of their own; any other is
given by a recipe (recipe.py): `make bench-peers ARGS="--recipe mine.toml"`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from tools.bench import charts, gateway, page, recipe, setting, tables
from tools.bench.results import BASE, OURS, Results, read
from tools.bench.scenarios import BY_KEY, Scenario
from tools.bench.standing import Undocumented
from tools.bench.tables import Section, number

SCENARIOS = [BY_KEY[key] for key in ("P-cc", "DP-ac", "A-cc", "B-cc", "D-ac", "DB-ac")]
DEFAULT = ("litellm", "llm-rosetta")


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
    process = [
        [server, number(sum(starts) / len(starts)), *_memory(results, server)]
        for server, starts in results.starts.items()
    ]
    return [
        Section("Compared with other gateways", " ".join([note, *reasons]), header, rows, "peers"),
        Section("Start and idle memory", "", ["", "start s", "RSS MiB", "PSS MiB"], process),
    ]


def _what(scenario: Scenario) -> str:
    return "event" if scenario.events else f"{scenario.size.upper()}B"


def _cost(results: Results, scenario: Scenario, server: str) -> str:
    costs = sorted(reading.cost for reading in results.readings(scenario, server))
    return number(costs[len(costs) // 2]) if costs else tables.NONE


def _memory(results: Results, server: str) -> list[str]:
    idle = results.idle.get(server, {})
    return [number(idle.get(name)) for name in ("rss", "pss")]


def run(arguments: argparse.Namespace, directory: Path, results: Results) -> None:
    recipes = [recipe.read(recipe.find(name)) for name in arguments.recipe]
    made = [(one, recipe.install(one, arguments.cache)) for one in recipes]
    bench = gateway.Bench(arguments, directory, results)
    bench.servers += [recipe.Peer(one, venv, bench.upstream, directory) for one, venv in made]
    results.setting = setting.read(bench.tools.title, pinned=bench.server_core is not None)
    for one, venv in made:
        results.setting["versions"][one.name] = recipe.version(one, venv)
    try:
        bench.start(arguments.starts)
        bench.measure(SCENARIOS)
    finally:
        with suppress(KeyboardInterrupt):
            bench.close()
    bench.save()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure other gateways beside ours and nginx.")
    parser.add_argument(
        "--recipe", action="append", default=[], help="a file, or litellm or llm-rosetta; again for more"
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wireglot-bench"
    parser.add_argument("--cache", type=Path, default=cache, help="where their environments are kept")
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
            except recipe.BadRecipe as fault:
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
