"""`wireglot init`: finds providers, asks the user, writes a configuration and reports it."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from wireglot.cli.ask_providers import Lacking, ask_providers, lacking, without_covered
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.terminal import OK, Paint, Unusable, count, one_line
from wireglot.cli.trust import trust
from wireglot.gateway import config
from wireglot.gateway.config.environment import CONFIG_FILE, CONFIG_VARIABLE, config_dir
from wireglot.gateway.config.kept_keys import kept_file, read_kept
from wireglot.gateway.config.providers import DEMO
from wireglot.gateway.relay.key_checks import ProviderAnswer, first_question, host_of, is_asked
from wireglot.gateway.settings import Provider
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.spec import ProviderSpec

_OURS: Final = "WIREGLOT_"
_LOGIN_SIGNS: Final = {
    "aws": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
    "entra": ("AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"),
    "google": ("GOOGLE_APPLICATION_CREDENTIALS",),
}
"""Variables that suggest a sign-in is possible; most also exist for other purposes."""


class ProviderCandidate(msgspec.Struct, frozen=True):
    """A provider that may be turned on."""

    provider: Provider
    variable: str = ""
    """Of its key; "" for a server on this machine."""
    kept: bool = False
    """Its key is not in the environment, but was kept."""
    answered: ProviderAnswer | None = None
    """None: it was not checked."""

    @property
    def name(self) -> str:
        return self.provider.name

    @property
    def is_local(self) -> bool:
        return not self.variable

    @property
    def is_written(self) -> bool:
        """Whether the configuration turns it on: not with a rejected key, nor a server that does not exist. A
        host that is unreachable now may be reachable tomorrow."""
        if self.answered is None:
            return not self.is_local
        if self.is_local:
            return self.answered.is_on
        return self.answered.outcome != "refused"


class FoundProviders(msgspec.Struct, frozen=True):
    candidates: tuple[ProviderCandidate, ...]
    lacking: tuple[Lacking, ...] = ()
    logins: tuple[tuple[str, str], ...] = ()
    """Providers with a possible sign-in, and the variable that suggests it."""
    others: int = 0
    """Providers of the catalog without any sign of use here."""


def provider_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Without the variables for running a gateway: these do not matter for a new file."""
    return {name: value for name, value in environ.items() if not name.startswith(_OURS)}


def find_candidates(environ: Mapping[str, str]) -> FoundProviders:
    """Never prompts. Raises ConfigError."""
    environ = provider_environment(environ)
    local: dict[str, dict[str, str]] = {
        name: {} for name in catalog.names() if _is_local(catalog.provider(name))
    }
    settings = config.load(None, environ=environ, overrides={"providers": local}, create_secret=False)
    kept = read_kept(kept_file(environ), [])
    on = {name: provider for name, provider in settings.providers.items() if is_asked(provider)}
    candidates = [_candidate(provider, environ, kept) for provider in without_covered(on.values())]
    lack = tuple(lacking(settings.notes))
    logins = tuple(_logins(environ, {*on, *(each.provider for each in lack)}))
    spoken_of = {*on, DEMO, *(each.provider for each in lack), *(name for name, _ in logins)}
    return FoundProviders(
        tuple(sorted(candidates, key=lambda each: each.is_local)),
        lack,
        logins,
        sum(name not in spoken_of for name in catalog.names()),
    )


def _is_local(spec: ProviderSpec) -> bool:
    return spec.auth == "none" and spec.base_url.startswith("http:")


def _candidate(
    provider: Provider, environ: Mapping[str, str], kept: Mapping[str, object]
) -> ProviderCandidate:
    names = provider.spec.api_key_env if provider.credentials else ()
    present = next((name for name in names if environ.get(name, "").strip()), "")
    variable = present or next((name for name in names if name in kept), "")
    return ProviderCandidate(provider, variable, kept=bool(variable) and not present)


def _logins(environ: Mapping[str, str], known: set[str]) -> Iterator[tuple[str, str]]:
    for name in catalog.names():
        spec = catalog.provider(name)
        if name in known or not spec.login:
            continue
        signs = _LOGIN_SIGNS.get(spec.login["kind"], ())
        sign = next((each for each in signs if environ.get(each, "").strip()), "")
        if sign:
            yield name, sign


def place_for(output: str, *, user: bool, environ: Mapping[str, str]) -> Path:
    if output and user:
        raise Unusable("--output and --user exclude each other")
    if output:
        return Path(output)
    if user:
        folder = config_dir(environ)
        if folder is None:
            raise Unusable("--user: the environment contains no home folder")
        return folder / CONFIG_FILE
    return Path(environ.get(CONFIG_VARIABLE, "") or CONFIG_FILE)


def check_place(place: Path, *, force: bool) -> None:
    """Checked before any question: the file must not exist, and its folder must be writable."""
    if place.is_dir():
        raise Unusable(f"{place} is a folder: name a file with --output")
    if place.exists() and not force:
        raise Unusable(f"{place} already exists: --force overwrites it, --output FILE writes elsewhere")
    folder = place.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise Unusable(f"{folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unusable(f"{folder.absolute()} cannot be written to: name another place with --output FILE")


def write(place: Path, text: str, *, force: bool) -> None:
    """With the mode of the previous file. Raises Unusable."""
    target = Path(os.path.realpath(place))  # a link stays one
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with draft.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if force:
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
        else:
            _name_new(draft, target)
    except FileExistsError:
        raise Unusable(f"{place} already exists: --force overwrites it") from None
    except OSError as fault:
        raise Unusable(f"{place}: {fault.strerror or fault}") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _name_new(draft: Path, target: Path) -> None:
    """Raises FileExistsError if another one was created first."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            raise FileExistsError from None
        draft.replace(target)


_MODELS_SHOWN: Final = 3
_USUAL_CLIENT: Final = "claude"
_PIPE_COLUMNS: Final = 1000
_STATES: Final = {
    "on": "ok",
    "untested": "approximated",
    "no answer": "approximated",
    "trouble": "approximated",
    "wrong key": "dropped",
    "off": "dim",
}
"""With their colours."""


class ProviderRow(msgspec.Struct, frozen=True):
    """One provider of the table."""

    state: str
    name: str
    key: str
    why: str
    words: str = ""
    """The provider's own message."""


def next_step() -> tuple[str, str]:
    """A command, and what has to be done before it."""
    here = [name for name in (_USUAL_CLIENT, *CLIENTS) if shutil.which(CLIENTS[name].program) is not None]
    client = here[0] if here else _USUAL_CLIENT
    return f"wireglot run {client}", "" if here else CLIENTS[client].install


def rows(found: FoundProviders) -> list[ProviderRow]:
    """Providers that can be used first."""
    order = list(_STATES)
    return sorted(_rows(found), key=lambda row: order.index(row.state))


def _rows(found: FoundProviders) -> Iterator[ProviderRow]:
    for each in found.candidates:
        yield _row(each)
    for lack in found.lacking:
        yield ProviderRow("off", lack.provider, lack.variable, lack.problem)
    for name, sign in found.logins:
        yield ProviderRow("off", name, sign, f"[providers.{name}] would sign in with it")
    if not any(each.is_written for each in found.candidates):
        yield ProviderRow("on", "demo", "", "built-in demo model: no key needed, nothing leaves this machine")


def _row(each: ProviderCandidate) -> ProviderRow:
    key = f"{each.variable}{' (stored)' if each.kept else ''}" or host_of(each.provider.spec.base_url)
    answered = each.answered
    if answered is None:
        return ProviderRow("off" if each.is_local else "untested", each.name, key, "not checked")
    if answered.is_on:
        return ProviderRow("on", each.name, key, _listed(answered))
    if each.is_local:
        there = answered.outcome != "silent"
        return ProviderRow("off", each.name, key, "a different server answers" if there else "no server")
    match answered.outcome:
        case "refused":
            return ProviderRow("wrong key", each.name, key, "", answered.words)
        case "silent":
            return ProviderRow("no answer", each.name, key, f"{answered.host}: {answered.words}")
        case "forbidden":
            why = "access denied for this key, or allowed only from known clients"
        case "unpaid":
            why = "the key is valid, the account cannot be used"
        case "busy":
            why = "busy, or the key is over its rate limit"
        case _:
            why = f"answered with status {answered.status}"
    return ProviderRow("trouble", each.name, key, why, answered.words)


def _listed(answered: ProviderAnswer) -> str:
    took = f"{answered.milliseconds} ms"
    if not answered.models:
        return f"answered in {took}"
    shown = ", ".join(answered.models[:_MODELS_SHOWN])
    more = ", ..." if len(answered.models) > _MODELS_SHOWN else ""
    return f"{count(len(answered.models), 'model')} in {took}: {shown}{more}"


class InitReport:
    """A report for the user, on one stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._paint = Paint(stream)
        self._columns = shutil.get_terminal_size().columns if stream.isatty() else _PIPE_COLUMNS

    def before(self, found: FoundProviders, *, offline: bool) -> None:
        keys = sum(not each.is_local for each in found.candidates)
        self._say(f"Found {count(keys, 'provider key') if keys else 'no provider key'}.", "bold")
        if offline:
            self._say("No requests are sent (--offline).")
            return
        self._say("Sending one request to each; no tokens are used (--offline sends none):")
        width = max((len(each.name) for each in found.candidates), default=0)
        for each in found.candidates:
            self._say(f"  {each.name.ljust(width)}  {first_question(each.provider)}", "dim")

    def after(self, found: FoundProviders) -> None:
        self._say("")
        table = rows(found)
        states = max(len(row.state) for row in table)
        names = max(len(row.name) for row in table)
        keys = max(len(row.key) for row in table)
        for row in table:
            head = f"{row.state.ljust(states)}  {row.name.ljust(names)}"
            start = f"  {head}  {row.key.ljust(keys)}  " if keys else f"  {head}  "
            self._row(row, start, states)
        if found.others:
            more = count(found.others, "more provider")
            self._say(f"\n{more} can be enabled: `wireglot models` lists their requirements.")

    def _row(self, row: ProviderRow, start: str, states: int) -> None:
        """Text that does not fit into the row is put below it."""
        why = [*filter(None, [row.why, f"message: {row.words}" if row.words else ""])]
        under = " " * (states + 4)
        if len(start) + max(map(len, map(one_line, why))) <= self._columns:
            lines = [start + one_line(why[0]), *(" " * len(start) + one_line(text) for text in why[1:])]
        else:
            lines = [start.rstrip()]
            for text in why:
                lines += textwrap.wrap(
                    one_line(text), self._columns, initial_indent=under, subsequent_indent=under,
                    break_long_words=False, break_on_hyphens=False,
                )  # fmt: skip
        state = row.state.ljust(states)
        first = lines[0].replace(f"  {state}", f"  {self._paint(state, _STATES[row.state])}", 1)
        for line in (first, *lines[1:]):
            self._say(line)

    def end(self, place: Path, shadowed: Path | None) -> None:
        command, install = next_step()
        written = self._paint(one_line(str(place)), "bold")
        self._say(f"\nWrote {written}: it refers to keys by name and contains none.")
        if shadowed is not None:
            self._say(f"In this folder it takes precedence over {one_line(str(shadowed))}.")
        if install:
            self._say(f"first: {install}")
        self._say(f"next: {self._paint(command, 'bold')}")

    def _say(self, text: str, colour: str = "") -> None:
        print(self._paint(text, colour) if colour else text, file=self._stream, flush=True)


def document(found: FoundProviders, place: str) -> dict[str, Any]:
    command, _ = next_step()
    by_name = {each.name: each for each in found.candidates}
    return {
        "written": place,
        "providers": [_entry(row, by_name.get(row.name)) for row in rows(found)],
        "others": found.others,
        "next": command,
    }


def _entry(row: ProviderRow, each: ProviderCandidate | None) -> dict[str, Any]:
    answered = each.answered if each is not None else None
    reported: dict[str, Any] = {"name": row.name, "state": row.state, "why": row.why}
    if each is not None and each.variable:
        reported |= {"key": each.variable, "kept": each.kept}
    if row.words:
        reported["words"] = row.words
    if answered is not None:
        reported |= {
            "asked": answered.question,
            "status": answered.status,
            "milliseconds": answered.milliseconds,
            "models": list(answered.models),
        }
    return reported


_DEMO_MODEL: Final = "demo/demo"
_MODEL_OF_YOURS: Final = "NAME-OF-A-MODEL"
_NOTE_COLUMN: Final = 40

_KEYS: Final = """
# While no client key exists, none is required. `wireglot keys create NAME` creates one; or set
# its hash here: printf %s THE-KEY | sha256sum
#[keys]
#laptop = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

# A key with budgets. Cost is in `currency` (USD), at the list prices that `wireglot models` shows.
#[keys.team]
#hash = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#requests_per_minute = 60
#tokens_per_day = 2000000
#cost_per_month = 50
"""


def config_text(found: FoundProviders, today: date) -> str:
    on = [each for each in found.candidates if each.is_written]
    blocks = [
        _head(today),
        _server(),
        _providers_head(),
        *(_block(each) for each in on),
        _demo(alone=not on),
        *(_off_block(each, today) for each in found.candidates if not each.is_written),
        *(_login_block(name, sign) for name, sign in found.logins),
        _models(on),
        _KEYS.strip("\n"),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _head(today: date) -> str:
    return (
        f"# Wireglot's configuration, written by `wireglot init` on {today}. It contains no secret.\n"
        "#\n"
        "#   wireglot config check     check it and print the effective configuration\n"
        "#   wireglot doctor           diagnose problems and suggest fixes\n"
        "#   wireglot run claude       start a client with it\n"
        "#   wireglot serve            run a gateway for any client\n"
        "#\n"
        "# A running gateway reloads changes. All settings: docs/configuration.md"
    )


def _server() -> str:
    return (
        "[server]\n"
        'host = "127.0.0.1"                      # other addresses need a key in [keys], see below\n'
        "port = 8484"
    )


def _providers_head() -> str:
    return (
        "# Upstream providers. `env:NAME` is an environment variable, or a key stored by `wireglot login`.\n"
        "# Catalog providers with a key in the environment are enabled automatically, unless you set:\n"
        "#[providers]\n"
        "#discover = false"
    )


def _block(each: ProviderCandidate) -> str:
    head = _noted(f"[providers.{each.name}]", f"{each.provider.spec.title}: {_reported(each)}")
    return f'{head}\napi_key = "env:{each.variable}"' if each.variable else head


def _off_block(each: ProviderCandidate, today: date) -> str:
    spec = each.provider.spec
    if each.is_local:
        where = host_of(spec.base_url)
        why = "was not checked" if each.answered is None else "did not answer"
        return f"# {spec.title} {why} at {where}. To use it once it runs:\n#[providers.{each.name}]"
    return (
        f"# {spec.title} rejected the key in {each.variable} on {today}. To use it with a valid key:\n"
        f'#[providers.{each.name}]\n#api_key = "env:{each.variable}"'
    )


def _login_block(name: str, sign: str) -> str:
    return (
        f"# {catalog.provider(name).title}: {sign} is set. Other requirements: docs/clouds.md\n"
        f"# [providers.{name}]"
    )


def _demo(*, alone: bool) -> str:
    if alone:
        return f"# No provider has answered yet: this enables the built-in demo model.\n[providers.{DEMO}]"
    return f"# Built-in demo model: {_DEMO_MODEL}\n#[providers.{DEMO}]"


def _models(on: Sequence[ProviderCandidate]) -> str:
    names = list(_models_of(on)) or list(_demo_models())
    first, second = names[0], names[1] if len(names) > 1 else names[0]
    chain = f"[{_quoted(first)}, {_quoted(second)}]" if second != first else f"[{_quoted(first)}]"
    lines = [
        "# Routes for model names that clients request. `provider/model` (`wireglot models`) needs no rule.",
        "[models]",
        "# Claude Code requests claude-... models by default. Send all of them to one model:",
        f'#"claude-*" = {_quoted(first)}',
        "# A custom name with a fallback: the next target is called when the previous one fails.",
        f"#fast = {chain}",
        "# Another model for requests with high reasoning effort:",
        f'#deep = [{{ to = {_quoted(first)}, effort = ["high"] }}, {{ to = {_quoted(second)} }}]',
    ]
    return "\n".join(lines)


def _models_of(on: Sequence[ProviderCandidate]) -> Iterator[str]:
    """One of each provider, then a second one of the first."""
    for each in on:
        yield f"{each.name}/{next(iter(model_names(each)), _MODEL_OF_YOURS)}"
    if len(on) == 1:
        yield from (f"{on[0].name}/{name}" for name in list(model_names(on[0]))[1:2])


def _demo_models() -> Iterator[str]:
    known = (entry.match for entry in catalog.provider(DEMO).models if entry.answers)
    yield from (f"{DEMO}/{name}" for name in known)


def model_names(each: ProviderCandidate) -> Iterator[str]:
    """Models that the catalog knows and the provider lists, then those that either has."""
    listed = each.answered.models if each.answered is not None else ()
    spec = each.provider.spec
    known = [entry.match for entry in spec.models if entry.answers]
    both = [name for name in known if name in listed]
    yield from both or known or listed


def _reported(each: ProviderCandidate) -> str:
    answered = each.answered
    if answered is None:
        return "not checked"
    if answered.is_on:
        return f"answered, {count(len(answered.models), 'model')}" if answered.models else "answered"
    return "did not answer" if answered.outcome == "silent" else "answered with an error"


def _quoted(name: str) -> str:
    return msgspec.json.encode(name).decode()


def _noted(line: str, note: str) -> str:
    return f"{line.ljust(_NOTE_COLUMN - 1)} # {note}"


_STANDARD_OUTPUT: Final = "-"


def run(wanted: argparse.Namespace) -> int:
    printed = wanted.output == _STANDARD_OUTPUT
    if printed and wanted.json:
        raise Unusable("--json and --output - exclude each other")
    place = place_for(wanted.output or "", user=wanted.user, environ=os.environ)
    if not printed:
        check_place(place, force=wanted.force)
    before = config.find()
    report = InitReport(sys.stderr if printed else sys.stdout)
    found = find_candidates(os.environ)
    if not wanted.json:
        report.before(found, offline=wanted.offline)
    if not wanted.offline:
        found = _asked(found)
    text = config_text(found, date.today())
    # The written file must load, whatever names come from a catalog or an answer.
    config.load(place, environ=provider_environment(os.environ), create_secret=False, content=text.encode())
    if not wanted.json:
        report.after(found)
    if printed:
        print(text, end="")
        return OK
    write(place, text, force=wanted.force)
    trust(place)
    if wanted.json:
        print(msgspec.json.encode(document(found, str(place))).decode())
    else:
        report.end(place, _shadowed(before, place))
    return OK


def _asked(found: FoundProviders) -> FoundProviders:
    answers = {each.provider: each for each in ask_providers([each.provider for each in found.candidates])}
    return msgspec.structs.replace(
        found,
        candidates=tuple(
            msgspec.structs.replace(each, answered=answers.get(each.name)) for each in found.candidates
        ),
    )


def _shadowed(before: Path | None, place: Path) -> Path | None:
    """An earlier file that would not be found any more."""
    now = config.find()
    if before is None or now is None or before == now:
        return None
    return before if now.absolute() == place.absolute() else None
