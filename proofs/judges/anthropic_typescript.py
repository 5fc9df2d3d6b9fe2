"""The test suite of Anthropic's SDK for TypeScript."""

from __future__ import annotations

from typing import Final

from proofs.judges import environments
from proofs.judges.javascript import Checkout, between, named
from proofs.judges.reasons import Reason, Sorted, sort
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

RESOURCES: Final = (
    "tests/api-resources/messages/messages.test.ts",
    "tests/api-resources/messages/batches.test.ts",
    "tests/api-resources/models.test.ts",
    "tests/api-resources/completions.test.ts",
    "tests/api-resources/beta/messages/messages.test.ts",
    "tests/api-resources/beta/messages/batches.test.ts",
    "tests/api-resources/beta/models.test.ts",
)
HELPERS: Final = (
    "tests/api-resources/MessageStream.test.ts",
    "tests/api-resources/BetaMessageStream.test.ts",
    "tests/lib/tools/BetaToolRunner.test.ts",
    "tests/resources/messages/parse.test.ts",
    "tests/resources/beta/messages/parse.test.ts",
)
LEFT_OUT: Final = (
    *(
        Case(f"tests/{name}.test.ts", "about the client alone: its answers ({} or { a: 1 }) are no messages")
        for name in ("lib/helper-client", "responses")
    ),
    Case(
        "tests/middleware.test.ts",
        "about the client's middleware: its answers are no messages, and it breaks connections",
    ),
)
"""Whole files that also send requests."""
REASONS: Final = (
    Reason("resource batches", "batches are not served by a gateway", is_run=False),
    Reason("resource completions", "text completions are not served by a gateway", is_run=False),
    Reason(
        "Expected constructor: APIConnectionError",
        "a connection that the upstream breaks is an answer with status 502",
    ),
    Reason("exposes request_id", "answers have the gateway's own request id"),
    Reason('"service_tier": null', "the service tier of a translated stream is reported at its end"),
    Reason(
        "container|context_management|stop_details|fallback|cache_creation", "Responses has no such field"
    ),
    Reason('"caller"', "a translated tool call has `caller`, which the API always sends"),
    Reason('"msg_resp_msg_', "the id of a translated answer is made from the upstream's"),
    Reason(
        "partial JSON|per-delta inputJson",
        "translated arguments are sent in other pieces, and repaired if they are not JSON",
    ),
)


def judge() -> Verdict:
    sdk = Checkout.of(
        "anthropic-sdk-typescript", "anthropics/anthropic-sdk-typescript", "jest", "@anthropic-ai/sdk"
    )
    with LiveGateway('[providers.demo]\n[models]\n"*" = "demo/demo"\n') as gateway:
        outcome = sort(named("demo", sdk.against(gateway.url, RESOURCES)), REASONS)
    for way, over in (("forwarded", ""), ("over openai-responses", "openai-responses")):
        with between("anthropic", over=over) as (url, port):
            outcome = outcome.and_also(sort(named(way, sdk.through(url, port, HELPERS)), REASONS))
    return Verdict(
        "anthropic-sdk-typescript",
        environments.commit(sdk.folder),
        "Anthropic's SDK for TypeScript: its API tests against the demo model; its stream helpers and tool "
        "runner with their recorded answers behind the gateway, forwarded and translated to Responses and "
        "back",
        *outcome.and_also(Sorted(not_run=LEFT_OUT)),
    )
