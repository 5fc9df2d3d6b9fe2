"""Tools that run on the server's side: the answer says at its end what was searched for, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot.dialects.capabilities import HostedForm
from wireglot.dialects.fields import own_fields
from wireglot.dialects.gemini.names import OWN
from wireglot.dialects.gemini.response import FIRST
from wireglot.ir.content import Extra
from wireglot.ir.hosted import RanCall
from wireglot.ir.stream import Finish


def _finish(finish: Finish, ran: Sequence[RanCall]) -> Finish:
    """Sources that no text cites stand there too: clients list them."""
    queries: list[str] = []
    chunks: dict[str, dict[str, Any]] = {}
    fetched: list[dict[str, Any]] = []
    for each in ran:
        call, result = each.call, each.result
        if call is None or result is None:
            continue
        if call.kind == "web_search":
            queries.append(str(call.input.get("query", "")))
            for source in result.sources:
                chunks.setdefault(source.url, {"web": {"uri": source.url, "title": source.title}})
        elif call.kind == "web_fetch":
            status = "URL_RETRIEVAL_STATUS_ERROR" if result.error else "URL_RETRIEVAL_STATUS_SUCCESS"
            fetched.append({"retrievedUrl": str(call.input.get("url", "")), "urlRetrievalStatus": status})
    fields = dict(own_fields(finish.extra, OWN))
    if queries:
        fields[f"{FIRST}groundingMetadata"] = {
            "webSearchQueries": queries,
            "groundingChunks": list(chunks.values()),
        }
    if fetched:
        fields[f"{FIRST}urlContextMetadata"] = {"urlMetadata": fetched}
    return replace(finish, extra=Extra(OWN, fields))


HOSTED: Final = HostedForm(finish=_finish)
