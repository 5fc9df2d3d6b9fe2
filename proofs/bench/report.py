"""The figures of a run as tables: for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from proofs.bench import conversations, growing, store_calls
from proofs.bench.results import BASE, OURS, Results
from proofs.bench.scenarios import (
    BY_KEY,
    BYSTANDER_GOAL_MS,
    CROWDS,
    DELAY_GOAL,
    DIALECTS,
    EVENTS,
    FEW_EVENTS,
    GAP,
    GROWING_GOAL,
    IDLE_GOAL_MIB,
    LONE,
    LONE_GOALS_US,
    NAMES,
    START_GOAL_SECONDS,
    STREAM_GOAL_KIB,
    TOOLS,
    WIDE_GAP,
    WORKERS,
    WORKERS_GOAL,
    Scenario,
)
from proofs.bench.standing import LEAST_ROUNDS, Ratio, Undocumented, spread
from proofs.bench.tables import NONE, Section, number

_CORES_FOR_TWO = 4
"""Two for the workers and two for the tools: with fewer they take one another's time."""

HEADLINES = {
    "P-cc": "paced event, 20 streams",
    "DP-ac": "paced event, cross",
    "PS-cc": "paced event, 20 streams out of step",
    "DPS-ac": "paced event, cross, out of step",
    "E-cc": "paced event, 200 streams",
    "DE-ac": "paced event, cross, 200 streams",
    "A-cc": "request of 2 KB",
    "B-cc": "request of 100 KB",
    "D-ac": "cross request of 2 KB",
    "DB-ac": "cross request of 100 KB, first seen",
    "C-cc": "unpaced event",
    "DC-ac": "unpaced event, cross",
}
"""In this order: events at a model's pace are what a gateway mostly carries."""


def sections(results: Results) -> list[Section]:
    makers: tuple[Callable[[Results], Section], ...] = (
        _headlines,
        _pairs,
        _growing,
        _conversations,
        _lone,
        _crowds,
        _tools,
        _bystanders,
        _workers,
        _stores,
        _process,
    )
    return [section for section in (make(results) for make in makers) if section.rows]


def _headlines(results: Results) -> Section:
    header = ["", "nginx us", "wireglot us", "ratio (range)", "goal", "", "failed"]
    rows, reasons = [], []
    for key, title in HEADLINES.items():
        scenario = BY_KEY[key]
        if not results.rounds(scenario, OURS):
            continue
        found = results.ratio(scenario)
        reasons += _reason(f"{title} ({scenario.family})", found)
        rows.append(
            [
                f"{title} ({scenario.family})",
                number(_cost(results, scenario, BASE)),
                number(_cost(results, scenario, OURS)),
                str(found),
                f"{scenario.goal:g}" if scenario.goal else "",
                found.verdict(scenario.goal),
                str(_failed(results, scenario)),
            ]
        )
    if results.growing:
        grown = results.growing_ratio()
        reasons += _reason("growing conversation", grown)
        costs = [_per_turn(results.growing.get(server, [])) for server in (BASE, OURS)]
        failed = sum(figures["err"] for figures in results.growing.get(OURS, []))
        title = f"a turn of a growing conversation, cross, {_span()}"
        rows.append(
            [
                title,
                *map(number, costs),
                str(grown),
                f"{GROWING_GOAL:g}",
                grown.verdict(GROWING_GOAL),
                str(failed),
            ]
        )
    note = (
        "Processor time of the server for one event or request, on one worker; the ratio is the median of "
        "the rounds, with the lowest and the highest. Cross: an Anthropic client and a Chat upstream."
    )
    return Section("Cost compared with nginx", _noted(note, reasons), header, rows, "ratios")


def _pairs(results: Results) -> Section:
    """Every client with every upstream."""
    header = [
        "client > upstream",
        "2 KB us",
        "ratio (range)",
        "goal",
        "",
        "100 KB us",
        "ratio (range)",
        "goal",
        "",
    ]
    rows, reasons = [], []
    for client in DIALECTS:
        for upstream in DIALECTS:
            pair, same = f"{client}{upstream}", client == upstream
            row = [f"{NAMES[client]} > {NAMES[upstream]}"]
            for family in ("A" if same else "D", "B" if same else "DB"):
                scenario = BY_KEY[f"{family}-{pair}"]
                if not results.rounds(scenario, OURS):
                    row += [NONE] * 4
                    continue
                found = results.ratio(scenario)
                reasons += _reason(scenario.key, found)
                goal = f"{scenario.goal:g}" if scenario.goal else ""
                cost = number(_cost(results, scenario, OURS))
                row += [cost, str(found), goal, found.verdict(scenario.goal)]
            if set(row[1:]) != {NONE}:
                rows.append(row)
    note = (
        "One worker. Cross bodies of 100 KB are never the same twice. nginx forwards the same request to an "
        "upstream of the client's own dialect."
    )
    return Section("Every pair", _noted(note, reasons), header, rows, "pairs")


def _growing(results: Results) -> Section:
    header = ["turn", "KB sent", *(f"{server} us" for server in results.growing)]
    if not results.growing:
        return Section("Growing conversation", "", header, [])
    sizes = next(iter(results.growing.values()))[0]["bytes"]
    middles = {server: _middle_turns(rounds) for server, rounds in results.growing.items()}
    rows = []
    for turn in sorted({0, *range(len(sizes) // 4 - 1, len(sizes), len(sizes) // 4)}):
        costs = [number(turns[turn]) for turns in middles.values()]
        rows.append([str(turn + 1), number(sizes[turn] / 1000), *costs])
    lines = {server: growing.line(sizes, turns) for server, turns in middles.items()}
    text = "; ".join(
        f"{server} {one.base_us:,.0f} us and {one.us_per_kb:.2f} us a KB" for server, one in lines.items()
    )
    note = (
        f"An Anthropic client and a Chat upstream, {_span()}: each turn sends the whole history and two "
        f"messages more. Processor time of a turn. As a straight line over its size: {text}."
    )
    return Section("Growing conversation", note, header, rows, "growing")


def _conversations(results: Results) -> Section:
    header = ["conversations by turns", "workers", "not remembered us", "remembered us", "ratio (range)"]
    rows, reasons = [], []
    for crowd in conversations.CROWDS:
        by_kind = results.conversations.get(crowd.key)
        if not by_kind:
            continue
        found = results.remembering(crowd.key)
        reasons += _reason(crowd.key, found)
        costs = [number(_median(by_kind.get(kind, []), "cpu_us")) for kind in ("off", "on")]
        rows.append([str(crowd.conversations), str(crowd.workers), *costs, str(found)])
    note = (
        "Turns of about 100 KB from one client key, an Anthropic client and a Chat upstream, each on a "
        "connection of its own: of two workers any may get it. Processor time of a turn with the memory of "
        "what was sent before, and without it (`[limits] remembered = 0`)."
    )
    return Section("Many conversations", _noted(note, reasons), header, rows)


def _lone(results: Results) -> Section:
    header = ["", "direct p50", "nginx adds p50", "p99", "wireglot adds p50", "p99", "goal p50", ""]
    rows, reasons = [], []
    for scenario in LONE:
        direct = results.rounds(scenario, "direct")
        if not direct:
            continue
        row = [
            f"{scenario.pair}, {scenario.size.upper()}B ({scenario.family})",
            number(_median(direct, "p50")),
        ]
        for server in (BASE, OURS):
            for name in ("p50", "p99"):
                added = _added(results, scenario, server, name)
                row.append(number(median(added)) if added else NONE)
        goal = LONE_GOALS_US.get(scenario.family)
        added = _added(results, scenario, OURS, "p50")
        found = _of_rounds(added)
        reasons += _reason(scenario.key, found)
        row += [f"{goal:g}" if goal else "", found.verdict(goal)]
        rows.append(row)
    note = "One request after the other: what it takes longer than from the mock upstream; microseconds."
    return Section("A lone request", _noted(note, reasons), header, rows)


def _crowds(results: Results) -> Section:
    header = [
        "",
        "server",
        "us an event",
        "ratio (range)",
        "goal",
        "added p50 ms",
        "p99 ms",
        "KiB a stream",
        "failed",
    ]
    rows = []
    for scenario in CROWDS:
        for server in (BASE, OURS):
            rounds = results.rounds(scenario, server)
            if not rounds:
                continue
            ours = server == OURS
            found = results.ratio(scenario) if ours else None
            goals = [f"{scenario.goal:g} {found.verdict(scenario.goal)}"] if found and scenario.goal else []
            if scenario.key == "D500-ac" and ours:
                goals.append(_delay_goal(results, scenario))
            memory = _median(rounds, "kib_stream")
            if memory is not None and ours:
                goals.append(f"{STREAM_GOAL_KIB:g} KiB {_verdict(memory, STREAM_GOAL_KIB)}")
            delays = [_milliseconds(results, scenario, server, part) for part in ("delay_p50", "delay_p99")]
            title = f"{scenario.connections} streams, {scenario.pair} ({scenario.family})"
            rows.append(
                [
                    title,
                    server,
                    number(_cost(results, scenario, server)),
                    str(found) if found else "",
                    "; ".join(goals),
                    *delays,
                    number(memory),
                    str(sum(figures["err"] for figures in rounds)),
                ]
            )
    note = (
        f"{EVENTS} events each, {GAP} ms apart; of a thousand streams {FEW_EVENTS}, "
        f"{WIDE_GAP} ms apart. The delay is from the upstream's write to the client's read, "
        "less that without a server where it was measured. Memory is what the process has grown by since its "
        "start."
    )
    return Section("Many streams at once", note, header, rows)


def _delay_goal(results: Results, scenario: Scenario) -> str:
    pairs = zip(
        _added(results, scenario, OURS, "delay_p99"),
        _added(results, scenario, BASE, "delay_p99"),
        strict=False,
    )
    times = [ours / base for ours, base in pairs if base > 0]
    found = _of_rounds(times)
    return f"p99 {DELAY_GOAL:g}x: {found} {found.verdict(DELAY_GOAL)}"


def _tools(results: Results) -> Section:
    header = ["tools", "KB sent", "us a request", "us a KB"]
    rows, costs = [], []
    for scenario in TOOLS:
        cost = _cost(results, scenario, OURS)
        if cost is None:
            continue
        size = len(scenario.body()) / 1000
        costs.append(cost / size)
        rows.append([scenario.size.removeprefix("tools-"), number(size), number(cost), f"{cost / size:.2f}"])
    note = "An Anthropic client and a Chat upstream, the same tools with every request. "
    if len(costs) > 1:
        steepest = _steepest(costs)
        note += f"A KB of a larger list costs at most {steepest:.2f} times what it costs in a smaller one: "
        note += "no cliff." if steepest < _CLIFF else "a cliff."
    return Section("Many tools", note, header, rows)


_CLIFF = 1.5


def _steepest(costs: list[float]) -> float:
    """How much more a KB costs at most than it did at a smaller size. A fixed cost of each request makes a KB
    cheaper as lists grow, which is no cliff."""
    return max(later / min(costs[:at]) for at, later in enumerate(costs) if at)


def _bystanders(results: Results) -> Section:
    header = [
        "server",
        "longest wait before, ms",
        "beside the body, ms",
        "all rounds, ms",
        "goal",
        "",
        "the body, ms",
    ]
    rows = []
    for server, rounds in results.bystanders.items():
        worst = [figures["worst_ms"] for figures in rounds]
        goal = (
            [f"{BYSTANDER_GOAL_MS:g}", _verdict(max(worst), BYSTANDER_GOAL_MS)]
            if server == OURS
            else ["", ""]
        )
        quiet, huge = (number(_median(rounds, name)) for name in ("quiet_ms", "huge_ms"))
        rows.append([server, quiet, number(median(worst)), _range(worst), *goal, huge])
    note = "Small requests one after the other, and one cross body of 10 MB beside them: how long one waits."
    return Section("One body of 10 MB", note, header, rows)


def _workers(results: Results) -> Section:
    header = ["", "one worker /s", "two workers /s", "times (range)", "goal", "us a request, one", "two"]
    rows = []
    for scenario in WORKERS:
        by_count = results.workers.get(scenario.key, {})
        one, two = by_count.get("1", []), by_count.get("2", [])
        if not one or not two:
            continue
        found = _of_rounds([second["rps"] / first["rps"] for first, second in zip(one, two, strict=False)])
        enough = (results.setting.get("cores") or 0) >= _CORES_FOR_TWO
        goal = f"{WORKERS_GOAL:g}" + (f" {_at_least(found, WORKERS_GOAL)}" if enough else " (needs 4 cores)")
        costs = [number(_median(rounds, "cpu_us_req")) for rounds in (one, two)]
        rates = [number(_median(rounds, "rps")) for rounds in (one, two)]
        rows.append([f"{scenario.pair}, 2 KB ({scenario.family})", *rates, str(found), goal, *costs])
    note = "Servers and tools share all cores here. Where these are too few for both, the tools limit it."
    return Section("Two workers", note, header, rows)


def _stores(results: Results) -> Section:
    header = [
        "",
        "transactions",
        "rows",
        "WAL bytes",
        "PostgreSQL us",
        "Redis commands",
        "Redis us",
        "failed",
    ]
    rows = []
    for kind in store_calls.KINDS:
        reported = results.stores.get(kind.name)
        if reported is None:
            continue
        rows.append(
            [
                kind.title,
                f"{reported['transactions']:.2f}",
                f"{reported['rows']:.2f}",
                number(reported["wal_bytes"]),
                number(reported["postgres_cpu"] * 1e6),
                f"{reported['redis_commands']:.2f}",
                number(reported["redis_cpu"] * 1e6),
                f"{reported['err']:.0f}",
            ]
        )
    note = (
        f"With PostgreSQL and Redis as the store: what {store_calls.REQUESTS} requests, one after the other, "
        "ask of them, for one request. Usage is written in batches: under load a request takes fewer "
        "transactions."
    )
    return Section("What a request asks of the stores", note, header, rows)


def _process(results: Results) -> Section:
    rows = []
    for server, starts in results.starts.items():
        ours, idle = server == OURS, results.idle.get(server, {})
        start = median(starts)
        goals = [f"{START_GOAL_SECONDS:g} s", _verdict(start, START_GOAL_SECONDS)] if ours else ["", ""]
        rows.append([f"{server}: start to the first answer", f"{start:.2f} s ({_range(starts)})", *goals])
        if idle:
            goals = [f"{IDLE_GOAL_MIB:g} MiB", _verdict(idle["rss"], IDLE_GOAL_MIB)] if ours else ["", ""]
            shown = f"{idle['rss']:.0f} MiB; {idle['pss']:.0f} MiB"
            rows.append([f"{server}: idle memory (RSS; PSS)", shown, *goals])
    return Section("Process", "", ["", "", "goal", ""], rows)


# Figures


def _cost(results: Results, scenario: Scenario, server: str) -> float | None:
    return _median(results.rounds(scenario, server), scenario.cost)


def _median(rounds: Iterable[dict[str, Any]], name: str) -> float | None:
    found = [figures[name] for figures in rounds if name in figures]
    return median(found) if found else None


def _added(results: Results, scenario: Scenario, server: str, name: str) -> list[float]:
    """What the server adds, in each round."""
    pairs = zip(results.rounds(scenario, server), results.rounds(scenario, "direct"), strict=False)
    return [one[name] - other[name] for one, other in pairs if name in one and name in other]


def _milliseconds(results: Results, scenario: Scenario, server: str, name: str) -> str:
    found = _added(results, scenario, server, name) if scenario.direct else []
    value = median(found) if found else _median(results.rounds(scenario, server), name)
    return number(value / 1000) if value is not None else NONE


def _of_rounds(values: list[float]) -> Ratio | Undocumented:
    if len(values) < LEAST_ROUNDS:
        return Undocumented(NONE, f"{len(values)} of {LEAST_ROUNDS} rounds")
    return spread(values)


def _per_turn(rounds: list[dict[str, Any]]) -> float | None:
    costs = [figures["cpu_s"] * 1e6 / max(figures["ok"], 1) for figures in rounds]
    return median(costs) if costs else None


def _middle_turns(rounds: list[dict[str, Any]]) -> list[float]:
    return [median(turn) for turn in zip(*(figures["cpu_us"] for figures in rounds), strict=True)]


def _failed(results: Results, scenario: Scenario) -> int:
    return sum(figures["err"] for figures in results.rounds(scenario, OURS))


def _verdict(value: float, goal: float) -> str:
    return "reached" if value <= goal else "missed"


def _at_least(found: Ratio | Undocumented, goal: float) -> str:
    return ("reached" if found.value >= goal else "missed") if isinstance(found, Ratio) else ""


def _reason(title: str, found: Ratio | Undocumented) -> list[str]:
    return (
        [f"{title}: {found.what}: {found.why}."]
        if isinstance(found, Undocumented) and found.what != NONE
        else []
    )


def _noted(note: str, reasons: list[str]) -> str:
    return " ".join([note, *reasons])


def _span() -> str:
    return f"{growing.FIRST_BYTES // 1000} KB to {growing.LAST_BYTES // 1000} KB over {growing.TURNS} turns"


def _range(values: list[float]) -> str:
    return f"{number(min(values))}-{number(max(values))}"
