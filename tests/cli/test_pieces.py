"""Pieces of commands, called in this process: addresses, answers of people, lines of lists, words of checks."""

from __future__ import annotations

import argparse
import http.client
import io
import os
import socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import rows
from wireglot.cli import (
    ask_providers,
    inspect,
    keys,
    pairs,
    remote_gateway,
    statusline,
    terminal,
    trace_view,
    trust,
    usage,
)
from wireglot.cli.doctor import machine_checks, provider_checks
from wireglot.cli.remote_gateway import GatewayAddress, GatewayAnswer, address_of, reachable, usable_key
from wireglot.cli.terminal import Failed, Paint, Unusable, count, grouped, loss_lines, one_line, what, why
from wireglot.gateway.observe.running import RunningGateway
from wireglot.gateway.relay import key_checks
from wireglot_core.ir.loss import Loss
from wireglot_core.traces.trace import Row, TraceCounted, TraceFrame

# --- addresses

ADDRESSES = [
    ("http://h", GatewayAddress("http", "h", None)),
    ("https://h:1/", GatewayAddress("https", "h", 1)),
    ("http://h:1/v1", GatewayAddress("http", "h", 1)),
    ("http://h:1/v1/", GatewayAddress("http", "h", 1)),
    ("http://h/a b/v1", GatewayAddress("http", "h", None, "/a%20b")),
    ("http://[::1]:8/x", GatewayAddress("http", "::1", 8, "/x")),
    ("http://h/a(b)~c", GatewayAddress("http", "h", None, "/a(b)~c")),
]


@rows("url, address", ADDRESSES)
def test_an_address_is_read_from_a_url_as_clients_have_it(url, address):
    assert address_of(url) == address


@rows("url, words", [
    ("h:1", "got 'h:1'"),
    ("ftp://h/", "got 'ftp://h/'"),
    ("http://", "expected http://HOST:PORT"),
    ("http://h:x/", "expected http://HOST:PORT: "),
    ("ftp://user:secret@h/p?key=secret#secret", "got 'ftp://h/p'"),
    ("http://a b/", "got 'http://a b/'"),
])  # fmt: skip
def test_another_address_cannot_be_used_and_no_secret_is_shown(url, words):
    with pytest.raises(Unusable) as caught:
        address_of(url)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_address_is_written_with_its_port():
    assert GatewayAddress("http", "::1", 8, "/x").url == "http://[::1]:8/x"
    assert GatewayAddress("https", "h", None).url == "https://h"
    for listening, called in (
        ("http://0.0.0.0:8484", "http://127.0.0.1:8484"),
        ("http://[::]:1", "http://[::1]:1"),
        ("http://10.0.0.0:1", "http://10.0.0.0:1"),
    ):
        assert reachable(listening) == called


def test_a_key_must_be_one_that_http_can_carry():
    assert usable_key("sk-!~", "--key") == "sk-!~"
    assert usable_key("", "--key") == ""
    for key in ("a b", "a\n", "ü", "\x7f"):
        with pytest.raises(Unusable, match="--key: expected a key in plain ASCII"):
            usable_key(key, "--key")


COMPLAINTS = [
    (400, {}, b'{"error": {"message": "no\\nway"}}', "no way"),
    (301, {"location": "https://u:p@h/x?k"}, b"", "it redirects to https://h/x: use that address"),
    (300, {"location": "/y"}, b"{}", "it redirects to /y: use that address"),
    (399, {}, b"", "status 399, not from a Wireglot gateway: check the address"),
    (400, {"location": "/y"}, b"", "status 400, not from a Wireglot gateway: check the address"),
    (200, {}, b'{"error": {"message": 5}}', "status 200, not from a Wireglot gateway: check the address"),
    (200, {}, b'{"error": "no"}', "status 200, not from a Wireglot gateway: check the address"),
    (200, {}, b"[1]", "status 200, not from a Wireglot gateway: check the address"),
]


@rows("status, headers, body, words", COMPLAINTS)
def test_what_an_answer_complains_about(status, headers, body, words):
    assert GatewayAnswer(status, headers, body).complaint() == words


def tls(reason: str) -> ssl.SSLError:
    fault = ssl.SSLError(1, "text")
    fault.reason = reason
    return fault


FAULTS = [
    (ConnectionRefusedError(), False, "connection refused"),
    (socket.gaierror(), False, "unknown host name"),
    (UnicodeError(), False, "unknown host name"),
    (TimeoutError(), False, "no answer within 2.5 s"),
    *((tls(reason), True, "the server does not use TLS: use http://")
      for reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNEXPECTED_EOF_WHILE_READING")),
    (tls("OTHER"), True, "TLS handshake failed: OTHER"),
    (ConnectionResetError(), False, "the server does not speak HTTP: if it uses TLS, use https://"),
    (http.client.BadStatusLine("x"), False, "the server does not speak HTTP: if it uses TLS, use https://"),
    (http.client.BadStatusLine("x"), True, "the server does not speak HTTP (BadStatusLine)"),
    (OSError(5, "odd\nfault"), False, "odd fault"),
    (OSError(), False, "OSError"),
]  # fmt: skip


@rows("fault, secure, words", FAULTS)
def test_why_nothing_answers(fault, secure, words):
    assert remote_gateway._why(fault, 2.5, secure=secure).startswith(words)


# --- people


@rows("said, approved", [
    ("y", True), ("yes", True), (" YES \n", True), ("Y\n", True),
    ("", False), ("n", False), ("no", False), ("ye", False), ("yess", False),
])  # fmt: skip
def test_only_yes_approves_a_file(said, approved, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    assert trust._says_yes(Path("wireglot.toml")) is approved
    shown = capsys.readouterr().err
    assert shown.endswith("Use it with this content? [y/N] ")
    assert (
        f"wireglot: {Path('wireglot.toml').absolute()} decides where your keys and prompts are sent" in shown
    )


def test_where_a_link_leads_is_shown_before_it_is_approved(tmp_path, monkeypatch, capsys):
    (tmp_path / "target").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    monkeypatch.setattr("sys.stdin", io.StringIO("n"))
    trust._says_yes(tmp_path / "link")
    assert f"(a link to {tmp_path / 'target'})" in capsys.readouterr().err


@rows("host, shown", [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("", "127.0.0.1"), ("10.1.1.1", "10.1.1.1")])
def test_the_page_of_a_gateway_that_listens_everywhere_is_on_this_machine(host, shown, monkeypatch):
    known: list[Any] = []
    monkeypatch.setattr(inspect, "find_running", lambda environ, system: known)
    monkeypatch.setattr(inspect, "find_private", lambda environ: [])
    monkeypatch.setattr(inspect, "is_gateway", lambda address: True)
    settings = SimpleNamespace(server=SimpleNamespace(host=host, port=8484))
    monkeypatch.setattr(inspect, "settings_of", lambda config: settings)
    arguments = argparse.Namespace(url=None, config=None)
    assert inspect._running(arguments) == (GatewayAddress("http", shown, 8484), "")
    url = f"http://{f'[{host}]' if ':' in host else host or 'h'}:1"
    known.append(RunningGateway(url, 1, "1", key="operator"))
    address, key = inspect._running(arguments)
    assert (address.port, key) == (1, "operator")
    arguments.url = "http://other:2/v1"
    assert inspect._running(arguments) == (GatewayAddress("http", "other", 2), "")
    arguments.url = address.url
    assert inspect._running(arguments) == (address, "operator")


def test_a_browser_is_opened_where_there_is_one(monkeypatch, capsys):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    inspect._show("http://a", open_it=True)
    assert opened == []
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, "x")
        inspect._show(f"http://{name}", open_it=True)
        monkeypatch.delenv(name)
    for platform in ("darwin", "win32"):
        monkeypatch.setattr("sys.platform", platform)
        inspect._show(f"http://{platform}", open_it=True)
        inspect._show("http://b", open_it=False)
    assert opened == [
        f"http://{each}" for each in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "darwin", "win32")
    ]
    assert capsys.readouterr().out.count("\n") == 8


@rows("status, body, fine", [
    (200, b'{"access": "all"}', True), (200, b"{}", False), (403, b'{"access": "all"}', False),
])  # fmt: skip
def test_a_page_is_shown_where_the_gateway_has_one(status, body, fine, monkeypatch, capsys):
    asked: list[Any] = []

    def ask(address: GatewayAddress, *given: str) -> GatewayAnswer:
        asked.append(given)
        return GatewayAnswer(status, {}, body)

    monkeypatch.setattr(inspect, "ask", ask)
    address = GatewayAddress("http", "h", 1)
    if fine:
        assert inspect._open_page(address, "", open_it=False) == 0
        assert capsys.readouterr().out == "http://h:1/inspector\n"
    else:
        with pytest.raises(Failed, match="http://h:1: status"):
            inspect._open_page(address, "", open_it=False)
    assert asked == [("GET", "/inspector/api/session")]


# --- the status line


def session(losses: tuple[str, ...] = (), fault: str = "", **document: Any) -> Any:
    return statusline._Session(document, list(losses), fault)


WINDOW = {"context_window": {"context_window_size": 200_000, "total_input_tokens": 50_000}}
LINES = [
    ({}, session(), "wireglot"),
    ({"model": {"display_name": "Demo", "id": "d"}}, session(), "Demo"),
    ({"model": {"id": "d"}}, session(route="p/m"), "d → p/m"),
    ({"model": {"id": "p/m"}}, session(route="p/m"), "p/m"),
    ({}, session(route="p/m", cost=1_234_567, currency="EUR"), "p/m · 1.23 EUR"),
    ({}, session(cost=0), "wireglot · 0.00"),
    ({}, session(cost="1"), "wireglot"),
    (WINDOW, session(), "wireglot · 25% of 200k"),
    ({"context_window": {"context_window_size": 0, "total_input_tokens": 5}}, session(), "wireglot"),
    ({"context_window": {"context_window_size": 1, "total_input_tokens": 0}}, session(), "wireglot"),
    (
        {"context_window": {"context_window_size": 1999, "total_input_tokens": 1}},
        session(),
        "wireglot · 0% of 1k",
    ),
    ({}, session(("a", "b", "c")), "wireglot · lost: a, b, c"),
    ({}, session(("a", "b", "c", "d", "e")), "wireglot · lost: a, b, c and 2 more"),
    ({}, session(("a",), "no\nanswer"), "wireglot · gateway: no answer"),
    ({"model": 5, "context_window": []}, session(route=5), "wireglot"),
]


@rows("given, found, line", LINES)
def test_a_status_line_has_what_is_known(given, found, line):
    assert statusline.line(given, found) == line


def test_a_session_is_asked_for_with_the_key_and_what_its_last_request_lost(monkeypatch):
    asked: list[Any] = []
    answers: dict[str, tuple[int, bytes]] = {}

    def ask(address: GatewayAddress, method: str, path: str, *, key: str, seconds: float) -> GatewayAnswer:
        asked.append((method, path, key, seconds))
        return GatewayAnswer(answers[path][0], {}, answers[path][1])

    monkeypatch.setattr(statusline, "ask", ask)
    answers["/v1/sessions/a%2Fb"] = 200, b'{"route": "p/m", "last_request": "req/1"}'
    losses = (
        b'{"losses": [{"feature": "image", "grade": "serious"}, {"feature": "audio", "grade": "degraded"}, 5,'
        b' {"feature": "image", "grade": "serious"}]}'
    )
    answers["/v1/requests/req%2F1/losses"] = 200, losses
    found = statusline._Session.found("http://h", "k", "a/b")
    assert (found.document["route"], found.losses, found.fault) == ("p/m", ["image"], "")
    assert asked == [
        ("GET", "/v1/sessions/a%2Fb", "k", 2.0),
        ("GET", "/v1/requests/req%2F1/losses", "k", 2.0),
    ]
    for status, body, fault in (
        (404, b'{"error": {"message": "unknown"}}', ""),
        (404, b"{}", "status 404, not from a Wireglot gateway: check the address"),
        (401, b'{"error": {"message": "who?"}}', "who?"),
    ):
        answers["/v1/sessions/x"] = status, body
        assert statusline._Session.found("http://h", "", "x").fault == fault
    assert statusline._Session.found("", "", "x").fault == "ANTHROPIC_BASE_URL is not set"
    assert statusline._Session.found("http://h", "", "").fault == ""
    assert "expected http" in statusline._Session.found("h", "", "x").fault
    answers["/v1/sessions/y"] = 200, b'{"last_request": ""}'
    assert statusline._Session.found("http://h", "", "y").losses == []


# --- what is printed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_losses_of_one_kind_are_one_line(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    losses = [
        Loss("$.b", "image", "dropped", "no images"),
        Loss("$.a", "metadata", "dropped", "one"),
        Loss("$.c", "image", "dropped", "no images"),
        Loss("$.d", "metadata", "dropped", "two"),
    ]
    groups = grouped(losses)
    assert [what(group) for group in groups] == ["image x2", "metadata x2"]
    assert [why(group) for group in groups] == ["no images", ""]
    lines = loss_lines(losses, Paint(Terminal()))
    assert [line.split() for line in lines] == [
        ["serious", "dropped", "image", "x2", "$.b", "no", "images"],
        ["harmless", "dropped", "metadata", "x2", "$.a"],
    ]
    assert lines[0] == "  serious  dropped      image x2     $.b  no images"
    assert loss_lines([], Paint(Terminal())) == []


def test_words_for_numbers_and_for_one_line():
    assert [count(n, "loss", "losses") for n in (0, 1, 1234)] == ["0 losses", "1 loss", "1,234 losses"]
    assert count(2, "byte") == "2 bytes"
    assert one_line("a\tb\x1b[1mc\n") == "a b [1mc "


def test_colours_are_those_of_their_meaning(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    paint = Paint(Terminal())
    shown = {name: paint("x", name)[2:].partition("m")[0] for name in terminal._COLOURS}
    assert shown == {
        "dropped": "31", "approximated": "33", "emulated": "36", "invented": "35", "serious": "31", "degraded": "33",
        "harmless": "2", "ok": "32", "bold": "1", "dim": "2",
    }  # fmt: skip
    assert Paint(io.StringIO())("x", "ok") == "x"
    with pytest.raises(KeyError):
        Paint(io.StringIO())("x", "no colour")
    monkeypatch.setenv("TERM", "dumb")
    assert Paint(Terminal())("x", "ok") == "x"


def test_statuses_are_those_of_a_shell():
    assert (terminal.OK, terminal.FAILED, terminal.UNUSABLE, terminal.MAX_FAILURES) == (0, 1, 2, 100)
    assert (terminal.NOT_EXECUTABLE, terminal.NOT_FOUND) == (126, 127)
    assert (terminal.HUNG_UP, terminal.INTERRUPTED, terminal.PIPE_CLOSED, terminal.TERMINATED) == (
        129,
        130,
        141,
        143,
    )


# --- exchanges


def row(**fields: Any) -> Row:
    return Row(**{"id": "req_1", "at": 0.0, "state": "done", "status": 200, **fields})


@rows("milliseconds, shown", [(None, ""), (0, "0ms"), (999, "999ms"), (1000, "1.0s"), (12_345, "12.3s")])
def test_times_are_short(milliseconds, shown):
    assert trace_view.spent(milliseconds) == shown


@rows("fields, shown", [
    ({}, "200"), ({"state": "failed", "status": 399}, "broken"), ({"state": "failed", "status": 400}, "400"),
    ({"state": "running"}, "running"), ({"status": 0}, "done"),
])  # fmt: skip
def test_a_status_is_a_number_or_a_word(fields, shown):
    assert trace_view._status(row(**fields)) == shown


def test_tokens_and_losses_are_counted():
    def tokens(given: int, made: int) -> str:
        return trace_view._tokens(SimpleNamespace(tokens=SimpleNamespace(input=given, output=made)))  # type: ignore[arg-type]  # all that is looked at

    assert (tokens(990, 9), tokens(990, 10), tokens(1500, 60)) == ("999", "1.0k", "1.6k")
    assert trace_view._tokens(row()) == ""

    def losses(serious: int, degraded: int, harmless: int) -> str:
        lost = SimpleNamespace(serious=serious, degraded=degraded, harmless=harmless)
        return trace_view._losses(SimpleNamespace(losses=lost))  # type: ignore[arg-type]  # all that is looked at

    assert (losses(1, 2, 3), losses(0, 2, 3), losses(0, 0, 0)) == ("6!", "5", "")
    assert trace_view._losses(row()) == ""


@rows("causes, shown", [
    ((), ""), ((0,), " < 1"), ((0, 1, 2), " < 1-3"), ((0, 2, 3, 5), " < 1,3-4,6"), ((0, 2, 4, 6), " < 1,3,5…"),
])  # fmt: skip
def test_what_a_piece_was_made_of_is_counted_from_one(causes, shown):
    assert trace_view._causes(TraceFrame(ms=0.0, data="", causes=list(causes))) == shown


@rows("what_, client, upstream, shown", [
    ("serious losses", 1, 0, "1 serious loss"), ("serious losses", 2, 0, "2 serious losses"),
    ("tool ids changed", 3, 0, "tool ids changed 3"), ("tool names changed", 3, 0, "tool names changed 3"),
    ("messages", 3, 4, "messages 3 -> 4"),
])  # fmt: skip
def test_what_became_of_a_request_is_counted(what_, client, upstream, shown):
    assert trace_view._counted(TraceCounted(what=what_, client=client, upstream=upstream)) == shown


def test_the_end_of_a_long_pointer_is_shown():
    assert trace_view._short("/messages/0", 11) == "/messages/0"
    assert trace_view._short("/messages/0", 5) == "…es/0"
    assert trace_view.upstream_of(row(provider="p", model="m")) == "p/m"
    assert trace_view.upstream_of(row(model="m")) == "m"


def test_a_list_is_as_wide_as_its_terminal(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    many = [row(client="claude-code", asked="a" * 30, provider="provider", model="m" * 30, total_ms=5.0)]
    for columns, names, longest in (
        (160, "time client asked upstream status total tokens loss id", 160),
        (110, "time client asked upstream status total tokens loss id", 110),
        (109, "time client upstream status total loss id", 109),
        (40, "client upstream status id", 40),
        (200, "time client asked upstream status total tokens loss id", 160),
    ):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = trace_view.list_lines(many, Terminal())
        assert max(map(len, lines)) <= longest
        if columns != 40:
            assert lines[0].split() == names.split()
        assert lines[1] == "1970-01-01"
        assert lines[2].endswith("req_1")
    assert trace_view.list_lines([], Terminal()) == ["no exchanges"]
    assert trace_view.width_of(io.StringIO()) == 80


# --- words of checks


def answered(**fields: Any) -> Any:
    given = {
        "provider": "kimi",
        "host": "h.example:443",
        "outcome": "silent",
        "problem": "connect",
        "words": "w",
    }
    return SimpleNamespace(
        **{"status": 500, "milliseconds": 5, "source": "env:K", "fix": "", **given, **fields}
    )


def case(**environ: str) -> Any:
    return SimpleNamespace(file="wireglot.toml", environ=environ, running=[], settings=None)


def kimi(**fields: Any) -> Any:
    spec = SimpleNamespace(title="Kimi", api_key_env=("KIMI_KEY",))
    return SimpleNamespace(**{"name": "kimi", "proxy": "", "spec": spec, "stated": False, **fields})


TABLE = "[providers.kimi] in wireglot.toml"
FIXES = [
    (case(), kimi(proxy="http://p"), answered(), f"{TABLE}: proxy, or check that the proxy runs"),
    (case(), kimi(), answered(host="localhost:1"), f"start Kimi there, or correct {TABLE}: base_url"),
    *((case(**{name: "http://p"}), kimi(), answered(), f'{TABLE}: proxy = "env:{name}"')
      for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")),
    (case(), kimi(), answered(problem="dns"), "check that the name resolves: getent hosts h.example"),
    (case(), kimi(), answered(problem="tls"), "if a company proxy intercepts TLS"),
    (case(), kimi(), answered(), "check for a firewall: curl -v https://h.example"),
]  # fmt: skip


@rows("at, provider, found, words", FIXES)
def test_a_host_that_does_not_answer_comes_with_what_to_do(at, provider, found, words):
    assert provider_checks._fix(at, provider, found).startswith(words)


HOSTS = [
    (answered(), "problem", "kimi: h.example:443 does not answer: w"),
    (answered(outcome="failing"), "warning", "kimi: h.example:443 answers with status 500: w"),
    (answered(outcome="other"), "problem", "kimi: the server at h.example:443 is not Kimi (w)"),
    (answered(outcome="taken", milliseconds=3000), "ok", "kimi: h.example:443 answers in 3000 ms"),
    (answered(outcome="taken", milliseconds=3001), "warning", "kimi: h.example:443 takes 3.0 s to answer"),
]


@rows("found, grade, words", HOSTS)
def test_a_host_is_judged_by_its_answer(found, grade, words):
    finding = provider_checks._judged_host(case(), kimi(), found)
    assert (finding.grade, finding.text.startswith(words)) == (grade, True)


KEYS = [
    ("taken", "ok", "kimi accepts its key (K)"),
    ("refused", "problem", "kimi rejects the key in K (message: w)"),
    ("no-login", "problem", "kimi: sign-in failed: w"),
    ("forbidden", "warning", "kimi denies access to the key in K (message: w)"),
    ("unpaid", "problem", "kimi accepts its key, but not its account (message: w)"),
    ("busy", "warning", "kimi rejects this key for now (message: w)"),
    ("silent", "ok", "kimi has a key (K), which could not be tested"),
]


@rows("outcome, grade, words", KEYS)
def test_a_key_is_judged_by_what_its_provider_says(outcome, grade, words):
    (finding,) = provider_checks._judged_key(case(), kimi(), answered(outcome=outcome))
    assert (finding.grade, finding.text) == (grade, words)


@rows("source, stated, words", [
    ("env:K", False, "export K=... with a valid key, and restart the gateway"),
    ("keyring:K", False, "export K=... with a valid key (the stored key is in K)"),
    ("file:/f", False, "export KIMI_KEY=... with a valid key (the stored key is in /f)"),
    ("file:/f", True, "put a valid key into /f"),
    ("keyring:K", True, f"{TABLE}: api_key"),
    ("toml", False, f"{TABLE}: api_key"),
])  # fmt: skip
def test_a_refused_key_is_renewed_where_it_is_kept(source, stated, words):
    assert provider_checks._renewal(case(), kimi(stated=stated), answered(source=source)) == words


@rows("skews, grade, words", [
    ([], "", ""),
    ([0.2, 0.4], "ok", "in agreement with 2 providers within 1 s"),
    ([30.0], "ok", "in agreement with 1 provider within 30 s"),
    ([31.0], "warning", "this machine's clock is 31 s behind"),
    ([-31.0], "warning", "this machine's clock is 31 s ahead"),
    ([119.0], "warning", "this machine's clock is 119 s behind"),
    ([120.0], "warning", "this machine's clock is 2 minutes behind"),
    ([7199.0], "warning", "this machine's clock is 120 minutes behind"),
    ([7200.0], "warning", "this machine's clock is 2 hours behind"),
    ([1.0, 50.0, 1.0], "ok", "in agreement with 3 providers within 1 s"),
])  # fmt: skip
def test_a_clock_is_judged_by_the_middle_of_what_providers_say(skews, grade, words):
    at: Any = SimpleNamespace(
        answers=[SimpleNamespace(skew=skew) for skew in [*skews, None]], loaded=SimpleNamespace(providers={})
    )
    found = list(provider_checks.look_at_clock(at))
    assert [finding.grade for finding in found] == ([grade] if grade else [])
    assert all(finding.text.startswith(words) for finding in found)


def test_a_clock_that_is_four_minutes_off_refuses_signatures():
    login = SimpleNamespace(credentials=[SimpleNamespace(login=object())])
    for skew, grade in ((240.0, "warning"), (240.1, "problem")):
        at: Any = SimpleNamespace(
            answers=[SimpleNamespace(skew=skew)], loaded=SimpleNamespace(providers={"a": login})
        )
        (finding,) = provider_checks.look_at_clock(at)
        assert finding.grade == grade


def test_urls_of_settings_are_found_in_every_form(tmp_path):
    file = tmp_path / "settings"
    for text, urls in (
        ('{"ANTHROPIC_BASE_URL": "http://a/x", "OPENAI_BASE_URL":"https://b"}', ["http://a/x", "https://b"]),
        ("base_url = 'http://a'\nbaseUrl: http://b\nopenai-api-base: http://c\napi_base=http://d",
         ["http://a", "http://b", "http://c", "http://d"]),
        ("# base_url = http://no\n  // base_url: http://no\nbase_url=http://a\nbase_url=http://a", ["http://a"]),
        ("KIMI_MODEL_BASE_URL=http://a\nCODE_ASSIST_ENDPOINT=http://b\nGOOGLE_GEMINI_BASE_URL=http://c\n"
         "OPENAI_API_BASE=http://d", ["http://a", "http://b", "http://c", "http://d"]),
        ("url = http://no", []),
    ):  # fmt: skip
        file.write_text(text)
        assert provider_checks._urls(file) == urls
    assert provider_checks._urls(tmp_path / "nothing") == []


def test_sizes_are_in_words():
    mib = 2**20
    assert [machine_checks._disk_size(n) for n in (mib, 10 * 1024 * mib - mib, 10 * 1024 * mib)] == [
        "1 MiB",
        "10239 MiB",
        "10 GiB",
    ]
    assert [machine_checks._store_size(n) for n in (2048, mib - 1024, mib, 3 * mib // 2)] == [
        "2 KiB",
        "1023 KiB",
        "1.0 MiB",
        "1.5 MiB",
    ]


def test_a_gateway_of_another_version_should_be_started_again():
    from wireglot import __version__

    for version, grade in ((__version__, "ok"), ("0.0.1", "note")):
        running: Any = SimpleNamespace(url="http://h:1", pid=5, version=version)
        finding = machine_checks._mine(running)
        assert finding.grade == grade
        assert finding.text.startswith("your gateway runs at http://h:1 (process 5)")


def test_who_listens_on_a_port_is_found():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        assert machine_checks.holder_of(port).endswith(f"(process {os.getpid()})")
    assert machine_checks.holder_of(port) == ""


# --- usage


@rows("cost, unpriced, shown", [
    (None, 0, "unpriced"), ("0", 0, "0.0000"), ("0.00009", 0, "<0.0001"), ("0.0001", 2, "0.0001+"),
    ("0.00009", 1, "<0.0001+"), ("1234.56785", 0, "1,234.5678"),
])  # fmt: skip
def test_a_cost_says_what_is_not_known(cost, unpriced, shown):
    assert usage._cost({"cost": cost, "unpriced_requests": unpriced}) == shown


def test_a_chart_has_sixty_days_at_most():
    days = usage._days("2026-01-01", "2026-03-31")
    assert (len(days), days[0], days[-1]) == (60, "2026-01-31", "2026-03-31")
    assert usage._days("2026-01-01", "2026-01-01") == ["2026-01-01"]


@rows("value, blocks, hashes", [
    (0, "", ""), (1, "▏", "#"), (50, "█████", "#####"), (100, "█" * 10, "#" * 10), (55, "█████▌", "#####"),
])  # fmt: skip
def test_bars_are_drawn_in_eighths_or_hashes(value, blocks, hashes):
    assert usage._blocks(value, 100, 10) == blocks
    assert usage._hashes(value, 100, 10) == hashes


def usage_report(**fields: Any) -> dict[str, Any]:
    total = {"requests": 3, "failed": 0, "unpriced_requests": 0, "open": 0, "p50_ms": 1234, "cost": "1.5"}
    return {"data": [], "group_by": ["model"], "currency": "EUR", "total": total, **fields}


def test_remarks_say_what_a_table_does_not_show():
    paint = Paint(io.StringIO())
    assert usage._remarks(usage_report(), paint) == []
    total = {**usage_report()["total"], "unpriced_requests": 1, "open": 2}
    assert usage._remarks(usage_report(total=total, has_more=True), paint) == [
        "",
        "1 request of models without a known price: see [prices] in the configuration",
        "2 requests not finished yet",
        "incomplete: there are more rows; narrow the query",
    ]
    assert usage.table_lines(usage_report(), io.StringIO()) == ["no usage"]
    row_ = {**usage_report()["total"], "model": "a\nb", "input_tokens": 0}
    lines = usage.table_lines(usage_report(data=[row_]), io.StringIO())
    assert [line.split() for line in lines] == [
        ["model", "requests", "p50", "ms", "cost", "EUR"],
        ["a", "b", "3", "1,234", "1.5000"],
        ["total", "3", "1,234", "1.5000"],
    ]


# --- outlines


@rows("value, width, lines", [
    ({"a": 1}, 8, ['{"a": 1}']),
    ({"a": 1}, 7, ["{", '  "a":…', "}"]),
    ("x" * 10, 8, ['"xxxxx…"']),
    ({"a": [1, 2], "b": {}}, 20, ["{", '  "a": [1, 2],', '  "b": {}', "}"]),
    ([1, 2, 3, 4, 5, 6], 10, ["[", "  1,", "  2,", "  3,", "  4,", "  5,", "  6", "]"]),
    ({"input_schema": {"type": "object", "x": 1}}, 24, ["{", '  "input_schema": {"typ…', "}"]),
    (["x" * 50, "y"], 58, ['["' + "x" * 39 + '…", "y"]']),
])  # fmt: skip
def test_an_outline_opens_what_does_not_fit(value, width, lines):
    assert pairs.outline(value, width) == lines


def test_leaves_are_counted_and_texts_abridged():
    assert pairs._leaves({"a": [1, {"b": 2}], "c": "x", "d": []}) == 3
    assert pairs._abridged({"a": ["xyz", 5]}, 2) == {"a": ["x…", 5]}
    assert pairs._abridged("xyz", 3) == "xyz"
    assert pairs._abridged("xyz", 0) == "…"
    assert pairs.side_by_side(["a"], ["b", "c"], 3) == ["a   | b", "    | c"]


# --- providers


@rows("url, host", [
    ("https://h/x", "h"), ("http://h:80/x", "h:80"), ("http://[::1]:8/", "::1:8"), ("nothing", ""), ("http://[", ""),
])  # fmt: skip
def test_a_host_has_its_port(url, host):
    assert key_checks.host_of(url) == host


def test_what_a_configuration_lacks_is_read_from_its_notes():
    notes = [
        "provider azure is off: its key is in env:AZURE_KEY, but it lacks AZURE_URL and AZURE_NAME",
        "provider kimi is off: KIMI_KEY holds a line end",
        "provider x is off: no reason",
        "something else",
        "model m is off: NO_KEY",
    ]
    found = list(ask_providers.lacking(notes))
    assert found == [
        ("azure", "AZURE_KEY", "AZURE_URL and AZURE_NAME"),
        ("kimi", "KIMI_KEY", ""),
        ("x", "", ""),
    ]
    assert [each.problem for each in found[:2]] == [
        "AZURE_URL and AZURE_NAME is not",
        "contains no valid key",
    ]


def test_a_provider_is_left_out_where_another_covers_it():
    def spec(name: str, dialects: tuple[str, ...], key: tuple[str, ...] = ("K",), **urls: str) -> Any:
        found = SimpleNamespace(api_key_env=key, dialects=dialects, base_urls=urls, base_url="http://h")
        return SimpleNamespace(name=name, spec=found)

    both, one = spec("both", ("a", "b")), spec("one", ("a",))
    for known, left in (
        ([both, one], ["both"]),
        ([both, spec("one", ("a",), ("L",))], ["both", "one"]),
        ([both, spec("one", ("a",), ())], ["both", "one"]),
        ([both, spec("one", ("c",))], ["both", "one"]),
        ([both, spec("one", ("a",), a="http://other")], ["both", "one"]),
        ([both, spec("two", ("a", "b"))], ["both", "two"]),
        ([one], ["one"]),
    ):
        assert [each.name for each in ask_providers.without_covered(known)] == left


def test_a_clock_is_read_from_an_answer_that_is_not_cached():
    def skew(**headers: str) -> float | None:
        answer: Any = SimpleNamespace(headers=headers)
        return key_checks._skew(answer, 10.0)

    assert skew(date="Thu, 01 Jan 1970 00:00:40 GMT") == 30.0
    assert skew(date="Thu, 01 Jan 1970 00:00:40 GMT", age="5") is None
    assert skew() is None


# --- keys


class Broken(io.StringIO):
    """An output to which nothing can be written."""

    def __init__(self, fault: OSError) -> None:
        super().__init__()
        self.fault = fault

    def write(self, text: str) -> int:
        raise self.fault


def test_a_key_that_could_not_be_shown_is_not_lost_in_silence(monkeypatch, capsys):
    document = {"name": "mine", "key": "wg_1"}
    keys._show_key(document, as_json=False)
    keys._show_key(document, as_json=True)
    assert capsys.readouterr().out == 'wg_1\n{"name": "mine", "key": "wg_1"}\n'
    for fault, said in ((BrokenPipeError(32, "Broken pipe"), True), (OSError(28, "No space"), False)):
        monkeypatch.setattr("sys.stdout", Broken(fault))
        with pytest.raises(OSError, match="could not be shown: replace it with `wireglot keys rotate mine`"):
            keys._show_key(document, as_json=False)
        assert ("wireglot: the key was created" in capsys.readouterr().err) is said


@rows("said, sure", [("y\n", True), ("Yes\n", True), ("n\n", False), ("", False)])
def test_what_is_deleted_is_deleted_on_demand_only(said, sure, monkeypatch, capsys):
    task = argparse.Namespace(yes=False)
    monkeypatch.setattr("sys.stdin", Terminal(said))
    error = Terminal()
    monkeypatch.setattr("sys.stderr", error)
    if sure:
        keys._check_sure(task, "2\nkeys")
    else:
        with pytest.raises(Unusable, match="nothing was deleted"):
            keys._check_sure(task, "2\nkeys")
    assert error.getvalue() == "Delete 2 keys and stored data of the callers? [y/N] "
    keys._check_sure(argparse.Namespace(yes=True), "x")
    monkeypatch.setattr("sys.stdin", io.StringIO("y"))
    with pytest.raises(Unusable, match="confirm with --yes"):
        keys._check_sure(task, "x")
