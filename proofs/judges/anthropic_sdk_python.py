"""anthropic-sdk-python's own tests of Messages and Models, on every dialect of an upstream."""

from __future__ import annotations

from typing import Final

from proofs.judges import environments, pytest_run
from proofs.judges.pytest_run import MODELS
from proofs.judges.reasons import Reason
from proofs.judges.results import Verdict
from wireglot.testing.live_gateway import LiveGateway

PACKAGES: Final = (
    "anthropic[aiohttp,webhooks,mcp,bedrock,vertex]",
    *("pytest", "pytest-asyncio", "pytest-xdist", "inline-snapshot", "rich", "time-machine", "dirty-equals"),
    *("importlib-metadata", "hypothesis", "griffe", "http-snapshot[httpx]", "packaging", "opentelemetry-sdk"),
    *("httpx2", "respx", "boto3"),
)
FOLDER: Final = "tests/api_resources/"
SERVED: Final = ("test_messages.py", "test_models.py", "beta/test_messages.py", "beta/test_models.py")
REASONS: Final = (
    Reason(
        "thread is not supported|ThreadUnsupportedRequestError",
        "opens a thread, whose turns only Anthropic keeps; refused with the error that lets clients send all",
    ),
    Reason(
        "expected the id of a listed model",
        "pages from an id that no model has, which only a mock server lists",
        is_run=False,
    ),
)


def judge() -> Verdict:
    interpreter = environments.python("anthropic-sdk-python", *PACKAGES)
    folder = pytest_run.source(interpreter, "anthropic")
    paths = [FOLDER + each for each in SERVED]
    found = list[pytest_run.Outcome]()
    for model in MODELS:
        with LiveGateway(f'[providers.demo]\n[models]\n"*" = "demo/{model}"\n') as gateway:
            environ = {"TEST_API_BASE_URL": gateway.url}
            found += pytest_run.run(
                interpreter, folder, "-n", "0", *paths, environ=environ, label=f"{model} "
            )
    every = pytest_run.collected(interpreter, folder, "-n", "0", "tests", environ={})
    return pytest_run.verdict(
        "anthropic-sdk-python",
        environments.version(interpreter, "anthropic"),
        "the SDK's tests of Messages, token counts and Models, beta and not, on four models",
        found,
        REASONS,
        pytest_run.never_run(every, paths, FOLDER),
    )
