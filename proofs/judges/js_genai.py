"""Google's SDK for JavaScript with the recordings of its system tests: real requests and Google's answers.

The SDK sends each recorded request to the recorded answer itself, through a gateway that forwards it, and
through two gateways that translate it into another dialect and back. Forwarded, it must read the very same;
translated, the same text, calls, reason to stop and usage.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from proofs.judges import environments
from proofs.judges.javascript import node
from proofs.judges.reasons import Reason, Sorted, sort
from proofs.judges.results import Case, Verdict
from wireglot.testing.live_gateway import BASES, LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream

ASK: Final = Path(__file__).with_name("ask_genai.mjs")
RECORDINGS: Final = "test/system/recordings"
WAYS: Final = ("", "openai-responses", "anthropic")
REASONS: Final = (
    Reason(
        "ended before it was complete",
        "the recorded stream is empty: an answer that does not end is an error",
    ),
    Reason(r"\['inlineData'\]", "Messages has no images in answers"),
)
_SECONDS: Final = 600


class Exchange(NamedTuple):
    name: str
    request: dict[str, Any]
    answer: Behaviour


def judge() -> Verdict:
    folder = environments.checkout("js-genai", "googleapis/js-genai")
    sdk = environments.FOLDER / "genai" / "node_modules" / "@google" / "genai"
    if not sdk.is_dir():
        raise environments.Missing(f"npm install --prefix {environments.FOLDER / 'genai'} @google/genai")
    found, others = list[Exchange](), list[Case]()
    for path in sorted((folder / RECORDINGS).glob("*.json")):
        for at, each in enumerate(json.loads(path.read_bytes())["interactions"]):
            name = f"{path.stem} {at}"
            if (exchange := _exchange(name, len(found), each)) is not None:
                found.append(exchange)
            else:
                others.append(Case(name, "neither generateContent nor streamGenerateContent"))
    direct = _ask(sdk, found, None)
    tests = [
        (
            f"{'over ' + way if way else 'forwarded'}: {exchange.name}",
            _difference(theirs, ours, exact=not way),
        )
        for way in WAYS
        for exchange, theirs, ours in zip(found, direct, _ask(sdk, found, way), strict=True)
    ]
    version = json.loads((sdk / "package.json").read_bytes())["version"]
    return Verdict(
        "js-genai",
        f"{version}, {environments.commit(folder)}",
        "Google's SDK for JavaScript with the recordings of its system tests, forwarded and translated to "
        "two dialects and back",
        *sort(tests, REASONS).and_also(Sorted(not_run=tuple(others))),
    )


def _exchange(name: str, number: int, recorded: dict[str, Any]) -> Exchange | None:
    request, response = recorded["request"], recorded["response"]
    path, _, verb = request["url"].partition("?")[0].rpartition(":")
    if verb not in ("generateContent", "streamGenerateContent"):
        return None
    stream = verb.startswith("stream")
    body = request["bodySegments"][0]
    # The number in the model's name tells the upstream which answer to give.
    asked = {"model": f"{path.rpartition('/')[2]}-r{number}", "stream": stream, "body": body}
    answers = [json.dumps(each).encode() for each in response.get("bodySegments") or [{}]]
    status = response["statusCode"]
    if stream and status == 200:
        answer = Behaviour(pieces=tuple(b"data: " + each + b"\r\n\r\n" for each in answers))
    else:
        answer = Behaviour(status=status, body=answers[0])
    return Exchange(name, asked, answer)


def _ask(sdk: Path, exchanges: list[Exchange], way: str | None) -> list[dict[str, Any]]:
    """What the SDK reads: directly (None), forwarded, or translated to the dialect `way` and back."""
    answers = {exchange.request["model"]: exchange.answer for exchange in exchanges}

    def decide(request: Recorded) -> Behaviour:
        return answers[request.path.rpartition("/")[2].partition(":")[0]]

    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream(decide=decide))
        url = upstream.url
        if way is not None:
            url = stack.enter_context(LiveGateway(_configuration("gemini", url))).url
        if way:
            url = stack.enter_context(LiveGateway(_configuration(way, url))).url
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="wireglot-judge-"))
        file = Path(temporary, "requests.json")
        file.write_text(json.dumps([exchange.request for exchange in exchanges]), encoding="utf-8")
        done = subprocess.run(
            [node(), str(ASK), str(sdk), str(file), url],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    if not done.stdout:
        raise environments.Missing(done.stderr[-2000:])
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


def _configuration(dialect: str, url: str) -> str:
    return (
        f'[providers.mine]\ndialect = "{dialect}"\nbase_url = "{url}{BASES[dialect]}"\napi_key = "k"\n'
        "retry = { retries = 0 }\nbreaker = { consecutive = 1000000, minimum = 1000000 }\n"
        '[models]\n"*" = "mine/*"\n'
    )


def _difference(theirs: dict[str, Any], ours: dict[str, Any], *, exact: bool) -> str:
    if "status" in theirs or "status" in ours:
        same = theirs.get("status") == ours.get("status")
        return (
            ""
            if same
            else f"{ours.get('status', 200)} {ours.get('message', '')} instead of {theirs.get('status', 200)}"
        )
    if exact:
        return "" if theirs == ours else "the answers differ"
    mine, expected = _facts(ours), _facts(theirs)
    return "; ".join(
        f"{key} {mine[key]!r} instead of {value!r}" for key, value in expected.items() if mine[key] != value
    )


def _facts(told: dict[str, Any]) -> dict[str, Any]:
    parts = list(_parts(told))
    usage: dict[str, int] = next(
        (each["usageMetadata"] for each in reversed(told["answers"]) if "usageMetadata" in each), {}
    )
    reasons = [
        candidate["finishReason"]
        for answer in told["answers"]
        for candidate in answer.get("candidates", ())
        if "finishReason" in candidate
    ]
    return {
        "text": "".join(part.get("text", "") for part in parts if not part.get("thought")),
        "thought": "".join(part.get("text", "") for part in parts if part.get("thought")),
        "calls": [
            (part["functionCall"]["name"], part["functionCall"].get("args") or {})
            for part in parts
            if "functionCall" in part
        ],
        "others": sorted(key for part in parts for key in part if key in ("inlineData", "executableCode")),
        "stop": reasons[-1:],
        "input": usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0),
        "output": usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0),
    }


def _parts(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for answer in told["answers"]:
        for candidate in answer.get("candidates", ())[:1]:
            yield from candidate.get("content", {}).get("parts", ())
