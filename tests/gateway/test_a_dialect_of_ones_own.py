"""A dialect that no file of `src` knows is served and asked like the others: registered, or brought by a package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.core.dialects import acme
from wireglot.gateway.config import ConfigError
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.dialects.paths import PathTaken
from wireglot_core.dialects.registry import register, unregister
from wireglot_core.wire.json import encode

ROOT = Path(__file__).parents[2]
TALK: dict[str, Any] = {"engine": "m", "talk": [{"role": "user", "content": "Hello"}]}
PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": ("/v1/messages", {"model": "m", "max_tokens": 99}),
    "openai-chat": ("/v1/chat/completions", {"model": "m"}),
}
ANSWER: dict[str, Any] = {
    "id": "a1",
    "object": "chat.completion",
    "created": 1,
    "engine": "m",
    "replies": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Good day from upstream"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
}
CHUNK = {"id": "a1", "object": "chat.completion.chunk", "created": 1, "engine": "m"}
DELTAS: list[dict[str, Any]] = [
    {"replies": [{"index": 0, "delta": {"role": "assistant", "content": "Good "}, "finish_reason": None}]},
    {"replies": [{"index": 0, "delta": {"content": "day"}, "finish_reason": None}]},
    {"replies": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"replies": [], "usage": {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}},
]
STREAM = (*(b"data: %b\n\n" % encode({**CHUNK, **delta}) for delta in DELTAS), b"data: [END]\n\n")


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def frames(self) -> list[str]:
        """The data of a stream's events."""
        return [line[6:] for line in self.body.decode().splitlines() if line.startswith("data: ")]


def ask(url: str, body: dict[str, Any] | bytes | None = None, **headers: str) -> Answer:
    data = body if isinstance(body, bytes) or body is None else encode(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = urllib.request.Request(url, data, {"content-type": "application/json", **named})
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return Answer(answer.status, _headers(answer), answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return Answer(refused.code, _headers(refused), refused.read())


def _headers(answer: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register(acme.DIALECT)
    yield
    unregister(acme.NAME)


@contextmanager
def stage(dialect: str, more: str = "", **provider: str) -> Iterator[tuple[LiveGateway, ScriptedUpstream]]:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect, more, **provider) as gateway:
        yield gateway, upstream


def test_no_file_of_the_source_knows_it():
    files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".toml", ".json")]
    assert len(files) > 300
    assert not [str(path) for path in files if acme.NAME in path.read_text(encoding="utf-8").lower()]


# As the client's dialect.


@pytest.mark.parametrize("upstream_dialect", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_its_clients_are_answered_by_any_upstream(upstream_dialect: str) -> None:
    with stage(upstream_dialect) as (gateway, upstream):
        answer = ask(gateway.url + "/acme/talk", TALK)
        assert answer.status == 200
        assert answer.json["replies"][0]["message"]["content"]
        assert answer.json["engine"] == "m"
        assert answer.headers["x-acme-id"] == answer.headers["x-wireglot-request-id"]
        assert "Hello" in upstream.requests[0].body.decode()
        line = gateway.wait_log()[-1]
        assert (line["dialect"], line["route"]) == (acme.NAME, "mine/m")
        assert line["tokens"]["output"] > 0


@pytest.mark.parametrize("upstream_dialect", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_its_clients_read_streams_of_any_upstream(upstream_dialect: str) -> None:
    with stage(upstream_dialect) as (gateway, _):
        options = {"stream": True, "stream_options": {"include_usage": True}}
        answer = ask(gateway.url + "/acme/talk", {**TALK, **options})
        assert answer.headers["content-type"].startswith("text/event-stream")
        *frames, last = answer.frames
        assert last == "[END]"
        assert all("replies" in json.loads(frame) for frame in frames)
        said = [each["delta"].get("content") or "" for f in frames for each in json.loads(f)["replies"]]
        whole = ask(gateway.url + "/acme/talk", TALK).json["replies"][0]["message"]["content"]
        assert "".join(said) == whole
        assert gateway.wait_log(2)[0]["tokens"]["output"] > 0


def test_its_clients_hear_its_own_ping_while_an_upstream_is_silent() -> None:
    goes_on = threading.Event()
    with stage(acme.NAME, "[limits]\nping = 0.05\n") as (gateway, upstream):
        upstream.next(Behaviour(pieces=STREAM, gate=goes_on))
        body = encode({**TALK, "stream": True})
        request = urllib.request.Request(
            gateway.url + "/acme/talk", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.readline() == b": still here\n"
            goes_on.set()
            assert b"[END]" in answer.read()


def test_its_clients_are_given_errors_in_its_words_and_statuses() -> None:
    with stage("anthropic", "", retry="{ retries = 0 }") as (gateway, upstream):
        upstream.next(Behaviour(error=529))
        overloaded = ask(gateway.url + "/acme/talk", TALK)
        assert (overloaded.status, set(overloaded.json)) == (418, {"error"})
        wrong = ask(gateway.url + "/acme/talk", {**TALK, "talk": 5})
        assert (wrong.status, wrong.json["error"]["type"]) == (400, "invalid_request_error")
        nowhere = ask(gateway.url + "/acme/nothing", TALK)
        assert (nowhere.status, nowhere.json["error"]["code"]) == (404, "unknown_url")
        assert nowhere.headers["x-acme-id"]
        method = ask(gateway.url + "/acme/talk")
        assert (method.status, method.headers["allow"]) == (405, "POST")
        twice = ask(gateway.url + "/acme/talk", b'{"engine": "a", "engine": "b", "talk": []}')
        assert (twice.status, twice.json["error"]["param"]) == (400, "engine")


def test_its_clients_bring_their_key_in_its_header() -> None:
    keys = f'[keys]\nteam = "sha256:{sha256(b"client-key").hexdigest()}"\n'
    with stage("openai-chat", keys) as (gateway, _):
        refused = ask(gateway.url + "/acme/talk", TALK)
        assert (refused.status, refused.json["error"]["code"]) == (401, "invalid_api_key")
        assert refused.headers["x-acme-id"]
        assert ask(gateway.url + "/acme/talk", TALK, x_acme_key="client-key").status == 200


def test_its_clients_hold_conversations_here() -> None:
    store = '[store]\nurl = "memory:"\n'
    with stage("anthropic", store) as (gateway, upstream):
        for text in ("First", "Second"):
            said = {"engine": "m", "conversation": "c1", "talk": [{"role": "user", "content": text}]}
            assert ask(gateway.url + "/acme/talk", said).status == 200
        sent = upstream.requests[1].body.decode()
        assert "First" in sent
        assert "conversation" not in sent


def test_its_clients_count_and_list_in_its_words() -> None:
    with stage("openai-chat") as (gateway, _):
        counted = ask(gateway.url + "/acme/count", TALK)
        assert counted.json["tokens"] > 0
        assert counted.headers["x-wireglot-estimate"] == "true"
    with LiveGateway() as gateway:
        listed = ask(gateway.url + "/acme/engines").json["engines"]
        assert {"engine": "demo", "by": "demo"} in listed
        assert ask(gateway.url + "/v1/models", x_acme_version="7").json == {"engines": listed}
        assert ask(gateway.url + "/acme/engines/demo").json == {"engine": "demo", "by": "demo"}
        assert ask(gateway.url + "/acme/engines/demo%2Fdemo").json["engine"] == "demo/demo"
        assert ask(gateway.url + "/acme/engines/nobody").status == 404
        assert ask(gateway.url + "/").json["endpoints"][acme.NAME] == ["POST /acme/talk", "POST /acme/count"]


# As an upstream's dialect.


@pytest.mark.parametrize("client", PATHS)
def test_clients_of_others_are_answered_by_its_upstreams(client: str) -> None:
    path, body = PATHS[client]
    with stage(acme.NAME) as (gateway, upstream):
        headers = (("content-type", "application/json"), ("x-acme-left", "9"))
        upstream.next(Behaviour(body=encode(ANSWER), headers=headers))
        answer = ask(gateway.url + path, {**body, "messages": TALK["talk"]})
        assert answer.status == 200
        assert b"Good day from upstream" in answer.body
        assert answer.headers["x-acme-left"] == "9"
        sent = upstream.requests[0]
        assert (sent.path, sent.json["engine"], sent.json["talk"][0]["role"]) == ("/talk", "m", "user")
        assert sent.headers["x-acme-version"] == "7"
        line = gateway.wait_log()[-1]
        assert (line["tokens"]["input"], line["tokens"]["output"]) == (11, 5)


@pytest.mark.parametrize("client", PATHS)
def test_clients_of_others_read_its_upstreams_streams(client: str) -> None:
    path, body = PATHS[client]
    with stage(acme.NAME) as (gateway, upstream):
        upstream.next(Behaviour(pieces=STREAM))
        answer = ask(gateway.url + path, {**body, "stream": True, "messages": TALK["talk"]})
        assert answer.status == 200
        assert b"Good " in answer.body
        assert b"[END]" not in answer.body
        assert b"replies" not in answer.body
        line = gateway.wait_log()[-1]
        assert (line["tokens"]["input"], line["tokens"]["output"]) == (11, 2)
        assert line["outcome"] == "ok"


def test_errors_of_its_upstreams_are_reported_in_the_clients_words() -> None:
    refused = encode({"error": {"message": "no such engine", "type": "invalid_request_error", "code": "x"}})
    with stage(acme.NAME) as (gateway, upstream):
        headers = (("content-type", "application/json"), ("x-acme-id", "up-1"))
        upstream.next(Behaviour(status=400, body=refused, headers=headers))
        path, body = PATHS["anthropic"]
        answer = ask(gateway.url + path, {**body, "messages": TALK["talk"]})
        assert (answer.status, answer.json["type"]) == (400, "error")
        assert "no such engine" in answer.json["error"]["message"]
        assert gateway.wait_log()[-1]["upstream_id"] == "up-1"


def test_its_upstreams_count_for_clients_of_others() -> None:
    with stage(acme.NAME) as (gateway, upstream):
        upstream.next(Behaviour(body=b'{"tokens": 37}'))
        asked = {"model": "m", "messages": TALK["talk"]}
        answer = ask(gateway.url + "/v1/messages/count_tokens", asked)
        assert answer.json == {"input_tokens": 37}
        assert "x-wireglot-estimate" not in answer.headers
        assert (upstream.requests[0].path, upstream.requests[0].json["engine"]) == ("/count", "m")


# Both at once: what is asked in its own dialect passes through.


def test_between_its_own_clients_and_upstreams_bytes_pass_as_they_are() -> None:
    body = b'{ "engine":"nick",  "talk":[{"role":"user","content":"Hello"}],"odd":1}'
    with stage(acme.NAME) as (gateway, upstream):
        upstream.next(Behaviour(body=encode(ANSWER)))
        answer = ask(gateway.url + "/acme/talk", body, x_acme_version="8")
        assert answer.body == encode(ANSWER)
        sent = upstream.requests[0]
        assert sent.body == body
        assert sent.headers["x-acme-version"] == "8"
        line = gateway.wait_log()[-1]
        assert (line["tokens"]["input"], line["tokens"]["output"]) == (11, 5)


def test_between_its_own_clients_and_upstreams_a_stream_passes_and_is_listened_to() -> None:
    with stage(acme.NAME) as (gateway, upstream):
        upstream.next(Behaviour(pieces=STREAM))
        answer = ask(gateway.url + "/acme/talk", {**TALK, "stream": True})
        assert answer.body == b"".join(STREAM)
        line = gateway.wait_log()[-1]
        assert (line["tokens"]["input"], line["tokens"]["output"], line["outcome"]) == (11, 2, "ok")
        assert line["stop"] == "end"


def test_a_model_of_another_name_is_put_where_it_names_models() -> None:
    toml = '"nick" = "mine/true-name"\n'
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, acme.NAME, toml) as gateway:
        upstream.next(Behaviour(body=encode(ANSWER)), Behaviour(body=b'{"tokens": 5}'))
        ask(gateway.url + "/acme/talk", {**TALK, "engine": "nick"})
        assert ask(gateway.url + "/acme/count", {**TALK, "engine": "nick"}).json == {"tokens": 5}
        assert [sent.json["engine"] for sent in upstream.requests] == ["true-name", "true-name"]
        assert not any("model" in sent.json for sent in upstream.requests)


# How it comes in.


def test_an_unknown_dialect_is_an_error_at_the_start() -> None:
    with (
        ScriptedUpstream() as upstream,
        pytest.raises(ConfigError, match=r"one of acme, anthropic, .*, found"),
    ):
        LiveGateway.before(upstream, "nobodys").start()


def test_a_dialect_at_anothers_path_is_an_error_at_the_start() -> None:
    register(
        msgspec.structs.replace(acme.DIALECT, surface=msgspec.structs.replace(acme.SURFACE, name="thief"))
    )
    try:
        with pytest.raises(PathTaken, match="of thief is a path of acme already"):
            LiveGateway().start()
    finally:
        unregister("thief")


def installed(folder: Path, *entries: str) -> dict[str, str]:
    """The environment of a process in which a package with these entry points is installed."""
    about = folder / "site" / "somebodys_dialect-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-dialect\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(["[wireglot.dialects]", *entries, ""]))
    paths = (str(folder / "site"), str(ROOT / "src"), str(ROOT))
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(paths),
    }


SERVE = [sys.executable, "-m", "wireglot.cli", "serve", "--port", "0", "--log", "json"]


def test_a_package_brings_it_to_a_gateway_that_is_started(tmp_path: Path) -> None:
    environ = installed(tmp_path, "acme = tests.core.dialects.acme:DIALECT")
    with ScriptedUpstream() as upstream:
        config = tmp_path / "wireglot.toml"
        config.write_text(
            f'[providers.mine]\ndialect = "acme"\nbase_url = "{upstream.url}"\napi_key = "k"\n'
            '[models]\n"*" = "mine/*"\n'
        )
        command = [*SERVE, "--config", str(config)]
        with subprocess.Popen(command, env=environ, cwd=tmp_path, stderr=subprocess.PIPE) as process:
            try:
                url = _listening(process)
                assert acme.NAME in ask(url + "/").json["endpoints"]
                upstream.next(Behaviour(body=encode(ANSWER)), Behaviour(pieces=STREAM))
                answer = ask(url + "/acme/talk", TALK)
                assert answer.json["replies"][0]["message"]["content"] == "Good day from upstream"
                path, body = PATHS["anthropic"]
                streamed = ask(url + path, {**body, "stream": True, "messages": TALK["talk"]})
                assert b"message_stop" in streamed.body
                process.terminate()
                process.communicate(timeout=20)
                assert process.returncode == 0
            finally:
                process.kill()


def _listening(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        found = re.search(rb'"url": ?"(http://[^"]+)"', line)
        if found:
            return found[1].decode()
    raise AssertionError(b"".join(seen))


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize(
    ("entries", "reported"),
    [
        (["acme = tests.dialects.nowhere:DIALECT"], "cannot be loaded: ModuleNotFoundError"),
        (["acme = tests.core.dialects.acme:NAME"], "is no wireglot_core.dialects.base.Dialect"),
        (["openai-chat = tests.core.dialects.acme:CHAT"], "there is a dialect 'openai-chat' already"),
    ],
)
def test_a_package_that_brings_none_stops_the_start_in_one_line(
    tmp_path: Path, entries: list[str], reported: str
) -> None:
    done = subprocess.run(
        SERVE, env=installed(tmp_path, *entries), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("wireglot: the entry point")
    assert reported in line
