"""Write docs/reference/errors.md: every code of the gateway's own errors, when, and what to do.

The codes are read from the source: one without a row in error_codes.toml, or a row that no source uses, is
a failure.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.structure import Module, modules
from wireglot.gateway.errors import _CLASSES, QUOTA
from wireglot_core.ir.errors import MODEL_DENIED
from wireglot_core.ir.failures import _OUTCOMES

_ROOMS: Final = ("gateway/", "http/", "dialects/", "ir/failures.py")
_MAKERS: Final = {
    "RequestError": 2,
    "BadField": 2,
    "ApiError": 4,
    "Malformed": 1,
    "plain_refusal": 1,
    "_refuse_plainly": 1,
    "_apologise": 1,
    "EditRefused": 1,
    "_no_provider": 1,
}
"""Who takes a code, and at which place if not by name."""

CODES: Final[dict[str, tuple[str, str, str]]] = {
    code: tuple(row)
    for group in tomllib.loads((Path(__file__).parent / "error_codes.toml").read_text("utf-8")).values()
    for code, row in group.items()
}
"""Status, when, and what to do."""


_INTRODUCTION: Final = (
    "Every error that the gateway itself returns has one of these codes: `error.code` in OpenAI's",
    "dialects, `reason` of an `ErrorInfo` in Gemini's. Anthropic's dialect has no field for it; the log",
    "line contains it for all dialects. Errors of a provider keep the provider's code: the message names",
    "the provider, quotes its message without secrets, and suggests a fix. Hosts, variables and lines of",
    "the configuration are in the log line (`error.fix`) and on the span (`wireglot.error.fix`). The",
    "message itself contains them, after a `|`, only for callers on the same machine while the gateway",
    "requires no keys, for keys with `full_errors`, and with the admin secret in `x-wireglot-admin`.",
)


_BY_NAME: Final = frozenset({"unsupported", "invalid_utf8", "loss_refused"})
"""Codes that reach an error through a variable."""


class Undocumented(Exception):
    """A code without a row, or a row without a code."""


def found_codes() -> set[str]:
    codes = {code for _, _, code in (*_CLASSES.values(), *_OUTCOMES.values()) if code} | {QUOTA, MODEL_DENIED}
    for module in modules().values():
        if module.inside.startswith(_ROOMS):
            codes.update(_codes_in(module))
    return codes


def _codes_in(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        maker = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        at = _MAKERS.get(maker)
        if at is None:
            continue
        given = [keyword.value for keyword in node.keywords if keyword.arg == "code"] or node.args[
            at : at + 1
        ]
        for value in given:
            for choice in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                if isinstance(choice, ast.Constant) and isinstance(choice.value, str) and choice.value:
                    yield choice.value


def page() -> list[str]:
    found = found_codes()
    problems = [f"{code}: used in the source, reported nowhere" for code in sorted(found - CODES.keys())]
    made_up = CODES.keys() - found - _BY_NAME
    problems += [f"{code}: reported, used nowhere" for code in sorted(made_up)]
    if problems:
        raise Undocumented("\n".join(problems))
    rows = [f"| `{code}` | {status} | {when} | {fix} |" for code, (status, when, fix) in CODES.items()]
    return [
        "# Error codes",
        "",
        *_INTRODUCTION,
        "",
        "| code | status | when | what to do |",
        "|---|---|---|---|",
        *rows,
    ]
