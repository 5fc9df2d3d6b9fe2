"""The fidelity matrix is true; that the committed page says what it says is tested with the other pages."""

from typing import get_args

from proofs.fidelity.answer_probes import RESPONSES, server_part_probe, state_probes
from proofs.fidelity.matrix import DIRECTIONS, grade_request, grade_response, grade_state
from proofs.fidelity.request_probes import REQUESTS, hosted_probe, unknown_probe
from tests.tiers import rows
from wireglot_core.ir.loss import FEATURES, Feature

LIES = ("LOST", "FALSE ALARM")
directions = rows(("client", "upstream"), DIRECTIONS)


@directions
def test_no_request_feature_is_lost_in_silence(client, upstream):
    probes = [*REQUESTS, hosted_probe(client), unknown_probe(client)]
    grades = {probe.name: grade_request(probe, client, upstream) for probe in probes if probe is not None}
    assert [name for name, grade in grades.items() if grade in LIES] == []


@directions
def test_no_answer_feature_is_lost_in_silence(client, upstream):
    probes = [*RESPONSES, server_part_probe(upstream)]
    grades = {probe.name: grade_response(probe, client, upstream) for probe in probes if probe is not None}
    assert [name for name, grade in grades.items() if grade in LIES] == []


@directions
def test_reasoning_state_comes_back_to_its_minter(client, upstream):
    grades = {probe.name: grade_state(probe, client, upstream) for probe in state_probes(upstream)}
    if client == "ollama":  # messages without a place for it: a reported loss, and a gateway keeps it itself
        assert [(name, grade) for name, grade in grades.items() if grade in LIES] == []
        return
    assert [(name, grade) for name, grade in grades.items() if grade != "side channel"] == []


def test_every_feature_is_explained():
    assert set(FEATURES) == set(get_args(Feature))
