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
from wireglot.ir.grades import GRADE_MEANINGS
from wireglot.ir.loss import Action, Document
from wireglot.ir.usage import KINDS
from wireglot.stores.records import KeyQuotas, Outcome, Stats

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
                "error": fields({"type": text("its kind, as Anthropic calls it"), "message": text()}),
                "request_id": nullable(text("the `id` of the log line")),
            },
            optional=("request_id",),
        ),
        "VertexError": {
            "anyOf": [ref("AnthropicError"), ref("GeminiError")],
            "description": "of the model as Anthropic's, of paths and access as Google's",
        },
        "BedrockError": fields({"__type": text("as in `x-amzn-errortype`"), "message": text()}),
        "OllamaError": fields({"error": text()}),
        "OpenAIError": fields(
            {
                "error": fields(
                    {
                        "message": text(),
                        "type": text("its kind, as OpenAI calls it"),
                        "param": nullable(text("the field that is wrong")),
                        "code": nullable(text("one of the codes of the errors reference")),
                    }
                )
            }
        ),
        "InteractionsError": fields(
            {"error": fields({"code": text("its kind, as Google calls it here"), "message": text()})}
        ),
        "GeminiError": fields(
            {
                "error": fields(
                    {
                        "code": whole("the HTTP status"),
                        "message": text(),
                        "status": text("its kind, as Google calls it"),
                        "details": listed(
                            {"type": "object", "additionalProperties": True},
                            "an `ErrorInfo` has our code as its `reason`, a `RequestInfo` the request's id",
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
        "group": nullable(text("a group of the configuration: what the key does not set is the group's")),
        "owner": nullable(text("the person who uses it")),
    }
    key = {
        "name": text("the caller whose data, usage and limits it is"),
        "prefix": text("its first letters, to tell keys apart"),
        "state": text(enum=states),
        "created": nullable(text(**moment)),
        "models": listed(text(), "names and patterns that it may ask for; none: all"),
        "losses": nullable(text("the policy of its requests, where they say none")),
        "expires": nullable(text(**moment)),
        **group,
        "revoked": nullable(text(**moment)),
        "group": nullable(text("its group of `[groups]`")),
        "owner": nullable(text("the person who uses it")),
        "sign_in_of": nullable(text("of a device that signed in: the name of its key")),
        "old_key_until": nullable(text("until when the key before the last rotation opens", **moment)),
        **_limits(may_be_null=True),
    }
    settable = {
        "models": nullable(listed(text(), "names and patterns that it may ask for; none: all")),
        "losses": nullable(
            text("the policy of its requests, where they say none", enum=[*LOSS_POLICIES, None])
        ),
        "expires": nullable(text("a date or a time; UTC by default otherwise")),
        **group,
        **_limits(may_be_null=True),
    }
    assert "losses" in declared(ClientKey)
    name = text(f"letters, digits, `.`, `_`, `@`, `-`; not {' or '.join(sorted(RESERVED))}", maxLength=64)
    return {
        "Key": fields(key, about="A client key as people may see it: without the key."),
        "NewKey": fields(
            {**key, "key": text(f"the key itself, reported this once; it begins with `{PREFIX}`")},
            about="A client key that was just made.",
        ),
        "KeyList": fields({"object": {"const": "list"}, "data": listed(ref("Key"))}),
        "KeyToMake": fields({"name": name, **settable}, optional=tuple(settable)),
        "KeyChange": fields(
            settable, optional=tuple(settable), about="What is named changes; null takes it off."
        ),
        "KeyRotation": fields(
            {
                "overlap": whole(
                    "seconds for which the old key still opens",
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
                    "description": "how many of each kind",
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
                "refresh_token": text("good once"),
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
        "failed": whole("ended otherwise than well"),
        "open": whole("not ended yet"),
        **{f"{kind}_tokens": whole() for kind in KINDS},
        "total_input_tokens": whole(),
        "total_output_tokens": whole(),
        "total_tokens": whole(),
        "cost_micros": nullable(whole("in millionths of the currency; null: nobody knows the price")),
        "cost": nullable(text("the same as a decimal number")),
        "unpriced_requests": whole("whose cost is not known"),
        "mean_ms": whole(),
        "p50_ms": whole("half of the requests took no longer"),
        "first": whole("unix seconds"),
        "last": whole("unix seconds"),
    }
    groups = {name: text() for name in GROUPS}
    groups["outcome"] = text("how they ended; empty: they have not", enum=list(get_args(Outcome)))
    return {
        "UsageTotal": fields(numbers, about="Kinds of tokens do not overlap; the totals hold them all."),
        "UsageRow": fields(
            {**groups, **numbers},
            optional=tuple(groups),
            about="The sum of one group; the group's own names first.",
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
                    "whether p50 is a value that was measured, or of hourly sums and within 5 %",
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
                "path": text("where it stands, in the client's own document; `[*]` where several differ"),
                "feature": text("what it is about, by a name that stays: see the losses reference"),
                "action": text(enum=list(get_args(Action))),
                "detail": text("why"),
                "grade": text(enum=list(GRADE_MEANINGS)),
                "document": text("which one the path is in", enum=list(get_args(Document))),
                "count": whole("how many there are of it, where it stands for several"),
            },
            optional=("count",),
        ),
        "Losses": fields(
            {
                "object": {"const": "losses"},
                "request_id": text(),
                "created": whole("unix seconds"),
                "dialect": text(),
                "model": text("as the client asked for it"),
                "route": text("`provider/model` that answered"),
                "losses": listed(ref("Loss"), "the serious ones first"),
                "untold": whole("how many more there were, without room"),
            }
        ),
    }


def _sessions() -> dict[str, Schema]:
    session = {
        "id": text(),
        "object": {"const": "session"},
        "held": flag("whether the gateway holds its conversation"),
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
        "items": listed({"type": "object", "additionalProperties": True}, "as OpenAI's Responses has them"),
        "has_more": flag("whether there are older items than those"),
    }
    latest = {
        "route": nullable(text("`provider/model` that answered the last request")),
        "last_request": nullable(text("the id of that request")),
        "currency": text("of `cost`"),
    }
    return {
        "Session": fields(
            {**session, **latest, **items}, optional=tuple(items), about="With its items, where it is held."
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
        "engine": text("as a person would say it"),
        "version": whole("of the schema"),
        "size": whole("bytes on disk, where the engine tells"),
        "trouble": nullable(text("what is wrong, if anything is")),
        "processes": whole("that share the store"),
    }
    stats["description"] = "What is stored, by kind."
    kind["description"] = "How much there is of one kind; times in unix milliseconds."
    return {"Store": stats, "KindStats": kind}


def _condition() -> dict[str, Schema]:
    return {
        "Health": fields({"status": {"const": "ok"}}),
        "Readiness": fields(
            {
                "status": text(enum=["ready", "degraded", "draining"]),
                "store": text("there while the store is away", const="down"),
                "config": text("there while a newer configuration is refused", const="refused"),
            },
            optional=("store", "config"),
        ),
        "Root": fields(
            {
                "name": {"const": "wireglot"},
                "version": text(),
                "help": text("for anyone who opens it in a browser"),
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
                "input": text("the user's words"),
                "conversation": text("a name of yours, or a `conv_...` id: what was said before comes first"),
                "tools": listed(anything, "as Gemini has them: `[{functionDeclarations: [...]}]`"),
                "tool_config": {**anything, "description": "as Gemini has it"},
                "tool_results": listed(anything, "answers to the calls of the last turn: `functionResponse`"),
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
            about="One turn. `topP`, `toolConfig` and the like are understood as well.",
        )
    }
