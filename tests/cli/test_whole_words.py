"""What commands ask, refuse and print, compared whole: keys, traces, usage, probes, pages, tables of clients."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import runpy
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import rows
from wireglot import __version__
from wireglot.cli import config, inspect, keys, listing, login, menu, probe, store, trace, usage
from wireglot.cli.remote_gateway import GatewayAddress, GatewayAnswer
from wireglot.cli.run.agents import PRINTED, UNSUPPORTED
from wireglot.cli.run.clients import CLIENTS, FAMILY_DIALECTS, FAMILY_MODELS, by_family
from wireglot.cli.run.pointing import Door
from wireglot.cli.terminal import Failed, Paint, Unusable
from wireglot.gateway.config.provider_keys import ProviderKey
from wireglot.gateway.observe.running import RunningGateway
from wireglot.gateway.settings import (
    ClientKey,
    Credential,
    FetchSettings,
    McpSettings,
    Provider,
    Rule,
    SearchSettings,
    Secret,
    ServerSettings,
    Settings,
)
from wireglot.probe.run import THEMES
from wireglot_core.dialects import registry
from wireglot_core.providers import spec as catalog
from wireglot_core.traces.diff import Difference
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceMessage


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def test_the_module_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["wireglot", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("wireglot.cli", run_name="__main__")
    assert (ended.value.code, capsys.readouterr().out) == (0, f"wireglot {__version__}\n")


# --- keys

LIMITS = {
    "requests_per_minute": 60, "tokens_per_minute": 1000, "concurrent": 5, "tokens_per_day": 7, "tokens_per_month": 70,
    "cost_per_day": 2.5, "cost_per_month": 50.0, "searches_per_day": 3,
}  # fmt: skip


def key(name: str, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "name": name,
        "prefix": "wg-abc",
        "state": "active",
        "expires": None,
        "models": [],
    }
    usual |= {"created": "2026-11-18T01:02:03Z", "group": None, "sign_in_of": None}
    return {**usual, **dict.fromkeys(LIMITS), **more}


KEYS = [
    key("ada", models=["claude-*", "fast"], group="team", expires="2027-01-31T00:00:00Z", **LIMITS),
    key("old\n", state="revoked", expires="2027-01-31T00:00:00Z", created=None),
    key("laptop", sign_in_of="ada"),
]
MAY = (
    "claude-*, fast; group team; 60 requests/min; 1000 tokens/min; 5 concurrent; 7 tokens/day; 70 tokens/month; 2.50/day; "
    "50.00/month; 3 searches/day"
)


class Stored:
    """Keys, and what was done with them."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self.documents = list(documents)
        self.done: list[Any] = []

    async def list(self) -> list[dict[str, Any]]:
        return list(self.documents)

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        self.done.append(("create", name, fields))
        return key(name, key="wg-abcdef")

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        self.done.append(("update", name, fields))
        return key(name)

    async def revoke(self, name: str) -> dict[str, Any]:
        self.done.append(("revoke", name))
        return key(name, state="revoked")

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]:
        self.done.append(("rotate", name, overlap))
        until = {"old_key_until": "2026-11-18"} if overlap else {}
        return key(name, key="wg-new", **until)

    async def delete(self, name: str) -> dict[str, Any]:
        self.done.append(("delete", name))
        self.documents = [each for each in self.documents if each["name"] != name]
        return {}


OPEN = "No key is stored: a gateway on loopback requires none, unless its configuration sets [keys] or require_key.\n"  # fmt: skip
FIELDS = dict.fromkeys((*LIMITS, "models", "group", "owner", "expires"))


def done(access: Stored, action: str, **more: Any) -> None:
    given = {"action": action, "name": "ada", "json": False, "yes": True, "overlap": 0, **FIELDS, **more}
    asyncio.run(keys._do(argparse.Namespace(**given), access))


def test_every_action_on_keys_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    access = Stored()

    def said(action: str, **more: Any) -> tuple[str, str]:
        done(access, action, **more)
        return capsys.readouterr()

    shown_once = "This is the key of ada. It is shown only once: only its hash is stored.\n"
    first = "Every request to the gateway now requires a key (`wireglot keys off` reverts this).\n"
    assert said("create", models=["m"], concurrent=0, owner="me") == ("wg-abcdef\n", shown_once + first)
    access.documents = [key("laptop", sign_in_of="ada"), key("ada"), key("phone", sign_in_of="ada")]
    assert said("create") == ("wg-abcdef\n", shown_once)
    assert said("update", group="g") == ("ada  wg-abc…  active  all models\n", "")
    rejected = "All gateway processes reject it within seconds. Running requests may finish.\n"
    assert said("revoke") == ("ada  wg-abc…  revoked  all models\n", rejected)
    assert said("rotate") == ("wg-new\n", "The old key is rejected.\n")
    assert said("rotate", overlap=60) == ("wg-new\n", "The old key works until 2026-11-18.\n")
    assert said("delete") == (
        "",
        "Deleted ada and stored data of its caller; the name can be used again.\n",
    )
    access.documents.append(key("ada"))
    assert said("off") == ("", f"3 keys deleted. {OPEN}")
    assert said("off") == ("", OPEN)
    access.documents = [key("ada")]
    gone = "Deleted ada and stored data of its caller; the name can be used again.\n"
    assert said("delete") == ("", gone + OPEN)
    assert access.done == [
        ("create", "ada", {"models": ["m"], "concurrent": 0, "owner": "me"}),
        ("create", "ada", {}),
        ("update", "ada", {"group": "g"}),
        ("revoke", "ada"),
        ("rotate", "ada", 0),
        ("rotate", "ada", 60),
        ("delete", "ada"),
        ("delete", "laptop"),
        ("delete", "phone"),
        ("delete", "ada"),
        ("delete", "ada"),
    ]
    with pytest.raises(Unusable, match="nothing to change: name at least one option"):
        done(access, "update")
    access.documents = KEYS[:2]
    for action, what in (("delete", "the key ada"), ("off", r"all stored keys \(ada, old \)")):
        with pytest.raises(
            Unusable, match=f"this deletes {what} and stored data of the callers: confirm with --yes"
        ):
            done(access, action, yes=False)


def test_keys_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    done(Stored(*KEYS), "list")
    assert capsys.readouterr().out == (
        "name    key      state             created     limits\n"
        f"ada     wg-abc…  until 2027-01-31  2026-11-18  {MAY}\n"
        "old     wg-abc…  revoked                       all models\n"
        "laptop  wg-abc…  active            2026-11-18  same as ada\n"
    )
    done(Stored(), "list")
    none = "There are no stored keys. Create one: wireglot keys create NAME\n"
    assert capsys.readouterr() == ("", none)
    for action in ("list", "create", "update", "revoke", "rotate"):
        done(Stored(*KEYS[:1]), action, json=True, group="g")
        found = json.loads(capsys.readouterr().out)
        assert (found[0] if action == "list" else found)["name"] == "ada"
    lasting = keys._fields(argparse.Namespace(**{**FIELDS, "expires": 60}))["expires"]
    assert lasting.endswith("+00:00")
    assert len(lasting) == len("2026-11-18T01:02:03+00:00")
    named = keys._fields(argparse.Namespace(**{**FIELDS, "expires": "2027-01-31"}))
    assert named == {"expires": "2027-01-31"}


# --- traces


def exchange(**more: Any) -> Trace:
    row = Row(id="req_1", at=1.0, dialect="anthropic", asked="a", provider="p", model="m", stream=True)
    usual: dict[str, Any] = {
        "row": row, "request": TraceMessage(body="{}"), "answer": TraceMessage(status=200), "attempts": [],
        "losses": [], "steps": [], "notes": [],
    }  # fmt: skip
    return Trace(**{**usual, **more})


@rows(
    ("dry", "said"),
    [
        ({}, "This sends a request to p/m: about ? tokens in, at most ? out, at an unknown price; not paid with any key."),
        (
            {"estimate": {"input": 5, "max_output": 7, "cost": 1_500_000, "currency": "EUR"}, "pays": "env:\nK"},
            "This sends a request to p/m: about 5 tokens in, at most 7 out, for at most 1.500000 EUR; paid with the key in env: K.",
        ),
        (
            {"estimate": {"cost": 0.5}, "pays": None},
            "This sends a request to p/m: about ? tokens in, at most ? out, for at most 0.000000; not paid with any key.",
        ),
        ({"estimate": [1], "pays": ""}, "This sends a request to p/m: about ? tokens in, at most ? out, at an unknown price; not paid with any key."),
    ],
)  # fmt: skip
def test_what_it_costs_to_send_a_request_again(dry: dict[str, Any], said: str) -> None:
    assert trace._price(dry, "p/m") == said


class Gateway:
    def __init__(self, status: Any) -> None:
        self.status, self.asked = status, list[Any]()

    def send_again(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(asked)
        return {} if asked["dry"] else {"id": "req_2\n", "status": self.status}

    def trace(self, id: str) -> Trace:
        raise trace.NoTrace(f"no {id}")


def again(
    gateway: Gateway | None, monkeypatch: pytest.MonkeyPatch, found: Trace | None = None, **more: Any
) -> int:
    monkeypatch.setattr(trace, "at_running_gateway", lambda config: gateway)
    usual = {"url": None, "config": None, "id": "req_1", "to": None, "yes": True, "json": False, "raw": False}
    return trace.send_again(argparse.Namespace(**{**usual, **more}), found or exchange())


def test_a_request_is_sent_again_with_consent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = Gateway(200)
    assert again(gateway, monkeypatch) == 0
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("req_2   200\n", "not compared: no req_2 ")
    wanted = {"id": "req_1", "to": "p/m"}
    assert gateway.asked == [{**wanted, "dry": True}, {**wanted, "dry": False}]
    for status, code in ((399, 0), (400, 1), ("x", 0), (None, 0)):
        assert again(Gateway(status), monkeypatch, to="q/n", json=True) == code
    assert json.loads(capsys.readouterr().out.rpartition("}\n{")[0].partition("}\n{")[0] + "}") == {
        "id": "req_2\n", "status": 399
    }  # fmt: skip
    sent = TraceMessage(body='{"x": 1}')
    attempts = [
        Attempt(provider="q", model="n", dialect="gemini"),
        Attempt(provider="p", model="m", dialect="gemini", request=sent),
    ]
    gateway = Gateway(200)
    again(gateway, monkeypatch, exchange(attempts=attempts), raw=True)
    assert gateway.asked[0] == {
        "dialect": "gemini",
        "body": '{"x": 1}',
        "stream": True,
        "to": "p/m",
        "dry": True,
    }
    gateway = Gateway(200)
    again(gateway, monkeypatch, exchange(row=Row(id="r", at=1.0, dialect="gemini", asked="a")), id="x.json")
    assert gateway.asked[0] == {"dialect": "gemini", "body": "{}", "stream": False, "to": "a", "dry": True}
    for more, words in (
        ({"raw": True}, "--raw: nothing went upstream in this exchange"),
        ({"id": "x.json", "found": exchange(request=TraceMessage(body="{", truncated=True))},
         "the recorded request is incomplete and cannot be sent again"),
        ({"yes": False}, "not sent: confirm with --yes"),
    ):  # fmt: skip
        with pytest.raises(Unusable) as refused:
            again(Gateway(200), monkeypatch, **more)
        assert str(refused.value) == words
    with pytest.raises(Unusable, match="no running gateway found to send it again"):
        again(None, monkeypatch)


@rows("typed, sure", [("y\n", True), (" YES \n", True), ("n\n", False), ("", False)])
def test_only_a_person_agrees(typed: str, sure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert trace._agreed() is sure
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert trace._agreed() is False
    monkeypatch.setattr("builtins.input", lambda: typed)
    if sure:
        probe._agree()
    else:
        with pytest.raises(Unusable, match="nothing was sent"):
            probe._agree()


@rows(
    ("status", "body", "secret", "kind", "said"),
    [
        (401, "{}", "k", trace.NoTrace, "http://h:1 rejects the secret in WIREGLOT_KEY"),
        (401, "{}", "", Unusable, "http://h:1 requires its admin secret in WIREGLOT_ADMIN_SECRET, or a client key in WIREGLOT_KEY"),
        (404, '{"error": {"message": "no such"}}', "k", trace.NoTrace, "no such"),
        (404, "{}", "k", trace.NoTrace, "http://h:1: status 404, not from a Wireglot gateway: check the address"),
        (500, '{"error": {"message": "broken"}}', "k", trace.NoTrace, "http://h:1: broken"),
        (200, "[]", "k", trace.NoTrace, "http://h:1: the server has no inspector: check the address"),
    ],
)  # fmt: skip
def test_what_a_gateway_without_traces_answers(
    status: int, body: str, secret: str, kind: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WIREGLOT_KEY", "WIREGLOT_ADMIN_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(trace, "ask", lambda *_, **__: GatewayAnswer(status, {}, body.encode()))
    with pytest.raises(kind) as refused:
        trace.TracesAtGateway("http://h:1", secret).rows({}, 5)
    assert str(refused.value) == said


def test_a_gateway_is_asked_for_traces_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREGLOT_KEY", "client")
    monkeypatch.delenv("WIREGLOT_ADMIN_SECRET", raising=False)
    asked: list[Any] = []
    pages = [
        '{"rows": [{"id": "a", "at": 1}], "next": "n1"}',
        '{"rows": [{"id": "b", "at": 1}], "next": "n2"}',
    ]
    answers = [*pages, *pages[:1], '{"csrf": 5}', '{"x": 1}']

    def ask(address: Any, method: str, path: str, **given: Any) -> GatewayAnswer:
        asked.append((method, path, given["key"], given.get("headers"), given.get("seconds")))
        return GatewayAnswer(200, {}, answers.pop(0).encode())

    monkeypatch.setattr(trace, "ask", ask)
    source = trace.TracesAtGateway("http://h:1")
    found = source.rows({"q": "a b"}, 2)
    assert ([row.id for row in found.rows], found.next) == (["a", "b"], "n2")
    assert source.rows({"model": "m"}, 2).next == "n1", "only a search goes on by itself"
    monkeypatch.delenv("WIREGLOT_KEY")
    assert trace.TracesAtGateway("http://h:1").send_again({"x": 1}) == {"x": 1}
    listed = "/inspector/api/exchanges"
    assert asked == [
        ("GET", f"{listed}?limit=2&q=a+b", "client", None, None),
        ("GET", f"{listed}?limit=1&q=a+b&before=n1", "client", None, None),
        ("GET", f"{listed}?limit=2&model=m", "client", None, None),
        ("GET", "/inspector/api/session", "", None, None),
        ("POST", "/inspector/api/replay", "", {"x-wireglot-csrf": ""}, 600.0),
    ]
    monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", "admin")
    monkeypatch.setenv("WIREGLOT_KEY", "client")
    assert trace.TracesAtGateway("http://h:1")._secret == "admin"


def test_differences_are_lines_and_nothing_steers_a_terminal() -> None:
    found = [Difference("/a\x1b", "was\n", "is"), Difference("", "1", "2")]
    assert trace.compared_lines(found) == ["/a ", "  - was ", "  + is", "/", "  - 1", "  + 2"]
    assert trace.compared_lines([]) == ["both answers are the same"]
    assert trace._printable('a\n"é\x1b\u2028') == 'a\n"é\\u001b\\u2028'


# --- usage


@rows(
    ("status", "body", "secret", "name", "kind", "said"),
    [
        (401, "{}", "", "WIREGLOT_KEY", Unusable, "http://h:1 requires a key: set a valid one in --api-key or WIREGLOT_KEY"),
        (401, "{}", "k", "WIREGLOT_KEY", Failed, "http://h:1 rejects the key: set a valid one in --api-key or WIREGLOT_KEY"),
        (401, "{}", "k", "WIREGLOT_ADMIN_SECRET", Failed, "http://h:1 rejects the key: set a valid one in WIREGLOT_ADMIN_SECRET"),
        (500, '{"error": {"message": "broken"}}', "k", "WIREGLOT_KEY", Failed, "http://h:1: broken"),
        (200, "{}", "k", "WIREGLOT_KEY", Failed, "http://h:1: the server is not a Wireglot gateway"),
    ],
)  # fmt: skip
def test_what_another_server_says_of_usage(
    status: int,
    body: str,
    secret: str,
    name: str,
    kind: type[Exception],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(usage, "ask", lambda *_, **__: GatewayAnswer(status, {}, body.encode()))
    with pytest.raises(kind) as refused:
        usage._get(GatewayAddress("http", "h", 1), "/x", secret, {}, name)
    assert str(refused.value) == said


def test_usage_is_asked_of_a_gateway_as_a_key_or_as_the_admin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREGLOT_KEY", "client")
    monkeypatch.setenv("WIREGLOT_ADMIN_SECRET", "admin")
    asked: list[Any] = []

    def ask(address: Any, method: str, path: str, *, key: str) -> GatewayAnswer:
        asked.append((method, path, key))
        return GatewayAnswer(200, {}, b'{"object": "usage.list"}')

    monkeypatch.setattr(usage, "ask", ask)

    def there(**more: Any) -> Any:
        given = {"url": "http://h:1", "api_key": None, "admin": False, "key": None, **more}
        return usage._there(argparse.Namespace(**given), [{"group_by": "a b"}])

    for more in ({}, {"api_key": "given"}, {"admin": True, "key": "ada"}):
        assert there(**more) == [{"object": "usage.list"}]
    assert asked == [
        ("GET", "/v1/usage?group_by=a+b", "client"),
        ("GET", "/v1/usage?group_by=a+b", "given"),
        ("GET", "/v1/admin/usage?group_by=a+b", "admin"),
    ]
    for more, words in (
        ({"key": "ada"}, "--key: --admin is required to see the usage of other keys"),
        ({"api_key": "ä"}, "--api-key: expected a key in plain ASCII"),
    ):
        with pytest.raises(Unusable, match=words):
            there(**more)
    monkeypatch.delenv("WIREGLOT_ADMIN_SECRET")
    with pytest.raises(
        Unusable, match="--admin: set WIREGLOT_ADMIN_SECRET to the admin secret of that gateway"
    ):
        there(admin=True)
    names = ("by", "since", "until", "key", "model", "provider", "group", "client", "agent")
    given = argparse.Namespace(**{name: name.upper() for name in names})
    assert usage._asked(given) == {
        "group_by": "BY", "start": "SINCE", "end": "UNTIL", "key": "KEY", "model": "MODEL", "provider": "PROVIDER",
        "group": "GROUP", "client": "CLIENT", "agent": "AGENT",
    }  # fmt: skip
    for option in ("admin", "api_key"):
        with pytest.raises(Unusable, match=f"--{option.replace('_', '-')}: expected with --url only"):
            usage._check(argparse.Namespace(**{"url": None, "admin": None, "api_key": None, option: "x"}))


def test_usage_is_a_table_and_a_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    total = {
        "requests": 1234,
        "failed": 1,
        "input_tokens": 10,
        "unpriced_requests": 0,
        "open": 1,
        "p50_ms": 9,
        "cost": "2",
    }
    day = {**total, "day": "2026-01-01", "total_tokens": 8}
    report = {"data": [day], "group_by": ["day"], "currency": "EUR", "total": total, "durations": "x"}
    assert usage.table_lines(report, io.StringIO()) == [
        "day         requests  failed  input  ~p50 ms  cost EUR",
        "2026-01-01     1,234       1     10        9    2.0000",
        "total          1,234       1     10        9    2.0000",
        "",
        "1 request not finished yet",
        "~p50: from hourly sums, within 5 %; all other numbers are exact",
    ]
    monkeypatch.setenv("COLUMNS", "30")
    two = {"data": [day, {**day, "day": "2026-01-03", "total_tokens": 4}]}
    out = Terminal()
    assert usage.chart_lines(two, out) == [
        "tokens per day",
        "2026-01-01  ###############  8",
        "2026-01-02                   0",
        "2026-01-03  #######          4",
    ]
    assert usage.chart_lines({"data": []}, out) == []
    assert usage._BLOCKS == " ▏▎▍▌▋▊▉█"
    assert usage._can_show(SimpleNamespace(encoding="utf-8"))  # type: ignore[arg-type]  # all that is asked
    for encoding in ("ascii", None, "no-such-encoding"):
        assert not usage._can_show(SimpleNamespace(encoding=encoding))  # type: ignore[arg-type]  # all that is asked


# --- probes


def test_an_endpoint_elsewhere_is_asked_with_consent_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for root, near in (
        ("http://localhost:1", True), ("http://127.1.2.3", True), ("http://[::1]:1", True),
        ("http://10.0.0.1", False), ("https://api.example", False), ("http://127", False), ("x", False),
    ):  # fmt: skip
        assert probe._is_near(root) is near, root
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    given = argparse.Namespace(dialect="anthropic", yes=False, timeout=None, model=None)
    with pytest.raises(Unusable) as refused:
        probe._send(given, [], "https://api.example", "", None)
    assert str(refused.value) == (
        "this may cost money: add --yes to run without confirmation (--dry-run shows what is sent)"
    )
    order: list[str] = []
    monkeypatch.setattr("sys.stdin", Terminal())

    def agree() -> None:
        order.append("asked")
        raise Unusable("nothing was sent")

    monkeypatch.setattr(probe, "_agree", agree)
    monkeypatch.setattr(probe, "check_answers", lambda *_: order.append("sent"))
    given.model = "m"
    with pytest.raises(Unusable, match="nothing was sent"):
        probe._send(given, [], "https://api.example", "", None)
    assert order == ["asked"]


def test_the_key_of_a_probe_comes_from_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "sk-0123456789abcdef")
    monkeypatch.delenv("NO_KEY", raising=False)
    for given, found in (
        ((None, "A_KEY"), "sk-0123456789abcdef"),
        (("sk-2", None), "sk-2"),
        ((None, None), ""),
    ):
        assert probe._key(argparse.Namespace(key=given[0], key_env=given[1])) == found
    monkeypatch.setenv("BAD_KEY", "a b")
    for wrong, words in (
        (("a", "A_KEY"), "--key and --key-env exclude each other"),
        ((None, "NO_KEY"), "--key-env: the variable NO_KEY is not set"),
        ((None, "BAD_KEY"), "$BAD_KEY: expected a key in plain ASCII"),
        (("ä", None), "--key: expected a key in plain ASCII"),
    ):
        with pytest.raises(Unusable) as refused:
            probe._key(argparse.Namespace(key=wrong[0], key_env=wrong[1]))
        assert str(refused.value).startswith(words)
    arguments = argparse.Namespace(key=None, key_env="A_KEY")
    assert probe._scrubbed("it says sk-0123456789abcdef", arguments) == "it says [redacted]"
    arguments = argparse.Namespace(
        dialect=None, only=[], large=False, list=False, base_url=None, dry_run=False, key=None, key_env=None
    )
    with pytest.raises(Unusable, match="expected a BASE_URL, as in"):
        probe.run(arguments)
    arguments.base_url = "http://h"
    with pytest.raises(
        Unusable, match="--dialect: expected the dialect of the endpoint: anthropic, openai-chat"
    ):
        probe.run(arguments)


def test_files_of_a_probe_are_reserved_and_empty_ones_are_taken_away(tmp_path: Path) -> None:
    old, empty, full = (tmp_path / name for name in ("old", "empty", "full"))
    old.touch()
    with probe._reserved([old, empty, full]):
        assert (empty.exists(), full.exists()) == (True, True)
        full.write_text("x")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["full", "old"]
    with pytest.raises(FileNotFoundError), probe._reserved([empty, tmp_path / "none" / "x"]):
        raise AssertionError("nothing is spent")
    assert not empty.exists()


def test_cases_of_a_probe_are_listed_by_themes(capsys: pytest.CaptureFixture[str]) -> None:
    cases = probe.selected("anthropic", ["answers.shape", "streams.ending"], large=True)
    probe.print_list(cases)
    lines = capsys.readouterr().out.splitlines()
    titles = {theme.name: theme.title for theme in THEMES}
    first, second = sorted(cases, key=lambda each: list(titles).index(each.theme))
    assert lines == [
        titles[first.theme],
        f"  {first.id:<14}  {first.level:<6}  {first.cost:<6}  {first.title}",
        titles[second.theme],
        f"  {second.id:<14}  {second.level:<6}  {second.cost:<6}  {second.title}",
    ]


# --- the inspector's page


def running(**more: Any) -> RunningGateway:
    return RunningGateway("http://127.0.0.1:8484", 1, "1", key="operator", **more)


def test_whose_a_gateway_is(monkeypatch: pytest.MonkeyPatch) -> None:
    since = time.strftime(", since %H:%M", time.localtime(3600.0))
    monkeypatch.setenv("HOME", "/home/me/")
    for gateway, said in (
        (running(), "without a configuration"),
        (running(config="/w.toml"), "configuration /w.toml"),
        (running(client="claude"), "private, for claude"),
        (
            running(client="claude", folder="/home/me/x", since=3600.0),
            f"private, for claude in ~/x{since}",
        ),
        (running(client="claude", folder="/home/mean"), "private, for claude in /home/mean"),
        (running(client="claude", folder="/home/me"), "private, for claude in ~"),
    ):
        assert inspect._whose(gateway) == said
    monkeypatch.setattr(inspect, "can_ask", lambda: False)
    with pytest.raises(Unusable) as refused:
        inspect._one_of([running(), running(config="/w.toml")])
    link = "    wireglot inspect --url http://127.0.0.1:8484"
    assert str(refused.value) == (
        f"2 of your gateways are running, choose one:\n  without a configuration:\n{link}\n  configuration /w.toml:\n{link}"
    )
    asked: list[Any] = []
    monkeypatch.setattr(inspect, "can_ask", lambda: True)

    def pick(*given: Any) -> int:
        asked.append(given)
        return 1

    monkeypatch.setattr(inspect, "pick", pick)
    assert inspect._one_of([running(), running(config="/w.toml")]).config == "/w.toml"
    assert asked == [
        (
            "Gateway:",
            [
                "http://127.0.0.1:8484  without a configuration",
                "http://127.0.0.1:8484  configuration /w.toml",
            ],
        )
    ]
    monkeypatch.setattr(inspect, "pick", lambda *_: None)
    with pytest.raises(Unusable, match="no gateway was chosen"):
        inspect._one_of([running()])


@rows(
    ("access", "key", "as_admin", "link"),
    [
        ("open", "", False, "http://h:1/inspector"),
        ("open", "k", False, "http://h:1/inspector"),
        ("open", "k", True, "http://h:1/inspector/enter/ticket"),
        ("none", "k", False, "http://h:1/inspector/enter/ticket"),
        ("none", "", False, "http://h:1/inspector"),
        ("none", "", True, ""),
    ],
)
def test_the_link_to_the_page(
    access: str, key: str, as_admin: bool, link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "sign_in_ticket", lambda key, now: "ticket")
    monkeypatch.setattr(
        inspect, "ask", lambda *_: GatewayAnswer(200, {}, b'{"access": "%s"}' % access.encode())
    )
    address = GatewayAddress("http", "h", 1)
    if link:
        assert inspect.page_link(address, key, as_admin=as_admin) == link
    else:
        with pytest.raises(Failed, match="http://h:1: not your own gateway"):
            inspect.page_link(address, key, as_admin=as_admin)
    given = {"file": "x", "url": None, "config": None, "admin": False}
    for name in ("url", "config", "admin"):
        with pytest.raises(Unusable, match="cannot be combined with --url, --config or --admin"):
            inspect.run(argparse.Namespace(**{**given, name: "y"}))
    assert inspect._ANYWHERE == {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


# --- the configuration, its stores and its keys


def test_a_configuration_is_summed_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = catalog.provider("kimi")
    credential = Credential(Secret("k", "env:K"), "a"), Credential(Secret("l", "file:/l"), "b")
    mine = Provider("mine", spec, credential)
    region = Provider("region", catalog.provider("azure"), variables={"resource": "acme"})
    now = Settings(
        providers={"mine": mine, "region": region},
        rules=(Rule("fast", ("mine/a", "mine/b"), losses="strict"), Rule("slow", ("mine/c",))),
        keys=(ClientKey("ada", "0" * 64), ClientKey("bob", "0" * 64, models=("a", "b"))),
        server=ServerSettings(host="::1", port=1, workers=2),
        search=SearchSettings(backend="brave", key=Secret("k", "env:B"), url="https://s.example/x"),
        fetch=FetchSettings(private_hosts=("wiki",)),
        mcp=McpSettings(hosts=("a", "b"), private_hosts=("c",)),
        notes=("a note",),
    )
    config._print_summary(now, Paint(sys.stdout))
    urls = spec.base_url, catalog.provider("azure").base_url.replace("{resource}", "acme")
    dialects = ", ".join(spec.dialects), ", ".join(catalog.provider("azure").dialects)
    wide, long = max(map(len, dialects)), max(map(len, urls))
    assert capsys.readouterr().out.splitlines() == [
        "no file, environment only: no problems",
        "listens on http://[::1]:1, 2 workers; losses: warn",
        "",
        "providers",
        f"  mine    {dialects[0]:<{wide}}  {urls[0]:<{long}}  env:K, file:/l",
        f"  region  {dialects[1]:<{wide}}  {urls[1]:<{long}}  no key",
        "",
        "models",
        "  fast  -> mine/a, then mine/b    losses: strict",
        "  slow  -> mine/c",
        "",
        "web",
        "  search  brave  s.example                   key from env:B",
        "  fetch   pages  public addresses, and wiki",
        "  mcp     tools  a, b, c",
        "",
        "keys",
        "  ada  all models",
        "  bob  a, b",
        "",
        "notes",
        "  a note",
    ]
    for more, row in (
        ({"search": SearchSettings(backend="model", model="m/x")}, ("search", "model", "m/x", "")),
        ({"search": SearchSettings(backend="exa")}, ("search", "exa", "the vendor's host", "no key")),
        ({"fetch": FetchSettings()}, ("fetch", "pages", "public addresses", "")),
        ({"mcp": McpSettings()}, ("mcp", "tools", "no hosts", "")),
    ):
        assert list(config._web_rows(Settings(**more))) == [row]
    with pytest.raises(Unusable, match="both a and --config name a file: use one of them"):
        config.run(argparse.Namespace(path="a", config="b", action="check", json=False))
    monkeypatch.setattr(config, "find", lambda: None)
    with pytest.raises(Unusable, match=r"no wireglot\.toml in the current folder: name a file"):
        config.run(argparse.Namespace(path=None, config=None, action="trust", json=False))


def test_a_store_at_a_gateway(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Any] = []
    answers = {
        "stats": b'{"engine": "X", "version": 1, "size": 0, "kinds": {}}',
        "wipe": b'{"removed": {"responses": 2, "vault": 0}}',
    }

    def at(action: str, status: int = 200) -> int:
        def ask(address: Any, method: str, path: str, *, key: str) -> GatewayAnswer:
            asked.append((method, path, key))
            body = answers[action] if status == 200 else b'{"error": {"message": "no"}}'
            return GatewayAnswer(status, {}, body)

        monkeypatch.setattr(store, "ask", ask)
        return store._at_gateway(
            "http://h:1", "k", argparse.Namespace(action=action, caller="a/b", json=False)
        )

    assert (at("stats"), at("wipe")) == (0, 0)
    assert capsys.readouterr().out == "X, schema 1\nremoved 2 responses\n"
    assert asked == [("GET", "/v1/admin/store", "k"), ("DELETE", "/v1/admin/callers/a%2Fb/data", "k")]
    for status, words in (
        (401, "http://h:1 rejects the admin secret in WIREGLOT_ADMIN_SECRET"),
        (403, "http://h:1: no"),
    ):
        with pytest.raises(Failed) as refused:
            at("stats", status)
        assert str(refused.value) == words
    with pytest.raises(Unusable, match="--url and --config exclude each other"):
        store.run(argparse.Namespace(url="http://h", config="w.toml"))


def test_a_caller_is_forgotten_in_the_vault_of_a_fleet_too(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    async def forget(caller: str) -> int:
        return 3

    async def close() -> None:
        closed.append("counters")

    async def opened(url: str) -> Any:
        return SimpleNamespace(close=close), SimpleNamespace(forget=forget) if url == "redis://h" else None

    async def wipe(caller: str) -> dict[str, int]:
        return {"responses": 1, "vault": 2}

    monkeypatch.setattr(store, "open_counters", opened)
    engine: Any = SimpleNamespace(wipe=wipe)

    def wiped(url: str) -> dict[str, int]:
        now: Any = SimpleNamespace(store=SimpleNamespace(shared=SimpleNamespace(value=url)))
        return asyncio.run(store.wiped(now, engine, "ada"))

    assert wiped("redis://h") == {"responses": 1, "vault": 5}
    assert wiped("redis://without") == wiped("") == {"responses": 1, "vault": 2}
    assert closed == ["counters", "counters"]


def provider_key(**more: Any) -> ProviderKey:
    return ProviderKey(
        **{"provider": "kimi", "title": "Kimi", "state": "missing", "variables": ("K",), **more}
    )


def test_providers_whose_key_is_not_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unusable, match="there is no provider kimy: did you mean kimi"):
        login._known("kimy", {"kimi": provider_key()})
    with pytest.raises(Unusable, match="there is no provider zzzz: `wireglot providers` lists all of them"):
        login._known("zzzz", {"kimi": provider_key()})
    for text, found in (("\n  sk-1 \nsk-2", "sk-1"), ("", ""), (" \n", "")):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert login._piped_key() == found
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * 16_384))
    assert len(login._piped_key()) == 16_384
    for text, words in (
        ("x" * 16_385, "of at most 16,384 characters"),
        ("a b", "in plain ASCII without spaces"),
    ):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        with pytest.raises(Unusable, match=f"standard input: expected a key {words}"):
            login._piped_key()


def test_a_key_that_is_forgotten_or_never_was_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone: list[Any] = []
    monkeypatch.setattr(login, "kept_file", lambda environ: Path("/k"))

    def forget(*given: Any) -> bool:
        gone.append(given)
        return True

    monkeypatch.setattr(login, "forget", forget)
    shared = provider_key(kept="K", variable="K", state="environment")
    known = {
        "kimi": shared,
        "other": provider_key(provider="other", kept="K"),
        "none": provider_key(provider="none"),
    }
    assert login._forget(shared, known) == 0
    assert (gone, capsys.readouterr().err.splitlines()) == (
        [(Path("/k"), "K")],
        ["Deleted K.", "It was also the key of other.", "K is still set in this environment."],
    )
    for state, why in (
        ("environment", ": K is set in the environment: unset it"),
        ("configuration", ": its key is in the configuration"),
        ("login", ": it uses a sign-in without a key"),
        ("missing", ""),
    ):
        with pytest.raises(Failed) as refused:
            login._forget(provider_key(state=state, variable="K"), {})
        assert str(refused.value) == f"no key of kimi is stored{why}"


def test_keys_of_providers_are_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(login, "kept_file", lambda environ: Path("/k"))
    monkeypatch.setattr(login, "kept_places", lambda place, notes: {"K": "file", "OTHER": "keyring"})
    known = [
        provider_key(state="file", variable="K", kept="K"),
        provider_key(provider="kimi-2", state="file", variable="K", kept="K"),
        provider_key(provider="env", state="environment", variable="E", kept="K"),
        provider_key(provider="ring", state="keyring", variable="R"),
        provider_key(provider="toml", state="configuration", variable="T"),
        provider_key(provider="cloud", state="login", variable="L"),
        provider_key(provider="off", state="missing"),
    ]
    by_name = {each.provider: each for each in known}
    login._list(by_name, as_json=False)
    assert capsys.readouterr().out == (
        "provider      key    from\n"
        "kimi, kimi-2  K      stored in /k\n"
        "env           E      the environment (another one is stored)\n"
        "ring          R      stored in the keyring\n"
        "toml                 the configuration\n"
        "cloud                signed in, without a key\n"
        "              OTHER  stored in the keyring\n"
    )
    login._list(by_name, as_json=True)
    assert json.loads(capsys.readouterr().out)[0] == {
        "providers": ["kimi", "kimi-2"], "key": "K", "source": "stored in /k"
    }  # fmt: skip
    monkeypatch.setattr(login, "kept_places", lambda place, notes: {})
    login._list({}, as_json=False)
    none = "No provider key found. Store one: wireglot login PROVIDER (`wireglot providers`)\n"
    assert capsys.readouterr() == ("", none)


# --- lists, menus, clients


def test_every_dialect_is_described() -> None:
    assert listing.DIALECTS.keys() == set(registry.names())
    assert listing._dialects() == [(name, listing.DIALECTS[name]) for name in registry.names()]
    described = {
        "anthropic": "Anthropic Messages", "openai-chat": "OpenAI Chat Completions", "openai-responses": "OpenAI Responses",
        "gemini": "Gemini generateContent and streamGenerateContent", "gemini-interactions": "Gemini Interactions",
        "code-assist": "envelope (v1internal)", "gemini-simple": "/v1/gemini", "anthropic-vertex": "(rawPredict)",
        "anthropic-bedrock": "(InvokeModel)", "ollama": "(/api/chat)", "ollama-generate": "(/api/generate)",
    }  # fmt: skip
    ends = {"code-assist", "anthropic-vertex", "anthropic-bedrock", "ollama", "ollama-generate"}
    for name, words in described.items():
        about = listing.DIALECTS[name]
        assert about.endswith(words) if name in ends else words in about
    assert listing.DIALECTS["openai-responses"] == "OpenAI Responses"
    assert listing.DIALECTS["gemini-interactions"] == "Gemini Interactions"
    assert listing.DIALECTS["gemini"] == described["gemini"]
    assert listing.DIALECTS["ollama"] == "Ollama's native API (/api/chat)"


def test_keys_of_a_menu() -> None:
    assert menu._KEYS == {
        "\x1b[A": "up", "\x1bOA": "up", "\x10": "up", "\x1b[B": "down", "\x1bOB": "down", "\x0e": "down", "\t": "down",
        "\r": "enter", "\n": "enter", "\x7f": "back", "\x08": "back", "\x03": "interrupt", "\x04": "cancel",
        "\x1b": "cancel",
    }  # fmt: skip
    assert menu._KEY.findall("\x1b[1;5Ax\x1bOB\x1b\n") == ["\x1b[1;5A", "x", "\x1bOB", "\x1b", "\n"]
    for text, cut in (
        ("\x1b", True),
        ("\x1b[", True),
        ("\x1b[1;", True),
        ("\x1bO", True),
        ("\x1b[A", False),
        ("a", False),
    ):
        assert (menu._CUT_KEY.search(text) is not None) is cut, text


@rows("typed, chosen, said", [
    ("2\n", 1, ""), ("", None, ""), ("bet\n", 1, ""), ("zzz\nalpha\n", 0, "no match\n"),
    ("a\n1\n", 0, "3 matches: enter a number\n"), ("beta\n", 1, ""),
])  # fmt: skip
def test_a_row_is_chosen_by_a_line(
    typed: str,
    chosen: int | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert menu._typed("Which?", ["alpha", "beta b", "gamma\n"]) == chosen
    asked = "Which? (number or name, Enter to cancel) "
    rest = f"{said}{asked}" if said else ""
    assert capsys.readouterr().err == f"  1 alpha\n  2 beta b\n  3 gamma \n{asked}{rest}"


DOOR = Door("http://h:1", "the-key", "p/m", 1000, ("p/m", *(f"p/{number}" for number in range(30))))


def test_settings_of_editors_are_printed_whole() -> None:
    zed = json.loads(PRINTED["zed"][0](DOOR))
    provider = zed["language_models"]["openai_compatible"]["Wireglot"]
    models = provider.pop("available_models")
    assert provider == {"api_url": "http://h:1/v1"}
    assert models[:2] == [
        {"name": "p/m", "display_name": "p/m", "max_tokens": 1000},
        {"name": "p/0", "display_name": "p/0", "max_tokens": 128_000},
    ]
    assert zed["agent"] == {"default_model": {"provider": "Wireglot", "model": "p/m"}}
    ((code),) = json.loads(PRINTED["vscode"][0](DOOR))
    listed = code.pop("models")
    assert code == {"name": "Wireglot", "vendor": "customendpoint", "apiType": "chat-completions"}
    assert listed[1] == {
        "id": "p/0", "name": "p/0", "url": "http://h:1/v1/chat/completions", "toolCalling": True, "vision": True,
        "maxInputTokens": 128_000, "maxOutputTokens": 32_000,
    }  # fmt: skip
    assert (len(models), len(listed)) == (20, 20)
    assert PRINTED["crush"][0](DOOR).splitlines() == [
        "provider add wireglot --type openai-compat --base-url http://h:1/v1 \\",
        '  --api-key "${WIREGLOT_KEY:-none}" --discover-models true',
        "model add wireglot/p/m --context-window 1000 \\",
        "  --default-max-tokens 32000",
        "model large wireglot/p/m",
        "model small wireglot/p/m",
    ]
    assert (list(PRINTED), list(UNSUPPORTED)) == (["crush", "zed", "vscode"], ["amp"])


def test_how_clients_go_on_and_what_they_ask_for_by_themselves() -> None:
    assert {name: each.resume for name, each in CLIENTS.items()} == {
        "aider": "", "claude": "--resume", "cline": "history", "codex": "resume", "continue": "--resume",
        "copilot": "--resume", "droid": "--resume", "gemini": "--resume", "goose": "session --resume",
        "hermes": "--continue", "kimi": "--continue", "llm": "", "openclaw": "", "opencode": "--continue",
        "pi": "--resume", "qwen": "--resume",
    }  # fmt: skip
    own = {name: (each.own_model, each.own_models) for name, each in CLIENTS.items() if each.own_model}
    assert own == {
        "claude": ("claude-sonnet-5-5", CLIENTS["claude"].own_models),
        "codex": ("gpt-5.5", CLIENTS["codex"].own_models),
        "gemini": ("gemini-2.5-flash", "gemini-*"),
    }
    assert [name for name, each in CLIENTS.items() if each.has_statusline] == ["claude"]
    assert FAMILY_DIALECTS == {"anthropic": "anthropic", "openai": "openai-chat", "gemini": "gemini"}
    assert FAMILY_MODELS == {
        "anthropic": "claude-sonnet-4-5",
        "openai": "gpt-5.5",
        "gemini": "gemini-2.5-flash",
    }


def test_variables_of_the_vendors_sdks() -> None:
    bare = Door("http://h:1", "k")
    found = by_family(("anthropic", "openai", "gemini"), bare)
    assert found.set == {
        "ANTHROPIC_BASE_URL": "http://h:1", "ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "http://h:1/v1",
        "OPENAI_API_BASE": "http://h:1/v1", "OPENAI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "http://h:1",
        "GEMINI_API_KEY": "k", "GOOGLE_API_KEY": "k",
    }  # fmt: skip
    assert found.unset == ("ANTHROPIC_AUTH_TOKEN", "GOOGLE_GENAI_USE_VERTEXAI")
    named = by_family(("anthropic", "openai", "gemini"), DOOR).set
    assert {name: value for name, value in named.items() if name.endswith("_MODEL")} == {
        "ANTHROPIC_MODEL": "p/m", "OPENAI_MODEL": "p/m", "GEMINI_MODEL": "p/m"
    }  # fmt: skip


def test_openclaw_has_its_files_where_its_variables_say() -> None:
    for environ, folder in (
        ({"HOME": "/h"}, "/h/.openclaw"),
        ({"HOME": "/h", "OPENCLAW_STATE_DIR": "/s"}, "/s"),
        ({"HOME": "/h", "OPENCLAW_CONFIG_PATH": "/c/x.json"}, "/c"),
    ):
        assert CLIENTS["openclaw"].point(DOOR, environ).set["OPENCLAW_INCLUDE_ROOTS"] == folder
    settings = CLIENTS["hermes"].point(Door("http://h:1", "none", "m"), {}).files["hermes/config.yaml"]
    assert json.loads(settings)["model"]["api_key"] == "no-key-is-needed"
