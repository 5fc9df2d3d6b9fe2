"""The text of the configuration. Prose stands behind `# `, settings to be switched on behind a bare `#`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

import msgspec

from wireglot.cli.ask_providers import host_of
from wireglot.cli.init.candidates import Candidate, Found
from wireglot.cli.paint import count
from wireglot.gateway.config.providers import DEMO
from wireglot.providers import spec as catalog

_DEMO_MODEL: Final = "demo/demo"
_MODEL_OF_YOURS: Final = "NAME-OF-A-MODEL"
_NOTE_COLUMN: Final = 40

_KEYS: Final = """
# Clients need no key while there is none. `wireglot keys create NAME` makes one and shows it once; or one
# stands here by its hash: printf %s THE-KEY | sha256sum
#[keys]
#laptop = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

# A key with budgets. Money is counted in `currency` (USD), by the list prices that `wireglot models` shows.
#[keys.team]
#hash = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#requests_per_minute = 60
#tokens_per_day = 2000000
#cost_per_month = 50
"""


def config_text(found: Found, today: date) -> str:
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
        f"# Wireglot's configuration, written by `wireglot init` on {today}. It holds no secret.\n"
        "#\n"
        "#   wireglot config check     is it right, and what does it come to\n"
        "#   wireglot doctor           is everything well around it\n"
        "#   wireglot run claude       start a client on it\n"
        "#   wireglot serve            keep it running, for any client\n"
        "#\n"
        "# A running gateway takes up changes by itself. Every setting: docs/configuration.md"
    )


def _server() -> str:
    return (
        "[server]\n"
        'host = "127.0.0.1"                      # beyond this machine: needs a key in [keys], see below\n'
        "port = 8484"
    )


def _providers_head() -> str:
    return (
        "# Who is asked. `env:NAME` is a key of the environment, or one that `wireglot run` has kept.\n"
        "# Providers of the catalog whose key is there are on without being named, unless you say so:\n"
        "#[providers]\n"
        "#discover = false"
    )


def _block(each: Candidate) -> str:
    head = _noted(f"[providers.{each.name}]", f"{each.provider.spec.title}: {_told(each)}")
    return f'{head}\napi_key = "env:{each.variable}"' if each.variable else head


def _off_block(each: Candidate, today: date) -> str:
    spec = each.provider.spec
    if each.is_local:
        where = host_of(spec.base_url)
        why = "was not asked" if each.answered is None else "did not answer"
        return f"# {spec.title} {why} at {where}. When it runs:\n#[providers.{each.name}]"
    return (
        f"# {spec.title} did not take the key in {each.variable} on {today}. Once that is a valid one:\n"
        f'#[providers.{each.name}]\n#api_key = "env:{each.variable}"'
    )


def _login_block(name: str, sign: str) -> str:
    return (
        f"# {catalog.provider(name).title}: {sign} is set. What else it wants: docs/clouds.md\n"
        f"# [providers.{name}]"
    )


def _demo(*, alone: bool) -> str:
    if alone:
        return (
            "# No provider has answered yet: a model inside this program does, for trying things out.\n"
            f"[providers.{DEMO}]"
        )
    return f"# A model inside this program, for trying things out: {_DEMO_MODEL}\n#[providers.{DEMO}]"


def _models(on: Sequence[Candidate]) -> str:
    names = list(_models_of(on)) or list(_demo_models())
    first, second = names[0], names[1] if len(names) > 1 else names[0]
    chain = f"[{_quoted(first)}, {_quoted(second)}]" if second != first else f"[{_quoted(first)}]"
    lines = [
        "# Where a name leads that a client asks for. `provider/model` needs no rule: `wireglot models`.",
        "[models]",
        "# Claude Code asks for claude-... by itself. All of it to one model:",
        f'#"claude-*" = {_quoted(first)}',
        "# A name of your own with a fallback: the next is asked when the one before fails.",
        f"#fast = {chain}",
        "# Only for requests that want to think hard:",
        f'#deep = [{{ to = {_quoted(first)}, effort = ["high"] }}, {{ to = {_quoted(second)} }}]',
    ]
    return "\n".join(lines)


def _models_of(on: Sequence[Candidate]) -> Iterator[str]:
    """One of each provider, then a second of the first."""
    for each in on:
        yield f"{each.name}/{next(iter(model_names(each)), _MODEL_OF_YOURS)}"
    if len(on) == 1:
        yield from (f"{on[0].name}/{name}" for name in list(model_names(on[0]))[1:2])


def _demo_models() -> Iterator[str]:
    known = (entry.match for entry in catalog.provider(DEMO).models if entry.is_name)
    yield from (f"{DEMO}/{name}" for name in known)


def model_names(each: Candidate) -> Iterator[str]:
    """Those that the catalog knows and the provider lists, then all that either does."""
    listed = each.answered.models if each.answered is not None else ()
    spec = each.provider.spec
    known = [entry.match for entry in spec.models if entry.is_name and not entry.retired]
    both = [name for name in known if name in listed]
    yield from both or known or listed


def _told(each: Candidate) -> str:
    answered = each.answered
    if answered is None:
        return "not asked"
    if answered.is_on:
        return f"answered, {count(len(answered.models), 'model')}" if answered.models else "answered"
    return "did not answer" if answered.outcome == "silent" else "answered with an error"


def _quoted(name: str) -> str:
    return msgspec.json.encode(name).decode()


def _noted(line: str, note: str) -> str:
    return f"{line.ljust(_NOTE_COLUMN - 1)} # {note}"
