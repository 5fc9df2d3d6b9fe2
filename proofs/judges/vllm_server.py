"""vLLM's tests of its server on Chat, Responses and Messages, on every dialect of an upstream."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from proofs.judges import environments, pytest_run
from proofs.judges.pytest_run import MODELS, Outcome
from proofs.judges.reasons import Reason
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

FILES: Final = (
    "tests/entrypoints/anthropic/test_messages.py",
    "tests/entrypoints/openai/chat_completion/test_chat.py",
    "tests/entrypoints/openai/chat_completion/test_completion_with_function_calling.py",
    "tests/entrypoints/openai/responses/test_basic.py",
    "tests/entrypoints/openai/responses/test_function_call.py",
    "tests/entrypoints/openai/responses/test_simple.py",
    "tests/entrypoints/openai/responses/test_stateful.py",
    "tests/entrypoints/openai/responses/test_structured_output.py",
    "tests/tool_use/test_chat_completions.py",
    "tests/tool_use/test_parallel_tool_calls.py",
    "tests/tool_use/test_tool_calls.py",
)
SUPPORT: Final = (
    "tests/entrypoints/conftest.py",
    "tests/entrypoints/openai/responses/conftest.py",
    "tests/tool_use/conftest.py",
    "tests/tool_use/utils.py",
)
PACKAGES: Final = ("pytest", "pytest-asyncio", "openai", "anthropic", "jsonschema", "regex", "requests")
_OWN_CLASSES: Final = "test_chat_completion_request_"
"""Tests of vLLM's class of a request; they send none."""
REASONS: Final = (
    Reason("Skipping config", "the same with the tool parser of another model", is_run=False),
    Reason(
        "prompt_logprobs|input_messages|/invocations|test_structured_outputs_|continuous_usage_stats"
        r"|attribute 'reasoning'|test_completion_with_function_calling::test_function_tool_use.*len\(\[\]\)",
        "about endpoints, fields or settings that only vLLM's server has",
        is_run=False,
    ),
    Reason(
        "Hello! I am demo|'demo' == 'science fair'|JSONDecodeError|{'result': 1}|CompletionUsa"
        "|test_tool_calls.*assert 2 == 1|streaming_expected_arguments|'tool_calls' == 'length'"
        "|'function_call' != 'function_call'",
        "it expects the words, calls or token counts of a model; the demo model is a script",
        is_run=False,
    ),
    Reason(
        "DID NOT RAISE", "the gateway leaves it to the provider to reject it, and the demo model does not"
    ),
    Reason("logprobs", "the demo model has no log probabilities", is_run=False),
    Reason("test_chat_completion_n_", "the demo model gives one answer", is_run=False),
    Reason(
        "'message' == 'reasoning'|test_function_call::.*assert None is not None",
        "the demo model reasons only if the request asks for it",
        is_run=False,
    ),
    Reason(
        "test_background_cancel", "the demo model has answered before the request is cancelled", is_run=False
    ),
    Reason("Regex pattern did not match", "about the wording of an error", is_run=False),
    Reason("unexpected keyword argument 'temperature'", "the newest SDK has no such parameter", is_run=False),
    Reason(
        "test_chat_streaming", "the end of a Chat stream is a piece of its own without content, as OpenAI's"
    ),
    Reason("my-custom-role|role: expected one of", "an unknown role is rejected, as by OpenAI"),
    Reason(
        "test_named_tool_use.*NoneType", "a message with nothing but calls has no content (null), as OpenAI's"
    ),
    Reason(
        "test_anthropic_streaming.*assert 1 == 0",
        "the demo model's stream begins with one token of output, as Anthropic's does",
    ),
    Reason("parallel_tool_calls_false", "Gemini cannot be held to one call; a reported loss"),
    Reason(
        "test_streaming_types.*Stack mismatch for response.output_text.done",
        "a Gemini signature that comes with an empty text is a part without a delta, so that it can return "
        "to its place",
    ),
)
_ROOT: Final = Path(__file__).parents[2]


def judge() -> Verdict:
    folder = environments.checkout("vllm", "vllm-project/vllm")
    interpreter = environments.python("vllm-server", *PACKAGES)
    found = list[Outcome]()
    with tempfile.TemporaryDirectory(prefix="wireglot-judge-") as temporary:
        _copy(folder, Path(temporary))
        for model in MODELS:
            with LiveGateway(f'[providers.demo]\n[models]\n"*" = "demo/{model}"\n') as gateway:
                found += pytest_run.run(
                    interpreter,
                    Path(temporary),
                    *("-p", "proofs.judges.vllm_server_standin", f"--rootdir={temporary}"),
                    *("--models=hermes", "-k", f"not {_OWN_CLASSES}", *FILES),
                    environ={
                        "PYTHONPATH": f"{temporary}{os.pathsep}{_ROOT}",
                        "GATEWAY_URL": gateway.url,
                    },
                    label=f"{model} ",
                )
    own = sum((folder / path).read_text(encoding="utf-8").count(f"def {_OWN_CLASSES}") for path in FILES)
    return pytest_run.verdict(
        "vllm-server",
        environments.commit(folder),
        "vLLM's tests of its server's Chat, Responses and Messages APIs and of tool calls, on four models",
        found,
        REASONS,
        (Case(f"{_OWN_CLASSES}*", pytest_run.OFFLINE, own),),
    )


def _copy(folder: Path, into: Path) -> None:
    """The tests alone, out of reach of vLLM's other conftest.py files."""
    for path in (*FILES, *SUPPORT):
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_bytes((folder / path).read_bytes())
    for package in {parent for path in FILES for parent in Path(path).parents} - {Path()}:
        (into / package / "__init__.py").touch()
    (into / "tests" / "utils.py").write_text("from proofs.judges.vllm_server_standin import *\n")
