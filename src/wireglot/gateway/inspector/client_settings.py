"""What to set in each client so that it asks this gateway: to copy from the page of a fresh start.

`wireglot run CLIENT` does more than this; docs/clients.md has all of them.
"""

from __future__ import annotations

from typing import Final

import msgspec

KEY: Final = "{key}"
URL: Final = "{url}"
MODEL: Final = "{model}"


class ClientSettings(msgspec.Struct, frozen=True):
    name: str
    title: str
    text: str
    """With `{url}`, `{key}` and `{model}` where those belong."""
    kind: str = "sh"
    """What the text is: `sh`, `toml` or `python`."""
    run: str = ""
    """The command that does it all, where there is one."""
    page: str = ""
    """Of the documentation."""


CLIENTS: Final = (
    ClientSettings(
        "claude-code",
        "Claude Code",
        f"export ANTHROPIC_BASE_URL={URL}\nexport ANTHROPIC_AUTH_TOKEN={KEY}\nclaude",
        run="wireglot run claude",
        page="docs/howto/claude-code.md",
    ),
    ClientSettings(
        "codex",
        "Codex",
        f"""# ~/.codex/config.toml, and `export WIREGLOT_KEY={KEY}`
model = "{MODEL}"
model_provider = "wireglot"

[model_providers.wireglot]
name = "Wireglot"
base_url = "{URL}/v1"
env_key = "WIREGLOT_KEY"
wire_api = "responses"
""",
        kind="toml",
        run="wireglot run codex",
        page="docs/howto/codex.md",
    ),
    ClientSettings(
        "gemini-cli",
        "Gemini CLI",
        f"export GOOGLE_GEMINI_BASE_URL={URL}\nexport GEMINI_API_KEY={KEY}\ngemini",
        run="wireglot run gemini",
        page="docs/howto/gemini-cli.md",
    ),
    ClientSettings(
        "openai-sdk",
        "OpenAI SDK",
        f"from openai import OpenAI\n\n"
        f'client = OpenAI(base_url="{URL}/v1", api_key="{KEY}")\n'
        f'client.chat.completions.create(model="{MODEL}", messages=[{{"role": "user", "content": "Hello"}}])',
        kind="python",
        page="docs/clients.md",
    ),
    ClientSettings(
        "anthropic-sdk",
        "Anthropic SDK",
        f"from anthropic import Anthropic\n\n"
        f'client = Anthropic(base_url="{URL}", api_key="{KEY}")\n'
        f'client.messages.create(model="{MODEL}", max_tokens=200, '
        f'messages=[{{"role": "user", "content": "Hello"}}])',
        kind="python",
        page="docs/clients.md",
    ),
    ClientSettings(
        "google-genai",
        "google-genai",
        f"from google import genai\nfrom google.genai import types\n\n"
        f'client = genai.Client(api_key="{KEY}", http_options=types.HttpOptions(base_url="{URL}"))\n'
        f'client.models.generate_content(model="{MODEL}", contents="Hello")',
        kind="python",
        page="docs/clients.md",
    ),
    ClientSettings(
        "curl",
        "curl",
        f"curl {URL}/v1/chat/completions -H 'authorization: Bearer {KEY}' "
        f"-H 'content-type: application/json' \\\n"
        f'  -d \'{{"model": "{MODEL}", "messages": [{{"role": "user", "content": "Hello"}}]}}\'',
        page="docs/clients.md",
    ),
    ClientSettings(
        "any",
        "Any program made with a vendor's SDK",
        f"export OPENAI_BASE_URL={URL}/v1 OPENAI_API_KEY={KEY}\n"
        f"export ANTHROPIC_BASE_URL={URL} ANTHROPIC_API_KEY={KEY}\n"
        f"export GOOGLE_GEMINI_BASE_URL={URL} GEMINI_API_KEY={KEY}",
        run="wireglot run -- PROGRAM",
        page="docs/clients.md",
    ),
)


def filled(text: str, *, url: str, key: str, model: str) -> str:
    return text.replace(URL, url).replace(KEY, key).replace(MODEL, model)
