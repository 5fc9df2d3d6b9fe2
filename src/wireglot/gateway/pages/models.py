"""The models a client may ask for, listed in the shape of the dialect that asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from wireglot.gateway.entry.callers import may_ask
from wireglot.gateway.errors import RequestError
from wireglot.gateway.pages import code_assist
from wireglot.gateway.pages.listed_model import ListedModel
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.settings import ClientKey, Provider, Settings
from wireglot.gateway.targets.routing import Unroutable, route
from wireglot.ir.errors import ClientFault
from wireglot.providers.spec import ModelSpec

_UNKNOWN_DATE: Final = "1970-01-01T00:00:00Z"
"""Anthropic's own way to say that a release date is not known."""

_LIMIT_MAX: Final = 1000
_ANTHROPIC_PAGE: Final = 20
_GEMINI_PAGE: Final = 50


class ModelPages:
    """Lists and single models; what Code Assist asks beside them."""

    OPERATIONS: Final = frozenset({"models", "model", "assist", "operation"})

    def __init__(self) -> None:
        self._known: tuple[Settings, tuple[ListedModel, ...]] | None = None

    async def answer(self, page: PageRequest) -> None:
        asked, models = page.asked, permitted(self._listed(page.settings), page.caller.key)
        document: dict[str, Any] | None
        try:
            match asked.operation:
                case "models":
                    document = render_list(asked.dialect, models, page.head.query)
                case "model":
                    page.record.model = asked.model
                    document = render_one(asked.dialect, models, asked.model) or _unlisted(page)
                case "operation":
                    document = code_assist.operation(asked.verb)
                case _:
                    document = code_assist.answer(asked.verb, page.document(), models)
        except ClientFault as fault:
            raise RequestError("bad", str(fault).removeprefix("$.")) from None
        if document is None:
            raise RequestError("not_found", f"there is nothing at {page.head.path}", code="unknown_url")
        page.send(document)

    def _listed(self, settings: Settings) -> tuple[ListedModel, ...]:
        if self._known is None or self._known[0] is not settings:
            self._known = (settings, models(settings))
        return self._known[1]


def _unlisted(page: PageRequest) -> dict[str, Any]:
    """A name that only a pattern of [models] or a provider's prefix leads on."""
    asked = page.asked
    found = listed(page.settings, asked.model.removeprefix("models/"))
    if found is None or not may_ask(page.caller.key, found.id):
        raise RequestError("not_found", f"model: there is no {asked.model!r} here", param="model")
    return render_model(asked.dialect, found)


def models(settings: Settings) -> tuple[ListedModel, ...]:
    """Names of rules first, then what each provider knows, bare and as `provider/model`. Each name is told
    with the route that a request for it takes; one that leads nowhere is not listed."""
    names = [rule.match for rule in settings.rules if "*" not in rule.match]
    for provider in settings.providers.values():
        for entry in provider.spec.models:
            if entry.is_name and not entry.retired:
                # A bare name that begins like another provider's would be asked of that one.
                prefix, slash, _ = entry.match.partition("/")
                if not slash or prefix not in settings.providers:
                    names.append(entry.match)
                names.append(f"{provider.name}/{entry.match}")
    found = (listed(settings, name) for name in dict.fromkeys(names))
    return tuple(model for model in found if model is not None)


def listed(settings: Settings, name: str) -> ListedModel | None:
    """What is known of a name a client may send, listed or not: a pattern of [models] may lead on too."""
    try:
        target = route(settings, name, "anthropic")[0]
    except Unroutable:
        return None
    spec = _entry(target.provider, target.model)
    return ListedModel(
        name,
        target.provider.name,
        target.model,
        spec,
        (spec.dialects if spec is not None else ()) or target.provider.spec.dialects,
        target.limits,
        _title(name, target.provider.name, spec),
    )


def permitted(listing: Iterable[ListedModel], key: ClientKey | None) -> tuple[ListedModel, ...]:
    """What a client key may ask for."""
    return tuple(model for model in listing if may_ask(key, model.id))


def render_list(dialect: str, listing: Sequence[ListedModel], query: str = "") -> dict[str, Any]:
    """One page. A cursor that names no model and a number that is none are the client's fault."""
    return _LISTS[dialect](listing, parse_qs(query, keep_blank_values=True))


def render_one(dialect: str, listing: Sequence[ListedModel], model_id: str) -> dict[str, Any] | None:
    """The listed model of that id, with Gemini's `models/` or without."""
    for wanted in dict.fromkeys((model_id, model_id.removeprefix("models/"))):
        for model in listing:
            if model.id == wanted:
                return render_model(dialect, model)
    return None


def render_model(dialect: str, model: ListedModel) -> dict[str, Any]:
    return _MODELS[dialect](model)


def _entry(provider: Provider, model: str) -> ModelSpec | None:
    """The entry with the model's own name: it has the figures, which a pattern of a family has not."""
    for entry in provider.spec.models:
        if entry.match == model:
            return entry
    return provider.spec.model(model)


def _title(name: str, provider: str, spec: ModelSpec | None) -> str:
    """A model's title stands for its own name; an alias is its own title."""
    if spec is None or not spec.title:
        return name
    if name == spec.match:
        return spec.title
    return f"{spec.title} ({provider})" if name == f"{provider}/{spec.match}" else name


# --- Anthropic


def _anthropic_list(listing: Sequence[ListedModel], query: dict[str, list[str]]) -> dict[str, Any]:
    limit = _number(query, "limit", _ANTHROPIC_PAGE)
    if "before_id" in query:
        end = _position(listing, query["before_id"][-1], "before_id")
        start = max(0, end - limit)
        more = start > 0
    else:
        start = _position(listing, query["after_id"][-1], "after_id") + 1 if "after_id" in query else 0
        end = min(len(listing), start + limit)
        more = end < len(listing)
    page = listing[start:end]
    return {
        "data": [_anthropic_model(model) for model in page],
        "has_more": more,
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
    }


def _anthropic_model(model: ListedModel) -> dict[str, Any]:
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.title or model.id,
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "active",
        "line": None,
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": model.context or None,
        "max_tokens": model.output or None,
        "capabilities": _capabilities(model),
    }


def _capabilities(model: ListedModel) -> dict[str, Any]:
    """What a Messages request to this model may ask for here. Batches have no route in the gateway; what
    only Anthropic's own servers do is offered where the upstream speaks their dialect."""
    limits = model.limits
    hosted = model.native and limits.hosted_tools
    words = model.thinks and limits.thinking in ("adaptive", "effort", "level")
    return {
        "batch": _support(False),
        "citations": _support(model.native),
        "code_execution": _support(hosted),
        "context_management": {
            "supported": model.native,
            "clear_thinking_20251015": _support(model.native),
            "clear_tool_uses_20250919": _support(model.native),
            "compact_20260112": _support(model.native),
        },
        "effort": {
            "supported": words,
            **{
                level: _support(words and level in limits.efforts)
                for level in ("low", "medium", "high", "xhigh", "max")
            },
        },
        "image_input": _support("image" in limits.media),
        "pdf_input": _support("document" in limits.media),
        "server_tools": {
            "supported": hosted,
            "code_execution": _support(hosted),
            "web_search": _support(hosted),
        },
        "structured_outputs": _support("schema" in limits.output_formats),
        "thinking": {
            "supported": model.thinks,
            "types": {
                # Elsewhere both are bent to the model's own knob; Anthropic's older models know one only.
                "adaptive": _support(model.thinks and not (model.native and limits.thinking == "budget")),
                "between_tools": _support(False),
                "disabled": _support(limits.thinking_off and limits.thinking != "fixed"),
                "enabled": _support(model.thinks),
            },
        },
    }


def _support(supported: bool) -> dict[str, bool]:
    return {"supported": supported}


# --- OpenAI


def _openai_list(listing: Sequence[ListedModel], query: dict[str, list[str]]) -> dict[str, Any]:
    return {"object": "list", "data": [_openai_model(model) for model in listing]}


def _openai_model(model: ListedModel) -> dict[str, Any]:
    return {"id": model.id, "object": "model", "created": 0, "owned_by": model.provider}


# --- Gemini


def _gemini_list(listing: Sequence[ListedModel], query: dict[str, list[str]]) -> dict[str, Any]:
    size = _number(query, "pageSize", _GEMINI_PAGE)
    token = query.get("pageToken", [""])[-1]
    start = _position(listing, token, "pageToken") + 1 if token else 0
    page = listing[start : start + size]
    body: dict[str, Any] = {"models": [_gemini_model(model) for model in page]}
    if start + size < len(listing):
        body["nextPageToken"] = page[-1].id
    return body


def _gemini_model(model: ListedModel) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": f"models/{model.id}",
        "baseModelId": model.id,
        "version": "1",
        "displayName": model.title or model.id,
    }
    if model.context:
        body["inputTokenLimit"] = model.context
    if model.output:
        body["outputTokenLimit"] = model.output
    body["supportedGenerationMethods"] = ["generateContent", "countTokens"]
    body["thinking"] = model.thinks
    return body


# --- pages


def _number(query: dict[str, list[str]], name: str, usual: int) -> int:
    """A page size: more than the most means the most, as the vendors hold it."""
    text = query.get(name, [""])[-1]
    if not text:
        return usual
    if not (text.isascii() and text.isdigit()):
        raise ClientFault(f"expected a whole number from 1 to {_LIMIT_MAX}", name)
    number = int(text[:6])  # enough digits to be too many
    if number == 0:
        if name == "pageSize":
            return usual
        raise ClientFault(f"expected a whole number from 1 to {_LIMIT_MAX}", name)
    return min(number, _LIMIT_MAX)


def _position(listing: Sequence[ListedModel], identifier: str, name: str) -> int:
    for index, model in enumerate(listing):
        if model.id == identifier:
            return index
    raise ClientFault("expected the id of a listed model", name)


_LISTS: Final[dict[str, Callable[[Sequence[ListedModel], dict[str, list[str]]], dict[str, Any]]]] = {
    "anthropic": _anthropic_list,
    "openai-chat": _openai_list,
    "openai-responses": _openai_list,
    "gemini": _gemini_list,
    "code-assist": _gemini_list,
    "gemini-simple": _gemini_list,
}
_MODELS: Final[dict[str, Callable[[ListedModel], dict[str, Any]]]] = {
    "anthropic": _anthropic_model,
    "openai-chat": _openai_model,
    "openai-responses": _openai_model,
    "gemini": _gemini_model,
    "code-assist": _gemini_model,
    "gemini-simple": _gemini_model,
}
