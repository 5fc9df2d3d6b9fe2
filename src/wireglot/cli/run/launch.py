"""Starts a client: finds or starts its gateway, sets its variables, and hands over the terminal."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

import msgspec

from wireglot.cli.argument_parser import near, shown
from wireglot.cli.ask_providers import ask_providers, shown_context, try_key
from wireglot.cli.own_gateway import key_of_its_own
from wireglot.cli.remote_gateway import (
    GatewayAddress,
    GatewayAnswer,
    address_of,
    ask,
    reachable,
    running_url,
    usable_key,
)
from wireglot.cli.run.agents import PRINTED, UNSUPPORTED
from wireglot.cli.run.asking import TriedKey, TryKey, ask_key, can_ask
from wireglot.cli.run.clients import CLIENTS, FAMILY_DIALECTS, FAMILY_MODELS, by_family
from wireglot.cli.run.gateway import ClientFolder, Own, open_browser, remove_afterwards, start_gateway
from wireglot.cli.run.offers import install_command, offer_clients, offer_install, offer_models
from wireglot.cli.run.pointing import FOLDER, Door, Pointing
from wireglot.cli.terminal import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    OK,
    Failed,
    Unusable,
    complain,
    count,
    one_line,
    say,
)
from wireglot.cli.trust import ConfigFile, find_config, trusted_config
from wireglot.gateway import config
from wireglot.gateway.config.kept_keys import kept_file, read_kept
from wireglot.gateway.config.provider_keys import ProviderKey, provider_keys
from wireglot.gateway.observe.running import find_running
from wireglot.gateway.pages.models import listed, models
from wireglot.gateway.relay.key_checks import ProviderAnswer, is_asked
from wireglot.gateway.settings import Settings
from wireglot.gateway.targets.routing import Target, Unroutable, named_targets, route
from wireglot_core.providers import spec as catalog

DEMO: Final = "demo"
DEMO_MODEL: Final = "demo/demo"
_ONLY_DEMO: Final = "no provider API key found, using the built-in demo model (choose another with --model)"


class Choice(msgspec.Struct, frozen=True):
    """The configuration of a gateway for a client."""

    settings: Settings
    environ: Mapping[str, str]
    """Including a key that the user has entered."""
    overrides: Mapping[str, Any]
    model: str = ""
    """Empty: the client's own names have a route."""
    remark: str = ""

    def context(self, dialect: str) -> int:
        """The model's context: the catalog's figure, or that of the local server that loads it."""
        found = listed(self.settings, self.model, dialect) if self.model else None
        if found is None or found.context:
            return found.context if found is not None else 0
        first = next(iter(_targets(self.settings, self.model, dialect)))
        return shown_context(first.provider, first.model)

    def names(self, dialect: str) -> tuple[str, ...]:
        """All models by provider and name: a bare name may mean another one tomorrow."""
        found = models(self.settings, dialect)
        return tuple(model.id for model in found if "/" in model.id and not model.embeds)


class AskKey(Protocol):
    def __call__(self, whose: str, variable: str, try_key: TryKey, reason: str = "") -> str: ...


class Chooser:
    """`ask_key` is called with a provider's title, the variable of its key and a test function, and returns
    "" if it cannot ask."""

    def __init__(self, file: ConfigFile, environ: Mapping[str, str], ask_key: AskKey) -> None:
        self._file = file
        self._environ = dict(environ)
        self._ask_key = ask_key

    def choose(self, wanted: str, dialect: str, own_model: str) -> Choice:
        """Raises Unusable, or a ConfigError. `own_model`: the client's default model."""
        settings = self.settings()
        if wanted.partition("/")[0] == DEMO:
            return self._demo(wanted, settings)
        if wanted:
            return self._named(settings, wanted, dialect)
        if self._lacks_key_of_rule(settings, own_model, dialect):
            settings = self._with_key(settings, own_model, dialect)
        elif settings.off and not settings.providers:
            settings = self._with_key(settings, f"{next(iter(settings.off))}/", dialect)
        if not set(settings.providers) - {DEMO}:
            return self._demo(wanted, settings)
        remark = "; ".join(f"{name} is off: {variable} is not set" for name, variable in settings.off.items())
        if own_model and leads(settings, own_model, dialect):
            return Choice(settings, self._environ, {}, remark=remark)
        first = next((model.id for model in models(settings, dialect) if not model.embeds), "")
        if not first:
            raise Unusable("no enabled provider lists a model: name one with --model PROVIDER/MODEL")
        return Choice(settings, self._environ, {}, first, remark)

    def settings(self) -> Settings:
        return self._load({})

    def _lacks_key_of_rule(self, settings: Settings, model: str, dialect: str) -> bool:
        """Whether a rule of the user routes a model to a provider without its key."""
        ruled = bool(model) and named_targets(settings, model) != [model]
        return ruled and not leads(settings, model, dialect) and _lacking_key(settings, model) is not None

    def _demo(self, wanted: str, settings: Settings) -> Choice:
        """No key is needed, and nothing is paid."""
        overrides: dict[str, Any] = {} if DEMO in settings.providers else {"providers": {DEMO: {}}}
        settings = self._load(overrides)
        model = wanted or DEMO_MODEL
        remark = "" if wanted else _ONLY_DEMO
        return Choice(settings, self._environ, overrides, model, remark)

    def _named(self, settings: Settings, wanted: str, dialect: str) -> Choice:
        try:
            route(settings, wanted, dialect)
        except Unroutable as nowhere:
            settings = self._with_key(settings, wanted, dialect, str(nowhere))
            if not leads(settings, wanted, dialect):
                raise Unusable(one_line(str(nowhere))) from None
        return Choice(settings, self._environ, {}, wanted)

    def _with_key(self, settings: Settings, wanted: str, dialect: str, nowhere: str = "") -> Settings:
        """The settings with the missing key of a model's provider, which the user is asked to enter."""
        lacking = _lacking_key(settings, wanted)
        if lacking is None:
            meant = near(wanted, [model.id for model in models(settings, dialect)])
            hint = f"; did you mean {meant}?" if meant and "did you mean" not in nowhere else ""
            raise Unusable(f"{one_line(nowhere)}{hint}")
        name, title, variable = lacking
        key = self._ask_key(title, variable, self._trial(name, title, variable))
        if not key:
            raise Unusable(f"no key for {one_line(title)}: set {variable}")
        self._environ[variable] = key
        return self._load({})

    def _trial(self, name: str, title: str, variable: str) -> TryKey:
        def tried(key: str) -> TriedKey:
            provider = self._load({}, {variable: key}).providers.get(name)
            if provider is None:  # it lacks more, which is reported when it is used
                return TriedKey(False)
            answer = try_key(provider, key)
            words = "" if answer.outcome == "taken" else answer.sentence(title)
            return TriedKey(answer.verdict == "refused", words)

        return tried

    def checked(self, choice: Choice, dialect: str, own_model: str) -> Choice:
        """The same, after its providers were tested with their keys: a client would retry for minutes. The
        user is asked for a new key if a kept one is rejected. Raises Failed if no provider would answer."""
        targets = _targets(choice.settings, choice.model or own_model, dialect)
        providers = {target.provider.name: target.provider for target in targets}
        if not providers or not all(map(is_asked, providers.values())):
            return choice
        answers = ask_providers(providers.values())
        failed = [each for each in answers if each.verdict == "refused" or each.is_unreached or each.fix]
        if not failed or len(failed) < len(answers):
            return choice  # a later target answers, or another key of the pool
        first, provider = failed[0], providers[failed[0].provider]
        title = provider.spec.title
        kept = provider_keys(choice.settings, self._environ)[provider.name]
        if first.verdict == "refused" and kept.state in ("file", "keyring"):
            reason = f"{first.sentence(title)}, which is stored as {kept.kept}"
            trial = self._trial(provider.name, title, kept.kept)
            if key := self._ask_key(title, kept.kept, trial, reason):
                self._environ[kept.kept] = key
                settings = self._load(choice.overrides)
                return msgspec.structs.replace(choice, settings=settings, environ=dict(self._environ))
        raise Failed(one_line(f"{first.sentence(title)}{_after_refusal(first, kept)}"))

    def _load(self, overrides: Mapping[str, Any], more: Mapping[str, str] = {}) -> Settings:
        return config.load(
            self._file.path,
            environ={**self._environ, **more},
            overrides=overrides,
            create_secret=False,
            content=self._file.content,
            keys_needed=False,
        )


def _after_refusal(answer: ProviderAnswer, key: ProviderKey) -> str:
    """How to fix it."""
    if answer.fix:
        return f": {answer.fix}"
    if answer.verdict != "refused":
        return ""
    if key.state == "environment":
        return f": set {key.variable} to a valid key"
    if key.state in ("file", "keyring"):
        return f": wireglot login {key.provider}"
    return f": change it in the configuration, [providers.{key.provider}]"


def leads(settings: Settings, model: str, dialect: str) -> bool:
    """Whether a model has a route."""
    return bool(_targets(settings, model, dialect))


def _targets(settings: Settings, model: str, dialect: str) -> Sequence[Target]:
    try:
        return route(settings, model, dialect)
    except Unroutable:
        return ()


def _lacking_key(settings: Settings, wanted: str) -> tuple[str, str, str] | None:
    """The provider of a model, its title, and the variable of its key, if the key is all it lacks."""
    known = sorted(catalog.names(), key=lambda name: (not catalog.provider(name).home, name))
    for target in named_targets(settings, wanted):
        prefix, slash, _ = target.partition("/")
        if slash and prefix in settings.off:
            title = catalog.provider(prefix).title if prefix in known else prefix
            return prefix, title, settings.off[prefix]
        if slash and prefix in known:
            found = prefix
        else:
            # Listed by its own name: a pattern of another provider may match anything.
            lists = [n for n in known if any(entry.match == target for entry in catalog.provider(n).models)]
            found = lists[0] if lists else ""
        if not found or found in settings.providers:
            continue
        spec = catalog.provider(found)
        if spec.auth != "none" and spec.api_key_env:
            return found, spec.title, settings.off.get(found, spec.api_key_env[0])
    return None


KEY: Final = "WIREGLOT_KEY"
ANY_KEY: Final = "none"
"""For a gateway that needs none: most clients insist on sending one."""
_ANSWER_SECONDS: Final = 10.0
_UNAUTHORIZED: Final = 401
_VERSION: Final = "2023-06-01"
"""Of Anthropic's clients, whose lists contain the context sizes."""


class Joined:
    """A gateway at an address, and a key that it accepts. Its requests raise NoAnswer."""

    def __init__(self, address: GatewayAddress, key: str = ANY_KEY) -> None:
        self.address = address
        self.key = key
        self._reported: dict[str, GatewayAnswer] = {}
        """Answers about models: each request is a line in its log."""

    @property
    def url(self) -> str:
        return self.address.url

    def is_wireglot(self) -> bool:
        answer = self._get("/")
        return answer.status == 200 and answer.document().get("name") == "wireglot"

    def wants_key(self) -> bool:
        """Whether it refuses requests with the available key."""
        return self._get("/v1/models").status == _UNAUTHORIZED

    def tried(self, key: str) -> TriedKey:
        is_refused = Joined(self.address, key).wants_key()
        return TriedKey(is_refused, f"the gateway at {self.url} rejects it" if is_refused else "")

    def refusal(self, model: str) -> str:
        """Its error for a model that it does not serve; "" if it does."""
        answer = self._model(model)
        return "" if answer.status == 200 else answer.complaint()

    def context(self, model: str) -> int:
        """The context of a model in tokens; 0 if unknown."""
        answer = self._model(model)
        reported = answer.document().get("max_input_tokens") if answer.status == 200 else None
        return reported if type(reported) is int else 0

    def models(self) -> tuple[str, ...]:
        answer = self._get("/v1/models")
        listed: Any = answer.document().get("data") if answer.status == 200 else None
        if not isinstance(listed, list):
            raise Failed(f"{self.url} lists no models: {answer.complaint()}")
        return tuple(str(each["id"]) for each in listed if isinstance(each, dict) and "id" in each)

    def _model(self, model: str) -> GatewayAnswer:
        if model not in self._reported:
            path = f"/v1/models/{quote(model, safe='/', errors='replace')}"
            self._reported[model] = self._get(path, **{"anthropic-version": _VERSION})
        return self._reported[model]

    def _get(self, path: str, **headers: str) -> GatewayAnswer:
        return ask(self.address, "GET", path, key=self.key, headers=headers, seconds=_ANSWER_SECONDS)


def join(url: str, ask_key: Callable[[str, TryKey], str]) -> Joined:
    """The gateway there, with a key that it accepts; raises Failed, NoAnswer, Unusable. `ask_key` asks the
    user for one, and returns "" if it cannot."""
    joined = Joined(address_of(url))
    if not joined.is_wireglot():
        raise Failed(f"{joined.url}: the server is not a Wireglot gateway: start one with `wireglot serve`")
    kept = read_kept(kept_file(os.environ), [])
    for key in (usable_key(os.environ.get(KEY, ""), KEY), kept[KEY].value if KEY in kept else ""):
        if not joined.wants_key():
            return joined
        joined.key = key or joined.key
    if joined.wants_key():
        joined.key = ask_key(joined.url, joined.tried) or joined.key
    if joined.wants_key():
        fix = f"set {KEY} to a key from `wireglot keys create NAME`"
        if joined.key == ANY_KEY:
            raise Unusable(f"the gateway at {joined.url} requires a client key: {fix}")
        raise Failed(f"the gateway at {joined.url} rejects the client key: {fix}")
    return joined


_CALLER: Final = "wireglot-run"
"""The caller's name of its requests in the gateway's data."""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


class Launch(msgspec.Struct, frozen=True):
    """The options of the command line."""

    client: str = ""
    families: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    model: str = ""
    config: str | None = None
    url: str = ""
    private: bool = False
    log: str | None = None
    print_env: bool = False
    statusline: bool = False
    inspect: bool = False

    def problem(self) -> str:
        """What is wrong with the command line itself."""
        known = ", ".join(CLIENTS)
        if self.families:
            if self.client:
                return "--env is for a command after --, without a CLIENT"
            return "" if self.arguments or self.print_env else "--env needs a command after --"
        if not self.client:
            return f"name a client ({known}), or a command with --env"
        if self.client in PRINTED:
            return "--private cannot be used when settings are only printed" if self.private else ""
        if self.client in UNSUPPORTED:
            return UNSUPPORTED[self.client]
        if self.client not in CLIENTS:
            if shutil.which(self.client) is not None:
                return (
                    f"{one_line(self.client)} is not a known client: try "
                    f"`wireglot run --env openai -- {one_line(self.client)} ...`"
                )
            meant = near(self.client, [*CLIENTS, *PRINTED])
            hint = (
                f"did you mean {meant}?"
                if meant
                else f"known clients are {known}; for other commands use --env"
            )
            return f"there is no client {shown(self.client)}: {hint}"
        if self.url and self.private:
            return "--url and --private exclude each other"
        if self.statusline and not CLIENTS[self.client].has_statusline:
            return f"{self.client} has no configurable status line"
        return ""

    @property
    def program(self) -> str:
        return CLIENTS[self.client].program if self.client else self.arguments[0] if self.arguments else ""

    @property
    def own_arguments(self) -> tuple[str, ...]:
        return self.arguments if self.client else self.arguments[1:]

    @property
    def dialect(self) -> str:
        if self.client in PRINTED:
            return "openai-chat"
        return CLIENTS[self.client].dialect if self.client else FAMILY_DIALECTS[self.families[0]]

    @property
    def own_model(self) -> str:
        if self.client in PRINTED:
            return ""
        return CLIENTS[self.client].own_model if self.client else FAMILY_MODELS[self.families[0]]

    @property
    def own_models(self) -> str:
        return CLIENTS[self.client].own_models if self.client else ""

    def point(self, door: Door) -> Pointing:
        if self.client:
            door = msgspec.structs.replace(door, statusline=self.statusline)
            return CLIENTS[self.client].point(door, os.environ)
        return by_family(self.families, door)


class _Found(msgspec.Struct, frozen=True):
    """A gateway for the client, and messages about it."""

    door: Door
    what: str
    remark: str = ""
    own: Own | None = None
    """To be started: until then the door has no address."""
    has_inspector: bool = True


def run(arguments: argparse.Namespace) -> int:
    """Becomes the client; returns only if that fails."""
    task = Launch(
        client=arguments.client or "",
        families=tuple(dict.fromkeys(arguments.env)),
        arguments=tuple(arguments.rest),
        model=arguments.model or "",
        config=arguments.config,
        url=arguments.url or "",
        private=arguments.private,
        log=arguments.log,
        print_env=arguments.print_env,
        statusline=arguments.statusline,
        inspect=arguments.inspect,
    )
    if not (task.client or task.families) and can_ask():
        task = _chosen(task)
    if problem := task.problem():
        raise Unusable(f"{problem} (see wireglot run --help)")
    if task.client in PRINTED:
        return _print_settings(task, find_config(task.config))
    if not task.print_env:
        if os.name != "posix":
            raise Unusable(
                "a client can be started on POSIX systems only: use `wireglot serve` and --print-env"
            )
        if shutil.which(task.program) is None:
            if os.path.isfile(task.program):
                complain(f"{one_line(task.program)} is not executable: chmod +x {shlex.quote(task.program)}")
                return NOT_EXECUTABLE
            if not (task.client and offer_install(CLIENTS[task.client])):
                how = f": {shlex.join(install_command(CLIENTS[task.client]))}" if task.client else ""
                complain(f"{one_line(task.program)} is not installed, or not on the PATH{how}")
                return NOT_FOUND
    found = find_config(task.config)
    if task.print_env:
        return _print_env(task, found)
    return _start(task, _found(task, found))


def _chosen(task: Launch) -> Launch:
    """With the client and the model that the user picks."""
    client = offer_clients()
    task = msgspec.structs.replace(task, client=client)
    if task.model or task.url:
        return task
    file = trusted_config(task.config)
    settings = Chooser(file, os.environ, ask_key).settings()
    return msgspec.structs.replace(task, model=offer_models(settings, task.dialect, task.own_model))


def _found(task: Launch, file: ConfigFile) -> _Found:
    url = task.url or ("" if task.private else running_url(file.path, os.environ))
    refusal = ""
    if url:
        joined = join(url, _ask_client_key)
        refusal = joined.refusal(task.model) if task.model else ""
        if not refusal:
            return _joined(task, joined)
        if task.url:
            raise Unusable(refusal)
    return _private(task, f"the gateway at {url} does not serve {one_line(task.model)}" if refusal else "")


def _joined(task: Launch, joined: Joined) -> _Found:
    names = joined.models()
    model = task.model
    if not model and not (task.own_model and not joined.refusal(task.own_model)):
        if not names:
            raise Unusable(f"{joined.url} lists no model: name one with --model PROVIDER/MODEL")
        model = names[0]
    context = joined.context(model) if model else 0
    return _Found(Door(joined.url, joined.key, model, context, names), "already running")


def _private(task: Launch, remark: str) -> _Found:
    file = trusted_config(task.config)
    chooser = Chooser(file, os.environ, ask_key)
    choice = chooser.choose(task.model, task.dialect, task.own_model)
    choice = chooser.checked(choice, task.dialect, task.own_model)
    key, keys = key_of_its_own(_CALLER)
    server = {
        "host": "127.0.0.1",
        "port": 0,
        "workers": 1,
        "log": "json" if task.log is not None else "off",
    }
    overrides: dict[str, Any] = {**choice.overrides, "server": server, **keys}
    if choice.model and task.own_models and not leads(choice.settings, task.own_model, task.dialect):
        overrides["models"] = {task.own_models: choice.model}
    return _Found(
        Door("", key, choice.model, choice.context(task.dialect), choice.names(task.dialect)),
        f"private, {_format_place(file.path)}" if file.path is not None else "private",
        choice.remark or remark,
        Own(
            file,
            choice.environ,
            overrides,
            task.log,
            client=Path(task.program).name,
            operator_key=key_of_its_own(_CALLER)[0],
        ),
        has_inspector=choice.settings.server.inspector != "off",
    )


def _format_place(path: Path) -> str:
    """The path of a configuration, since one in the current folder is easily overlooked."""
    return one_line(str(path) if path.is_absolute() else f"./{path}")


def _start(task: Launch, found: _Found) -> int:
    needs_folder = bool(task.point(found.door).files)
    folder = ClientFolder() if needs_folder else None
    try:
        door = found.door
        if found.own is not None:
            door = msgspec.structs.replace(door, url=start_gateway(found.own, folder))
        elif folder is not None:
            remove_afterwards(folder)
        pointing = _placed(task.point(door), folder.path if folder is not None else None)
        environ = _environment(pointing)
        if found.remark:
            complain(found.remark)
        complain(_line(task, door, found.what, pointing))
        # With arguments a client usually answers and ends, and a private gateway with it.
        ends_soon = found.own is not None and bool(task.arguments)
        if task.inspect:
            _show_inspector(door.url, found.own.operator_key if found.own is not None else "")
            if ends_soon:
                complain("the inspector ends with the client: start `wireglot serve` first to keep it")
        elif found.has_inspector and ends_soon:
            complain("to see every exchange, start `wireglot serve` first: this gateway ends with the client")
        elif found.has_inspector:
            complain("to see every exchange: `wireglot inspect` in another terminal")
        if resume := _resume(task):
            complain(f"to resume this conversation later:\n  {resume}", fit=False)
        for option in task.point(door).unheeded(task.own_arguments):
            complain(f"{option} takes precedence: if its file sets another base URL, that URL is used")
        for warning in pointing.warnings:
            complain(one_line(warning))
        return _become(task, pointing, environ)
    except BaseException:
        if folder is not None:
            folder.remove()
        raise


def _resume(task: Launch) -> str:
    """The command to continue a conversation: the client's own hint would call its vendor. Only in a
    terminal."""
    client = CLIENTS.get(task.client)
    if client is None or not client.resume or task.arguments or not can_ask():
        return ""
    given = {"--model": task.model, "--config": task.config, "--url": task.url, "--log": task.log}
    switches = {"--private": task.private, "--statusline": task.statusline}
    options = [word for name, value in given.items() if value for word in (name, value)]
    options += [name for name, is_on in switches.items() if is_on]
    words = ["wireglot", "run", task.client, *options, "--", *client.resume.split()]
    return one_line(shlex.join(words))


def _show_inspector(url: str, operator_key: str) -> None:
    """Signed in if the gateway is one of this user's. The client starts in any case."""
    from wireglot.cli.inspect import has_browser, page_link  # most runs need no browser

    keys = [running.key for running in find_running(os.environ) if reachable(running.url) == url]
    try:
        link = page_link(address_of(url), operator_key or next(iter(keys), ""))
    except Failed as problem:
        complain(f"no inspector: {problem}")
        return
    if has_browser():
        complain(f"the inspector opens in your browser: {url}/inspector")
        open_browser(link)
    else:
        complain("the inspector (this link signs in once, within five minutes):")
        say(link)


def _placed(pointing: Pointing, folder: Path | None) -> Pointing:
    """With its files written."""
    if folder is None:
        return pointing
    for name, text in pointing.files.items():
        file = folder / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)
    for made in pointing.history:
        os.makedirs(made, mode=0o700, exist_ok=True)
    for name, target in pointing.links.items():
        (folder / name).symlink_to(target)
    return msgspec.structs.replace(
        pointing,
        set={name: value.replace(FOLDER, str(folder)) for name, value in pointing.set.items()},
        options=tuple(
            tuple(text.replace(FOLDER, str(folder)) for text in option) for option in pointing.options
        ),
    )


def _environment(pointing: Pointing) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if name not in pointing.unset}
    return environ | pointing.set | _past_proxies(environ)


def _past_proxies(environ: dict[str, str]) -> dict[str, str]:
    """A gateway on this machine is reached without any proxy."""
    if not any(environ.get(name) for name in _PROXIES):
        return {}
    said = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    hosts = [host.strip() for host in said.split(",") if host.strip()]
    if "*" in hosts:
        return {}
    whole = ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])
    return {"no_proxy": whole, "NO_PROXY": whole}


def _become(task: Launch, pointing: Pointing, environ: dict[str, str]) -> int:
    # Python ignores these, and a program inherits that.
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(task.program, [task.program, *pointing.arguments(task.own_arguments)], environ)
    except OSError as fault:
        complain(f"{one_line(task.program)} cannot be run: {fault.strerror or fault}")
    return NOT_EXECUTABLE


def _line(task: Launch, door: Door, what: str, pointing: Pointing) -> str:
    """What was set, in one line of the terminal."""
    model = one_line(door.model) or "the models it requests"
    text = f"{one_line(Path(task.program).name)} on {door.url} ({what}), {model}"
    width = shutil.get_terminal_size().columns - len("wireglot: ") if sys.stderr.isatty() else 1000
    names = list(pointing.set)
    for number in range(len(names), 0, -1):
        more = f" and {len(names) - number} more" if number < len(names) else ""
        line = f"{text}; set {', '.join(names[:number])}{more}"
        if len(line) <= width:
            return line
    line = f"{text}; set {count(len(names), 'variable')}"
    return line if len(line) <= width else line.replace(f" ({what})", "", 1)


def _print_env(task: Launch, file: ConfigFile) -> int:
    """Print variables for a shell. Nothing is started, and no file is written."""
    if _needs_folder(task.point(Door("", ""))):
        raise Unusable(f"{task.client} needs temporary files: start it with `wireglot run {task.client}`")
    door = _lasting_door(task, file)
    pointing = task.point(door)
    for name in pointing.unset:
        print(f"unset {name}")
    for name, value in pointing.set.items():
        if name in pointing.optional:
            continue
        # A secret that is in the shell's environment already is not printed.
        same = value == os.environ.get(KEY)
        print(f'export {name}="${KEY}"' if same and name != KEY else f"export {name}={shlex.quote(value)}")
    options = [option for option in pointing.options if not any(FOLDER in text for text in option)]
    if options:
        reported = shlex.join([task.program, *(text for option in options for text in option)])
        complain(f"also required as options: {reported}")
    return OK


def _print_settings(task: Launch, file: ConfigFile) -> int:
    settings, place = PRINTED[task.client]
    print(settings(_lasting_door(task, file)))
    complain(place)
    return OK


def _lasting_door(task: Launch, file: ConfigFile) -> Door:
    """The gateway that runs, or the one that `wireglot serve` would start."""
    url = task.url or running_url(file.path, os.environ)
    if url:
        joined = join(url, _ask_client_key)
        if task.model and (refusal := joined.refusal(task.model)):
            raise Unusable(refusal)
        return _joined(task, joined).door
    file = trusted_config(task.config)
    choice = Chooser(file, os.environ, lambda whose, variable, try_key, reason="": "").choose(
        task.model, task.dialect, task.own_model
    )
    server = choice.settings.server
    complain("no gateway runs yet: start it with `wireglot serve`")
    return Door(
        f"http://{server.host}:{server.port}",
        os.environ.get(KEY) or ANY_KEY,
        choice.model,
        choice.context(task.dialect),
        choice.names(task.dialect),
    )


def _needs_folder(pointing: Pointing) -> bool:
    return any(FOLDER in value for name, value in pointing.set.items() if name not in pointing.optional)


def _ask_client_key(url: str, try_key: TryKey) -> str:
    return ask_key(f"the gateway at {url}", KEY, try_key)
