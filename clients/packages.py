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
CLAUDE_CODE = Package("claude-code", "npm", ("@anthropic-ai/claude-code@2.1.326",), "claude")
CODEX = Package("codex", "npm", ("@openai/codex@0.169.0",), "codex")
GEMINI_CLI = Package("gemini-cli", "npm", ("@google/gemini-cli@0.61.0",), "gemini")
# 1.18.18 is the last release with a build for every processor.
OPENCODE = Package("opencode", "npm", ("opencode-ai@1.18.18",), "opencode")
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
AI_SDK = Package(
    "ai-sdk",
    "npm",
    (
        "ai@7.0.169",
        "@ai-sdk/openai@4.0.114",
        "@ai-sdk/anthropic@4.0.102",
        "@ai-sdk/google@4.0.117",
        "@ai-sdk/openai-compatible@3.0.90",
        "zod@4.6.7",
    ),
    node22=True,
)
PYTHON_SDKS = Package("python-sdks", "pip", ("openai==3.51.0", "anthropic==2.9.0", "google-genai==3.3.0"))

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
    PYTHON_SDKS,
)
AIDER = Package("aider", "pip", ("aider-chat==0.86.2",), "aider")
LLM = Package("llm", "pip", ("llm==0.36",), "llm")

PACKAGES: tuple[Package, ...] = (NODE22, NODE24, *CLIENT_PACKAGES, AIDER, LLM)
