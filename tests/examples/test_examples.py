"""Every example does what its page says, run as its page shows it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.showing import EXAMPLES, ROOT, Reader, commands, shell_block, table
from wireglot.testing.scripted_upstream import ScriptedUpstream


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def test_every_example_stands_in_the_list():
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    there = {path.name for path in EXAMPLES.iterdir()} - {"README.md", "data", "__pycache__"}
    assert set(re.findall(r"^\| \[(\S+)\]", page, re.MULTILINE)) == there


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_the_command_in_the_list_is_one_of_the_examples_head(example):
    assert table()[example] in commands(example)


def test_the_library_translates_and_tells_what_was_lost(reader):
    said = reader.run(table()["translate.py"])
    assert '"functionDeclarations"' in said
    assert "cache_marker dropped at $.system[0].cache_control" in said
    assert '"type": "tool_use"' in said
    assert said.rstrip().endswith('data: {"type":"message_stop"}')


def test_a_data_set_is_converted_alike_by_the_program_and_the_command(reader):
    own, *shell = commands("bulk_convert.py")
    assert "3 converted, 0 failed" in reader.run(own)
    for command in shell:
        reader.run(command)
    results = [json.loads(line) for line in _lines(reader, "results.jsonl")]
    assert [json.loads(line) for line in _lines(reader, "converted.jsonl")] == [
        one["body"] for one in results
    ]
    assert all(one["ok"] for one in results)
    assert any(one["losses"] for one in results)


def test_a_bulk_conversion_without_files_says_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "bulk_convert.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("usage: python examples/bulk_convert.py SOURCE.jsonl")
    assert len(done.stderr.splitlines()) == 1


def _lines(reader: Reader, name: str) -> list[str]:
    return (reader.folder / name).read_text(encoding="utf-8").splitlines()


def test_the_agent_of_the_page_reads_the_file_and_answers_from_it(reader):
    """[M9] As docs/history.md and the example's head show it, it ends well and no tool fails."""
    command = table()["agent_loop.py"]
    assert command in (ROOT / "docs" / "history.md").read_text(encoding="utf-8")
    said = reader.run(command)
    length = len((ROOT / "README.md").read_text(encoding="utf-8"))
    assert f'[read_file {{"path":"README.md"}}: {length} characters]' in said.replace('": "', '":"')
    assert "Error" not in said
    assert "any LLM provider" in said


def test_kimi_answers_from_a_tools_result(reader):
    assert "sunny, 24 degrees" in reader.run(table()["kimi_tools.py"])


@pytest.mark.whole
def test_three_sdks_hold_one_conversation_on_one_key(reader):
    reported = reader.run(table()["three_sdks.py"]).replace("answered:\n", "answered: ")
    said = reported.splitlines()
    speakers = [line.split()[0] for line in said]
    assert speakers.count("you") == 2
    assert {"openai", "anthropic", "google-genai"} < set(speakers)
    called = [line for line in said if "calls get_weather" in line]
    assert [line.split()[0] for line in called] == ["openai", "google-genai"], (
        "each result went through another"
    )
    assert "4 degrees, rain" in next(line for line in said if line.startswith("anthropic"))
    assert "24 degrees, sunny" in said[-1]
    assert said[-1].startswith("openai")


def test_a_provider_in_toml_is_checked_and_answers(reader):
    """The port of the page is anybody's: here the server takes a free one, and the file names that."""
    server, exported, *rest = commands("own_provider.toml")
    assert server == "python -m wireglot.testing.scripted_upstream --port 9001"
    file = reader.folder / "examples" / "own_provider.toml"
    with ScriptedUpstream() as upstream:
        port = upstream.url.rpartition(":")[2]
        file.write_text(file.read_text(encoding="utf-8").replace("9001", port), encoding="utf-8")
        variables = dict(pair.split("=") for pair in exported.split()[1:])
        check, smoke, claude = rest
        assert "mine" in reader.run(check, **variables)
        assert "FAIL" not in reader.run(smoke, **variables)
        assert {request.json["model"] for request in upstream.requests if request.body} <= {
            "mine-large",
            "mine-small",
        }
        assert "ANTHROPIC_BASE_URL=" in reader.run(f"{claude} --print-env", **variables)


def test_the_stand_in_of_the_page_listens_where_it_is_configured(reader):
    server = commands("own_provider.toml")[0].replace("9001", "0")
    process = reader.start(server, {})
    try:
        assert process.stdout is not None
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+\n", process.stdout.readline())
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()


@pytest.mark.whole
def test_a_dialect_that_is_installed_is_translated_served_and_lawful(reader):
    install, listed, translated, needed, laws = shell_block("own_dialect/README.md")
    assert install == "pip install ./examples/own_dialect"
    assert needed.startswith("pip install pytest hypothesis")
    # As shown, but into a folder of the test's and with the build backend that is here: no network.
    where = ["--target", str(reader.packages), "--no-deps", "--no-index", "--no-build-isolation", "-q"]
    subprocess.run(
        [sys.executable, "-m", "pip", *install.split()[1:], *where, "--disable-pip-version-check"],
        cwd=reader.folder, check=True, capture_output=True, timeout=240,
    )  # fmt: skip
    assert re.search(r"^acme\b", reader.run(listed), re.MULTILINE)
    assert json.loads(reader.run(translated))["contents"] == [{"role": "user", "parts": [{"text": "Hello"}]}]
    assert "1 passed" in reader.run(laws)
    reported = reader.run("wireglot run --env openai --model demo/demo -- python -c 'import os, urllib.request as u;"
        ' print(u.urlopen(os.environ["OPENAI_BASE_URL"].replace("/v1", "/")).read().decode())\'')  # fmt: skip
    assert "POST /acme/talk" in reported


@pytest.mark.whole
def test_the_testing_kit_serves_a_project_of_somebody_elses(reader):
    _, tests = shell_block("testing_kit/README.md")
    assert table()["testing_kit"] == tests
    assert "8 passed" in reader.run(tests)
