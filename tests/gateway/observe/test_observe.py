"""What leaves the process about a request: once, without waiting, and without harm when a sink fails."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.waiting import DEADLINE_SECONDS
from wireglot.gateway.observe.log import ATOMIC_BYTES, Sink
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.settings import Credential, Provider, Rule, Secret, ServerSettings, Settings
from wireglot_core.providers.spec import ProviderSpec

SECRET = "Zq7rT0pL9vXw3KfJm2Hd8Bn5Cs1Gy6Ea"
SPEC = ProviderSpec("mine", "Mine", ("openai-chat",), "http://127.0.0.1:1/v1")
SETTINGS = Settings(
    server=ServerSettings(log="json"),
    providers={"mine": Provider("mine", SPEC, credentials=(Credential(Secret(SECRET), "a"),))},
    rules=(Rule("fast", ("mine/some-model",)),),
)


class Pipe:
    """A pipe of which the test is the reader."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def close_writer(self) -> None:
        os.close(self.write_end)
        self.write_end = -1

    def everything(self) -> bytes:
        """All that was written, once the writer is closed."""
        with os.fdopen(self.read_end, "rb", closefd=False) as stream:
            return stream.read()

    def close(self) -> None:
        for end in (self.read_end, self.write_end):
            if end >= 0:
                os.close(end)


@pytest.fixture
def pipe():
    made = Pipe()
    yield made
    made.close()


def done(**fields) -> ExchangeRecord:
    usual = {"id": "r", "started": 1.0, "dialect": "anthropic", "operation": "generate", "provider": "mine",
             "upstream_model": "some-model", "status": 200, "attempts": 1}  # fmt: skip
    return ExchangeRecord(**{**usual, **fields})


def lines_of(pipe: Pipe, observer: Observer) -> list[dict]:
    observer.close()
    pipe.close_writer()
    return [json.loads(line) for line in pipe.everything().splitlines()]


def test_a_finished_request_is_logged_and_counted_once(pipe):
    observer = Observer(SETTINGS, fd=pipe.write_end, clock=lambda: 3.5)
    record = done()
    observer.begin(record)
    assert observer.metrics.in_flight.value() == 1
    observer.finish(record)
    observer.finish(record)
    assert observer.metrics.in_flight.value() == 0
    assert observer.metrics.requests.value(("anthropic", "mine", "some-model", "200", "ok")) == 1
    (line,) = lines_of(pipe, observer)
    assert (line["id"], line["ms"]) == ("r", 2500.0)


def test_a_request_refused_at_once_was_never_in_flight(pipe):
    observer = Observer(SETTINGS, fd=pipe.write_end)
    observer.finish(done(status=401, outcome="error"))
    assert observer.metrics.in_flight.value() == 0
    assert len(lines_of(pipe, observer)) == 1


def test_a_note_is_a_line(pipe):
    observer = Observer(SETTINGS, fd=pipe.write_end)
    observer.note("warn", "breaker", provider="mine", message=f"refused {SECRET}")
    (line,) = lines_of(pipe, observer)
    assert (line["event"], line["provider"], line["message"]) == ("breaker", "mine", "refused [redacted]")


def test_off_writes_nothing(pipe):
    observer = Observer(Settings(server=ServerSettings(log="off")), fd=pipe.write_end)
    observer.note("info", "start")
    observer.finish(done())
    assert lines_of(pipe, observer) == []


def test_auto_is_pretty_on_a_terminal_and_json_elsewhere(pipe, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    main, other = os.openpty()
    observer = Observer(Settings(), fd=other)
    observer.note("info", "start", port=1)
    observer.close()
    assert os.read(main, 1000).decode().split()[1:] == ["start", "port=1"]
    os.close(main)
    os.close(other)
    observer = Observer(Settings(), fd=pipe.write_end)
    observer.note("info", "start", port=1)
    assert lines_of(pipe, observer)[0]["port"] == 1


def test_a_new_configuration_brings_its_secrets_and_models(pipe):
    observer = Observer(Settings(server=ServerSettings(log="json")), fd=pipe.write_end)
    observer.note("info", "before", value=SECRET)
    observer.adopt(SETTINGS)
    observer.note("info", "after", value=SECRET)
    observer.finish(done(status=500, outcome="error"))
    assert observer.metrics.requests.value(("anthropic", "mine", "some-model", "500", "error")) == 1
    before, after, _ = lines_of(pipe, observer)
    assert (before["value"], after["value"]) == (SECRET, "[redacted]")


class Broken:
    def finish(self, record: ExchangeRecord, redactor: object) -> None:
        raise RuntimeError("exporter")

    def close(self) -> None:
        raise RuntimeError("exporter")


def test_a_failing_sink_is_counted_and_not_felt(pipe, monkeypatch):
    """R-K-06"""
    observer = Observer(SETTINGS, fd=pipe.write_end, telemetry=Broken())

    def fail(*_: object) -> None:
        raise RuntimeError("sink")

    monkeypatch.setattr(observer.metrics, "finish", fail)
    monkeypatch.setattr(observer._sink, "write", fail)
    observer.finish(done())
    observer.note("info", "start")
    observer.close()
    count = observer.metrics.sink_failures.value
    assert (count(("metrics",)), count(("log",)), count(("telemetry",))) == (1, 2, 2)


def test_a_reader_that_never_reads_stalls_no_one(pipe):
    """R-K-06"""
    observer = Observer(SETTINGS, fd=pipe.write_end)
    for _ in range(15_000):  # more than the pipe and the queue hold
        observer.finish(done())
    dropped = observer._sink.dropped
    assert dropped > 0
    assert f"wireglot_log_dropped_total {dropped}".encode() in observer.metrics.render()
    observer.close(timeout=0.05)  # nor does the end wait for it
    os.close(pipe.read_end)
    pipe.read_end = -1
    assert observer._sink._ended.wait(DEADLINE_SECONDS)  # before the descriptor's number goes to someone else


def test_a_reader_that_comes_back_gets_whole_lines(pipe):
    sink = Sink(pipe.write_end, limit=5000, pause=0.001)
    sent = [b"%06d " % number + b"x" * 100 + b"\n" for number in range(4000)]
    for line in sent:
        sink.write(line)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.everything()))
    reader.start()
    sink.close(timeout=10)
    pipe.close_writer()
    reader.join(10)
    assert received[0] == b"".join(sent)
    assert (sink.dropped, sink.failed) == (0, 0)


def test_a_reader_that_has_gone_is_counted(pipe):
    os.close(pipe.read_end)
    pipe.read_end = -1
    sink = Sink(pipe.write_end)
    sink.write(b"one\n")
    sink.write(b"two\n")
    sink.close()
    assert sink.failed == 2


def test_a_descriptor_made_non_blocking_by_others_loses_nothing(pipe):
    os.set_blocking(pipe.write_end, False)
    sink = Sink(pipe.write_end, pause=0.001)
    sent = [b"y" * 1000 + b"\n", b"z" * 200_000 + b"\n"] * 50
    for line in sent:
        sink.write(line)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.everything()))
    reader.start()
    sink.close(timeout=10)
    pipe.close_writer()
    reader.join(10)
    assert received[0] == b"".join(sent)


def test_lines_after_the_end_are_dropped(pipe):
    sink = Sink(pipe.write_end)
    sink.close()
    sink.write(b"late\n")
    assert sink.dropped == 1


def test_what_others_share_is_left_as_it_was(pipe):
    sink = Sink(pipe.write_end)
    sink.write(b"line\n")
    sink.close()
    assert os.get_blocking(pipe.write_end)


PROGRAM = """
import os, sys
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.settings import ServerSettings, Settings
observer = Observer(Settings(server=ServerSettings(log="json")))
observer.note("info", "parent")
{then}
"""


def ran(then: str) -> list[dict]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(then=then)], capture_output=True, timeout=30, check=False
    )
    return [json.loads(line) for line in run.stderr.splitlines() if line.startswith(b"{")]


def test_the_lines_before_a_crash_are_written():
    # The thread rests for long after its first write, so that only the end of the process can bring the second.
    then = """
from wireglot.gateway.observe.log import Sink
read, write = os.pipe()
observer.close()
observer._sink = Sink(2, pause=30)
Sink._write_out, plain = lambda self, data: (plain(self, data), os.write(write, b".")), Sink._write_out
observer.note("info", "first")
os.read(read, 1)
observer.note("info", "second")
raise RuntimeError("crash")
"""
    assert sorted(line["event"] for line in ran(then)) == ["first", "parent", "second"]


def test_a_forked_worker_writes_its_own_lines_and_no_one_elses():
    then = """
if os.fork() == 0:
    observer.note("info", "child")
    observer.close()
    os._exit(0)
os.wait()
"""
    assert sorted(line["event"] for line in ran(then)) == ["child", "parent"]


def _writes_of(fd: int, lines: list[bytes], monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    sizes: list[bytes] = []
    sink = Sink(fd)
    sink._queue.extend(lines)
    monkeypatch.setattr(sink, "_write_out", sizes.append)
    sink._flush()
    return sizes


def test_a_file_is_given_a_burst_of_lines_in_one_write_and_a_pipe_in_pieces_that_it_takes_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every write its thread must win the interpreter's lock from the loop; but writes of several workers
    to one pipe may not mix inside a line."""
    lines = [b"%0499d\n" % number for number in range(100)]
    with (tmp_path / "log").open("wb") as file:
        assert _writes_of(file.fileno(), lines, monkeypatch) == [b"".join(lines)]
    reading, writing = os.pipe()
    try:
        pieces = _writes_of(writing, lines, monkeypatch)
    finally:
        os.close(reading)
        os.close(writing)
    assert b"".join(pieces) == b"".join(lines)
    assert max(map(len, pieces)) <= ATOMIC_BYTES
    assert all(piece.endswith(b"\n") for piece in pieces)


def test_a_request_that_has_ended_keeps_no_body(pipe):
    """Logs, traces and tasks may hold its record for longer than the memory of its body is counted."""
    observer = Observer(SETTINGS, fd=pipe.write_end)
    record = done(body=b"x" * 100)
    observer.begin(record)
    observer.finish(record)
    assert record.body == b""
