"""Completion scripts, generated from the parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from wireglot.cli.terminal import OK

_MODEL: Final = "--model"
_MODELS: Final = "wireglot models --names 2>/dev/null"
"""Run when the key is pressed: the models depend on keys and configuration."""


class Level(msgspec.Struct, frozen=True):
    """The words that may follow a sequence of commands."""

    path: tuple[str, ...]
    """Commands: ("keys", "create"); none: the program itself."""
    words: dict[str, str]
    """Commands, or the values of the first argument, each with its description."""
    options: dict[str, str]
    values: dict[str, tuple[str, ...]]
    """By option: its values; none if only the user knows them."""


def run(arguments: argparse.Namespace) -> int:
    levels = list(_levels(arguments.root, ()))
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](levels), end="")
    return OK


def _levels(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Level]:
    words: dict[str, str] = {}
    options: dict[str, str] = {}
    values: dict[str, tuple[str, ...]] = {}
    below: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:
        about = _one_sentence(action.help)
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: _one_sentence(choice.help) for choice in action._choices_actions}
            words |= {name: helps.get(name, "") for name in action.choices}
            below += action.choices.items()
        elif action.option_strings:
            options |= dict.fromkeys(action.option_strings, about)
            if action.nargs != 0:
                taken = tuple(map(str, action.choices or ()))
                values |= dict.fromkeys(action.option_strings, taken)
        else:
            known: Iterable[str] = tuple(action.choices or ()) or getattr(action, "completes", ())
            words |= dict.fromkeys(known, about)
    yield Level(path, words, options, values)
    for name, inner in below:
        yield from _levels(inner, (*path, name))


def _one_sentence(text: str | None) -> str:
    return "" if not text or text == argparse.SUPPRESS else text.replace("%%", "%")


def _key(level: Level) -> str:
    return " ".join(level.path)


def _words(names: Iterable[str]) -> str:
    return shlex.quote(" ".join(names))


_BASH_TEXT: Final = """\
# Completion of wireglot for bash, printed by `wireglot completion bash`.
_wireglot_models() {
    local name kept=''
    # Bash replaces what is behind the last colon only. `compgen -W` would run what a name has in $(...).
    [[ $COMP_WORDBREAKS == *:* ]] && kept=${current%"${current##*:}"}
    while IFS= read -r name; do
        [[ $name == "$current"* ]] && COMPREPLY+=("${name#"$kept"}")
    done < <(@MODELS@)
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
"""
_BASH_HEAD: Final = _BASH_TEXT.replace("@MODELS@", _MODELS)
_BASH_MIDDLE: Final = """\
        esac
    done
    case "$path:$before" in
"""
_BASH_LEVELS: Final = """\
    esac
    local words='' options=''
    case "$path" in
"""
_BASH_END: Final = """\
    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        [[ -z $words ]] && compopt -o default 2>/dev/null
    fi
}
complete -F _wireglot wireglot
"""


def _bash(levels: list[Level]) -> str:
    lines = [_BASH_HEAD]
    for level in levels:
        if level.path:
            before = " ".join(level.path[:-1])
            lines.append(
                f"            {shlex.quote(f'{before} {level.path[-1]}')}) path={_words(level.path)} ;;\n"
            )
    lines.append(_BASH_MIDDLE)
    for level in levels:
        for option, taken in level.values.items():
            what = "compopt -o default 2>/dev/null"
            if option == _MODEL:
                what = "_wireglot_models"
            elif taken:
                what = f'COMPREPLY=($(compgen -W {_words(taken)} -- "$current"))'
            lines.append(f"        {shlex.quote(f'{_key(level)}:{option}')}) {what}; return ;;\n")
    lines.append(_BASH_LEVELS)
    for level in levels:
        offers = f"words={_words(level.words)}; options={_words(level.options)}"
        lines.append(f"        {shlex.quote(_key(level))}) {offers} ;;\n")
    return "".join([*lines, _BASH_END])


_ZSH_HEAD: Final = """\
#compdef wireglot
# Completion of wireglot for zsh, printed by `wireglot completion zsh`.
_wireglot() {
    local path_so_far='' word index
    local -a described
    for ((index = 2; index < CURRENT; index++)); do
        word=${words[index]}
        [[ $word == -- ]] && { _files; return; }
        case "$path_so_far $word" in
"""
_ZSH_MIDDLE: Final = """\
        esac
    done
    case "$path_so_far:${words[CURRENT-1]}" in
"""
_ZSH_LEVELS: Final = """\
    esac
    case "$path_so_far" in
"""
_ZSH_END: Final = """\
    esac
    if (( $#described )); then _describe wireglot described; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _wireglot "$@"; else compdef _wireglot wireglot; fi
"""


def _zsh(levels: list[Level]) -> str:
    lines = [_ZSH_HEAD]
    for level in levels:
        if level.path:
            before = " ".join(level.path[:-1])
            step = shlex.quote(f"{before} {level.path[-1]}")
            lines.append(f"            {step}) path_so_far={_words(level.path)} ;;\n")
    lines.append(_ZSH_MIDDLE)
    for level in levels:
        for option, taken in level.values.items():
            what = f"compadd -- {' '.join(map(shlex.quote, taken))}" if taken else "_files"
            if option == _MODEL:
                what = f"compadd -- $({_MODELS})"
            lines.append(f"        {shlex.quote(f'{_key(level)}:{option}')}) {what}; return ;;\n")
    lines.append(_ZSH_LEVELS)
    for level in levels:
        words, options = _described(level.words), _described(level.options)
        which = f"if [[ $PREFIX == -* ]]; then described=({options}); else described=({words}); fi"
        lines.append(f"        {shlex.quote(_key(level))}) {which} ;;\n")
    return "".join([*lines, _ZSH_END])


def _described(names: dict[str, str]) -> str:
    """As _describe wants them: a colon ends a name."""
    return " ".join(shlex.quote(f"{name}:{about}") for name, about in names.items())


_FISH_HEAD: Final = """\
# Completion of wireglot for fish, printed by `wireglot completion fish`.
complete -c wireglot -f
"""


def _fish(levels: list[Level]) -> str:
    lines = [_FISH_HEAD]
    for level in levels:
        if level.path:
            inner = next((other.words for other in levels if other.path == level.path), {})
            here = f"__fish_seen_subcommand_from {level.path[0]}"
            if len(level.path) > 1:
                here += f"; and __fish_seen_subcommand_from {level.path[1]}"
            elif inner and any(other.path[:1] == level.path and len(other.path) > 1 for other in levels):
                here += f"; and not __fish_seen_subcommand_from {' '.join(inner)}"
        else:
            here = "__fish_use_subcommand"
        for name, about in level.words.items():
            lines.append(_fish_line(here, f"-a {shlex.quote(name)}", about))
        for option, about in level.options.items():
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            if option in level.values:
                taken = level.values[option]
                known = shlex.quote(f"({_MODELS})") if option == _MODEL else _words(taken) if taken else ""
                flag += f" -x -a {known}" if known else " -r -F"
            lines.append(_fish_line(here, flag, about))
    return "".join(lines)


def _fish_line(condition: str, what: str, about: str) -> str:
    text = f" -d {shlex.quote(about)}" if about else ""
    return f"complete -c wireglot -n {shlex.quote(condition)} {what}{text}\n"
