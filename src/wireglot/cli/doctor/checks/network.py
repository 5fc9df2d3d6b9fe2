"""The way to each provider: its name, its address, its certificate, a proxy, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wireglot.cli.ask_providers import Answered
from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, ok, problem, warning
from wireglot.cli.trust import trust_command
from wireglot.gateway.config.urls import is_local
from wireglot.gateway.settings import Provider

_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_SLOW_MILLISECONDS: Final = 3000


def look_at_network(case: Case) -> Iterator[Finding]:
    if case.foreign and case.path is not None:
        yield warning(
            f"no provider was called: {case.file} says where your keys go, and you have not approved it",
            f"look at it, then: {trust_command(case.path)}",
        )
        return
    if case.offline:
        yield ok("nobody was asked (--offline)")
        return
    seen: set[tuple[str, str]] = set()
    for answered in case.answers:
        place = answered.host, answered.outcome
        if answered.outcome != "no-login" and place not in seen:
            seen.add(place)
            yield _judged(case, case.loaded.providers[answered.provider], answered)


def _judged(case: Case, provider: Provider, answered: Answered) -> Finding:
    name, host = answered.provider, answered.host
    through = " through its proxy" if provider.proxy else ""
    if answered.outcome == "silent":
        return problem(
            f"{name}: {host} does not answer{through}: {answered.words}", _fix(case, provider, answered)
        )
    if answered.outcome == "failing":
        return warning(
            f"{name}: {host} answers with status {answered.status}: {answered.words}",
            "try again later; a fallback in [models] goes on without it",
        )
    if answered.outcome == "other":
        return problem(
            f"{name}: what answers at {host} is no {provider.spec.title} ({answered.words})",
            f"[providers.{name}] in {case.file}: base_url",
        )
    if answered.milliseconds > _SLOW_MILLISECONDS:
        return warning(
            f"{name}: {host} takes {answered.milliseconds / 1000:.1f} s to answer a small question{through}",
            f"curl -sS -o /dev/null -w '%{{time_namelookup}} %{{time_connect}} %{{time_appconnect}}\\n' https://{host}",
        )
    return ok(f"{name}: {host} answers in {answered.milliseconds} ms{through}")


def _fix(case: Case, provider: Provider, answered: Answered) -> str:
    """By what went wrong on the way."""
    table = f"[providers.{provider.name}] in {case.file}"
    host = answered.host.partition(":")[0]
    if provider.proxy:
        return f"{table}: proxy, or see whether the proxy runs"
    if is_local(host):
        return f"start {provider.spec.title} there, or correct {table}: base_url"
    proxy = next((name for name in _PROXIES if case.environ.get(name)), "")
    if proxy:
        return f'{table}: proxy = "env:{proxy}" (proxies of the environment are not used by themselves)'
    match answered.problem:
        case "dns":
            return f"see whether this machine knows the name: getent hosts {host}"
        case "tls":
            return (
                "where a company looks into connections, name its authority: "
                "export SSL_CERT_FILE=/path/to/authorities.pem"
            )
        case _:
            return f"see whether a firewall is in the way: curl -v https://{host}"
