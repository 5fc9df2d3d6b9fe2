"""What Claude Code asks a gateway beside messages: managed settings, models under ids it takes, telemetry."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import msgspec
import pytest

from proofs.http_double import DoubleHandler, HttpDouble
from tests.gateway.config.config_files import digest, loaded, problems
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.dialects.registry import surface

AGENT = "claude-code/2.1.326"
KEYS = {name: f"key-of-{name}-0123456789" for name in ("ada", "bob", "eve")}


class Said(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


def asked(
    gateway: LiveGateway, method: str, path: str, body: bytes | None = None, key: str = "", **headers: str
) -> Said:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key:
        sent["authorization"] = f"Bearer {key}"
    try:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return Said(answer.status, {name.lower(): v for name, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class Collector(HttpDouble):
    """Stands where an OpenTelemetry collector would."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200

    class Handler(DoubleHandler):
        owner: Collector

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            self.owner.taken.append((self.path, headers, body))
            self.send(self.owner.status, b"")


def toml(port: int) -> str:
    return f"""
[providers.demo]
[models]
quick = "demo/demo-gemini"
[claude_code.settings]
cleanupPeriodDays = 30
permissions.deny = ["WebFetch"]
env.DISABLE_AUTOUPDATER = "1"
[groups.eng]
models = ["demo/*"]
[groups.eng.claude_code.settings]
model = "demo/demo-chat"
permissions.allow = ["Read"]
permissions.deny = ["Bash"]
[keys]
ada = "{digest(KEYS["ada"])}"
[keys.bob]
hash = "{digest(KEYS["bob"])}"
group = "eng"
[keys.eve]
hash = "{digest(KEYS["eve"])}"
models = ["claude*"]
[telemetry]
forward = "http://127.0.0.1:{port}/otlp"
headers = {{ x-collector-key = "the-key-of-the-collector" }}
"""


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as found:
        yield found


@pytest.fixture(scope="module")
def gateway(collector: Collector) -> Iterator[LiveGateway]:
    with LiveGateway(toml(collector.port)) as found:
        yield found


def settings_of(gateway: LiveGateway, name: str, **headers: str) -> Said:
    return asked(gateway, "GET", "/managed/settings", None, KEYS[name], **headers)


def test_everyone_gets_the_settings_of_all_and_a_group_its_own_over_them(gateway: LiveGateway) -> None:
    ada, bob = settings_of(gateway, "ada").document, settings_of(gateway, "bob").document
    added = dict.fromkeys(
        ("CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY", "CLAUDE_CODE_GATEWAY_HINT_HEADERS"), "1"
    )
    assert ada["settings"] == {
        "cleanupPeriodDays": 30,
        "permissions": {"deny": ["WebFetch"]},
        "env": {**added, "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "200000"},
    }
    assert bob["settings"]["permissions"] == {"deny": ["Bash"], "allow": ["Read"]}
    assert bob["settings"]["model"] == "demo/demo-chat"
    assert bob["settings"]["env"] == ada["settings"]["env"]


@rows(
    ("settings", "context"),
    [
        ({"model": "kimi/k3"}, "262144"),
        ({"model": "claude-via/kimi/k3"}, "262144"),
        ({"env": {"ANTHROPIC_MODEL": "kimi/k3"}}, "262144"),
        ({"model": "kimi/k3", "env": {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "9"}}, "9"),
        ({"model": "large"}, "900000"),
        ({"model": "tiny"}, "8192"),
        ({"model": "claude-opus"}, "262144"),
        ({"model": 3}, "262144"),
        ({}, "262144"),
    ],
)
def test_claude_code_is_given_the_context_of_a_model_it_does_not_know(
    settings: dict[str, Any], context: str
) -> None:
    listing = (
        ListedModel("kimi/k3", "kimi", context=262_144, dialects=("openai-chat",)),
        ListedModel("large", "mine", context=900_000, dialects=("gemini",)),
        ListedModel("unknown", "mine", dialects=("gemini",)),
        ListedModel("tiny", "mine", context=8_192, dialects=("openai-chat",)),
        ListedModel("claude-opus", "anthropic", context=1_000_000, dialects=("anthropic",)),
    )
    managed = surface("anthropic").client.managed
    assert managed is not None
    assert managed(settings, listing)["env"].get("CLAUDE_CODE_MAX_CONTEXT_TOKENS") == context


def test_the_checksum_is_the_one_that_the_client_computes(gateway: LiveGateway) -> None:
    said = settings_of(gateway, "ada")
    text = json.dumps(said.document["settings"], sort_keys=True, separators=(",", ":"))
    checksum = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert (said.document["checksum"], said.headers["etag"]) == (checksum, f'"{checksum}"')
    assert "x-cc-gateway-version" not in said.headers, "with no-store it would mean more than it says"


@rows(
    ("etag", "status"),
    [("", 200), ('"sha256:0"', 200), ("*", 200), ("CURRENT", 304), ('"x", W/CURRENT', 304)],
)
def test_only_the_settings_that_the_client_has_are_not_sent_again(
    gateway: LiveGateway, etag: str, status: int
) -> None:
    current = settings_of(gateway, "bob").headers["etag"]
    headers = {"if_none_match": etag.replace("CURRENT", current)} if etag else {}
    said = settings_of(gateway, "bob", **headers)
    assert said.status == status
    assert (said.body == b"") == (status == 304)


def test_settings_need_a_key_and_no_policy_is_a_404() -> None:
    text = f'[providers.demo]\n[keys]\nada = "{digest(KEYS["ada"])}"\n'
    with LiveGateway(text) as gateway:
        said = settings_of(gateway, "ada")
        assert (said.status, said.document["error"]["type"]) == (404, "not_found_error")
        assert said.headers["cache-control"] == "no-store"
        assert gateway.wait_log()[0]["error"]["code"] == "no_policy"
        nobody = asked(gateway, "GET", "/managed/settings")
        assert (nobody.status, nobody.headers["x-should-retry"]) == (401, "false")


def test_an_empty_policy_is_one(tmp_path: Path) -> None:
    assert loaded(tmp_path, "[providers.demo]\n[claude_code.settings]\n").managed.settings == {}
    assert loaded(tmp_path, "[providers.demo]\n[claude_code]\n").managed.settings is None


@rows(
    ("line", "field"),
    [
        ("[claude_code]\nsettings = 3", "claude_code.settings"),
        ("[claude_code]\nsetting = {}", "claude_code.setting"),
        ("[claude_code.settings]\na.b = 2027-01-31", "claude_code.settings.a.b"),
        ("[claude_code.settings]\na = [1, nan]", "claude_code.settings.a[1]"),
        ("[groups.eng.claude_code.settings]\na = 12:00:00", "groups.eng.claude_code.settings.a"),
        ('[telemetry]\nforward = "collector:4318"', "telemetry.forward"),
        ('[telemetry]\nheaders = { "a b" = "c" }', 'telemetry.headers."a b"'),
        ('[telemetry]\nurl = "http://127.0.0.1:4318"', "telemetry.url"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(tmp_path: Path, line: str, field: str) -> None:
    assert list(problems(tmp_path, f"[providers.demo]\n{line}\n")) == [field]


def test_claude_code_sees_every_model_under_an_id_that_it_takes(gateway: LiveGateway) -> None:
    plain = asked(gateway, "GET", "/v1/models?limit=1000", key=KEYS["ada"], anthropic_version="2023-06-01")
    theirs = asked(
        gateway, "GET", "/v1/models?limit=1000", key=KEYS["ada"], anthropic_version="2023-06-01",
        user_agent=AGENT,
    )  # fmt: skip
    names = [model["id"] for model in plain.document["data"]]
    accepted = {model["id"]: model["display_name"] for model in theirs.document["data"]}
    assert not [name for name in names if name.startswith("claude-via/")]
    assert all("claude" in name or "anthropic" in name for name in accepted)
    assert {name.removeprefix("claude-via/") for name in accepted} == set(names)
    assert accepted["claude-via/quick"] == "quick"


def test_a_model_is_answered_under_its_alias_and_under_no_other_name(gateway: LiveGateway) -> None:
    """An alias lets nobody ask for what its key does not allow."""
    url = f"http://127.0.0.1:{gateway.port}"

    def ask(name: str, model: str) -> anthropic.types.Message:
        client = anthropic.Anthropic(base_url=url, api_key=KEYS[name], max_retries=0)
        return client.messages.create(
            model=model, max_tokens=64, messages=[{"role": "user", "content": "hello"}]
        )

    for model in ("claude-via/quick", "claude-via/demo/demo-chat"):
        assert ask("ada", model).model == model
    assert ask("bob", "claude-via/demo/demo-chat").content
    for name, model in (("bob", "claude-via/quick"), ("eve", "claude-via/demo/demo-chat")):
        with pytest.raises(anthropic.BadRequestError, match="may not"):
            ask(name, model)
    client = anthropic.Anthropic(base_url=url, api_key=KEYS["ada"], max_retries=0)
    assert client.models.retrieve("claude-via/quick").id == "quick"


@rows(
    ("signal", "content", "body"),
    [
        ("metrics", "application/json", b'{"resourceMetrics":[]}'),
        ("logs", "application/x-protobuf", b"\x0a\x00"),
        ("traces", "application/x-protobuf", gzip.compress(b"\x0a\x00")),
    ],
)
def test_telemetry_goes_to_the_collector_without_the_clients_key(
    gateway: LiveGateway, collector: Collector, signal: str, content: str, body: bytes
) -> None:
    coding = {"content_encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
    before = len(collector.taken)
    said = asked(gateway, "POST", f"/v1/{signal}", body, KEYS["ada"], content_type=content, **coding)
    assert (said.status, said.body) == (200, b"")
    ((path, headers, taken),) = collector.taken[before:]
    assert (path, taken) == (f"/otlp/v1/{signal}", body)
    assert (headers["content-type"], headers["x-collector-key"]) == (content, "the-key-of-the-collector")
    assert headers.get("content-encoding") == coding.get("content_encoding")
    assert "authorization" not in headers
    assert KEYS["ada"] not in repr(headers)


def test_a_collector_that_is_away_is_no_concern_of_the_client(
    gateway: LiveGateway, collector: Collector
) -> None:
    collector.status = 503
    try:
        said = asked(gateway, "POST", "/v1/logs", b"{}", KEYS["ada"], content_type="application/json")
        assert said.status == 200
        (line,) = gateway.wait_log(1, "telemetry not forwarded")
        assert "503" in json.dumps(line)
    finally:
        collector.status = 200
    asked(gateway, "POST", "/v1/logs", b"{}", KEYS["ada"], content_type="application/json")
    gateway.wait_log(1, "telemetry is forwarded again")
    shown = asked(gateway, "GET", "/metrics", key=KEYS["ada"])
    if shown.status == 200:
        assert b'wireglot_client_telemetry_total{signal="logs",outcome="failed"} 1' in shown.body


def test_telemetry_needs_a_key_and_has_a_limit(gateway: LiveGateway, collector: Collector) -> None:
    before = len(collector.taken)
    nobody = asked(gateway, "POST", "/v1/metrics", b"{}", content_type="application/json")
    assert (nobody.status, nobody.document["error"]["type"]) == (401, "authentication_error")
    too_long = str(4 * 2**20 + 1)
    large = asked(
        gateway,
        "POST",
        "/v1/metrics",
        key=KEYS["ada"],
        content_type="application/json",
        content_length=too_long,
    )
    assert large.status == 413
    assert asked(gateway, "GET", "/v1/traces", key=KEYS["ada"]).status == 405
    assert len(collector.taken) == before


@rows(
    "content", ["", "text/plain", "application/x-www-form-urlencoded", "application/json, text/plain", "*/*"]
)
def test_a_page_of_a_browser_cannot_send_telemetry(
    gateway: LiveGateway, collector: Collector, content: str
) -> None:
    """A page may send these content types to another origin without a preflight."""
    before = len(collector.taken)
    for signal in ("metrics", "logs", "traces"):
        said = asked(gateway, "POST", f"/v1/{signal}", b"{}", KEYS["ada"], content_type=content)
        assert (said.status, said.document["error"]["type"]) == (415, "invalid_request_error")
        assert "application/json or application/x-protobuf" in said.document["error"]["message"]
    assert len(collector.taken) == before


def test_telemetry_without_a_collector_is_counted_and_discarded() -> None:
    with LiveGateway("[providers.demo]\n") as gateway:
        said = asked(gateway, "POST", "/v1/traces", b"anything", content_type="application/x-protobuf")
        assert (said.status, said.body) == (200, b"")

        def counted() -> bool:
            shown = asked(gateway, "GET", "/metrics").body
            return b'wireglot_client_telemetry_total{signal="traces",outcome="discarded"} 1' in shown

        wait_until(counted)
