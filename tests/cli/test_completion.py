"""`wireglot completion`: what a shell offers is what the parser knows."""

import shutil
import subprocess

import pytest

from tests.cli.running import complaint, run
from tests.tiers import rows
from wireglot.cli.parser import build_parser


def offered(*words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    script = run("completion", "bash").stdout.decode()
    asked = (
        f'{script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() {{ echo FILES; }}\n'
        '_wireglot; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", asked, "bash", "wireglot", *words], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@bash
@rows(
    ("words", "expected"),
    [
        (("r",), {"run"}),
        (("ke",), {"keys"}),
        (("keys", "ro"), {"rotate"}),
        (("keys", "create", "--exp"), {"--expires"}),
        (("serve", "--log", ""), {"auto", "json", "pretty", "off"}),
        (("serve", "--log", "pr"), {"pretty"}),
        (("run", "cl"), {"claude"}),
        (("run", "--env", "g"), {"gemini"}),
        (("completion", "z"), {"zsh"}),
        (("serve", "--config", ""), {"FILES"}),
        (("run", "claude", "--", "-"), {"FILES"}),
    ],
)
def test_bash_offers_commands_options_and_values(words: tuple[str, ...], expected: set[str]) -> None:
    assert set(offered(*words)) == expected


@bash
def test_bash_offers_every_command() -> None:
    parser = build_parser()
    commands = next(action.choices for action in parser._actions if action.dest == "command")
    assert commands is not None
    assert set(offered("")) == set(commands)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_names_every_command_and_is_taken_by_its_shell(shell: str) -> None:
    script = run("completion", shell).stdout
    for name in (b"serve", b"rotate", b"print-env", b"wipe"):
        assert name in script
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=script, check=True)


def test_another_shell_is_reported() -> None:
    assert "tcsh" in complaint(run("completion", "tcsh"))
