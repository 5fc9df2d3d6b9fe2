"""The driver of `make clients`, with a few lines of Python in the place of a real client."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import sys
import threading
import tomllib
from pathlib import Path

import pytest

from clients.catalog import CLIENTS
from clients.install import is_there
from clients.packages import CLIENT_PACKAGES, ROOT, Package
from clients.recorder import Recorder
from clients.report import Table, page, plain
from clients.run import main
from clients.seat import Launch, Outcome, Seat
from clients.servers import UPSTREAMS, DidNotStart, configuration, provider_double
from tests.waiting import wait_until

_READ_MARKER = (
    "import re, sys; word = open(re.search(r'marker-file:([^]]+)', sys.argv[1])[1]).read().strip()\n"
)


@pytest.fixture
def seat(tmp_path: Path):
    with Seat("http://127.0.0.1:1", "key", tmp_path / "logs") as made:
        yield made


def _run(seat: Seat, program: str, *, finals: int = 1, timeout: float = 60.0) -> Outcome:
    return seat.run(Launch([sys.executable, "-c", program, seat.prompt]), finals=finals, timeout=timeout)


def test_a_client_that_prints_what_the_file_holds_passes(seat):
    outcome = _run(seat, _READ_MARKER + "print('FINAL-OK', word)")
    assert outcome.passed
    assert outcome.reason == ""


def test_a_client_that_never_read_the_file_fails(seat):
    assert (
        _run(seat, "print('FINAL-OK NONCE-000000000000')").reason == "the final text was printed 0 of 1 times"
    )


def test_the_prompt_does_not_tell_the_nonce(seat):
    assert seat.marker.read_text().strip() not in seat.prompt


def test_a_client_must_finish_each_of_its_loops(seat):
    outcome = _run(seat, _READ_MARKER + "print('FINAL-OK', word)", finals=2)
    assert outcome.reason == "the final text was printed 1 of 2 times"


def test_a_client_that_prints_all_and_then_crashes_fails(seat):
    assert _run(seat, _READ_MARKER + "print('FINAL-OK', word); sys.exit(3)").reason == "exit code 3"


def test_a_client_that_hangs_is_ended_with_its_children(seat, tmp_path):
    program = """
import os, socket, time
if not os.fork():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
time.sleep(60)
"""
    assert _run(seat, program, timeout=5.0).reason == "still running after 5 s"
    port = int((tmp_path / "logs" / "stdout").read_text())

    def is_refused() -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=60).close()
            return False
        return True

    wait_until(is_refused)  # a killed process ends a moment later


def test_no_key_of_the_caller_reaches_a_client(seat, monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "real")
    _run(seat, "import os; print(sorted(os.environ))")
    names = (tmp_path / "logs" / "stdout").read_text()
    assert "ANTHROPIC_API_KEY" not in names
    assert "'HOME'" in names


def test_settings_files_are_written_below_the_scratch_home(seat, tmp_path):
    show = "import os, pathlib; print(pathlib.Path(os.environ['HOME'], '.tool/settings').read_text())"
    seat.run(
        Launch([sys.executable, "-c", show], files={".tool/settings": "quiet = true"}), finals=1, timeout=60
    )
    assert (tmp_path / "logs" / "stdout").read_text() == "quiet = true\n"


def test_nothing_is_left_of_a_seat(tmp_path):
    with Seat("http://127.0.0.1:1", "key", tmp_path) as seat:
        folder = seat.home.parent
    assert not folder.exists()


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_the_demo_provider_is_pinned_to_the_dialect(upstream):
    read = tomllib.loads(configuration(1234, "secret", upstream, None))
    assert read["models"] == {"*": f"demo/demo-{upstream}"}
    assert read["providers"] == {"demo": {}}
    assert read["server"]["port"] == 1234
    assert read["keys"] == {"clients": "sha256:" + hashlib.sha256(b"secret").hexdigest()}


@pytest.mark.parametrize(
    ("upstream", "base"),
    [("anthropic", ""), ("openai-chat", "/v1"), ("openai-responses", "/v1"), ("gemini", "/v1beta")],
)
def test_a_double_is_a_provider_with_the_base_url_of_its_dialect(upstream, base):
    double = tomllib.loads(configuration(1, "k", upstream, "http://127.0.0.1:9/"))["providers"]["double"]
    assert double == {"dialect": upstream, "base_url": f"http://127.0.0.1:9{base}", "api_key": "none"}


def test_a_double_that_cannot_start_says_why(tmp_path):
    script = tmp_path / "double.py"
    script.write_text("raise SystemExit('the reason')")
    with pytest.raises(DidNotStart, match="the reason"), provider_double(script, tmp_path / "runs"):
        pass


def test_the_recorder_passes_bytes_on_and_keeps_them(tmp_path):
    """R-DE-16"""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(peer.recv(100).upper())

        thread = threading.Thread(target=answer)
        thread.start()
        with Recorder(f"http://127.0.0.1:{server.getsockname()[1]}", tmp_path) as recorder:
            port = int(recorder.url.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(b"hello")
                assert client.recv(100) == b"HELLO"
                assert client.recv(100) == b""
        thread.join()
    assert (tmp_path / "001.sent").read_bytes() == b"hello"
    assert (tmp_path / "001.received").read_bytes() == b"HELLO"


def _table() -> Table:
    cells = {
        (client.name, upstream): Outcome(client is not CLIENTS[0], 1.26, "")
        for client in CLIENTS
        for upstream in UPSTREAMS
    }
    return Table("Heading", "About it.", CLIENTS, UPSTREAMS, cells)


def test_the_page_has_a_cell_for_each_client_and_upstream():
    text = page([_table()], "20.0.0")
    assert text.count("PASS 1.3 s") == (len(CLIENTS) - 1) * len(UPSTREAMS)
    assert text.count("FAIL 1.3 s") == len(UPSTREAMS)
    assert all(f"| {client.title} | {client.speaks} |" in text for client in CLIENTS)


def test_the_plain_table_counts_its_failures():
    table = _table()
    assert table.failures() == len(UPSTREAMS)
    assert "Heading" in plain(table)


def test_names_are_unique_and_every_package_has_a_client():
    assert len({client.name for client in CLIENTS}) == len(CLIENTS)
    assert {client.package for client in CLIENTS} == set(CLIENT_PACKAGES)


def test_every_version_is_exact():
    for package in CLIENT_PACKAGES:
        assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in package.versions.values())


def test_a_package_that_was_never_installed_is_missing():
    assert not is_there(Package("no-such-client", "npm", ("no-such-client@1.0.0",), "none"))


def test_a_page_is_not_written_from_a_part_of_the_table(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "codex", "--write", "page.md"])
    assert "--write needs the whole table" in capsys.readouterr().err


def test_the_documentation_tells_how_to_connect_each_client():
    text = (ROOT / "docs" / "clients.md").read_text().lower()
    for client in CLIENTS:
        title = client.title.partition(" (")[0].removeprefix("Python ").removeprefix("JavaScript ").lower()
        assert f"\n## {title}\n" in text
