"""Findings of `wireglot doctor` compared whole: grade, text and what to do."""

from __future__ import annotations

import errno
import os
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.gateway.kit import catalogued, own, settings
from tests.tiers import rows
from wireglot import __version__
from wireglot.cli.ask_providers import LoadedModel
from wireglot.cli.doctor import configuration_checks, machine_checks, provider_checks
from wireglot.cli.doctor.case import _password
from wireglot.cli.doctor.machine_checks import holder_of, look_at_disk, look_at_port, look_at_store
from wireglot.cli.run.clients import CLIENTS
from wireglot.gateway.config.problems import ConfigError, ConfigProblem
from wireglot.gateway.observe.running import RunningGateway
from wireglot.gateway.relay.key_checks import ProviderAnswer
from wireglot.gateway.settings import (
    ClientKey,
    Credential,
    FetchSettings,
    LoginSettings,
    Provider,
    Rule,
    SearchSettings,
    Secret,
    ServerSettings,
    Settings,
    StoreSettings,
)
from wireglot.stores import StoreDown, StoreUnusable
from wireglot.stores.sqlite.engine import FileLook
from wireglot.web.contract import WebFailed
from wireglot_core.extras import install_hint, upgrade_hint

Found = tuple[str, str, str]


def case(now: Settings | None = None, **more: Any) -> Any:
    """What a check looks at."""
    usual: dict[str, Any] = {
        "loaded": now,
        "settings": now,
        "error": None,
        "path": Path("w.toml"),
        "file": "w.toml",
        "environ": {},
        "foreign": False,
        "offline": False,
        "searches": False,
        "running": (),
        "answers": (),
        "asked": tuple(now.providers.values()) if now is not None else (),
        "store_file": None,
        "loaded_models": (),
        "client_keys": 0,
        "clock": lambda: 1_794_000_000.0,
    }
    return SimpleNamespace(**{**usual, **more})


def found(look: Any, given: Any) -> list[Found]:
    return [(each.grade, each.text, each.fix) for each in look(given)]


def stored(url: str = "memory:", source: str = "config", **more: Any) -> Settings:
    return settings(store=StoreSettings(url=Secret(url, source), **more))


# This machine.


def listening(port: int, host: str = "127.0.0.1") -> Settings:
    return settings(server=ServerSettings(host=host, port=port))


@rows(
    ("fault", "grade", "text", "fix"),
    [
        (None, "ok", "127.0.0.1:80 is free", ""),
        (errno.EACCES, "problem", "this user may not listen on 127.0.0.1:80",
         "a port from 1024: [server] in w.toml: port = 8484"),
        (errno.EPERM, "problem", "this user may not listen on 127.0.0.1:80",
         "a port from 1024: [server] in w.toml: port = 8484"),
        (errno.EADDRNOTAVAIL, "problem", f"cannot listen on 127.0.0.1:80: {os.strerror(errno.EADDRNOTAVAIL)}",
         '[server] in w.toml: host = "127.0.0.1", or an address of this machine'),
        (0, "problem", "cannot listen on 127.0.0.1:80: odd",
         '[server] in w.toml: host = "127.0.0.1", or an address of this machine'),
    ],
)  # fmt: skip
def test_why_nobody_can_listen(
    fault: int | None, grade: str, text: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = None if fault is None else OSError(fault, "x") if fault else OSError("odd")
    monkeypatch.setattr(machine_checks, "_fault", lambda host, port: raised)
    monkeypatch.setattr(machine_checks, "left_over", lambda environ: [])
    assert found(look_at_port, case(listening(80))) == [(grade, text, fix)]
    assert found(look_at_port, case(listening(0))) == [("ok", "port 0: any free port is used", "")]


def test_what_gateways_left_is_removed_only_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [tmp_path / "1.json", tmp_path / "2.json"]
    gone[0].touch()
    monkeypatch.setattr(machine_checks, "left_over", lambda environ: gone)
    (_, left) = look_at_port(case(listening(0)))
    assert (left.grade, left.text) == ("note", f"2 files of stopped gateways in {tmp_path}")
    assert left.fix == f"rm {gone[0]} {gone[1]}"
    assert left.repair is not None
    left.repair()
    assert not gone[0].exists()


class Named(BaseHTTPRequestHandler):
    body = b'{"name": "wireglot"}'

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/" else 404)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None: ...


def test_who_holds_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Named) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        other = f"another port: [server] in w.toml: port = {port + 1}"
        for host in ("127.0.0.1", "0.0.0.0"):
            assert found(look_at_port, case(listening(port, host))) == [
                (
                    "warning",
                    f"another user's gateway listens on {host}:{port}",
                    f"wireglot run claude --url http://{host}:{port}, or {other}",
                )
            ]
        monkeypatch.setattr(machine_checks, "holder_of", lambda _: "")
        for body in (b'{"name": "nginx"}', b"[]", b"<html>"):
            monkeypatch.setattr(Named, "body", body)
            held = ("problem", f"127.0.0.1:{port} is in use by another program", f"stop it, or {other}")
            assert found(look_at_port, case(listening(port))) == [held]
        url = f"http://127.0.0.1:{port}"
        running = (RunningGateway("http://127.0.0.1:1", 6, __version__), RunningGateway(url, 7, "0.0.1"))
        assert found(look_at_port, case(listening(port), running=running)) == [
            (
                "note",
                f"your gateway runs at {url} (process 7) with version 0.0.1, this program is {__version__}",
                "restart the gateway",
            )
        ]
        server.shutdown()
    assert machine_checks._EVERYWHERE == {"0.0.0.0": "127.0.0.1", "::": "::1"}


def test_the_holder_of_a_port_is_found_as_the_kernel_lists_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_checks, "_PROC", tmp_path)
    (tmp_path / "net").mkdir()
    head = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    )
    line = "   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1\n"
    lines = [(80, "0A", 1), (81, "01", 2), (82, "0A", 3)]
    text = head + "".join(line.format(port=port, state=state, inode=inode) for port, state, inode in lines)
    (tmp_path / "net" / "tcp6").write_text(text)
    for number, inode, name in ((7, 1, b"ng\xffinx\n"), (8, 2, b"x"), (9, 9, b"y")):
        (tmp_path / str(number) / "fd").mkdir(parents=True)
        (tmp_path / str(number) / "fd" / "3").symlink_to(f"socket:[{inode}]")
        (tmp_path / str(number) / "comm").write_bytes(name)
    (tmp_path / "self" / "fd").mkdir(parents=True)
    assert [holder_of(port) for port in (80, 81, 82, 83)] == ["ng\ufffdinx (process 7)", "", "", ""]


def test_a_name_that_nobody_knows_is_no_address_to_listen_on() -> None:
    fault = machine_checks._fault("nowhere.invalid", 80)
    assert isinstance(fault, socket.gaierror)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        held = machine_checks._fault("127.0.0.1", taken.getsockname()[1])
    assert held is not None
    assert held.errno == errno.EADDRINUSE
    assert machine_checks._fault("127.0.0.1", 0) is None


MIB = 2**20


@rows(("free", "grade"), [(399, "problem"), (400, "warning"), (911, "warning"), (912, "ok")])
def test_room_for_the_journal_of_all_workers(
    free: int, grade: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def usage(folder: Path) -> Any:
        asked.append(folder)
        return SimpleNamespace(free=free * MIB)

    monkeypatch.setattr("shutil.disk_usage", usage)
    place = tmp_path / "below" / "it"
    now = settings(
        store=StoreSettings(folder=str(place), journal=200 * MIB), server=ServerSettings(workers=2)
    )
    text = f"{free} MiB free for {place}; the journal reserves 400 MiB"
    fix = "free disk space, or [store] in w.toml: folder = another disk, or a smaller journal"
    assert found(look_at_disk, case(now)) == [(grade, text, fix if grade != "ok" else "")]
    assert asked == [tmp_path]
    assert found(look_at_disk, case(settings())) == []

    def away(folder: Path) -> Any:
        raise OSError("gone")

    monkeypatch.setattr("shutil.disk_usage", away)
    assert found(look_at_disk, case(now)) == []


def test_sizes_are_said_in_their_units() -> None:
    assert [machine_checks._store_size(size) for size in (0, 2047, MIB - 1, MIB, 5 * MIB)] == [
        "0 KiB", "2 KiB", "1024 KiB", "1.0 MiB", "5.0 MiB",
    ]  # fmt: skip
    assert [machine_checks._disk_size(size * MIB) for size in (1, 10_239, 10_240)] == [
        "1 MiB", "10239 MiB", "10 GiB",
    ]  # fmt: skip


FORGETS = "the store is in memory: responses, keys and usage are lost when the gateway stops"
REDIS = "check that Redis runs and accepts this machine; [store] in w.toml: shared"


def test_stores_are_reported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = '[store] in w.toml: url = "sqlite:///PATH"'
    assert found(look_at_store, case(stored())) == [("note", FORGETS, url)]
    assert found(look_at_store, case(stored(source="default"))) == [
        ("warning", f"{FORGETS}; the environment contains no home folder", "[store] in w.toml: url")
    ]
    unapproved = ("ok", "no database was called: w.toml is not approved", "")
    for now in (stored("postgresql://h/x"), stored(shared=Secret("redis://h"))):
        assert found(look_at_store, case(now, foreign=True)) == [unapproved]
    assert found(look_at_store, case(stored(), foreign=True)) == [("note", FORGETS, url)]

    async def refuse(_: str) -> Any:
        raise StoreDown("Redis does not answer")

    monkeypatch.setattr(machine_checks, "open_counters", refuse)
    shared = stored(shared=Secret("redis://h"))
    assert found(look_at_store, case(shared))[1:] == [("problem", "Redis does not answer", REDIS)]

    async def answer(_: str) -> Any:
        async def close() -> None: ...

        return SimpleNamespace(close=close), None

    monkeypatch.setattr(machine_checks, "open_counters", answer)
    assert found(look_at_store, case(shared))[1:] == [("ok", "Redis answers, its version is supported", "")]


def test_files_of_stores_are_reported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "store.db"

    def look(seen: Any = None, path: Path = file) -> list[Found]:
        return found(look_at_store, case(stored(f"sqlite:{path}"), store_file=seen))

    assert look() == [("ok", f"{file} is created at the first start", "")]
    below = tmp_path / "a" / "b"
    text = f"{below} does not exist yet: the first start creates it"
    assert look(path=below / "x.db") == [("note", text, f"mkdir -m 700 -p {below}")]
    file.touch()
    nowhere = file / "x.db"
    text = f"{file} does not exist, and cannot be created in {file}"
    fix = "create it for the gateway's user, or [store] in w.toml: url"
    assert look(path=nowhere) == [("problem", text, fix)]
    assert look(StoreDown("it is locked")) == [
        ("problem", "it is locked", f"find the process: fuser -v {file}")
    ]
    assert look(StoreUnusable("it is damaged")) == [
        ("problem", "it is damaged", f"move {file} aside, or [store] in w.toml: url")
    ]
    whole = FileLook(version=7, known=7, size=3 * MIB, is_read_through=True, keys=0)
    assert look(whole) == [("ok", f"{file}: sound, schema 7, 3.0 MiB", "")]
    old = msgspec.structs.replace(whole, version=6, is_read_through=False, size=2048)
    text = f"{file}: sound as far as it was checked, schema 6, upgraded to 7 at the next start, 2 KiB"
    assert look(old) == [("ok", text, "")]
    monkeypatch.setattr("os.access", lambda path, mode: False)
    closed = f"this user cannot write to {tmp_path}, where the store needs files"
    assert look(whole) == [("problem", closed, f"chown and chmod 700 {tmp_path}")]
    file.unlink()
    assert look() == [("problem", closed, f"chown and chmod 700 {tmp_path}")]
    text = f"{below} does not exist, and cannot be created in {tmp_path}"
    assert look(path=below / "x.db") == [("problem", text, fix)]


def test_a_database_is_reported_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pytest.importorskip("wireglot.stores.postgres.schema", reason="the extra wireglot[fleet]")
    usual = {"server": "PostgreSQL 17.2", "schema": "wireglot", "version": 1, "known": 2, "read_only": False}

    def look(**more: Any) -> Found:
        async def seen(_: str) -> Any:
            return SimpleNamespace(**{**usual, **more})

        monkeypatch.setattr(schema, "look_at_database", seen)
        ((only),) = found(look_at_store, case(stored("postgresql://h/x")))
        return only

    assert look() == ("ok", "PostgreSQL 17.2 answers; schema wireglot, version 1", "")
    assert look(version=2)[0] == "ok"
    made = "PostgreSQL 17.2 answers; the schema wireglot is created at the first start"
    assert look(version=0) == ("ok", made, "")
    newer = "the schema wireglot has version 3, this program supports up to 2"
    assert look(version=3) == ("problem", newer, upgrade_hint())
    standby = "PostgreSQL 17.2 is read-only: it is a standby"
    assert look(read_only=True) == ("problem", standby, "use the primary: [store] in w.toml: url")

    async def refuse(_: str) -> Any:
        raise StoreUnusable("no such database")

    monkeypatch.setattr(schema, "look_at_database", refuse)
    fix = "check that the database runs and accepts this machine; [store] in w.toml: url"
    refused = ("problem", "no such database", fix)
    assert found(look_at_store, case(stored("postgresql://h/x"))) == [refused]


# The configuration, its files, and what is unsafe.


def test_problems_of_a_configuration_are_reported_whole() -> None:
    problems = [
        ConfigProblem("server.port", "a number", '"x"'),
        ConfigProblem("WIREGLOT_PORT", "a number", '"x"'),
        ConfigProblem("w.toml", "a file that can be read", "none"),
    ]
    given = case(error=ConfigError(problems, "w.toml"), environ={"WIREGLOT_PROT": "1"})
    assert found(configuration_checks.look_at_configuration, given) == [
        ("warning", "WIREGLOT_PROT is set but unused", "did you mean WIREGLOT_PORT?"),
        ("problem", 'server.port: expected a number, found "x"',
         "correct it in w.toml; verify with `wireglot config check`"),
        ("problem", 'WIREGLOT_PORT: expected a number, found "x"',
         "set the variable WIREGLOT_PORT to that, or unset it"),
        ("problem", "w.toml: expected a file that can be read, found none",
         "wireglot init, or name another file with --config"),
    ]  # fmt: skip


def test_a_configuration_that_loads_is_reported_whole(tmp_path: Path) -> None:
    look = configuration_checks.look_at_configuration
    now = settings(
        catalogued("kimi", "k"),
        rules=(Rule("a", ("kimi/b",)), Rule("c", ("kimi/b",))),
        keys=(ClientKey("ada", "0" * 64),),
        notes=(
            "/metrics is off, since no key opens it; set server.metrics_key",
            "no persistent secret: what is sealed is lost at the next start; set server.secret",
            "plain words",
            "provider kimi is on: its key is in the environment",
            "provider x: x.example is called over http, without encryption",
        ),
    )
    assert found(look, case(now)) == [
        ("ok", "w.toml loads: 1 provider, 2 rules, 1 client key", ""),
        ("note", "/metrics is off, since no key opens it", "set server.metrics_key"),
        ("warning", "no persistent secret: what is sealed is lost at the next start", "set server.secret"),
        ("warning", "plain words", "wireglot config check"),
    ]
    bare = case(settings(), path=None)
    assert found(look, bare) == [
        ("note", "no wireglot.toml: providers are enabled by API keys in the environment", "wireglot init"),
        ("problem", "no provider is on: every request is refused", "[providers.demo] in w.toml"),
    ]
    named = case(settings(catalogued("kimi")), environ={"WIREGLOT_CONFIG": "w.toml"})
    assert found(look, named) == [("ok", "w.toml (set by WIREGLOT_CONFIG) loads: 1 provider", "")]
    mine = tmp_path / "wireglot" / "wireglot.toml"
    mine.parent.mkdir()
    mine.touch()
    given = case(settings(catalogued("kimi")), environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert found(look, given) == [("ok", f"w.toml (not {mine}) loads: 1 provider", "")]
    given.path = mine
    assert found(look, given) == [("ok", f"{mine} loads: 1 provider", "")]


SECRET = "0123456789abcdef"


def test_open_doors_and_secrets_are_reported_whole() -> None:
    look = configuration_checks._doors
    local = "reachable from this machine only, "
    assert found(look, case(settings())) == [("ok", f"{local}without a client key", "")]
    assert found(look, case(settings(), client_keys=1)) == [("ok", f"{local}with a client key", "")]
    open_ = settings(
        server=ServerSettings(host="0.0.0.0"), store=StoreSettings(url=Secret("sqlite:x.db", "config"))
    )
    tls = (
        "note",
        "it listens on 0.0.0.0 without TLS: keys and conversations are not encrypted in transit",
        "put a TLS reverse proxy in front of it (docs/operations.md, nginx), or listen on 127.0.0.1",
    )
    lacking = ("warning", "it requires a client key, but none exists", "wireglot keys create NAME")
    assert found(look, case(open_)) == [tls, lacking]
    assert found(look, case(open_, client_keys=1)) == [tls]
    assert found(look, case(msgspec.structs.replace(open_, store=StoreSettings()))) == [tls]

    weak = Secret("changeme-changeme", "env:X")
    server = ServerSettings(
        host="0.0.0.0", secret=weak, admin_secret=weak, metrics_key=Secret(SECRET, "config")
    )
    spec = own("mine", "openai-chat")
    kept = Credential(Secret("sk-12345", "config"), "a")
    now = settings(
        msgspec.structs.replace(spec, credentials=(kept,)),
        msgspec.structs.replace(catalogued("kimi"), credentials=(kept,)),
        msgspec.structs.replace(
            own("word", "openai-chat"), credentials=(Credential(Secret("sk-1234"), "b"),)
        ),
        server=server,
        login=LoginSettings(client_secret=Secret("x", "config")),
        search=SearchSettings(backend="brave", key=Secret("x", "config")),
    )
    openssl = '="$(openssl rand -hex 32)"'
    written = "is in clear text in w.toml"
    kimi = "[providers.kimi] in w.toml: api_key"
    assert found(configuration_checks._secrets, case(now)) == [
        ("warning", "server.secret is easy to guess", f"export WIREGLOT_SECRET{openssl}"),
        ("warning", "server.admin_secret is easy to guess", f"export WIREGLOT_ADMIN_SECRET{openssl}"),
        ("warning", f"server.metrics_key {written}", '[server] in w.toml: metrics_key = "env:WIREGLOT_METRICS_KEY"'),
        ("warning", f"login.client_secret {written}", '[login] in w.toml: client_secret = "env:NAME"'),
        ("warning", f"search.key {written}", '[search] in w.toml: key = "env:NAME"'),
        ("warning", "server.admin_secret has the same value as another secret of the server",
         f"export WIREGLOT_ADMIN_SECRET{openssl}"),
        ("warning", f"the key of [providers.mine] {written}", '[providers.mine] in w.toml: api_key = "env:NAME"'),
        ("warning", f"the key of [providers.kimi] {written}", f'{kimi} = "env:{now.providers["kimi"].spec.api_key_env[0]}"'),
    ]  # fmt: skip
    none = settings(server=ServerSettings(host="0.0.0.0"))
    text = "no admin secret: keys can be created and revoked on this machine only"
    assert found(configuration_checks._secrets, case(none)) == [
        ("note", text, f"export WIREGLOT_ADMIN_SECRET{openssl}")
    ]
    assert found(configuration_checks._secrets, case(settings())) == []
    fine = settings(
        server=ServerSettings(admin_secret=Secret(SECRET, "env:A"), secret=Secret("b" + SECRET, "env:B"))
    )
    assert found(configuration_checks._secrets, case(fine)) == []


REDIS_TLS = "remove ssl_cert_reqs and ssl_check_hostname from store.shared"
UNVERIFIED = ("warning", "store.shared: the certificate of Redis is not verified", REDIS_TLS)
VERIFY = "sslmode=verify-full in store.url"


@rows(
    ("store", "reported"),
    [
        ({}, []),
        ({"shared": "redis://h.example"}, [("warning", "store.shared: the connection to h.example does not use TLS", "rediss:// in store.shared")]),
        ({"shared": "valkey://h.example"}, [("warning", "store.shared: the connection to h.example does not use TLS", "rediss:// in store.shared")]),
        ({"shared": "redis://127.0.0.1"}, []),
        ({"shared": "rediss://h.example"}, []),
        *(
            ({"shared": f"rediss://h.example?{option}"}, [UNVERIFIED])
            for option in ("ssl_cert_reqs=none", "ssl_cert_reqs=optional", "ssl_check_hostname=false", "ssl_check_hostname=0")
        ),
        ({"shared": "rediss://h.example?ssl_cert_reqs=required&ssl_check_hostname=1"}, []),
        *(
            ({"url": f"postgresql://h.example/x?sslmode={mode}"}, [("warning", f"store.url: sslmode={mode} does not verify the server's identity", VERIFY)])
            for mode in ("disable", "allow", "prefer", "require")
        ),
        ({"url": "postgresql://h.example/x?sslmode=verify-full"}, []),
        ({"url": "postgresql://h.example/x"}, []),
        ({"url": "postgresql://127.0.0.1/x?sslmode=disable"}, []),
        ({"url": "postgresql://127.0.0.1,h.example/x?sslmode=disable"}, [("warning", "store.url: sslmode=disable does not verify the server's identity", VERIFY)]),
    ],
)  # fmt: skip
def test_ways_to_stores_that_others_can_read(store: dict[str, str], reported: list[Found]) -> None:
    secrets: dict[str, Any] = {name: Secret(url) for name, url in store.items()}
    now = settings(store=StoreSettings(**secrets))
    assert found(configuration_checks._ways, case(now)) == reported


def test_ways_to_providers_that_others_can_read() -> None:
    urls = {"anthropic": "http://llm.example/a", "openai-chat": "http://llm.example/v1"}
    spec = msgspec.structs.replace(
        own("far", "openai-chat").spec, base_url=urls["openai-chat"], base_urls=urls
    )
    now = settings(Provider("far", spec), own("near", "openai-chat"), catalogued("kimi"))
    text = "far: llm.example uses unencrypted http"
    fix = '[providers.far] in w.toml: base_url = "https://..."'
    assert found(configuration_checks._ways, case(now)) == [("warning", text, fix)] * 2


def test_what_may_be_lost_and_who_it_runs_as(monkeypatch: pytest.MonkeyPatch) -> None:
    sync = (
        "warning",
        'store.sync is "off": a power cut loses the records of the last requests',
        '[store] in w.toml: sync = "during"',
    )
    root = (
        "note",
        "running as root: a gateway needs no root privileges",
        "run it as a dedicated user (docs/operations.md, systemd)",
    )
    off, during = settings(store=StoreSettings(sync="off")), settings()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert found(configuration_checks._durability, case(off)) == [sync, root]
    monkeypatch.setattr("os.geteuid", lambda: 1)
    assert found(configuration_checks._durability, case(during)) == []
    look = configuration_checks.look_at_safety
    well = [
        ("ok", "reachable from this machine only, without a client key", ""),
        ("ok", "no unsafe settings", ""),
    ]
    assert found(look, case(during)) == well
    assert found(look, case(off)) == [well[0], sync]


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    now = settings(
        store=StoreSettings(url=Secret("postgresql://h/x"), shared=Secret("redis://h")),
        server=ServerSettings(telemetry=True),
    )
    look = configuration_checks.look_at_versions
    installed: list[str] = []
    monkeypatch.setattr(configuration_checks, "find_spec", lambda name: installed.append(name))
    lacking = found(look, case(now))[1:]
    assert lacking == [
        ("problem", "PostgreSQL (store.url) needs the package asyncpg", install_hint("fleet")),
        ("problem", "Redis (store.shared) needs the package redis", install_hint("fleet")),
        ("problem", "OpenTelemetry (server.telemetry) needs the package opentelemetry", install_hint("otel")),
    ]
    assert installed == ["asyncpg", "redis", "opentelemetry.sdk"]
    monkeypatch.setattr(configuration_checks, "find_spec", lambda name: name)
    assert found(look, case(now))[1:] == []

    def broken(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(configuration_checks, "find_spec", broken)
    assert len(found(look, case(now))) == 4
    assert len(found(look, case(settings()))) == 1
    assert len(found(look, case(None))) == 1

    def old() -> None:
        raise StoreUnusable("SQLite is too old")

    monkeypatch.setattr(configuration_checks, "require_version", old)
    assert found(look, case(None))[1:] == [("problem", "SQLite is too old", "pip install -U apsw")]


def test_places_of_secrets_are_looked_at(tmp_path: Path) -> None:
    data = tmp_path / "wireglot"
    data.mkdir(mode=0o755)
    for name in ("secret", "credentials"):
        (data / name).touch(mode=0o644)
    config, key, store = (tmp_path / name for name in ("w.toml", "k.txt", "s.db"))
    config.write_text(f'[providers.a]\napi_key = "file:{key}"\n')
    for place in (config, key, store):
        place.touch()
        place.chmod(0o640)
    data.chmod(0o710)
    provider = msgspec.structs.replace(
        own("a", "openai-chat"), credentials=(Credential(Secret("x" * 9, "config"), "a"),)
    )
    now = settings(provider, store=StoreSettings(url=Secret(f"sqlite:{store}")))
    given = case(now, environ={"XDG_DATA_HOME": str(tmp_path)}, path=config)
    holds = {
        data: ("the gateway's data", "700"),
        data / "secret": ("the secret that encrypts stored data", "600"),
        data / "credentials": ("provider keys", "600"),
        config: ("a secret", "600"),
        key: ("a secret", "600"),
        store: ("stored data of callers", "600"),
    }
    open_ = [
        (
            "warning",
            f"{place} contains {what}, and other users on this machine can read it",
            f"chmod {mode} {place}",
        )
        for place, (what, mode) in holds.items()
    ]
    look = configuration_checks.look_at_files
    assert found(look, given) == [*open_, ("ok", "6 files and folders with secrets or data checked", "")]
    for each in look(given):
        if each.repair is not None:
            each.repair()
    assert found(look, given) == [("ok", "6 files and folders with secrets or data checked", "")]
    for place in (data / "secret", key):
        place.unlink()
    config.chmod(0o644)
    closed = msgspec.structs.replace(now, providers={})
    assert found(look, case(closed, environ=given.environ, path=config)) == [
        ("ok", "3 files and folders with secrets or data checked", "")
    ]
    assert found(look, case(settings(), path=None)) == []


# Providers and clients.

ANSWER = ProviderAnswer(
    "mine", "GET https://h.example:444/v1/models", "taken", source="env:MINE_KEY", status=200
)


def mine(**more: Any) -> Provider:
    spec = own("mine", "openai-chat").spec
    credential = Credential(Secret("sk-1", "env:MINE_KEY"), "a")
    return Provider("mine", spec, (credential,), **more)


def judged(look: Any, *answers: ProviderAnswer, now: Settings | None = None, **more: Any) -> list[Found]:
    return found(look, case(now or settings(mine()), answers=answers, **more))


def answer(outcome: Any, words: str = "no", **more: Any) -> ProviderAnswer:
    return msgspec.structs.replace(ANSWER, outcome=outcome, words=words, **more)


@rows(
    ("given", "grade", "text", "fix"),
    [
        (answer("taken", ""), "ok", "mine accepts its key (MINE_KEY)", ""),
        (answer("refused", ""), "problem", "mine rejects the key in MINE_KEY",
         "export MINE_KEY=... with a valid key, and restart the gateway"),
        (answer("refused", source="file:/k"), "problem", "mine rejects the key in file:/k (message: no)", "put a valid key into /k"),
        (answer("refused", source="config"), "problem", "mine rejects the key in config (message: no)",
         "[providers.mine] in w.toml: api_key"),
        (answer("no-login"), "problem", "mine: sign-in failed: no", "check [providers.mine], login, in w.toml"),
        (answer("no-login", fix="gcloud auth login"), "problem", "mine: sign-in failed: no", "gcloud auth login"),
        (answer("forbidden"), "warning", "mine denies access to the key in MINE_KEY (message: no)",
         "check the key's permissions at mine; if it accepts known clients only, start one"),
        (answer("unpaid"), "problem", "mine accepts its key, but not its account (message: no)", "check billing at mine, or remove its key"),
        (answer("busy"), "warning", "mine rejects this key for now (message: no)", "wait, and run wireglot doctor again"),
        (answer("silent"), "ok", "mine has a key (MINE_KEY), which could not be tested", ""),
    ],
)  # fmt: skip
def test_what_a_provider_says_of_its_key(given: ProviderAnswer, grade: str, text: str, fix: str) -> None:
    assert judged(provider_checks.look_at_keys, given) == [(grade, text, fix)]


def test_a_kept_key_that_is_refused_is_replaced_by_its_variable(tmp_path: Path) -> None:
    kimi = settings(catalogued("kimi", "k"))
    name = kimi.providers["kimi"].spec.api_key_env[0]
    for source, where in (("file:/k", name), (f"keyring:{name}", name), ("keyring:OTHER", "OTHER")):
        given = answer("refused", provider="kimi", source=source)
        ((_, _, fix),) = judged(provider_checks.look_at_keys, given, now=kimi)
        assert fix == f"export {where}=... with a valid key (the stored key is in {source.partition(':')[2]})"
    stated = settings(msgspec.structs.replace(kimi.providers["kimi"], stated="w.toml:3"))
    given = answer("refused", provider="kimi", source="file:/k")
    assert judged(provider_checks.look_at_keys, given, now=stated)[0][2] == "put a valid key into /k"
    given = answer("refused", provider="kimi", source="keyring:x")
    assert (
        judged(provider_checks.look_at_keys, given, now=stated)[0][2] == "[providers.kimi] in w.toml: api_key"
    )


def test_keys_that_were_not_tried_or_are_not_there(tmp_path: Path) -> None:
    look = provider_checks.look_at_keys
    assert judged(look, offline=True) == [("ok", "mine: key from env:MINE_KEY, not tested (--offline)", "")]
    demo = (
        "note",
        "no provider key found: only the demo model is available",
        "set a provider key (see `wireglot models`), or: wireglot run claude --model kimi/kimi-k3",
    )
    for now in (settings(), settings(own("demo", "openai-chat"))):
        assert judged(look, now=now) == [demo]
    assert judged(look, now=settings(own("other", "openai-chat"))) == []
    file = tmp_path / "wireglot" / "credentials"
    file.parent.mkdir()
    file.write_text("A_KEY=kept\nB_KEY=kept\nC_KEY=kept\n")
    environ = {"XDG_DATA_HOME": str(tmp_path), "A_KEY": "other", "B_KEY": " kept ", "C_KEY": " "}
    hidden = (
        "note",
        "A_KEY is stored, but has another value in the environment, which takes precedence",
        f"unset A_KEY, or remove its line from {file}",
    )
    assert judged(look, answer("taken", ""), environ=environ)[1:] == [hidden]


TABLE = "[providers.mine] in w.toml"
HOST = "h.example:444"


@rows(
    ("given", "grade", "text", "fix"),
    [
        (answer("taken", "", milliseconds=3000), "ok", f"mine: {HOST} answers in 3000 ms", ""),
        (answer("taken", "", milliseconds=3001), "warning", f"mine: {HOST} takes 3.0 s to answer a small request",
         "curl -sS -o /dev/null -w '%{time_namelookup} %{time_connect} %{time_appconnect}\\n' https://h.example:444"),
        (answer("failing", status=503), "warning", f"mine: {HOST} answers with status 503: no",
         "try again later; a fallback in [models] can replace it"),
        (answer("other"), "problem", f"mine: the server at {HOST} is not mine (no)", f"{TABLE}: base_url"),
        (answer("silent", problem="connect"), "problem", f"mine: {HOST} does not answer: no",
         "check for a firewall: curl -v https://h.example"),
        (answer("silent", problem="dns"), "problem", f"mine: {HOST} does not answer: no",
         "check that the name resolves: getent hosts h.example"),
        (answer("silent", problem="tls"), "problem", f"mine: {HOST} does not answer: no",
         "if a company proxy intercepts TLS, add its certificate authority: export SSL_CERT_FILE=/path/to/authorities.pem"),
        (answer("silent", question="GET http://127.0.0.1:9/v1"), "problem", "mine: 127.0.0.1:9 does not answer: no",
         f"start mine there, or correct {TABLE}: base_url"),
    ],
)  # fmt: skip
def test_how_a_host_answers(given: ProviderAnswer, grade: str, text: str, fix: str) -> None:
    look = provider_checks.look_at_network
    assert judged(look, given, given) == [(grade, text, fix)], "each place is reported once"
    assert judged(look, answer("no-login")) == []


def test_a_model_with_little_context_for_an_agent_is_named() -> None:
    loaded = (
        LoadedModel("ollama", "qwen3:8b", 4096, 40960),
        LoadedModel("ollama", "tiny:1b", 2048, 2048),
        LoadedModel("ollama", "big:70b", 65536, 0),
    )
    assert found(provider_checks.look_at_network, case(settings(), loaded_models=loaded)) == [
        (
            "warning",
            "ollama: qwen3:8b is loaded with a context of 4096 of 40960 tokens: a longer prompt loads it again",
            "start the server with OLLAMA_CONTEXT_LENGTH=32768",
        ),
        ("ok", "ollama: tiny:1b is loaded with a context of 2048 of 2048 tokens", ""),
        ("ok", "ollama: big:70b is loaded with a context of 65536 tokens", ""),
    ]


def test_proxies_are_named_where_nothing_is_reached() -> None:
    look = provider_checks.look_at_network
    given = answer("silent", problem="dns")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        ((_, _, fix),) = judged(look, given, environ={name: "http://p:1"})
        assert fix == f'{TABLE}: proxy = "env:{name}" (proxies of the environment are not used automatically)'
    through = settings(mine(proxy="http://p:1"))
    assert judged(look, given, now=through) == [
        (
            "problem",
            f"mine: {HOST} does not answer through its proxy: no",
            f"{TABLE}: proxy, or check that the proxy runs",
        )
    ]
    assert judged(look, answer("taken", "", milliseconds=1), now=through) == [
        ("ok", f"mine: {HOST} answers in 1 ms through its proxy", "")
    ]
    assert judged(look, given, offline=True) == [("ok", "not checked (--offline)", "")]
    ((grade, text, fix),) = judged(look, given, foreign=True)
    assert (grade, text) == (
        "warning",
        "no provider was called: w.toml decides where your keys are sent, and is not approved",
    )
    assert fix.startswith("check it, then: wireglot config trust")


@rows(
    ("skew", "grade", "text"),
    [
        (0.2, "ok", "in agreement with 1 provider within 1 s"),
        (-30.0, "ok", "in agreement with 1 provider within 30 s"),
        (31.0, "warning", "this machine's clock is 31 s behind: budgets, expiry times and logs are wrong by that amount"),
        (-119.4, "warning", "this machine's clock is 119 s ahead: budgets, expiry times and logs are wrong by that amount"),
        (120.0, "warning", "this machine's clock is 2 minutes behind: budgets, expiry times and logs are wrong by that amount"),
        (119.4 * 60, "warning", "this machine's clock is 119 minutes behind: budgets, expiry times and logs are wrong by that amount"),
        (120.0 * 60, "warning", "this machine's clock is 2 hours behind: budgets, expiry times and logs are wrong by that amount"),
    ],
)  # fmt: skip
def test_how_far_the_clock_is_off(skew: float, grade: str, text: str) -> None:
    fix = "synchronize it: sudo timedatectl set-ntp true (macOS: sudo sntp -sS time.apple.com)"
    look = provider_checks.look_at_clock
    assert judged(look, answer("taken", skew=skew)) == [(grade, text, fix if grade != "ok" else "")]
    assert judged(look, ANSWER) == []


def test_a_clock_by_which_logins_go() -> None:
    login: Any = SimpleNamespace()
    signing = Credential(Secret("x"), "a", login=login)
    now = settings(msgspec.structs.replace(mine(), credentials=(signing,)))
    look = provider_checks.look_at_clock
    grades = [judged(look, answer("taken", skew=skew), now=now)[0][:2] for skew in (240.0, 241.0)]
    text = "this machine's clock is 4 minutes behind: "
    assert grades == [
        ("warning", f"{text}budgets, expiry times and logs are wrong by that amount"),
        ("problem", f"{text}logins and signatures are refused"),
    ]


def test_web_search_and_fetch_are_reported_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    look = provider_checks.look_at_web
    brave = SearchSettings(backend="brave", key=Secret("x", "env:K"))
    searx = SearchSettings(backend="searxng", url="http://h")

    def searching(search: SearchSettings, result: Any) -> list[Found]:
        async def searched(_: Any) -> Any:
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(provider_checks, "_test_search", searched)
        return judged(look, now=settings(search=search), searches=True)

    assert searching(brave, [1]) == [("ok", "Brave Search found 1 page in 0 ms, key from env:K", "")]
    nothing = "check allowed_domains and blocked_domains of [search] in w.toml, and the search engines of the backend"
    assert searching(searx, []) == [
        ("warning", "SearXNG found nothing for 'Python programming language'", nothing)
    ]
    failed = WebFailed
    for search, words, fix in (
        (brave, "status 403", "check key and url of [search] in w.toml, and the account"),
        (searx, "status 403", "add json to search.formats in the settings.yml of SearXNG"),
        (searx, "status 500", "check url of [search] in w.toml, and the log of SearXNG"),
    ):
        ((grade, text, told),) = searching(search, failed("unavailable", words))
        assert (grade, told) == ("problem", fix)
        assert "the search failed: " in text
    google = SearchSettings(backend="google", key=Secret("x", "env:K"))
    assert judged(look, now=settings(search=google, fetch=FetchSettings(private_hosts=("a", "b")))) == [
        ("warning", "Google ends the Custom Search JSON API on 2027-01-01, and accepts no new customers",
         '[search] in w.toml: backend = "brave", or another one'),
        ("ok", "Google Programmable Search searches the web, key from env:K, not tested (--search sends one test search)", ""),
        ("ok", "pages on public addresses can be fetched", ""),
        ("note", "pages on a, b can also be fetched, by every client", "[fetch] in w.toml: private_hosts"),
    ]  # fmt: skip


def test_clients_and_where_they_are_sent_are_reported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {"claude", "codex"}
    monkeypatch.setattr("shutil.which", lambda name, path: name if name in here and path == "/bin" else None)
    look = provider_checks.look_at_clients
    environ = {"PATH": "/bin", "HOME": str(tmp_path)}
    now = settings(server=ServerSettings(port=8484))
    claude = CLIENTS["claude"]
    assert found(look, case(now)) == [("note", "no supported client found on the PATH", claude.install)]
    first = ("ok", "found: Claude Code, Codex; to start one: wireglot run claude", "")
    assert found(look, case(now, environ=environ)) == [first]
    named = {
        name: f"https://{name.replace('_', '-')}.example/v1?key=hush" for name in provider_checks._VARIABLES
    }
    assert found(look, case(now, environ={**environ, **named})) == [
        first,
        *(
            ("note", f"{name} in this shell sends clients to {name.lower().replace('_', '-')}.example", f"unset {name}")
            for name in (
                "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_HOST", "GOOGLE_GEMINI_BASE_URL",
                "CODE_ASSIST_ENDPOINT", "KIMI_MODEL_BASE_URL",
            )
        ),
    ]  # fmt: skip
    file = tmp_path / ".codex" / "config.toml"
    file.parent.mkdir()
    lines = [
        "# base_url = 'https://old.example'",
        "// base_url = 'https://older.example'",
        "api-base: https://a.example",
    ]
    lines += [
        "BASEURL = https://a.example",
        'openai-api-base="http://127.0.0.1:8484/v1"',
        "api_base = http://localhost:7000",
    ]
    file.write_bytes("\n".join([*lines, "base_url = https://bad:port"]).encode() + b"\xff")
    running = (RunningGateway("http://127.0.0.1:7000", 1, __version__),)
    fix = "wireglot run codex overrides it for one run; or change the file"
    sends = "Codex: ~/.codex/config.toml sends it to"
    assert found(look, case(now, environ=environ, running=running)) == [
        first,
        ("note", f"{sends} a.example", fix),
        ("warning", f"{sends} 127.0.0.1:8484: your gateway, not running", "wireglot serve"),
        ("ok", f"{sends} localhost:7000: your gateway, running", ""),
        ("note", f"{sends} another host", fix),
    ]
    file.write_text("x" * (256 * 1024 - 24) + "\nbase_url = http://h.exa" + "mple")
    assert found(look, case(now, environ=environ))[1:] == [("note", f"{sends} h.exa", fix)]


@rows(
    ("url", "password"),
    [("redis://:a%20b@h", "a b"), ("redis://h", ""), ("redis://[x", "")],
)
def test_passwords_of_stores_are_hidden(url: str, password: str) -> None:
    assert _password(url) == password


def test_a_look_at_prices_that_are_young_and_old(monkeypatch: pytest.MonkeyPatch) -> None:
    age: Any = type(
        "Age", (), {"__str__": lambda self: "prices of x are 99 days old", "source": "https://x", "days": 99}
    )()
    look = provider_checks.look_at_prices
    monkeypatch.setattr(provider_checks, "stale_prices", lambda specs, today: [age])
    monkeypatch.setattr(provider_checks, "price_ages", lambda specs, today: [age])
    fix = f"{upgrade_hint()}, or set prices in [prices] in w.toml (https://x)"
    assert judged(look) == [("note", "prices of x are 99 days old", fix)]
    budget = msgspec.structs.replace(ClientKey("a", "0" * 64).limits, cost_per_day=1)
    now = settings(mine(), keys=(ClientKey("a", "0" * 64, limits=budget),))
    assert judged(look, now=now)[0][0] == "warning"
    monkeypatch.setattr(provider_checks, "stale_prices", lambda specs, today: [])
    assert judged(look) == [("ok", "the oldest list price is 99 days old", "")]
    age.days = -1
    assert judged(look) == [("ok", "the oldest list price is 0 days old", "")]


def test_an_identity_provider_must_be_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = "https://idp.example/"
    now = settings(login=LoginSettings(approval=("oidc",), issuer=issuer))
    asked: list[str] = []

    def saying(status: int, document: Any) -> list[Found]:
        def ask(url: str) -> Any:
            asked.append(url)
            return SimpleNamespace(status=status, document=lambda: document)

        monkeypatch.setattr(provider_checks, "ask", ask)
        return judged(provider_checks.look_at_network, now=now)

    fix = "check issuer of [login] in w.toml: the URL that its openid-configuration names"
    no = ("problem", f"no one can sign in: {issuer} is not an OpenID Connect provider of this name", fix)
    assert saying(200, {"issuer": issuer}) == [("ok", f"sign-in through {issuer} is available", "")]
    assert saying(200, {"issuer": "https://other.example"}) == [no]
    assert saying(404, {"issuer": issuer}) == [no]
    assert set(asked) == {"https://idp.example/.well-known/openid-configuration"}
    keys = settings(login=LoginSettings(approval=("key",), issuer=issuer))
    assert judged(provider_checks.look_at_network, now=keys) == []
