"""The header by which a client refuses emulations."""

from __future__ import annotations

from tests.gateway.faults.faults_kit import Client, ask, every_dialect, model_at, reported
from tests.gateway.faults.faults_stages import EVERY, Stage, stage_behind

stage = stage_behind(every_dialect)


@EVERY
def test_another_value_than_on_and_off_is_refused_in_the_clients_dialect(
    stage: Stage, client: Client
) -> None:
    gateway, upstream = stage
    upstream.reset()
    answered = ask(gateway, client, model_at("openai-chat"), headers={"x-wireglot-emulate": "maybe"})
    assert answered.status == 400
    assert "x-wireglot-emulate: expected on or off" in reported(client, answered).message
    assert not upstream.requests


@EVERY
def test_on_and_off_are_taken_in_any_case_and_go_to_no_provider(stage: Stage, client: Client) -> None:
    gateway, upstream = stage
    upstream.reset()
    for value in ("on", "off", " OFF "):
        answered = ask(gateway, client, model_at("openai-chat"), headers={"x-wireglot-emulate": value})
        assert answered.status == 200
    assert len(upstream.requests) == 3
    assert not any("x-wireglot-emulate" in request.headers for request in upstream.requests)
