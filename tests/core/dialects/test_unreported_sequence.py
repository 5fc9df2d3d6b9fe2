"""That a stop sequence ended an answer is reported in the answer, or it was reported with the request that it is not."""

import pytest

from tests.tiers import rows
from wireglot_core import translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import NAMES, DialectName, dialect, surface
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request

SEQUENCE = "END"
PAIRS = [(client, server) for client in NAMES for server in NAMES if client != server]


def asked(client: DialectName) -> dict[str, object]:
    request = Request("m", (Message("user", (Text("Count to three."),)),), max_tokens=64, stop=(SEQUENCE,))
    return dialect(client).render_request(request, Context()).value


def reported(client: DialectName, server: DialectName) -> tuple[Loss, ...]:
    losses = translate_request(asked(client), source=client, target=server).losses
    return tuple(loss for loss in losses if loss.feature in ("stop_sequence", "stop_sequences"))


def ended(name: DialectName) -> dict[str, object]:
    """An answer of this dialect that the sequence ended."""
    stopped = Response("r", "m", (Text("One, two."),), Stop("stop_sequence", sequence=SEQUENCE))
    return dialect(name).render_response(stopped, Context(), None).value


@rows(("client", "server"), PAIRS, ids=[f"{a} over {b}" for a, b in PAIRS])
def test_a_client_that_could_be_informed_is_informed_or_was_warned(
    client: DialectName, server: DialectName
) -> None:
    codec = dialect(client)
    in_its_own = codec.parse_response(ended(client), Context()).stop
    answer = translate_response(ended(server), source=server, target=client, request=asked(client)).value
    there = codec.parse_response(answer, Context()).stop
    assert in_its_own == there or reported(client, server), (in_its_own, there)


@pytest.mark.parametrize("server", ["openai-chat", "gemini"])
def test_the_loss_names_the_place_and_its_grade(server: DialectName) -> None:
    (loss,) = reported("anthropic", server)
    assert (loss.path, loss.feature, loss.action) == ("$.stop_sequences", "stop_sequence", "approximated")
    assert loss.grade == "degraded"


def test_nothing_is_reported_twice_where_the_sequences_are_not_sent_at_all() -> None:
    assert [loss.feature for loss in reported("anthropic", "openai-responses")] == ["stop_sequences"]


@rows("client", [name for name in NAMES if surface(name).family != "anthropic"])
def test_who_could_not_be_informed_anyway_loses_nothing(client: DialectName) -> None:
    assert all(
        loss.feature != "stop_sequence"
        for server in NAMES
        if server != client
        for loss in reported(client, server)
    )
