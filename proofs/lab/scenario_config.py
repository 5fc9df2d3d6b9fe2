"""The configuration of a gateway that uses most of what can be configured, and the keys that open it."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

ADMIN: Final = "the-admin-secret-of-this-trial"
ADA: Final = "ada-opens-with-a-key-of-the-configuration"
UPSTREAM: Final = "http://upstream.example.com"
"""Stands in the configuration for the address of a provider behind the gateway."""
_PROVIDERS: Final = "".join(
    f"""
[providers.{name}]
dialect = "{dialect}"
base_url = "{UPSTREAM}{base}"
api_keys = ["the-first-key-of-{name}", "the-second-key-of-{name}"]
"""
    for name, dialect, base in (
        ("claude", "anthropic", ""),
        ("gemini-like", "gemini", "/v1beta"),
        ("gpt", "openai-responses", "/v1"),
        ("chat", "openai-chat", "/v1"),
    )
)
CLAUDE: Final = "claude/some-model"
GEMINI: Final = "gemini-like/some-model"
GPT: Final = "gpt/some-model"
CHAT: Final = "chat/some-model"
TIRED: Final = "tired/some-model"

CONFIG: Final = f"""\
losses = "warn"
currency = "EUR"

[server]
secret = "the-secret-that-outlives-the-process"
old_secrets = ["the-secret-of-a-year-before"]
admin_secret = "{ADMIN}"
require_key = true
hosts = ["gateway.example.com"]
origins = ["https://app.example.com"]

[providers]
discover = false

[providers.demo]
timeouts = {{ connect = 2, first_byte = 600, idle = 600, total = 900 }}
retry = {{ retries = 0, wait_max = 0.0 }}
breaker = {{ consecutive = 50, ratio = 0.9, minimum = 100 }}

[providers.elsewhere]
dialects = ["openai-chat", "anthropic"]
base_url = "http://127.0.0.1:9/v1"
base_urls = {{ anthropic = "http://127.0.0.1:9" }}
api_keys = ["an-upstream-key-0123456789", "another-upstream-key-0123456789"]
headers = {{ x-team = "lab" }}
models = ["some-*"]
streams = "both"
concurrency = 8
losses = "silent"

{_PROVIDERS}
[providers.tired]
dialect = "openai-chat"
base_url = "{UPSTREAM}/v1"
api_key = "the-only-key-of-tired"

[models]
"claude-*" = "demo/demo-anthropic"
fast = ["demo/demo-gemini", "elsewhere/some-model"]
best = [
  {{ to = "demo/demo-openai-responses", effort = ["high"] }},
  {{ to = ["demo/demo-openai-chat", "elsewhere/some-other"], losses = "warn" }},
]

[keys]
ada = "sha256:{sha256(ADA.encode()).hexdigest()}"

[keys.watched]
hash = "sha256:{sha256(b"a-key-that-nobody-uses").hexdigest()}"
models = ["claude-*", "fast"]
losses = "strict"
expires = 2099-01-31
requests_per_minute = 60
concurrent = 4
tokens_per_month = 1000000
cost_per_day = 2.50

[prices]
"demo/*" = {{ input = 3, output = 15, cache_read = 0.3, cache_write = 3.75, reasoning = 15 }}

[store]
responses = "gateway"
sync = true
journal = 262144
ledger_required = true

[store.keep]
responses_days = 0
responses_bytes = 0
conversations_days = 0
vault_days = 0
usage_days = 0
idempotency_hours = 0
events_hours = 0

[limits]
drain = 1
drain_again = 1
auth_failures = 100000
ping = 30
"""
