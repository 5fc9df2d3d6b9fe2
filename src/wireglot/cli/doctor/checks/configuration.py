"""Which file it is, whether it loads, and what it says that a person should know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from wireglot.cli.argument_parser import near
from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, note, ok, problem, warning
from wireglot.cli.found_keys import lacking
from wireglot.cli.paint import count
from wireglot.cli.run.joined import KEY
from wireglot.cli.serve.privileges import DEBUGGABLE
from wireglot.gateway.config.environment import CONFIG_FILE, CONFIG_VARIABLE, config_dir, variables
from wireglot.gateway.config.problems import ConfigProblem

_TOLD_ELSEWHERE: Final = re.compile(
    r"provider \S+ is (?:on|off):|only the embedded demo|no provider is on"
    r"|.* others on this machine can read it|.* is reached over http,"
)
"""Notes of the configuration that other checks tell, with what mends them."""
_OURS: Final = "WIREGLOT_"
_LESSER: Final = "/metrics "
_ADVICE: Final = re.compile(r"(?P<what>.+)(?:; |: )(?P<advice>[^;:]+(?::[^ ][^;:]*)*)")
"""Notes end in what to do: `no lasting secret: ... is lost at the next start; set server.secret`."""
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]+")


def look_at_configuration(case: Case) -> Iterator[Finding]:
    yield from _misspelt(case)
    if case.error is not None:
        for each in case.error.problems:
            yield _wrong(case, each)
        return
    settings = case.loaded
    if case.path is None:
        yield note("there is no wireglot.toml: keys of the environment decide who is on", "wireglot init")
    else:
        told = [count(len(settings.providers), "provider")]
        told += [count(len(settings.rules), "rule")] if settings.rules else []
        told += [count(len(settings.keys), "client key")] if settings.keys else []
        yield ok(f"{case.path}{_found_where(case)} loads: {', '.join(told)}")
    if not settings.providers:
        yield problem("no provider is on: every request is refused", f"[providers.demo] in {case.file}")
    for lack in lacking(settings.notes):
        yield note(
            f"{lack.provider} is off: {lack.variable} is set, but {lack.told}",
            f"set {lack.wanted or lack.variable}, or [providers.{lack.provider}] in {case.file}",
        )
    for text in settings.notes:
        if not _TOLD_ELSEWHERE.match(text):
            yield _of_note(text)


def _found_where(case: Case) -> str:
    """What a person wonders about who has several."""
    if str(case.path) == case.environ.get(CONFIG_VARIABLE):
        return f" ({CONFIG_VARIABLE} names it)"
    folder = config_dir(case.environ)
    own = folder / CONFIG_FILE if folder is not None else None
    if case.path is None or own is None or not own.is_file() or case.path.absolute() == own.absolute():
        return ""
    return f" (and not {own})"


def _misspelt(case: Case) -> Iterator[Finding]:
    """Nobody would tell that a variable with a typo in it is not read."""
    known = {CONFIG_VARIABLE, KEY, DEBUGGABLE, *(setting.env for _, setting in variables())}
    meant = {name.removeprefix(_OURS): name for name in known}
    for name in sorted(case.environ):
        if name.startswith(_OURS) and name not in known:
            nearest = near(name.removeprefix(_OURS), meant)
            if nearest:
                yield warning(f"{name} is set, and nobody reads it", f"did you mean {meant[nearest]}?")


def _wrong(case: Case, each: ConfigProblem) -> Finding:
    text = f"{each.path}: expected {each.expected}, found {each.found}"
    if _VARIABLE.fullmatch(each.path):
        return problem(text, f"set the variable {each.path} to that, or unset it")
    if each.expected == "a file that can be read":
        return problem(text, "wireglot init, or name another file with --config")
    return problem(text, f"correct it in {case.file}; `wireglot config check` tells when it is right")


def _of_note(text: str) -> Finding:
    found = _ADVICE.fullmatch(text)
    what, advice = (found["what"], found["advice"]) if found else (text, "wireglot config check")
    return (note if text.startswith(_LESSER) else warning)(what, advice)
