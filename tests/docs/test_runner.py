"""A page is run as a reader would type it: made-up pages, right ones and wrong ones."""

import os
from pathlib import Path

import pytest

from proofs.docs_blocks.__main__ import results_of
from proofs.docs_blocks.blocks import ROOT
from proofs.docs_blocks.desk import Failed, commands_in
from proofs.docs_blocks.page import must_have_answered
from tests.docs.test_blocks_run import alone
from tests.tiers import rows
from tests.waiting import wait_until

pytestmark = alone


def states(folder: Path, text: str, *, whole: bool = False):
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return [(each.state, each.detail) for each in results_of(str(page), whole=whole)]


def test_a_shell_block_sees_a_clean_home_and_nothing_of_this_machines_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("MOONSHOT_API_KEY", "the-users-own")
    text = '```sh\ntest "$HOME" != {home}\ntest -z "$(ls -A ~)$(ls -A .)"\ntest -z "$MOONSHOT_API_KEY"\n```\n'
    assert states(tmp_path, text.format(home=os.environ["HOME"])) == [("ran", "")]


def test_nothing_reaches_the_network_but_the_vendors_are_stood_in_for(tmp_path):
    text = (
        "<!-- run: fails -->\n```sh\ncurl -s https://example.com\n```\n"
        "<!-- run: fails -->\n```sh\ncurl -s http://192.0.2.1\n```\n"
        "```sh\ncurl -sf https://api.openai.com/v1/models | grep -q gpt\n```\n"
    )
    assert states(tmp_path, text) == [("ran", "")] * 3


def test_a_command_that_fails_and_one_that_should_have_failed_are_reported(tmp_path):
    (failed, detail), (unexpected, _) = states(
        tmp_path, "```sh\necho before\nfalse\necho after\n```\n<!-- run: fails -->\n```sh\ntrue\n```\n"
    )
    assert (failed, unexpected) == ("failed", "failed")
    assert "exit status 1" in detail
    assert "before" in detail
    assert "after" not in detail


def test_blocks_that_go_on_share_folder_variables_and_names_and_others_do_not(tmp_path):
    text = (
        "```sh\nmkdir inner\ncd inner\nKEY='a b'\n```\n"
        '<!-- run: goes on -->\n```sh\ntest "$KEY" = "a b"\ntest "$(basename "$PWD")" = inner\n```\n'
        "<!-- run: goes on -->\n```python\nimport asyncio\nnumber = 7\n```\n"
        "<!-- run: goes on -->\n```python\nawait asyncio.sleep(0)\nprint(number)\n```\n"
        "<!-- output -->\n```\n7\n```\n"
        '```sh\ntest -z "$KEY"\n```\n'
        "```python\nnumber\n```\n"
    )
    found = states(tmp_path, text)
    assert [state for state, _ in found] == ["ran"] * 4 + ["compared", "ran", "failed"]
    assert "NameError" in found[-1][1]


@pytest.mark.whole
def test_output_that_is_not_what_is_printed_is_reported(tmp_path):
    right, wrong = (
        states(tmp_path, f"```sh\necho one\n```\n```\n{shown}\n```\n") for shown in ("one", "two")
    )
    assert right == [("ran", ""), ("compared", "")]
    assert wrong[1][0] == "failed"


@pytest.mark.whole
def test_a_session_is_compared_command_by_command(tmp_path):
    text = "```\n$ echo one\none\n$ echo two\n{}\n```\n"
    assert states(tmp_path, text.format("two")) == [("ran", "")]
    assert states(tmp_path, text.format("three"))[0][0] == "failed"


@pytest.mark.whole
def test_a_gateway_that_is_started_stays_for_the_blocks_that_go_on_and_shows_what_it_logs(tmp_path):
    text = (
        "```sh\nwireglot serve          # no account needed\n```\n"
        "<!-- run: goes on -->\n```sh\ncurl -s http://127.0.0.1:8484/healthz\n```\n"
        '<!-- output -->\n```json\n{"status": "ok"}\n```\n'
        "<!-- run: gateway -->\n```sh\ncurl -sf 127.0.0.1:8484/v1/responses -H 'content-type: application/json' \\\n"
        '  -d \'{"model": "demo", "input": "hi"}\' > answer\n```\n'
        "<!-- output: gateway -->\n```\n10:01:19 200 ... demo -> demo/demo ...\n```\n"
    )
    assert states(tmp_path, text) == [
        ("ran", ""),
        ("ran", ""),
        ("compared", ""),
        ("ran", ""),
        ("compared", ""),
    ]


@pytest.mark.whole
def test_a_provider_whose_key_is_there_answers(tmp_path):
    text = (
        "```sh\nMOONSHOT_API_KEY=sk-... wireglot serve\n```\n"
        "<!-- run: goes on -->\n```sh\ncurl -sf 127.0.0.1:8484/v1/chat/completions -H 'content-type: application/json' "
        '-d \'{"model": "kimi/kimi-k3", "messages": [{"role": "user", "content": "hi"}]}\' | grep -q demo\n```\n'
    )
    assert states(tmp_path, text) == [("ran", "")] * 2


@pytest.mark.whole
def test_a_vendors_key_is_the_gateways_and_no_others(tmp_path):
    text = (
        "<!-- run: gateway; MOONSHOT_API_KEY; WIREGLOT_KEY=none -->\n```sh\n"
        'test -z "$MOONSHOT_API_KEY"\ntest "$WIREGLOT_KEY" = none\ncurl -s 127.0.0.1:8484/v1/models | grep -q kimi-k3\n```\n'
    )
    assert states(tmp_path, text) == [("ran", "")]


@pytest.mark.whole
def test_a_checkout_is_a_copy_and_what_stays_is_there_for_the_next(tmp_path):
    text = (
        "<!-- run: checkout; stays -->\n```sh\nrm README.md\nmake help | grep -q docs-blocks\n"
        "python -u -m http.server 9001 --bind 127.0.0.1\n```\n"
        "<!-- run: goes on -->\n```sh\ncurl -s 127.0.0.1:9001/CONTRIBUTING.md | grep -q Contributing\n```\n"
    )
    assert states(tmp_path, text) == [("ran", "")] * 2
    assert (ROOT / "README.md").exists()


@pytest.mark.whole
def test_a_file_is_there_for_the_blocks_that_go_on(tmp_path):
    text = (
        "<!-- file: wireglot.toml -->\n```toml\n[server]\nport = 8485\n[providers.demo]\n```\n"
        "<!-- run: gateway; goes on -->\n```sh\ncurl -sf http://127.0.0.1:8485/healthz\n```\n"
    )
    assert states(tmp_path, text) == [("checked", ""), ("ran", "")]


def test_a_configuration_that_does_not_load_is_reported_with_its_problem(tmp_path):
    (good, bad) = states(tmp_path, "```toml\n[server]\nport = 1\n```\n```toml\n[server]\nprot = 1\n```\n")
    assert good == ("checked", "")
    assert bad[0] == "failed"
    assert "prot" in bad[1]


@pytest.mark.whole
@rows(
    ("language", "right", "wrong"),
    [
        ("json", '{"messages": [{"role": "user", "content": "hi"}]}', '{"messages": [{"role": 5}]}'),
        ("json", "{}\n[]", "{'a': 1}"),
        ("yaml", "a: [1]", "a: [1"),
        ("toml", "[limits]", "[limits"),
        ("js", "await Promise.all([]);", "const const = 1;"),
        ("nginx", "location / { proxy_buffering off; }", "location / { proxy_buffering maybe; }"),
        ("mermaid", "flowchart LR\n    A[a] -->|b| C{c}", "flowchart LR\n    A[a -->|b| C{c}"),
        ("mermaid", "flowchart LR\n  subgraph x\n  A\n  end", "flowchart LR\n  subgraph x\n  A"),
    ],
)
def test_a_block_is_checked_by_its_kind(tmp_path, language, right, wrong):
    found = [states(tmp_path, f"```{language}\n{text}\n```\n")[0] for text in (right, wrong)]
    if found[0][0] == "left out":
        pytest.skip(found[0][1])
    assert [state for state, _ in found] == ["checked", "failed"]


@pytest.mark.whole
def test_what_is_installed_must_be_ours_or_here(tmp_path):
    text = "```sh\npip install '.[fleet]' msgspec\nuvx --from dist/*.whl wireglot --version\n```\n"
    assert states(tmp_path, text) == [("ran", "")]
    for wrong in (".[feelt]", "wireglot[fleet]", "some-package-that-is-not-here"):
        assert states(tmp_path, f"```sh\npip install '{wrong}'\n```\n")[0][0] == "failed"


@pytest.mark.whole
def test_blocks_of_the_whole_set_are_left_out_of_the_quick_one(tmp_path):
    text = "<!-- run: whole -->\n```sh\necho 1\n```\n```\n1\n```\n"
    assert [state for state, _ in states(tmp_path, text)] == ["left out"] * 2
    assert [state for state, _ in states(tmp_path, text, whole=True)] == ["ran", "compared"]


@pytest.mark.whole
def test_nothing_that_a_page_started_is_left(tmp_path):
    seconds = f"1000.{os.getpid()}"  # others may run this test at the same time
    text = f"<!-- run: gateway -->\n```sh\nsleep {seconds} &\necho $! > /dev/null\n```\n"
    assert states(tmp_path, text) == [("ran", "")]
    command = f"sleep\0{seconds}\0".encode()
    wait_until(lambda: command not in map(_said, Path("/proc").glob("[0-9]*/cmdline")))


def _said(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_client_that_ends_well_without_an_answer_is_reported():
    must_have_answered("claude\n", "Hello! I am kimi-k3, the demo\n model that lives inside Wireglot")
    must_have_answered("wireglot run claude --print-env\n", "export ANTHROPIC_BASE_URL=...")
    must_have_answered("echo claude\n", "claude\n")
    with pytest.raises(Failed, match="no answer"):
        must_have_answered("wireglot run aider\n", "Connection refused")


def test_lines_that_a_shell_reads_together_stay_together():
    text = "a \\\n  b\nc 'x\ny'\nfor i in 1 2\ndo\n  d\ndone\ncat <<END\ne\nEND\nf\n"
    assert commands_in(text) == [
        "a \\\n  b\n", "c 'x\ny'\n", "for i in 1 2\ndo\n  d\ndone\n", "cat <<END\ne\nEND\n", "f\n",
    ]  # fmt: skip
