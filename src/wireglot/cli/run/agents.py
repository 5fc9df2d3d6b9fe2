"""Agents that work with any server of OpenAI's Chat Completions: configured by variables, or by an additional
settings file.

docs/howto/agents.md describes the same for manual setup.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any, Final

from wireglot.cli.run.pointing import FOLDER, MAX_MODELS, Door, Pointing, plain_json5, variables_file

_KEY: Final = "WIREGLOT_KEY"
_UNKNOWN_CONTEXT: Final = 128_000
"""Used for clients that need a number if none is known."""
# Output tokens that agents are configured for, where they need a number.
_MAX_OUTPUT: Final = 32_000
_ANY_KEY: Final = "no-key-is-needed"


def copilot(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Uses its bring-your-own-key feature: then it needs no login at GitHub."""
    variables = {
        "COPILOT_PROVIDER_BASE_URL": door.v1,
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_WIRE_API": "completions",
        "COPILOT_PROVIDER_API_KEY": door.key,
        "COPILOT_MODEL": door.model,
    }
    if door.context:
        variables["COPILOT_PROVIDER_MAX_PROMPT_TOKENS"] = str(door.context)
    others = ("BEARER_TOKEN", "API_KEY_COMMAND", "HEADERS", "TRANSPORT", "MODEL_ID", "WIRE_MODEL")
    return Pointing(variables, unset=tuple(f"COPILOT_PROVIDER_{name}" for name in others))


def cline(door: Door, environ: Mapping[str, str]) -> Pointing:
    """It also writes the file of its providers: for this run another one. Its hub is not used, a process that
    stays and has read another file (3.0.65)."""
    settings = {
        "provider": "openai-compatible",
        "apiKey": door.key,
        "model": door.model,
        "baseUrl": door.v1,
    }
    entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    document = {
        "version": 1,
        "lastUsedProvider": "openai-compatible",
        "modes": {},
        "providers": {"openai-compatible": entry},
    }
    return Pointing(
        {
            "CLINE_PROVIDER_SETTINGS_PATH": f"{FOLDER}/cline-providers.json",
            "CLINE_SESSION_BACKEND_MODE": "local",
        },
        files={"cline-providers.json": json.dumps(document)},
    )


def continue_cli(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Its file is YAML, of which JSON is a subset."""
    models = [
        {
            "name": name,
            "provider": "openai",
            "model": name,
            "apiBase": door.v1,
            "apiKey": door.key,
            "roles": ["chat"],
            "capabilities": ["tool_use"],
            **(
                {"defaultCompletionOptions": {"contextLength": door.context}}
                if index == 0 and door.context
                else {}
            ),
        }
        for index, name in enumerate(_names(door))
    ]
    document = {"name": "Wireglot", "version": "1.0.0", "schema": "v1", "models": models}
    return Pointing(
        options=(("--config", f"{FOLDER}/continue.yaml"),), files={"continue.yaml": json.dumps(document)}
    )


def droid(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Its settings are merged with those of a named file."""
    models = [
        {
            "model": name,
            "displayName": name,
            "baseUrl": door.v1,
            "apiKey": f"${{{_KEY}}}",
            "provider": "generic-chat-completion-api",
            "maxOutputTokens": _MAX_OUTPUT,
            **({"maxContextLimit": door.context} if index == 0 and door.context else {}),
        }
        for index, name in enumerate(_names(door))
    ]
    chosen = f"custom:{door.model}"
    document = {"customModels": models, "model": chosen, "sessionDefaultSettings": {"model": chosen}}
    return Pointing(
        {_KEY: door.key},
        options=(("--settings", f"{FOLDER}/droid.json"),),
        files={"droid.json": json.dumps(document)},
    )


def goose(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Its variables override its settings. OPENAI_HOST, an older name, would override the base URL."""
    variables = {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": door.model,
        "OPENAI_BASE_URL": door.v1,
        "OPENAI_API_KEY": door.key,
    }
    for role in ("PLANNER", "SUBAGENT"):
        variables |= {f"GOOSE_{role}_PROVIDER": "openai", f"GOOSE_{role}_MODEL": door.model}
    if door.context:
        variables["GOOSE_CONTEXT_LIMIT"] = str(door.context)
    elsewhere = ("HOST", "BASE_PATH", "ORGANIZATION", "PROJECT", "CUSTOM_HEADERS")
    return Pointing(variables, unset=tuple(f"OPENAI_{name}" for name in elsewhere))


_HERMES_MANAGED: Final = "/etc/hermes"


def hermes(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Its own .env file overrides the environment, and its keys of OpenAI come from there even so: this is
    another provider, in a managed folder, which overrides its settings (0.19). An administrator's folder is
    left in place."""
    # It takes "none" for no key, and then asks for a provider.
    key = _ANY_KEY if door.key == "none" else door.key
    if environ.get("HERMES_MANAGED_DIR") or os.path.isdir(_HERMES_MANAGED):
        return Pointing(
            {"OPENAI_BASE_URL": door.v1, "OPENAI_API_KEY": key},
            options=(("--provider", "openai-api"), ("-m", door.model)),
        )
    model = {"provider": "custom", "default": door.model, "base_url": door.v1, "api_key": key}
    return Pointing(
        {"HERMES_MANAGED_DIR": f"{FOLDER}/hermes"},
        options=(("--provider", "custom"), ("-m", door.model)),
        files={
            "hermes/config.yaml": json.dumps({"model": model}),
            "hermes/.env": variables_file({"CUSTOM_BASE_URL": door.v1}),
        },
    )


def openclaw(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Its configuration with one more provider, in another file: changes that it writes there end with the
    run."""
    state = environ.get("OPENCLAW_STATE_DIR") or os.path.join(environ.get("HOME", ""), ".openclaw")
    place = environ.get("OPENCLAW_CONFIG_PATH") or os.path.join(state, "openclaw.json")
    document = _including_from(os.path.dirname(place), plain_json5(place) or {})
    free = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    provider = {
        "baseUrl": door.v1,
        "apiKey": f"${{{_KEY}}}",
        "api": "openai-completions",
        "models": [
            {
                "id": name,
                "name": name,
                "input": ["text", "image"],
                "reasoning": True,
                "cost": free,
                **_size(door, name),
            }
            for name in _names(door)
        ],
    }
    models = _table(document, "models")
    models["providers"] = {**_table(models, "providers"), "wireglot": provider}
    agents = _table(document, "agents")
    for each in _agents_of(agents):
        _leave_out_models(each)
    _table(agents, "defaults")["model"] = {"primary": f"wireglot/{door.model}"}
    return Pointing(
        {
            _KEY: door.key,
            "OPENCLAW_CONFIG_PATH": f"{FOLDER}/openclaw.json",
            "OPENCLAW_INCLUDE_ROOTS": os.path.dirname(place),
        },
        files={"openclaw.json": json.dumps(document)},
    )


_OPENCLAW_MODELS: Final = ("model", "utilityModel", "imageModel", "pdfModel", "modelPolicy")
_OPENCLAW_PARTS: Final = ("compaction", "heartbeat", "subagents")
"""Parts of an agent that may have a model of their own."""


def _agents_of(agents: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Their settings, and the defaults. They are called `entries`, in older releases `list`."""
    entries, listed = agents.get("entries"), agents.get("list")
    found = [
        agents.get("defaults"),
        *(entries.values() if isinstance(entries, dict) else ()),
        *(listed if isinstance(listed, list) else ()),
    ]
    return [each for each in found if isinstance(each, dict)]


def _leave_out_models(agent: dict[str, Any]) -> None:
    """An agent's own models come before the default one, and are other providers'."""
    parts = [agent.get(name) for name in _OPENCLAW_PARTS]
    for table in (agent, *(part for part in parts if isinstance(part, dict))):
        for name in _OPENCLAW_MODELS:
            table.pop(name, None)


def pi(door: Door, environ: Mapping[str, str]) -> Pointing:
    """An extension adds a provider, for this run only."""
    free = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    models = [
        {
            "id": name,
            "name": name,
            "reasoning": True,
            "input": ["text", "image"],
            "cost": free,
            **_size(door, name),
        }
        for name in _names(door)
    ]
    provider = {"baseUrl": door.v1, "apiKey": f"${_KEY}", "api": "openai-completions", "models": models}
    text = f'export default (pi) => pi.registerProvider("wireglot", {json.dumps(provider)});\n'
    return Pointing(
        {_KEY: door.key},
        options=(("-e", f"{FOLDER}/wireglot.js"), ("--model", f"wireglot/{door.model}")),
        files={"wireglot.js": text},
    )


def _names(door: Door) -> list[str]:
    """All models, the chosen one first."""
    return [door.model, *(name for name in door.models[:MAX_MODELS] if name != door.model)]


def _context(door: Door, name: str) -> int:
    """Only that of the chosen model is known: too large a value makes requests fail."""
    return (door.context if name == door.model else 0) or _UNKNOWN_CONTEXT


def _size(door: Door, name: str) -> dict[str, int]:
    return {"contextWindow": _context(door, name), "maxTokens": _MAX_OUTPUT}


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A table in the document, created if it is missing."""
    if not isinstance(document.get(name), dict):
        document[name] = {}
    found: dict[str, Any] = document[name]
    return found


def _including_from(folder: str, value: Any) -> Any:
    """Files that a configuration includes are relative to its own folder."""
    if isinstance(value, list):
        return [_including_from(folder, each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _absolute(folder, each) if name == "$include" else _including_from(folder, each)
        for name, each in value.items()
    }


def _absolute(folder: str, named: Any) -> Any:
    if isinstance(named, list):
        return [_absolute(folder, each) for each in named]
    return os.path.join(folder, named) if isinstance(named, str) else named


def zed_settings(door: Door) -> str:
    """For `language_models` of its settings.json. The key is in a variable, or in the system's keychain."""
    models = [
        {"name": name, "display_name": name, "max_tokens": _context(door, name)}
        for name in _names(door)[:_EDITOR_MODELS]
    ]
    provider = {"api_url": door.v1, "available_models": models}
    chosen = {"provider": "Wireglot", "model": door.model}
    document = {
        "language_models": {"openai_compatible": {"Wireglot": provider}},
        "agent": {"default_model": chosen},
    }
    return json.dumps(document, indent=2)


def vscode_settings(door: Door) -> str:
    """One entry of its chatLanguageModels.json."""
    models = [
        {
            "id": name,
            "name": name,
            "url": f"{door.v1}/chat/completions",
            "toolCalling": True,
            "vision": True,
            "maxInputTokens": _context(door, name),
            "maxOutputTokens": _MAX_OUTPUT,
        }
        for name in _names(door)[:_EDITOR_MODELS]
    ]
    entry = {"name": "Wireglot", "vendor": "customendpoint", "apiType": "chat-completions", "models": models}
    return json.dumps([entry], indent=2)


def crush_settings(door: Door) -> str:
    """Lines of its crushrc, which is Bash. That is the user's trusted code: it is not written by us."""
    chosen = shlex.quote(f"wireglot/{door.model}")
    return "\n".join(
        [
            f"provider add wireglot --type openai-compat --base-url {shlex.quote(door.v1)} \\",
            f'  --api-key "${{{_KEY}:-none}}" --discover-models true',
            f"model add {chosen} --context-window {_context(door, door.model)} \\",
            f"  --default-max-tokens {_MAX_OUTPUT}",
            *(f"model {slot} {chosen}" for slot in ("large", "small")),
        ]
    )


_EDITOR_MODELS: Final = 20
PRINTED: Final = {
    "crush": (crush_settings, "Crush: add to ~/.config/crush/crushrc, or to .crushrc in the project"),
    "zed": (zed_settings, "Zed: add to its settings.json; the key goes into WIREGLOT_API_KEY or its dialog"),
    "vscode": (
        vscode_settings,
        'VS Code: "Chat: Manage Language Models", Custom Endpoint, then in chatLanguageModels.json',
    ),
}
"""Programs that no variable can configure: their settings are printed, with their location."""
UNSUPPORTED: Final = {"amp": "Amp calls only its own service and cannot use a gateway"}
