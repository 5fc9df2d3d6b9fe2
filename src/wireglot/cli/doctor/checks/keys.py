"""The key or login of each provider that is on: is it there, is it taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wireglot.cli.ask_providers import Answered
from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, note, ok, problem, warning
from wireglot.gateway.config.kept_keys import kept_file, read_kept
from wireglot.gateway.config.providers import DEMO, told_keys
from wireglot.gateway.settings import Provider

_SAMPLE: Final = "kimi/kimi-k3"


def look_at_keys(case: Case) -> Iterator[Finding]:
    with_keys = [provider for provider in case.asked if provider.credentials]
    if not with_keys and set(case.loaded.providers) <= {DEMO}:
        yield note(
            "no provider's key is here: only the demo model answers",
            f"export the key of one (`wireglot models` names it), or: wireglot run claude --model {_SAMPLE}",
        )
    if case.offline:
        for provider in with_keys:
            yield ok(f"{provider.name}: {told_keys(provider.credentials)}, not tried (--offline)")
    else:
        keyed = {provider.name: provider for provider in with_keys}
        for answered in case.answers:
            if answered.provider in keyed:
                yield from _judged(case, keyed[answered.provider], answered)
    yield from _hidden(case)


def _judged(case: Case, provider: Provider, answered: Answered) -> Iterator[Finding]:
    name, source = answered.provider, answered.source.removeprefix("env:")
    says = f" (it says: {answered.words})" if answered.words else ""
    match answered.outcome:
        case "taken":
            yield ok(f"{name} takes its key ({source})")
        case "refused":
            yield problem(f"{name} refuses the key of {source}{says}", _renewal(case, provider, answered))
        case "no-login":
            fix = answered.fix or f"see to [providers.{name}], login, in {case.file}"
            yield problem(f"{name}: it cannot be signed in to: {answered.words}", fix)
        case "forbidden":
            fix = f"see to the key's rights at {name}; where it lets in clients that it knows only, start one"
            yield warning(f"{name} does not let the key of {source} ask{says}", fix)
        case "unpaid":
            yield problem(
                f"{name} takes its key, and not its account{says}", f"pay at {name}, or remove its key"
            )
        case "busy":
            yield warning(f"{name} turns this key away for now{says}", "wait, and run wireglot doctor again")
        case _:  # whether it answers is the network's matter
            yield ok(f"{name} has a key ({source}), and could not be asked about it")


def _renewal(case: Case, provider: Provider, answered: Answered) -> str:
    scheme, _, where = answered.source.partition(":")
    match scheme:
        case "env":
            return f"export {where}=... with a valid key, and start the gateway again"
        case "keyring" | "file" if provider.spec.api_key_env and not provider.stated:
            name = where if scheme == "keyring" else provider.spec.api_key_env[0]
            return f"export {name}=... with a valid key (the kept one is in {where})"
        case "file":
            return f"put a valid key into {where}"
        case _:
            return f"[providers.{provider.name}] in {case.file}: api_key"


def _hidden(case: Case) -> Iterator[Finding]:
    place = kept_file(case.environ)
    for name, secret in read_kept(place, []).items():
        set_to = case.environ.get(name, "").strip()
        if set_to and set_to != secret.value:
            yield note(
                f"{name} was kept, and is set to another value in the environment, which wins",
                f"unset {name}, or remove its line from {place}",
            )
