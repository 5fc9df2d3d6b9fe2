"""A provider's failure in words that people can act on: who failed, its own message, what to do.

The URL, the key and the line of the configuration are meant for the operator: they go to the log and the
trace, and to callers on the same machine that need no key.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

import msgspec

from wireglot.gateway.relay.sign_ins import SIGN_IN_FAILED
from wireglot.gateway.settings import Provider
from wireglot.gateway.targets.routing import Target
from wireglot_core.ir.errors import ApiError, legible
from wireglot_core.ir.failures import AttemptFailed

_VERBATIM: Final = frozenset({"context_overflow", "content_policy"})
"""Clients react to the exact wording of these."""
_MASKED_KEY: Final = re.compile(r"\S*\*{3,}\S*")
"""Providers repeat the ends of a key that they refuse: `sk-ab***********yz`."""
# Characters of a provider's message about its key.
_MAX_SAID_LETTERS: Final = 300


def explained(failed: AttemptFailed, target: Target, url: str = "") -> AttemptFailed:
    """The failure with an explanation. `url`: the one that was called, if any."""
    if failed.blame == "gateway":
        return failed  # the gateway itself has no room
    provider, error = target.provider, failed.error
    host = _host(url or provider.spec.base_url)
    name = provider.name
    if failed.blame == "credential":
        fix = failed.fix
        failed = _rejected(failed, name)
        failed.fix = (
            f"{fix} ({_place_of(provider)}, login)" if fix else f"{_key_of(provider)}; called at {host}"
        )
        return failed
    message = error.message
    match failed.blame:
        case "quota":
            message = f"{name}: {message} (the operator of this gateway must check the account)"
            failed.fix = f"{_key_of(provider)}; called at {host}"
        case "connection" | "timeout":
            message = f"{name}: {message}"
            if error.code == "upstream_unavailable":
                message += " (try again later, or a model of another provider)"
            failed.fix = f"called at {host}; {_place_of(provider)}, base_url and timeouts"
        case "model":
            message = f"{name}: {message} (a list of models: GET /v1/models)"
            failed.fix = f"called at {host}"
        case _ if error.kind not in _VERBATIM:
            message = f"{name}: {message}"
            failed.fix = f"called at {host}"
    if message != error.message and not error.message.startswith((f"{name}/", f"{name} ")):
        failed.error = msgspec.structs.replace(error, message=legible(message))
    return failed


def _rejected(failed: AttemptFailed, name: str) -> AttemptFailed:
    """A provider's rejection of its key, never reported as a 401: the client would discard its own key."""
    said = own_words(failed.error)
    says = f" (it says: {said})" if said else ""
    if failed.error.code == SIGN_IN_FAILED:
        text = f"this gateway cannot sign in to {name}{says}: its operator must fix that"
    elif failed.error.kind == "permission":
        text = f"{name} does not permit this with the gateway's key{says}: its operator can change that"
    else:
        text = f"{name} does not accept this gateway's key{says}: its operator must set a valid one"
    message = legible(f"upstream credential rejected: {text}")
    return AttemptFailed(ApiError("server", message, status=502, code="upstream_auth_failed"), "credential")


def own_words(error: ApiError) -> str:
    """The provider's message as it may be reported: one line, without any part of a key."""
    return _MASKED_KEY.sub("[redacted]", legible(error.message, _MAX_SAID_LETTERS))


def _key_of(provider: Provider) -> str:
    sources = dict.fromkeys(credential.secret.source for credential in provider.credentials)
    reported = [source.removeprefix("env:") for source in sources if source != "config"]
    signs_in = any(credential.login is not None for credential in provider.credentials)
    where = f"{_place_of(provider)}, {'login' if signs_in else 'api_key'}"
    return f"key from {', '.join(reported)} ({where})" if reported else f"key of {where}"


def _place_of(provider: Provider) -> str:
    table = f"[providers.{provider.name}]"
    return f"{table} at {provider.stated}" if provider.stated else table


def _host(url: str) -> str:
    place = urlsplit(url)
    return f"{place.hostname}:{place.port}" if place.port else place.hostname or "an unknown host"
