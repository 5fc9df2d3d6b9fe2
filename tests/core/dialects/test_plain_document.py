"""Documents of Python callers: any mapping, sequence and subclass of str is what JSON would have made of it."""

from __future__ import annotations

from collections import OrderedDict, UserDict, UserList, deque
from collections.abc import Callable
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from tests.core.laws.cases import FIXTURES, every_dialect
from wireglot_core import ClientFault, StreamTranslator, UpstreamFault, WireglotError, translate_request
from wireglot_core.dialects.plain_document import plain_document
from wireglot_core.dialects.registry import NAMES, DialectName
from wireglot_core.testing.check_dialect import fixtures


class Role(StrEnum):
    USER = "user"


class Kind(str, Enum):  # noqa: UP042  -- as code for older Pythons has it
    TEXT = "text"


class Most(IntEnum):
    TOKENS = 100


class Shouted(str):
    def __str__(self) -> str:
        return self.upper()


class Text(str):
    """What a template engine makes."""


def remade(value: Any, mapping: Callable[[dict[str, Any]], Any], sequence: Callable[[list[Any]], Any]) -> Any:
    if isinstance(value, dict):
        return mapping({Text(key): remade(each, mapping, sequence) for key, each in value.items()})
    if isinstance(value, list):
        return sequence([remade(each, mapping, sequence) for each in value])
    return Text(value) if isinstance(value, str) else value


@every_dialect
@pytest.mark.parametrize(
    ("mapping", "sequence"), [(OrderedDict, tuple), (MappingProxyType, UserList), (UserDict, tuple)]
)
def test_a_request_of_other_types_is_the_same_request(
    name: DialectName, mapping: Callable[[dict[str, Any]], Any], sequence: Callable[[list[Any]], Any]
) -> None:
    target: DialectName = "openai-chat" if name != "openai-chat" else "gemini"
    for case in fixtures(FIXTURES, name, "requests"):
        try:
            plain = translate_request(case.body, source=name, target=target)
        except WireglotError as fault:
            with pytest.raises(type(fault)):
                translate_request(remade(case.body, mapping, sequence), source=name, target=target)
        else:
            assert (
                translate_request(remade(case.body, mapping, sequence), source=name, target=target) == plain
            )


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Role.USER, "user"),
        (Kind.TEXT, "text"),
        (Most.TOKENS, 100),
        (Shouted("a"), "a"),
        ({Role.USER: 1}, {"user": 1}),
        ((1, (2,)), [1, [2]]),
        (deque([1]), [1]),
    ],
)
def test_a_value_has_the_type_that_json_has(value: object, plain: object) -> None:
    found = plain_document({"a": value}, ClientFault)
    assert found == {"a": plain}
    assert type(found["a"]) is type(plain)


def test_a_document_of_json_is_not_copied() -> None:
    document = {"a": [1, 2.5, None, True, {"b": "c"}]}
    assert plain_document(document, ClientFault) is document


def test_a_document_that_holds_itself_is_refused() -> None:
    document: dict[str, Any] = {}
    document["a"] = document
    with pytest.raises(ClientFault, match="nested less deeply"):
        translate_request(document, source="anthropic", target="gemini")


@pytest.mark.parametrize("body", [None, 3, 2.5, object()])
def test_what_is_no_document_is_named(body: Any) -> None:
    with pytest.raises(ClientFault, match="expected an object, or JSON as text or bytes, got"):
        translate_request(body, source="anthropic", target="gemini")


def test_bytes_in_a_document_are_named_with_their_place() -> None:
    body: Any = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": b"hi"}]}
    with pytest.raises(ClientFault, match=r"^\$\.messages\[0\]\.content"):
        translate_request(body, source="anthropic", target="gemini")


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("data", ["data: {}", None, 3])
def test_a_stream_of_no_bytes_is_refused(target: DialectName, data: Any) -> None:
    with pytest.raises(UpstreamFault, match="expected bytes of a stream, got"):
        StreamTranslator(source="anthropic", target=target).feed(data)
