"""Libraries that applications call models with, in JavaScript and Python: each case on every demo model.

They speak Gemini Interactions, generateContent and Ollama's native API. A case is what an application does: a
text, a stream, a loop with a tool, JSON for a schema, a conversation that the gateway keeps, an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from proofs.judges import environments
from proofs.judges.javascript import node
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import LiveGateway

MODELS: Final = (
    *("demo", "demo-anthropic", "demo-openai-chat", "demo-openai-responses"),
    *("demo-gemini", "demo-gemini-interactions", "demo-ollama"),
)
_HERE: Final = Path(__file__).parent
_SECONDS: Final = 600
_LIBRARIES: Final = ("ai", "@ai-sdk/google", "@google/genai", "ollama", "zod")
_PACKAGES: Final = ("google-adk", "langchain-ollama", "llm", "llm-ollama", "ollama")


def javascript() -> Verdict:
    folder = environments.FOLDER / "apps-javascript"
    missing = [name for name in _LIBRARIES if not (folder / "node_modules" / name).is_dir()]
    if missing:
        raise environments.Missing(f"npm install --prefix {folder} {' '.join(_LIBRARIES)}")
    about = (
        "Vercel's AI SDK (generateContent, interactions), @google/genai (interactions) and ollama's package"
    )
    versions = [f"{name} {_version(folder, name)}" for name in _LIBRARIES[:4]]
    return _verdict("apps-javascript", versions, about, (node(), str(_HERE / "apps.mjs"), str(folder)))


def python() -> Verdict:
    interpreter = environments.python("apps-python", *_PACKAGES)
    about = "Google's ADK (generateContent, interactions), langchain-ollama, and llm with llm-ollama"
    names = ("google-adk", "langchain-ollama", "llm-ollama")
    versions = [f"{name} {environments.version(interpreter, name)}" for name in names]
    return _verdict("apps-python", versions, about, (str(interpreter), str(_HERE / "ask_apps.py")))


JUDGES: Final = {"apps-javascript": javascript, "apps-python": python}


def _version(folder: Path, name: str) -> str:
    package = json.loads((folder / "node_modules" / name / "package.json").read_bytes())
    return str(package["version"])


def _verdict(name: str, versions: Sequence[str], about: str, command: Sequence[str]) -> Verdict:
    with LiveGateway() as gateway, tempfile.TemporaryDirectory() as folder:
        # The libraries read them while they are imported.
        variables = {
            "GOOGLE_API_KEY": "k",
            "GOOGLE_GEMINI_BASE_URL": gateway.url,
            "OLLAMA_HOST": gateway.url,
            "LLM_USER_PATH": folder,
        }
        done = subprocess.run(
            [*command, gateway.url, ",".join(MODELS)], env={**os.environ, **variables},
            capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    if done.returncode:
        raise environments.Missing(f"{Path(command[1]).name}: {done.stderr.strip()[-2000:]}")
    found = json.loads(done.stdout)
    failed = tuple(Case(each["name"], each["problem"][:300]) for each in found if each["problem"])
    return Verdict(
        name, ", ".join(versions), f"{about}, on {len(MODELS)} models", len(found) - len(failed), failed
    )
