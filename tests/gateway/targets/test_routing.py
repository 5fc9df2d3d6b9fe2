"""Where requests for a model go."""

import tracemalloc

import msgspec
import pytest

from tests.gateway.kit import catalogued, own, settings
from tests.tiers import rows
from wireglot.gateway.errors import RequestError
from wireglot.gateway.settings import Rule
from wireglot.gateway.targets import routing
from wireglot.gateway.targets.routing import (
    KnownTraits,
    LostState,
    Retired,
    Router,
    Target,
    Unroutable,
    known_name,
    named_targets,
    route,
)
from wireglot_core.ir.content import Origin
from wireglot_core.ir.purpose import RequestFacts
from wireglot_core.providers.spec import ModelSpec


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
    reported = str(off.value)
    assert "ollama is off" in reported
    assert "[providers.ollama]" in reported
    assert "kimi/kimi-k3" in reported, "who is on and knows the model"
    assert "set " not in reported, "it needs no key"
    with pytest.raises(Unroutable, match=r"gemini is off.*GEMINI_API_KEY.*\[providers\.gemini\]"):
        route(on, "gemini/gemini-2.5-flash", "anthropic")
    switched_off = settings(catalogued("kimi"), off={"mine": "MY_KEY"})
    with pytest.raises(Unroutable, match=r"mine is off: set MY_KEY \(providers that are on: kimi\)$"):
        route(switched_off, "mine/x", "anthropic")
    with pytest.raises(
        Unroutable, match=r"there is no provider 'elsewhere' \(providers that are on: none\)$"
    ):
        route(settings(), "elsewhere/x", "anthropic")


@pytest.mark.parametrize("name", ["kimmi/kimi-k3", "KIMI/kimi-k3", "kimi_/kimi-k3"])
def test_a_misspelt_provider_is_reported_with_the_one_that_was_meant(name: str) -> None:
    """[M2]"""
    with pytest.raises(Unroutable, match=r"no provider .* did you mean kimi/kimi-k3\?"):
        route(settings(catalogued("kimi"), catalogued("gemini")), name, "anthropic")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("KIMI/Kimi-K3", "kimi/kimi-k3"),
        ("Kimi/kimi-k4", "kimi/"),
        ("KIMI/gpt-5", "a model of kimi"),
    ],
)
def test_the_model_that_is_suggested_exists(name: str, meant: str) -> None:
    on = settings(catalogued("kimi"))
    with pytest.raises(Unroutable) as problem:
        route(on, name, "anthropic")
    suggested = str(problem.value).partition("did you mean ")[2].removesuffix("?")
    assert suggested.startswith(meant)
    if "/" in suggested:
        assert route(on, suggested, "anthropic")[0].model == suggested.partition("/")[2]
        assert on.providers["kimi"].spec.knows(suggested.partition("/")[2])


def test_a_misspelt_provider_that_is_off_is_named_as_such() -> None:
    with pytest.raises(Unroutable, match=r"no provider 'olama' .*did you mean ollama, which is off\?"):
        route(settings(catalogued("kimi")), "olama/x", "anthropic")


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
    router = Router(on)
    assert router.reads_body(on, "anything")
    assert not router.reads_body(on, "kimi/kimi-k3")
    assert named(route(on, "kimi/kimi-k3", "gemini", KnownTraits("high"))) == ["kimi/kimi-k3"]


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
    assert named(route(on, "m", "gemini", KnownTraits("high"))) == ["mine/big"]
    assert named(route(on, "m", "gemini", KnownTraits("low"))) == ["mine/small"]
    assert named(route(on, "m", "gemini")) == ["mine/small"]


RULES = (
    Rule("m", ("mine/judge",), purpose=("background", "compaction"), effort=("high",)),
    Rule("m", ("mine/cheap",), purpose=("background", "compaction")),
    Rule("m", ("mine/explorer",), purpose=("subagent",), agent=("explore", "plan*")),
    Rule("m", ("mine/agent",), purpose=("subagent",)),
    Rule("m", ("mine/eyes",), images=True),
    Rule("m", ("mine/huge",), prompt_over=200_000),
    Rule("m", ("mine/long",), prompt_over=60_000),
    Rule("m", ("mine/plain",)),
)


@rows(
    ("traits", "target"),
    [
        (KnownTraits(), "plain"),
        (KnownTraits("high"), "plain"),
        (KnownTraits(about=RequestFacts("main")), "plain"),
        (KnownTraits(about=RequestFacts("background")), "cheap"),
        (KnownTraits("high", RequestFacts("background")), "judge"),
        (KnownTraits(about=RequestFacts("compaction"), tokens=150_000), "cheap"),
        (KnownTraits(about=RequestFacts("subagent", agent="Explore")), "explorer"),
        (KnownTraits(about=RequestFacts("subagent", agent="Planner")), "explorer"),
        (KnownTraits(about=RequestFacts("subagent", agent="explorer")), "agent"),
        (KnownTraits(about=RequestFacts("subagent")), "agent"),
        (KnownTraits(about=RequestFacts("main", agent="Explore")), "plain"),
        (KnownTraits(images=True, tokens=300_000), "eyes"),
        (KnownTraits(tokens=60_000), "plain"),
        (KnownTraits(tokens=60_001), "long"),
        (KnownTraits(tokens=200_001), "huge"),
    ],
)
def test_the_first_rule_whose_conditions_are_met_holds(traits: KnownTraits, target: str) -> None:
    on = settings(own("mine", "gemini"), rules=RULES)
    router = Router(on)
    assert named(route(on, "m", "gemini", traits)) == [f"mine/{target}"]
    assert named(router.targets(on, "m", "gemini", traits)) == [f"mine/{target}"]
    assert named(router.targets(on, "m", "gemini", KnownTraits())) == ["mine/plain"], "one route of several"


def test_a_name_with_conditional_rules_only_is_otherwise_routed_as_without_them():
    rules = (Rule("kimi-k3", ("mine/cheap",), purpose=("background",)), Rule("kimi-*", ("mine/any",)))
    on = settings(own("mine", "gemini"), catalogued("kimi"), rules=rules)
    assert named(route(on, "kimi-k3", "gemini")) == ["mine/any"]
    alone = settings(own("mine", "gemini"), catalogued("kimi"), rules=rules[:1])
    assert named(route(alone, "kimi-k3", "gemini")) == ["kimi/kimi-k3"]


class Unread:
    """Traits of a request at which nobody may look."""

    def effort(self) -> str:
        raise AssertionError("the effort was looked at")

    def facts(self) -> RequestFacts:
        raise AssertionError("the headers were looked at")

    def prompt_tokens(self) -> int:
        raise AssertionError("the prompt was weighed")

    def has_images(self) -> bool:
        raise AssertionError("images were looked for")


def test_nothing_of_a_request_is_looked_at_that_no_rule_for_its_model_needs():
    plain = settings(own("mine", "gemini"), rules=(Rule("m", ("mine/plain",)),))
    assert named(Router(plain).targets(plain, "m", "gemini", Unread())) == ["mine/plain"]
    some = settings(own("mine", "gemini"), rules=(*RULES, Rule("other", ("mine/other",))))
    router = Router(some)
    assert named(router.targets(some, "other", "gemini", Unread())) == ["mine/other"]
    assert not router.reads_body(some, "other")
    assert router.reads_body(some, "m")
    by_headers = settings(own("mine", "gemini"), rules=(*RULES[1:4], RULES[-1]))
    assert not Router(by_headers).reads_body(by_headers, "m")


def test_a_cached_route_ends_with_the_settings_that_it_is_of():
    before = settings(own("mine", "gemini"), rules=(Rule("m", ("mine/before",)),))
    after = settings(own("mine", "gemini"), rules=(Rule("m", ("mine/after",), images=True), *RULES[-1:]))
    router = Router(before)
    assert named(router.targets(before, "m", "gemini")) == ["mine/before"]
    router.adopt(after)
    assert named(router.targets(after, "m", "gemini", KnownTraits(images=True))) == ["mine/after"]
    assert named(router.targets(after, "m", "gemini")) == ["mine/plain"]
    assert named(router.targets(before, "m", "gemini")) == ["mine/before"], "of a request that began before"


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


def test_google_is_asked_by_generate_content_unless_the_client_or_the_operator_says_otherwise():
    google = settings(catalogued("gemini", "k"))
    assert route(google, "gemini-3.5-flash", "anthropic")[0].dialect == "gemini"
    assert route(google, "gemini-3.5-flash", "gemini")[0].dialect == "gemini"
    interactions = route(google, "gemini-3.5-flash", "gemini-interactions")[0]
    assert interactions.dialect == "gemini-interactions"
    assert interactions.urls["generate"] == "https://generativelanguage.googleapis.com/v1beta/interactions"


@pytest.mark.parametrize("agent", ["deep-research-pro-preview-12-2025", "antigravity-preview-05-2026"])
def test_agents_of_google_are_found_by_their_names(agent):
    target = route(settings(catalogued("gemini", "k")), agent, "gemini-interactions")[0]
    assert (target.provider.name, target.dialect, target.model) == ("gemini", "gemini-interactions", agent)


def test_a_dialects_own_vendor_is_never_fitted_to_and_a_flavor_is():
    """C34"""
    assert route(settings(catalogued("anthropic")), "claude-fable-5", "anthropic")[0].plain
    assert route(settings(own("mine", "openai-chat")), "mine/x", "openai-chat")[0].plain
    assert not route(settings(catalogued("kimi")), "kimi-k3", "openai-chat")[0].plain


def test_a_provider_of_several_dialects_is_reached_in_the_others_too():
    kimi = route(settings(catalogued("kimi")), "kimi-k3", "openai-chat")[0]
    assert [each.dialect for each in kimi.others] == ["openai-responses", "anthropic"]
    assert {each.name for each in kimi.others} == {"kimi/kimi-k3"}
    vendor = route(settings(catalogued("openai")), "gpt-5", "openai-chat")[0]
    assert vendor.others == (), "its reasoning state goes back in the dialect that it came in"


def test_a_target_knows_the_addresses_of_what_is_asked_of_models():
    urls = {
        dialect: dict(route(settings(own("mine", dialect)), "mine/m", dialect)[0].urls)
        for dialect in ("openai-chat", "openai-responses", "gemini")
    }
    base = "http://127.0.0.1:1"
    assert urls == {
        "openai-chat": {
            "generate": f"{base}/chat/completions",
            "stream": f"{base}/chat/completions",
            "embed": f"{base}/embeddings",
        },
        "openai-responses": {
            "generate": f"{base}/responses",
            "stream": f"{base}/responses",
            "compact": f"{base}/responses/compact",
            "count": f"{base}/responses/input_tokens",
        },
        "gemini": {
            "generate": f"{base}/models/m:generateContent",
            "stream": f"{base}/models/m:streamGenerateContent?alt=sse",
            "count": f"{base}/models/m:countTokens",
            "embed": f"{base}/models/m:batchEmbedContents",
            "embed_one": f"{base}/models/m:embedContent",
        },
    }


def test_only_servers_of_the_catalog_are_asked_for_the_usage_of_a_stream():
    assert route(settings(catalogued("kimi")), "kimi/x", "openai-chat")[0].asked_usage is not None
    assert route(settings(own("mine", "openai-chat")), "mine/x", "openai-chat")[0].asked_usage is None


@rows(
    ("client", "provider", "lost"),
    [
        ("anthropic", own("mine", "anthropic"), LostState(foreign=False)),
        ("anthropic", own("mine", "openai-chat"), LostState(foreign=True, any=True)),
        ("openai-chat", own("mine", "openai-chat"), LostState(foreign=False, shown=True, any=True)),
        ("openai-chat", own("mine", "gemini"), LostState(foreign=True, any=True, bare=True)),
        ("openai-chat", catalogued("kimi"), LostState(foreign=False, any=True)),
        ("openai-chat", catalogued("openai"), LostState(foreign=False)),
        ("gemini", own("mine", "gemini"), LostState(foreign=False, replaced=True, any=True)),
        ("gemini-simple", own("mine", "openai-chat"), LostState(foreign=True)),
    ],
)
def test_what_clients_may_not_send_back_follows_from_both_dialects(client, provider, lost):
    """PAINS A10"""
    (target,) = route(settings(provider), f"{provider.name}/x", client)
    assert target.lost == lost
    minter = Origin(target.dialect, provider.name, "x") if lost.foreign else None
    assert target.minter == minter


def test_the_policy_of_a_rule_wins_over_its_providers():
    mine = msgspec.structs.replace(own("mine", "gemini"), losses="strict")
    on = settings(mine, rules=(Rule("m", ("mine/m",), losses="warn"), Rule("n", ("mine/n",))))
    assert [route(on, name, "gemini")[0].losses for name in ("m", "n", "mine/x")] == [
        "warn",
        "strict",
        "strict",
    ]


def test_a_retired_model_is_refused_and_its_successor_named():
    """C14"""
    old = ModelSpec("old-1", retired=True, successor="new-2")
    gone = ModelSpec("old-2", retired=True)
    on = settings(own("mine", "gemini", old, gone))
    with pytest.raises(Retired, match=r"mine has retired old-1: use new-2$"):
        route(on, "old-1", "gemini")
    with pytest.raises(Retired, match=r"mine has retired old-2$"):
        route(on, "old-2", "gemini")


ANYTHING = settings(own("mine", "gemini"), rules=(Rule("*", ("mine/*",)),))


@rows("name", ["", "a b", "a\r\nx: y", "a\x00", "a\x7f", "m" * 257])
def test_a_name_that_could_be_more_than_a_name_is_refused(name: str):
    """FAULTS 30"""
    with pytest.raises(Unroutable):
        route(ANYTHING, name, "gemini")


def test_a_name_has_up_to_256_characters_of_any_kind():
    for name in ("m" * 256, "!é~"):
        assert named(route(ANYTHING, name, "gemini")) == [f"mine/{name}"]


def test_a_request_without_a_route_is_refused_at_its_model():
    router = Router(ANYTHING)
    for name, status in (("", 400), ("a b", 404)):
        with pytest.raises(RequestError) as refused:
            router.targets(ANYTHING, name, "gemini")
        assert (refused.value.error.status, refused.value.error.param) == (status, "model")


def test_routes_are_cached_until_the_settings_change(monkeypatch: pytest.MonkeyPatch):
    """Names of models come from clients: a few are kept."""
    monkeypatch.setattr(routing, "_MAX_ROUTES", 5)
    router = Router(ANYTHING)
    kept = router.targets(ANYTHING, "m", "gemini")
    assert router.targets(ANYTHING, "m", "gemini") is kept
    assert router.targets(ANYTHING, "m", "anthropic") is not kept
    assert router.targets(ANYTHING, "m", "gemini", KnownTraits("high")) is kept, "no rule asks for it"
    conditions = [router.has_conditions]
    other = settings(
        own("mine", "gemini"), rules=(Rule("m", ("mine/big",), effort=("high",)), Rule("m", ("mine/small",)))
    )
    assert named(router.targets(other, "m", "gemini")) == ["mine/small"], "the request's own settings hold"
    assert router.targets(ANYTHING, "m", "gemini") is kept
    router.adopt(other)
    conditions.append(router.has_conditions)
    assert conditions == [False, True]
    assert named(router.targets(other, "m", "gemini", KnownTraits("high"))) == ["mine/big"]
    router.adopt(ANYTHING)
    assert router.targets(ANYTHING, "m", "gemini") is not kept
    kept = router.targets(ANYTHING, "m", "gemini")
    for number in range(4):
        router.targets(ANYTHING, str(number), "gemini")
    assert router.targets(ANYTHING, "m", "gemini") is kept
    router.targets(ANYTHING, "one-more", "gemini")
    assert router.targets(ANYTHING, "m", "gemini") is not kept


def test_names_that_are_refused_are_not_cached():
    """A client may send any number of them, each as long as a body."""
    conditional = settings(own("mine", "gemini"), rules=RULES)
    router = Router(conditional)
    tracemalloc.start()
    try:
        for number in range(20):
            with pytest.raises(RequestError):
                router.targets(conditional, f"{number} " * 100_000, "gemini")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000


def test_what_models_make_of_a_name_needs_no_condition():
    rules = (
        Rule("big-*", ("mine/*", "kimi/*")),
        Rule("small-*", ("mine/*",), effort=("high",)),
    )
    on = settings(own("mine", "gemini"), catalogued("kimi"), rules=rules)
    assert named_targets(on, "big-x") == ["mine/x", "kimi/x"]
    assert named_targets(on, "small-x") == ["small-x"]


def test_each_star_of_a_target_is_what_the_one_of_the_pattern_caught():
    rules = (Rule("*-by-*", ("mine/*/*",)),)
    assert named(route(settings(own("mine", "gemini"), rules=rules), "a-by-b", "gemini")) == ["mine/a/b"]


def test_the_name_of_a_model_as_long_as_a_body_leads_nowhere_in_no_time():
    """A regular expression would stop the gateway for years, for whoever can send a request."""
    rules = (Rule("*-a*-a*-a*-b", ("mine/m",), effort=("high",)),)
    on = settings(own("mine", "gemini"), rules=rules)
    with pytest.raises(RequestError, match="256 characters"):
        Router(on).targets(on, "-a" * 100_000, "gemini")
    assert known_name(on, "-a" * 100_000, "plain") == "plain"


def test_geminis_long_form_of_a_name_is_understood():
    assert named(route(settings(catalogued("gemini")), "models/gemini-2.5-pro", "gemini")) == [
        "gemini/gemini-2.5-pro"
    ]


def test_the_very_name_of_a_model_wins_over_anothers_pattern():
    loose, exact = own("a", "gemini", ModelSpec("gpt-*")), own("b", "gemini", ModelSpec("gpt-oss"))
    assert named(route(settings(loose, exact), "gpt-oss", "gemini")) == ["b/gpt-oss"]
    assert named(route(settings(loose, exact), "gpt-9", "gemini")) == ["a/gpt-9"]


def test_a_pattern_without_a_slash_catches_no_name_of_another_provider():
    """[M2]"""
    with pytest.raises(Unroutable):
        route(settings(own("a", "gemini", ModelSpec("*-oss"))), "b/gpt-oss", "gemini")
    spelled_so = settings(own("a", "gemini", ModelSpec("b/*")))
    assert named(route(spelled_so, "b/gpt-oss", "gemini")) == ["a/b/gpt-oss"]


def test_a_known_model_at_an_own_server_is_fitted_as_what_it_is():
    target = route(settings(own("mine", "gemini")), "mine/gemini-2.5-flash", "openai-chat")[0]
    assert target.limits.thinking == "budget"
    assert target.plain, "its own dialect still passes as it is"
