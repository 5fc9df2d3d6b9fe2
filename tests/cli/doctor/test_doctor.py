"""`wireglot doctor`: what is wrong is found, said in a sentence, and comes with its fix."""

import contextlib
import io
import json
import os
import re
import shutil
import socket
import ssl
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from proofs.identity_provider import IdentityProvider
from proofs.search_double import KEY as SEARCH_KEY
from proofs.search_double import SearchDouble
from tests.cli.provider_double import (
    BAD_KEY,
    GOOD_KEY,
    ProviderDouble,
    Reply,
    dead_url,
    modes_are_obeyed,
    set_apart,
)
from tests.cli.running import configure, run
from wireglot import __version__
from wireglot.cli.doctor.case import DoctorCase, DoctorFinding
from wireglot.cli.doctor.examination import CHECKS, DoctorReport
from wireglot.cli.doctor.provider_checks import look_at_prices
from wireglot.gateway.config.kept_keys import keep, kept_file
from wireglot.gateway.observe.running import RunningGateway, announced

CONFIG = """
[server]
port = {port}
[providers.mine]
dialect = "openai-chat"
base_url = "{base_url}"
api_key = "env:MINE_KEY"
"""
HOSTS = {
    "good": Reply(),
    "broke": Reply(status=402, body={"error": {"message": "Insufficient balance", "type": "billing"}}),
    "down": Reply(status=503, body={"error": {"message": "come back later", "type": "server_error"}}),
    "busy": Reply(status=429, body={"error": {"message": "slow down", "type": "rate_limit_error"}}),
    "closed": Reply(
        status=403, body={"error": {"message": "only for Coding Agents", "type": "access_terminated_error"}}
    ),
    "web": Reply(status=404, body=b"<html>"),
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = set_apart(tmp_path, monkeypatch)
    (found / ".local/share/wireglot").mkdir(mode=0o700, parents=True)
    monkeypatch.setenv("MINE_KEY", GOOD_KEY)
    return found


@pytest.fixture
def double() -> Iterator[ProviderDouble]:
    with ProviderDouble(HOSTS) as found:
        yield found


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def configured(base_url: str, more: str = "", port: int = 0) -> Path:
    return configure(CONFIG.format(base_url=base_url, port=port) + more)


def findings(*arguments: str, status: int | None = None) -> list[dict[str, Any]]:
    done = run("doctor", "--json", *arguments)
    assert done.stderr == b""
    found = [json.loads(line) for line in done.stdout.splitlines()]
    problems = any(each["grade"] == "problem" for each in found)
    assert done.returncode == (1 if problems else 0)
    assert all(each["fix"] for each in found if each["grade"] != "ok")
    for secret in (GOOD_KEY, BAD_KEY, "hush"):
        assert secret not in done.stdout.decode()
    return found


def of(check: str, found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["grade"], each["text"]) for each in found if each["check"] == check]


def fix_of(check: str, found: list[dict[str, Any]]) -> str:
    return str(next(each["fix"] for each in found if each["check"] == check and each["fix"]))


def test_where_all_is_well_it_says_so(double: ProviderDouble, tmp_path: Path) -> None:
    configured(double.base("good"))
    (tmp_path / "bin/claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin/claude").chmod(0o755)
    done = run("doctor")
    assert done.returncode == 0, done
    said = done.stdout.decode()
    assert "ok       mine accepts its key (MINE_KEY)" in said
    assert "ok       wireglot.toml loads: 1 provider" in said
    assert "Claude Code" in said
    if getattr(os, "geteuid", lambda: 0)() != 0:
        assert said.rstrip().endswith("No problems found.")
    assert f"Sending requests to 127.0.0.1:{double.port}: no tokens are used" in said
    assert double.requests == ["GET good /v1/models"]


def test_a_refused_key_is_a_problem_in_the_providers_own_words(
    double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE_KEY", BAD_KEY)
    configured(double.base("good"))
    found = findings()
    grade, text = of("keys", found)[0]
    assert grade == "problem"
    assert text == "mine rejects the key in MINE_KEY (message: Incorrect API key provided: [redacted].)"
    assert fix_of("keys", found).startswith("export MINE_KEY=")
    assert of("network", found)[0][0] == "ok"


@pytest.mark.parametrize(
    ("host", "check", "grade", "reported"),
    [
        ("broke", "keys", "problem", "Insufficient balance"),
        ("busy", "keys", "warning", "slow down"),
        ("closed", "keys", "warning", "only for Coding Agents"),
        ("down", "network", "warning", "status 503: come back later"),
        ("web", "network", "problem", "is not mine"),
    ],
)
def test_what_else_a_provider_may_say(
    double: ProviderDouble, host: str, check: str, grade: str, reported: str
) -> None:
    configured(double.base(host))
    assert any(found[0] == grade and reported in found[1] for found in of(check, findings()))


def test_a_host_without_a_list_of_models_is_asked_what_nobody_answers(double: ProviderDouble) -> None:
    double.hosts["good"].no_list = True
    try:
        configured(double.base("good"))
        assert of("keys", findings()) == [("ok", "mine accepts its key (MINE_KEY)")]
    finally:
        double.hosts["good"].no_list = False
    assert double.requests == ["GET good /v1/models", "POST good /v1/chat/completions"]


def test_each_key_of_a_pool_is_tried(double: ProviderDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", BAD_KEY)
    file = configured(double.base("good"))
    configure(
        file.read_text().replace('api_key = "env:MINE_KEY"', 'api_keys = ["env:MINE_KEY", "env:OTHER_KEY"]')
    )
    assert [grade for grade, _ in of("keys", findings())] == ["ok", "problem"]


def test_a_dead_host_is_reported_with_what_to_do() -> None:
    configured(f"{dead_url()}/v1")
    found = findings()
    grade, text = of("network", found)[0]
    assert grade == "problem"
    assert "connection refused" in text
    assert "start mine there" in fix_of("network", found)
    assert of("keys", found) == [("ok", "mine has a key (MINE_KEY), which could not be tested")]


def test_a_name_that_nobody_knows_is_reported() -> None:
    configured("https://nowhere.invalid/v1")
    found = findings()
    assert "its name is not known here (DNS)" in of("network", found)[0][1]
    assert "getent hosts nowhere.invalid" in fix_of("network", found)


def test_a_proxy_of_the_environment_is_named_where_nothing_is_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:hush@proxy.example:3128")
    configured("https://nowhere.invalid/v1")
    assert 'proxy = "env:HTTPS_PROXY"' in fix_of("network", findings())


def test_a_certificate_of_a_stranger_is_reported(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with contextlib.suppress(OSError), client, context.wrap_socket(client, server_side=True):
                        pass

        threading.Thread(target=serve, daemon=True).start()
        configured(f"https://localhost:{listener.getsockname()[1]}/v1")
        found = findings()
    assert "certificate is not signed by an authority that is trusted here" in of("network", found)[0][1]


def test_offline_nothing_is_sent(double: ProviderDouble) -> None:
    configured(double.base("good"))
    found = findings("--offline")
    assert double.requests == []
    assert of("keys", found) == [("ok", "mine: key from env:MINE_KEY, not tested (--offline)")]


def test_a_clock_that_is_wrong_is_reported(double: ProviderDouble) -> None:
    configured(double.base("good"))
    assert [grade for grade, _ in of("clock", findings())] == ["ok"]
    double.now = time.time() + 3600
    assert of("clock", findings())[0][1].startswith("this machine's clock is 60 minutes behind")
    double.now = time.time() - 600
    grade, text = of("clock", findings())[0]
    assert grade == "warning"
    assert "10 minutes ahead" in text


def test_a_wrong_clock_is_a_problem_where_signatures_go_by_it(double: ProviderDouble) -> None:
    configured(
        double.base("good"),
        '[providers.cloud]\ncatalog = "bedrock"\nbase_url = "' + double.base("good", "") + '"\n'
        '[providers.cloud.login]\nkind = "aws"\nregion = "eu-west-1"\naccess_key = "AKIA0000000000000000"\nsecret_key = "hush-hush-hush"\n',
    )
    double.now = time.time() + 600
    assert ("problem", "this machine's clock is 10 minutes behind: logins and signatures are refused") in of(
        "clock", findings()
    )


def test_no_configuration_is_a_note_and_the_demo_answers() -> None:
    found = findings()
    assert of("configuration", found)[0][0] == "note"
    assert fix_of("configuration", found) == "wireglot init"
    assert "only the demo model is available" in of("keys", found)[0][1]


def test_a_variable_with_a_typo_in_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREGLOT_PROT", "1")
    monkeypatch.setenv("WIREGLOT_OF_MY_OWN", "1")
    found = findings()
    assert ("warning", "WIREGLOT_PROT is set but unused") in of("configuration", found)
    assert fix_of("configuration", found) == "did you mean WIREGLOT_PORT?"
    assert not any("OF_MY_OWN" in text for _, text in of("configuration", found))


def test_which_of_several_files_it_is_is_reported(home: Path) -> None:
    own = home / ".config/wireglot/wireglot.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[providers.demo]\n")
    assert of("configuration", findings())[0] == ("ok", f"{own} loads: 1 provider")
    configure("[providers.demo]\n")
    assert of("configuration", findings())[0] == ("ok", f"wireglot.toml (not {own}) loads: 1 provider")


def test_stored_client_keys_count(home: Path) -> None:
    configure('[server]\nhost = "0.0.0.0"\nport = 0\nrequire_key = true\n[providers.demo]\n')
    assert ("ok", "reachable from this machine only, without a client key") in of(
        "safety", findings("--config", os.devnull)
    )
    assert run("keys", "create", "laptop").returncode == 0
    assert ("ok", "reachable from this machine only, with a client key") in of(
        "safety", findings("--config", os.devnull)
    )
    assert not any("there is none" in text for _, text in of("safety", findings()))
    assert run("keys", "off", "--yes").returncode == 0
    assert ("warning", "it requires a client key, but none exists") in of("safety", findings())


def test_every_problem_of_a_configuration_is_reported_and_the_rest_waits_for_it() -> None:
    configure('[server]\nport = "x"\n[providers.openai]\napi_key = "env:NOT_SET"\n')
    found = findings()
    assert [grade for grade, _ in of("configuration", found)] == ["problem", "problem"]
    assert not of("keys", found)
    done = run("doctor")
    assert b"Not checked until the configuration loads: keys, network" in done.stdout


def test_a_file_that_cannot_be_read_is_a_problem() -> None:
    found = findings("--config", "missing.toml")
    assert "missing.toml" in of("configuration", found)[0][1]
    Path("folder.toml").mkdir()
    if modes_are_obeyed():
        Path("closed.toml").write_text("")
        Path("closed.toml").chmod(0)
        assert "Permission denied" in of("configuration", findings("--config", "closed.toml"))[0][1]
    assert of("configuration", findings("--config", "folder.toml"))[0][0] == "problem"


def test_notes_of_a_configuration_come_with_what_to_do(double: ProviderDouble) -> None:
    configured(double.base("good"), '[keys]\na = "sha256:' + "0" * 64 + '"\n')
    found = findings()
    assert ("note", "/metrics is off, because client keys are not accepted for it") in of(
        "configuration", found
    )
    assert fix_of("configuration", found) == "set server.metrics_key"


def test_a_port_that_is_free_or_held(double: ProviderDouble) -> None:
    port = free_port()
    configured(double.base("good"), port=port)
    assert of("port", findings()) == [("ok", f"127.0.0.1:{port} is free")]
    with socket.create_server(("127.0.0.1", port)):
        found = findings()
        grade, text = of("port", found)[0]
        assert grade == "problem"
        if Path("/proc/net/tcp").exists():
            assert f"(process {os.getpid()})" in text
        assert f"port = {port + 1}" in fix_of("port", found)


def test_a_port_that_ones_own_gateway_holds_is_well(double: ProviderDouble) -> None:
    port = free_port()
    configured(double.base("good"), port=port)
    running = RunningGateway(f"http://127.0.0.1:{port}", os.getpid(), __version__)
    with socket.create_server(("127.0.0.1", port)), announced(running, os.environ):
        assert of("port", findings()) == [
            ("ok", f"your gateway runs at http://127.0.0.1:{port} (process {os.getpid()})")
        ]


def test_files_of_gateways_that_have_gone_are_removed_once_asked_to(home: Path) -> None:
    folder = home / ".local/share/wireglot/running"
    folder.mkdir(mode=0o700)
    (folder / "1.json").write_text("{}")
    assert any("stopped gateways" in text for _, text in of("port", findings()))
    assert (folder / "1.json").exists()
    assert any(each["fixed"] and each["mended"] for each in findings("--fix"))
    assert not list(folder.iterdir())
    assert not any("stopped gateways" in text for _, text in of("port", findings()))


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_files_that_others_can_read_are_closed_once_asked_to(
    home: Path, double: ProviderDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = kept_file(os.environ)
    assert place is not None
    keep(place, "XAI_API_KEY", "hush-hush-hush")
    place.chmod(0o644)
    place.parent.chmod(0o755)
    config = configured(double.base("good"), '[providers.demo]\n[providers.other]\ncatalog = "demo"\n')
    config.write_text(config.read_text().replace("env:MINE_KEY", "hush-" + "x1y2z3" * 4))
    config.chmod(0o664)
    monkeypatch.setenv("WIREGLOT_CONFIG", str(config.absolute()))
    monkeypatch.delenv("MINE_KEY")
    open_ones = [text for grade, text in of("files", findings("--offline")) if grade == "warning"]
    assert len(open_ones) == 3
    fixed = [each for each in findings("--offline", "--fix") if each["fixed"]]
    assert {each["check"] for each in fixed} == {"files"}
    assert [stat.S_IMODE(each.stat().st_mode) for each in (place, place.parent, config)] == [
        0o600,
        0o700,
        0o600,
    ]
    assert not [text for grade, text in of("files", findings("--offline")) if grade != "ok"]


def test_a_data_folder_that_is_missing_is_made_once_asked_to(home: Path) -> None:
    folder = home / ".local/share/wireglot"
    folder.rmdir()
    assert of("store", findings())[0][0] == "note"
    assert not folder.exists()
    findings("--fix")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert of("store", findings())[0] == ("ok", f"{folder / 'wireglot.db'} is created at the first start")


def test_what_cannot_be_fixed_is_reported_and_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".local/share/wireglot").chmod(0o755)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    found = findings("--fix")
    assert any("could not be fixed: Operation not permitted" in text for _, text in of("files", found))


@pytest.mark.parametrize(
    ("more", "reported"),
    [
        ('[store]\nsync = "off"\n', 'store.sync is "off"'),
        (
            '[providers.plain]\ndialect = "openai-chat"\nbase_url = "http://llm.example.com/v1"\n',
            "uses unencrypted http",
        ),
        ('[store]\nshared = "redis://cache.example.com"\n', "does not use TLS"),
        ('[store]\nshared = "rediss://cache.example.com?ssl_cert_reqs=none"\n', "is not verified"),
        ('[store]\nurl = "postgresql://u:hush-hush@db.example.com/x?sslmode=require"\n', "sslmode=require"),
    ],
)
def test_unsafe_settings_are_reported(
    double: ProviderDouble, more: str, reported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(double.base("good"), more)
    only = tuple(check for check in CHECKS if check.title == "safety")
    monkeypatch.setattr("wireglot.cli.doctor.examination.CHECKS", only)
    assert any(grade == "warning" and reported in text for grade, text in of("safety", findings()))


def test_weak_and_written_out_secrets_are_reported(double: ProviderDouble) -> None:
    file = configured(double.base("good"))
    text = file.read_text().replace(
        "[server]\n", '[server]\nhost = "0.0.0.0"\nadmin_secret = "hushhushhushhush"\n'
    )
    file.write_text(text + '[keys]\na = "sha256:' + "0" * 64 + '"\n')
    found = {text: grade for grade, text in of("safety", findings())}
    assert found["server.admin_secret is easy to guess"] == "warning"
    assert found["server.admin_secret is in clear text in wireglot.toml"] == "warning"
    assert any("without TLS" in text for text in found)


def test_clients_that_are_sent_elsewhere_are_reported_and_left_alone(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("claude", "codex"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    settings = home / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"env": {"ANTHROPIC_BASE_URL": "https://u:hush@other.example/x?k=hush"}}')
    codex = home / ".codex/config.toml"
    codex.parent.mkdir()
    codex.write_text(
        '# base_url = "https://old.example"\n[model_providers.w]\nbase_url = "http://127.0.0.1:8484/v1"\n'
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "https://third.example/v1")
    before = settings.read_text(), codex.read_text()
    reported = of("clients", findings("--fix"))
    assert ("note", "Claude Code: ~/.claude/settings.json sends it to other.example") in reported
    assert ("note", "OPENAI_BASE_URL in this shell sends clients to third.example") in reported
    assert (
        "warning",
        "Codex: ~/.codex/config.toml sends it to 127.0.0.1:8484: your gateway, not running",
    ) in reported
    assert not any("old.example" in text for _, text in reported)
    assert (settings.read_text(), codex.read_text()) == before


def test_old_prices_are_reported(double: ProviderDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XAI_API_KEY", GOOD_KEY)
    assert [grade for grade, _ in of("prices", findings("--offline"))] == ["ok"]
    case = DoctorCase(None, os.environ, offline=True, clock=lambda: time.time() + 365 * 86_400)
    found = list(look_at_prices(case))
    assert found
    assert all(each.grade == "note" and "days old" in each.text and each.fix for each in found)


def test_a_kept_key_under_another_in_the_environment_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    place = kept_file(os.environ)
    assert place is not None
    keep(place, "XAI_API_KEY", "hush-hush-hush")
    monkeypatch.setenv("XAI_API_KEY", GOOD_KEY)
    assert any("which takes precedence" in text for _, text in of("keys", findings("--offline")))


def test_a_second_look_finds_the_same(double: ProviderDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(double.base("good"))
    free = shutil.disk_usage(".")  # other programs write to the same disk meanwhile
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    before = sorted(Path("..").rglob("*"))
    findings("--offline")
    assert findings("--offline") == findings("--offline")
    assert sorted(Path("..").rglob("*")) == before


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.title)
def test_every_check_has_a_title_of_its_own(check: Any) -> None:
    assert [each.title for each in CHECKS].count(check.title) == 1


def test_an_identity_provider_is_looked_at(double: ProviderDouble) -> None:
    with IdentityProvider() as provider:
        login = (
            f'[login]\nissuer = "{provider.url}"\nclient_id = "x"\nclient_secret = "hush-hush"\n'
            f'[keys]\nada = "sha256:{"0" * 64}"\n'
        )
        configured(double.base("good"), login)
        found = findings()
        assert ("ok", f"sign-in through {provider.url} is available") in of("network", found)
        assert any("login.client_secret is in clear text" in text for _, text in of("safety", found))
        provider.fault = "discovery_issuer"
        assert any(
            grade == "problem" and "no one can sign in" in text for grade, text in of("network", findings())
        )
    assert any(
        grade == "problem" and "no one can sign in" in text for grade, text in of("network", findings())
    )


def reported(*found: DoctorFinding, fix: bool = False) -> list[str]:
    stream = io.StringIO()
    report = DoctorReport(stream, as_json=False)
    report.end(found, fix=fix)
    return stream.getvalue().splitlines()[1:]


def test_the_end_counts_what_is_not_well_the_worst_first_and_what_can_be_fixed() -> None:
    well, hint = DoctorFinding("ok", "x"), DoctorFinding("note", "x", "y")
    risk = DoctorFinding("warning", "x", "y", repair=lambda: None)
    fault = DoctorFinding("problem", "x", "y", repair=lambda: None, fixed=True)
    assert reported(well, well) == reported() == ["No problems found."]
    assert reported(well, hint) == ["1 note"]
    every = ["1 problem, 2 warnings, 1 note", "1 thing fixed."]
    assert reported(hint, risk, well, risk, fault, fix=True) == every
    assert reported(hint, risk, well, risk, fault) == [*every, "`wireglot doctor --fix` fixes 3 of them."]


def test_findings_are_wrapped_with_what_to_do_and_paths_begin_at_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Narrow(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("HOME", "/home/me/")
    stream = Narrow()
    report = DoctorReport(stream, as_json=False)
    report.section("store", [])
    found = DoctorFinding("problem", "the file /home/me/x cannot be read by this user", "chmod /home/me/x")
    report.section("files", [found, DoctorFinding("note", "b", "c", fixed=True), DoctorFinding("ok", "d")])
    assert stream.getvalue() == (
        "files\n"
        "  problem  the file ~/x cannot be read\n"
        "           by this user\n"
        "           fix: chmod ~/x\n"
        "  fixed    b\n"
        "           did: c\n"
        "  ok       d\n"
    )
    monkeypatch.setenv("HOME", "")
    plain = io.StringIO()
    DoctorReport(plain, as_json=False).section("files", [DoctorFinding("ok", "/home/me/x " + "y " * 300)])
    assert plain.getvalue().count("\n") == 2
    assert "  ok       /home/me/x y" in plain.getvalue()
    document = io.StringIO()
    DoctorReport(document, as_json=True).section("files", [found])
    assert json.loads(document.getvalue()) == {
        "check": "files",
        "grade": "problem",
        "text": found.text,
        "fix": found.fix,
        "fixed": False,
        "fixable": False,
        "mended": False,
        "mendable": False,
    }


def test_the_end_names_what_was_not_looked_at() -> None:
    stream = io.StringIO()
    report = DoctorReport(stream, as_json=False)
    report.unseen("keys")
    report.unseen("clock")
    report.end([], fix=False)
    assert "Not checked until the configuration loads: keys, clock." in stream.getvalue()


@pytest.mark.parametrize(
    ("mebibytes", "grade", "shown"),
    [(10, "problem", "10 MiB"), (600, "warning", "600 MiB"), (10_239, "ok", "10239 MiB"), (10_240, "ok", "10 GiB")],
)  # fmt: skip
def test_a_disk_needs_room_for_the_journal_and_some_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mebibytes: int, grade: str, shown: str
) -> None:
    free = mebibytes * 2**20
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(free, 0, free))
    journal = 200 * 2**20
    configure(f'[providers.demo]\n[store]\nfolder = "{tmp_path}"\njournal = {journal}\n')
    ((found, text),) = of("disk", findings())
    assert found == grade
    assert f"{shown} free" in text
    assert "reserves 200 MiB" in text


SEARCHED = '[search]\nbackend = "{}"\nurl = "{}"\nkey = "{}"\n'


def test_a_search_backend_is_tried_only_on_request(double: ProviderDouble) -> None:
    with SearchDouble() as search:
        configured(double.url, SEARCHED.format("brave", search.url, SEARCH_KEY))
        assert of("web", findings()) == [
            (
                "ok",
                "Brave Search searches the web, key from config, not tested (--search sends one test search)",
            )
        ]
        assert of("web", findings("--offline", "--search")) == [
            ("ok", "Brave Search searches the web, key from config, not tested (--offline)")
        ]
        assert search.requests == []
        ((grade, text),) = of("web", findings("--search"))
        assert grade == "ok"
        assert re.fullmatch(r"Brave Search found 5 pages in \d+ ms, key from config", text)
        assert len(search.requests) == 1


def test_a_search_backend_that_fails_is_a_problem_with_a_fix(double: ProviderDouble) -> None:
    with SearchDouble() as search:
        configured(double.url, SEARCHED.format("tavily", search.url, "wrong-key-0123456789"))
        found = findings("--search", status=1)
        assert of("web", found) == [
            ("problem", "Tavily: the search failed: Tavily refused access (status 401)")
        ]
        assert fix_of("web", found).startswith("check key and url of [search] in ")
        assert "wrong-key" not in str(of("web", found))
    configured(double.url, '[search]\nbackend = "searxng"\nurl = "http://127.0.0.1:9"\n')
    found = findings("--search", status=1)
    assert of("web", found) == [
        ("problem", "SearXNG: the search failed: SearXNG could not be reached: connect")
    ]


def test_what_is_good_to_know_of_the_web_tables_is_reported(double: ProviderDouble) -> None:
    text = '[search]\nbackend = "google"\nkey = "k"\nengine = "cx"\n[fetch]\nprivate_hosts = ["wiki.example.com"]\n'
    configured(double.url, text)
    assert of("web", findings("--offline")) == [
        ("warning", "Google ends the Custom Search JSON API on 2027-01-01, and accepts no new customers"),
        ("ok", "Google Programmable Search searches the web, key from config, not tested (--offline)"),
        ("ok", "pages on public addresses can be fetched"),
        ("note", "pages on wiki.example.com can also be fetched, by every client"),
    ]
    configured(double.url, '[search]\nbackend = "model"\nmodel = "mine/m"\n')
    assert of("web", findings("--offline", "--search")) == [("ok", "mine/m searches the web")]


def test_a_search_key_that_is_written_out_is_reported(double: ProviderDouble) -> None:
    configured(double.url, SEARCHED.format("exa", "https://exa.example", SEARCH_KEY))
    written_out = [text for _, text in of("safety", findings("--offline")) if "clear text" in text]
    assert any(text.startswith("search.key is in clear text in") for text in written_out)
