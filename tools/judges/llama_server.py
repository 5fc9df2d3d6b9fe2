"""The tests of llama.cpp's server on Chat, Messages and Responses, against the demo model."""

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
from wireglot.testing.live_gateway import LiveGateway

FOLDER: Final = "tools/server/tests"
FILES: Final = (
    "unit/test_chat_completion.py",
    "unit/test_compat_anthropic.py",
    "unit/test_compat_oai_responses.py",
    "unit/test_tool_call.py",
)
PACKAGES: Final = ("pytest", "requests", "openai", "wget")
NOT_RUN: Final = (
    (r"huggingface\.co", "it downloads a picture"),
    (
        r"verbose|apply_chat_template|in_template|grammar|json_schema\[|timings|return_progress|telemetry|"
        r"mutual_exclusion|logit_bias|token_count|cached_tokens|context_size",
        "about endpoints, fields or settings that only llama.cpp's server has",
    ),
    (
        r"test_chat_completion\[|with_openai_library|_format0|logprobs |multiple_choices",
        "it expects the text, token counts, fingerprint, log probabilities or second answer of a model",
    ),
)
REASONS: Final = (
    (
        r"'' is None|non empty content",
        "the first piece of a Chat stream has an empty content, as OpenAI's has",
    ),
    (r"assert 200 == 500", "the demo model takes pictures; the model of the test does not"),
    (r"empty_messages", "a request without messages is rejected, as by Anthropic"),
    (
        r"_format[4-7]|messages7",
        "the gateway leaves it to the provider to reject it, and the demo model does not",
    ),
)
_ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 900


def judge() -> Verdict:
    folder = environments.checkout("llama.cpp", "ggml-org/llama.cpp")
    interpreter = environments.python("llama-server", *PACKAGES)
    passed, failed, not_run = 0, list[Case](), list[Case]()
    with LiveGateway('[providers.demo]\n[models]\n"*" = "demo/demo-openai-chat"\n') as gateway:
        for name, problem in _results(interpreter, folder / FOLDER, gateway.url):
            if problem and (reason := _reason(f"{name} {problem}", NOT_RUN)):
                not_run.append(Case(name, reason))
            elif problem:
                failed.append(Case(name, _reason(f"{name} {problem}", REASONS) or problem[:300]))
            else:
                passed += 1
    return Verdict(
        "llama-server",
        environments.commit(folder),
        "llama.cpp's tests of its server's Chat, Messages and Responses APIs, against the demo model",
        passed,
        tuple(failed),
        tuple(not_run),
    )


def _results(interpreter: Path, folder: Path, url: str) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="wireglot-judge-") as temporary:
        report = Path(temporary, "report.xml")
        command = [
            *(str(interpreter), "-m", "pytest", "-q", "-m", "not slow", "-p", "tools.judges.llama_standin"),
            *("-p", "no:cacheprovider", f"--junitxml={report}", *FILES),
        ]
        environ = {
            **os.environ,
            "PYTHONPATH": str(_ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LLAMA_TESTS": str(folder),
            "GATEWAY_URL": url,
        }
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if not report.is_file():
            raise environments.Missing(f"{' '.join(command)}: {(done.stderr or done.stdout)[-2000:]}")
        return [
            (
                f"{str(case.get('classname')).rpartition('.')[2]} {case.get('name')}",
                next((f"{part.tag}: {part.get('message')}" for part in case if part.tag != "system-out"), ""),
            )
            for case in ElementTree.parse(report).iter("testcase")
        ]


def _reason(text: str, patterns: tuple[tuple[str, str], ...]) -> str:
    return next((reason for pattern, reason in patterns if re.search(pattern, text, re.DOTALL)), "")
