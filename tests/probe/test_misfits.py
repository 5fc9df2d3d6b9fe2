"""What the probe says of an answer that does not match the schema it was asked for."""

from __future__ import annotations

from typing import Any, Final

from tests.tiers import rows
from wireglot.http.transport import TransportFault, TransportProblem
from wireglot.probe.cases.schemas import misfit
from wireglot.probe.endpoint import _words

_CLOSED: Final = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
_TREE: Final = {
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    "$ref": "#/$defs/node",
}
_EITHER: Final = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


@rows(
    ("schema", "value", "said"),
    [
        ({}, {"anything": [1]}, ""),
        ({"type": "string"}, "x", ""),
        ({"type": "string"}, 1, "$: expected string, found 1"),
        ({"type": "integer"}, True, "$: expected integer, found True"),
        ({"type": "boolean"}, True, ""),
        ({"type": "number"}, 1.5, ""),
        ({"type": "number"}, 1, ""),
        ({"type": "integer"}, 1.5, "$: expected integer, found 1.5"),
        ({"type": "null"}, None, ""),
        ({"enum": ["a", "b"]}, "b", ""),
        ({"enum": ["a", "b"]}, "c", "$: 'c' is not one of ['a', 'b']"),
        ({"type": "array", "items": {"type": "string"}}, ["a", "b"], ""),
        ({"type": "array", "items": {"type": "string"}}, ["a", 2], "$[1]: expected string, found 2"),
        ({"type": "array"}, [1, "a"], ""),
        (_CLOSED, {"a": "x"}, ""),
        (_CLOSED, {}, ""),
        (_CLOSED, {"b": 1}, "$: b is not allowed"),
        (_CLOSED, {"a": 1}, "$.a: expected string, found 1"),
        ({**_CLOSED, "additionalProperties": True}, {"b": 1}, ""),
        ({**_CLOSED, "required": ["a"]}, {}, "$: a is missing"),
        (_TREE, {"next": {"next": {}}}, ""),
        (_TREE, {"next": {"next": 1}}, "$.next.next: expected object, found 1"),
        (_EITHER, None, ""),
        (_EITHER, 1, ""),
        (_EITHER, "x", "$: matches none of the alternatives ($: expected integer, found 'x')"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(schema: dict[str, Any], value: Any, said: str) -> None:
    assert misfit(value, schema) == said


@rows(
    ("problem", "said"),
    [
        ("dns", "unknown host name"),
        ("connect", "connection refused"),
        ("tls", "TLS handshake failed: why"),
        ("first_byte_timeout", "timed out"),
        ("idle_timeout", "timed out"),
        ("total_timeout", "timed out"),
        ("broken", "the connection was closed too early"),
        ("protocol", "why"),
    ],
)
def test_an_endpoint_that_does_not_answer_is_said_in_words(problem: TransportProblem, said: str) -> None:
    assert _words(TransportFault(problem, "why")) == said
