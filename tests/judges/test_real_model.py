"""The judge's four clients, tried on the demo model: what they read is what the judge judges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from proofs.judges import real_model
from proofs.judges.real_model import DIALECTS, Question
from wireglot.testing.live_gateway import LiveGateway


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    with LiveGateway("[providers.demo]\n") as live:
        yield live.url


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_reads_texts_calls_counts_and_errors_whole_and_streamed(dialect: str, gateway: str) -> None:
    client = DIALECTS[dialect](gateway, "demo/demo")
    whole = client.ask(Question(text="Say hello.", most=200))
    *_, streamed = client.stream(Question(text="Say hello.", most=200))
    assert whole.stop == streamed.stop == "end"
    assert streamed.pieces > 1
    assert (streamed.text, streamed.input, streamed.output) == (whole.text, whole.input, whole.output)
    assert whole.input > 0
    assert whole.output > 0
    cut = client.ask(Question(text="Write two hundred words about rivers.", most=16))
    assert cut.stop == "length"
    called = client.ask(Question(tools=True, most=200))
    *_, streamed = client.stream(Question(tools=True, most=200))
    assert [name for name, _ in called.calls] == [name for name, _ in streamed.calls] == ["get_weather"]
    assert called.stop == streamed.stop == "call"
    assert client.ask(Question(tools=True, result=True, most=200)).text
    real_model.fits_a_schema(client, "")
    real_model.streams_what_fits_a_schema(client, "")
    real_model.refuses_a_wrong_type(client, "")
    assert any("demo" in name for name in client.models())
    client.leave()
