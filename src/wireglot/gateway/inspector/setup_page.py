"""`GET /inspector/api/setup`: which providers are on or off and why; what to copy into each client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from wireglot import __version__
from wireglot.gateway.config.provider_keys import provider_keys
from wireglot.gateway.config.providers import DEMO, format_keys
from wireglot.gateway.inspector.access import is_behind_tls
from wireglot.gateway.pages.models import models, permitted
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import Provider, Settings
from wireglot_core.dialects.registry import COMMON
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.spec import ProviderSpec

KEY: Final = "{key}"
URL: Final = "{url}"
MODEL: Final = "{model}"


class ClientSettings(msgspec.Struct, frozen=True):
    name: str
    title: str
    text: str
    """With the placeholders `{url}`, `{key}` and `{model}`."""
    kind: str = "sh"
    """The format of the text: `sh`, `toml` or `python`."""
    run: str = ""
    """The command that does all of it, if there is one."""
    page: str = ""
    """A page of the documentation."""


CLIENTS: Final = (
    ClientSettings(
        "claude-code",
        "Claude Code",
        f"export ANTHROPIC_BASE_URL={URL}\nexport ANTHROPIC_AUTH_TOKEN={KEY}\n"
        "export CLAUDE_CODE_GATEWAY_HINT_HEADERS=1   # what each request is for\nclaude",
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


_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
# Models that the set-up page lists.
_MAX_MODELS: Final = 2000
_OFF: Final = "provider {} is off: "
_NO_KEY_NEEDED: Final = "none"
_YOUR_KEY: Final = "YOUR_KEY"


async def setup(environ: Mapping[str, str], page: PageRequest, viewer: Viewer) -> None:
    """`environ`: searched for keys of providers."""
    settings = page.settings
    listing = permitted(models(settings, COMMON), page.caller.key)
    named = [model.id for model in listing if not model.embeds]
    url = base_url(page)
    key = _NO_KEY_NEEDED if viewer.access == "open" else _YOUR_KEY
    first = named[0] if named else "MODEL"
    reported: dict[str, Any] = {
        "base_url": url,
        "version": __version__,
        "needs_key": viewer.access != "open",
        "demo": DEMO in settings.providers,
        "models": named[:_MAX_MODELS],
        "model_count": len(named),
        "clients": [
            {
                "name": each.name,
                "title": each.title,
                "kind": each.kind,
                "text": filled(each.text, url=url, key=key, model=first),
                "run": each.run,
                "page": each.page,
            }
            for each in CLIENTS
        ],
    }
    if viewer.sees_all:
        reported |= {
            "config": settings.source,
            "providers": _providers(settings, environ),
            "rules": [{"match": rule.match, "to": list(rule.targets)} for rule in settings.rules],
        }
    page.send(reported)


def _providers(settings: Settings, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    keys = provider_keys(settings, environ)
    found = [*map(_on, settings.providers.values()), *_off(settings)]
    for each in found:
        key = keys[each["name"]]
        each |= {"key": key.state, "kept": key.kept, "keeps_as": key.keeps_as, "instead": key.instead}
    return found


def base_url(page: PageRequest) -> str:
    """As the visitor reaches it: by the admitted Host. It is copied into shells."""
    host = page.head.headers.get("host", "")
    if not _HOST.fullmatch(host):
        server = page.settings.server
        host = f"{server.host}:{server.port}"
    return f"{'https' if is_behind_tls(page.head) else 'http'}://{host}"


def _on(provider: Provider) -> dict[str, Any]:
    spec = provider.spec
    return {
        "name": provider.name,
        "title": spec.title,
        "on": True,
        "why": format_keys(provider.credentials),
        "dialects": list(spec.dialects),
        "host": urlsplit(spec.base_url).hostname or "",
        "models": sum(model.is_name and not model.retired for model in spec.models),
    }


def _off(settings: Settings) -> list[dict[str, Any]]:
    """Catalog providers that are off, the dialects' own vendors first."""
    off = [catalog.provider(name) for name in catalog.names() if name not in settings.providers]
    off.sort(key=lambda spec: (not spec.home, spec.name))
    return [
        {
            "name": spec.name,
            "title": spec.title,
            "on": False,
            "why": _why_off(spec, settings),
            "variables": list(spec.api_key_env),
            "dialects": list(spec.dialects),
        }
        for spec in off
    ]


def _why_off(spec: ProviderSpec, settings: Settings) -> str:
    head = _OFF.format(spec.name)
    for note in settings.notes:
        if note.startswith(head):
            return note[len(head) :]
    if spec.auth == "none":
        return f"it needs no key: [providers.{spec.name}] turns it on"
    return f"{' or '.join(spec.api_key_env)} is not set"
