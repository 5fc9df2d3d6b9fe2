"""Gemini CLI's calls to Code Assist before, between and after its requests to a model.

The shapes are those of `code_assist/server.ts` and `types.ts` of Gemini CLI 0.61. A gateway has no tiers,
experiments, quotas or telemetry, and answers accordingly: one tier for all, nothing to onboard, nothing
switched on, nothing used up, nothing kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from wireglot_core.dialects.capabilities import Assist
from wireglot_core.dialects.listed_model import ListedModel

PROJECT: Final = "wireglot"
"""The project of clients that send none; without one Gemini CLI does not start."""

OPERATION: Final = "operations/onboarding"

_TIER: Final[dict[str, Any]] = {
    "id": "standard-tier",
    "name": "Wireglot",
    "description": "A gateway: what a request may do is decided by the provider that it is routed to.",
    "userDefinedCloudaicompanionProject": False,
    "isDefault": True,
    "hasOnboardedPreviously": True,
}

_Answer = Callable[[dict[str, Any], Iterable[ListedModel]], dict[str, Any]]


def answer(verb: str, body: dict[str, Any], models: Iterable[ListedModel] = ()) -> dict[str, Any] | None:
    """The answer to `POST /v1internal:{verb}` (and to GET, for those in `GET_VERBS`), None if there is no
    such verb."""
    found = _ANSWERS.get(verb)
    return found(body, models) if found is not None else None


def operation(name: str) -> dict[str, Any] | None:
    """The answer to `GET /v1internal/{name}`: the only operation is done from its beginning."""
    return _onboard({}, ()) if name == OPERATION else None


def _load(body: dict[str, Any], models: Iterable[ListedModel]) -> dict[str, Any]:
    return {
        "currentTier": dict(_TIER),
        "allowedTiers": [dict(_TIER)],
        "cloudaicompanionProject": _project(body, "cloudaicompanionProject"),
        "gcpManaged": False,
    }


def _onboard(body: dict[str, Any], models: Iterable[ListedModel]) -> dict[str, Any]:
    project = _project(body, "cloudaicompanionProject")
    return {
        "name": OPERATION,
        "done": True,
        "response": {"cloudaicompanionProject": {"id": project, "name": project}},
    }


def _quota(body: dict[str, Any], models: Iterable[ListedModel]) -> dict[str, Any]:
    """Full quotas without an amount or an end: the limits of providers are only known from their answers.
    Gemini CLI also derives from them which preview models it may use."""
    return {
        "buckets": [
            {"modelId": model.id, "tokenType": "REQUESTS", "remainingFraction": 1}
            for model in models
            if model.id.startswith("gemini-")
        ]
    }


def _experiments(body: dict[str, Any], models: Iterable[ListedModel]) -> dict[str, Any]:
    return {"experimentIds": [], "flags": []}


def _admin(body: dict[str, Any], models: Iterable[ListedModel]) -> dict[str, Any]:
    return {"adminControlsApplicable": False}


def _setting(body: dict[str, Any], models: Iterable[ListedModel]) -> dict[str, Any]:
    """Answers every setting: nothing is collected; if the field is missing, the client assumes that it is."""
    return {
        "cloudaicompanionProject": _project(body, "cloudaicompanionProject"),
        "freeTierDataCollectionOptin": False,
    }


def _nothing(body: dict[str, Any], models: Iterable[ListedModel]) -> dict[str, Any]:
    return {}


def _project(body: dict[str, Any], name: str) -> str:
    stated = body.get(name)
    return stated if type(stated) is str and stated else PROJECT


_ANSWERS: Final[dict[str, _Answer]] = {
    "loadCodeAssist": _load,
    "onboardUser": _onboard,
    "retrieveUserQuota": _quota,
    "listExperiments": _experiments,
    "fetchAdminControls": _admin,
    "getCodeAssistGlobalUserSetting": _setting,
    "setCodeAssistGlobalUserSetting": _setting,
    "recordCodeAssistMetrics": _nothing,
}

VERBS: Final = frozenset(_ANSWERS)
GET_VERBS: Final = frozenset({"getCodeAssistGlobalUserSetting"})
"""Gemini CLI requests these with GET."""

ASSIST: Final = Assist(answer=answer, operation=operation)
