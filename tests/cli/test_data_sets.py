"""`--jsonl` over much: order, memory, pipes, several processes, progress."""

import io
import json
import signal
import subprocess
import tracemalloc

import pytest

from tests.cli.running import COMMAND, PLAIN, as_line, request_case, run, spawn
from tests.tiers import rows
from wireglot.cli import translate_dataset
from wireglot.cli.translate_dataset import Defaults, Lines, Progress, Tally, translate_batch

SMALL = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}


def small_case(identity):
    return {"id": identity, "kind": "request", "from": "anthropic", "to": "openai-chat", "body": SMALL}


class Pieces:
    """A source that gives one piece a read, and tells how many it has given."""

    def __init__(self, pieces):
        self._pieces = iter(pieces)
        self.given = 0

    def read1(self, size=-1, /):
        self.given += 1
        return next(self._pieces, b"")

    def fileno(self):
        raise OSError("no file")


class Collected(io.BytesIO):
    """A sink that notes, at each write, how far ahead the source is."""

    def __init__(self, source):
        super().__init__()
        self.ahead = 0
        self._source = source
        self._writes = 0

    def write(self, data, /):
        self._writes += 1
        self.ahead = max(self.ahead, self._source.given - self._writes)
        return super().write(data)


def lines_of(pieces, **options):
    batches = [batch for read in Lines(Pieces(pieces), **options).reads() for batch in read]
    return [line for batch in batches for line in batch.lines]


@rows("size", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_the_bytes_arrive(size):
    data = b"one\n\ntwo two\nthree\nlast"
    assert lines_of([data[start : start + size] for start in range(0, len(data), size)]) == data.split(b"\n")


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_line_that_is_too_long_is_forgotten_as_it_arrives(size):
    data = b"good\n" + b"x" * 50 + b"\nfine\n" + b"y" * 11
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert lines_of(pieces, max_line=10) == [b"good", None, b"fine", None]


def test_a_line_that_is_too_long_has_an_error_as_result():
    batch = translate_dataset.Batch(7, [None])
    outcome = translate_batch(batch, Defaults())
    answer = json.loads(outcome.data)
    assert answer["error"]["type"] == "bad_line"
    assert answer["error"]["message"].startswith("line 7: expected at most 64 MiB")


def test_what_a_read_brings_is_written_before_the_next_read():
    source = Pieces([as_line(small_case(number)) for number in range(50)])
    sink = Collected(source)
    translate_dataset._alone(Lines(source), sink, Defaults(), translate_dataset._Report(Lines(source), None))
    assert sink.ahead == 0
    assert [json.loads(line)["id"] for line in sink.getvalue().splitlines()] == list(range(50))


@pytest.mark.whole
def test_several_processes_keep_the_order_and_read_only_a_little_ahead():
    source = Pieces([as_line(small_case(number)) for number in range(200)])
    sink = Collected(source)
    translate_dataset._together(
        Lines(source), sink, Defaults(), translate_dataset._Report(Lines(source), None), 2
    )
    assert [json.loads(line)["id"] for line in sink.getvalue().splitlines()] == list(range(200))
    assert sink.ahead <= 2 * translate_dataset._WINDOW + 3


def test_several_processes_give_the_same_results_as_one():
    data = b"".join(as_line(case) for case in [request_case(1), "{", "", request_case(2), {"id": 3}] * 40)
    alone = run("translate", "--jsonl", given=data)
    together = spawn("translate", "--jsonl", "--jobs", "2", given=data)
    assert together.stdout == alone.stdout
    assert (alone.returncode, together.returncode) == (1, 1)
    assert together.stderr == b""


class Nowhere:
    """A sink that counts lines and keeps nothing."""

    lines = 0

    def write(self, data, /):
        self.lines += data.count(b"\n")
        return len(data)

    def flush(self):
        pass


def peak_over(reads):
    """The most memory that was in use at once while so many reads of ten lines each went through."""
    piece = as_line({**small_case(1), "body": {**SMALL, "system": "s" * 2000}}) * 10
    lines = Lines(Pieces(piece for _ in range(reads)))
    sink = Nowhere()
    tracemalloc.start()
    translate_dataset._alone(lines, sink, Defaults(), translate_dataset._Report(lines, None))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sink.lines == reads * 10
    return peak


def test_memory_does_not_grow_with_the_number_of_lines():
    peak_over(1)  # loads what is loaded once
    assert peak_over(150) - peak_over(10) < 200_000


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("options", [[], ["--jobs", "2"]])
def test_results_come_while_the_input_goes_on(options):
    command = [*COMMAND, "translate", "--jsonl", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=PLAIN) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(as_line(small_case(number)))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("options", [[], ["--jobs", "2"]])
def test_a_reader_that_leaves_ends_it_quietly(tmp_path, options):
    path = tmp_path / "cases.jsonl"
    path.write_bytes(as_line(small_case(1)) * 5_000)
    command = [*COMMAND, "translate", "--jsonl", "--in", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=PLAIN) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("options", [[], ["--jobs", "2"]])
def test_an_interrupt_ends_it_with_one_line(options):
    command = [*COMMAND, "translate", "--jsonl", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=PLAIN
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(as_line(small_case(1)))
        process.stdin.flush()
        assert process.stdout.readline()  # it is at work, and waits for more
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"wireglot: interrupted\n"
        process.wait()
    assert process.returncode == 130


def test_a_file_may_be_written_instead(tmp_path):
    given, out = tmp_path / "cases.jsonl", tmp_path / "results.jsonl"
    given.write_bytes(as_line(small_case(1)) * 3)
    done = run("translate", "--jsonl", "--in", str(given), "--out", str(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert out.read_bytes().count(b"\n") == 3


def test_progress_is_shown_when_asked_for():
    done = run("translate", "--jsonl", "--progress", given=as_line(small_case(1)) + b"{\n")
    assert b"2 lines" in done.stderr
    assert b"1 ok  1 failed" in done.stderr
    assert run("translate", "--jsonl", "--no-progress", given=as_line(small_case(1))).stderr == b""


def test_progress_is_drawn_a_few_times_a_second_at_most():
    now = [0.0]
    screen = io.StringIO()
    progress = Progress(screen, total=1000, clock=lambda: now[0])
    tally = Tally()
    for number in range(1000):
        now[0] = number / 1000
        tally.add(1, 1, 0)
        progress.update(tally, number)
    progress.finish(tally)
    shown = screen.getvalue().split("\r")
    assert len(shown) <= 7
    assert shown[-1].split() == [
        "1,000",
        "lines",
        "1,001/s",
        "1,000",
        "ok",
        "0",
        "failed",
        "0",
        "with",
        "losses",
    ]
    assert " 50%" in screen.getvalue()
