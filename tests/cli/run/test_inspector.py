"""The inspector of a client's own gateway: found by its user, opened by a link that signs in once."""

import http.client
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from clients.terminal import Terminal
from tests.cli.run.test_run import Place
from tests.cli.running import COMMAND
from tests.gateway.inspector.inspector_kit import Visitor
from tests.processes import run_forked
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.observe.running import RunningGateway, announced, find_private, find_running

LINK = re.compile(r"http://127\.0\.0\.1:(\d+)/inspector/enter/[\w-]+")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class At:
    """A gateway at a port, for a Visitor."""

    def __init__(self, port: int) -> None:
        self.port = port


@pytest.fixture
def running(place: Place) -> Iterator[Terminal]:
    """A client that waits, with the inspector of its gateway."""
    terminal = place.in_terminal("claude", "--inspect", "--", "wait", "ask")
    assert terminal.wait_for("END", DEADLINE_SECONDS), terminal.shown
    yield terminal
    terminal.type("\x03")
    assert terminal.end(DEADLINE_SECONDS) == 5


def inspect(place: Place, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run_forked(
        [*COMMAND, "inspect", *arguments],
        cwd=place.project,
        env={**place.env, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )


def visit(link: str) -> tuple[int, str]:
    """The status of a link, and the cookie it sets."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(link).port, timeout=DEADLINE_SECONDS)
    connection.request("GET", urlsplit(link).path)
    answer = connection.getresponse()
    answer.read()
    return answer.status, (answer.getheader("set-cookie") or "").partition(";")[0]


def test_a_client_s_own_gateway_is_inspected_by_links_that_sign_in_once(
    place: Place, running: Terminal
) -> None:
    shown = LINK.search(running.shown)
    assert shown is not None, running.shown
    done = inspect(place)  # there is one alone
    found = LINK.fullmatch(done.stdout.strip())
    assert found is not None, (done.stdout, done.stderr)
    assert shown[0] != found[0]
    for link in (shown[0], found[0]):
        assert visit(f"{link[:-1]}{'A' if link[-1] != 'A' else 'Q'}")[0] == 410
        status, cookie = visit(link)
        assert status == 303
        visitor = Visitor(At(int(shown[1])))
        assert visitor.get("/inspector/api/exchanges").status == 401
        visitor.cookie = cookie
        assert visitor.look()["access"] == "admin"
        rows = visitor.get("/inspector/api/exchanges").json()["rows"]
        assert len(rows) == 1
        assert "demo/demo" in rows[0].values()
        assert visit(link) == (410, "")
    assert [each.client for each in find_private(place.env)] == ["claude"]
    assert not find_running(place.env), "no other client joins it"


def test_a_browser_is_called_with_the_link_and_the_terminal_shows_the_address_alone(place: Place) -> None:
    opened = place.temporary.parent / "opened"
    place.program("browser", f'#!/bin/sh\necho "$1" > {opened}.new\nmv {opened}.new {opened}\n')
    env = {"BROWSER": f"{place.programs}/browser %s"}
    terminal = place.in_terminal("claude", "--inspect", "--", "wait", env=env)
    assert terminal.wait_for("END", DEADLINE_SECONDS)
    wait_until(opened.exists)
    link = opened.read_text().strip()
    assert LINK.fullmatch(link)
    assert "/enter/" not in terminal.shown
    assert f"{link.partition('/enter/')[0]}" in terminal.shown
    assert visit(link)[0] == 303
    terminal.type("\x03")
    assert terminal.end(DEADLINE_SECONDS) == 5
    wait_until(lambda: not find_private(place.env))
    wait_until(lambda: not list((place.data / "running-private").iterdir()))


@pytest.mark.whole
def test_of_several_gateways_one_is_to_be_named_where_nobody_can_be_asked(place: Place) -> None:
    first, second = place.in_terminal("claude", "--", "wait"), place.in_terminal("claude", "--", "wait")
    for terminal in (first, second):
        assert terminal.wait_for("END", DEADLINE_SECONDS)
        assert "`wireglot inspect`" in terminal.shown
    done = inspect(place, "--no-browser")
    assert done.returncode == 2
    named = (
        r"private, for claude in \S+, since \d\d:\d\d:\n    wireglot inspect --url (http://127\.0\.0\.1:\d+)$"
    )
    urls = re.findall(named, done.stderr, re.MULTILINE)
    assert len(urls) == 2, done.stderr
    for url in urls:
        assert LINK.fullmatch(inspect(place, "--url", url, "--no-browser").stdout.strip())
    for terminal in (first, second):
        terminal.type("\x03")
        assert terminal.end(DEADLINE_SECONDS) == 5


def test_a_file_of_a_gateway_that_was_killed_is_not_one_that_runs(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    with announced(RunningGateway("http://127.0.0.1:1", 1, "1", key="k", client="claude"), environ):
        (file,) = (tmp_path / ".local/share/wireglot/running-private").iterdir()
        left = file.with_name("2-left.json")
        left.write_bytes(file.read_bytes())
        assert len(find_private(environ)) == 1
    assert not find_private(environ)
    assert not left.exists()
