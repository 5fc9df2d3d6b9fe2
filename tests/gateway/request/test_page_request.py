"""A page of a list: how much of it is asked for, in which order, and where the next one begins."""

from __future__ import annotations

import pytest

from tests.gateway.kit import head, settings
from tests.tiers import rows
from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.page_request import PageRequest, listed, order_of, page_size, unavailable


def page(query: str = "", body: bytes = b"") -> PageRequest:
    return PageRequest(
        settings=settings(),
        caller=LOCAL,
        head=head("GET", "/v1/things", query),
        asked=Asked("openai-chat", "state"),
        body=body,
        reply=CollectedReply(),
        record=ExchangeRecord("req_1", 0.0),
    )


def test_a_list_says_where_it_begins_ends_and_whether_it_goes_on() -> None:
    entries = [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    told = listed(entries, has_more=True)
    assert told == {"object": "list", "data": entries, "first_id": "a", "last_id": "c", "has_more": True}
    empty: dict[str, object] = {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }
    assert listed([], has_more=False) == empty


@rows(("query", "order"), [("", "desc"), ("order=desc", "desc"), ("order=asc", "asc")])
def test_the_newest_come_first_unless_asked_otherwise(query: str, order: str) -> None:
    assert order_of(page(query)) == order
    with pytest.raises(RequestError, match="order: expected asc or desc"):
        order_of(page("order=up"))


def test_a_size_is_between_one_and_a_hundred() -> None:
    assert [page_size(page(f"limit={size}")) for size in ("1", "7", "100", "")] == [1, 7, 100, 20]
    for wrong in ("0", "101", "-1", "x", "\u0664", "1" * 19):
        with pytest.raises(RequestError) as refused:
            page_size(page(f"limit={wrong}"))
        assert refused.value.error.param == "limit"


@rows(("body", "code"), [(b"{", "invalid_json"), (b"[]", "invalid_type"), (b"5", "invalid_type")])
def test_a_body_is_an_object_or_nothing(body: bytes, code: str) -> None:
    assert page().document() == {}
    assert page(body=b'{"a": 1}').document() == {"a": 1}
    with pytest.raises(RequestError) as refused:
        page(body=body).document()
    assert refused.value.error.code == code


def test_what_needs_the_store_is_to_be_tried_again() -> None:
    error = unavailable("keys").error
    assert (error.code, error.retry_after, error.status) == ("storage_unavailable", 2, 503)
