"""The terminal in which clients are tried: what it shows is what they print, and nothing that is typed between."""

import os
from pathlib import Path

import pytest

from clients.terminal import Terminal
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="it needs a terminal of POSIX")

PRINTS = r"""trap 'echo; echo drained; exit 3' INT; printf '\033[1mwaiting\033[0m'; while :; do read -r line; done"""


def test_an_interrupt_adds_nothing_to_a_line_and_drops_none(tmp_path: Path) -> None:
    terminal = Terminal(["/bin/sh", "-c", PRINTS], tmp_path, {"PATH": os.defpath})
    assert terminal.wait_for("waiting", DEADLINE_SECONDS)
    terminal.type("\x03")
    assert terminal.end(DEADLINE_SECONDS) == 3
    assert terminal.shown == "waiting\ndrained\n"


def test_the_echo_of_an_interrupt_breaks_no_other_sequence(tmp_path: Path) -> None:
    terminal = Terminal(
        ["/bin/sh", "-c", r"printf '\033[\0031mbold\033[0m\003'"], tmp_path, {"PATH": os.defpath}
    )
    assert terminal.end(DEADLINE_SECONDS) == 0
    assert terminal.shown == "bold"
