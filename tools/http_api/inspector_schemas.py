"""The shapes of what the inspector's page asks for."""

from __future__ import annotations

from typing import Any

import msgspec

from tools.http_api.shapes import Schema, fields, flag, listed, nullable, ref, text, whole
from wireglot.gateway.inspector.playground import KINDS
from wireglot.gateway.trace.growing import GrowingTrace
from wireglot_core.ir.grades import GRADE_MEANINGS
from wireglot_core.traces.trace import Row, Trace


def inspector_schemas() -> dict[str, Schema]:
    problem = {
        "message": text(),
        "path": text("in the form used for losses: `$.messages[0].content`"),
        "pointer": text("the same as a JSON pointer; the target may be missing"),
        "line": whole("from 1; if the text cannot be parsed"),
        "column": whole("from 1"),
        "offset": nullable(whole("characters before it")),
    }
    loss = {
        "path": text("in the document that the client sent or receives"),
        "feature": text(),
        "action": text(),
        "detail": text(),
        "grade": text(enum=list(GRADE_MEANINGS)),
        "document": text(enum=["request", "response"]),
        "pointer": text("the path as a JSON pointer"),
        "reason": text("why it has this grade"),
        "line": whole("for a stream: number of the event that caused it, from 1"),
    }
    return {
        "InspectorSession": fields(
            {
                "access": text(
                    "`open`: this machine, while no client key is required",
                    enum=["open", "admin", "key", "none"],
                ),
                "key": text("the name of the client key"),
                "csrf": text("the token for changes"),
                "until": nullable(whole("end of the session, in unix seconds")),
                "version": text("of the gateway"),
                "workers": whole(),
                "currency": text("currency of all amounts; rows use millionths of it"),
                "admin": flag("whether an admin secret is set"),
                "sign_in": flag("whether signing in is possible"),
                "provider": text("the identity provider that /login redirects to; empty: none"),
                "why": text("why access is denied"),
            },
            optional=("why",),
        ),
        "ConfigurationFile": fields(
            {
                "path": text(),
                "exists": flag("false: the first change creates it"),
                "why_fixed": text("why the file cannot be changed here; empty: it can be"),
                "may_change_all": flag(
                    "whether more than models, prices, currency and losses may be changed"
                ),
                "overridden": listed(
                    text(), "settings that environment variables or the command line override"
                ),
                "digest": text("digest of the content; send it back with a change"),
                "text": text("the content, with secrets replaced by `[hidden]`"),
            }
        ),
        "ConfigurationEdit": fields(
            {
                "digest": text("digest of the content that the change is based on"),
                "text": text("the whole file; an unchanged line with `[hidden]` keeps its value"),
                "changes": listed(
                    fields({"path": listed(text(), "below `models` or `providers`"), "value": {}}),
                    "instead of `text`: values at paths, null to remove one; comments and order are kept",
                ),
            },
            optional=("text", "changes"),
        ),
        "CheckedConfiguration": fields(
            {
                "digest": text(),
                "text": text("the resulting content, without secrets"),
                "difference": listed(text(), "lines of a unified diff"),
                "problems": listed(fields({"path": text(), "expected": text(), "found": text()})),
                "notes": listed(text()),
            }
        ),
        "WrittenConfiguration": fields(
            {
                "digest": text(),
                "applied": flag("whether the change is in effect; if not, it is at the next start"),
            }
        ),
        "ProviderKey": fields(
            {"key": text(), "unchecked": flag("store it without checking it")}, optional=("unchecked",)
        ),
        "KeptProviderKey": fields(
            {
                "kept": flag(),
                "applied": flag(),
                "verdict": text(enum=["good", "refused", "unknown"]),
                "outcome": text(),
                "sentence": text("the result in words, with the provider's message"),
                "milliseconds": whole(),
                "models": whole("number of models that the provider lists"),
                "off": listed(text(), "providers that this turned off: the demo, once another is on"),
            },
            optional=("kept", "applied", "verdict", "outcome", "sentence", "milliseconds", "models", "off"),
        ),
        "SignIn": fields({"secret": text("the admin secret or a client key")}),
        "InspectorSignedOut": fields(
            {"access": {"const": "none"}, "unreached": text("why other machines have not been notified yet")},
            optional=("unreached",),
        ),
        "ToTranslate": fields(
            {
                "dialect": text("of the text"),
                "kind": text(enum=list(KINDS)),
                "text": text("JSON, or the events of a stream; at most 1 MiB"),
                "request": text("the request of an answer or a stream; used to restore tool names"),
                "model": text("the model, if the text names none"),
                "only": listed(text(), "the dialects to translate to; default: all others"),
                "aligned": flag("for a stream: return `events` instead of text"),
            },
            optional=("request", "model", "only", "aligned"),
        ),
        **_trace_schemas(),
        "Problem": fields(problem, optional=("line", "column", "offset")),
        "Translation": fields(
            {
                "text": text(),
                "losses": listed(fields(loss, optional=("line",)), "most serious first"),
                "more_losses": whole("number of further losses"),
                "error": ref("Problem"),
                "broken": flag("the stream ends in an error"),
                "events": listed(
                    text(),
                    "the translation of each event; the last entry is what the end of the stream adds",
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
                "events": listed(text(), "the events of the text, if `aligned`"),
            },
            optional=("events",),
        ),
        "ToAsk": fields(
            {
                "model": text("default: the demo model"),
                "text": text("the user's message"),
                "stream": flag("whether to stream the answer; default: true"),
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
                "next": nullable(text("to be sent as `before`")),
                "unread": whole("recordings that were not searched because they cannot be decrypted here"),
                "fleet": ref("InspectedFleet"),
                "count": whole("with `count`: how many match, 2,000 at most; `rows` is empty"),
                "more": flag("with `count`: there are more than that, or texts were not searched everywhere"),
            },
            optional=("unread", "fleet", "count", "more"),
        ),
        "InspectedFleet": fields(
            {
                "machines": whole("machines seen in the last 15 minutes, including this one"),
                "trouble": nullable(text("why exchanges of other machines are missing")),
                "unreported": whole("exchanges that could not be shared between machines"),
                "untold": whole("the same, under its former name"),
                "unshared": whole("recordings that only this machine can read"),
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
                "until": nullable(
                    {"type": "number", "description": "all bodies are recorded until then, in unix seconds"}
                ),
                "dropped": whole("exchanges that should have been recorded and were not"),
                "kept_bytes": whole("size of all recordings"),
                "memory": {
                    "oneOf": [
                        fields(
                            {
                                "exchanges": whole(
                                    "exchanges whose bodies are only in this process's memory"
                                ),
                                "bytes": whole("memory used for them"),
                                "most_bytes": whole("maximum memory for them"),
                            }
                        ),
                        {"type": "null"},
                    ]
                },
                "workers": whole("number of workers that answered"),
                "fleet": {"oneOf": [ref("InspectedFleet"), {"type": "null"}]},
                "unreached": text("why other machines have not been notified yet"),
            },
            optional=("unreached",),
        ),
        "ToRecord": fields({"minutes": {"type": "number", "minimum": 0, "maximum": 1440}}),
        "ToReplay": fields(
            {
                "id": text("of a recorded exchange; without it `to`, `dialect` and `body` are needed"),
                "to": text("`provider/model` or a model name; default: the model of the recorded request"),
                "dialect": text("dialect of the request; default: that of the recorded one"),
                "body": {"description": "a body to send instead: an object, or its JSON text"},
                "stream": flag(
                    "whether to stream, for dialects that select it by path; default: as recorded"
                ),
                "dry": flag("only return the possible cost"),
                "show": flag("with `dry`: also return the upstream request, as a trace without an answer"),
                "answer": flag("return the answer of the request instead of an id"),
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
