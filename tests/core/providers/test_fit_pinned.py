"""Pinned fits: what an endpoint with one limit gets of a conversation that runs into it, and what is declared.

The other tests of `fit` say why; these files show every bend, and make each change of one visible in a review.
`WIREGLOT_UPDATE=1 pytest tests/core/providers/test_fit_pinned.py` writes them again.
"""

import json
import os
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from tests.core.laws.cases import FIXTURES
from tests.core.providers.asks import fit
from tests.core.providers.fit_cases import CONVERSATIONS, ENDPOINTS, HISTORY, PROVIDER, TOOLS, Endpoint
from tests.tiers import rows
from wireglot_core.cache.memory import Memory
from wireglot_core.dialects.context import Context
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.request import Request, Tool
from wireglot_core.providers.fit.fitting import Fitted
from wireglot_core.providers.limits import Limits

PINS = FIXTURES / "fit"
UPDATE = bool(os.environ.get("WIREGLOT_UPDATE"))
CONTEXT = Context(provider=PROVIDER)


def pinned(name: str, lines: list[str]) -> None:
    path = PINS / f"{name}.txt"
    text = "\n".join(lines) + "\n"
    if UPDATE:
        PINS.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def outcome_of(asked: Request, to: Endpoint, context: Context = CONTEXT) -> Fitted | Unsupported:
    try:
        return fit(asked, to.limits, context, to.dialect, not to.native, to.in_pieces)
    except Unsupported as refused:
        return refused


class Everywhere(NamedTuple):
    """What became of a conversation at each endpoint, and what it said before and after that."""

    outcomes: dict[str, Fitted | Unsupported]
    before: Any
    after: Any


@cache
def everywhere(name: str) -> Everywhere:
    asked = CONVERSATIONS[name]
    before = msgspec.to_builtins(asked)
    outcomes = {endpoint: outcome_of(asked, to) for endpoint, to in ENDPOINTS.items()}
    return Everywhere(outcomes, before, msgspec.to_builtins(asked))


def bent(asked: Request, fitted: Fitted | Unsupported) -> list[str]:
    """What is other than it was asked, a line for each field, message and tool; and every loss."""
    if isinstance(fitted, Unsupported):
        return [f"refused at {fitted.path}"]
    lines = [f"- {loss.path} {loss.feature} {loss.action}" for loss in fitted.losses]
    if fitted.aliases:
        aliases = fitted.aliases
        lines.append(f"back: {_json(aliases.names)} {sorted(aliases.custom)} {aliases.unwraps}")
    for name in asked.__struct_fields__:
        before, after = getattr(asked, name), getattr(fitted.request, name)
        if name in ("messages", "tools"):
            lines += [
                f"{name}[{index}] = {_json(each)}"
                for index, each in enumerate(after)
                if index >= len(before) or each != before[index]
            ]
            if len(after) != len(before):
                lines.append(f"{len(after)} {name} instead of {len(before)}")
        elif after != before:
            lines.append(f"{name} = {_json(after)}")
    return lines


def _json(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


@rows("name", CONVERSATIONS)
def test_a_conversation_reaches_endpoints_like_this(name):
    """Of endpoints that get the same, all are named, but those who get what most do."""
    seen: dict[str, list[str]] = {}
    for endpoint, outcome in everywhere(name).outcomes.items():
        seen.setdefault("\n".join(bent(CONVERSATIONS[name], outcome)), []).append(endpoint)
    usual = max(seen, key=lambda text: len(seen[text]))
    lines = ["# all but those below", usual or "as it is", ""]
    for text, endpoints in seen.items():
        if text != usual:
            lines += [*(f"# {endpoint}" for endpoint in endpoints), text or "as it is", ""]
    pinned(name.replace(": ", " ").replace(" ", "-"), lines)


def test_a_loss_says_why():
    """Each sentence once, with the first endpoint that it is said of."""
    said: dict[str, str] = {}
    for name in CONVERSATIONS:
        for endpoint, outcome in everywhere(name).outcomes.items():
            for loss in () if isinstance(outcome, Unsupported) else outcome.losses:
                said.setdefault(
                    f"{loss.feature} {loss.action}: {loss.detail}", f"{name}, {endpoint}: {loss.path}"
                )
    pinned("reasons", [f"{words} ({where})" for words, where in sorted(said.items())])


@rows("name", CONVERSATIONS)
def test_what_was_asked_is_not_touched(name):
    assert everywhere(name).after == everywhere(name).before


def test_every_limit_has_an_endpoint_that_shows_it():
    """But those of thinking, files and caches, which have tests of their own, and the one that is about answers."""
    plain = Limits()
    shown = {
        name
        for to in ENDPOINTS.values()
        for name in plain.__struct_fields__
        if getattr(to.limits, name) != getattr(plain, name)
    }
    assert set(plain.__struct_fields__) - shown <= {
        "between_tools",
        "budget_max",
        "budget_min",
        "cache",
        "cache_min",
        "cache_step",
        "file_addresses",
        "file_ids",
        "leaks_calls",
        "thinking_switch",
    }


def remembering(tools: tuple[Any, ...]) -> Context:
    """As if they had been read from a text that came before."""
    memory = Memory(1_000_000)
    memory.share(tools, memory.decode(b"[1]"))
    assert memory.is_known(tools)
    return replace(CONTEXT, memory=memory)


@rows("tools", [TOOLS, *((tool,) for tool in TOOLS), TOOLS[:2], (TOOLS[3], TOOLS[4])])
def test_tools_that_came_before_are_fitted_like_any(tools):
    """An agent sends them with every turn: what was found out is remembered for each kind of endpoint."""
    asked = Request("m", HISTORY, tools)
    fresh = {name: bent(asked, outcome_of(asked, to)) for name, to in ENDPOINTS.items()}
    context = remembering(tools)
    for _ in range(2):
        again = {name: bent(asked, outcome_of(asked, to, context)) for name, to in ENDPOINTS.items()}
        assert again == fresh


def test_tools_that_came_before_are_the_same_objects_where_nothing_is_to_be_reported():
    tools = (Tool("look", schema={"type": "object", "properties": {"a": {"type": "string"}}}),)
    limits = Limits(tool_schema="gemini-openapi", tool_name="[a-z]+")
    context = remembering(tools)
    one, other = (fit(Request("m", (), tools), limits, context, "gemini").request.tools for _ in range(2))
    assert one is other
    assert fit(Request("m", (), tools), Limits(), context, "gemini").request.tools is tools
