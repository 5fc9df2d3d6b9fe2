"""How the numbers of OpenAI's two dialects must agree."""

from __future__ import annotations

from wireglot.dialects.usage_checks import CACHED, REASONING, TOTAL, Numbers


def check_numbers(told: Numbers) -> list[str]:
    found = []
    get = told.get
    sent, output, total, reasoning = get("input"), get("output"), get("total"), get("reasoning", 0)
    if sent is not None and get("read", 0) + get("written", 0) > sent:
        found.append(CACHED)
    if sent is None or output is None:
        return found
    # xAI counts reasoning beside the output, not within it; then the total says so.
    beside = reasoning > 0 and total == sent + output + reasoning
    if reasoning > output and not beside:
        found.append(REASONING)
    if total is not None and total != sent + output and not beside:
        found.append(TOTAL)
    return found
