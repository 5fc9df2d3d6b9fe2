"""Hosted tools in Gemini's form: the end of the answer lists the searches and their sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot.dialects.capabilities import HostedForm
from wireglot.dialects.fields import own_fields, own_form
from wireglot.dialects.gemini import names
from wireglot.dialects.gemini.names import OWN
from wireglot.dialects.gemini.response import FIRST
from wireglot.ir.content import Extra
from wireglot.ir.hosted import RanCall, WebSource
from wireglot.ir.stream import Finish


def _finish(finish: Finish, ran: Sequence[RanCall]) -> Finish:
    """Includes sources that no text cites: clients list them."""
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


def _found(extra: Extra | None) -> list[tuple[str, tuple[WebSource, ...]]]:
    """Sources do not name their query: all are assigned to the first."""
    grounding = own_form(extra, OWN).get("groundingMetadata")
    if type(grounding) is not dict:
        return []
    given = names.GROUNDING.camel(grounding)
    queries = [query for query in names.listed(given.get("webSearchQueries")) if type(query) is str]
    sources = []
    for chunk in names.listed(given.get("groundingChunks")):
        web = chunk.get("web") if type(chunk) is dict else None
        if type(web) is dict and type(web.get("uri")) is str:
            title = web.get("title")
            sources.append(WebSource(web["uri"], title if type(title) is str else ""))
    return [(query, () if number else tuple(sources)) for number, query in enumerate(queries)]


HOSTED: Final = HostedForm(finish=_finish, found=_found)
