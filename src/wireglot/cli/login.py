"""`wireglot login` and `wireglot logout`: keys of providers kept, listed and forgotten."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from wireglot.cli.argument_parser import near, shown
from wireglot.cli.ask_providers import lacking, try_key
from wireglot.cli.run.asking import can_ask, keep_key, prompted_key, says_yes, short_path
from wireglot.cli.terminal import OK, Failed, Paint, Unusable, columns_of, complain, laid_out, one_line, say
from wireglot.cli.trust import NO_FILE, ConfigFile, find_config, trust_command
from wireglot.gateway import config
from wireglot.gateway.config.kept_keys import forget, has_keyring, kept_file, kept_places
from wireglot.gateway.config.provider_keys import ProviderKey, provider_keys
from wireglot.gateway.config.providers import SENDABLE
from wireglot.gateway.relay.key_checks import ProviderAnswer
from wireglot.gateway.settings import Settings
from wireglot_core.extras import install_hint

# Characters of a key that is entered.
_MAX_KEY_LETTERS: Final = 16 * 1024
_HEADS: Final = ("provider", "key", "from")


def run(arguments: argparse.Namespace) -> int:
    file = _approved(arguments.config)
    settings = _load(file)
    known = provider_keys(settings, os.environ)
    if not arguments.provider:
        if arguments.command == "logout":
            raise Unusable("name a provider: `wireglot login` lists those with a stored key")
        _list(known, as_json=arguments.json)
        return OK
    named = _known(arguments.provider, known)
    if arguments.command == "logout":
        return _forget(named, known)
    return _Keeping(named, file, arguments).run()


def _approved(named: str | None) -> ConfigFile:
    """An unapproved file is not used: it could send the key anywhere."""
    file = find_config(named)
    if file.trusted or file.path is None:
        return file
    complain(f"{one_line(str(file.path))} is not approved and not used here ({trust_command(file.path)})")
    return NO_FILE


def _load(file: ConfigFile, environ: dict[str, str] | None = None) -> Settings:
    return config.load(
        file.path,
        environ=os.environ if environ is None else environ,
        create_secret=False,
        content=file.content,
        keys_needed=False,
    )


def _known(name: str, known: dict[str, ProviderKey]) -> ProviderKey:
    if name in known:
        return known[name]
    meant = near(name, known)
    hint = f"did you mean {meant}?" if meant else "`wireglot providers` lists all of them"
    raise Unusable(f"there is no provider {shown(name)}: {hint}")


class _Keeping:
    """One key: entered or read, tested, and kept."""

    def __init__(self, named: ProviderKey, file: ConfigFile, arguments: argparse.Namespace) -> None:
        self._named = named
        self._file = file
        self._in_keyring: bool = arguments.keyring
        self._is_unchecked: bool = arguments.unchecked
        self._from_pipe: bool = arguments.key is not None or not can_ask()
        self._place = self._checked(arguments.key)

    def _checked(self, given: str | None) -> Path:
        named, place = self._named, kept_file(os.environ)
        if named.instead and given is None:
            keyed = f"; --key - stores an API key ({named.keeps_as})" if named.keeps_as else ""
            raise Unusable(
                f"{named.provider} uses a sign-in and needs no key: {named.instead}{keyed} (docs/clouds.md)"
            )
        if named.state == "unneeded" or not named.variables:
            raise Unusable(f"{named.provider} needs no key: [providers.{named.provider}] enables it")
        if named.state == "configuration":
            where = one_line(str(self._file.path))
            raise Unusable(f"the key of {named.provider} is set in {where}: change api_key there")
        if place is None:
            raise Unusable("no data folder: set HOME or XDG_DATA_HOME")
        if self._in_keyring and not has_keyring():
            raise Unusable(f"no keyring found: `{install_hint('keyring')}`, or omit --keyring")
        return place

    def run(self) -> int:
        while True:
            key = _piped_key() if self._from_pipe else prompted_key(f"API key of {self._named.title}")
            if not key:
                raise Unusable("no key was given, nothing was stored")
            answer = None if self._is_unchecked else self._tried(key)
            if answer is None or answer.verdict == "good":
                self._keep(key, answer)
                return OK
            said = one_line(answer.sentence(self._named.title))
            if answer.verdict == "refused":
                if self._from_pipe:
                    raise Failed(f"{said}: it was not stored")
                complain(f"{said}: it was not stored")
                continue
            if self._from_pipe:
                raise Failed(f"{said}: the key was not stored (--unchecked stores it untested)")
            complain(said)
            if not says_yes("Store the key anyway, untested? [y/N] "):
                raise Failed("the key was not stored")
            self._keep(key, None)
            return OK

    def _tried(self, key: str) -> ProviderAnswer:
        name = self._named.provider
        environ = {**os.environ, **self._named.trying(key)}
        settings = _load(self._file, environ)
        provider = settings.providers.get(name)
        if provider is None:
            wanted = next((each.wanted for each in lacking(settings.notes) if each.provider == name), "")
            if wanted:
                raise Unusable(f"{name} needs more than a key: set {wanted} first (docs/providers.md)")
            # The key is kept for later: turning the provider on in a file is up to the user.
            alone = config.load(None, environ=environ, create_secret=False)
            provider = alone.providers[name]
        return try_key(provider, key)

    def _keep(self, key: str, answer: ProviderAnswer | None) -> None:
        named = self._named
        keep_key(self._place, named.keeps_as, key, in_keyring=self._in_keyring)
        where = "the system keyring" if self._in_keyring else short_path(self._place)
        said = f"{answer.sentence(named.title)}: stored" if answer is not None else "Stored, untested,"
        say(one_line(f"{said} in {where} as {named.keeps_as}."))
        if named.state == "environment":
            say(f"{named.variable} is also set in this environment and takes precedence: unset it.")
        settings = _load(self._file)
        if named.provider not in settings.providers:
            say(f"It is off in {self._file.path}: add [providers.{named.provider}] there.")
            return
        models = settings.providers[named.provider].spec.models
        first = next((each.match for each in models if each.answers), "")
        if first:
            say(f"next: wireglot run claude --model {named.provider}/{first}")


def _piped_key() -> str:
    """The first line of standard input."""
    text = sys.stdin.read(_MAX_KEY_LETTERS + 1)
    key = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if len(key) > _MAX_KEY_LETTERS:
        raise Unusable(f"standard input: expected a key of at most {_MAX_KEY_LETTERS:,} characters")
    if key and not SENDABLE.fullmatch(key):
        raise Unusable("standard input: expected a key in plain ASCII without spaces")
    return key


def _forget(named: ProviderKey, known: dict[str, ProviderKey]) -> int:
    place = kept_file(os.environ)
    if place is None or not named.kept or not forget(place, named.kept):
        others = {
            "environment": f"{named.variable} is set in the environment: unset it",
            "configuration": "its key is in the configuration",
            "login": "it uses a sign-in without a key",
        }
        raise Failed(f"no key of {named.provider} is stored{_after_colon(others.get(named.state, ''))}")
    say(f"Deleted {named.kept}.")
    sharing = [each.provider for each in known.values() if each.kept == named.kept and each is not named]
    if sharing:
        say(f"It was also the key of {', '.join(sharing)}.")
    if named.is_shadowed:
        say(f"{named.variable} is still set in this environment.")
    return OK


def _after_colon(text: str) -> str:
    return f": {text}" if text else ""


class _Shown(msgspec.Struct, frozen=True):
    providers: tuple[str, ...]
    key: str
    """Its variable."""
    source: str


def _list(known: dict[str, ProviderKey], *, as_json: bool) -> None:
    """Where the keys are, but never a key."""
    place = kept_file(os.environ)
    rows = _rows(known, place)
    if as_json:
        print(json.dumps([msgspec.to_builtins(row) for row in rows]))
        return
    if not rows:
        say("No provider key found. Store one: wireglot login PROVIDER (`wireglot providers`)")
        return
    given = [_HEADS, *((", ".join(row.providers), row.key, row.source) for row in rows)]
    cells = [[one_line(cell) for cell in row] for row in given]
    paint = Paint(sys.stdout)
    head, *others = laid_out(cells, columns_of(sys.stdout))
    if len(head) == 1:  # cells one below the other need no head
        print(paint(head[0], "bold"))
    for lines in others:
        print("\n".join(lines))


def _rows(known: dict[str, ProviderKey], place: Path | None) -> list[_Shown]:
    where = {
        "environment": "the environment",
        "file": f"stored in {short_path(place)}" if place is not None else "",
        "keyring": "stored in the keyring",
        "configuration": "the configuration",
        "login": "signed in, without a key",
    }
    found: dict[tuple[str, str], list[str]] = {}
    for each in known.values():
        if each.state in where:
            source = where[each.state] + (" (another one is stored)" if each.is_shadowed else "")
            variable = each.variable if each.state not in ("configuration", "login") else ""
            found.setdefault((variable, source), []).append(each.provider)
    named = {each.kept for each in known.values()}
    for name, kind in kept_places(place, []).items():  # a gateway's client key, a provider of another project
        if name not in named:
            found[name, where[kind]] = []
    return [_Shown(tuple(names), variable, source) for (variable, source), names in found.items()]
