"""`python -m proofs.judges [NAME ...]`: run foreign judges against the gateway and record what they found.

The outcome of each goes to docs/results/judges/NAME.json, from which docs/reference/judges.md is made.
Exit status 1: a case failed that did not fail at the recorded run, or a judge that was named cannot run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from proofs.judges import (
    anthropic_sdk_python,
    anthropic_typescript,
    apps,
    autobahn,
    envoy,
    google_genai,
    js_genai,
    kimi_verifier,
    langchain,
    llama_server,
    llm_comply,
    open_responses,
    openai_agents,
    openai_node,
    openai_python,
    pydantic_ai,
    real_model,
    results,
    schemas,
    schemathesis_run,
    vllm_messages,
    vllm_server,
)
from proofs.judges.environments import Missing
from proofs.judges.results import Verdict

JUDGES: Final[dict[str, Callable[[], Verdict]]] = {
    "autobahn": autobahn.judge,
    "llm-comply": llm_comply.judge,
    "open-responses": open_responses.judge,
    "schemas": schemas.judge,
    "schemathesis": schemathesis_run.judge,
    "anthropic-sdk-python": anthropic_sdk_python.judge,
    "google-genai": google_genai.judge,
    **apps.JUDGES,
    **langchain.JUDGES,
    "openai-agents": openai_agents.judge,
    "openai-python": openai_python.judge,
    "pydantic-ai": pydantic_ai.judge,
    "anthropic-sdk-typescript": anthropic_typescript.judge,
    "openai-node": openai_node.judge,
    "js-genai": js_genai.judge,
    "kimi-vendor-verifier": kimi_verifier.judge,
    "envoy-ai-gateway": envoy.judge,
    "llama-server": llama_server.judge,
    "vllm-messages": vllm_messages.judge,
    "vllm-server": vllm_server.judge,
    "real-model": real_model.judge,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.judges", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(JUDGES)}; none: all")
    parser.add_argument("--no-record", action="store_true", help="write nothing")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(JUDGES)):
        parser.error(f"unknown judge {', '.join(unknown)}: expected {', '.join(JUDGES)}")
    known = {each.judge: {case.name for case in each.failed} for each in results.verdicts()}
    wrong = 0
    for name in options.names or JUDGES:
        try:
            verdict = JUDGES[name]()
        except Missing as reason:
            print(f"{name}: not run: {reason}", flush=True)
            wrong += name in options.names
            continue
        print(verdict, flush=True)
        for case in verdict.failed:
            is_new = case.name not in known.get(name, ())
            wrong += is_new
            print(f"    {'new: ' if is_new else ''}{case.name}: {case.reason}")
        if not options.no_record:
            results.write(verdict)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
