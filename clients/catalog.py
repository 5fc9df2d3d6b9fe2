"""The clients: what each one is called, what it needs installed, and how it is pointed at a gateway."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clients.packages import (
    AI_SDK,
    AI_SDK_5,
    AI_SDK_6,
    CLAUDE_CODE,
    CLINE,
    CODEX,
    CONTINUE,
    COPILOT,
    DROID,
    GEMINI_CLI,
    GOOSE,
    HERE,
    HERMES,
    JS_SDKS,
    JS_SDKS_BEFORE,
    KIMI_CODE,
    NODE22,
    NODE24,
    OPENCLAW,
    OPENCODE,
    PI,
    PYTHON_SDKS,
    PYTHON_SDKS_BEFORE,
    QWEN_CODE,
    ROOT,
    Package,
)
from clients.seat import Launch, Seat

PROGRAMS = HERE / "programs"
# The shell tools of Gemini CLI and of its offspring now and then return nothing for a quick command. A double
# that understands this takes the tool that reads files instead.
_READ_FILE = "[[call-tool:read_file]]"
AGENT_TURNS = 5
SDK_TURNS = 1
"""The programs with SDKs are examples of one call and its result."""


def _reading(seat: Seat) -> str:
    return f"{seat.prompt} {_READ_FILE}"


@dataclass(frozen=True)
class Client:
    """One row of the table. `speaks` is the dialect it talks to the gateway."""

    name: str
    title: str
    speaks: str
    package: Package
    launch: Callable[[Seat], Launch]
    finals: int = 1
    """How often the final text must appear: once per tool loop the client runs."""
    files: int = AGENT_TURNS
    """How many files it reads, each in a turn of its own, where the upstream takes notes."""
    timeout: float = 120.0
    moved: str = ""
    """What marks text that it has at the end of each request, and at that of the next one instead."""


def _claude_code(seat: Seat) -> Launch:
    return _claude(seat, {"ANTHROPIC_BASE_URL": seat.base, "ANTHROPIC_API_KEY": seat.key})


def _claude_code_on_bedrock(seat: Seat) -> Launch:
    """As docs/howto/claude-code-clouds.md has it."""
    return _claude(
        seat,
        {
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "ANTHROPIC_BEDROCK_BASE_URL": seat.base,
            "AWS_REGION": "us-east-1",
            "AWS_BEARER_TOKEN_BEDROCK": seat.key,
            "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
        },
    )


def _claude_code_on_vertex(seat: Seat) -> Launch:
    return _claude(
        seat,
        {
            "CLAUDE_CODE_USE_VERTEX": "1",
            "ANTHROPIC_VERTEX_BASE_URL": f"{seat.base}/v1",
            "ANTHROPIC_VERTEX_PROJECT_ID": "any",
            "CLOUD_ML_REGION": "us-east5",
            "ANTHROPIC_AUTH_TOKEN": seat.key,
            "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        },
    )


def _claude(seat: Seat, environ: dict[str, str]) -> Launch:
    return Launch(
        [
            CLAUDE_CODE.binaries / "claude",
            *("-p", seat.prompt, "--dangerously-skip-permissions", "--output-format", "text"),
        ],
        {
            **environ,
            "CLAUDE_CONFIG_DIR": str(seat.home / ".claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            # It refuses to skip permissions for root outside a sandbox.
            "IS_SANDBOX": "1",
        },
    )


_CODEX_COMMON = """\
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
"""


def _codex(seat: Seat, config: str, hint: str = "") -> Launch:
    return Launch(
        [CODEX.binaries / "codex", "exec", "--skip-git-repo-check", seat.prompt + hint],
        {"CODEX_HOME": str(seat.home / ".codex"), "WIREGLOT_KEY": seat.key, "CODEX_API_KEY": seat.key},
        {".codex/config.toml": config + "[analytics]\nenabled = false\n"},
    )


def _codex_provider(model: str, hint: Callable[[Seat], str] = lambda _: "") -> Callable[[Seat], Launch]:
    """Codex with a provider entry of its own, the way docs/howto/codex.md tells it."""
    return lambda seat: _codex(
        seat,
        f"""\
model = "{model}"
model_provider = "wireglot"
{_CODEX_COMMON}
[model_providers.wireglot]
name = "Wireglot"
base_url = "{seat.base}/v1"
env_key = "WIREGLOT_KEY"
wire_api = "responses"
""",
        hint(seat),
    )


def _codex_script(seat: Seat) -> str:
    """Codex's code tool takes JavaScript; an upstream that knows only functions gets it as one argument.

    A real model reads how from the description. For a double that does not, this spells out the call.
    """
    command = json.dumps(f"cat {seat.marker}")
    script = f"const r = await tools.exec_command({{cmd: {command}}});\ntext(r.output);\n"
    arguments = json.dumps({"input": script})
    return f" [[call-tool:functions__exec:{base64.b64encode(arguments.encode()).decode()}]]"


def _codex_built_in(model: str, hint: Callable[[Seat], str] = lambda _: "") -> Callable[[Seat], Launch]:
    """Codex with its built-in provider moved: it speaks over a WebSocket."""
    return lambda seat: _codex(
        seat, f'model = "{model}"\nopenai_base_url = "{seat.base}/v1"\n{_CODEX_COMMON}', hint(seat)
    )


def _gemini_settings(selected: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": selected}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    return {".gemini/settings.json": json.dumps(settings, indent=2)}


def _gemini(seat: Seat, selected: str, env: dict[str, str]) -> Launch:
    return Launch(
        [GEMINI_CLI.binaries / "gemini", "-y", "-p", _reading(seat)],
        {"GEMINI_CLI_TRUST_WORKSPACE": "true", **env},
        _gemini_settings(selected),
    )


def _gemini_key(seat: Seat) -> Launch:
    env = {"GEMINI_API_KEY": seat.key, "GOOGLE_GEMINI_BASE_URL": seat.base}
    return _gemini(seat, "gemini-api-key", env)


def _gemini_code_assist(seat: Seat) -> Launch:
    env = {
        "GOOGLE_GENAI_USE_GCA": "true",
        "GOOGLE_CLOUD_ACCESS_TOKEN": seat.key,
        "CODE_ASSIST_ENDPOINT": seat.base,
    }
    return _gemini(seat, "oauth-personal", env)


def _kimi_code(seat: Seat) -> Launch:
    return Launch(
        [KIMI_CODE.binaries / "kimi", "-p", seat.prompt],
        {
            "KIMI_MODEL_NAME": "kimi-k3",
            "KIMI_MODEL_API_KEY": seat.key,
            "KIMI_MODEL_BASE_URL": f"{seat.base}/v1",
            "KIMI_MODEL_PROVIDER_TYPE": "kimi",
        },
        node=NODE22.binaries,
    )


def _qwen_code(seat: Seat) -> Launch:
    return Launch(
        [
            QWEN_CODE.binaries / "qwen",
            "--auth-type",
            "openai",
            "-m",
            "my-model",
            "-y",
            _reading(seat),
        ],
        {"OPENAI_API_KEY": seat.key, "OPENAI_BASE_URL": f"{seat.base}/v1"},
        {".qwen/settings.json": json.dumps({"privacy": {"usageStatisticsEnabled": False}})},
        node=NODE22.binaries,
    )


def _opencode(provider_package: str, version: str, model: str) -> Callable[[Seat], Launch]:
    def launch(seat: Seat) -> Launch:
        name = f"wireglot/{model}"
        limits = {"context": 200_000, "output": 8192}
        config = {
            "autoupdate": False,
            "share": "disabled",
            "permission": {"*": "allow", "external_directory": "allow"},
            "enabled_providers": ["wireglot"],
            "model": name,
            "small_model": name,
            "provider": {
                "wireglot": {
                    "npm": provider_package,
                    "name": "Wireglot",
                    "options": {"baseURL": f"{seat.base}/{version}", "apiKey": seat.key},
                    "models": {model: {"name": model, "tool_call": True, "reasoning": True, "limit": limits}},
                }
            },
        }
        return Launch(
            [OPENCODE.binaries / "opencode", "run", "--auto", "-m", name, seat.prompt],
            {
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            },
            {".config/opencode/opencode.json": json.dumps(config, indent=2)},
        )

    return launch


def _program_env(seat: Seat) -> dict[str, str]:
    return {"WIREGLOT_URL": seat.base, "WIREGLOT_KEY": seat.key, "WIREGLOT_PROMPT": seat.prompt}


def _program(package: Package, name: str, provider: str) -> Callable[[Seat], Launch]:
    def launch(seat: Seat) -> Launch:
        # Node looks for packages beside the program, so the program is copied beside a link to them.
        (seat.project / "node_modules").symlink_to(package.folder / "node_modules")
        program = seat.project / name
        program.write_text((PROGRAMS / name).read_text())
        command: list[str | Path] = [NODE22.binaries / "node", program, provider]
        return Launch(command, _program_env(seat), node=NODE22.binaries)

    return launch


def _python(package: Package, program: str) -> Callable[[Seat], Launch]:
    return lambda seat: Launch(
        [package.binaries / "python", "-m", f"clients.programs.{program}"],
        {**_program_env(seat), "PYTHONPATH": str(ROOT)},
    )


def _reads_by(seat: Seat, tool: str) -> str:
    """Named, since a double that does not know the agent would try all of its tools."""
    return f"{seat.prompt} [[call-tool:{tool}]]"


def _copilot(seat: Seat) -> Launch:
    return Launch(
        [COPILOT.binaries / "copilot", "-p", _reads_by(seat, "view"), "--allow-all"],
        {
            "COPILOT_PROVIDER_BASE_URL": f"{seat.base}/v1",
            "COPILOT_PROVIDER_API_KEY": seat.key,
            "COPILOT_MODEL": "my-model",
            "COPILOT_AUTO_UPDATE": "false",
        },
    )


def _cline(seat: Seat) -> Launch:
    settings = {
        "provider": "openai-compatible",
        "apiKey": seat.key,
        "model": "my-model",
        "baseUrl": f"{seat.base}/v1",
    }
    entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    providers = {
        "version": 1,
        "lastUsedProvider": "openai-compatible",
        "modes": {},
        "providers": {"openai-compatible": entry},
    }
    return Launch(
        [CLINE.binaries / "cline", _reads_by(seat, "read_files")],
        files={".cline/data/settings/providers.json": json.dumps(providers)},
    )


def _continue(seat: Seat) -> Launch:
    model = {
        "name": "my-model",
        "provider": "openai",
        "model": "my-model",
        "apiBase": f"{seat.base}/v1",
        "apiKey": seat.key,
        "roles": ["chat"],
        "capabilities": ["tool_use"],
    }
    config = {"name": "Mine", "version": "1.0.0", "schema": "v1", "models": [model]}
    return Launch(
        [
            CONTINUE.binaries / "cn",
            *("--config", seat.home / "continue.yaml", "--auto", "-p", _reads_by(seat, "Read")),
        ],
        files={"continue.yaml": json.dumps(config)},
    )


def _droid(seat: Seat) -> Launch:
    model = {
        "model": "my-model",
        "displayName": "my-model",
        "baseUrl": f"{seat.base}/v1",
        "apiKey": seat.key,
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": 16_000,
    }
    return Launch(
        [DROID.binaries / "droid", "exec", "-m", "custom:my-model", _reads_by(seat, "Read")],
        files={".factory/settings.json": json.dumps({"customModels": [model]})},
    )


def _hermes(seat: Seat) -> Launch:
    return Launch(
        [
            HERMES.binaries / "hermes",
            *("--provider", "openai-api", "-m", "my-model", "-z", _reads_by(seat, "read_file")),
        ],
        {"OPENAI_BASE_URL": f"{seat.base}/v1", "OPENAI_API_KEY": seat.key},
    )


def _goose(seat: Seat) -> Launch:
    return Launch(
        [GOOSE.binaries / "goose", "run", "--with-builtin", "developer", "-t", _reads_by(seat, "shell")],
        {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "my-model",
            "GOOSE_MODE": "auto",
            "OPENAI_BASE_URL": f"{seat.base}/v1",
            "OPENAI_API_KEY": seat.key,
        },
    )


def _model_of_agent(seat: Seat) -> dict[str, object]:
    return {
        "baseUrl": f"{seat.base}/v1",
        "apiKey": seat.key,
        "api": "openai-completions",
        "models": [
            {
                "id": "my-model",
                "name": "my-model",
                "reasoning": True,
                "contextWindow": 200_000,
                "maxTokens": 16_000,
            }
        ],
    }


def _openclaw(seat: Seat) -> Launch:
    config = {
        "models": {"providers": {"wireglot": _model_of_agent(seat)}},
        "agents": {"defaults": {"model": {"primary": "wireglot/my-model"}}},
    }
    return Launch(
        [
            OPENCLAW.binaries / "openclaw",
            *("agent", "--local", "--session-id", "one", "-m", _reads_by(seat, "read")),
        ],
        {"OPENCLAW_OFFLINE": "1"},
        {".openclaw/openclaw.json": json.dumps(config)},
        node=NODE24.binaries,
    )


def _pi(seat: Seat) -> Launch:
    return Launch(
        [PI.binaries / "pi", "--model", "wireglot/my-model", "-p", _reads_by(seat, "read")],
        {"PI_OFFLINE": "1"},
        {".pi/agent/models.json": json.dumps({"providers": {"wireglot": _model_of_agent(seat)}})},
        node=NODE22.binaries,
    )


_CHAT, _RESPONSES, _ANTHROPIC, _GEMINI = "openai-chat", "openai-responses", "anthropic", "gemini"
_OLLAMA = "ollama"


def _remarks(package: Package, short: str, *remarks: str) -> str:
    """What tells rows of one title apart: the release of an older major, and the API."""
    if package.held:
        vendor = "ai" if package.name.startswith("ai-") else short.partition("-")[0]
        found = (
            version
            for name, version in package.versions.items()
            if vendor in name.removeprefix("@").split("/")[0]
        )
        remarks = (next(found), *remarks)
    named = ", ".join(remark for remark in remarks if remark)
    return f" ({named})" if named else ""


CLIENTS: tuple[Client, ...] = (
    Client("claude-code", "Claude Code", _ANTHROPIC, CLAUDE_CODE, _claude_code),
    Client(
        "claude-code-bedrock",
        "Claude Code (Bedrock)",
        "anthropic-bedrock",
        CLAUDE_CODE,
        _claude_code_on_bedrock,
    ),
    Client(
        "claude-code-vertex",
        "Claude Code (Vertex AI)",
        "anthropic-vertex",
        CLAUDE_CODE,
        _claude_code_on_vertex,
    ),
    # Codex shapes its requests by model name: functions for gpt-5.5, tools as an input item and a code
    # tool for its default, a namespace for a name it does not know.
    Client("codex", "Codex (gpt-5.5)", _RESPONSES, CODEX, _codex_provider("gpt-5.5")),
    Client(
        "codex-default",
        "Codex (gpt-6.1-sol)",
        _RESPONSES,
        CODEX,
        _codex_provider("gpt-6.1-sol", _codex_script),
    ),
    Client("codex-unknown", "Codex (unknown model)", _RESPONSES, CODEX, _codex_provider("my-model")),
    Client("codex-built-in", "Codex (built-in provider)", _RESPONSES, CODEX, _codex_built_in("gpt-5.5")),
    Client(
        "codex-built-in-default",
        "Codex (built-in provider, gpt-6.1-sol)",
        _RESPONSES,
        CODEX,
        _codex_built_in("gpt-6.1-sol", _codex_script),
    ),
    Client("gemini-cli", "Gemini CLI (API key)", _GEMINI, GEMINI_CLI, _gemini_key),
    Client("gemini-code-assist", "Gemini CLI (Code Assist)", "code-assist", GEMINI_CLI, _gemini_code_assist),
    Client("kimi-code", "Kimi Code", _CHAT, KIMI_CODE, _kimi_code),
    Client("qwen-code", "Qwen Code", _CHAT, QWEN_CODE, _qwen_code),
    Client("copilot", "GitHub Copilot CLI", _CHAT, COPILOT, _copilot),
    Client("cline", "Cline", _CHAT, CLINE, _cline),
    Client("continue", "Continue", _CHAT, CONTINUE, _continue),
    Client("droid", "Droid", _CHAT, DROID, _droid),
    Client("goose", "Goose", _CHAT, GOOSE, _goose),
    Client("hermes", "Hermes Agent", _CHAT, HERMES, _hermes),
    Client(
        "openclaw",
        "OpenClaw",
        _CHAT,
        OPENCLAW,
        _openclaw,
        timeout=300.0,
        moved="OPENCLAW_INTERNAL_CONTEXT",
    ),
    Client("pi", "Pi", _CHAT, PI, _pi),
    *(
        Client(
            f"opencode-{short}", f"opencode ({package})", speaks, OPENCODE, _opencode(package, version, model)
        )
        for short, package, speaks, version, model in (
            ("openai-compatible", "@ai-sdk/openai-compatible", _CHAT, "v1", "my-model"),
            ("openai", "@ai-sdk/openai", _RESPONSES, "v1", "gpt-5.5"),
            ("anthropic", "@ai-sdk/anthropic", _ANTHROPIC, "v1", "claude-sonnet-4-5"),
            ("google", "@ai-sdk/google", _GEMINI, "v1beta", "gemini-2.5-flash"),
        )
    ),
    *(
        Client(
            f"{package.name}-{short}",
            f"Vercel AI SDK{_remarks(package, short, provider)}",
            speaks,
            package,
            _program(package, "ai_sdk.mjs", short),
            finals=2,
            files=SDK_TURNS,
        )
        for package in (AI_SDK, AI_SDK_6, AI_SDK_5)
        for short, provider, speaks in (
            ("openai-compatible", "@ai-sdk/openai-compatible", _CHAT),
            ("openai-chat", "@ai-sdk/openai, chat", _CHAT),
            ("openai", "@ai-sdk/openai", _RESPONSES),
            ("anthropic", "@ai-sdk/anthropic", _ANTHROPIC),
            ("google", "@ai-sdk/google", _GEMINI),
        )
    ),
    *(
        Client(
            f"{prefix}-{short}",
            f"{language} {title}{_remarks(package, short, api)}",
            speaks,
            package,
            _python(package, python) if package.kind == "pip" else _program(package, "vendor_sdk.mjs", short),
            finals=2,
            files=SDK_TURNS,
        )
        for package, prefix, language in (
            (PYTHON_SDKS, "python", "Python"),
            (PYTHON_SDKS_BEFORE, "python-before", "Python"),
            (JS_SDKS, "js", "JavaScript"),
            (JS_SDKS_BEFORE, "js-before", "JavaScript"),
        )
        for short, title, api, speaks, python in (
            ("openai-chat", "openai", "chat.completions", _CHAT, "openai_chat"),
            ("openai-responses", "openai", "responses", _RESPONSES, "openai_responses"),
            ("anthropic", "anthropic", "", _ANTHROPIC, "anthropic_messages"),
            ("google", "google-genai", "", _GEMINI, "google_generate"),
            ("ollama", "ollama", "", _OLLAMA, "ollama_chat"),
        )
    ),
)
