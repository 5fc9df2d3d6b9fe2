"""Safety checks by gateways and agents: whether a tool call may run.

The demo model answers them by one simple rule, which is for trying things out and is no protection. It blocks
commands that delete a root, a folder in it, a home or everything here (`rm -rf /`), that run a download in a
shell (`curl ... | sh`, `bash <(curl ...)`), and that write to a disk (`mkfs`, `dd of=/dev/...`). Everything
else may run.
"""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot.demo.conversation import DemoTurn
from wireglot_core.ir.content import Text
from wireglot_core.ir.request import Request, Tool
from wireglot_core.wire.json import BadJson, decode, encode_text

_LOADS: Final = r"\b(?:curl|wget)\b"
_RUNS: Final = r"\b(?:(?:ba|z|da)?sh|eval|source)\b"
_DANGEROUS: Final = re.compile(
    rf"{_LOADS}(?:(?!{_LOADS})[^|\n])*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
    rf"|(?:{_RUNS}|(?:^|[\s;&|\"'])\.\s)(?:(?!{_RUNS}|[\s\"']\.\s)[^;&|\n])*(?:[<$]\(|`)\s*(?:curl|wget)\b"
    r"|\bmkfs\b|\bdd\b(?:(?!\bdd\b)[^|;\n])*\bof=/dev/"
)
"""From the last word that begins it: a search from each of many would read the rest of the line each time."""
_REMOVAL: Final = re.compile(r'\brm\s((?:(?!\\n|(?<!\\)"\s*[,}])[^;&|\n])*)')
"""The words after an `rm`, up to the end of the command, or of the JSON string around it."""
_RECURSIVE: Final = re.compile(r"-[^\WrR]*[rR]\w*|--recursive")
_EVERYTHING: Final = re.compile(r"(?:~|\$\{?HOME\}?|\.\.?|/[\w.-]+)?/*\**")
_REASON: Final = "the demo model blocks commands that delete everything or run a download"


def is_dangerous(action: str) -> bool:
    return _DANGEROUS.search(action) is not None or any(
        any(map(_RECURSIVE.fullmatch, words)) and any(map(_EVERYTHING.fullmatch, words))
        for removal in _REMOVAL.finditer(action)
        if (words := [word for each in removal[1].split() if (word := each.strip("\"'\\`)}"))])
    )


def safety_answer(request: Request, turn: DemoTurn) -> str | None:
    """The answer to a safety check; None: the request is not one."""
    rules = "\n".join(
        part.text
        for message in request.messages
        if message.role == "system"
        for part in message.content
        if isinstance(part, Text)
    )
    asked = "".join(turn.said)
    pending = _pending(request, asked)
    if pending is not None:
        return pending
    if '{"verdict": "allow"}' in rules and asked.startswith("{"):
        return _judge(asked)
    if "<transcript>" in asked and ("<severity>" in rules or "<block>" in rules):
        return _transcript(rules, asked)
    return None


# The gateway's own check (`gateway/relay/judge.py`): one JSON document about one call.


def _judge(asked: str) -> str:
    try:
        call: Any = decode(asked).get("call")
    except (BadJson, AttributeError):
        call = None
    if type(call) is not dict:
        return '{"verdict": "block", "reason": "there is no call to judge"}'
    if any(map(is_dangerous, _texts(call.get("arguments")))):
        return f'{{"verdict": "block", "reason": "{_REASON}"}}'
    return '{"verdict": "allow"}'


def _texts(value: Any) -> list[str]:
    """Every text in a value. A list of texts may be the words of one command."""
    match value:
        case str():
            return [value]
        case dict():
            return [text for item in value.values() for text in _texts(item)]
        case list():
            texts = [text for item in value for text in _texts(item)]
            return [" ".join(texts), *texts]
    return []


# The check of Claude Code's (2.1.326) auto mode: a transcript, whose last line is judged.


def _transcript(rules: str, asked: str) -> str:
    transcript = asked.partition("<transcript>")[2].partition("</transcript>")[0]
    action = (transcript.strip().splitlines() or [""])[-1]
    blocked = is_dangerous(action)
    if "<severity>" in rules:
        dangerous = "<severity>95</severity><category>Dangerous Command</category>"
        return dangerous if blocked else "<severity>5</severity>"
    return f"<block>yes</block><reason>{_REASON}</reason>" if blocked else "<block>no</block>"


# The check of Qwen Code's (0.24) auto mode: a tool, or an output format, with fields for the verdict.

_VERDICT_FIELD: Final = "shouldBlock"
_PENDING: Final = "## Pending tool call to classify"


def _pending(request: Request, asked: str) -> str | None:
    schemas = [tool.schema for tool in request.tools if isinstance(tool, Tool)]
    if request.output is not None:
        schemas.append(request.output.schema)
    named = [schema.get("properties") for schema in schemas if schema is not None]
    fields = next((each for each in named if type(each) is dict and _VERDICT_FIELD in each), None)
    if fields is None or _PENDING not in asked:
        return None
    blocked = is_dangerous(asked.rpartition(_PENDING)[2])
    answer = {"thinking": "", _VERDICT_FIELD: blocked, "reason": _REASON if blocked else ""}
    return encode_text({name: value for name, value in answer.items() if name in fields})
