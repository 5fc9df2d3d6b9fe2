"""A complete agent, on any provider: it lists and reads the files of this folder until it can answer.

    python examples/agent_loop.py --demo 'What does it say? [[demo:tool read_file {"path": "README.md"}]]'
    python examples/agent_loop.py --provider anthropic --model claude-opus-5 "What is this project about?"

The key comes from the provider's own variable; `wireglot providers` lists both.
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from wireglot.history import Asked, Assistant, Call, History, Tool
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.providers.endpoints import endpoint
from wireglot_core.providers.spec import ProviderSpec, provider

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [Tool("list_files", "List a folder.", SCHEMA), Tool("read_file", "Read a text file.", SCHEMA)]


def run(call: Call) -> tuple[str, bool]:
    """What the tool says, and whether it failed: the model is informed, and may try again."""
    try:
        path = Path(call.input["path"]).resolve()
        if not path.is_relative_to(Path.cwd()):
            return "outside of this folder", True
        if call.name == "read_file":
            return path.read_text(encoding="utf-8")[:50_000], False
        return "\n".join(sorted(entry.name for entry in path.iterdir())), False
    except (OSError, ValueError, KeyError, TypeError) as problem:
        return call.problem or f"{type(problem).__name__}: {problem}", True


def send(spec: ProviderSpec, model: str, asked: Asked) -> Assistant:
    """Post the request, and show the text of the answer while it comes."""
    key = next((os.environ[name] for name in spec.api_key_env if name in os.environ), "")
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", **spec.headers}
    if spec.auth != "none":
        headers |= {"authorization": f"Bearer {key}"} if spec.auth == "bearer" else {spec.auth: key}
    url, body = endpoint(spec, asked.dialect, "stream", model), json.dumps(asked.value).encode()
    answer = asked.answer()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
            for step in answer.steps(iter(lambda: reply.read1(65536), b"")):
                if step.kind == "text":
                    sys.stdout.write(step.delta)
                    sys.stdout.flush()
    except urllib.error.HTTPError as problem:
        answer.whole(problem.read(), problem.code)
    if answer.failed is not None:
        sys.exit(f"{answer.failed.kind}: {answer.failed.message}")
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description="An agent that reads files, on any provider.")
    parser.add_argument("prompt")
    parser.add_argument("--provider", default="anthropic")
    parser.add_argument("--dialect", default="", help="one of the provider's, if it speaks several")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--demo", action="store_true", help="ask a scripted model inside this process")
    given = parser.parse_args()
    spec, fit_to = provider(given.provider), given.provider
    if given.demo:
        spec, fit_to = ProviderSpec("demo", "Demo", ("openai-chat",), ScriptedUpstream().start().url), None
    dialect = given.dialect or spec.dialects[0]
    history = History()
    history.user(given.prompt)
    while True:
        asked = history.request(dialect, model=given.model, provider=fit_to, tools=TOOLS, stream=True)
        history.assistant(send(spec, given.model, asked))
        sys.stdout.write("\n")
        if not history.pending:
            return
        for call in history.pending:
            text, failed = run(call)
            sys.stdout.write(
                f"[{call.name} {call.arguments}: {text if failed else f'{len(text)} characters'}]\n"
            )
            history.result(call, text, error=failed)


if __name__ == "__main__":
    main()
