"""The tests of llama.cpp's server on Chat, Messages and Responses, against the demo model."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from proofs.judges import environments, pytest_run
from proofs.judges.reasons import Reason, sort
from proofs.judges.results import Verdict
from wireglot.testing.live_gateway import LiveGateway

FOLDER: Final = "tools/server/tests"
FILES: Final = (
    "unit/test_chat_completion.py",
    "unit/test_compat_anthropic.py",
    "unit/test_compat_oai_responses.py",
    "unit/test_tool_call.py",
)
PACKAGES: Final = ("pytest", "requests", "openai", "wget")
REASONS: Final = (
    Reason(r"huggingface\.co", "it downloads a picture", is_run=False),
    Reason(
        r"verbose|apply_chat_template|in_template|grammar|json_schema\[|timings|return_progress|telemetry|"
        r"mutual_exclusion|logit_bias|token_count|cached_tokens|context_size",
        "about endpoints, fields or settings that only llama.cpp's server has",
        is_run=False,
    ),
    Reason(
        r"test_chat_completion\[|with_openai_library|_format0|logprobs:|multiple_choices",
        "it expects the text, token counts, fingerprint, log probabilities or second answer of a model",
        is_run=False,
    ),
    Reason(
        r"'' is None|non empty content",
        "the first piece of a Chat stream has an empty content, as OpenAI's has",
    ),
    Reason(
        r"assert 200 == 500", "the demo model takes pictures; the model of the test does not", is_run=False
    ),
    Reason(r"empty_messages", "a request without messages is rejected, as by Anthropic"),
    Reason(
        r"_format[4-7]|messages7",
        "the gateway leaves it to the provider to reject it, and the demo model does not",
    ),
)
_ROOT: Final = Path(__file__).parents[2]


def judge() -> Verdict:
    folder = environments.checkout("llama.cpp", "ggml-org/llama.cpp")
    interpreter = environments.python("llama-server", *PACKAGES)
    with LiveGateway('[providers.demo]\n[models]\n"*" = "demo/demo-openai-chat"\n') as gateway:
        tests = pytest_run.run(
            interpreter,
            folder / FOLDER,
            *("-m", "not slow", "-p", "proofs.judges.llama_standin", *FILES),
            environ={
                "PYTHONPATH": str(_ROOT),
                "LLAMA_TESTS": str(folder / FOLDER),
                "GATEWAY_URL": gateway.url,
            },
        )
    return Verdict(
        "llama-server",
        environments.commit(folder),
        "llama.cpp's tests of its server's Chat, Messages and Responses APIs, against the demo model",
        *sort(pytest_run.problems(tests), REASONS),
    )
