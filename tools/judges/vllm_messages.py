"""vLLM's tests of its Messages API: requests of Anthropic clients as Chat requests, and Chat answers back.

The test file runs as it is, with our translation in the place of vLLM's (vllm_standin.py).
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tools.judges import environments
from tools.judges.results import Case, Verdict

TESTS: Final = "tests/entrypoints/anthropic/test_anthropic_messages_conversion.py"
PACKAGES: Final = ("pytest", "pytest-asyncio", "fastapi", "httpx", "msgspec>=0.19")
NOT_RUN: Final = (
    ("TestVllmXargs|TestCacheSalt", "about fields that only vLLM's server has"),
    ("TestDetectMergeInlineSystem", "about chat templates, which a gateway does not see"),
    ("TestClientErrorResponses", "about the web framework of vLLM"),
)
REASONS: Final = (
    ("TestConvertImageSourceToUrl", "a picture without its type or address: Anthropic rejects it"),
    (
        "with_image|multiple_images|text_and_image",
        "a label says which result a picture that was moved belongs to",
    ),
    (
        "text_blocks|header_unchanged|merged_with|list_content|multiple_thinking",
        "blocks are joined by an empty line",
    ),
    ("TestThinkingBlock", "reasoning is sent as `reasoning_content`, which vLLM reads as `reasoning`"),
    ("no_prompt_tokens_details", "cached tokens that were not reported are 0"),
    ("TestStreamingCacheUsage", "usage is reported at the end of a translated stream"),
    ("billing_header_stripped", "the note is recognised in text blocks, not in a message that is a text"),
    ("one_text_block", "an empty answer has no content, as Anthropic's"),
)
_ROOT: Final = Path(__file__).parents[2]


def judge() -> Verdict:
    folder = environments.checkout("vllm", "vllm-project/vllm")
    interpreter = environments.python("vllm-messages", *PACKAGES)
    passed, failed, not_run = 0, list[Case](), list[Case]()
    for name, problem in _results(interpreter, folder / TESTS):
        if reason := _reason(name, NOT_RUN):
            not_run.append(Case(name, reason))
        elif problem:
            failed.append(Case(name, _reason(f"{name} {problem}", REASONS) or problem))
        else:
            passed += 1
    return Verdict(
        "vllm-messages",
        environments.commit(folder),
        "vLLM's tests of its Messages API, with our translation in the place of its own",
        passed,
        tuple(failed),
        tuple(not_run),
    )


def _results(interpreter: Path, tests: Path) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="wireglot-judge-") as temporary:
        copy = Path(temporary, tests.name)  # out of reach of vLLM's own conftest.py
        copy.write_bytes(tests.read_bytes())
        report = Path(temporary, "report.xml")
        command = [
            *(str(interpreter), "-m", "pytest", "-q", "-p", "tools.judges.vllm_standin"),
            *("-p", "no:cacheprovider", f"--junitxml={report}", f"--rootdir={temporary}", str(copy)),
        ]
        environ = {**os.environ, "PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'src'}"}
        done = subprocess.run(
            command, cwd=temporary, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        if not report.is_file():
            raise environments.Missing(f"{' '.join(command)}: {(done.stderr or done.stdout)[-2000:]}")
        return [
            (
                f"{str(case.get('classname')).rpartition('.')[2]}.{case.get('name')}",
                next((str(part.get("message")) for part in case if part.tag in ("failure", "error")), ""),
            )
            for case in ElementTree.parse(report).iter("testcase")
        ]


def _reason(text: str, patterns: tuple[tuple[str, str], ...]) -> str:
    return next((reason for pattern, reason in patterns if re.search(pattern, text, re.DOTALL)), "")
