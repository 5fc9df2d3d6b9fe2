"""The numbers, as Prometheus itself reads them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from wireglot.gateway.observe.metrics import MAX_KEYS, MAX_MODELS, OTHER, Counter, Metrics
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage


def done(**fields) -> ExchangeRecord:
    usual = {"id": "r", "started": 10.0, "finished": 10.3, "first_byte": 10.02, "dialect": "anthropic",
             "operation": "generate", "provider": "kimi", "upstream_model": "kimi-k3", "status": 200,
             "attempts": 1}  # fmt: skip
    return ExchangeRecord(**{**usual, **fields})


def read(text: bytes) -> dict[tuple[str, frozenset], float]:
    """Every sample of a text, by its name and labels."""
    samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples
            samples[key] = sample.value
    return samples


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return read(metrics.render())[f"wireglot_{name}", frozenset(labels.items())]


def test_a_request_is_counted_by_where_it_went_and_how_it_ended():
    metrics = Metrics()
    for _ in range(3):
        metrics.in_flight.add()
    metrics.in_flight.add(by=-1)
    metrics.finish(done())
    metrics.finish(done(status=529, outcome="error"))
    labels = {"dialect": "anthropic", "provider": "kimi"}
    assert value(metrics, "requests_total", **labels, model="kimi-k3", status="200", outcome="ok") == 1
    assert value(metrics, "requests_total", **labels, model="kimi-k3", status="529", outcome="error") == 1
    assert value(metrics, "requests_in_flight") == 2


def test_tokens_are_counted_by_kind_without_overlap():
    metrics = Metrics()
    usage = Usage(
        input=10, tool_prompt=1, cache_read=5, cache_write=3, cache_write_long=4, output=20, reasoning=7
    )
    for source in ("provider", "estimated"):
        metrics.finish(done(usage=usage, usage_source=source))
    expected = {"input": 22, "output": 40, "reasoning": 14, "cache_read": 10, "cache_write": 14}
    for kind, count in expected.items():
        assert value(metrics, "tokens_total", provider="kimi", model="kimi-k3", kind=kind) == count
    assert value(metrics, "usage_total", provider="kimi", source="estimated") == 1


def test_times_fall_into_buckets():
    metrics = Metrics()
    metrics.finish(done(finished=10.3))
    metrics.finish(done(finished=10.004))
    metrics.finish(done(finished=5000.0, first_byte=None))
    labels = {"dialect": "anthropic", "provider": "kimi"}
    bucket = {
        le: value(metrics, "request_seconds_bucket", **labels, le=le)
        for le in ("0.005", "0.25", "0.5", "600", "+Inf")
    }
    assert bucket == {"0.005": 1, "0.25": 1, "0.5": 2, "600": 2, "+Inf": 3}
    assert value(metrics, "request_seconds_count", **labels) == 3
    assert math.isclose(value(metrics, "request_seconds_sum", **labels), 4990.304)
    assert value(metrics, "first_byte_seconds_count", **labels) == 2


def test_a_bound_belongs_to_its_own_bucket():
    metrics = Metrics()
    metrics.finish(done(started=0.0, finished=0.5))
    labels = {"dialect": "anthropic", "provider": "kimi"}
    assert value(metrics, "request_seconds_bucket", **labels, le="0.5") == 1
    assert value(metrics, "request_seconds_bucket", **labels, le="0.25") == 0


def test_retries_fallbacks_and_losses_are_counted():
    metrics = Metrics()
    losses = [Loss("$.a", "tool.name", "approximated"), Loss("$.b", "tool.name", "approximated")]
    metrics.finish(done(attempts=4, fallbacks=["openai/gpt-5"], losses=losses))
    metrics.upstream_errors.add(("openai", "overloaded"))
    assert value(metrics, "retries_total", provider="kimi") == 2
    assert value(metrics, "fallbacks_total", provider="openai") == 1
    grade = losses[0].grade
    assert value(metrics, "losses_total", feature="tool.name", grade=grade) == 1
    assert value(metrics, "upstream_errors_total", provider="openai", kind="overloaded") == 1


def test_a_request_is_counted_by_its_key_and_with_its_cost():
    """[M7] Who used what, and what it cost."""
    metrics = Metrics()
    metrics.count_in("USD")
    usage = Usage(input=10, cache_read=5, output=20)
    metrics.finish(done(caller="alice", usage=usage, usage_source="provider", cost=1_250_000))
    metrics.finish(done(caller="alice", usage=usage, usage_source="provider", cost=250_000))
    metrics.finish(done(caller="bob", usage=usage, usage_source="provider", upstream_model="new"))
    metrics.finish(done(caller="bob", status=429, outcome="error"))
    assert value(metrics, "cost_total", provider="kimi", model="kimi-k3", currency="USD") == 1.5
    assert value(metrics, "unpriced_total", provider="kimi", model="new") == 1
    assert value(metrics, "key_cost_total", key="alice", currency="USD") == 1.5
    assert value(metrics, "key_cost_total", key="bob", currency="USD") == 0
    assert value(metrics, "key_requests_total", key="alice", outcome="ok") == 2
    assert value(metrics, "key_requests_total", key="bob", outcome="error") == 1
    assert value(metrics, "key_tokens_total", key="alice", kind="output") == 40
    assert value(metrics, "key_tokens_total", key="bob", kind="cache_read") == 5


def test_who_has_no_key_yet_is_no_key():
    metrics = Metrics()
    metrics.finish(done(caller="", status=401, outcome="error"))
    assert not any(name.startswith("wireglot_key_") for name, _ in read(metrics.render()))


def test_another_currency_is_counted_apart():
    metrics = Metrics()
    for currency in ("USD", "EUR", "USD"):
        metrics.count_in(currency)
        metrics.finish(done(caller="a", usage=Usage(input=1), usage_source="provider", cost=1_000_000))
    for currency, cost in (("USD", 2), ("EUR", 1)):
        assert value(metrics, "cost_total", provider="kimi", model="kimi-k3", currency=currency) == cost
        assert value(metrics, "key_cost_total", key="a", currency=currency) == cost


def test_of_many_keys_most_are_counted_together():
    metrics = Metrics()
    metrics.count_in("USD")
    for number in range(MAX_KEYS + 50):
        usage = Usage(input=1)
        metrics.finish(done(caller=f"k{number}", usage=usage, usage_source="provider", cost=1_000_000))
    keys = [
        dict(labels)["key"] for name, labels in read(metrics.render()) if name == "wireglot_key_cost_total"
    ]
    assert len(keys) == MAX_KEYS + 1
    assert value(metrics, "key_cost_total", key=OTHER, currency="USD") == 50
    assert len(metrics._cells) == MAX_KEYS, "of those that are counted together nothing is held"


def test_a_client_cannot_make_labels_by_asking_for_models():
    metrics = Metrics(["kimi-k3"])
    for number in range(1000):
        metrics.finish(done(upstream_model=f"junk-{number}", status=404, outcome="error"))
    metrics.finish(done(status=500, outcome="error"))
    models = {
        dict(labels).get("model")
        for name, labels in read(metrics.render())
        if name == "wireglot_requests_total"
    }
    assert models == {OTHER, "kimi-k3"}


def test_a_model_has_its_label_from_its_first_answer_on_also_where_it_fails():
    metrics = Metrics()
    for status, outcome in ((404, "error"), (200, "ok"), (404, "error")):
        metrics.finish(done(upstream_model="new", status=status, outcome=outcome))
    of = {"dialect": "anthropic", "provider": "kimi", "outcome": "error", "status": "404"}
    assert value(metrics, "requests_total", model=OTHER, **of) == 1
    assert value(metrics, "requests_total", model="new", **of) == 1


def test_not_even_by_getting_answers():
    metrics = Metrics(["known"])
    for number in range(MAX_MODELS + 50):
        metrics.finish(done(upstream_model=f"junk-{number}"))
    metrics.finish(done(upstream_model="known"))
    models = {
        dict(labels).get("model")
        for name, labels in read(metrics.render())
        if name == "wireglot_requests_total"
    }
    assert len(models) == MAX_MODELS + 2
    assert {OTHER, "known", "junk-0"} <= models


def test_a_refused_request_has_no_model():
    metrics = Metrics()
    metrics.finish(ExchangeRecord("r", 1.0, finished=1.0, status=401, outcome="error"))
    assert (
        value(metrics, "requests_total", dialect="", provider="", model="", status="401", outcome="error")
        == 1
    )


def test_a_model_name_is_cleaned_before_it_becomes_a_label():
    metrics = Metrics(clean=lambda name: name.replace("secret", "[redacted]"))
    metrics.finish(done(upstream_model="secret-model"))
    assert b"secret" not in metrics.render()


@given(st.text())
def test_any_label_survives_the_format(text):
    counter = Counter("wireglot_x_total", "About.", ("label",))
    counter.add((text,), 2.5)
    out: list[str] = []
    counter.render(out)
    rendered = "".join(out).encode("utf-8", "replace")
    # What Python takes for an end of line inside a label, the parser of prometheus_client does too; the
    # format itself knows only \n.
    if len(rendered.decode().splitlines()) == 3:
        (number,) = read(rendered).values()
        assert number == 2.5
    assert rendered.count(b"\n") == 3


def test_numbers_kept_elsewhere_are_read_when_asked():
    metrics = Metrics(version="1.2")
    states: dict[tuple[str, ...], float] = {("kimi",): 0.0}
    metrics.read("breaker_state", "Of a provider.", lambda: states, ("provider",))
    metrics.read("connections", "Open.", lambda: {(): 7})
    states["kimi",] = 2.0
    assert value(metrics, "breaker_state", provider="kimi") == 2
    assert value(metrics, "connections") == 7
    assert value(metrics, "build_info", version="1.2") == 1


def test_a_reading_that_fails_hides_no_other():
    metrics = Metrics()

    def fail() -> dict:
        raise RuntimeError("gone")

    metrics.read("broken", "Fails.", fail)
    metrics.read("works", "Works.", lambda: {(): 1})
    assert value(metrics, "works") == 1
    assert value(metrics, "sink_failures_total", sink="metrics") == 1


def test_counters_without_labels_begin_at_zero():
    assert value(Metrics(), "config_reload_failures_total") == 0


@pytest.mark.parametrize("kind", ["counter", "gauge", "histogram"])
def test_every_metric_says_what_it_is(kind):
    text = Metrics().render().decode()
    assert f" {kind}\n" in text
    assert text.count("# HELP wireglot_") == text.count("# TYPE wireglot_") == text.count("# HELP ")
