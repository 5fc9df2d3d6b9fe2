"""`History.request` checks its settings before anything is rendered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.laws.cases import every_dialect
from wireglot import ClientFault
from wireglot.history import History
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName
from wireglot_core.ir.request import Sampling, Thinking


def asked() -> History:
    history = History()
    history.user("hi")
    return history


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"thinking": "high"}, r"^\$\.thinking: expected Thinking, got a string"),
        ({"max_tokens": "5"}, r"^\$\.max_tokens: expected int \| None, got a string"),
        ({"stop": "END"}, r"^\$\.stop: expected tuple\[str, \.\.\.\], got a string"),
        ({"sampling": 0.5}, r"^\$\.sampling: expected Sampling, got a number"),
        ({"metadata": {"a": 1}}, r"^\$\.metadata: expected dict\[str, str\], got an object"),
        ({"tool_choice": "any"}, r"^\$\.tool_choice: expected ToolChoice"),
        ({"stream": "yes"}, r"^\$\.stream: expected bool \| None, got a string"),
    ],
)
@every_dialect
def test_a_setting_of_another_type_is_named(name: DialectName, setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ClientFault, match=message):
        asked().request(name, model="m", **setting)


@every_dialect
def test_lists_and_objects_stand_for_their_types(name: DialectName) -> None:
    setting: dict[str, Any] = {"thinking": {"effort": "high"}, "sampling": {"temperature": 0.5}}
    stated = asked().request(
        name, model="m", thinking=Thinking(effort="high"), sampling=Sampling(temperature=0.5)
    )
    assert asked().request(name, model="m", **setting).value == stated.value


def test_a_history_names_the_project_as_well() -> None:
    history = History()
    history.user("hi")
    sent = history.request("code-assist", model="m", context=Context(project="my-project")).value
    assert sent["project"] == "my-project"
