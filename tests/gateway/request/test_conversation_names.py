"""The name of a conversation that a client gives, by header or in its body."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.job import conversation_name, grouping_name
from wireglot.http.application import Head
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import Outline

HEADER = "x-wireglot-session"


def named(body: dict[str, Any], header: str | None = None, field: str = "conversation") -> str:
    headers = {} if header is None else {HEADER: header}
    head = Head("POST", "/v1/responses", "/v1/responses", "", headers, peer="127.0.0.1")
    return conversation_name(head, Outline(encode(body)), field)


@rows(
    ("body", "header", "name"),
    [
        ({}, None, ""),
        ({}, " mine ", "mine"),
        ({"conversation": "its"}, None, "its"),
        ({"conversation": "its"}, "mine", "its"),
        ({"conversation": {"id": "its"}}, "mine", "its"),
        ({"conversation": None}, "mine", "mine"),
        ({"other": "its"}, "mine", "mine"),
        ({}, "x" * 256, "x" * 256),
        ({"conversation": "é" * 256}, None, "é" * 256),
        ({}, "...", "..."),
    ],
)
def test_a_name_in_the_body_comes_before_one_in_the_header(body: Any, header: str | None, name: str) -> None:
    assert named(body, header) == name


def test_without_a_field_of_its_own_a_body_names_nothing() -> None:
    assert named({"conversation": "its", "": "x"}, "mine", field="") == "mine"


@rows(
    ("body", "header", "place"),
    [
        ({}, "x" * 257, HEADER),
        ({}, "a\tb", HEADER),
        ({}, ".", HEADER),
        ({}, "..", HEADER),
        ({"conversation": "x" * 257}, "mine", "conversation"),
        ({"conversation": "a\u200bb\n"}, None, "conversation"),
        ({"conversation": ""}, "mine", "conversation"),
        ({"conversation": 5}, None, "conversation"),
        ({"conversation": ["its"]}, None, "conversation"),
        ({"conversation": {}}, "mine", "conversation"),
        ({"conversation": {"id": ""}}, None, "conversation"),
        ({"conversation": {"id": 5}}, None, "conversation"),
    ],
)
def test_what_is_no_name_is_refused_by_its_place(body: Any, header: str | None, place: str) -> None:
    with pytest.raises(RequestError) as refused:
        named(body, header)
    assert refused.value.error.param == place
    assert refused.value.error.status == 400


@rows("header", ["x-session-affinity", "x-session-id", "session-id", "session_id"])
def test_requests_are_grouped_by_the_session_that_an_agent_names(header: str) -> None:
    def group(**headers: str) -> str:
        head = Head("POST", "/", "/", "", headers, peer="127.0.0.1")
        return grouping_name(head, Outline(b"{}"), surface("openai-chat").client)

    assert group(**{header: "mine"}) == "mine"
    assert group(**{header: ""}) == group(**{f"{header}-other": "mine"}) == ""
