"""`wireglot completion`: what a shell offers is what the parser knows."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.running import complaint, run
from tests.tiers import rows
from wireglot.cli import completion
from wireglot.cli.parser import build_parser


def offered(*words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    script = run("completion", "bash").stdout.decode()
    asked = (
        f'{script}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() {{ echo FILES; }}\n'
        'COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}\n'
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
        (("run", "cla"), {"claude"}),
        (("run", "--env", "g"), {"gemini"}),
        (("completion", "z"), {"zsh"}),
        (("serve", "--config", ""), {"FILES"}),
        (("run", "claude", "--", "-"), {"FILES"}),
        (("serve", "--log=pr"), {"pretty"}),
    ],
)
def test_bash_offers_commands_options_and_values(words: tuple[str, ...], expected: set[str]) -> None:
    assert set(offered(*words)) == expected


@bash
def test_bash_offers_the_models_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "wireglot"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m wireglot.cli "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    assert set(offered("run", "claude", "--model", "demo/demo-o")) == {
        "demo/demo-openai-chat",
        "demo/demo-openai-responses",
        "demo/demo-ollama",
    }


@bash
def test_bash_offers_names_with_colons_and_runs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "wireglot"
    program.write_text("#!/bin/sh\nprintf '%s\\n' ollama/llama3:8b ollama/llama3:70b '$(touch ran)' 'a b'\n")
    program.chmod(0o755)
    script = run("completion", "bash").stdout.decode()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    # As Bash does it, of what a person has typed.
    asked = (
        f"{script}\nCOMP_LINE=$1; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($1); COMP_CWORD=3\n"
        '_wireglot; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    for typed, offers in {
        "ollama/": ["ollama/llama3:8b", "ollama/llama3:70b"],
        "ollama/llama3:7": ["70b"],
        "": ["ollama/llama3:8b", "ollama/llama3:70b", "$(touch ran)", "a b"],
    }.items():
        for option in ("--model ", "--model="):
            line = f"wireglot run claude {option}{typed}"
            done = subprocess.run(
                ["bash", "-c", asked, "bash", line], capture_output=True, text=True, check=True
            )
            assert (done.stdout.splitlines(), done.stderr) == (offers, ""), line
    assert not (tmp_path / "ran").exists()


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


# The whole scripts of a small parser.


def small_parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="wireglot", add_help=False)
    root.add_argument("-v", action="store_true", help="say more: 100%% of it")
    commands = root.add_subparsers()
    keys = commands.add_parser("keys", help="client keys", add_help=False)
    below = keys.add_subparsers()
    create = below.add_parser("create", help="make one", add_help=False)
    create.add_argument("--group", choices=["a", "b c"], help="its group")
    create.add_argument("--name", help=argparse.SUPPRESS)
    run = commands.add_parser("run", help="start it's client", add_help=False)
    run.add_argument("client", choices=["claude", "codex"], help="which")
    return root


SCRIPTS = {
    "bash": r"""
# Completion of wireglot for bash, printed by `wireglot completion bash`.
_wireglot_models() {
    local name kept=''
    # Bash replaces what is behind the last colon only. `compgen -W` would run what a name has in $(...).
    [[ $COMP_WORDBREAKS == *:* ]] && kept=${current%"${current##*:}"}
    while IFS= read -r name; do
        [[ $name == "$current"* ]] && COMPREPLY+=("${name#"$kept"}")
    done < <(wireglot models --names 2>/dev/null)
}
_wireglot() {
    local line=${COMP_LINE:0:COMP_POINT} path='' index word
    local current=${line##*[[:space:]]} before
    before=${line%"$current"}
    before=${before%"${before##*[![:space:]]}"}
    before=${before##*[[:space:]]}
    [[ $current == --*=* ]] && { before=${current%%=*}; current=${current#*=}; }
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        [[ $word == -- ]] && { compopt -o default 2>/dev/null; return; }
        case "$path $word" in
            ' keys') path=keys ;;
            'keys create') path='keys create' ;;
            ' run') path=run ;;
        esac
    done
    case "$path:$before" in
        'keys create:--group') COMPREPLY=($(compgen -W 'a b c' -- "$current")); return ;;
        'keys create:--name') compopt -o default 2>/dev/null; return ;;
    esac
    local words='' options=''
    case "$path" in
        '') words='keys run'; options=-v ;;
        keys) words=create; options='' ;;
        'keys create') words=''; options='--group --name' ;;
        run) words='claude codex'; options='' ;;
    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        [[ -z $words ]] && compopt -o default 2>/dev/null
    fi
}
complete -F _wireglot wireglot
""",
    "zsh": r"""
#compdef wireglot
# Completion of wireglot for zsh, printed by `wireglot completion zsh`.
_wireglot() {
    local path_so_far='' word index
    local -a described
    for ((index = 2; index < CURRENT; index++)); do
        word=${words[index]}
        [[ $word == -- ]] && { _files; return; }
        case "$path_so_far $word" in
            ' keys') path_so_far=keys ;;
            'keys create') path_so_far='keys create' ;;
            ' run') path_so_far=run ;;
        esac
    done
    case "$path_so_far:${words[CURRENT-1]}" in
        'keys create:--group') compadd -- a 'b c'; return ;;
        'keys create:--name') _files; return ;;
    esac
    case "$path_so_far" in
        '') if [[ $PREFIX == -* ]]; then described=('-v:say more: 100% of it'); else described=('keys:client keys' 'run:start it'"'"'s client'); fi ;;
        keys) if [[ $PREFIX == -* ]]; then described=(); else described=('create:make one'); fi ;;
        'keys create') if [[ $PREFIX == -* ]]; then described=('--group:its group' --name:); else described=(); fi ;;
        run) if [[ $PREFIX == -* ]]; then described=(); else described=(claude:which codex:which); fi ;;
    esac
    if (( $#described )); then _describe wireglot described; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _wireglot "$@"; else compdef _wireglot wireglot; fi
""",
    "fish": r"""
# Completion of wireglot for fish, printed by `wireglot completion fish`.
complete -c wireglot -f
complete -c wireglot -n __fish_use_subcommand -a keys -d 'client keys'
complete -c wireglot -n __fish_use_subcommand -a run -d 'start it'"'"'s client'
complete -c wireglot -n __fish_use_subcommand -s v -d 'say more: 100% of it'
complete -c wireglot -n '__fish_seen_subcommand_from keys; and not __fish_seen_subcommand_from create' -a create -d 'make one'
complete -c wireglot -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from create' -l group -x -a 'a b c' -d 'its group'
complete -c wireglot -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from create' -l name -r -F
complete -c wireglot -n '__fish_seen_subcommand_from run' -a claude -d which
complete -c wireglot -n '__fish_seen_subcommand_from run' -a codex -d which
""",
}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_pinned_as_a_whole(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments: Any = SimpleNamespace(root=small_parser(), shell=shell)
    assert completion.run(arguments) == 0
    assert capsys.readouterr().out == SCRIPTS[shell][1:]
