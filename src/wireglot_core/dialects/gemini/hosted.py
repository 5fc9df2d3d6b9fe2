"""Hosted tools in Gemini's form: the end of the answer lists the searches and their sources; code that ran
and its result are parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.capabilities import CodeForm, HostedForm
from wireglot_core.dialects.context import is_minted
from wireglot_core.dialects.fields import object_in, own_fields, own_form, text_in
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.response import FIRST
from wireglot_core.ir.content import Extra, Foreign
from wireglot_core.ir.hosted import CODE, HostedCall, HostedError, HostedResult, RanCall, WebSource
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.stream import Finish


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


_CODE: Final = "executableCode"
_RESULT: Final = "codeExecutionResult"
_LANGUAGES: Final = {"": "PYTHON", "python": "PYTHON"}
_NO_LANGUAGE: Final = "LANGUAGE_UNSPECIFIED"
_DONE: Final = "OUTCOME_OK"
_FAILED: Final = "OUTCOME_FAILED"
_ERRORS: Final[dict[str, HostedError]] = {
    _FAILED: "tool_failed",
    "OUTCOME_DEADLINE_EXCEEDED": "execution_time_exceeded",
}
_OUTCOMES: Final = {error: outcome for outcome, error in _ERRORS.items()}
_OUTCOME_NUMBERS: Final = ("OUTCOME_UNSPECIFIED", _DONE, *_ERRORS)


def _read_code(part: Foreign) -> RanCall | None:
    if part.type == _CODE:
        given = object_in(part.value.get(_CODE))
        language = text_in(given.get("language")).lower()
        said = {"code": text_in(given.get("code")), "language": language if language in _LANGUAGES else ""}
        id = text_in(given.get("id"))
        return RanCall(id, HostedCall(CODE, id, input=said))
    if part.type == _RESULT:
        given = object_in(part.value.get(_RESULT))
        outcome = names.enum_name(given.get("outcome"), _OUTCOME_NUMBERS)
        result = HostedResult(text_in(given.get("output")), _ERRORS.get(outcome, ""))
        return RanCall(text_in(given.get("id")), result=result)
    return None


def _render_code(ran: RanCall, path: str, losses: list[Loss]) -> Foreign:
    id = {"id": ran.id} if ran.id and not is_minted(ran.id) else {}
    result = ran.result
    if result is not None:
        losses += [
            Loss(path, medium.kind, "dropped", "the result of code is a text") for medium in result.media
        ]
        outcome = _OUTCOMES.get(result.error, _FAILED) if result.error else _DONE
        return Foreign(OWN, _RESULT, {_RESULT: {"outcome": outcome, "output": result.text, **id}})
    assert ran.call is not None
    given = ran.call.input
    language = _LANGUAGES.get(given["language"], _NO_LANGUAGE)
    if language == _NO_LANGUAGE:
        detail = f"no language is called {given['language']}"
        losses.append(Loss(path, "foreign_part", "approximated", detail))
    return Foreign(OWN, _CODE, {_CODE: {"language": language, "code": given["code"], **id}})


HOSTED: Final = HostedForm(
    finish=_finish,
    found=_found,
    code=CodeForm(
        read=_read_code,
        render=_render_code,
        fields=frozenset({_CODE, _RESULT}),
        signature="thoughtSignature",
    ),
)
