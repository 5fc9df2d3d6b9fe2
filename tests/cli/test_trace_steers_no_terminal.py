"""Whatever stands in a trace from elsewhere, nothing that `wireglot trace` prints of it steers a terminal."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from tests.cli.running import run
from tests.tiers import rows
from wireglot_core.traces.file import write_trace
from wireglot_core.traces.trace import (
    Attempt,
    Link,
    Row,
    Trace,
    TraceCounted,
    TracedLoss,
    TraceFrame,
    TraceMessage,
    TraceStep,
)

STEERING = "\x1b]0;title\x07\x1b[2J\u009b31m\u202e\r"
S = STEERING


def _trace(said: str) -> Trace:
    loss = TracedLoss(feature=S, action=S, grade=S, document="request", path=S, detail=S)
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": S}], S: 1}
    answer = {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": S,
        "content": [{"type": "tool_use", "id": "t", "name": S, "input": {said + S: S}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    attempt = Attempt(
        provider=S,
        model=S,
        dialect="openai-chat",
        request=TraceMessage(url=S, body=json.dumps({"messages": [{"role": "user", "content": S}], S: 1})),
        answer=TraceMessage(status=200, frames=[TraceFrame(1.0, f"data: {S}\n\n")]),
        error=S,
        links=[Link("/messages/0", "/messages/0"), Link(f"/{S}", f"/{S}")],
        summary=[TraceCounted(S, 1, 2)],
    )
    row = Row(
        id="req_a", at=1.0, state="done", client=S, dialect="anthropic", path=S, asked=S, provider=S,
        model=S, upstream_dialect=S, status=200, error=S, recorded=True,
    )  # fmt: skip
    return Trace(
        version=S,
        row=row,
        request=TraceMessage(url=S, body=json.dumps(body)),
        answer=TraceMessage(status=200, body=json.dumps(answer, ensure_ascii=False)),
        attempts=[attempt],
        losses=[loss],
        steps=[TraceStep(S, 0.0, 1.0)],
        notes=[S],
    )


@rows(
    "words", ["show ONE", "show ONE --full", "show ONE --json", "diff ONE", "diff ONE --full", "diff ONE TWO",
              "diff ONE TWO --json", "replay ONE --offline", "replay ONE --offline --json"]
)  # fmt: skip
def test_nothing_that_is_printed_steers_a_terminal(words: str, tmp_path: Path) -> None:
    named = {}
    for name in ("ONE", "TWO"):
        place = tmp_path / f"{name}.wgtrace.json"
        place.write_bytes(write_trace(_trace(name)))
        named[name] = str(place)
    done = run("trace", *(named.get(word, word) for word in words.split()))
    assert done.stdout
    for text in (done.stdout.decode(), done.stderr.decode()):
        assert not {each for each in text if unicodedata.category(each) in ("Cc", "Cf")} - {"\n"}
