"""Which model a client is given by a gateway of its own, and what that gateway needs for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from wireglot.cli.argument_parser import near
from wireglot.cli.paint import one_line
from wireglot.cli.trust import ConfigFile
from wireglot.gateway import config
from wireglot.gateway.pages.models import listed, models
from wireglot.gateway.settings import Settings
from wireglot.gateway.targets.routing import Unroutable, named_targets, route
from wireglot.providers import spec as catalog

DEMO: Final = "demo"
DEMO_MODEL: Final = "demo/demo"
_ONLY_DEMO: Final = "no provider's key was found: a demo model answers; --model asks for a key"


class NoModel(Exception):
    """In words for people."""


class Choice(msgspec.Struct, frozen=True):
    """What a gateway is to serve."""

    settings: Settings
    environ: Mapping[str, str]
    """With a key that was asked for."""
    overrides: Mapping[str, Any]
    model: str = ""
    """Empty: the client's own names lead somewhere."""
    remark: str = ""

    def context(self, dialect: str) -> int:
        found = listed(self.settings, self.model, dialect) if self.model else None
        return found.context if found is not None else 0

    def names(self, dialect: str) -> tuple[str, ...]:
        """All that can be asked for by the name of its provider: a bare one may mean another tomorrow."""
        return tuple(model.id for model in models(self.settings, dialect) if "/" in model.id)


class Chooser:
    """`ask_key` is given a provider's title and the variable of its key, and gives "" if it cannot ask."""

    def __init__(
        self, file: ConfigFile, environ: Mapping[str, str], ask_key: Callable[[str, str], str]
    ) -> None:
        self._file = file
        self._environ = dict(environ)
        self._ask_key = ask_key

    def choose(self, wanted: str, dialect: str, own_model: str) -> Choice:
        """Raises NoModel, or a ConfigError. `own_model`: one that the client asks for if it is told none."""
        settings = self._load({})
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
        first = next((model.id for model in models(settings, dialect)), "")
        if not first:
            raise NoModel("no provider that is on lists a model: name one with --model PROVIDER/MODEL")
        return Choice(settings, self._environ, {}, first, remark)

    def _lacks_key_of_rule(self, settings: Settings, model: str, dialect: str) -> bool:
        """Whether a rule of the user leads a model to a provider without its key."""
        ruled = bool(model) and named_targets(settings, model) != [model]
        return ruled and not leads(settings, model, dialect) and _lacking_key(settings, model) is not None

    def _demo(self, wanted: str, settings: Settings) -> Choice:
        """No key is needed, and none is spent."""
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
                raise NoModel(one_line(str(nowhere))) from None
        return Choice(settings, self._environ, {}, wanted)

    def _with_key(self, settings: Settings, wanted: str, dialect: str, nowhere: str = "") -> Settings:
        """The settings with the key that a model's provider lacks, which its user is asked for."""
        lacking = _lacking_key(settings, wanted)
        if lacking is None:
            meant = near(wanted, [model.id for model in models(settings, dialect)])
            hint = f"; did you mean {meant}?" if meant and "did you mean" not in nowhere else ""
            raise NoModel(f"{one_line(nowhere)}{hint}")
        title, variable = lacking
        key = self._ask_key(title, variable)
        if not key:
            raise NoModel(f"no key for {one_line(title)}: set {variable}")
        self._environ[variable] = key
        return self._load({})

    def _load(self, overrides: Mapping[str, Any]) -> Settings:
        return config.load(
            self._file.path,
            environ=self._environ,
            overrides=overrides,
            create_secret=False,
            content=self._file.content,
            keys_needed=False,
        )


def leads(settings: Settings, model: str, dialect: str) -> bool:
    """Whether a request for it would go anywhere."""
    try:
        return bool(route(settings, model, dialect))
    except Unroutable:
        return False


def _lacking_key(settings: Settings, wanted: str) -> tuple[str, str] | None:
    """The title of the provider that a model is of, and the variable of its key, if that is all it lacks."""
    known = sorted(catalog.names(), key=lambda name: (not catalog.provider(name).home, name))
    for target in named_targets(settings, wanted):
        prefix, slash, _ = target.partition("/")
        if slash and prefix in settings.off:
            return (catalog.provider(prefix).title if prefix in known else prefix), settings.off[prefix]
        if slash and prefix in known:
            found = prefix
        else:
            # Listed by its own name: a pattern of another provider may fit anything.
            lists = [n for n in known if any(entry.match == target for entry in catalog.provider(n).models)]
            found = lists[0] if lists else ""
        if not found or found in settings.providers:
            continue
        spec = catalog.provider(found)
        if spec.auth != "none" and spec.api_key_env:
            return spec.title, settings.off.get(found, spec.api_key_env[0])
    return None
