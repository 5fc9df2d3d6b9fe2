"""Start every client with `wireglot run`, each in a terminal and a home of its own, on the demo model.

python -m clients.launched [--only REGEX]

PASS means: it read a file by tool (or echoed) through a gateway that was started for it, its status came
back, no file of a home with settings of all clients differs and the new ones are the client's own, the
settings of its project, which pointed elsewhere, are the same to the byte, and neither the gateway nor any
file of the command is left. The exit code is 1 if a client failed, 2 if one is not installed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clients.install import is_there, node_path
from clients.packages import (
    AIDER,
    CLAUDE_CODE,
    CLINE,
    CODEX,
    CONTINUE,
    COPILOT,
    DROID,
    GEMINI_CLI,
    GOOSE,
    HERMES,
    KIMI_CODE,
    LLM,
    OPENCLAW,
    OPENCODE,
    PI,
    QWEN_CODE,
    ROOT,
    Package,
)
from clients.seat import NO_NETWORK, NOWHERE, Seat
from clients.terminal import Terminal

SECONDS = 300.0
_END_SECONDS = 30.0
_READ_FILE = "[[call-tool:read_file]]"
_OTHER_OPENAI = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": NOWHERE}, "models": {"x": {}}}


_CLINE_OTHER = {
    "version": 1,
    "lastUsedProvider": "openai-compatible",
    "modes": {},
    "providers": {
        "openai-compatible": {
            "settings": {
                "provider": "openai-compatible",
                "apiKey": "other",
                "model": "x",
                "baseUrl": NOWHERE,
            },
            "updatedAt": "2026-01-01T00:00:00.000Z",
            "tokenSource": "manual",
        }
    },
}
# Of the same name as the one that is asked for, which is why it is preferred.
_DROID_OTHER = {
    "model": "demo/demo",
    "displayName": "demo/demo",
    "baseUrl": f"{NOWHERE}/v1",
    "apiKey": "sk-the-users-own",
    "provider": "generic-chat-completion-api",
    "maxOutputTokens": 16_000,
}
_QWEN_OTHER = {"envKey": "OTHER_KEY", "baseUrl": f"{NOWHERE}/v1"}
_OPENCLAW_OTHER = {
    "baseUrl": f"{NOWHERE}/v1",
    "apiKey": "sk-the-users-own",
    "api": "openai-completions",
    "models": [{"id": "x", "name": "x", "contextWindow": 200_000, "maxTokens": 16_000}],
}
_AIDER_OTHER = (
    f"model: openai/other\nopenai-api-base: {NOWHERE}\nopenai-api-key: sk-the-users-own\n"
    f"set-env:\n  - OPENAI_API_BASE={NOWHERE}\napi-key:\n  - openai=sk-the-users-own\n"
)
SETTINGS: Mapping[str, str] = {
    ".aider.conf.yml": "dark-mode: true\n",
    ".bashrc": "export EDITOR=vi\n",
    ".claude.json": json.dumps({"hasCompletedOnboarding": True, "theme": "dark", "numStartups": 3}),
    ".claude/settings.json": json.dumps({"model": "opus", "permissions": {"allow": ["Bash(ls:*)"]}}),
    ".cline/data/settings/providers.json": json.dumps(_CLINE_OTHER),
    ".codex/config.toml": 'model = "gpt-5.5"\n',
    ".continue/config.yaml": "name: Mine\nversion: 1.0.0\nschema: v1\nmodels: []\n",
    ".copilot/settings.json": json.dumps({"theme": "dark"}),
    ".config/goose/config.yaml": f"GOOSE_PROVIDER: openai\nGOOSE_MODEL: gpt-5.5\nOPENAI_HOST: {NOWHERE}\n",
    ".config/io.datasette.llm/default_model.txt": "gpt-4o-mini",
    ".config/io.datasette.llm/keys.json": json.dumps({"openai": "sk-the-users-own"}),
    ".config/opencode/opencode.json": json.dumps(
        {"$schema": "https://opencode.ai/config.json", "autoupdate": False}  # it adds the first by itself
    ),
    ".factory/settings.json": json.dumps({"theme": "dark", "model": "gpt-5.5"}),
    ".gemini/settings.json": json.dumps({"ui": {"theme": "GitHub"}}),
    ".hermes/config.yaml": f"model:\n  provider: custom\n  base_url: {NOWHERE}\n  default: other\n",
    ".kimi-code/config.toml": 'default_model = "kimi-k3"\n',
    ".openclaw/openclaw.json": json.dumps({"agents": {"defaults": {"model": {"primary": "openai/gpt-5.5"}}}}),
    ".pi/agent/settings.json": json.dumps({"theme": "dark"}),
    ".qwen/settings.json": json.dumps({"$version": 4, "privacy": {"usageStatisticsEnabled": False}}),
}
"""A home with typical settings of every client."""
_OWN: Mapping[str, tuple[str, ...]] = {
    "aider": (".aider/",),
    "claude": (
        *(".claude.json", ".claude/", ".cache/claude"),
        *(".config/mimeapps.list", ".local/share/applications/claude-code"),  # of its screen
    ),
    "cline": (".cline/",),
    "codex": (".codex/",),
    "continue": (".continue/",),
    "copilot": (".copilot/", ".cache/Microsoft/DeveloperTools/", ".cache/copilot/"),
    "droid": (".factory/",),
    "gemini": (".gemini/",),
    "goose": (".config/goose/", ".local/share/goose/", ".local/state/goose/"),
    "hermes": (".hermes/", ".rustup/"),
    "kimi": (".kimi-code/",),
    "llm": (".config/io.datasette.llm/",),
    "opencode": (".config/opencode/", ".local/share/opencode/", ".local/state/opencode/", ".cache/opencode/"),
    "openclaw": (".openclaw/",),
    "pi": (".pi/",),
    "qwen": (".qwen/",),
}
"""Where a client keeps its history, caches and ids."""
_REWRITTEN = (".claude.json",)
"""History that has its file among the settings."""
_WIREGLOT = ".local/share/wireglot"


def snapshot(home: Path) -> dict[str, str]:
    """The hash of every file in a home, by its name there, but for those of Wireglot itself."""
    found = {}
    for folder, below, names in os.walk(home):
        if Path(folder) == home / _WIREGLOT:
            below.clear()
            continue
        for file in (Path(folder, name) for name in names):
            if file.is_file():
                found[str(file.relative_to(home))] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def foreign_changes(client: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Files that differ, are gone, or are new, and are not the client's own history."""
    changed = [name for name, digest in before.items() if after.get(name) != digest]
    new = [name for name in after if name not in before and not name.startswith(_OWN[client])]
    return sorted({*changed, *new} - set(_REWRITTEN))


@dataclass(frozen=True)
class Launched:
    """One client: what it is given, and settings of its own that lead nowhere."""

    name: str
    package: Package
    arguments: Callable[[str], list[str]]
    home: Mapping[str, str] = field(default_factory=dict)
    project: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    """Of `wireglot run`. None are needed: without a provider's key the demo model answers."""
    tools: bool = True
    """Whether it can read files; one that cannot echoes."""
    hint: str = ""
    screen: str = ""
    """What its own screen shows once it is there: it is typed into then. Empty: it gets its prompt as an
    argument, and ends by itself."""


LAUNCHED: tuple[Launched, ...] = (
    Launched(
        "claude",
        CLAUDE_CODE,
        lambda prompt: ["-p", prompt, "--dangerously-skip-permissions"],
        {
            ".claude/settings.json": json.dumps(
                {"model": "opus", "env": {"ANTHROPIC_BASE_URL": NOWHERE, "ANTHROPIC_MODEL": "nothing"}}
            )
        },
        options=("--model", "demo/demo"),
        # It refuses to skip permissions for root outside a sandbox. The key is for nobody but its provider.
        env={"IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1", "ANTHROPIC_API_KEY": "sk-ant-the-users-own"},
    ),
    Launched(
        "codex",
        CODEX,
        lambda prompt: [
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            prompt,
        ],
        {
            ".codex/config.toml": 'model = "gpt-5.5"\nmodel_provider = "other"\n\n[model_providers.other]\n'
            f'name = "Other"\nbase_url = "{NOWHERE}/v1"\nwire_api = "responses"\n'
        },
    ),
    *(
        Launched(
            name,
            GEMINI_CLI,
            lambda prompt: ["-y", "-p", prompt],
            {
                ".gemini/settings.json": json.dumps({"security": {"auth": auth}}),
                ".gemini/.env": f"GOOGLE_GEMINI_BASE_URL={NOWHERE}\nCODE_ASSIST_ENDPOINT={NOWHERE}\n",
            },
            env={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GOOGLE_GEMINI_BASE_URL": NOWHERE},
            hint=_READ_FILE,
        )
        for name, auth in (
            ("gemini", {"selectedType": "gemini-api-key"}),
            ("gemini-google", {"selectedType": "oauth-personal"}),
            ("gemini-new", {}),
        )
    ),
    Launched(
        "kimi",
        KIMI_CODE,
        lambda prompt: ["-p", prompt],
        {
            ".kimi-code/config.toml": 'default_model = "other"\n\n'
            '[models.other]\nprovider = "other"\nmodel = "x"\n'
            f'max_context_size = 100000\n\n[providers.other]\ntype = "kimi"\nbase_url = "{NOWHERE}/v1"\n'
            'api_key = "sk-the-users-own"\n'
        },
        env={"KIMI_MODEL_BASE_URL": NOWHERE},
    ),
    Launched(
        "opencode",
        OPENCODE,
        lambda prompt: ["run", "--auto", prompt],
        {
            ".config/opencode/opencode.json": json.dumps(
                {
                    "$schema": "https://opencode.ai/config.json",  # it adds that by itself
                    "model": "other/x",
                    "autoupdate": False,
                    "provider": {"other": _OTHER_OPENAI},
                    "enabled_providers": ["other"],
                    "agent": {"build": {"model": "other/x"}},
                }
            )
        },
        env={
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    ),
    Launched(
        "qwen",
        QWEN_CODE,
        lambda prompt: ["-y", "-p", prompt],
        {
            ".qwen/settings.json": json.dumps(
                {
                    "$version": 4,  # it writes older ones again
                    "security": {
                        "auth": {"selectedType": "openai", "baseUrl": NOWHERE, "apiKey": "sk-the-users-own"}
                    },
                    "model": {"name": "other"},
                    "fastModel": "other",
                    "modelProviders": {
                        "openai": [{"id": name, **_QWEN_OTHER} for name in ("demo/demo", "other")]
                    },
                    "env": {"OTHER_KEY": "sk-the-users-own"},
                    "privacy": {"usageStatisticsEnabled": False},
                }
            )
        },
        hint=_READ_FILE,
    ),
    Launched(
        "llm",
        LLM,
        lambda prompt: [prompt],
        {
            ".config/io.datasette.llm/keys.json": json.dumps({"openai": "sk-the-users-own"}),
            ".config/io.datasette.llm/default_model.txt": "other",
            ".config/io.datasette.llm/extra-openai-models.yaml": (
                f"- model_id: other\n  model_name: x\n  api_base: {NOWHERE}\n"
            ),
        },
        tools=False,
    ),
    Launched(
        "aider",
        AIDER,
        lambda prompt: ["--no-git", "--yes-always", "--no-check-update", "--message", prompt],
        {".aider.conf.yml": _AIDER_OTHER},
        project={
            ".env": f"OPENAI_API_BASE={NOWHERE}\nOPENAI_API_KEY=sk-the-users-own\n",
            ".aider.conf.yml": _AIDER_OTHER,
        },
        env={"AIDER_ANALYTICS": "false"},
        tools=False,
    ),
)


LAUNCHED += (
    Launched(
        "copilot",
        COPILOT,
        lambda prompt: ["-p", prompt, "--allow-all-tools"],
        env={"COPILOT_PROVIDER_BASE_URL": NOWHERE, "COPILOT_AUTO_UPDATE": "false"},
        hint="[[call-tool:view]]",
    ),
    Launched("cline", CLINE, lambda prompt: [prompt], hint="[[call-tool:read_files]]"),
    Launched(
        "continue",
        CONTINUE,
        lambda prompt: ["--auto", "-p", prompt],
        {
            ".continue/config.yaml": "name: Mine\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: other\n"
            f"    provider: openai\n    model: x\n    apiBase: {NOWHERE}\n    roles: [chat]\n"
        },
        hint="[[call-tool:Read]]",
    ),
    Launched(
        "droid",
        DROID,
        lambda prompt: ["exec", prompt],
        {".factory/settings.json": json.dumps({"model": "custom:demo/demo", "customModels": [_DROID_OTHER]})},
        hint="[[call-tool:Read]]",
    ),
    Launched(
        "goose",
        GOOSE,
        lambda prompt: ["run", "--with-builtin", "developer", "-t", prompt],
        env={"GOOSE_MODE": "auto", "OPENAI_HOST": NOWHERE},
        hint="[[call-tool:shell]]",
    ),
    Launched(
        "hermes",
        HERMES,
        lambda prompt: ["-z", prompt],
        {".hermes/.env": f"OPENAI_BASE_URL={NOWHERE}/v1\nOPENAI_API_KEY=sk-the-users-own\n"},
        hint="[[call-tool:read_file]]",
    ),
    Launched(
        "openclaw",
        OPENCLAW,
        lambda prompt: ["agent", "--local", "--session-id", "one", "-m", prompt],
        {
            ".openclaw/openclaw.json": json.dumps(
                {
                    "models": {"providers": {"other": _OPENCLAW_OTHER}},
                    "agents": {
                        "defaults": {"model": {"primary": "other/x"}},
                        "list": [{"id": "main", "default": True, "model": "other/x"}],
                    },
                }
            )
        },
        env={"OPENCLAW_OFFLINE": "1"},
        hint="[[call-tool:read]]",
    ),
    Launched(
        "pi",
        PI,
        lambda prompt: ["-p", prompt],
        {
            ".pi/agent/models.json": json.dumps(
                {
                    "providers": {
                        "openai": {"baseUrl": NOWHERE},
                        "other": {
                            "baseUrl": NOWHERE,
                            "apiKey": "sk-the-users-own",
                            "api": "openai-completions",
                            "models": [{"id": "x", "name": "x"}],
                        },
                    }
                }
            ),
            ".pi/agent/settings.json": json.dumps({"defaultProvider": "other", "defaultModel": "x"}),
        },
        env={"PI_OFFLINE": "1"},
        hint="[[call-tool:read]]",
    ),
)


_TYPED = "[[demo:text 3]]"
_TYPED_ANSWER = "thedemomodel"
"""Its first three words. Screens put cursor moves where spaces are."""
_QUIET_SECONDS = 2.0
_TWICE_SECONDS = 0.3
_SCREENS = (
    Launched(
        "claude-screen",
        CLAUDE_CODE,
        lambda prompt: [],
        env={"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        screen="Claude Code",
    ),
    Launched("codex-screen", CODEX, lambda prompt: [], screen="OpenAI Codex"),
    Launched(
        "gemini-screen",
        GEMINI_CLI,
        lambda prompt: [],
        env={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
        screen="Gemini CLI",
    ),
)


def on_screen(launched: Launched, folder: Path) -> str:
    """A question typed into the client's own screen, its answer, and Ctrl-C. Why it failed, or nothing."""
    with Seat("", "", folder) as seat:
        written(seat.home, {**SETTINGS, **_trusting(launched, seat.project)})
        home = snapshot(seat.home)
        temporary = seat.home.parent / "tmp"
        client = launched.name.partition("-")[0]
        command = [sys.executable, "-m", "wireglot.cli", "run", client]
        env = {**_environment(launched, seat), "TMPDIR": str(temporary)}
        terminal = Terminal(command, seat.project, env)
        seen = terminal.wait_for(launched.screen, SECONDS)
        for typed in (_TYPED, "\r", "\x03"):
            terminal.settle(_QUIET_SECONDS, _END_SECONDS)
            terminal.type(typed)
        terminal.settle(_TWICE_SECONDS, _TWICE_SECONDS)  # some want it twice, and soon
        terminal.type("\x03")
        status = terminal.end(_END_SECONDS)
        shown = terminal.shown
        (folder / "terminal").write_text(shown)
        if not seen:
            return "its screen was not shown"
        if _TYPED_ANSWER not in re.sub(r"\s", "", shown):
            return "the answer was not shown"
        if status is None:
            return "Ctrl-C did not end it"
        # A screen takes notes where it keeps which projects are trusted.
        after = {**snapshot(seat.home), **{name: home[name] for name in _trusting(launched, seat.project)}}
        if changed := foreign_changes(client, home, after):
            return f"changed: {', '.join(changed)}"
        return _left_behind(shown, temporary)


def _trusting(launched: Launched, project: Path) -> dict[str, str]:
    """What each keeps once a person has said that the project may be trusted."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    claude = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(project): trusted}}
    codex = f'[projects."{project}"]\ntrust_level = "trusted"\n\n[tui]\nscreen_reader_detection_done = true\n'
    return {
        "claude-screen": {".claude.json": json.dumps(claude)},
        "codex-screen": {".codex/config.toml": codex},
    }.get(launched.name, {})


def one(launched: Launched, folder: Path) -> str:
    """Why it failed; nothing if it passed."""
    with Seat("", "", folder) as seat:
        written(seat.home, {**SETTINGS, **launched.home})
        given = written(seat.project, launched.project)
        before = {path: path.read_bytes() for path in given}
        home = snapshot(seat.home)
        prompt = f"{seat.prompt} {launched.hint}" if launched.tools else f"[[demo:echo]] {seat.final}"
        client = launched.name.partition("-")[0]
        run = [sys.executable, "-m", "wireglot.cli", "run", client, *launched.options]
        command = [*run, "--", *launched.arguments(prompt)]
        temporary = seat.home.parent / "tmp"
        env = {**_environment(launched, seat), "TMPDIR": str(temporary)}
        terminal = Terminal(command, seat.project, env)
        status = terminal.end(SECONDS)
        shown = terminal.shown
        (folder / "terminal").write_text(shown)
        if status is None:
            return f"still running after {SECONDS:.0f} s"
        if status:
            return f"exit code {status}"
        if shown.count(seat.final) < (1 if launched.tools else 2 if prompt in shown else 1):
            return "the final text was not shown"
        changed = [path.name for path, content in before.items() if path.read_bytes() != content]
        changed += foreign_changes(client, home, snapshot(seat.home))
        if changed:
            return f"changed: {', '.join(changed)}"
        return _left_behind(shown, temporary)


def _left_behind(shown: str, temporary: Path) -> str:
    """What is still there of the command after a while: it ends by itself, a moment after the client."""
    found = re.search(r" on http://127\.0\.0\.1:(\d+) \(private", shown)
    if found is None:
        return "it did not say what was set"
    deadline = time.monotonic() + _END_SECONDS
    while True:
        files = list(temporary.glob("wireglot-run-*"))
        listens = _listens(int(found[1]))
        if not files and not listens:
            return ""
        if time.monotonic() > deadline:
            return "its gateway is still there" if listens else f"left {files[0].name}"
        time.sleep(0.1)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def written(below: Path, files: Mapping[str, str]) -> set[Path]:
    for name, text in files.items():
        path = below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {below / name for name in files}


def _environment(launched: Launched, seat: Seat) -> dict[str, str]:
    return {
        "HOME": str(seat.home),
        "PATH": node_path(launched.package),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "DO_NOT_TRACK": "1",
        "PYTHONPATH": str(ROOT / "src"),
        **NO_NETWORK,
        **launched.env,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="clients.launched", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="clients or packages whose name matches")
    options, _ = parser.parse_known_args(arguments)  # those of clients.run stand beside it in the Makefile
    wanted = [
        each
        for each in (*LAUNCHED, *_SCREENS)
        if re.search(options.only, each.name) or re.search(options.only, each.package.name)
    ]
    missing = {each.package.name for each in wanted if not is_there(each.package)}
    if missing:
        print(f"not installed: {', '.join(sorted(missing))}")
        return 2
    failures = 0
    runs = Path(os.environ.get("CLIENTS_RUNS", tempfile.gettempdir())) / "wireglot-launched"
    for each in wanted:
        started = time.monotonic()
        reason = (on_screen if each.screen else one)(each, runs / each.name)
        failures += bool(reason)
        seconds = time.monotonic() - started
        verdict = "FAIL" if reason else "PASS"
        print(f"{verdict}  wireglot run {each.name:15} {seconds:5.1f} s  {reason}", flush=True)
    where = f"; terminals in {runs}" if failures else ""
    print(f"{len(wanted) - failures} of {len(wanted)} passed{where}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
