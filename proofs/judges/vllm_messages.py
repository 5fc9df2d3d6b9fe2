"""vLLM's tests of its Messages API: requests of Anthropic clients as Chat requests, and Chat answers back.

The test file runs as it is, with our translation in the place of vLLM's (vllm_standin.py).
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Final

from proofs.judges import environments, pytest_run
from proofs.judges.reasons import Reason, sort
from proofs.judges.results import Verdict

TESTS: Final = "tests/entrypoints/anthropic/test_anthropic_messages_conversion.py"
PACKAGES: Final = ("pytest", "pytest-asyncio", "fastapi", "httpx", "msgspec>=0.19")
NOT_RUN: Final = (
    Reason("TestVllmXargs|TestCacheSalt", "about fields that only vLLM's server has", is_run=False),
    Reason("TestDetectMerge", "about chat templates, which a gateway does not see", is_run=False),
    Reason("TestClientErrorResponses", "about the web framework of vLLM", is_run=False),
)
REASONS: Final = (
    Reason("TestConvertImageSourceToUrl", "a picture without its type or address: Anthropic rejects it"),
    Reason(
        "with_image|multiple_images|text_and_image",
        "a label says which result a picture that was moved belongs to",
    ),
    Reason(
        "text_blocks|header_unchanged|merged_with|list_content|multiple_thinking",
        "blocks are joined by an empty line",
    ),
    Reason("no_prompt_tokens_details", "cached tokens that were not reported are 0"),
    Reason(
        "'cache_read_input_tokens' (not )?in|cache_creation_input_tokens",
        "the numbers of the cache are in every usage, as Anthropic's are",
    ),
    Reason("header_stripped.*assert 3 == 2", "the model is asked to go on where the last turn is its own"),
    Reason("assert '' is None", "a turn of reasoning alone has an empty content"),
    Reason("one_text_block", "an empty answer has no content, as Anthropic's"),
)
_ROOT: Final = Path(__file__).parents[2]


def judge() -> Verdict:
    folder = environments.checkout("vllm", "vllm-project/vllm")
    interpreter = environments.python("vllm-messages", *PACKAGES)
    with tempfile.TemporaryDirectory(prefix="wireglot-judge-") as temporary:
        copy = Path(temporary, Path(TESTS).name)  # out of reach of vLLM's own conftest.py
        copy.write_bytes((folder / TESTS).read_bytes())
        found = pytest_run.run(
            interpreter,
            copy.parent,
            *("-p", "proofs.judges.vllm_standin", f"--rootdir={temporary}", str(copy)),
            environ={"PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'src'}"},
        )
    tests = pytest_run.problems(found)
    others = "|".join(reason.pattern for reason in NOT_RUN)
    outcome = sort((test for test in tests if not re.match(others, test[0])), REASONS)
    left_out = sort(((name, "not run") for name, _ in tests if re.match(others, name)), NOT_RUN)
    return Verdict(
        "vllm-messages",
        environments.commit(folder),
        "vLLM's tests of its Messages API, with our translation in the place of its own",
        *outcome.and_also(left_out),
    )
