"""The test suite of OpenAI's SDK for JavaScript."""

from __future__ import annotations

from typing import Final

from proofs.judges import environments
from proofs.judges.javascript import Checkout, between, named
from proofs.judges.reasons import Reason, Sorted, sort
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

RESOURCES: Final = (
    "tests/api-resources/chat/completions/completions.test.ts",
    "tests/api-resources/chat/completions/messages.test.ts",
    "tests/api-resources/completions.test.ts",
    "tests/api-resources/conversations/conversations.test.ts",
    "tests/api-resources/conversations/items.test.ts",
    "tests/api-resources/models.test.ts",
    "tests/api-resources/responses/responses.test.ts",
    "tests/api-resources/responses/input-items.test.ts",
    "tests/api-resources/responses/input-tokens.test.ts",
    "tests/api-resources/beta/responses/responses.test.ts",
    "tests/api-resources/beta/responses/input-items.test.ts",
    "tests/api-resources/beta/responses/input-tokens.test.ts",
)
FORWARDED: Final = (
    "tests/lib/ChatCompletionStream.test.ts",
    "tests/lib/ChatCompletionRunFunctions.test.ts",
    "tests/lib/ResponseStream.test.ts",
    "tests/lib/chat-completion-stream-finalization-privacy.test.ts",
    "tests/lib/chat-completion-stream-partial-json-bounds.test.ts",
    "tests/lib/chat-completion-stream-prototype-safety.test.ts",
    "tests/lib/chat-structured-response-format-serialization-security.test.ts",
    "tests/lib/helper-method-headers.test.ts",
    "tests/lib/parser.test.ts",
    "tests/lib/response-stream-unsupported-event-privacy.test.ts",
    "tests/lib/responses-output-text.test.ts",
    "tests/lib/streaming-named-error-events.test.ts",
    "tests/lib/structured-output-parse-privacy.test.ts",
    "tests/lib/structured-text-format-discriminator-security.test.ts",
)
TRANSLATED: Final = ("tests/lib/ChatCompletionStream.test.ts", "tests/lib/parser.test.ts")
_NO_ANSWERS: Final = "about the client alone: its answers and streams are none of the API"
LEFT_OUT: Final = (
    Case("tests/lib/streaming-sentinel-integrity.test.ts", _NO_ANSWERS),
    Case("tests/responses.test.ts", _NO_ANSWERS),
    Case(
        "over anthropic: tests/lib/ChatCompletionRunFunctions.test.ts",
        "compares whole messages and ids, which are others after a translation to Messages and back",
    ),
    *(
        Case(
            f"over anthropic: tests/lib/{name}.test.ts",
            "compares the schema that arrives with its name and `strict`, which Messages does not have",
        )
        for name in (
            "chat-structured-response-format-serialization-security",
            "structured-text-format-discriminator-security",
        )
    ),
)
"""Whole files that also send requests."""
REASONS: Final = (
    Reason(
        "there is no endpoint|supports POST|plain completions are not served",
        "stored chat completions, text completions and fine-tuned models are not served by a gateway",
        is_run=False,
    ),
    Reason(
        "expected the name of a model|expected at least one item",
        "a request without model or input, which only a mock server answers",
        is_run=False,
    ),
    Reason("network errors", "a connection that the upstream breaks is an answer with status 502"),
    Reason(
        "SSE error",
        "an error before the first output is an answer with an error's status, which the SDK tries again",
    ),
    Reason(
        "stream: false flow with abort",
        "the test ends the request as soon as its upstream has answered, before the gateway has",
    ),
    Reason(
        "named SSE provider errors",
        "an error or an unreadable event before the first output is an answer with an error's status",
    ),
    Reason("model returned an em", "an answer without content is an error"),
    Reason(
        "prototype safety|unsupported Responses event",
        "a stream without content, or of unknown events alone, is an error, which the SDK tries again",
    ),
    Reason("for a failed response", "a failed response is an answer with an error's status"),
    Reason("reasoning works", "reasoning that was translated to Messages and back is a summary"),
    Reason("custom tools", "Messages has no custom tools: they are sent as functions"),
    Reason(
        "zod merged schemas",
        "fails without the gateway, too: the newest zod writes another schema",
        is_run=False,
    ),
    Reason(
        "Snapshot `.parse.*mismatched",
        "a translated message has `annotations`, which the API sends and the test's snapshot lacks",
    ),
    Reason("logprobs", "Messages has no log probabilities and no refusals apart from text"),
)


def judge() -> Verdict:
    sdk = Checkout.of("openai-node", "openai/openai-node", "vitest", "openai")
    with LiveGateway('[providers.demo]\n[models]\n"*" = "demo/demo"\n') as gateway:
        outcome = sort(
            named("demo", sdk._replace(runner="jest").against(f"{gateway.url}/v1", RESOURCES)), REASONS
        )
    for way, dialects, over, files in (
        ("forwarded", ("openai-chat", "openai-responses"), "", FORWARDED),
        ("over anthropic", ("openai-chat",), "anthropic", TRANSLATED),
        ("over anthropic", ("openai-responses",), "anthropic", ("tests/lib/ResponseStream.test.ts",)),
    ):
        with between(*dialects, over=over) as (url, port):
            outcome = outcome.and_also(sort(named(way, sdk.through(url, port, files)), REASONS))
    return Verdict(
        "openai-node",
        environments.commit(sdk.folder),
        "OpenAI's SDK for JavaScript: its API tests against the demo model; its stream helpers, parsers and "
        "tool runner with their recorded answers behind the gateway, forwarded and translated to Messages "
        "and back",
        *outcome.and_also(Sorted(not_run=LEFT_OUT)),
    )
