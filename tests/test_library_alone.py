"""The library with msgspec and nothing else: `pip install --no-deps . msgspec`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wireglot_core.extras import install_hint

ALONE = """
import sys

class OnlyMsgspec:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names and top not in ("wireglot", "wireglot_core", "msgspec"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, OnlyMsgspec())
"""


def alone(code: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home)} if home is not None else None
    return subprocess.run(
        [sys.executable, "-c", ALONE + code], capture_output=True, text=True, check=False, env=env
    )


def test_translation_histories_and_the_kimi_client_need_msgspec_only():
    done = alone(
        """
import wireglot, wireglot.history, wireglot.kimi, wireglot.testing
request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
out = wireglot.translate_request(request, source="anthropic", target="gemini", model="gemini-2.5-pro")
assert out.value["contents"][0]["parts"] == [{"text": "hi"}], out.value
"""
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["pairs"], ["dialects"], ["losses"], ["translate", "--help"]])
def test_commands_that_only_translate_need_msgspec_only(words):
    done = alone(f"from wireglot.cli import main; raise SystemExit(main({words!r}))")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("words", "package"), [(["serve"], "certifi"), (["usage"], "apsw")])
def test_a_command_that_needs_more_says_what_in_one_line(words, package, tmp_path):
    """In a home without a running gateway, which would answer instead."""
    done = alone(f"from wireglot.cli import main; raise SystemExit(main({words!r}))", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == f"wireglot: this command needs {package}, which is not installed: {install_hint()}\n"
    )


def test_several_threads_may_be_the_first_to_translate():
    """msgspec ended the process where two threads built a type at once."""
    done = alone(
        """
import threading
import wireglot
from wireglot_core.traces.target import target_of
from wireglot_core.traces.trace import Attempt

sys.setswitchinterval(1e-6)
request = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
together = threading.Barrier(4)

def first():
    together.wait()
    wireglot.translate_request(request, source="anthropic", target="gemini")
    together.wait()
    target_of(Attempt(provider="p", model="m", dialect="gemini"))

threads = [threading.Thread(target=first) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
