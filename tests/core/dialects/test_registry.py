"""Dialects by name: our own, and those that somebody brings."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest
from msgspec.structs import replace

import wireglot_core
from tests.core.dialects import acme
from tests.core.laws.cases import FIXTURES
from tests.tiers import rows
from wireglot_core import plugins, translate_request, translate_response
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.paths import Paths, PathTaken
from wireglot_core.dialects.registry import (
    COMMON,
    ITEMS,
    NAMES,
    NameTaken,
    OwnDialect,
    UnknownDialect,
    dialect,
    names,
    register,
    surface,
    surfaces,
    unregister,
)
from wireglot_core.testing import check_dialect, samples_in


@pytest.fixture
def registered():
    register(acme.DIALECT)
    yield acme.DIALECT
    unregister(acme.NAME)


@rows("name", NAMES)
def test_our_own_are_there_under_their_names(name):
    assert dialect(name).name == name
    assert dialect(name.replace("-", "_")) is dialect(name)
    assert surface(name) is dialect(name).surface


def test_an_unknown_name_is_an_error_and_never_another_dialect():
    with pytest.raises(UnknownDialect, match="expected one of anthropic"):
        dialect("acme")
    with pytest.raises(UnknownDialect):
        surface("acme")
    with pytest.raises(UnknownDialect):
        dialect("")


def test_the_common_dialect_is_one_of_ours():
    assert COMMON in NAMES


def test_the_dialect_of_stored_items_can_read_and_write_them():
    assert surface(ITEMS).stored is not None


def test_a_registered_dialect_is_known_everywhere(registered):
    assert dialect("acme") is registered
    assert names() == (*NAMES, "acme")
    assert surfaces()[-1] is registered.surface


def test_the_same_dialect_may_be_registered_again_and_another_may_not(registered):
    register(acme.DIALECT)
    with pytest.raises(NameTaken, match="acme"):
        register(replace(acme.DIALECT))


def test_the_names_of_our_own_are_taken():
    for name in NAMES:
        with pytest.raises(NameTaken):
            register(replace(acme.DIALECT, surface=replace(acme.SURFACE, name=name)))


@pytest.mark.parametrize("name", ["", "a_b"])
def test_a_name_that_could_not_be_asked_for_is_refused(name):
    with pytest.raises(ValueError, match="no name for a dialect"):
        register(replace(acme.DIALECT, surface=replace(acme.SURFACE, name=name)))


def test_what_is_forgotten_is_unknown_again(registered):
    unregister("acme")
    with pytest.raises(UnknownDialect):
        dialect("acme")
    register(acme.DIALECT)


def test_a_registered_dialect_is_translated_like_any_other(registered):
    body = {"engine": "x", "talk": [{"role": "user", "content": "Hello"}]}
    asked = translate_request(body, source=OwnDialect("acme"), target="anthropic")
    assert asked.value["messages"][0]["content"] in ("Hello", [{"type": "text", "text": "Hello"}])
    back = translate_request(asked.value, source="anthropic", target=OwnDialect("acme"))
    assert back.value["talk"][-1] == {"role": "user", "content": "Hello"}
    answer = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    reported = translate_response(answer, source="anthropic", target=OwnDialect("acme"))
    assert reported.value["replies"][0]["message"]["content"] == "Hi"


def test_a_dialect_from_outside_keeps_every_law():
    samples = acme.acme_samples(samples_in(FIXTURES / "openai-chat"))
    few = replace(samples, streams=samples.streams[:4], requests=samples.requests[:4])
    check_dialect(acme.DIALECT, few, examples=5)
    assert "acme" not in names()


def test_two_dialects_cannot_have_one_path():
    thief = replace(acme.SURFACE, name="thief")
    with pytest.raises(PathTaken, match="POST /acme/talk of thief is a path of acme already"):
        Paths([*surfaces(), acme.SURFACE, thief])


# Entry points.


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, plugins.GROUP)


@pytest.fixture
def installed(monkeypatch):
    """What packages are said to bring."""
    entries: list[EntryPoint] = []

    def found(*, group: str) -> list[EntryPoint]:
        return entries if group == plugins.GROUP else []

    monkeypatch.setattr(plugins, "entry_points", found)
    plugins.load_dialects.cache_clear()
    yield entries
    plugins.load_dialects.cache_clear()


def test_an_installed_package_brings_its_dialect(installed):
    installed.append(entry("acme", "tests.core.dialects.acme:DIALECT"))
    try:
        assert plugins.load_dialects() == ("acme",)
        assert plugins.load_dialects() == ("acme",)
        assert isinstance(dialect("acme"), Dialect)
    finally:
        unregister("acme")


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("acme", "tests.dialects.nowhere:DIALECT", "cannot be loaded: ModuleNotFoundError"),
        ("acme", "tests.core.dialects.acme:NOTHING", "cannot be loaded: AttributeError"),
        ("acme", "tests.core.dialects.acme:NAME", "is no wireglot_core.dialects.base.Dialect"),
        ("other", "tests.core.dialects.acme:DIALECT", "is a dialect of another name: 'acme'"),
        ("openai-chat", "tests.core.dialects.acme:CHAT", "there is a dialect 'openai-chat' already"),
    ],
)
def test_a_package_that_brings_no_dialect_is_an_error(installed, name: str, value: str, reported: Any):
    installed.append(entry(name, value))
    with pytest.raises(plugins.BadPlugin, match=reported):
        plugins.load_dialects()
    assert names() == NAMES


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("openai", "openai-chat or openai-responses"),
        ("claude", "anthropic"),
        ("google", "gemini"),
        ("OpenAI", "openai-chat or openai-responses"),
        ("anthropi", "anthropic"),
        ("responses", "openai-responses"),
    ],
)
def test_an_unknown_dialect_is_an_error_of_the_library_and_names_the_likely_one(name: str, hint: str) -> None:
    with pytest.raises(wireglot_core.UnknownDialect) as caught:
        dialect(name)
    assert isinstance(caught.value, wireglot_core.WireglotError)
    assert caught.value.code == "UNKNOWN_DIALECT"
    assert f"unknown dialect {name!r} (did you mean {hint}?)" in str(caught.value)


def test_a_name_that_is_like_none_has_no_hint() -> None:
    with pytest.raises(
        wireglot_core.UnknownDialect, match="unknown dialect 'klingon': expected one of anthropic"
    ):
        dialect("klingon")
