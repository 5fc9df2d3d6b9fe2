"""The clients: their names, and how variables and options alone point each at a gateway.

docs/howto describes the same for manual setup; clients/launched.py runs all of them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from wireglot.cli.run.agents import cline, continue_cli, copilot, droid, goose, hermes, openclaw, pi
from wireglot.cli.run.opencode_agents import agent_names
from wireglot.cli.run.pointing import (
    FOLDER,
    MAX_MODELS,
    Client,
    Door,
    Pointing,
    plain_json5,
    variables_file,
)

_MODULE: Final = """\
import json
import os

import llm
from llm.default_plugins import openai_models

_GIVEN = json.loads({given!r})


@llm.hookimpl
def register_models(register):
    for name in _GIVEN["models"]:
        made = []
        for kind in (openai_models.Chat, openai_models.AsyncChat):
            model = kind("wireglot/" + name, model_name=name, api_base=_GIVEN["base"], supports_tools=True)
            model.key = os.environ.get("WIREGLOT_KEY")
            made.append(model)
        register(*made)
"""
_METADATA: Final = "Metadata-Version: 2.1\nName: wireglot-for-llm\nVersion: 1\n"
_ENTRY_POINTS: Final = "[llm]\nwireglot = wireglot_for_llm\n"


def plugin_files(base: str, models: Sequence[str]) -> dict[str, str]:
    """By their names below a folder of the path."""
    given = json.dumps({"base": base, "models": list(models)})
    return {
        "wireglot_for_llm.py": _MODULE.format(given=given),
        "wireglot_for_llm-1.dist-info/METADATA": _METADATA,
        "wireglot_for_llm-1.dist-info/entry_points.txt": _ENTRY_POINTS,
    }


_CLAUDE_CONTEXT: Final = 200_000
"""The context in tokens that every Claude model has by default."""
_GEMINI_LOGINS: Final = ("gemini-api-key", "oauth-personal")
"""Those with which variables alone lead to a gateway."""
_GEMINI_HISTORY: Final = ("tmp", "history")
_GEMINI_BESIDE: Final = (".agents", ".env")
"""Files that it reads in the home, besides its own folder."""


def _claude(door: Door, environ: Mapping[str, str]) -> Pointing:
    named = ("ANTHROPIC_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL")
    classes = tuple(f"ANTHROPIC_DEFAULT_{name}_MODEL" for name in ("HAIKU", "SONNET", "OPUS", "FABLE"))
    variables = {"ANTHROPIC_BASE_URL": door.url, "ANTHROPIC_AUTH_TOKEN": door.key}
    # Without it the class of a request and the type of its agent are only sent to Anthropic (2.1.326).
    variables["CLAUDE_CODE_GATEWAY_HINT_HEADERS"] = environ.get("CLAUDE_CODE_GATEWAY_HINT_HEADERS") or "1"
    if door.model:
        variables |= dict.fromkeys((*named, *classes), door.model)
        # If its Opus class is a model with a larger context on request, it rewrites `"model": "opus"` in the
        # user's settings to `opus[1m]` (2.1.326). It assumes that of every name that it does not know, but of
        # no Claude that always has the larger context; this variable would take it from those.
        if not ("claude" in door.model and door.context > _CLAUDE_CONTEXT):
            variables["CLAUDE_CODE_DISABLE_1M_CONTEXT"] = "1"
    if door.model and door.context:  # it assumes a million for unknown names
        variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(door.context)
    elsewhere = (
        "ANTHROPIC_API_KEY",
        *(f"CLAUDE_CODE_USE_{cloud}" for cloud in ("BEDROCK", "VERTEX", "FOUNDRY", "MANTLE")),
    )
    # The variables in its settings file override its environment; this file overrides both.
    settings: dict[str, Any] = {"env": {**variables, **dict.fromkeys(elsewhere, "")}}
    if door.statusline:
        command = shlex.join([sys.executable, "-m", "wireglot.cli", "statusline", "--url", door.url])
        settings["statusLine"] = {"type": "command", "command": command}
    return Pointing(
        variables,
        unset=elsewhere,
        options=(("--settings", f"{FOLDER}/claude-settings.json"),),
        files={"claude-settings.json": json.dumps(settings)},
    )


def _codex(door: Door, environ: Mapping[str, str]) -> Pointing:
    provider = {
        "name": "Wireglot",
        "base_url": door.v1,
        "env_key": "WIREGLOT_KEY",
        "wire_api": "responses",
    }
    table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in provider.items())
    options = [("-c", f"model_providers.wireglot={{{table}}}"), ("-c", 'model_provider="wireglot"')]
    if door.model:
        options.append(("-c", f"model={json.dumps(door.model)}"))
        if door.context:
            options.append(("-c", f"model_context_window={door.context}"))
    return Pointing({"WIREGLOT_KEY": door.key}, options=tuple(options))


def _gemini(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Its login may be an API key or Google's: only its settings say which.

    Without one in the settings it takes the first that the environment has. Google's comes before one of its
    names for a base URL, which it would then refuse. Its screen takes none: it asks, and writes the answer
    into the user's settings, our key into the keychain, and removes a login with Google (0.61). Then it is
    given a home with links to the user's, in which only the settings are another file. A file of system
    settings would have to belong to root.
    """
    variables = {
        "GOOGLE_GEMINI_BASE_URL": door.url,
        "GEMINI_API_KEY": door.key,
        "CODE_ASSIST_ENDPOINT": door.url,
        "GOOGLE_GENAI_USE_GCA": "true",
        "GOOGLE_CLOUD_ACCESS_TOKEN": door.key,
        "GEMINI_DEFAULT_AUTH_TYPE": "gemini-api-key",
    }
    unset = ("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI")
    warnings = tuple(_gemini_warnings(os.path.join(".gemini", "settings.json")))
    pointing = Pointing(_named(variables, "GEMINI_MODEL", door), unset=unset, warnings=warnings)
    home = environ.get("GEMINI_CLI_HOME") or environ.get("HOME", "")
    return _with_gemini_home(pointing, home) if home else pointing


def _with_gemini_home(pointing: Pointing, home: str) -> Pointing:
    own = os.path.join(home, ".gemini")
    settings = _gemini_settings(os.path.join(own, "settings.json"))
    if settings is None:
        return pointing
    names = {*_GEMINI_HISTORY, "installation_id"}
    with suppress(OSError):
        names |= set(os.listdir(own))
    links = {f".gemini/{name}": os.path.join(own, name) for name in sorted(names - {"settings.json"})}
    beside = {name: os.path.join(home, name) for name in _GEMINI_BESIDE}
    links |= {name: place for name, place in beside.items() if os.path.exists(place)}
    folder = {
        "GEMINI_CLI_HOME": FOLDER,
        # It writes this file by renaming another, which would replace a link.
        "GEMINI_CLI_TRUSTED_FOLDERS_PATH": os.path.join(own, "trustedFolders.json"),
    }
    return msgspec.structs.replace(
        pointing,
        set=folder | pointing.set,
        files={".gemini/settings.json": json.dumps(settings)},
        links=links,
        history=tuple(os.path.join(own, name) for name in _GEMINI_HISTORY),
        optional=tuple(folder),
    )


def _gemini_warnings(place: str) -> Iterator[str]:
    """A project's settings come before the user's."""
    security = (plain_json5(place) or {}).get("security")
    auth = security.get("auth") if isinstance(security, dict) else None
    login = auth.get("selectedType") if isinstance(auth, dict) else None
    if isinstance(login, str) and login not in _GEMINI_LOGINS:
        yield f"{place} takes precedence: its login {login} calls Google, not the gateway"


def _gemini_settings(place: str) -> dict[str, Any] | None:
    """The user's settings with another login; None if theirs can be used, or they cannot be read."""
    document = plain_json5(place)
    if document is None:
        return None
    security = document.get("security", {})
    auth = security.get("auth", {}) if isinstance(security, dict) else None
    if not isinstance(auth, dict) or auth.get("selectedType") in _GEMINI_LOGINS:
        return None
    login = {**auth, "selectedType": _GEMINI_LOGINS[0]}
    return {**document, "security": {**security, "auth": login}}


def _opencode(door: Door, environ: Mapping[str, str]) -> Pointing:
    models: dict[str, Any] = {name: {"name": name} for name in (door.model, *door.models[:MAX_MODELS])}
    if door.context:
        # It needs both figures or none; a fifth of the context is more than most models answer.
        models[door.model]["limit"] = {"context": door.context, "output": min(32_000, door.context // 5)}
    chosen = f"wireglot/{door.model}"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Wireglot",
        "options": {"baseURL": door.v1, "apiKey": "{env:WIREGLOT_KEY}"},
        "models": models,
    }
    # An agent's own model comes before the common one, and only listed providers are used where a file lists
    # some.
    agents = {name: {"model": chosen} for name in agent_names(environ, os.getcwd())}
    content = {
        "model": chosen,
        "small_model": chosen,
        "enabled_providers": ["wireglot"],
        "provider": {"wireglot": provider},
        **({"agent": agents} if agents else {}),
    }
    return Pointing({"OPENCODE_CONFIG_CONTENT": json.dumps(content), "WIREGLOT_KEY": door.key})


def _qwen(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Its settings may list the same model with another base URL, and other models for side requests. System
    settings come before them (0.24)."""
    variables = {"OPENAI_BASE_URL": door.v1, "OPENAI_API_KEY": door.key}
    options = (("--auth-type", "openai"), ("-m", door.model))
    folder = "/Library/Application Support/QwenCode" if sys.platform == "darwin" else "/etc/qwen-code"
    place = environ.get(_QWEN_SYSTEM) or os.path.join(folder, "settings.json")
    settings = plain_json5(place)
    if settings is None:
        return Pointing(variables, options=options)
    names = (door.model, *(name for name in door.models[:MAX_MODELS] if name != door.model))
    entries = [
        {"id": name, "name": name, "envKey": "OPENAI_API_KEY", "baseUrl": door.v1} for name in names if name
    ]
    settings |= dict.fromkeys(_QWEN_SIDE_MODELS, "") | {"modelProviders": {"openai": entries}}
    defaults = environ.get(_QWEN_DEFAULTS) or os.path.join(os.path.dirname(place), "system-defaults.json")
    return Pointing(
        {**variables, _QWEN_SYSTEM: f"{FOLDER}/qwen-settings.json", _QWEN_DEFAULTS: defaults},
        options=options,
        files={"qwen-settings.json": json.dumps(settings)},
        optional=(_QWEN_SYSTEM, _QWEN_DEFAULTS),
    )


_QWEN_SYSTEM: Final = "QWEN_CODE_SYSTEM_SETTINGS_PATH"
_QWEN_DEFAULTS: Final = "QWEN_CODE_SYSTEM_DEFAULTS_PATH"
_QWEN_SIDE_MODELS: Final = ("fastModel", "advisorModel", "visionModel", "compactionModel", "modelFallbacks")
"""Empty: the main one."""


def _kimi(door: Door, environ: Mapping[str, str]) -> Pointing:
    variables = {
        "KIMI_MODEL_NAME": door.model,
        "KIMI_MODEL_API_KEY": door.key,
        "KIMI_MODEL_BASE_URL": door.v1,
        "KIMI_MODEL_PROVIDER_TYPE": "kimi",
    }
    if door.context:
        variables["KIMI_MODEL_MAX_CONTEXT_SIZE"] = str(door.context)
    return Pointing(variables)


def _aider(door: Door, environ: Mapping[str, str]) -> Pointing:
    variables = {"OPENAI_API_BASE": door.v1, "OPENAI_API_KEY": door.key}
    # Its .aider.conf.yml may have a base URL and a key, too, and would put them into these variables. Its own
    # variables override that file, and an option the variables (0.86.2).
    variables |= {f"AIDER_{name}": value for name, value in variables.items()}
    # A project's .env file overrides the environment; the one named last overrides both.
    return Pointing(
        {**variables, "AIDER_SHOW_MODEL_WARNINGS": "false"},
        options=(
            *((f"--{each}model", f"openai/{door.model}") for each in ("", "weak-", "editor-")),
            ("--openai-api-base", door.v1),
            ("--env-file", f"{FOLDER}/aider.env"),
        ),
        files={"aider.env": variables_file(variables)},
    )


def _llm(door: Door, environ: Mapping[str, str]) -> Pointing:
    """Its models are in a file in its home or in plug-ins: for this run there is one more plug-in."""
    names = (door.model, *(name for name in door.models[:MAX_MODELS] if name != door.model))
    found = [FOLDER, *filter(None, [environ.get("PYTHONPATH", "")])]
    return Pointing(
        {"PYTHONPATH": ":".join(found), "WIREGLOT_KEY": door.key, "LLM_MODEL": f"wireglot/{door.model}"},
        files=plugin_files(door.v1, names),
    )


CLIENTS: Final[dict[str, Client]] = {
    "aider": Client("aider", "aider", "openai-chat", "pip install aider-chat", _aider),
    "claude": Client(
        "Claude Code",
        "claude",
        "anthropic",
        "npm install -g @anthropic-ai/claude-code",
        _claude,
        own_model="claude-sonnet-5-5",
        has_statusline=True,
        resume="--resume",
    ),
    "cline": Client("Cline", "cline", "openai-chat", "npm install -g cline", cline, resume="history"),
    "codex": Client(
        "Codex",
        "codex",
        "openai-responses",
        "npm install -g @openai/codex",
        _codex,
        own_model="gpt-5.5",
        resume="resume",
    ),
    "continue": Client(
        "Continue", "cn", "openai-chat", "npm install -g @continuedev/cli", continue_cli, resume="--resume"
    ),
    "copilot": Client(
        "GitHub Copilot CLI",
        "copilot",
        "openai-chat",
        "npm install -g @github/copilot",
        copilot,
        resume="--resume",
    ),
    "droid": Client("Droid", "droid", "openai-chat", "npm install -g droid", droid, resume="--resume"),
    "gemini": Client(
        "Gemini CLI",
        "gemini",
        "gemini",
        "npm install -g @google/gemini-cli",
        _gemini,
        own_model="gemini-2.5-flash",
        own_models="gemini-*",
        resume="--resume",
    ),
    "goose": Client(
        "Goose", "goose", "openai-chat", "brew install block-goose-cli", goose, resume="session --resume"
    ),
    "hermes": Client(
        "Hermes Agent", "hermes", "openai-chat", "pip install hermes-agent", hermes, resume="--continue"
    ),
    "kimi": Client(
        "Kimi Code",
        "kimi",
        "openai-chat",
        "npm install -g @moonshot-ai/kimi-code",
        _kimi,
        resume="--continue",
    ),
    "llm": Client("llm", "llm", "openai-chat", "pip install llm", _llm),
    "openclaw": Client("OpenClaw", "openclaw", "openai-chat", "npm install -g openclaw", openclaw),
    "opencode": Client(
        "opencode", "opencode", "openai-chat", "npm install -g opencode-ai", _opencode, resume="--continue"
    ),
    "pi": Client(
        "Pi", "pi", "openai-chat", "npm install -g @earendil-works/pi-coding-agent", pi, resume="--resume"
    ),
    "qwen": Client(
        "Qwen Code",
        "qwen",
        "openai-chat",
        "npm install -g @qwen-code/qwen-code",
        _qwen,
        resume="--resume",
    ),
}


def _family(family: str, door: Door) -> Pointing:
    match family:
        case "anthropic":
            variables = {"ANTHROPIC_BASE_URL": door.url, "ANTHROPIC_API_KEY": door.key}
            return Pointing(_named(variables, "ANTHROPIC_MODEL", door), unset=("ANTHROPIC_AUTH_TOKEN",))
        case "openai":
            bases = dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), door.v1)
            return Pointing(_named({**bases, "OPENAI_API_KEY": door.key}, "OPENAI_MODEL", door))
        case _:
            keys = dict.fromkeys(("GEMINI_API_KEY", "GOOGLE_API_KEY"), door.key)
            variables = {"GOOGLE_GEMINI_BASE_URL": door.url, **keys}
            unset = ("GOOGLE_GENAI_USE_VERTEXAI",)
            return Pointing(_named(variables, "GEMINI_MODEL", door), unset=unset)


def _named(variables: dict[str, str], name: str, door: Door) -> dict[str, str]:
    return {**variables, name: door.model} if door.model else variables


def by_family(families: tuple[str, ...], door: Door) -> Pointing:
    """The variables of vendors' SDKs, for any program that uses these."""
    each = [_family(family, door) for family in families]
    return Pointing(
        {name: value for one in each for name, value in one.set.items()},
        tuple(name for one in each for name in one.unset),
    )


FAMILY_DIALECTS: Final = {"anthropic": "anthropic", "openai": "openai-chat", "gemini": "gemini"}
FAMILY_MODELS: Final = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5.5",
    "gemini": "gemini-2.5-flash",
}
"""Usual default models of programs with these SDKs."""
