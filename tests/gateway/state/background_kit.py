"""What the tests of background responses share."""

from __future__ import annotations

import hashlib

import openai
from openai.types.responses import Response

from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway

ONCE = {"retry": "{retries = 0}", "breaker": "{consecutive = 1000000, minimum = 1000000}"}
KEYS = "".join(
    f'[keys.{name}]\nhash = "sha256:{hashlib.sha256(f"wg-{name}-0123456789".encode()).hexdigest()}"\n'
    for name in ("one", "two")
)
RUNNING = ("queued", "in_progress")


def client(gateway: LiveGateway, name: str = "one") -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{gateway.url}/v1",
        api_key=f"wg-{name}-0123456789",
        max_retries=0,
        http_client=openai.DefaultHttpxClient(verify=False),
    )


def finished(gpt: openai.OpenAI, id: str) -> Response:
    """The response once it has ended, looked at as clients do."""

    def ended() -> Response | None:
        response = gpt.responses.retrieve(id)
        return None if response.status in RUNNING else response

    return wait_until(ended, "it does not end")
