"""What OpenAI spells alike in Chat and in Responses: breakpoints, citations, log probabilities, tools."""

from __future__ import annotations

from typing import Any, Final, Literal

from wireglot.ir.content import Citation, TokenLogprob
from wireglot.ir.loss import Loss
from wireglot.ir.request import AnyTool, Grammar, Tool

VENDOR: Final = "openai"
"""Both dialects name the same files."""

# Cache marks

BREAKPOINT: Final = "prompt_cache_breakpoint"

Ttl = Literal["", "short", "long"]
TTLS: Final[dict[str, Ttl]] = {"30m": "short", "12h": "long"}
_TTL_NAMES: Final = {"short": "30m", "long": "12h"}


def breakpoint_value(ttl: Ttl, mode: Any = "explicit") -> dict[str, Any]:
    value = {"mode": mode}
    if ttl:
        value["ttl"] = _TTL_NAMES[ttl]
    return value


# Citations


def cited_span(
    citation: Citation, length: int, own: bool, path: str, losses: list[Loss]
) -> tuple[int | None, int | None]:
    """The offsets to write. Clients insist on both, so another dialect's citation without them cites the
    whole text, which is what it means."""
    start, end = citation.start, citation.end
    if own or (start is not None and end is not None):
        return start, end
    losses.append(Loss(path, "citations", "invented", "offsets: the whole text"))
    return start or 0, length if end is None else end


# Log probabilities


def parse_logprob(entry: Any) -> TokenLogprob | None:
    """None for what is not in OpenAI's form."""
    token = _token(entry)
    if token is None:
        return None
    top = entry.get("top_logprobs")
    others = [_token(other) for other in top] if type(top) is list else []
    return TokenLogprob(*token, tuple(other for other in others if other is not None))


def _token(entry: Any) -> tuple[str, float | int] | None:
    if type(entry) is not dict:
        return None
    token, logprob = entry.get("token"), entry.get("logprob")
    if type(token) is str and isinstance(logprob, int | float):
        return token, logprob
    return None


def render_logprobs(tokens: tuple[TokenLogprob, ...]) -> list[dict[str, Any]]:
    return [
        {
            **_render_token(token.token, token.logprob),
            "top_logprobs": [_render_token(*other) for other in token.top],
        }
        for token in tokens
    ]


def _render_token(token: str, logprob: float | int) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode("utf-8", "replace"))}


# Tools

Mode = Literal["auto", "none", "required"]
CHOICE_MODES: Final[dict[str, Mode]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",
}
HOSTED_KINDS: Final = {
    "code_interpreter": "code_execution",
    "file_search": "file_search",
    "image_generation": "image_generation",
    "mcp": "mcp",
    "web_search": "web_search",
}


def grammar_of(shape: dict[str, Any], default_syntax: str | None = None) -> Grammar | None:
    """The grammar in the `format` of a freeform tool, which Chat nests once more; None for any other."""
    nested = shape.get("grammar")
    source = nested if type(nested) is dict else shape
    syntax, definition = source.get("syntax"), source.get("definition")
    if syntax is None:
        syntax = default_syntax
    if shape.get("type") == "grammar" and type(syntax) is str and type(definition) is str:
        return Grammar(syntax, definition)
    return None


def custom_names(tools: tuple[AnyTool, ...]) -> set[str]:
    """The freeform tools: a choice must call them by their kind."""
    return {tool.name for tool in tools if isinstance(tool, Tool) and tool.kind == "custom"}
