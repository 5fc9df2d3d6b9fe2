"""The shapes of what the inspector's page asks for."""

from __future__ import annotations

from typing import Any

import msgspec

from tools.http_api.shapes import Schema, fields, flag, listed, nullable, ref, text, whole
from wireglot.gateway.inspector.playground import KINDS
from wireglot.gateway.trace.growing import GrowingTrace
from wireglot.ir.grades import GRADE_MEANINGS
from wireglot.traces.trace import Row, Trace


def inspector_schemas() -> dict[str, Schema]:
    problem = {
        "message": text(),
        "path": text("as losses tell it: `$.messages[0].content`"),
        "pointer": text("the same as a JSON pointer; what it names may be missing"),
        "line": whole("from 1; where the text cannot be read"),
        "column": whole("from 1"),
        "offset": nullable(whole("letters before it")),
    }
    loss = {
        "path": text("in the document that the client sent, or gets"),
        "feature": text(),
        "action": text(),
        "detail": text(),
        "grade": text(enum=list(GRADE_MEANINGS)),
        "document": text(enum=["request", "response"]),
        "pointer": text("the path as a JSON pointer"),
        "reason": text("why it has this grade"),
        "line": whole("of a stream, from 1: the event that brought it"),
    }
    return {
        "InspectorSession": fields(
            {
                "access": text(
                    "`open`: this machine, while nobody needs a key", enum=["open", "admin", "key", "none"]
                ),
                "key": text("the name of the client key"),
                "csrf": text("the token for changes"),
                "until": nullable(whole("when the session ends, in unix seconds")),
                "version": text("of the gateway"),
                "workers": whole(),
                "currency": text("of all amounts; rows have millionths of it"),
                "admin": flag("whether an admin secret is set"),
                "sign_in": flag("whether there is anything to sign in with"),
                "provider": text("the identity provider that /login leads to; empty: none"),
                "why": text("why one may not look"),
            },
            optional=("why",),
        ),
        "ConfigurationFile": fields(
            {
                "path": text(),
                "exists": flag("false: it is written with the first change"),
                "why_fixed": text("why it cannot be changed here; empty: it can"),
                "may_change_all": flag(
                    "whether more than models, prices, currency and losses may be changed"
                ),
                "overridden": listed(text(), "what variables and the command line decide instead"),
                "digest": text("of the content, for a change of it"),
                "text": text("without its secrets: `[hidden]`"),
            }
        ),
        "ConfigurationEdit": fields(
            {
                "digest": text("of the content that was shown"),
                "text": text("the whole file; a line with `[hidden]` keeps its value as and where it is"),
                "changes": listed(
                    fields({"path": listed(text(), "below `models` or `providers`"), "value": {}}),
                    "instead of a text: values at paths, null to remove one; comments and order stay",
                ),
            },
            optional=("text", "changes"),
        ),
        "CheckedConfiguration": fields(
            {
                "digest": text(),
                "text": text("as it would be, without its secrets"),
                "difference": listed(text(), "lines of a unified one"),
                "problems": listed(fields({"path": text(), "expected": text(), "found": text()})),
                "notes": listed(text()),
            }
        ),
        "WrittenConfiguration": fields(
            {"digest": text(), "applied": flag("whether the gateway took it up; else at the next start")}
        ),
        "ProviderKey": fields(
            {"key": text(), "unchecked": flag("keep it without trying it")}, optional=("unchecked",)
        ),
        "KeptProviderKey": fields(
            {
                "kept": flag(),
                "applied": flag(),
                "verdict": text(enum=["good", "refused", "unknown"]),
                "outcome": text(),
                "sentence": text("what the provider says of it"),
                "milliseconds": whole(),
                "models": whole("how many it lists"),
                "off": listed(text(), "providers that are on no longer: the demo, once there is another"),
            },
            optional=("kept", "applied", "verdict", "outcome", "sentence", "milliseconds", "models", "off"),
        ),
        "SignIn": fields({"secret": text("the admin secret or a client key")}),
        "InspectorSignedOut": fields(
            {"access": {"const": "none"}, "unreached": text("why other machines do not know of it yet")},
            optional=("unreached",),
        ),
        "ToTranslate": fields(
            {
                "dialect": text("of the text"),
                "kind": text(enum=list(KINDS)),
                "text": text("JSON, or the events of a stream; at most 1 MiB"),
                "request": text("what an answer or a stream answers: it brings back names of tools"),
                "model": text("where the text names none"),
                "only": listed(text(), "the dialects to translate to; all others where none is named"),
                "aligned": flag("of a stream: `events` in the place of its text"),
            },
            optional=("request", "model", "only", "aligned"),
        ),
        **_trace_schemas(),
        "Problem": fields(problem, optional=("line", "column", "offset")),
        "Translation": fields(
            {
                "text": text(),
                "losses": listed(fields(loss, optional=("line",)), "the worst first"),
                "more_losses": whole("so many more"),
                "error": ref("Problem"),
                "broken": flag("the stream ends in an error"),
                "events": listed(
                    text(), "of each event of the text, what became of it; last, what its end adds"
                ),
            },
            optional=("more_losses", "error", "broken", "events"),
        ),
        "Translations": fields(
            {
                "dialect": text(),
                "kind": text(enum=list(KINDS)),
                "problem": {
                    "description": "what is wrong with the text; then `dialects` is empty",
                    "oneOf": [ref("Problem"), {"type": "null"}],
                },
                "dialects": {
                    "type": "object",
                    "description": "by the names of all other dialects",
                    "additionalProperties": ref("Translation"),
                },
                "events": listed(text(), "of the text, where it is aligned"),
            },
            optional=("events",),
        ),
        "ToAsk": fields(
            {
                "model": text("the demo model where none is named"),
                "text": text("what to ask"),
                "stream": flag("whether the answer is a stream; it is where nothing is said"),
            },
            optional=("model", "text", "stream"),
        ),
        "AskedExchange": fields(
            {
                "id": text("of the exchange"),
                "model": text(),
                "status": whole("of the answer"),
                "error": fields({"message": text()}),
            },
            optional=("error",),
        ),
    }


def _trace_schemas() -> dict[str, Schema]:
    """A row and a trace as they are declared, their parts under names of their own."""
    _, parts = msgspec.json.schema_components(
        (Row, Trace, GrowingTrace), ref_template="#/components/schemas/{name}"
    )
    own = ("Row", "GrowingTrace")
    named = {
        name: name if name in own else f"Trace{name.removeprefix('Traced').removeprefix('Trace')}"
        for name in parts
    }
    found = {named[name]: _renamed(schema, named) for name, schema in parts.items()}
    losses = listed(ref(named["TracedLoss"]))
    return {
        **found,
        "ExchangeList": fields(
            {
                "rows": listed(ref("Row")),
                "next": nullable(text("to be asked for as `before`")),
                "unread": whole("recordings that a search could not look into, since they do not open here"),
                "fleet": ref("InspectedFleet"),
            },
            optional=("unread", "fleet"),
        ),
        "InspectedFleet": fields(
            {
                "machines": whole("that were heard of within a quarter of an hour, this one too"),
                "trouble": nullable(text("why what others answer is missing")),
                "untold": whole("exchanges that their machines could not tell"),
                "unshared": whole("recordings that only this machine can open"),
            }
        ),
        "TraceOrRow": {
            "oneOf": [
                ref("Trace"),
                fields(
                    {
                        "row": ref("Row"),
                        "losses": losses,
                        "why": text("why recorded bodies cannot be shown here"),
                    },
                    optional=("why",),
                ),
            ]
        },
        "GrowingTraceOrRow": {
            "oneOf": [
                ref("GrowingTrace"),
                fields({"row": ref("Row"), "why": text("why it cannot be shown here")}, optional=("why",)),
            ]
        },
        "Recording": fields(
            {
                "mode": text(enum=["off", "errors", "all"]),
                "until": nullable({"type": "number", "description": "all are, until then: unix seconds"}),
                "dropped": whole("exchanges that were to be recorded, and were not"),
                "kept_bytes": whole("of all recordings"),
                "memory": {
                    "oneOf": [
                        fields(
                            {
                                "exchanges": whole("whose bodies this process holds in memory alone"),
                                "bytes": whole("that they take"),
                                "most_bytes": whole("that they may take"),
                            }
                        ),
                        {"type": "null"},
                    ]
                },
                "workers": whole("that answered"),
                "fleet": {"oneOf": [ref("InspectedFleet"), {"type": "null"}]},
                "unreached": text("why other machines do not know of it yet"),
            },
            optional=("unreached",),
        ),
        "ToRecord": fields({"minutes": {"type": "number", "minimum": 0, "maximum": 1440}}),
        "ToReplay": fields(
            {
                "id": text("of a recorded exchange; without it `to`, `dialect` and `body` are needed"),
                "to": text("`provider/model`, or any model's name; else as it was asked"),
                "dialect": text("to ask in; else as it was asked"),
                "body": {"description": "to ask in its place: an object, or its text"},
                "stream": flag("to stream or not, where the dialect's path tells it; else as it was asked"),
                "dry": flag("only tell what it may cost"),
                "show": flag("with `dry`: what would be sent, too, as a trace without an answer"),
                "answer": flag("answer with what the request is answered with"),
            },
            optional=("id", "to", "dialect", "body", "stream", "dry", "show", "answer"),
        ),
    }


def _renamed(schema: Any, names: dict[str, str]) -> Any:
    """References under the names that the parts have here."""
    if isinstance(schema, list):
        return [_renamed(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: f"#/components/schemas/{names[value.rpartition('/')[2]]}"
        if key == "$ref"
        else _renamed(value, names)
        for key, value in schema.items()
        if key != "title"
    }
