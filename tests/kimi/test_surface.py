"""Names, codes and signatures that callers rely on; the set-up of a call and what is refused there."""

import asyncio
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.kimi.kit import KEY, Http, Lines, ask, error
from wireglot import kimi
from wireglot_core.ir.errors import ClientFault, WireglotError
from wireglot_core.providers.spec import provider

ENTRIES = ("complete", "complete_with_tools", "stream", "stream_with_tools")
OPTIONS = {"model", "max_tokens", "system", "api_key", "base_url", "transport", "log", "sleep"}


def test_the_configuration_error_has_its_code_and_name():
    """R-O-01, R-R-04, R-R-05, R-R-06."""
    problem = kimi.KimiConfigError("no key")
    assert (problem.code, problem.name, str(problem)) == ("KIMI_CONFIG_ERROR", "KimiConfigError", "no key")
    assert isinstance(problem, WireglotError)


def test_the_api_error_has_a_code_a_status_and_its_name():
    """R-O-02, R-R-04, R-R-05, R-R-06, R-R-07."""
    problem = kimi.KimiApiError("no")
    assert (problem.code, problem.status, problem.name) == ("KIMI_API_ERROR", None, "KimiApiError")
    spent = kimi.KimiApiError("no", code="KIMI_RETRIES_EXHAUSTED", status=429, attempts=4)
    assert (spent.code, spent.status, spent.attempts) == ("KIMI_RETRIES_EXHAUSTED", 429, 4)
    again = pickle.loads(pickle.dumps(spent))
    assert (again.code, again.status, str(again)) == (spent.code, spent.status, str(spent))


def test_every_error_can_be_reported_by_its_code_alone():
    """R-R-08: without knowing a class of ours."""
    codes = []
    for options in ({"api_key": ""}, {"transport": Http((400, error("invalid_request_error")))}):
        try:
            ask(Http(), **options)
        except Exception as problem:
            codes.append(getattr(problem, "code", None))
    assert codes == ["KIMI_CONFIG_ERROR", "KIMI_API_ERROR"]


@pytest.mark.parametrize("name", ENTRIES)
def test_every_entry_point_takes_every_option(name):
    """R-O-03, R-O-04, R-O-05, R-O-06, R-O-07, R-O-08, R-O-09, R-O-10, R-O-11, R-O-12."""
    for entry in (getattr(kimi, name), getattr(kimi, f"{name}_sync")):
        parameters = inspect.signature(entry).parameters
        first = ["prompt", "tools"] if "tools" in name else ["prompt"]
        assert list(parameters)[: len(first)] == first
        assert parameters.keys() - {"prompt", "tools", "messages", "fields", "retry"} == OPTIONS
        assert all(parameters[option].default is None for option in OPTIONS)
    assert getattr(kimi, f"{name}_sync").__name__ == f"{name}_sync"


@pytest.mark.parametrize("base_url", [None, "https://api.moonshot.cn/v1", "https://api.kimi.com/coding/v1"])
@pytest.mark.parametrize(
    ("model", "successor"),
    [("kimi-k2-0905-preview", "kimi-k3"), ("kimi-k2-thinking-turbo", "kimi-k3"), ("kimi-k2.5", "kimi-k2.6")],
)
def test_a_retired_model_names_its_successor(model, successor, base_url):
    """R-P-05: the contract's default is one of them (C14)."""
    with pytest.raises(kimi.KimiConfigError, match=f"{model} is retired.*{successor}"):
        ask(Http(), model=model, base_url=base_url)


def test_a_retired_model_can_be_asked_for_where_somebody_still_serves_it():
    http = Http()
    ask(http, model="kimi-k2-0905-preview", base_url="http://localhost:8000/v1")
    assert http.body["model"] == "kimi-k2-0905-preview"


def test_the_default_model_is_in_the_catalog_and_not_retired():
    entry = provider("kimi").model(kimi.default_model())
    assert entry is not None
    assert entry.is_name
    assert not entry.retired


@pytest.mark.parametrize(
    "base_url",
    ["api.moonshot.ai/v1", "ftp://host/v1", "https://", "https://u:secretpw@host/v1", "https://host/v1?k=secretpw",
     "https://host:99999/v1", "https://[::1/v1"],
)  # fmt: skip
def test_a_base_url_that_is_none_is_refused_without_being_quoted(base_url):
    with pytest.raises(kimi.KimiConfigError) as caught:
        ask(Http(), base_url=base_url)
    assert "secretpw" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_quoted(key):
    with pytest.raises(kimi.KimiConfigError) as caught:
        ask(Http(), api_key=key)
    assert key not in str(caught.value)


def test_the_missing_key_is_explained_with_every_name_that_would_do():
    """R-R-01, R-R-12."""
    with pytest.raises(
        kimi.KimiConfigError, match="COLIBRI_KIMI_API_KEY or MOONSHOT_API_KEY or KIMI_API_KEY"
    ):
        asyncio.run(kimi.complete("Hi"))


def test_the_environment_is_read_at_each_call(monkeypatch):
    """R-R-09, R-R-10, R-R-11: not at import, and not once for all."""
    http = Http()
    for key, host in (("one", "a.test"), ("two", "b.test")):
        monkeypatch.setenv("COLIBRI_KIMI_API_KEY", key)
        monkeypatch.setenv("COLIBRI_KIMI_BASE_URL", f"https://{host}/v1")
        asyncio.run(kimi.complete("Hi", transport=http, log=Lines()))
        assert (http.headers["authorization"], http.url) == (
            f"Bearer {key}",
            f"https://{host}/v1/chat/completions",
        )


@pytest.mark.parametrize("name", ["maximum", "stream", "tools"])
def test_an_option_that_is_none_is_refused(name):
    http = Http()
    options: dict[str, Any] = {name: 1}
    with pytest.raises(TypeError, match=name):
        ask(http, **options)
    assert http.requests == []


def test_an_unknown_retry_preset_is_refused():
    with pytest.raises(kimi.KimiConfigError, match="fixed-100ms, modern"):
        ask(Http(), retry="sometimes")


def test_a_call_needs_something_to_say():
    with pytest.raises(TypeError, match="prompt or messages"):
        ask(Http(), None)

    with pytest.raises(TypeError, match="a string, not int"):
        asyncio.run(kimi.complete(5, api_key=KEY))  # type: ignore[arg-type]  # that is what is tested


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"prompt": " "}, "messages"),
        ({"messages": ["Hi"]}, r"messages\[0\]"),
        ({"messages": {"role": "user", "content": "Hi"}}, r"messages\[0\]"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
    ],
)
def test_arguments_of_the_wrong_shape_are_refused_with_their_place(options, place):
    with pytest.raises(ClientFault, match=rf"^\$\.{place}"):
        ask(Http(), **options)


def test_a_field_with_a_parameter_of_its_own_is_refused():
    with pytest.raises(ClientFault, match=r"\$\.model"):
        ask(Http(), fields={"model": "kimi-k2.6"})


def test_no_repr_shows_the_key():
    from wireglot.kimi.options import CallArguments
    from wireglot.kimi.setup import set_up

    assert KEY not in repr(set_up(None, KEY, None))
    assert KEY not in repr(CallArguments(prompt="Hi", tools=(), stream=False, api_key=KEY))


def test_the_page_tells_every_option_variable_and_public_name():
    page = (Path(__file__).parents[2] / "docs" / "kimi.md").read_text(encoding="utf-8")
    options = {*inspect.signature(kimi.complete_with_tools).parameters} - {"prompt", "tools"}
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert all(any(line.startswith(f"| `{option}` |") for line in rows) for option in options)
    variables = ("COLIBRI_KIMI_API_KEY", "COLIBRI_KIMI_BASE_URL", *provider("kimi").api_key_env)
    fields = kimi.CompletionResult.__struct_fields__
    hidden = {"HttpFunction"}  # a type for annotations; the page shows such a function
    assert all(f"`{name}`" in page for name in (*variables, *fields))
    assert all(name in page for name in set(kimi.__all__) - hidden)
