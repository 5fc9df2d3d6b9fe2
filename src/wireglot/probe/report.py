"""A whole run: findings with their cases, the score, the cost. The key is removed from all texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Final
from urllib.parse import urlsplit

import msgspec

from wireglot.http.redaction import Redactor
from wireglot.probe.reply import VERDICTS, Verdict
from wireglot.probe.run import THEMES, ProbeFinding
from wireglot.probe.talk import Cost, Level, ProbeCase, ProbeExchange, ProbeLedger


class ProbeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A case and its result."""

    id: str
    theme: str
    title: str
    level: Level
    cost: Cost
    sends: str
    expects: str
    why: str
    verdict: Verdict
    words: str
    seconds: float
    tries: int
    exchanges: tuple[ProbeExchange, ...]


class Score(msgspec.Struct, frozen=True):
    """Counts the cases that applied and were decided. A "must" case weighs three times a "should" case."""

    passed: int
    applicable: int
    percent: float


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    wireglot: str
    """The version of the probe."""
    endpoint: str
    dialect: str
    model: str
    date: str
    complete: bool
    """False: it was interrupted, and cases are missing."""
    score: Score
    verdicts: dict[str, int]
    requests: int
    input_tokens: int
    output_tokens: int
    catalog: str
    """A suggestion for a catalog file."""
    cases: tuple[ProbeRow, ...]

    @property
    def failed(self) -> int:
        return self.verdicts["fail"]


def score_of(cases: Sequence[ProbeCase], findings: Sequence[ProbeFinding]) -> Score:
    weights = {case.id: case.weight for case in cases}
    decided = [finding for finding in findings if finding.verdict in ("pass", "fail", "warn")]
    passed = [finding for finding in decided if finding.verdict == "pass"]
    most = sum(weights[finding.id] for finding in decided)
    reached = sum(weights[finding.id] for finding in passed)
    return Score(len(passed), len(decided), round(100 * reached / most, 1) if most else 0.0)


def tally(findings: Sequence[ProbeFinding]) -> dict[str, int]:
    return {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in VERDICTS}


def rows_of(cases: Sequence[ProbeCase], findings: Sequence[ProbeFinding], key: str) -> tuple[ProbeRow, ...]:
    by_id = {case.id: case for case in cases}
    scrub = Redactor([key] if key else [], []).text
    return tuple(_row(by_id[finding.id], finding, scrub) for finding in findings)


def _row(case: ProbeCase, finding: ProbeFinding, scrub: Callable[[str], str]) -> ProbeRow:
    exchanges = tuple(
        msgspec.structs.replace(
            each,
            request=scrub(each.request),
            answer=scrub(each.answer),
            path=scrub(each.path),
            kind=scrub(each.kind),
            left_out=tuple(map(scrub, each.left_out)),
        )
        for each in finding.exchanges
    )
    return ProbeRow(
        id=case.id,
        theme=case.theme,
        title=case.title,
        level=case.level,
        cost=case.cost,
        sends=case.sends,
        expects=case.expects,
        why=case.why,
        verdict=finding.verdict,
        words=scrub(finding.words),
        seconds=finding.seconds,
        tries=finding.tries,
        exchanges=exchanges,
    )


_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; }
.sum { display: flex; flex-wrap: wrap; gap: .3rem 2rem; list-style: none; padding: 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #8884; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .6rem; }
pre { max-height: 24rem; overflow: auto; }
.v { white-space: nowrap; font-weight: 600; }
.pass { color: #17803d; } .fail { color: #b3261e; } .warn { color: #8a5200; } .other { color: #666; }
@media (prefers-color-scheme: dark) {
  .pass { color: #5bd08a; } .fail { color: #ff8a80; } .warn { color: #f0b45a; } .other { color: #aaa; }
}
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_SIGNS: Final = {
    "pass": "✓",
    "fail": "✗",
    "warn": "!",
    "not applicable": "–",
    "inconclusive": "?",
    "not run": "·",
}


def page(report: ProbeReport) -> str:
    score = report.score
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(report.dialect)} at {escape(report.endpoint)}</title>",
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(report.dialect)} at {escape(report.endpoint)}</h1>",
        f"<p>Model {escape(report.model)}, {escape(report.date)}, wireglot {escape(report.wireglot)}"
        + ("" if report.complete else ", <strong>interrupted: cases are missing</strong>")
        + ".</p>",
        f"<p><strong>{score.passed} of {score.applicable} applicable cases passed: ",
        f"{score.percent:g} %</strong> ({report.requests:,} requests, {report.input_tokens:,} tokens in, ",
        f"{report.output_tokens:,} out).</p>",
        _summary(report),
    ]
    for theme in THEMES:
        rows = [row for row in report.cases if row.theme == theme.name]
        if rows:
            parts.append(f'<h2 id="{escape(theme.name)}">{escape(theme.title)}</h2><table>')
            parts += [_html_row(row) for row in rows]
            parts.append("</table>")
    parts.append(f"<h2>Suggested catalog entry</h2><pre>{escape(report.catalog)}</pre></body></html>")
    return "\n".join(parts) + "\n"


def _summary(report: ProbeReport) -> str:
    counts = "".join(
        f'<li class="v {_class(verdict)}">{_SIGNS[verdict]} {count} {escape(verdict)}</li>'
        for verdict, count in report.verdicts.items()
    )
    text = "".join(
        f'<li class="{_class(row.verdict)}"><a href="#{escape(row.id)}">{escape(row.id)}</a> '
        f"{escape(row.words)}</li>"
        for row in report.cases
        if row.verdict in ("fail", "warn")
    )
    return f'<ul class="sum">{counts}</ul>' + (f"<ul>{text}</ul>" if text else "")


def _html_row(row: ProbeRow) -> str:
    words = f"<p>{escape(row.words)}</p>" if row.words else ""
    evidence = "".join(map(_exchange, row.exchanges))
    return (
        f'<tr id="{escape(row.id)}"><td class="v {_class(row.verdict)}">{_SIGNS[row.verdict]} '
        f"{escape(row.verdict)}</td>"
        f"<td><strong>{escape(row.title)}</strong> <code>{escape(row.id)}</code> ({row.level}){words}"
        f"<details><summary>Requests and answers</summary><p>Sends: {escape(row.sends)}. "
        f"Expects: {escape(row.expects)}. Why: {escape(row.why)}.</p>{evidence}</details></td></tr>"
    )


def _exchange(exchange: ProbeExchange) -> str:
    text = f"status {exchange.status} {exchange.kind}" if exchange.status else "no answer"
    return (
        f"<p><code>{escape(exchange.method)} {escape(exchange.path)}</code></p>"
        f"<pre>{escape(exchange.request)}</pre>"
        f"<p>{escape(text)}</p><pre>{escape(exchange.answer)}</pre>"
    )


def _class(verdict: str) -> str:
    return verdict if verdict in ("pass", "fail", "warn") else "other"


_STYLES: Final = {
    ("anthropic", "0"): "adaptive",
    ("anthropic", "1"): "budget",
    ("openai-chat", "0"): "effort",
    ("openai-chat", "1"): "effort",
    ("openai-responses", "0"): "effort",
    ("openai-responses", "1"): "effort",
    ("gemini", "0"): "level",
    ("gemini", "1"): "budget",
    ("ollama", "0"): "effort",
    ("ollama", "1"): "effort",
    ("gemini-interactions", "0"): "level",
    ("gemini-interactions", "1"): "level",
}
_SWITCHES: Final = ("parallel_switch", "strict_tools", "developer_role")
_LISTS: Final = {
    "tool_choices": ("none", "required", "named"),
    "text_parts": ("system", "user", "tool"),
    "output_formats": ("json", "schema"),
    "media": ("image",),
}


def catalog_entry(
    base_url: str, dialect: str, model: str, ledger: ProbeLedger, *, date: str, version: str
) -> str:
    host = urlsplit(base_url).hostname or "mine"
    name = re.sub(r"[^A-Za-z0-9]+", "-", host).strip("-").lower() or "mine"
    limits = _limits(dialect, ledger)
    variable = name.upper().replace("-", "_").lstrip("_0123456789") or "MINE"
    counts = ledger.facts.get("counts", {}).get("")
    source = base_url if base_url.startswith("https:") else "https://docs.example.com"
    names = ", ".join(f'"{field}"' for field, _, _ in limits)
    lines = [
        f"# src/wireglot_core/providers/catalog/{name}.toml, "
        f"found by `wireglot probe` with {_quoted(model)}.",
        f"# Check each line: one model was tested, once. ({version}, {date})",
        f"title = {_quoted(name)}",
        f'dialects = ["{dialect}"]',
        f"base_url = {_quoted(base_url)}",
        f'api_key_env = ["{variable}_API_KEY"]',
    ]
    if counts is not None and counts[0]:
        lines.append(f'counts = ["{dialect}"]  # {_comment(counts[1])}')
    if limits:
        lines += [
            "",
            "[[sources]]",
            f"url = {_quoted(source)}" + ("" if source == base_url else "  # its documentation"),
            f'date = "{date}"',
            'status = "read"',
            'says = "found by wireglot probe"',
            f"limits = [{names}]",
            "",
            "[limits]",
        ]
        for field, value, evidence in limits:
            lines += [f"# {_comment(evidence)}", f"{field} = {value}"]
    return "\n".join(lines) + "\n"


def _limits(dialect: str, ledger: ProbeLedger) -> list[tuple[str, str, str]]:
    """Field, value in TOML, evidence."""
    facts = ledger.facts
    found: list[tuple[str, str, str]] = []
    for field, values in _LISTS.items():
        known = {value: reported for value, reported in facts.get(field, {}).items() if value in values}
        if known:
            taken = [value for value in values if value in known and known[value][0]]
            if field == "tool_choices":
                taken = ["auto", *taken]
            listed = ", ".join(f'"{value}"' for value in taken)
            found.append((field, f"[{listed}]", _evidence(known)))
    for field in _SWITCHES:
        if field in facts:
            is_taken, how = facts[field][""]
            found.append((field, "true" if is_taken else "false", how))
    if (reported := facts.get("thinking")) is not None:
        way, (is_taken, how) = list(reported.items())[-1]
        found.append(("thinking", f'"{_STYLES[dialect, way] if is_taken else "none"}"', how))
    found += _others(facts)
    return found


def _others(facts: dict[str, dict[str, tuple[bool, str]]]) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []

    def add(field: str, yes: str, no: str, value: str = "", name: str = "") -> None:
        reported = facts.get(name or field, {}).get(value)
        if reported is not None and (answer := yes if reported[0] else no):
            found.append((field, answer, reported[1]))

    add("tool_result_media", '"inside"', '"beside"')
    add("system_midway", '"anywhere"', '"no"')
    add("cache_markers", "4", "0")
    add("stop_max", "4", "1", "4")
    add("max_tokens_field", "", '"max_tokens"', "max_completion_tokens")
    add("sampling", "", "[]")
    add("settings", "", "[]", "metadata")
    return found


def _evidence(known: dict[str, tuple[bool, str]]) -> str:
    return "; ".join(f"{value}: {how}" for value, (_, how) in known.items())


def _quoted(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _comment(text: str) -> str:
    """On one line: an endpoint's text may contain anything."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:240]
