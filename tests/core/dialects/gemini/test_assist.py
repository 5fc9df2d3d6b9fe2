"""The calls with which Gemini CLI sets itself up, against what its source reads from the answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core.dialects.gemini import assist
from wireglot_core.dialects.listed_model import ListedModel

MODELS = tuple(ListedModel(name, "p") for name in ("gemini-3-pro-preview", "kimi-k3", "p/gemini-3"))

_ELIGIBLE: dict[str, Any] = {"metadata": {"ideType": "IDE_UNSPECIFIED", "pluginType": "GEMINI"}}


def _asked(verb: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    found = assist.answer(verb, body or {}, MODELS)
    assert found is not None
    return found


def test_a_client_without_a_project_gets_a_tier_and_a_project():
    """R-DE-03: `setupUser` returns at once when both are there, and never onboards."""
    loaded = _asked("loadCodeAssist", _ELIGIBLE)
    assert loaded["cloudaicompanionProject"] == assist.PROJECT
    assert loaded["currentTier"]["id"] == "standard-tier"
    assert loaded["currentTier"]["name"]
    assert [tier["isDefault"] for tier in loaded["allowedTiers"]] == [True]
    assert not loaded.get("ineligibleTiers")


@pytest.mark.parametrize("verb", ["loadCodeAssist", "setCodeAssistGlobalUserSetting"])
def test_a_clients_own_project_is_kept(verb):
    assert _asked(verb, {"cloudaicompanionProject": "mine"})["cloudaicompanionProject"] == "mine"


@pytest.mark.parametrize("odd", [None, "", 5, {"id": "x"}])
def test_a_project_that_is_none_is_replaced(odd):
    assert _asked("loadCodeAssist", {"cloudaicompanionProject": odd})["cloudaicompanionProject"] == "wireglot"


def test_onboarding_is_done_when_it_begins():
    begun = _asked("onboardUser", {"tierId": "standard-tier", "cloudaicompanionProject": "mine"})
    assert begun["done"] is True
    assert begun["response"]["cloudaicompanionProject"]["id"] == "mine"
    polled = assist.operation(begun["name"])
    assert polled is not None
    assert polled["done"] is True
    assert assist.operation("operations/other") is None


def test_quota_is_full_for_the_gemini_models_and_promises_no_amount():
    buckets = _asked("retrieveUserQuota", {"project": "p"})["buckets"]
    assert [bucket["modelId"] for bucket in buckets] == ["gemini-3-pro-preview"]
    assert buckets[0]["remainingFraction"] == 1
    assert "remainingAmount" not in buckets[0]


def test_no_experiments_no_admin_and_metrics_are_thrown_away():
    assert _asked("listExperiments") == {"experimentIds": [], "flags": []}
    assert _asked("fetchAdminControls") == {"adminControlsApplicable": False}
    assert _asked("recordCodeAssistMetrics", {"project": "p", "metrics": [{}]}) == {}


@pytest.mark.parametrize("wish", [{}, {"freeTierDataCollectionOptin": True}])
def test_no_data_is_collected_whatever_the_user_wishes(wish):
    assert _asked("setCodeAssistGlobalUserSetting", wish)["freeTierDataCollectionOptin"] is False
    assert _asked("getCodeAssistGlobalUserSetting")["freeTierDataCollectionOptin"] is False


def test_an_answer_can_be_changed_without_changing_the_next():
    _asked("loadCodeAssist")["currentTier"]["id"] = "changed"
    assert _asked("loadCodeAssist")["currentTier"]["id"] == "standard-tier"


@rows("verb", ["generateContent", "streamGenerateContent", "countTokens", "noSuchVerb", ""])
def test_other_verbs_are_not_answered_here(verb):
    assert assist.answer(verb, {}, MODELS) is None


def test_every_verb_is_answered():
    assert all(assist.answer(verb, {}) is not None for verb in assist.VERBS)
    assert assist.GET_VERBS <= assist.VERBS
