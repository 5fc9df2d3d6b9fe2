"""What each route is for, and the parameters of its query.

A route without a row in operations.toml, or a row without a route, is a failure.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec

from tools.http_api.shapes import listed, text, whole
from wireglot.gateway.state.ledger.report import DEFAULT_GROUPS, DEFAULT_START, GROUPS

Query = tuple[dict[str, Any], ...]


class Operation(msgspec.Struct, frozen=True):
    """`body` and `answer` name schemas; "": none, or the vendor's, whose reference is `vendor`."""

    id: str
    tag: str
    summary: str
    about: str = ""
    body: str = ""
    answer: str = ""
    status: int = 200
    query: Query = ()
    vendor: str = ""


def _parameter(name: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


_LIMIT: Final = _parameter("limit", whole(minimum=1, maximum=100, default=20), "maximum number of entries")
_PAGES: Final[Query] = (
    _LIMIT,
    _parameter("after", text(), "the last id of the previous page"),
    _parameter("order", text(enum=["asc", "desc"], default="desc"), "oldest or newest first"),
)
_GROUP_BY: Final = _parameter(
    "group_by",
    listed(text(enum=list(GROUPS))),
    f"columns to group by, separated by commas; default: {DEFAULT_GROUPS}",
) | {"style": "form", "explode": False}
_USAGE: Final[Query] = (
    _GROUP_BY,
    _parameter(
        "start",
        text(default=DEFAULT_START),
        "unix seconds, YYYY-MM-DD (UTC), or a time ago: 90m, 12h, 7d, 4w",
    ),
    _parameter("end", text(), "the same; for a date, the end of that day"),
    _parameter("model", text(), "only this one"),
    _parameter("provider", text(), "only this one"),
    _parameter("session", text(), "only this one"),
)
_LISTS: Final[Query] = (
    _parameter("limit", whole(minimum=1), "Anthropic's clients: maximum number of models"),
    _parameter("after_id", text(), "Anthropic's clients: the last id of the previous page"),
    _parameter("before_id", text(), "Anthropic's clients: the first id of the next page"),
    _parameter("pageSize", whole(minimum=0), "Gemini's clients: maximum number of models"),
    _parameter("pageToken", text(), "Gemini's clients: `nextPageToken` of the previous page"),
)
ALT: Final = _parameter("alt", text(enum=["sse"]), "`sse`: server-sent events; without it a JSON array")

_QUERIES: Final[dict[str, Query]] = {
    "getResponse": (
        _parameter("stream", text(enum=["true", "false"]), "`true`: the events of a background response"),
        _parameter("starting_after", whole(minimum=0), "only events after this sequence number"),
    ),
    "getInteraction": (
        _parameter("stream", text(enum=["true", "false"]), "`true`: the events of a background interaction"),
        _parameter("last_event_id", whole(minimum=0), "only events after this one"),
        _parameter("include_input", text(enum=["true", "false"]), "`true`: include the input of the request"),
    ),
    "listInputItems": _PAGES,
    "listItems": _PAGES,
    "streamGenerateContent": (ALT,),
    "assistStreamGenerateContent": (ALT,),
    "listModels": _LISTS,
    "listSessions": (_LIMIT, _parameter("after", text(), "`after` of the previous page")),
    "getUsage": _USAGE,
    "getAllUsage": (*_USAGE, _parameter("key", text(), "only this client key")),
    "listExchanges": (
        _parameter("limit", whole(minimum=1, maximum=1000, default=100), "maximum number of rows"),
        _parameter("before", text(), "`next` of the previous page"),
        _parameter("client", text(), "only this program: `claude-code`"),
        _parameter("dialect", text(), "only clients of this dialect"),
        _parameter("model", text(), "as requested, as answered, or `provider/model`"),
        _parameter("provider", text(), "only this one"),
        _parameter("status", text(), "a number, `4xx`, or `running`, `done`, `failed`, `left`"),
        _parameter("loss", text(), "a grade, a feature, or `any`"),
        _parameter("key", text(), "only this client key"),
        _parameter("session", text(), "only this conversation"),
        _parameter("purpose", text(), "only requests with this purpose: `main`, `subagent` and so on"),
        _parameter("agent", text(), "only the sub-agent of this name or id"),
        _parameter("q", text(), "text in the row, or in recorded bodies"),
    ),
    "getExchange": (
        _parameter(
            "only",
            text(enum=["recorded", "told"]),
            "`recorded`: the recording only, without links; `told`: links, positions and assembled streams",
        ),
    ),
    "getRunningExchange": (
        _parameter("cursor", text(), "`cursor` of the previous answer: only newer data is returned"),
    ),
    "getExchangeImage": (
        _parameter("part", text(enum=["client", "upstream"], default="client"), "side of the document"),
        _parameter("pointer", text(), "JSON pointer to its base64 data"),
    ),
    "getDashboard": (
        _parameter("from", text(default="1h"), "unix seconds, YYYY-MM-DD (UTC), or a time ago: 90m, 12h"),
        _parameter("to", text(), "the same"),
        _parameter("step", whole(minimum=1), "length of a step in seconds"),
        _parameter("by", text(enum=["model", "provider", "key"], default="model"), "what to group by"),
        _parameter("model", text(), "only this one"),
        _parameter("provider", text(), "only this one"),
        _parameter("key", text(), "only this client key"),
        _parameter("format", text(enum=["json", "csv"], default="json"), "`csv`: a table for download"),
    ),
}
"""By the id of the operation."""

_PARTS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).values()
TAGS: Final[dict[str, str]] = {part["title"]: part["about"] for part in _PARTS}
OPERATIONS: Final[dict[tuple[str, str, str], Operation]] = {
    tuple(fields.pop("route")): Operation(id, part["title"], query=_QUERIES.get(id, ()), **fields)
    for part in _PARTS
    for id, fields in part["operations"].items()
}
"""By dialect, operation and verb."""
