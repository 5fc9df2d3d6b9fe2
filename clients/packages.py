"""What is installed to run the clients: exact versions, one folder per client below `.installed`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
ROOT = HERE.parent
INSTALLED = Path(os.environ.get("CLIENTS_DIR", HERE / ".installed"))


@dataclass(frozen=True)
class Package:
    """One installation. `program` must answer `--version` before it counts as there."""

    name: str
    kind: Literal["npm", "pip"]
    specs: tuple[str, ...]
    program: str = ""
    node22: bool = False
    node24: bool = False
    held: bool = False
    """An older major that people still use: its newest release would be another package."""

    @property
    def folder(self) -> Path:
        return INSTALLED / self.name

    @property
    def binaries(self) -> Path:
        if (
            self.program
            and self.kind == "npm"
            and not (self.folder / "node_modules/.bin" / self.program).exists()
        ):
            name = self.specs[0].rpartition("@")[0]
            if (own := self.folder / "node_modules" / name / "bin").is_dir():
                return own
        return self.folder / ("node_modules/.bin" if self.kind == "npm" else "bin")

    @property
    def pins(self) -> Path:
        """Versions of all that it needs: its own where it asks for others than the SDKs."""
        own = HERE / f"pins-{self.name}.txt"
        return own if own.is_file() else HERE / "pins.txt"

    @property
    def versions(self) -> dict[str, str]:
        """Package name -> exact version."""
        mark = "@" if self.kind == "npm" else "=="
        pairs = (spec.rpartition(mark) for spec in self.specs)
        return {name: version for name, _, version in pairs}


# Some clients want a newer Node than distributions ship; the npm package `node` brings one along.
NODE22 = Package("node22", "npm", ("node@22.23.3",), "node")
NODE24 = Package("node24", "npm", ("node@24.21.0",), "node")

# Claude Code is pinned because npm, under an older Node, silently picks the last release that allowed it.
CLAUDE_CODE = Package("claude-code", "npm", ("@anthropic-ai/claude-code@2.1.328",), "claude")
CODEX = Package("codex", "npm", ("@openai/codex@0.169.0",), "codex")
GEMINI_CLI = Package("gemini-cli", "npm", ("@google/gemini-cli@0.61.0",), "gemini")
# 1.18.18 is the last release with a build for every processor; the registry has this one for x64.
OPENCODE = Package("opencode", "npm", ("opencode-ai@1.18.33",), "opencode")
KIMI_CODE = Package("kimi-code", "npm", ("@moonshot-ai/kimi-code@2.1.0",), "kimi", node22=True)
QWEN_CODE = Package("qwen-code", "npm", ("@qwen-code/qwen-code@0.24.4",), "qwen", node22=True)
COPILOT = Package("copilot", "npm", ("@github/copilot@1.0.102",), "copilot")
CLINE = Package("cline", "npm", ("cline@3.0.65",), "cline")
CONTINUE = Package("continue", "npm", ("@continuedev/cli@1.5.47",), "cn")
# 0.87.1 is the last release whose dependencies are all in the registry.
PI = Package("pi", "npm", ("@earendil-works/pi-coding-agent@0.87.1",), "pi", node22=True)
OPENCLAW = Package("openclaw", "npm", ("openclaw@2026.9.6",), "openclaw", node24=True)
HERMES = Package("hermes", "pip", ("hermes-agent==0.19.0",), "hermes")
# The package with the program alone: its launcher wants the same version of all processors' packages.
DROID = Package("droid", "npm", ("@factory/cli-linux-x64@0.225.2",), "droid")
# The program alone: the package for all processors brings another user interface, and the SDK for it.
GOOSE = Package("goose", "npm", ("@aaif/goose-binary-linux-x64@1.52.0",), "goose")


def _ai_sdk(
    name: str, ai: str, openai: str, anthropic: str, google: str, compatible: str, *, held: bool = True
) -> Package:
    specs = (
        f"ai@{ai}",
        f"@ai-sdk/openai@{openai}",
        f"@ai-sdk/anthropic@{anthropic}",
        f"@ai-sdk/google@{google}",
        f"@ai-sdk/openai-compatible@{compatible}",
        "zod@4.6.7",
    )
    return Package(name, "npm", specs, node22=True, held=held)


# The last three majors: each checks answers against schemas of its own.
AI_SDK = _ai_sdk("ai-sdk", "7.0.173", "4.0.118", "4.0.105", "4.0.121", "3.0.92", held=False)
AI_SDK_6 = _ai_sdk("ai-sdk-6", "6.0.326", "3.0.141", "3.0.138", "3.0.141", "2.0.87")
AI_SDK_5 = _ai_sdk("ai-sdk-5", "5.0.277", "2.0.131", "2.0.112", "2.0.108", "1.0.61")
# The last two majors of each vendor's SDK. Below 1.0 the second number counts.
PYTHON_SDKS = Package(
    "python-sdks", "pip", ("openai==3.51.0", "anthropic==2.10.0", "google-genai==3.3.0", "ollama==0.6.3")
)
PYTHON_SDKS_BEFORE = Package(
    "python-sdks-before",
    "pip",
    ("openai==2.54.0", "anthropic==1.17.0", "google-genai==2.34.0", "ollama==0.5.4"),
    held=True,
)
JS_SDKS = Package(
    "js-sdks",
    "npm",
    ("openai@7.55.0", "@anthropic-ai/sdk@1.10.0", "@google/genai@3.1.0", "ollama@0.6.4"),
    node22=True,
)
JS_SDKS_BEFORE = Package(
    "js-sdks-before",
    "npm",
    ("openai@6.49.0", "@anthropic-ai/sdk@0.137.0", "@google/genai@2.32.0", "ollama@0.5.18"),
    node22=True,
    held=True,
)

CLIENT_PACKAGES: tuple[Package, ...] = (
    CLAUDE_CODE,
    CODEX,
    GEMINI_CLI,
    KIMI_CODE,
    QWEN_CODE,
    OPENCODE,
    COPILOT,
    CLINE,
    CONTINUE,
    PI,
    OPENCLAW,
    HERMES,
    DROID,
    GOOSE,
    AI_SDK,
    AI_SDK_6,
    AI_SDK_5,
    PYTHON_SDKS,
    PYTHON_SDKS_BEFORE,
    JS_SDKS,
    JS_SDKS_BEFORE,
)
AIDER = Package("aider", "pip", ("aider-chat==0.86.2",), "aider")
LLM = Package("llm", "pip", ("llm==0.36",), "llm")

PACKAGES: tuple[Package, ...] = (NODE22, NODE24, *CLIENT_PACKAGES, AIDER, LLM)
