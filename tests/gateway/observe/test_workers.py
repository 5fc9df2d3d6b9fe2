"""Several workers are scraped as one."""

import asyncio
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator

import pytest

from tests.gateway.observe.test_metrics import done, read
from tools import metric_table
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.observe.workers import _LARGEST, Siblings, _check_private, merge, shared_directory


@pytest.fixture
def directory() -> Iterator[str]:
    made = shared_directory()
    yield made
    shutil.rmtree(made)


def worker(requests: int, breaker: float = 0.0) -> Metrics:
    metrics = Metrics(version="1")
    for _ in range(requests):
        metrics.finish(done())
    metrics.in_flight.add()
    metrics.read("breaker_open", "Of a provider.", lambda: {("kimi",): breaker}, ("provider",))
    return metrics


REQUESTS = ("wireglot_requests_total", frozenset({"dialect": "anthropic", "provider": "kimi", "model": "kimi-k3", "status": "200", "outcome": "ok"}.items()))  # fmt: skip


def test_workers_meet_where_a_socket_can_have_a_name(tmp_path, monkeypatch):
    """Under a long TMPDIR no worker came up, and the port was blamed."""
    for folder in (tmp_path, tmp_path / ("x" * 100)):
        folder.mkdir(exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        made = shared_directory()
        try:
            assert len(f"{made}/worker-255.sock") <= 104
            assert os.stat(made).st_mode & 0o777 == 0o700
        finally:
            os.rmdir(made)


def test_counters_gauges_and_histograms_add_up():
    whole = read(merge([worker(2).render(), worker(3).render()]))
    route = frozenset({"dialect": "anthropic", "provider": "kimi"}.items())
    assert whole[REQUESTS] == 5
    assert whole["wireglot_requests_in_flight", frozenset()] == 2
    assert whole["wireglot_request_seconds_count", route] == 5
    assert whole["wireglot_request_seconds_bucket", route | {("le", "0.5")}] == 5
    assert whole["wireglot_request_seconds_bucket", route | {("le", "0.25")}] == 0


def test_what_tells_a_state_or_a_time_is_not_added_up():
    """Two workers whose store is down are not "2 while the store is down"."""
    known = {name: about for name, _, _, about in metric_table.metrics()}
    assert known.keys() >= _LARGEST
    assert {name for name, about in known.items() if about.startswith("1 while")} <= _LARGEST


def test_of_a_state_the_largest_counts():
    whole = read(merge([worker(0, 2.0).render(), worker(0, 1.0).render()]))
    assert whole["wireglot_breaker_open", frozenset({("provider", "kimi")})] == 2
    assert whole["wireglot_build_info", frozenset({("version", "1")})] == 1


def test_one_text_stays_as_it_is():
    text = worker(4).render()
    assert merge([text]) == text
    assert merge([]) == b""


def test_what_only_one_worker_knows_is_kept_with_its_kind():
    one, two = Metrics(), Metrics()
    two.upstream_errors.add(("kimi", "timeout"), 3)
    text = merge([one.render(), two.render()])
    assert (
        read(text)["wireglot_upstream_errors_total", frozenset({("provider", "kimi"), ("kind", "timeout")})]
        == 3
    )
    assert text.count(b"# TYPE wireglot_upstream_errors_total counter\n") == 1


def census(text: bytes) -> tuple[float, float]:
    numbers = read(text)
    states = ("answered", "missing")
    answered, missing = (numbers["wireglot_workers", frozenset({("state", state)})] for state in states)
    return answered, missing


def test_a_scrape_of_one_worker_tells_of_all(directory):
    async def scrape() -> bytes:
        siblings = [Siblings(directory, index, worker(index + 1).render) for index in range(3)]
        for sibling in siblings:
            await sibling.start()
        text = await siblings[1].gather()
        for sibling in siblings:
            await sibling.close()
        return text

    text = asyncio.run(scrape())
    assert read(text)[REQUESTS] == 6
    assert census(text) == (3, 0)
    assert os.listdir(directory) == []


def test_a_worker_that_died_is_left_out_and_reported_and_its_successor_takes_its_place(directory):
    async def scrape() -> tuple[bytes, bytes]:
        alive, dead = Siblings(directory, 0, worker(1).render), Siblings(directory, 1, worker(10).render)
        await alive.start()
        others = set(os.listdir(directory))
        await dead.start()
        (socket,) = set(os.listdir(directory)) - others
        os.rename(f"{directory}/{socket}", f"{directory}/kept")  # from 3.13 on asyncio would remove it
        assert dead._server is not None
        dead._server.close()
        os.rename(f"{directory}/kept", f"{directory}/{socket}")
        before = await alive.gather()
        successor = Siblings(directory, 1, worker(2).render)
        await successor.start()
        after = await alive.gather()
        await successor.close()
        await alive.close()
        return before, after

    before, after = asyncio.run(scrape())
    assert (read(before)[REQUESTS], census(before)) == (1, (1, 1))
    assert (read(after)[REQUESTS], census(after)) == (3, (2, 0))


class Silent(asyncio.Protocol):
    """Takes the call and says nothing."""


class CutOff(asyncio.Protocol):
    """Dies in the middle of what it says."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(worker(5).render()[:200])
        transport.close()


@pytest.mark.parametrize("answer", [Silent, CutOff])
def test_a_worker_that_does_not_answer_properly_is_left_out(
    directory, answer: Callable[[], asyncio.Protocol]
):
    async def scrape() -> bytes:
        loop = asyncio.get_running_loop()
        odd = await loop.create_unix_server(answer, f"{directory}/worker-1.sock")
        alive = Siblings(directory, 0, worker(1).render, timeout=0.05)
        await alive.start()
        text = await alive.gather()
        odd.close()
        await alive.close()
        return text

    text = asyncio.run(scrape())
    assert (read(text)[REQUESTS], census(text)) == (1, (1, 1))


def test_the_directory_is_the_users_alone(directory):
    assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
    os.chmod(directory, 0o755)

    async def start() -> None:
        await Siblings(directory, 0, worker(0).render).start()

    with pytest.raises(PermissionError, match="0700"):
        asyncio.run(start())


@pytest.mark.parametrize("mode", [0o701, 0o702, 0o704, 0o710, 0o720, 0o740])
def test_a_place_that_others_could_enter_is_refused(tmp_path, mode):
    _check_private(private := tmp_path)
    private.chmod(mode)
    with pytest.raises(PermissionError, match="mode 0700"):
        _check_private(private)
    private.chmod(0o700)
    _check_private(private)
