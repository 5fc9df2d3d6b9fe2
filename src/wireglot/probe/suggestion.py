"""What a run has learned of an endpoint, as a file for the catalog: each limit with its evidence."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from wireglot.probe.talk import ProbeLedger

_STYLES: Final = {
    ("anthropic", "0"): "adaptive",
    ("anthropic", "1"): "budget",
    ("openai-chat", "0"): "effort",
    ("openai-chat", "1"): "effort",
    ("openai-responses", "0"): "effort",
    ("openai-responses", "1"): "effort",
    ("gemini", "0"): "level",
    ("gemini", "1"): "budget",
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
        f"# src/wireglot/providers/catalog/{name}.toml, as `wireglot probe` found it: {_quoted(model)}.",
        f"# Look at each line: one model has been asked, once. ({version}, {date})",
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
        known = {value: told for value, told in facts.get(field, {}).items() if value in values}
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
    if (told := facts.get("thinking")) is not None:
        way, (is_taken, how) = list(told.items())[-1]
        found.append(("thinking", f'"{_STYLES[dialect, way] if is_taken else "none"}"', how))
    found += _others(facts)
    return found


def _others(facts: dict[str, dict[str, tuple[bool, str]]]) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []

    def add(field: str, yes: str, no: str, value: str = "", name: str = "") -> None:
        told = facts.get(name or field, {}).get(value)
        if told is not None and (answer := yes if told[0] else no):
            found.append((field, answer, told[1]))

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
    """One line: what an endpoint says may hold anything."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:240]
