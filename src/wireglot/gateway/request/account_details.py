"""Removes details of the operator's account from upstream errors: account and project ids, ARNs, hosts.

A caller with a client key uses the operator's account and does not own it. A provider's message about a
request is passed on unless it names the account; one about anything else is replaced by a general sentence.
The log and the trace have the provider's own words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import msgspec

from wireglot.gateway.settings import Provider
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.ir.verdict import VERDICTS
from wireglot_core.providers import spec as catalog

_ABOUT_REQUEST: Final = frozenset(
    {"invalid_request", "context_overflow", "too_large", "conflict", "content_policy"}
)
"""Kinds whose message helps the caller to correct the request."""
_OWN_CODES: Final = VERDICTS | {
    "upstream_error", "upstream_unavailable", "upstream_timeout", "server_is_overloaded",
    "rate_limit_exceeded", "upstream_auth_failed", "internal_error", "storage_unavailable",
}  # fmt: skip
"""Codes of the gateway's own errors. A provider's error has a type, too."""

_SENTENCES: Final[dict[ErrorKind, str]] = {
    "invalid_request": "the provider refused the request",
    "context_overflow": "prompt is too long",
    "auth": "upstream credential rejected",
    "billing": "the provider's account cannot pay for the request",
    "permission": "the provider does not allow the request",
    "not_found": "the provider does not have this model or resource",
    "conflict": "the request conflicts with another one",
    "too_large": "the request is too large for the provider",
    "rate_limit": "the provider's rate limit is reached",
    "overloaded": "the provider is overloaded",
    "server": "the provider failed",
    "timeout": "the provider did not answer in time",
    "content_policy": "the provider refused the content of the request",
}
_DETAILS: Final = "; the operator finds the details in the gateway's log"
_RECOVERY: Final = re.compile(
    r"prompt is too long(?:: \d+ tokens > \d+ maximum)?"
    r"|input length and `?max_tokens`? exceed context limit(?:: \d+ \+ \d+ > \d+)?"
    r"|Input is too long\.|The (?:request|message) size \(?\d+ bytes\)? exceeds [\d.]+ ?[KMG]B limit",
    re.IGNORECASE,
)
"""Sentences by which clients know to shorten a conversation."""

# Searched for in all that a provider repeats of a request: no part may begin with an unbounded repetition.
# Compiled with the first error: that takes 10 ms, which a start should not wait for.
_ACCOUNT: Final = (
    r"\barn:[a-z0-9-]*:"
    r"|(?<![\w.])(?:\d{10,}|\d{4}-\d{4}-\d{4})(?![\w.])"  # ids of Amazon's accounts and Google's projects
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"  # ids of Azure's subscriptions and tenants
    r"|\b(?:org|proj|acct|wrkspc|sub|ak)[-_](?=\w{0,40}\d)\w{3,}"
    r"|\b(?:projects?|accounts?|subscriptions?|tenants?|organi[sz]ations?|workspaces?|consumer"
    r"|resource ?groups?|deployments?)(?:[ _-]?(?:id|number|name))?(?:[\"'`:=/\s#(<\[]|\\){1,6}"
    r"(?=[\w.:-]{0,80}[\d-])[\w.:-]{3,}"
    r"|[a-z0-9_-]\.(?:amazonaws\.com|amazonaws\.com\.cn|googleapis\.com|gserviceaccount\.com|azure\.com"
    r"|azure\.us|azure\.cn|azure-api\.net|azurewebsites\.net|windows\.net|microsoftonline\.com"
    r"|internal|local|localdomain|svc|lan|corp|intranet|cluster)\b"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"
    r"|[\w.+-]@[\w-]{1,64}\.[\w.-]"
)
_QUOTED: Final = (" (it says: ", "): ")
"""Surround a provider's message about a rejected key, in our own sentence (`relay/explanation.py`)."""
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_]{0,63}|\d{1,5}")
"""The form of a provider's type or code. Ids have digits and dashes."""
_SHORTEST_VALUE: Final = 5
_COMMON_VALUES: Final = frozenset({"global", "default", "localhost"})
_PLACES: Final = re.compile(r"/(?:projects|accounts|subscriptions|resourcegroups)/([^/?]+)", re.IGNORECASE)
"""Parts of URLs that name an account."""
_ACCOUNT_MODEL: Final = ("arn:", "projects/")


def without_account(error: ApiError, provider: Provider | None, url: str = "") -> ApiError:
    """`provider`: the one that was called, at `url`."""
    known = _values(provider, url)
    message, param = error.message, error.param
    is_own = not error.type and error.code in _OWN_CODES
    if is_own:
        message = _without_quoted(message)
    if (error.kind not in _ABOUT_REQUEST and not is_own) or names_account(message, known):
        message = _sentence(error)
    if not param.isascii() or names_account(param, known):
        param = ""
    return msgspec.structs.replace(
        error,
        message=message,
        type=_as_word(error.type, known),
        code=_as_word(error.code, known),
        param=param,
        request_id="",
        extra=None,
    )


def may_pass(error: ApiError, text: str, provider: Provider | None, url: str = "") -> bool:
    """Whether the body of an error may be passed on unchanged."""
    return error.kind in _ABOUT_REQUEST and not names_account(text, _values(provider, url))


def names_account(text: str, known: tuple[str, ...] = ()) -> bool:
    """`known`: values of the configuration, in lower case."""
    lower = text.lower()
    return any(value in lower for value in known) or re.search(_ACCOUNT, text, re.IGNORECASE) is not None


def without_account_text(text: str, provider: Provider | None) -> str:
    """A logged error message, for a viewer who does not own the account."""
    return _SENTENCES["server"] + _DETAILS if names_account(text, _values(provider, "")) else text


def holds_account(text: str, provider: Provider | None, url: str) -> bool:
    """Whether a text that is not only a provider's contains what the configuration knows of the account. The
    host of a vendor is no secret: people write about it."""
    lower, public = text.lower(), ""
    if provider is not None and provider.name in catalog.names():
        vendors = catalog.provider(provider.name).base_url
        public = (urlsplit(vendors).hostname or "") if "{" not in vendors else ""
    return any(value in lower for value in _values(provider, url) if value != public)


def shown_model(model: str) -> str:
    """The name of an upstream model; "" if it contains that of an account."""
    return "" if any(mark in model for mark in _ACCOUNT_MODEL) else model


@lru_cache(maxsize=1024)
def shown_route(provider: str, model: str) -> str:
    """The target of a request, for a caller with a client key. Cached: used with every answer, for few
    names."""
    model = shown_model(model)
    return f"{provider}/{model}" if model else provider


def _without_quoted(message: str) -> str:
    before, after = _QUOTED
    start, end = message.find(before), message.rfind(after)
    return message[:start] + message[end + 1 :] if 0 <= start < end else message


def _sentence(error: ApiError) -> str:
    sentence = _SENTENCES[error.kind]
    if error.kind == "context_overflow":
        found = _RECOVERY.search(error.message)
        return found[0] if found is not None else sentence
    return sentence + _DETAILS


def _as_word(value: str, known: tuple[str, ...]) -> str:
    return value if _WORD.fullmatch(value) and value.lower() not in known else ""


def _values(provider: Provider | None, url: str) -> tuple[str, ...]:
    """What the configuration knows of the account: the provider's variables, and its host."""
    found = [urlsplit(url).hostname or "", *_PLACES.findall(url)]
    if provider is not None:
        found += [*provider.variables.values(), urlsplit(provider.spec.base_url).hostname or ""]
    return tuple(
        value.lower()
        for value in found
        if len(value) >= _SHORTEST_VALUE and value.lower() not in _COMMON_VALUES
    )
