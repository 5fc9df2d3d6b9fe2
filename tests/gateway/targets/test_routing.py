"""Where requests for a model go."""

import pytest

from tests.gateway.kit import catalogued, own, settings
from tests.tiers import rows
from wireglot.gateway.settings import Rule
from wireglot.gateway.targets.routing import Retired, Target, Unroutable, depends_on_effort, route
from wireglot.providers.spec import ModelSpec


def named(targets: tuple[Target, ...]) -> list[str]:
    return [target.name for target in targets]


def test_provider_slash_model_always_works():
    """R-DD-12"""
    assert named(route(settings(catalogued("kimi")), "kimi/never-heard-of", "anthropic")) == [
        "kimi/never-heard-of"
    ]


def test_a_bare_name_goes_to_the_provider_whose_catalog_knows_it():
    on = settings(catalogued("kimi"), catalogued("gemini"))
    assert named(route(on, "gemini-2.5-flash", "openai-chat")) == ["gemini/gemini-2.5-flash"]
    assert named(route(on, "kimi-k3", "openai-chat")) == ["kimi/kimi-k3"]


def test_a_name_nobody_knows_is_refused_with_what_would_help():
    with pytest.raises(Unroutable, match=r"provider/model.*\[models\].*kimi"):
        route(settings(catalogued("kimi")), "gpt-9", "openai-chat")


def test_a_provider_that_is_off_is_named_and_never_replaced_by_another():
    """[M2] `ollama/kimi-k3` must not go to Kimi's cloud."""
    on = settings(catalogued("kimi"), catalogued("openrouter"))
    with pytest.raises(Unroutable) as off:
        route(on, "ollama/kimi-k3", "anthropic")
    told = str(off.value)
    assert "ollama is off" in told
    assert "[providers.ollama]" in told
    assert "kimi/kimi-k3" in told, "who is on and knows the model"
    with pytest.raises(Unroutable, match=r"gemini is off.*GEMINI_API_KEY.*\[providers\.gemini\]"):
        route(on, "gemini/gemini-2.5-flash", "anthropic")


@pytest.mark.parametrize("name", ["kimmi/kimi-k3", "KIMI/kimi-k3", "kimi_/kimi-k3"])
def test_a_misspelt_provider_is_told_with_the_one_that_was_meant(name: str) -> None:
    """[M2]"""
    with pytest.raises(Unroutable, match=r"no provider .* did you mean kimi/kimi-k3\?"):
        route(settings(catalogued("kimi"), catalogued("gemini")), name, "anthropic")


def test_a_prefix_that_is_nobodys_name_does_not_lead_to_a_vendor_by_chance():
    """[M2]"""
    on = settings(catalogued("kimi"))
    with pytest.raises(Unroutable, match=r"there is no provider 'elsewhere'.*kimi/kimi-k3"):
        route(on, "elsewhere/kimi-k3", "openai-chat")


def test_a_reseller_is_asked_by_the_names_that_it_gives_itself():
    on = settings(catalogued("openrouter"), catalogued("groq"))
    assert named(route(on, "openai/gpt-oss-120b", "openai-chat")) == ["groq/openai/gpt-oss-120b"]
    assert named(route(on, "anthropic/claude-fable-5", "openai-chat")) == [
        "openrouter/anthropic/claude-fable-5"
    ]


def test_a_pattern_catches_what_its_star_stands_for():
    """R-DD-12"""
    rules = (Rule("claude-*", ("mine/x-*-y",)),)
    assert named(route(settings(own("mine", "gemini"), rules=rules), "claude-fable-5", "anthropic")) == [
        "mine/x-fable-5-y"
    ]


def test_nothing_but_the_star_is_special_in_a_pattern():
    rules = (Rule("a[b].c*", ("mine/m",)),)
    on = settings(own("mine", "gemini"), rules=rules)
    assert named(route(on, "a[b].cd", "gemini")) == ["mine/m"]
    with pytest.raises(Unroutable):
        route(on, "ab.cd", "gemini")


def test_an_exact_name_wins_over_a_pattern_that_stands_before_it():
    rules = (Rule("fa*", ("mine/pattern",)), Rule("fast", ("mine/exact",)))
    assert named(route(settings(own("mine", "gemini"), rules=rules), "fast", "gemini")) == ["mine/exact"]


def test_a_provider_that_is_named_wins_over_patterns_that_do_not_name_it():
    rules = (Rule("*", ("mine/some-model",)), Rule("k*", ("mine/other",)))
    on = settings(own("mine", "gemini"), catalogued("kimi"), rules=rules)
    assert named(route(on, "kimi/kimi-k3", "gemini")) == ["kimi/kimi-k3"]
    assert named(route(on, "mine/other", "gemini")) == ["mine/other"]
    assert named(route(on, "openai/gpt-5", "gemini")) == ["mine/some-model"], "a provider that is not on"
    assert named(route(on, "anything", "gemini")) == ["mine/some-model"]


def test_a_pattern_for_the_models_of_a_provider_holds():
    """A fallback for all of them, as `wireglot import litellm` writes it."""
    rules = (Rule("*", ("mine/other",)), Rule("kimi/*", ("kimi/*", "mine/some-model")))
    on = settings(own("mine", "gemini"), catalogued("kimi"), rules=rules)
    assert named(route(on, "kimi/kimi-k3", "gemini")) == ["kimi/kimi-k3", "mine/some-model"]


def test_an_exact_name_wins_over_the_provider_that_it_begins_with():
    rules = (Rule("kimi/kimi-k3", ("mine/exact",)),)
    on = settings(own("mine", "gemini"), catalogued("kimi"), rules=rules)
    assert named(route(on, "kimi/kimi-k3", "gemini")) == ["mine/exact"]


def test_the_effort_of_a_pattern_does_not_matter_for_a_provider_that_is_named():
    rules = (Rule("*", ("mine/big",), effort=("high",)),)
    on = settings(own("mine", "gemini"), catalogued("kimi"), rules=rules)
    assert depends_on_effort(on, "anything")
    assert not depends_on_effort(on, "kimi/kimi-k3")
    assert named(route(on, "kimi/kimi-k3", "gemini", "high")) == ["kimi/kimi-k3"]


def test_the_first_of_two_patterns_holds():
    rules = (Rule("f*", ("mine/one",)), Rule("fa*", ("mine/two",)))
    assert named(route(settings(own("mine", "gemini"), rules=rules), "fast", "gemini")) == ["mine/one"]


def test_a_chain_is_kept_in_its_order():
    """R-DD-07, R-DD-12"""
    rules = (Rule("fast", ("gemini/gemini-2.5-flash", "mine/some-model")),)
    on = settings(catalogued("gemini"), own("mine", "openai-chat"), rules=rules)
    assert named(route(on, "fast", "anthropic")) == ["gemini/gemini-2.5-flash", "mine/some-model"]


def test_effort_switches_the_model_only_where_a_rule_says_so():
    """C27"""
    rules = (Rule("m", ("mine/big",), effort=("high", "max")), Rule("m", ("mine/small",)))
    on = settings(own("mine", "gemini"), rules=rules)
    assert named(route(on, "m", "gemini", "high")) == ["mine/big"]
    assert named(route(on, "m", "gemini", "low")) == ["mine/small"]
    assert named(route(on, "m", "gemini")) == ["mine/small"]


def test_the_clients_own_dialect_is_spoken_where_the_provider_speaks_it():
    both = settings(catalogued("kimi"))
    assert route(both, "kimi-k3", "openai-responses")[0].dialect == "openai-responses"
    assert route(both, "kimi-k3", "openai-chat")[0].dialect == "openai-chat"


def test_a_model_may_speak_fewer_dialects_than_its_provider():
    on = settings(catalogued("demo"))
    assert route(on, "demo-gemini", "anthropic")[0].dialect == "gemini"
    assert route(on, "demo", "anthropic")[0].dialect == "anthropic"


def test_the_simplified_form_rides_on_gemini():
    assert route(settings(catalogued("demo")), "demo", "gemini-simple")[0].dialect == "gemini"


def test_a_dialects_own_vendor_is_never_fitted_to_and_a_flavor_is():
    """C34"""
    assert route(settings(catalogued("anthropic")), "claude-fable-5", "anthropic")[0].plain
    assert route(settings(own("mine", "openai-chat")), "mine/x", "openai-chat")[0].plain
    assert not route(settings(catalogued("kimi")), "kimi-k3", "openai-chat")[0].plain


def test_a_retired_model_is_refused_and_its_successor_named():
    """C14"""
    old = ModelSpec("old-1", retired=True, successor="new-2")
    with pytest.raises(Retired, match="new-2"):
        route(settings(own("mine", "gemini", old)), "old-1", "gemini")


@rows("name", ["", "a b", "a\r\nx: y", "a\x00", "m" * 300])
def test_a_name_that_could_be_more_than_a_name_is_refused(name: str):
    """FAULTS 30"""
    with pytest.raises(Unroutable):
        route(settings(own("mine", "gemini"), rules=(Rule("*", ("mine/*",)),)), name, "gemini")


def test_geminis_long_form_of_a_name_is_understood():
    assert named(route(settings(catalogued("gemini")), "models/gemini-2.5-pro", "gemini")) == [
        "gemini/gemini-2.5-pro"
    ]


def test_the_very_name_of_a_model_wins_over_anothers_pattern():
    loose, exact = own("a", "gemini", ModelSpec("gpt-*")), own("b", "gemini", ModelSpec("gpt-oss"))
    assert named(route(settings(loose, exact), "gpt-oss", "gemini")) == ["b/gpt-oss"]


def test_a_known_model_at_an_own_server_is_fitted_as_what_it_is():
    target = route(settings(own("mine", "gemini")), "mine/gemini-2.5-flash", "openai-chat")[0]
    assert target.limits.thinking == "budget"
    assert target.plain, "its own dialect still passes as it is"
