"""Checks of providers and clients: keys, the network, the clock, prices."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlsplit

from wireglot.cli.ask_providers import LoadedModel
from wireglot.cli.doctor.case import DoctorCase, DoctorFinding, note, ok, problem, warning
from wireglot.cli.run.clients import CLIENTS
from wireglot.cli.terminal import count
from wireglot.cli.trust import trust_command
from wireglot.gateway.config.kept_keys import kept_file, read_kept
from wireglot.gateway.config.keys import MONEY
from wireglot.gateway.config.prices import price_ages, stale_prices
from wireglot.gateway.config.providers import DEMO, format_keys
from wireglot.gateway.config.urls import is_local, is_loopback
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.gateway.relay.key_checks import ProviderAnswer, host_of
from wireglot.gateway.relay.web_tools import search_account
from wireglot.gateway.settings import Provider, SearchSettings
from wireglot.http.client.client import HttpTransport
from wireglot.logins.web import Unreachable, ask
from wireglot.web.backends import FORMS, HttpSearch
from wireglot.web.contract import Hit, Query, WebFailed
from wireglot_core.extras import upgrade_hint

_SAMPLE: Final = "kimi/kimi-k3"


def look_at_keys(case: DoctorCase) -> Iterator[DoctorFinding]:
    with_keys = [provider for provider in case.asked if provider.credentials]
    if not with_keys and set(case.loaded.providers) <= {DEMO}:
        yield note(
            "no provider key found: only the demo model is available",
            f"set a provider key (see `wireglot models`), or: wireglot run claude --model {_SAMPLE}",
        )
    if case.offline:
        for provider in with_keys:
            yield ok(f"{provider.name}: {format_keys(provider.credentials)}, not tested (--offline)")
    else:
        keyed = {provider.name: provider for provider in with_keys}
        for answered in case.answers:
            if answered.provider in keyed:
                yield from _judged_key(case, keyed[answered.provider], answered)
    yield from _hidden(case)


def _judged_key(case: DoctorCase, provider: Provider, answered: ProviderAnswer) -> Iterator[DoctorFinding]:
    name, source = answered.provider, answered.source.removeprefix("env:")
    says = f" (message: {answered.words})" if answered.words else ""
    match answered.outcome:
        case "taken":
            yield ok(f"{name} accepts its key ({source})")
        case "refused":
            yield problem(f"{name} rejects the key in {source}{says}", _renewal(case, provider, answered))
        case "no-login":
            fix = answered.fix or f"check [providers.{name}], login, in {case.file}"
            yield problem(f"{name}: sign-in failed: {answered.words}", fix)
        case "forbidden":
            fix = f"check the key's permissions at {name}; if it accepts known clients only, start one"
            yield warning(f"{name} denies access to the key in {source}{says}", fix)
        case "unpaid":
            yield problem(
                f"{name} accepts its key, but not its account{says}",
                f"check billing at {name}, or remove its key",
            )
        case "busy":
            yield warning(f"{name} rejects this key for now{says}", "wait, and run wireglot doctor again")
        case _:  # the network check reports whether it answers
            yield ok(f"{name} has a key ({source}), which could not be tested")


def _renewal(case: DoctorCase, provider: Provider, answered: ProviderAnswer) -> str:
    scheme, _, where = answered.source.partition(":")
    match scheme:
        case "env":
            return f"export {where}=... with a valid key, and restart the gateway"
        case "keyring" | "file" if provider.spec.api_key_env and not provider.stated:
            name = where if scheme == "keyring" else provider.spec.api_key_env[0]
            return f"export {name}=... with a valid key (the stored key is in {where})"
        case "file":
            return f"put a valid key into {where}"
        case _:
            return f"[providers.{provider.name}] in {case.file}: api_key"


def _hidden(case: DoctorCase) -> Iterator[DoctorFinding]:
    place = kept_file(case.environ)
    for name, secret in read_kept(place, []).items():
        set_to = case.environ.get(name, "").strip()
        if set_to and set_to != secret.value:
            yield note(
                f"{name} is stored, but has another value in the environment, which takes precedence",
                f"unset {name}, or remove its line from {place}",
            )


_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
_SLOW_MILLISECONDS: Final = 3000
AGENT_TOKENS: Final = 32_768
"""A context that holds the tools of a coding agent and some turns."""


def look_at_network(case: DoctorCase) -> Iterator[DoctorFinding]:
    if case.foreign and case.path is not None:
        yield warning(
            f"no provider was called: {case.file} decides where your keys are sent, and is not approved",
            f"check it, then: {trust_command(case.path)}",
        )
        return
    if case.offline:
        yield ok("not checked (--offline)")
        return
    seen: set[tuple[str, str]] = set()
    for answered in case.answers:
        place = answered.host, answered.outcome
        if answered.outcome != "no-login" and place not in seen:
            seen.add(place)
            yield _judged_host(case, case.loaded.providers[answered.provider], answered)
    for loaded in case.loaded_models:
        yield _judged_context(loaded)
    login = case.loaded.login
    if login is not None and "oidc" in login.approval:
        yield _judged_issuer(case, login.issuer)


def _judged_context(loaded: LoadedModel) -> DoctorFinding:
    """Whether an agent's prompts fit into the context of a loaded model."""
    most = f" of {loaded.most}" if loaded.most else ""
    says = f"{loaded.provider}: {loaded.model} is loaded with a context of {loaded.size}{most} tokens"
    if loaded.size >= AGENT_TOKENS or (loaded.most and loaded.size >= loaded.most):
        return ok(says)
    fix = f"start the server with OLLAMA_CONTEXT_LENGTH={AGENT_TOKENS}"
    return warning(f"{says}: a longer prompt loads it again", fix)


def _judged_issuer(case: DoctorCase, issuer: str) -> DoctorFinding:
    """Whether people can sign in through it."""
    fix = f"check issuer of [login] in {case.file}: the URL that its openid-configuration names"
    try:
        answer = ask(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    except Unreachable as fault:
        return problem(f"no one can sign in: {fault}", fix)
    if answer.status != 200 or answer.document().get("issuer") != issuer:
        return problem(f"no one can sign in: {issuer} is not an OpenID Connect provider of this name", fix)
    return ok(f"sign-in through {issuer} is available")


def _judged_host(case: DoctorCase, provider: Provider, answered: ProviderAnswer) -> DoctorFinding:
    name, host = answered.provider, answered.host
    through = " through its proxy" if provider.proxy else ""
    if answered.outcome == "silent":
        return problem(
            f"{name}: {host} does not answer{through}: {answered.words}", _fix(case, provider, answered)
        )
    if answered.outcome == "failing":
        return warning(
            f"{name}: {host} answers with status {answered.status}: {answered.words}",
            "try again later; a fallback in [models] can replace it",
        )
    if answered.outcome == "other":
        return problem(
            f"{name}: the server at {host} is not {provider.spec.title} ({answered.words})",
            f"[providers.{name}] in {case.file}: base_url",
        )
    if answered.milliseconds > _SLOW_MILLISECONDS:
        return warning(
            f"{name}: {host} takes {answered.milliseconds / 1000:.1f} s to answer a small request{through}",
            f"curl -sS -o /dev/null -w '%{{time_namelookup}} %{{time_connect}} %{{time_appconnect}}\\n' https://{host}",
        )
    return ok(f"{name}: {host} answers in {answered.milliseconds} ms{through}")


def _fix(case: DoctorCase, provider: Provider, answered: ProviderAnswer) -> str:
    """The fix for a failed check."""
    table = f"[providers.{provider.name}] in {case.file}"
    host = answered.host.partition(":")[0]
    if provider.proxy:
        return f"{table}: proxy, or check that the proxy runs"
    if is_local(host):
        return f"start {provider.spec.title} there, or correct {table}: base_url"
    proxy = next((name for name in _PROXIES if case.environ.get(name)), "")
    if proxy:
        return f'{table}: proxy = "env:{proxy}" (proxies of the environment are not used automatically)'
    match answered.problem:
        case "dns":
            return f"check that the name resolves: getent hosts {host}"
        case "tls":
            return (
                "if a company proxy intercepts TLS, add its certificate authority: "
                "export SSL_CERT_FILE=/path/to/authorities.pem"
            )
        case _:
            return f"check for a firewall: curl -v https://{host}"


_TEST_QUERY: Final = "Python programming language"


def look_at_web(case: DoctorCase) -> Iterator[DoctorFinding]:
    """The backends of web search and web fetch."""
    search, fetch = case.loaded.search, case.loaded.fetch
    if search is not None:
        yield from _judged_search(case, search)
    if fetch is not None:
        yield ok("pages on public addresses can be fetched")
        if fetch.private_hosts:
            yield note(
                f"pages on {', '.join(fetch.private_hosts)} can also be fetched, by every client",
                f"[fetch] in {case.file}: private_hosts",
            )


def _judged_search(case: DoctorCase, search: SearchSettings) -> Iterator[DoctorFinding]:
    table = f"[search] in {case.file}"
    if search.backend == "model":
        yield ok(f"{search.model} searches the web")
        return
    title = FORMS[search.backend].title
    if search.backend == "google":
        yield warning(
            "Google ends the Custom Search JSON API on 2027-01-01, and accepts no new customers",
            f'{table}: backend = "brave", or another one',
        )
    key = f", key from {search.key.source}" if search.key.value else ""
    if not case.searches or case.offline:
        tried = "--offline" if case.offline else "--search sends one test search"
        yield ok(f"{title} searches the web{key}, not tested ({tried})")
        return
    started = case.clock()
    try:
        hits = asyncio.run(_test_search(search))
    except WebFailed as failed:
        yield problem(f"{title}: the search failed: {failed}", _search_fix(search, failed, table))
        return
    took = round(1000 * (case.clock() - started))
    if hits:
        yield ok(f"{title} found {count(len(hits), 'page')} in {took} ms{key}")
    else:
        yield warning(
            f"{title} found nothing for {_TEST_QUERY!r}",
            f"check allowed_domains and blocked_domains of {table}, and the search engines of the backend",
        )


async def _test_search(search: SearchSettings) -> Sequence[Hit]:
    assert search.backend != "model"
    transport = HttpTransport(ProcessLimits())
    try:
        backend = HttpSearch(search.backend, search_account(search), {"http": transport, "https": transport})
        return await backend.search(Query(_TEST_QUERY))
    finally:
        await transport.close()


def _search_fix(search: SearchSettings, failed: WebFailed, table: str) -> str:
    if search.backend == "searxng" and "403" in str(failed):
        return "add json to search.formats in the settings.yml of SearXNG"
    if search.backend == "searxng":
        return f"check url of {table}, and the log of SearXNG"
    return f"check key and url of {table}, and the account"


_TOLERATED_SECONDS: Final = 30.0
_REFUSED_SECONDS: Final = 240.0
"""Amazon rejects a signature that is five minutes off, Google a token that is not yet valid."""
_FIX: Final = "synchronize it: sudo timedatectl set-ntp true (macOS: sudo sntp -sS time.apple.com)"


def look_at_clock(case: DoctorCase) -> Iterator[DoctorFinding]:
    skews = [answered.skew for answered in case.answers if answered.skew is not None]
    if not skews:
        return  # no server has reported the time
    skew = median(skews)
    if abs(skew) <= _TOLERATED_SECONDS:
        yield ok(f"in agreement with {count(len(skews), 'provider')} within {max(1, round(abs(skew)))} s")
        return
    text = f"this machine's clock is {_reported(abs(skew))} {'behind' if skew > 0 else 'ahead'}"
    signs_in = any(
        credential.login is not None
        for provider in case.loaded.providers.values()
        for credential in provider.credentials
    )
    if signs_in and abs(skew) > _REFUSED_SECONDS:
        yield problem(f"{text}: logins and signatures are refused", _FIX)
    else:
        yield warning(f"{text}: budgets, expiry times and logs are wrong by that amount", _FIX)


def _reported(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.0f} hours"


def look_at_prices(case: DoctorCase) -> Iterator[DoctorFinding]:
    settings = case.loaded
    specs = [provider.spec for provider in settings.providers.values()]
    today = datetime.fromtimestamp(case.clock(), UTC).date()
    stale = stale_prices(specs, today)
    by_money = any(getattr(key.limits, name) for key in settings.keys for name in MONEY)
    for age in stale:
        fix = f"{upgrade_hint()}, or set prices in [prices] in {case.file} ({age.source})"
        yield (warning if by_money else note)(str(age), fix)
    ages = price_ages(specs, today)
    if ages and not stale:
        yield ok(f"the oldest list price is {count(max(0, ages[0].days), 'day')} old")


_SETTINGS: Final = {
    "aider": (".aider.conf.yml", ".env"),
    "claude": (".claude/settings.json", ".claude/settings.local.json"),
    "cline": (".cline/data/settings/providers.json",),
    "codex": (".codex/config.toml",),
    "continue": (".continue/config.yaml",),
    "copilot": (),
    "droid": (".factory/settings.json",),
    "gemini": (".gemini/settings.json", ".gemini/.env"),
    "goose": (".config/goose/config.yaml",),
    "hermes": (".hermes/config.yaml", ".hermes/.env"),
    "kimi": (".kimi/config.toml", ".kimi-code/config.toml"),
    "llm": (".config/io.datasette.llm/extra-openai-models.yaml",),
    "openclaw": (".openclaw/openclaw.json",),
    "opencode": (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
    "pi": (".pi/agent/models.json",),
    "qwen": (".qwen/settings.json", ".qwen/.env"),
}
"""Paths in the user's home."""
_VARIABLES: Final = (
    "ANTHROPIC_BASE_URL",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_HOST",
    "GOOGLE_GEMINI_BASE_URL",
    "CODE_ASSIST_ENDPOINT",
    "KIMI_MODEL_BASE_URL",
)
_NAMED_URL: Final = re.compile(
    rf"(?i)(?:{'|'.join(_VARIABLES)}|base_?url|api[_-]base|openai-api-base)[\"']?\s*[:=]\s*[\"']?(https?://[^\s\"',}}]+)"
)
"""The same in JSON, TOML, YAML and .env files."""
# Bytes of a local server's file that `doctor` reads.
_FILE_MAX_BYTES: Final = 256 * 1024


def look_at_clients(case: DoctorCase) -> Iterator[DoctorFinding]:
    here = [
        name
        for name, client in CLIENTS.items()
        if shutil.which(client.program, path=case.environ.get("PATH"))
    ]
    if not here:
        client = CLIENTS["claude"]
        yield note("no supported client found on the PATH", client.install)
    else:
        yield ok(
            f"found: {', '.join(CLIENTS[name].title for name in here)}; to start one: wireglot run {here[0]}"
        )
    for variable in _VARIABLES:
        if url := case.environ.get(variable, "").strip():
            yield _pointed(case, f"{variable} in this shell sends clients to", url, f"unset {variable}")
    home = case.environ.get("HOME", "")
    for name in here if home else ():
        for place in _SETTINGS[name]:
            for url in _urls(Path(home) / place):
                fix = f"wireglot run {name} overrides it for one run; or change the file"
                yield _pointed(case, f"{CLIENTS[name].title}: ~/{place} sends it to", url, fix)


def _urls(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            text = opened.read(_FILE_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("#", "//")))
    return list(dict.fromkeys(_NAMED_URL.findall("\n".join(lines))))


def _pointed(case: DoctorCase, reported: str, url: str, fix: str) -> DoctorFinding:
    """Only the host of a URL is reported: the rest may contain a key."""
    host = host_of(url) or "another host"
    port = _port(url)
    if is_loopback(host.partition(":")[0]) and port:
        if any(running.url.endswith(f":{port}") for running in case.running):
            return ok(f"{reported} {host}: your gateway, running")
        if case.settings is not None and port == case.settings.server.port:
            return warning(f"{reported} {host}: your gateway, not running", "wireglot serve")
    return note(f"{reported} {host}", fix)


def _port(url: str) -> int:
    try:
        return urlsplit(url).port or 0
    except ValueError:
        return 0
