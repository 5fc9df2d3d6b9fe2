"""How each case is broken, dialect by dialect: a table that has to name every case there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tests.probe.broken_server import Breakage, Change, Served
from wireglot.probe.cases.prompts import LONG, SYSTEM, WORDS
from wireglot.probe.cases.schemas import FLAT
from wireglot_core.wire.json import BadJson, decode, encode

A, C, R, G = "anthropic", "openai-chat", "openai-responses", "gemini"
O, I = "ollama", "gemini-interactions"  # noqa: E741 - as the others
_SETTINGS: Final = ("generationConfig", "options", "generation_config")
_RIVERS: Final = "Rivers begin in the hills and end in the sea. "

# Changes of answers


def swap(*pairs: tuple[str, str], only: str = "") -> Change:
    """Other words in the body. `only`: "stream" or "whole"."""

    def change(served: Served) -> Served:
        if served.status != 200 or (only and served.streams != (only == "stream")):
            return served
        text = served.body.decode()
        for old, new in pairs:
            text = re.sub(old, new, text)
        return replace(served, body=text.encode())

    return change


def header(name: str, value: str | None, *, streams: bool) -> Change:
    def change(served: Served) -> Served:
        if served.streams != streams:
            return served
        kept = {key: each for key, each in served.headers.items() if not key.endswith(name)}
        return replace(served, headers=kept if value is None else kept | {name: value})

    return change


def frames(change: Callable[[list[str]], list[str]]) -> Change:
    def changed(served: Served) -> Served:
        return served.with_frames(change(served.frames)) if served.streams else served

    return changed


def without(*marks: str) -> Change:
    """The first frame that holds all of these is lost."""

    def lose(found: list[str]) -> list[str]:
        at = next((n for n, frame in enumerate(found) if all(mark in frame for mark in marks)), None)
        return found if at is None else [*found[:at], *found[at + 1 :]]

    return frames(lose)


def refuse(status: int, *marks: str, message: str = "The double was asked to refuse this.") -> Change:
    """Requests that hold all of these texts."""

    def change(served: Served) -> Served:
        asked = served.asked.decode("utf-8", "replace")
        return served.error(status, message) if all(mark in asked for mark in marks) else served

    return change


def every_error(status: int) -> Change:
    def change(served: Served) -> Served:
        return replace(served, status=status) if served.status >= 400 else served

    return change


def mumbled(served: Served) -> Served:
    """The error, and not a word of what is wrong."""
    return served.error(served.status, "Bad request.") if served.status >= 400 else served


def one_piece(served: Served) -> Served:
    """All the text in the first delta."""
    if not served.streams:
        return served
    pattern = {
        A: r'("text_delta","text":")((?:[^"\\]|\\.)*)(")',
        C: r'("content":")((?:[^"\\]|\\.)+)(")',
        R: r'("delta":")((?:[^"\\]|\\.)*)(")',
        G: r'("text":")((?:[^"\\]|\\.)+)(")',
        O: r'("content":")((?:[^"\\]|\\.)+)(")',
        I: r'("type":"text","text":")((?:[^"\\]|\\.)+)(")',
    }[served.dialect]
    found = served.frames
    holding = [n for n, frame in enumerate(found) if re.search(pattern, frame)]
    text = "".join(m[2] for n in holding if (m := re.search(pattern, found[n])))
    if not holding:
        return served
    found[holding[0]] = re.sub(pattern, lambda m: m[1] + text + m[3], found[holding[0]], count=1)
    return served.with_frames([frame for n, frame in enumerate(found) if n not in holding[1:]])


# Changes of requests


def asked(change: Callable[[dict[str, Any]], object], *, only_stream: bool = False) -> Breakage:
    """What the model never sees, or sees otherwise."""

    def request(body: bytes) -> bytes:
        try:
            document = decode(body)
        except BadJson:
            return body
        if isinstance(document, dict) and (not only_stream or document.get("stream")):
            change(document)
            return encode(document)
        return body

    return Breakage(request=request)


def forgets(*names: str) -> Breakage:
    def forget(document: dict[str, Any]) -> None:
        for place in (document, *(document.get(name, {}) for name in _SETTINGS)):
            for name in names:
                place.pop(name, None)

    return asked(forget)


def unheard(*texts: str, only_stream: bool = False) -> Breakage:
    """Texts of the request that do not reach the model."""

    def request(body: bytes) -> bytes:
        if only_stream and b'"stream":true' not in body:
            return body
        for text in texts:
            body = body.replace(encode(text)[1:-1], b"x")
        return body

    return Breakage(request=request)


def sent(change: Change) -> Breakage:
    return Breakage(answer=change)


def per(**by: Breakage) -> dict[str, Breakage]:
    names = {"a": A, "c": C, "r": R, "g": G, "o": O, "i": I}
    return {names[letter]: breakage for letter, breakage in by.items()}


def all_of(breakage: Breakage) -> dict[str, Breakage]:
    return dict.fromkeys((A, C, R, G, O, I), breakage)


def lists_only(document: dict[str, Any]) -> None:
    if isinstance(document.get("input"), str):
        document["input"] = []


def plain_schema(document: dict[str, Any]) -> None:
    """The tool is offered, and what its arguments are is not said."""
    bare = {"type": "object", "properties": {}}
    for tool in document.get("tools", ()):
        for declared in tool.get("functionDeclarations", (tool.get("function", tool),)):
            for name in ("input_schema", "parameters", "parametersJsonSchema"):
                if name in declared:
                    declared[name] = bare


def flat_schema(document: dict[str, Any]) -> None:
    """Whatever schema is asked for, the answer is for the simplest."""
    places = (
        (document.get("output_config", {}).get("format", {}), "schema"),
        (document.get("response_format", {}).get("json_schema", {}), "schema"),
        (document.get("text", {}).get("format", {}), "schema"),
        (document.get("generationConfig", {}), "responseJsonSchema"),
        (document, "format"),
        (document.get("response_format", {}), "schema"),
    )
    for place, name in places:
        if isinstance(place.get(name), dict):
            place[name] = FLAT


def any_tool(document: dict[str, Any]) -> None:
    """A choice that names a tool becomes one that names none."""
    if "toolConfig" in document:
        document["toolConfig"]["functionCallingConfig"].pop("allowedFunctionNames", None)
    elif "generation_config" in document:
        document["generation_config"]["tool_choice"] = "any"
    elif "tool_choice" in document:
        document["tool_choice"] = {"type": "any"} if "max_tokens" in document else "required"


def no_choice(document: dict[str, Any]) -> None:
    document.pop("tool_choice", None)
    document.pop("toolConfig", None)
    document.get("generation_config", {}).pop("tool_choice", None)


_NO_USAGE: Final = swap((r'"usage', '"us_age'), (r'"eval_count"', '"eval"'))
_ONE_ID: Final = swap((r'"(id|responseId)":"((?:msg_|chatcmpl-|resp_|v1_)?demo)[0-9a-f]*"', r'"\1":"\2"'))
_TWICE: Final = swap((WORDS, f"{WORDS} {WORDS}"))
_STOPS: Final = swap(
    ('"stop_reason":"[a-z_]+"', '"stop_reason":"refusal"'),
    ('"finish_reason":"[a-z_]+"', '"finish_reason":"content_filter"'),
    ('"status":"(completed|incomplete|requires_action)"', '"status":"failed"'),
    ('"finishReason":"[A-Z_]+"', '"finishReason":"OTHER"'),
    ('"done_reason":"[a-z_]+"', '"done_reason":"unload"'),
)
_ENDLESS: Final = swap(
    ('"stop_reason":"[a-z_]+"', '"stop_reason":"end_turn"'),
    ('"finish_reason":"[a-z_]+"', '"finish_reason":"stop"'),
    ('"incomplete_details":\\{[^}]*\\}', '"incomplete_details":null'),
    ('"status":"incomplete"', '"status":"completed"'),
    ("response.incomplete", "response.completed"),
    ('"finishReason":"[A-Z_]+"', '"finishReason":"STOP"'),
    ('"done_reason":"[a-z_]+"', '"done_reason":"stop"'),
)
_SILENT: Final = swap(
    (r'("text":")(?:[^"\\]|\\.)*"', r'\1"'),
    (r'("content":")(?:[^"\\]|\\.)*"', r'\1"'),
    (r'("delta":")(?:[^"\\]|\\.)*"', r'\1"'),
)
_TOWN: Final = swap((r'city(\\?")', r"town\1"))
_ONE_CALL_ID: Final = swap((r'"(toolu_demo|call_demo)[0-9a-f]+"', r'"\1"'))
_ONE_CITY: Final = swap(("Rome", "Paris"))
_MOJIBAKE: Final = swap(("ü", "Ã¼"), ("é", "Ã©"), ("東", "�"))
_NO_STATE: Final = swap(
    (r'"signature":"[^"]+"', '"signature":""'),
    (r'"encrypted_content":"[^"]+"', '"encrypted_content":null'),
    (r'"thoughtSignature":"[^"]+",?', ""),
    (r",\}", "}"),
)
_COUNTS: Final = r"(input_tokens|prompt_tokens|promptTokenCount|prompt_eval_count|total_input_tokens)"
_OUTPUTS: Final = r"(output_tokens|completion_tokens|candidatesTokenCount|eval_count|total_output_tokens)"
_TOTALS: Final = r"(total_tokens|totalTokenCount)"


def numbers(which: str, value: int, *, only: str = "") -> Change:
    return swap((rf'"{which}":\d+', rf'"\1":{value}'), only=only)


def _much_cached(served: Served) -> Served:
    """Of a conversation that has results in it."""
    if b"17 degrees" not in served.asked:
        return served
    return numbers(
        "(cache_read_input_tokens|cached_tokens|cachedContentTokenCount|total_cached_tokens)", 99_999
    )(served)


_LAST: Final = frames(lambda found: found[:-1])
_REFUSED_RESULTS: Final = per(
    a=sent(refuse(400, '"tool_result"')),
    c=sent(refuse(400, '"role":"tool"')),
    r=sent(refuse(400, '"function_call_output"')),
    g=sent(refuse(400, '"functionResponse"')),
    o=sent(refuse(400, '"role":"tool"')),
    i=sent(refuse(400, '"function_result"')),
)
_REFUSED_STATE: Final = per(
    a=sent(refuse(400, '"signature"')),
    c=sent(refuse(400, '"reasoning_content"')),
    r=sent(refuse(400, '"encrypted_content"', '"function_call_output"')),
    g=sent(refuse(400, '"thoughtSignature"')),
    o=sent(refuse(400, '"thinking"')),
    i=sent(refuse(400, '"signature"')),
)
_NO_SCHEMA: Final = per(
    a=forgets("output_config"),
    c=forgets("response_format"),
    r=forgets("text"),
    g=forgets("responseJsonSchema", "responseMimeType"),
    o=forgets("format"),
    i=forgets("response_format"),
)
_NO_STOP: Final = per(
    a=forgets("stop_sequences"),
    c=forgets("stop"),
    g=forgets("stopSequences"),
    o=forgets("stop"),
    i=forgets("stop_sequences"),
)
_MIXED_UP: Final = all_of(sent(_ONE_CALL_ID)) | {G: sent(_ONE_CITY)}
_PLAIN: Final = all_of(asked(plain_schema))
_BROKEN_WITH: Final = "x_wireglot_probe"

_STORES: Final = asked(lambda document: document.update(store=True))


def _kept(change: Change) -> Change:
    """Of answers to requests about a stored answer alone: they have no body."""
    return lambda served: served if served.asked else change(served)


def _found(served: Served) -> Served:
    return replace(served, status=200, body=b"{}")


_runs_on: Final = swap(('"status":"(?:in)?complete(?:d)?"', '"status":"in_progress"'))

BREAKAGES: Final[dict[str, dict[str, Breakage]]] = {
    # Whole answers
    "answers.shape": all_of(sent(_NO_USAGE)),
    "answers.nulls": per(
        a=sent(swap((',"inference_geo":null', ""), only="whole")),
        c=sent(swap((',"content":null', ""), ('"content":null,', ""), only="whole")),
    ),
    "answers.content-type": all_of(sent(header("content-type", "text/plain", streams=False))),
    "answers.ids-differ": all_of(sent(_ONE_ID)),
    "answers.obeys": all_of(sent(_TWICE)),
    "answers.end": all_of(sent(_STOPS)),
    "answers.request-id": all_of(sent(header("request-id", None, streams=False))),
    # Streams
    "streams.content-type": all_of(sent(header("content-type", "application/json", streams=True))),
    "streams.frames": per(
        a=sent(frames(lambda found: [frame.partition("\n")[2] for frame in found])),
        c=sent(frames(lambda found: [f"event: chunk\n{frame}" for frame in found])),
        r=sent(swap(("event: response.output_text.delta", "event: text"), only="stream")),
        g=sent(frames(lambda found: [": ping", *found])),
        o=sent(frames(lambda found: [found[0], " ", *found[1:]])),
        i=sent(swap(("event: step.delta", "event: text"), only="stream")),
    ),
    "streams.opening": per(
        a=sent(frames(lambda found: found[1:])),
        c=sent(frames(lambda found: found[1:])),
        r=sent(frames(lambda found: found[1:])),
        g=sent(swap((r'"responseId":"[^"]*",?', ""), (r",\}", "}"), only="stream")),
        o=sent(frames(lambda found: [found[0].replace('"role":"assistant"', '"role":"model"'), *found[1:]])),
        i=sent(swap(('"status":"in_progress"', '"status":"completed"'), only="stream")),
    ),
    "streams.order": per(
        a=sent(without("content_block_stop")),
        c=sent(frames(lambda found: [found[0], *(f.replace('"delta"', '"dleta"') for f in found[1:])])),
        r=sent(without("output_item.done")),
        g=sent(frames(lambda found: [found[0], *(f.replace('"model"', '"assistant"') for f in found[1:])])),
        o=sent(frames(lambda found: [found[0], found[1].replace('"message"', '"delta"'), *found[2:]])),
        i=sent(without("step.stop")),
    ),
    "streams.nulls": per(
        a=sent(swap((',"container":null', ""), only="stream")),
        c=sent(swap((',"finish_reason":null', ""), only="stream")),
    ),
    "streams.indexes": per(
        a=sent(swap(('"index":0', '"index":4'), only="stream")),
        c=sent(swap(('"index":0,"(id|function)"', r'"index":4,"\1"'), only="stream")),
        r=sent(swap(('"sequence_number":4\\b', '"sequence_number":40'), only="stream")),
        g=sent(swap(('"index":0', '"index":1'), only="stream")),
        o=sent(swap(('"index":0', '"index":1'), only="stream")),
        i=sent(swap(('"index":0', '"index":4'), only="stream")),
    ),
    "streams.identity": per(
        c=sent(frames(lambda found: [found[0], *(f.replace("chatcmpl-", "chatcmpl-x") for f in found[1:])])),
        r=sent(frames(lambda found: [*found[:-1], found[-1].replace('"fc_', '"fc_x')])),
        g=sent(frames(lambda found: [found[0], *(f.replace('"responseId":"', '"responseId":"x') for f in found[1:])])),
        o=sent(frames(lambda found: [found[0], *(f.replace('"model":"', '"model":"x') for f in found[1:])])),
        i=sent(frames(lambda found: [found[0], *(f.replace('"id":"v1_', '"id":"v1_x') for f in found[1:])])),
    ),
    "streams.ending": all_of(sent(_LAST)),
    "streams.text": all_of(sent(without("orange"))),
    "streams.pieces": all_of(sent(one_piece)),
    "streams.call": per(
        a=sent(swap(('"input":\\{\\}', '"input":{"city":"Paris"}'), only="stream")),
        c=sent(frames(lambda found: [f for f in found if 'Par' not in f])),
        r=sent(without("function_call_arguments.delta")),
        g=sent(swap((r'"args":\{[^}]*\}', '"args":"Paris"'), only="stream")),
        o=sent(swap((r'"arguments":\{[^}]*\}', '"arguments":"Paris"'), only="stream")),
        i=sent(swap((r'"arguments":\{\}', '"arguments":{"city":"Paris"}'), only="stream")),
    ),
    "streams.call-grammar": per(
        a=sent(_ENDLESS), c=sent(_ENDLESS), r=sent(without("output_item.done")), g=sent(_STOPS), o=sent(_STOPS),
        i=sent(_STOPS),
    ),
    "streams.parallel": _MIXED_UP,
    "streams.usage": per(
        a=sent(swap(('"usage"', '"us_age"'), only="stream")),
        c=sent(swap(('"usage"', '"us_age"'), only="stream")),
        r=sent(swap(('"usage"', '"us_age"'), only="stream")),
        g=sent(swap(('"usageMetadata"', '"us_age"'), only="stream")),
        o=sent(swap(('"eval_count"', '"eval"'), only="stream")),
        i=sent(swap(('"usage"', '"us_age"'), only="stream")),
    ),
    "streams.usage-unasked": per(
        c=asked(lambda document: document.update(stream_options={"include_usage": True}), only_stream=True)
    ),
    "streams.refusal": all_of(sent(every_error(200))),
    # Tool calls
    "tools.call": all_of(sent(_TOWN)),
    "tools.id": all_of(sent(swap((r'"(?:toolu_demo|call_demo)[0-9a-f]+"', '"a call / 1"')))),
    "tools.required": all_of(asked(no_choice)),
    "tools.named": all_of(asked(any_tool)),
    "tools.none": all_of(asked(no_choice)),
    "tools.auto": all_of(sent(_SILENT)),
    "tools.no-arguments": per(
        a=sent(swap(('"input":\\{\\}', '"input":null'), only="whole")),
        c=sent(swap((r'"arguments":"\{\}"', '"arguments":"null"'), only="whole")),
        r=sent(swap((r'"arguments":"\{\}"', '"arguments":"null"'), only="whole")),
        g=sent(swap((r'"args":\{\}', '"args":[]'), (r'("name":"get_time")\}', r'\1,"args":[]}'), only="whole")),
        o=sent(swap((r'"arguments":\{\}', '"arguments":null'), only="whole")),
        i=sent(swap((r'"arguments":\{\}', '"arguments":null'), only="whole")),
    ),
    "tools.no-arguments-stream": per(
        a=sent(swap((r'"partial_json":"\{\}"', '"partial_json":"null"'), ('"input":\\{\\}', '"input":null'), only="stream")),
        c=sent(swap((r'"arguments":"\{\}"', '"arguments":"null"'), only="stream")),
        r=sent(swap((r'"(arguments|delta)":"\{\}"', r'"\1":"null"'), only="stream")),
        g=sent(swap((r'"args":\{\}', '"args":[]'), (r'("name":"get_time")\}', r'\1,"args":[]}'), only="stream")),
        o=sent(swap((r'"arguments":\{\}', '"arguments":null'), only="stream")),
        i=sent(swap((r'"arguments":\{\}', '"arguments":null'), only="stream")),
    ),
    "tools.parallel": _MIXED_UP,
    "tools.parallel-off": per(a=forgets("tool_choice"), c=forgets("parallel_tool_calls"), r=forgets("parallel_tool_calls")),
    "tools.unicode": all_of(sent(_MOJIBAKE)),
    "tools.names": all_of(sent(swap(("look_up-the_weather_of_a_city[a-z0-9_-]*", "look_up-the_weather_of_a_city")))),
    "tools.no-description": all_of(
        Breakage(
            answer=lambda served: served.error(400)
            if b"get_weather" in served.asked and b"Tells the weather" not in served.asked
            else served
        )
    ),
    "tools.strict": all_of(sent(_TOWN)),
    # Results of tools
    "results.result": _REFUSED_RESULTS,
    "results.result-of-stream": _REFUSED_RESULTS,
    "results.several": all_of(sent(swap(("24\\.8", "nothing")))),
    "results.error": all_of(sent(refuse(400, "the service is down"))),
    "results.empty": per(
        a=sent(refuse(400, '"tool_result"', '"content":""')),
        c=sent(refuse(400, '"role":"tool"', '"content":""')),
        r=sent(refuse(400, '"output":""')),
        g=sent(refuse(400, '"output":""')),
        o=sent(refuse(400, '"role":"tool","content":""')),
        i=sent(refuse(400, '"result":""')),
    ),
    "results.parts": per(
        a=sent(refuse(500, '"tool_result"')), c=sent(refuse(500, '"role":"tool"')), r=sent(refuse(500, "function_call_output")),
        i=sent(refuse(500, '"function_result"')),
    ),
    "results.picture": all_of(sent(refuse(500, "iVBORw0KGgo"))),
    "results.foreign-ids": all_of(sent(refuse(400, "get_weather_0"))),
    "results.text-and-call": all_of(sent(refuse(400, "Let me look."))),
    "results.two-rounds": per(
        a=sent(_ONE_CALL_ID), c=sent(_ONE_CALL_ID), r=sent(_ONE_CALL_ID), g=sent(refuse(400, "And what is the weather")),
        o=sent(_ONE_CALL_ID), i=sent(_ONE_CALL_ID),
    ),
    "results.orphan": all_of(sent(refuse(500, "call_nowhere"))) | {G: sent(refuse(500, "17.3 degrees"))},
    # Stop reasons
    "stops.length": all_of(sent(_ENDLESS)),
    "stops.length-stream": all_of(sent(_ENDLESS)),
    "stops.sequence": _NO_STOP,
    "stops.sequence-stream": _NO_STOP,
    "stops.several-sequences": _NO_STOP,
    "stops.which-sequence": per(a=sent(swap(('"stop_sequence":"yellow"', '"stop_sequence":null')))),
    # Usage
    "usage.positive": all_of(sent(numbers(_OUTPUTS, 0))),
    "usage.total": all_of(sent(numbers(_TOTALS, 3))),
    "usage.stream-equals-whole": all_of(sent(numbers(_COUNTS, 1, only="stream"))),
    "usage.grows": all_of(sent(numbers(_COUNTS[:-1] + "|cache_read_input_tokens)", 7))),
    "usage.cached": all_of(sent(_much_cached)),
    "usage.output-follows": all_of(sent(numbers(_OUTPUTS, 17))),
    "usage.tools": all_of(forgets("tools", "tool_choice", "toolConfig")),
    "usage.reasoning": per(
        a=sent(numbers("(thinking_tokens)", 9999)),
        c=sent(numbers("(reasoning_tokens)", 9999)),
        r=sent(numbers("(reasoning_tokens)", 9999)),
        g=sent(numbers(_TOTALS, 9999)),
        i=sent(numbers(_TOTALS, 9999)),
    ),
    # Reasoning
    "reasoning.whole": all_of(
        Breakage(answer=lambda served: swap(("Hello! I am", "<think>Hello! I am"), only="whole")(served))
    ),
    "reasoning.stream": all_of(sent(_LAST)),
    "reasoning.state": all_of(sent(_NO_STATE)),
    "reasoning.returned": _REFUSED_STATE,
    "reasoning.returned-from-stream": _REFUSED_STATE,
    "reasoning.dropped": _REFUSED_STATE,
    "reasoning.changed": all_of(sent(refuse(500, "Zm9yZ2VkIHN0YXRl"))),
    "reasoning.absent": all_of(sent(refuse(400, "how can I help"))),
    # Schemas
    "schemas.output-flat": _NO_SCHEMA,
    "schemas.output-stream": all_of(sent(swap(("hours", "days"), only="stream"))),
    **{f"schemas.output-{name}": all_of(asked(flat_schema)) for name in ("nested", "enums", "refs", "unions")},
    **{f"schemas.tool-{name}": _PLAIN for name in ("flat", "nested", "enums", "refs", "unions")},
    "schemas.json": _NO_SCHEMA,
    "schemas.unknown-keywords": all_of(sent(refuse(400, "$schema"))),
    # Texts
    "texts.parts": all_of(unheard(LONG)),
    "texts.system": all_of(unheard(SYSTEM)),
    "texts.system-parts": all_of(unheard(SYSTEM)),
    "texts.system-stream": all_of(unheard(SYSTEM, only_stream=True)) | {G: sent(numbers(_COUNTS, 1, only="stream"))},
    "texts.system-midway": all_of(sent(refuse(500, SYSTEM))),
    "texts.developer": all_of(unheard(SYSTEM)),
    "texts.plain": per(r=asked(lists_only), i=asked(lists_only)),
    "texts.history": all_of(unheard(LONG, _RIVERS)),
    "texts.two-users": all_of(unheard(LONG)),
    "texts.letters": all_of(sent(_MOJIBAKE)),
    "texts.picture": all_of(sent(refuse(500, "iVBORw0KGgo"))),
    # Fields
    "fields.unknown": all_of(sent(refuse(400, _BROKEN_WITH))),
    "fields.sampling": all_of(sent(refuse(500, '"temperature"'))) | {I: sent(refuse(500, '"seed"'))},
    "fields.metadata": per(
        a=sent(refuse(500, '"metadata"')), c=sent(refuse(500, '"user":"probe"')), r=sent(refuse(500, '"metadata"'))
    ),
    "fields.older-limit": per(c=forgets("max_tokens")),
    "fields.newer-limit": per(c=forgets("max_completion_tokens")),
    "fields.cache-marks": per(a=sent(refuse(500, "cache_control"))),
    "fields.snake-case": per(g=forgets("system_instruction")),
    # Errors
    "errors.missing-key": all_of(sent(every_error(500))),
    "errors.wrong-key": all_of(sent(every_error(500))),
    "errors.unknown-model": all_of(sent(mumbled)),
    "errors.bad-json": all_of(sent(every_error(500))),
    "errors.missing-field": all_of(sent(mumbled)),
    "errors.missing-limit": per(
        a=Breakage(answer=lambda served: served if b"max_tokens" in served.asked else served.error(500))
    ),
    "errors.wrong-type": all_of(sent(every_error(500))),
    "errors.wrong-limit": all_of(sent(every_error(200))),
    "errors.huge-limit": all_of(sent(refuse(500, "1000000000"))),
    "errors.unknown-path": all_of(
        Breakage(
            answer=lambda served: replace(served, headers={"content-type": "text/html"}, body=b"<h1>404</h1>")
            if served.status == 404
            else served
        )
    ),
    "errors.too-large": all_of(
        Breakage(answer=lambda served: served.error(500) if len(served.asked) > 10_000_000 else served)
    ),
    # Models and counts
    "lists.models": all_of(sent(swap(('"data":', '"list":'), ('"models":', '"list":')))),
    "lists.listed": all_of(sent(swap(('"(id|name)":"(models/)?demo"', r'"\1":"\2other"')))),
    "lists.count": all_of(sent(swap(('"(input_tokens|totalTokens)":', r'"\1_":')))),
    "lists.count-grows": all_of(sent(swap((r'^\{"(input_tokens|totalTokens)":\d+', r'{"\1":5')))),
    "lists.count-agrees": all_of(sent(swap((r'^\{"(input_tokens|totalTokens)":\d+', r'{"\1":5')))),
    # Stored answers
    "state.get": per(r=sent(_kept(swap(("Hello", "Goodbye")))), i=sent(_kept(swap(("Hello", "Goodbye"))))),
    "state.chain": per(r=forgets("previous_response_id"), i=forgets("previous_interaction_id")),
    "state.unknown-previous": per(r=forgets("previous_response_id"), i=forgets("previous_interaction_id")),
    "state.unknown": per(r=sent(_kept(_found)), i=sent(_kept(_found))),
    "state.delete": per(r=sent(_kept(_found)), i=sent(_kept(_found))),
    "state.unstored": per(r=_STORES, i=_STORES),
    "state.cancel": per(r=sent(_kept(_runs_on)), i=sent(_kept(_runs_on))),
}  # fmt: skip
