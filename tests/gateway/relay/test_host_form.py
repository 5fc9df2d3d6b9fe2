"""A request in a host's own form of a dialect, and its stream back from the host's framing."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from tests.tiers import rows
from wireglot.gateway.relay.host_form import in_form, unframing, unsent
from wireglot_core.providers.spec import Form, HeaderField
from wireglot_core.wire.json import decode

FORM = Form(
    without=("model", "stream"),
    from_headers={
        "anthropic-version": HeaderField("anthropic_version", values={"2023-06-01": "bedrock-2023-05-31"}),
        "anthropic-beta": HeaderField("anthropic_beta", listed=True, known=("ctx-*", "think-1")),
    },
)


@rows(
    ("headers", "sent", "body"),
    [
        ([("x", "1")], [("x", "1")], {"a": 1}),
        ([("anthropic-version", "2023-06-01")], [], {"a": 1, "anthropic_version": "bedrock-2023-05-31"}),
        ([("anthropic-version", "other")], [], {"a": 1, "anthropic_version": "other"}),
        (
            [("x", "1"), ("anthropic-beta", "ctx-1m, unknown,think-1")],
            [("x", "1")],
            {"a": 1, "anthropic_beta": ["ctx-1m", "think-1"]},
        ),
        ([("anthropic-beta", "unknown")], [], {"a": 1}),
    ],
)
def test_headers_become_fields_and_fields_of_the_path_are_left_out(
    headers: list[tuple[str, str]], sent: list[tuple[str, str]], body: dict[str, Any]
) -> None:
    found, written = in_form(FORM, headers, b'{"model":"m","a":1,"stream":true}')
    assert (found, decode(written)) == (sent, body)


def test_a_field_that_the_body_has_is_not_overwritten() -> None:
    headers, body = in_form(FORM, [("anthropic-version", "x")], b'{"anthropic_version":"mine"}')
    assert (headers, body) == ([], b'{"anthropic_version":"mine"}')


def test_a_host_without_a_form_gets_what_there_is() -> None:
    headers, body = [("anthropic-version", "x")], b'{"model":"m"}'
    assert in_form(None, headers, body) == (headers, body)


def target(form: Form | None, framing: Any = None) -> Any:
    spec = SimpleNamespace(forms={"anthropic": form} if form is not None else {})
    provider = SimpleNamespace(name="host", spec=spec)
    return SimpleNamespace(
        provider=provider,
        dialect="anthropic",
        upstream=SimpleNamespace(framing=None, framings={"aws": framing}),
    )


@rows(
    ("dialect", "form", "beta", "lost"),
    [
        ("anthropic", FORM, "ctx-1, unknown, other", ["unknown", "other"]),
        ("anthropic", FORM, "ctx-1", []),
        ("anthropic", FORM, "", []),
        ("anthropic", None, "unknown", []),
        ("gemini", FORM, "unknown", []),
    ],
)
def test_what_the_host_would_refuse_is_a_loss(
    dialect: str, form: Form | None, beta: str, lost: list[str]
) -> None:
    job = SimpleNamespace(dialect=dialect, head=SimpleNamespace(headers={"anthropic-beta": beta}))
    losses = unsent(cast(Any, job), target(form))
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        ("$", "unknown_field", "dropped") for _ in lost
    ]
    assert [loss.detail for loss in losses] == [f"anthropic-beta: host takes no {each}" for each in lost]


def test_only_an_answer_in_the_hosts_framing_is_unframed_and_is_a_stream_of_events_then() -> None:
    job: Any = SimpleNamespace(settings=SimpleNamespace(limits=SimpleNamespace(event=99)))
    assert unframing(job, target(None)) is None
    assert unframing(job, target(FORM)) is None
    sizes: list[int] = []
    unframe = unframing(job, target(Form(framing="aws"), sizes.append))
    assert unframe is not None
    framed: Any = SimpleNamespace(
        status=200, headers={"content-type": "application/vnd.amazon.eventstream", "x": "1"}
    )
    answer = unframe(framed)
    assert (answer.status, answer.headers) == (200, {"content-type": "text/event-stream", "x": "1"})
    assert sizes == [99]
    whole: Any = SimpleNamespace(status=400, headers={"content-type": "application/json"})
    assert unframe(whole) is whole


def test_an_unframed_stream_is_paused_resumed_and_aborted_at_its_source() -> None:
    job: Any = SimpleNamespace(settings=SimpleNamespace(limits=SimpleNamespace(event=99)))
    unframe = unframing(job, target(Form(framing="aws"), lambda size: None))
    assert unframe is not None
    called: list[str] = []
    framed: Any = SimpleNamespace(
        status=200,
        headers={"content-type": "application/vnd.amazon.eventstream"},
        **{name: partial(called.append, name) for name in ("pause", "resume", "abort")},
    )
    answer = unframe(framed)
    answer.pause()
    answer.resume()
    answer.abort()
    assert called == ["pause", "resume", "abort"]
