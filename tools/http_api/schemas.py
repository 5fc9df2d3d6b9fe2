"""The shapes that are the gateway's own. Those of the dialects are their vendors', and only named here."""

from __future__ import annotations

from typing import Final, get_args

import msgspec

from tools.http_api.inspector_schemas import inspector_schemas
from tools.http_api.shapes import Schema, fields, flag, listed, nullable, ref, text, whole
from wireglot.gateway.config.keys import MONEY, RESERVED
from wireglot.gateway.config.table import declared
from wireglot.gateway.settings import ClientKey
from wireglot.gateway.state.keys.ring import MAX_OVERLAP_SECONDS, PREFIX
from wireglot.gateway.state.ledger.report import GROUPS
from wireglot.stores.records import KeyQuotas, Outcome, Stats
from wireglot_core.ir.grades import GRADE_MEANINGS
from wireglot_core.ir.loss import Action, Document
from wireglot_core.ir.usage import KINDS

LOSS_POLICIES: Final = ("strict", "warn", "silent", "as-is")


def schemas() -> dict[str, Schema]:
    parts = (_errors, _keys, _sign_in, _usage, _losses, _sessions, _store, _condition, _simple)
    own = {name: schema for part in parts for name, schema in part().items()}
    return {**own, **inspector_schemas()}


def _errors() -> dict[str, Schema]:
    return {
        "AnthropicError": fields(
            {
                "type": {"const": "error"},
                "error": fields({"type": text("Anthropic's name of the error type"), "message": text()}),
                "request_id": nullable(text("the `id` of the log line")),
            },
            optional=("request_id",),
        ),
        "VertexError": {
            "anyOf": [ref("AnthropicError"), ref("GeminiError")],
            "description": "model errors in Anthropic's format, errors of paths and access in Google's",
        },
        "BedrockError": fields({"__type": text("as in `x-amzn-errortype`"), "message": text()}),
        "OllamaError": fields({"error": text()}),
        "OpenAIError": fields(
            {
                "error": fields(
                    {
                        "message": text(),
                        "type": text("OpenAI's name of the error type"),
                        "param": nullable(text("the field that is wrong")),
                        "code": nullable(text("a code of the errors reference")),
                    }
                )
            }
        ),
        "InteractionsError": fields(
            {
                "error": fields(
                    {"code": text("Google's name of the error type in this API"), "message": text()}
                )
            }
        ),
        "GeminiError": fields(
            {
                "error": fields(
                    {
                        "code": whole("the HTTP status"),
                        "message": text(),
                        "status": text("Google's name of the error type"),
                        "details": listed(
                            {"type": "object", "additionalProperties": True},
                            "`ErrorInfo`: the gateway's code as `reason`; `RequestInfo`: the request id",
                        ),
                    },
                    optional=("details",),
                )
            }
        ),
    }


def _limits(*, may_be_null: bool) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    for name, quota in declared(KeyQuotas).items():
        kind = "number" if name in MONEY else "integer"
        more = ", in the configuration's currency" if name in MONEY else ""
        schema: Schema = {"type": kind, "description": f"{quota.description}{more}", "minimum": 0}
        found[name] = nullable(schema) if may_be_null else schema
    return found


def _keys() -> dict[str, Schema]:
    states = ["active", "expired", "revoked", "unreadable"]
    moment = {"format": "date-time"}
    group = {
        "group": nullable(text("a group of the configuration, used for what the key does not set")),
        "owner": nullable(text("the person who uses it")),
    }
    key = {
        "name": text("the name of the caller; data, usage and limits belong to it"),
        "prefix": text("the first characters of the key, to distinguish keys"),
        "state": text(enum=states),
        "created": nullable(text(**moment)),
        "models": listed(text(), "models that the key may use: names and patterns; empty: all"),
        "losses": nullable(text("loss policy of requests that set none")),
        "expires": nullable(text(**moment)),
        **group,
        "revoked": nullable(text(**moment)),
        "group": nullable(text("its group of `[groups]`")),
        "owner": nullable(text("the person who uses it")),
        "sign_in_of": nullable(text("for the token of a signed-in device: the name of the person's key")),
        "old_key_until": nullable(text("when the key from before the last rotation stops working", **moment)),
        **_limits(may_be_null=True),
    }
    settable = {
        "models": nullable(listed(text(), "models that the key may use: names and patterns; empty: all")),
        "losses": nullable(text("loss policy of requests that set none", enum=[*LOSS_POLICIES, None])),
        "expires": nullable(text("a date or a time; UTC by default")),
        **group,
        **_limits(may_be_null=True),
    }
    assert "losses" in declared(ClientKey)
    name = text(
        f"allowed characters: letters, digits, `.`, `_`, `@`, `-`; not {' or '.join(sorted(RESERVED))}",
        maxLength=64,
    )
    return {
        "Key": fields(key, about="A client key, without the key itself."),
        "NewKey": fields(
            {**key, "key": text(f"the key itself, returned only once; it begins with `{PREFIX}`")},
            about="A newly created client key.",
        ),
        "KeyList": fields({"object": {"const": "list"}, "data": listed(ref("Key"))}),
        "KeyToMake": fields({"name": name, **settable}, optional=tuple(settable)),
        "KeyChange": fields(
            settable, optional=tuple(settable), about="Only the given fields change; null removes a value."
        ),
        "KeyRotation": fields(
            {
                "overlap": whole(
                    "seconds for which the old key keeps working",
                    minimum=0,
                    maximum=MAX_OVERLAP_SECONDS,
                    default=0,
                )
            },
            optional=("overlap",),
        ),
        "Wiped": fields(
            {
                "caller": text(),
                "removed": {
                    "type": "object",
                    "description": "number of deleted records, by kind",
                    "additionalProperties": {"type": "integer"},
                },
            }
        ),
    }


def _sign_in() -> dict[str, Schema]:
    grants = ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]
    endpoints = ("device_authorization_endpoint", "token_endpoint", "revocation_endpoint")
    methods = ("token_endpoint_auth_methods_supported", "revocation_endpoint_auth_methods_supported")
    return {
        "OAuthError": fields(
            {"error": text("a code of RFC 6749 or RFC 8628"), "error_description": text()},
            optional=("error_description",),
        ),
        "SignInMetadata": fields(
            {
                "issuer": text("the address of the gateway"),
                **{name: text() for name in endpoints},
                "grant_types_supported": listed(text(enum=grants)),
                "response_types_supported": listed(text()),
                **{name: listed(text()) for name in methods},
            }
        ),
        "DeviceSignIn": {
            **fields({"surface": text("the client application")}, optional=("surface",)),
            "additionalProperties": True,
        },
        "DeviceCode": fields(
            {
                "device_code": text("for the client"),
                "user_code": text("for the person"),
                "verification_uri": text("the page to open"),
                "verification_uri_complete": text("the same with the code filled in"),
                "expires_in": whole("seconds"),
                "interval": whole("seconds between two polls"),
                "login_notice": text("`login.notice`"),
            },
            optional=("login_notice",),
        ),
        "TokenRequest": {
            **fields(
                {"grant_type": text(enum=grants), "device_code": text(), "refresh_token": text()},
                optional=("device_code", "refresh_token"),
            ),
            "additionalProperties": True,
        },
        "Tokens": fields(
            {
                "access_token": text("used as a client key"),
                "token_type": {"const": "Bearer"},
                "expires_in": whole("seconds"),
                "refresh_token": text("can be used once"),
                "email": text("the owner of the key, where it is an address"),
            },
            optional=("email",),
        ),
        "TokenToRevoke": {
            **fields(
                {"token": text("either token"), "token_type_hint": text()}, optional=("token_type_hint",)
            ),
            "additionalProperties": True,
        },
    }


def _usage() -> dict[str, Schema]:
    numbers = {
        "requests": whole(),
        "succeeded": whole(),
        "failed": whole("ended with an error, or was aborted"),
        "open": whole("still running"),
        **{f"{kind}_tokens": whole() for kind in KINDS},
        "total_input_tokens": whole(),
        "total_output_tokens": whole(),
        "total_tokens": whole(),
        "cost_micros": nullable(whole("in millionths of the currency; null: price unknown")),
        "cost": nullable(text("the same as a decimal number")),
        "unpriced_requests": whole("requests whose cost is unknown"),
        "mean_ms": whole(),
        "p50_ms": whole("median duration"),
        "first": whole("unix seconds"),
        "last": whole("unix seconds"),
    }
    groups = {name: text() for name in GROUPS}
    groups["outcome"] = text("how the requests ended; empty: still running", enum=list(get_args(Outcome)))
    return {
        "UsageTotal": fields(
            numbers, about="Kinds of tokens do not overlap; the totals include all of them."
        ),
        "UsageRow": fields(
            {**groups, **numbers},
            optional=tuple(groups),
            about="The totals of one group.",
        ),
        "Usage": fields(
            {
                "object": {"const": "usage.list"},
                "currency": text(),
                "start": whole("unix seconds"),
                "end": nullable(whole("unix seconds; null: now")),
                "group_by": listed(text(enum=list(GROUPS))),
                "data": listed(ref("UsageRow")),
                "total": {"anyOf": [ref("UsageTotal"), {"type": "object", "maxProperties": 0}]},
                "durations": text(
                    "whether `p50_ms` is exact, or computed from hourly sums and accurate within 5 %",
                    enum=["measured", "within_5_percent"],
                ),
                "has_more": {"const": True},
            },
            optional=("has_more",),
        ),
    }


def _losses() -> dict[str, Schema]:
    return {
        "Loss": fields(
            {
                "path": text("position in the client's own document; `[*]` stands for several indices"),
                "feature": text("stable name of the feature, see the losses reference"),
                "action": text(enum=list(get_args(Action))),
                "detail": text("why"),
                "grade": text(enum=list(GRADE_MEANINGS)),
                "document": text("the document that the path points into", enum=list(get_args(Document))),
                "count": whole("number of losses, if this entry combines several"),
            },
            optional=("count",),
        ),
        "Losses": fields(
            {
                "object": {"const": "losses"},
                "request_id": text(),
                "created": whole("unix seconds"),
                "dialect": text(),
                "model": text("as requested by the client"),
                "route": text("`provider/model` that answered"),
                "losses": listed(ref("Loss"), "most serious first"),
                "unreported": whole("number of losses left out for lack of space"),
                "untold": whole("the same, under its former name"),
            }
        ),
    }


def _sessions() -> dict[str, Schema]:
    session = {
        "id": text(),
        "object": {"const": "session"},
        "held": flag("whether the gateway stores its conversation"),
        "created_at": whole("unix seconds"),
        "last_used_at": whole("unix seconds"),
        "requests": whole(),
        "tokens": whole(),
        "cost": whole("in millionths of the currency"),
        "model": nullable(text("of the last request")),
        "dialects": listed(text()),
        "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    items = {
        "items": listed(
            {"type": "object", "additionalProperties": True}, "in the format of OpenAI's Responses API"
        ),
        "has_more": flag("whether there are older items"),
    }
    latest = {
        "route": nullable(text("`provider/model` that answered the last request")),
        "last_request": nullable(text("the id of that request")),
        "currency": text("of `cost`"),
    }
    return {
        "Session": fields(
            {**session, **latest, **items},
            optional=tuple(items),
            about="With its items, if the gateway stores the conversation.",
        ),
        "SessionList": fields(
            {
                "object": {"const": "list"},
                "data": listed(fields(session)),
                "has_more": flag(),
                "after": nullable(text("what to send as `after` for the next page")),
            }
        ),
        "SessionDeleted": fields(
            {"id": text(), "object": {"const": "session.deleted"}, "deleted": {"const": True}}
        ),
    }


def _store() -> dict[str, Schema]:
    _, components = msgspec.json.schema_components([Stats], ref_template="#/components/schemas/{name}")
    stats = components.pop("Stats")
    stats.pop("title", None)
    kind = components.pop("KindStats")
    kind.pop("title", None)
    assert not components
    stats["properties"] |= {
        "engine": text("the storage engine and where it is, for display"),
        "version": whole("version of the schema"),
        "size": whole("bytes on disk, if the storage engine reports it"),
        "trouble": nullable(text("the current problem, if any")),
        "processes": whole("number of processes that share the store"),
    }
    stats["description"] = "What is stored, by kind."
    kind["description"] = "Number and size of records of one kind; times in unix milliseconds."
    return {"Store": stats, "KindStats": kind}


def _condition() -> dict[str, Schema]:
    return {
        "Health": fields({"status": {"const": "ok"}}),
        "Readiness": fields(
            {
                "status": text(enum=["ready", "degraded", "draining"]),
                "store": text("present while the store is not available", const="down"),
                "config": text("present while a newer configuration is rejected", const="refused"),
            },
            optional=("store", "config"),
        ),
        "Root": fields(
            {
                "name": {"const": "wireglot"},
                "version": text(),
                "help": text("a hint for people who open this URL in a browser"),
                "endpoints": {
                    "type": "object",
                    "description": "`METHOD /path`, by dialect",
                    "additionalProperties": listed(text()),
                },
            }
        ),
    }


def _simple() -> dict[str, Schema]:
    anything = {"type": "object", "additionalProperties": True}
    return {
        "SimpleRequest": fields(
            {
                "model": text(),
                "input": text("the user's message"),
                "conversation": text(
                    "a name of your choice, or a `conv_...` id; earlier turns are sent before this one"
                ),
                "tools": listed(anything, "in Gemini's format: `[{functionDeclarations: [...]}]`"),
                "tool_config": {**anything, "description": "in Gemini's format"},
                "tool_results": listed(anything, "results of the calls of the last turn: `functionResponse`"),
                "stream": flag("server-sent events"),
                "timeout": {"type": "number", "description": "seconds for the whole answer"},
                "temperature": {"type": "number"},
                "top_p": {"type": "number"},
                "top_k": {"type": "number"},
                "max_output_tokens": whole(minimum=1),
                "stop_sequences": listed(text()),
            },
            optional=(
                "input",
                "conversation",
                "tools",
                "tool_config",
                "tool_results",
                "stream",
                "timeout",
                "temperature",
                "top_p",
                "top_k",
                "max_output_tokens",
                "stop_sequences",
            ),
            about="One turn. Names in camel case (`topP`, `toolConfig`) are accepted as well.",
        )
    }
