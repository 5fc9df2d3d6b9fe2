"""`wireglot trace` and `wireglot.testing.replay` on what real gateways have recorded."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.core.traces.conversations import NAMES, conversation
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.testing import replay
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.traces.file import read_trace

TOML = '[providers.demo]\n[trace]\nmode = "all"\n'
PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
VERTEX = "/v1/projects/p/locations/l/publishers/anthropic/models/{model}:{verb}"
CLOUDS = {
    # path of a whole answer, and of a stream
    "anthropic-vertex": (
        VERTEX.replace("{verb}", "rawPredict"),
        VERTEX.replace("{verb}", "streamRawPredict"),
    ),
    "anthropic-bedrock": ("/model/{model}/invoke", "/model/{model}/invoke-with-response-stream"),
}
LAST = ("And in Lima?", "[[demo:tool get_weather]]", "[[demo:think]] Why?")


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with LiveGateway(TOML) as gateway:
        yield gateway


def send(gateway: LiveGateway, path: str, body: dict[str, Any], key: str = "") -> tuple[str, bytes]:
    """The id of the exchange, and its answer."""
    headers = {"content-type": "application/json", "user-agent": "test/1"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    request = urllib.request.Request(gateway.url + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["x-wireglot-request-id"] or answer.headers["request-id"], answer.read()


def ask(gateway: LiveGateway, source: str, target: str, body: dict[str, Any], *, stream: bool) -> str:
    model = f"demo-{target}"
    if source == "gemini":
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return send(gateway, f"/v1beta/models/{model}:{method}", body)[0]
    return send(gateway, PATHS[source], {**body, "model": model, "stream": stream})[0]


def exported(gateway: LiveGateway, id: str, folder: Path) -> Path:
    path = folder / f"{id}.wgtrace.json"
    done = run("trace", "export", id, "--url", gateway.url, "-o", str(path))
    assert done.returncode == 0, done
    return path


@pytest.mark.sampled("source", "target")
@rows("stream", [False, True])
@rows("target", NAMES)
@rows("source", NAMES)
def test_what_a_gateway_did_is_translated_the_same_again(
    gateway: LiveGateway, source: str, target: str, stream: bool, tmp_path: Path
) -> None:
    for last in LAST:
        id = ask(gateway, source, target, conversation(source, last), stream=stream)
        path = exported(gateway, id, tmp_path)
        assert replay(path).compared == ["request", "answer"]
        attempt = read_trace(path.read_bytes()).attempts[-1]
        assert attempt.links
        assert attempt.answer_links


@pytest.mark.whole
@rows("stream", [False, True])
@rows("target", NAMES)
@rows("source", CLOUDS)
def test_what_came_in_a_clouds_form_is_translated_the_same_again(
    gateway: LiveGateway, source: str, target: str, stream: bool, tmp_path: Path
) -> None:
    for last in LAST:
        body = {"anthropic_version": "any", "anthropic_beta": ["b"], **conversation("anthropic", last)}
        body.pop("model", None)
        path = CLOUDS[source][stream].replace("{model}", f"demo-{target}")
        recorded = exported(gateway, send(gateway, path, body)[0], tmp_path)
        assert replay(recorded).compared == ["request", "answer"]
        trace = read_trace(recorded.read_bytes())
        assert trace.row.dialect == source
        assert trace.attempts[-1].answer_links


def test_bodies_are_searched_at_a_gateway_and_in_its_folder(tmp_path: Path) -> None:
    toml = f'{TOML}[store]\nurl = "sqlite://{tmp_path}/w.db"\nfolder = "{tmp_path}"\n'
    config = tmp_path / "wireglot.toml"
    config.write_text(f'{toml}[server]\nsecret = "a secret of this test, thirty letters"\n')
    with LiveGateway(config.read_text()) as gateway:
        id, _ = send(gateway, PATHS["anthropic"], _asked("Where is the Zwergtaucher?"))
        send(gateway, PATHS["anthropic"], _asked("Nowhere."))
        wait_until(lambda: len(list((tmp_path / "traces").glob("*.trace"))) == 2)
        for where in (("--url", gateway.url), ("--config", str(config))):
            for words, found in (("zwergtaucher", [id]), ("no such word", [])):
                done = run("trace", "list", "--json", "--search", words, *where)
                assert [row["id"] for row in json.loads(done.stdout)["rows"]] == found, done


def _asked(text: str) -> dict[str, Any]:
    return {"model": "demo-gemini", "max_tokens": 50, "messages": [{"role": "user", "content": text}]}


def test_turns_that_the_gateway_holds_and_state_that_it_sealed_are_replayed_too(
    gateway: LiveGateway, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"model": "demo-anthropic", "input": "Hi [[demo:think]]", "store": True}
    _, first = send(gateway, "/v1/responses", asked)
    more = {**asked, "input": "And now?", "previous_response_id": json.loads(first)["id"]}
    id, _ = send(gateway, "/v1/responses", more)
    assert replay(exported(gateway, id, tmp_path)).compared == ["request", "answer"]
    body = conversation("anthropic", "[[demo:think]] Why?")
    _, reported = send(gateway, "/v1/messages", {**body, "model": "demo-gemini"})
    body["messages"] += [
        {"role": "assistant", "content": json.loads(reported)["content"]},
        {"role": "user", "content": "Go on."},
    ]
    id, _ = send(gateway, "/v1/messages", {**body, "model": "demo-gemini"})
    assert replay(exported(gateway, id, tmp_path)).compared == ["request", "answer"]


def test_the_store_tells_the_same_as_the_gateway(tmp_path: Path) -> None:
    config = tmp_path / "wireglot.toml"
    secret = "a-secret-that-stays-the-same-0123456789"
    config.write_text(
        f'[server]\nsecret = "{secret}"\n[store]\nfolder = "kept"\nurl = "sqlite:kept/s.db"\n{TOML}'
    )
    with LiveGateway(config.read_text(), folder=tmp_path) as gateway:
        id = ask(gateway, "anthropic", "gemini", conversation("anthropic"), stream=True)
        there = json.loads(run("trace", "show", id, "--url", gateway.url, "--json").stdout)
        listed = json.loads(run("trace", "list", "--url", gateway.url, "--json").stdout)
    here = json.loads(run("trace", "show", id, "--config", str(config), "--json").stdout)
    assert here == there
    rows = json.loads(run("trace", "list", "--config", str(config), "--json").stdout)["rows"]
    assert [row["id"] for row in rows] == [row["id"] for row in listed["rows"]] == [id]
    last = json.loads(run("trace", "show", "last", "--config", str(config), "--json").stdout)
    assert last == here
    none = run("trace", "list", "--config", str(config), "--model", "other")
    assert none.stdout == b"no exchanges\n"
    gone = run("trace", "show", "req_0", "--config", str(config))
    assert gone.returncode == 1
    assert gone.stderr.startswith(b"wireglot: no recorded exchange req_0: see `wireglot trace list`")


def test_a_request_is_sent_again_once_somebody_agrees_to_pay(gateway: LiveGateway) -> None:
    """R-DE-09"""
    id = ask(gateway, "anthropic", "gemini", conversation("anthropic"), stream=False)
    line = ("trace", "replay", id, "--url", gateway.url)
    refused = run(*line)
    assert refused.returncode == 2
    asked, refusal = refused.stderr.decode().splitlines()
    assert re.fullmatch(
        r"This sends a request to demo/demo-gemini: about \d+ tokens in, at most 300 out, .*; not paid with any key\.",
        asked,
    )
    assert refusal == "wireglot: not sent: confirm with --yes"
    done = run(*line, "--to", "demo-anthropic", "--yes")
    assert done.returncode == 0, done
    first, *rest = done.stdout.decode().splitlines()
    new, status = first.split()
    assert status == "200"
    assert "/text" in rest or rest == ["both answers are the same"]
    shown = json.loads(run("trace", "show", new, "--url", gateway.url, "--json").stdout)
    assert shown["row"]["upstream_dialect"] == "anthropic"
    wrong = run(*line, "--to", "nobody/none", "--yes")
    assert wrong.returncode == 1
    assert b"there is no provider 'nobody'" in wrong.stderr


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_went_upstream_is_sent_again_as_it_was(gateway: LiveGateway, stream: bool) -> None:
    """R-DE-09: also raw, without translation."""
    id = ask(gateway, "anthropic", "gemini", conversation("anthropic"), stream=stream)
    before = json.loads(run("trace", "show", id, "--url", gateway.url, "--json").stdout)
    done = run("trace", "replay", id, "--raw", "--url", gateway.url, "--yes")
    assert done.returncode == 0, done
    new = done.stdout.decode().split()[0]
    after = json.loads(run("trace", "show", new, "--url", gateway.url, "--json").stdout)
    assert after["row"]["dialect"] == after["attempts"][0]["dialect"] == "gemini"
    assert after["attempts"][0]["passthrough"]
    sent, again = (json.loads(each["attempts"][0]["request"]["body"]) for each in (before, after))
    assert again == sent


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_file_is_sent_by_a_gateway_that_never_saw_it(
    gateway: LiveGateway, tmp_path: Path, stream: bool
) -> None:
    with LiveGateway(TOML) as elsewhere:
        id = ask(elsewhere, "anthropic", "gemini", conversation("anthropic"), stream=stream)
        file = exported(elsewhere, id, tmp_path)
    done = run("trace", "replay", str(file), "--to", "demo-anthropic", "--url", gateway.url, "--yes")
    assert done.returncode == 0, done
    new, status = done.stdout.decode().splitlines()[0].split()
    assert status == "200"
    shown = json.loads(run("trace", "show", new, "--url", gateway.url, "--json").stdout)
    assert shown["row"]["dialect"] == "anthropic"
    assert shown["row"]["upstream_dialect"] == "anthropic"
    assert shown["row"].get("stream", False) is stream


def test_bodies_that_were_not_recorded_are_said_to_be_missing() -> None:
    with LiveGateway("[providers.demo]\n[trace]\nmemory_bytes = 0\n") as gateway:
        id = ask(gateway, "anthropic", "gemini", conversation("anthropic"), stream=False)
        done = run("trace", "show", id, "--url", gateway.url)
    assert done.returncode == 1
    assert f"the bodies of {id} were not recorded".encode() in done.stderr
