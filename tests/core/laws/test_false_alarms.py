"""Losses that would be no loss: what reaches its reader by another way is not called serious, and is named once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.laws.cases import ONE_TURN, every_dialect
from wireglot_core import translate_request
from wireglot_core.dialects.registry import DialectName, surface
from wireglot_core.ir.content import Foreign, Origin
from wireglot_core.ir.grades import GRADES
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall, WebSource
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import PartStart
from wireglot_core.providers.carried import with_minter

NOTE = "x-anthropic-billing-header: cc_version=2.1.326.566; cc_entrypoint=cli;"
CLAUDE: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": NOTE}, {"type": "text", "text": "You help."}],
    "messages": [{"role": "user", "content": "hi"}],
}
CHOICE: dict[str, Any] = {
    "contents": [{"role": "user", "parts": [{"text": "x"}]}],
    "generationConfig": {
        "responseMimeType": "text/x.enum",
        "responseSchema": {"type": "STRING", "enum": ["a", "b"]},
    },
}


def serious(losses: tuple[Loss, ...]) -> list[Loss]:
    return [loss for loss in losses if GRADES[loss.feature, loss.action][0] == "serious"]


@every_dialect
def test_the_note_of_claude_code_for_anthropics_accounts_is_no_serious_loss(name: DialectName) -> None:
    if surface(name).family == "anthropic" or name in ONE_TURN:
        return
    losses = translate_request(CLAUDE, source="anthropic", target=name, model="m").losses
    noted = [loss for loss in losses if loss.path == "$.system[0]"]
    assert [(loss.feature, loss.action) for loss in noted] == [("metadata", "dropped")]
    assert not serious(losses)


@every_dialect
def test_the_type_of_a_choice_is_no_unknown_field(name: DialectName) -> None:
    losses = translate_request(CHOICE, source="gemini", target=name, model="m").losses
    assert not [loss for loss in losses if loss.feature == "unknown_field"]


@every_dialect
@pytest.mark.parametrize("kind", ["web_search", "web_fetch", "mcp"])
def test_what_a_provider_ran_itself_is_carried_and_no_serious_loss(name: DialectName, kind: str) -> None:
    form = surface(name).client.hosted
    call = HostedCall(kind, "1", name="f", server="s")
    result = HostedResult(text="found", sources=(WebSource("https://a.example"),))
    if kind == "web_fetch":
        result = HostedResult(error="unavailable")
    events = [*form.announce(call, 0), *form.report(RanCall("1", call, result), 0)]
    parts = tuple(event.part for event in events if type(event) is PartStart and type(event.part) is Foreign)
    losses: list[Loss] = []
    with_minter(Response("r", "m", parts, Stop("end")), Origin(surface(name).family, "p", "m"), losses)
    assert {loss.action for loss in losses} <= {"emulated"}
    assert not serious(tuple(losses))
