"""Conversations with something that an endpoint may refuse, and limits that refuse it. For pinned fits."""

from copy import copy
from typing import Any, NamedTuple

from tests.core.providers.asks import CLAUDE, GEMINI, assistant, request, user
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.request import (
    MIDWAY,
    TOOLS_PART,
    Grammar,
    HostedChoice,
    HostedTool,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.providers.limits import BASE, Limits

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic", "openai-responses"
PROVIDER = "acme"
"""Who is asked."""


class Endpoint(NamedTuple):
    limits: Limits
    dialect: str = CHAT
    native: bool = False
    """The request is of the endpoint's own dialect."""
    in_pieces: bool = False


def endpoint(
    dialect: str = CHAT, *, native: bool = False, in_pieces: bool = False, **limits: Any
) -> Endpoint:
    return Endpoint(Limits(**limits), dialect, native, in_pieces)


ENDPOINTS = {
    "refuses nothing": endpoint(),
    "refuses nothing, asked in its own dialect": endpoint(native=True),
    "an anthropic one that refuses nothing": endpoint(MESSAGES),
    "a responses one that refuses nothing": endpoint(RESPONSES),
    **{
        f"any {dialect}": Endpoint(BASE[dialect], dialect)
        for dialect in (MESSAGES, CHAT, RESPONSES, "gemini")
    },
    "own gemini": Endpoint(BASE["gemini"], "gemini", native=True),
    "service_tiers": endpoint(service_tiers=("auto", "standard")),
    "tool_name": endpoint(tool_name="[a-z_]+"),
    "tool_name_max": endpoint(tool_name_max=12),
    "no namespaces": endpoint(namespaces=False),
    "no namespaces, responses": endpoint(RESPONSES, namespaces=False),
    "no custom_tools": endpoint(custom_tools=False),
    "no custom_tools, no namespaces": endpoint(custom_tools=False, namespaces=False),
    "no strict_tools": endpoint(strict_tools=False),
    "no hosted_tools": endpoint(hosted_tools=False),
    "no hosted_tools, own responses": endpoint(RESPONSES, native=True, hosted_tools=False),
    "tool_schema openai": endpoint(tool_schema="openai"),
    "tool_schema gemini-openapi": endpoint(tool_schema="gemini-openapi"),
    "call_id": endpoint(call_id="[a-z]+"),
    "call_id_max": endpoint(call_id_max=9),
    "call_id_max 20": endpoint(call_id_max=20),
    "call_ids kimi": endpoint(call_ids="kimi"),
    "call_ids positional": endpoint(call_ids="positional"),
    "tool_choices auto": endpoint(tool_choices=("auto",)),
    "tool_choices required": endpoint(tool_choices=("auto", "none", "required")),
    "tool_choices named": endpoint(tool_choices=("auto", "none", "required", "named")),
    "tool_choices_thinking": endpoint(tool_choices_thinking=("auto", "none"), thinks_by_default=True),
    "tool_choices_thinking stop_thinking": endpoint(
        tool_choices_thinking=("auto", "none"),
        thinks_by_default=True,
        forced_choice="stop_thinking",
        thinking="budget",
    ),
    "tool_choices_thinking stop_thinking toggle": endpoint(
        tool_choices_thinking=("auto", "none"),
        tool_choices=("auto", "none", "required"),
        thinks_by_default=True,
        forced_choice="stop_thinking",
        thinking="toggle",
    ),
    "tool_choices_thinking stop_thinking fixed": endpoint(
        tool_choices_thinking=("auto", "none"),
        thinks_by_default=True,
        forced_choice="stop_thinking",
        thinking="fixed",
    ),
    "tool_choices_thinking stop_thinking, not to be switched off": endpoint(
        tool_choices_thinking=("auto", "none"),
        thinks_by_default=True,
        forced_choice="stop_thinking",
        thinking="budget",
        thinking_off=False,
    ),
    "no parallel_switch": endpoint(parallel_switch=False),
    "midway_tools, asked in its own dialect": endpoint(native=True, midway_tools=True),
    "tool_result_media beside": endpoint(tool_result_media="beside"),
    "system_midway after-user": endpoint(system_midway="after-user"),
    "system_midway no": endpoint(system_midway="no"),
    "starts_with_user": endpoint(starts_with_user=True),
    "no blank_text": endpoint(blank_text=False),
    "no blank_text, anthropic": endpoint(MESSAGES, blank_text=False),
    "no prefill": endpoint(prefill=False),
    "prefill_field": endpoint(prefill_field="partial"),
    "prefill_field, asked in its own dialect": endpoint(native=True, prefill_field="partial"),
    "prefill_field prefix, asked in its own dialect": endpoint(native=True, prefill_field="prefix"),
    "prefill_field without JSON": endpoint(prefill_field="partial", prefill_json=False),
    "prefill_field without JSON, asked in its own dialect": endpoint(
        native=True, prefill_field="partial", prefill_json=False
    ),
    "media image": endpoint(media=("image",)),
    "media image, beside": endpoint(media=("image",), tool_result_media="beside"),
    "no media_urls": endpoint(media_urls=False),
    "no media_urls, asked in its own dialect": endpoint(native=True, media_urls=False),
    "no media, no media_urls": endpoint(media=(), media_urls=False),
    "text_parts none": endpoint(text_parts=()),
    "text_parts none, asked in its own dialect": endpoint(native=True, text_parts=()),
    "text_parts user, asked in its own dialect": endpoint(native=True, text_parts=("user", "system")),
    "text_parts none, anthropic": endpoint(MESSAGES, text_parts=()),
    "cache_markers 2": endpoint(cache_markers=2),
    "cache_markers 0": endpoint(cache_markers=0),
    "marker_field": endpoint(marker_field="cache_control"),
    "marker_field, anthropic": endpoint(MESSAGES, marker_field="cache_control"),
    "no message_names": endpoint(message_names=False),
    "no developer_role": endpoint(developer_role=False),
    "no developer_role, asked in its own dialect": endpoint(native=True, developer_role=False),
    "reasoning signed": endpoint(reasoning="signed"),
    "reasoning signed, anthropic": endpoint(MESSAGES, reasoning="signed"),
    "reasoning signed, own responses": endpoint(RESPONSES, native=True, reasoning="signed"),
    "reasoning signed, responses": endpoint(RESPONSES, reasoning="signed"),
    "reasoning own": endpoint(reasoning="own"),
    "reasoning own, asked in its own dialect": endpoint(native=True, reasoning="own"),
    "reasoning text, anthropic": endpoint(MESSAGES, reasoning="text"),
    "reasoning drop": endpoint(reasoning="drop"),
    "reasoning_field": endpoint(reasoning_field="reasoning"),
    "reasoning_field, anthropic": endpoint(MESSAGES, reasoning_field="reasoning"),
    "reasoning_required": endpoint(reasoning_required=True),
    "reasoning_required, signed": endpoint(reasoning_required=True, reasoning="signed"),
    "call_signatures": endpoint("gemini", call_signatures=True),
    "thinking_in_loop": endpoint(MESSAGES, thinking_in_loop=True, thinking="adaptive"),
    "thinking_in_loop, own": endpoint(MESSAGES, native=True, thinking_in_loop=True, thinking="adaptive"),
    "thinking_in_loop, own that is kept": endpoint(
        MESSAGES, native=True, thinking_in_loop=True, thinking_own="keep", thinking="adaptive"
    ),
    "settings": endpoint(settings=("user",)),
    "no settings": endpoint(settings=()),
    "max_tokens": endpoint(max_tokens=100),
    "max_tokens_min": endpoint(max_tokens_min=200),
    "user_max": endpoint(user_max=2),
    "max_tokens_default": endpoint(max_tokens_default=50, max_tokens=100),
    "names of Chat": endpoint(max_tokens_field="max_tokens", seed_field="random_seed", user_field="user"),
    "names of Chat, asked in its own dialect": endpoint(
        native=True, max_tokens_field="max_tokens", seed_field="random_seed", user_field="user"
    ),
    "names of Chat, anthropic": endpoint(MESSAGES, max_tokens_field="max_tokens", user_field="user"),
    "sampling none": endpoint(sampling=()),
    "sampling some, fixed": endpoint(sampling=("seed", "top_k"), fixed={"temperature": 0.5, "top_p": 1}),
    "temperature_max": endpoint(temperature_max=1),
    "stop_max": endpoint(stop_max=2),
    "stop_bytes": endpoint(stop_bytes=4),
    "output_formats json": endpoint(output_formats=("json",)),
    "output_formats schema": endpoint(output_formats=("schema",)),
    "output_formats none": endpoint(output_formats=()),
    "output_schema openai": endpoint(output_schema="openai"),
    "output_schema anthropic": endpoint(output_schema="anthropic"),
    "output_schema gemini-json": endpoint(output_schema="gemini-json"),
    "output_schema gemini-openapi": endpoint(output_schema="gemini-openapi"),
    "in pieces": endpoint(in_pieces=True),
    "in pieces, signed": endpoint(MESSAGES, in_pieces=True, reasoning="signed"),
    "in pieces, dropped": endpoint(in_pieces=True, reasoning="drop"),
}

OTHERS = Extra(RESPONSES, {"colour": "red", "size": 0}, {"order": 1})
OWN = Extra(CHAT, {"colour": "blue"}, {"order": 2})
STRANGE = Foreign("acme", "whistle", {"tune": "high"})
TELLING = Foreign("acme", "search", {"hits": 1}, "found: a")


def system(*parts: Part, **more: Any) -> Message:
    return Message("system", parts or (Text("be good"),), **more)


def mark(ttl: Any = "") -> CacheMark:
    return CacheMark(ttl)


def calls(*parts: Part) -> Request:
    """Calls in one turn, all answered in the next."""
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    return request(
        user(Text("go")), assistant(*parts), user(*(ToolResult(each, (Text("done"),)) for each in ids))
    )


PICTURE = Media("image", "image/png", "aGk=")
PDF = Media("document", "application/pdf", "JVBERi0=", name="a.pdf")
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "minLength": 2}, "b": {"type": ["integer", "null"], "default": 1}},
    "required": ["a"],
}
STRICT_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
LONG = "a_tool_whose_name_is_longer_than_most_others_and_than_the_sixty_four_letters_that_are_taken"
TOOLS = (
    Tool("look", "looks", SCHEMA, True, cache=mark(), extra=OTHERS),
    Tool("Look.up", "looks up", STRICT_SCHEMA, True),
    Tool("look", "looks elsewhere", None, False, namespace="eyes", deferred=True),
    Tool("see.it", namespace="eyes"),
    Tool("eyes__look", "has the name that another one would get"),
    Tool(LONG, schema=SCHEMA),
    Tool("patch", "patches", kind="custom", grammar=Grammar("lark", "start: WORD"), strict=True),
    Tool("write", None, kind="custom", namespace="hand", cache=mark("long"), extra=OWN),
    Tool("note", kind="custom", grammar=Grammar("regex", "[a-z]+"), deferred=True),
    HostedTool("web_search", Foreign(RESPONSES, "web_search", {"type": "web_search"})),
    Tool("bash", "runs", STRICT_SCHEMA, native=Foreign(MESSAGES, "bash_20250124", {"type": "bash_20250124"})),
    Tool(
        "shell", native=Foreign(RESPONSES, "shell", {"type": "shell", "environment": "local"}), namespace="n"
    ),
)
HISTORY = calls(
    ToolCall("1", "look", '{"a":1}'),
    ToolCall("2", "Look.up", "{}"),
    ToolCall("3", "look", "{}", namespace="eyes"),
    ToolCall("4", "patch", "+a", "custom"),
    ToolCall("5", "write", "b", "custom", namespace="hand"),
    ToolCall("6", "bash", "{}", extra=Extra(MESSAGES, {"more": 1}, {"type": "bash"})),
    ToolCall("7", "shell", "{}", namespace="n", extra=Extra(RESPONSES, form={"type": "shell_call"})),
    ToolCall("8", LONG, "{}"),
    ToolCall("9", "gone.away", "{}"),
    ToolCall("10", "gone", "x", "custom"),
).messages
RESULTS = user(
    *(
        ToolResult("1", (Text("a"),), name="look"),
        ToolResult("2", (Text("b"),), name="Look.up"),
        ToolResult("3"),
        ToolResult("4", kind="custom", name="patch"),
        ToolResult("5", kind="custom"),
        ToolResult("6", extra=Extra(MESSAGES, {"more": 1}, {"type": "bash"})),
        ToolResult("7", extra=Extra(RESPONSES, form={"type": "shell_call_output"})),
        ToolResult("8"),
        ToolResult("9"),
        ToolResult("10", kind="custom"),
    )
)
SIMPLE = (Tool("a"), Tool("b"), Tool("c.d"))
SEARCH = HostedTool("web_search", Foreign(RESPONSES, "web_search", {"type": "web_search"}))

MINE = Signature("mine", Origin(CHAT, PROVIDER))
HOSTED = Signature("hosted", Origin("gemini", PROVIDER))
CARRIED = Extra(CHAT, form={"extra_content": {"google": {}}})


def signed_call(id: str, signature: Signature, **more: Any) -> ToolCall:
    return ToolCall(id, "f", "{}", signature=signature, **more)


CONVERSATIONS: dict[str, Request] = {
    # --- turns
    "system texts on the way": request(
        system(),
        system(Text("be quick")),
        user(Text("a")),
        system(
            Text("behind a user"),
            Text("marked", cache=mark()),
            PICTURE,
            name="boss",
            extra=OTHERS,
        ),
        assistant(Text("b")),
        system(Text("before a user")),
        system(Text("and another")),
        user(Text("c")),
        system(Text("before an answer")),
        assistant(Text("d")),
        system(Text("before the end")),
    ),
    "system texts at the end": request(user(Text("a")), system(Text("one")), system(Text("two"))),
    "a system text first and behind an answer": request(
        system(), assistant(Text("a")), system(Text("one")), assistant(Text("b")), user(Text("c"))
    ),
    "nothing but system texts": request(system(), system(Text("be quick"))),
    "no messages": Request("m", ()),
    "an answer first": request(system(), assistant(Text("welcome")), user(Text("hi"))),
    "an answer to continue": request(user(Text("hi")), assistant(Text("well"))),
    "an answer to continue, as its client marked it": request(
        user(Text("hi")), Message("assistant", (Text("well"),), extra=Extra(CHAT, {}, {"prefill": "partial"}))
    ),
    "an answer to continue in JSON": request(
        user(Text("hi")), assistant(Text("{")), output=OutputFormat("json")
    ),
    "an answer to continue in JSON, as its client marked it": request(
        user(Text("hi")),
        Message("assistant", (Text("{"),), extra=Extra(CHAT, {"more": 1}, {"prefill": "partial"})),
        output=OutputFormat("json"),
    ),
    "an answer to continue by a schema": request(
        user(Text("hi")), assistant(Text("{")), output=OutputFormat("schema", STRICT_SCHEMA)
    ),
    "calls that nobody has answered yet": request(
        user(Text("hi")), assistant(Text("well"), ToolCall("1", "f", "{}")), tools=(Tool("f"),)
    ),
    "neighbours": request(
        user(Text("a")),
        Message("user", (Text("b"),), "ann"),
        Message("user", (Text("c"),), "ann", OTHERS),
        Message("user", (Text("d"),), "bob", OWN),
        assistant(Text("e")),
        Message("assistant", (Text("f"),), extra=Extra(CHAT, {"more": 1})),
        Message("user", (Text("g"),), "ann"),
        Message("user", (Text("h"),), "ann"),
    ),
    # --- pairs
    "a call without its result": request(
        user(Text("go")),
        assistant(Text("so"), ToolCall("1", "f", "{}"), ToolCall("2", "f", "x", "custom")),
        user(Text("and?"), ToolResult("2", (Text("done"),), kind="custom")),
        assistant(Text("well")),
        user(Text("go on")),
    ),
    "a result without its call": request(
        user(Text("go"), ToolResult("0", (Text("lost"),))),
        assistant(ToolCall("1", "f", "{}")),
        user(ToolResult("1", (Text("a"),)), ToolResult("9", (Text("stray"),))),
        assistant(Text("well")),
        user(ToolResult("8")),
    ),
    "several results for a call": request(
        assistant(ToolCall("1", "f", "{}")),
        user(ToolResult("1", (Text("a"),)), ToolResult("1", (Text("b"),)), Text("so")),
    ),
    "a second result in a later turn": request(
        assistant(ToolCall("1", "f", "{}")),
        user(ToolResult("1", (Text("a"),))),
        assistant(Text("hm")),
        user(ToolResult("1", (Text("b"),)), Text("so")),
    ),
    "results in another order": request(
        assistant(ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}")),
        user(Text("first"), ToolResult("2"), ToolResult("1")),
    ),
    "a result far behind its call": request(
        assistant(ToolCall("1", "f", "{}")),
        user(Text("wait")),
        assistant(Text("waiting")),
        user(ToolResult("1", (Text("a"),))),
        assistant(Text("well")),
    ),
    "a result before its call": request(
        user(ToolResult("1", (Text("a"),))), assistant(ToolCall("1", "f", "{}")), user(Text("so"))
    ),
    "results in messages of their own": request(
        assistant(ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}")),
        Message("user", (ToolResult("1"),), extra=OTHERS),
        Message("user", (ToolResult("2"),), "ann"),
        user(Text("so")),
    ),
    "ids that come again": request(
        assistant(ToolCall("f:0", "f", "{}")),
        user(ToolResult("f:0", (Text("a"),))),
        assistant(ToolCall("f:0", "f", "{}")),
        user(ToolResult("f:0", (Text("b"),))),
        assistant(ToolCall("f:0", "f", "{}"), ToolCall("f:0", "f", "{}")),
        user(ToolResult("f:0", (Text("c"),)), ToolResult("f:0", (Text("d"),))),
    ),
    "results that name no call": request(
        assistant(ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}")),
        user(ToolResult("", (Text("a"),)), ToolResult("2", (Text("b"),)), ToolResult("", (Text("c"),))),
        assistant(ToolCall("3", "f", "{}")),
        user(Text("later")),
        assistant(Text("hm")),
        user(ToolResult("", (Text("d"),))),
    ),
    "results behind the last answer": request(
        assistant(ToolCall("1", "f", "{}")),
        user(Text("hm")),
        assistant(ToolCall("2", "f", "{}")),
        user(ToolResult("1")),
    ),
    "an empty message among pairs": request(
        assistant(ToolCall("1", "f", "{}")), user(), user(ToolResult("1")), assistant(), user(Text("so"))
    ),
    # --- parts
    "blank texts": request(
        system(Text(" ")),
        user(Text(""), Text(" \n"), Text("a")),
        assistant(Text("", signature=CLAUDE), Text("", signature=MINE), Text("b")),
        user(Text("", cache=mark())),
        Message(
            "assistant",
            (ToolCall("1", "f", "{}"),),
            extra=Extra(CHAT, {"content": "", "more": 1}, {"order": 1}),
        ),
        user(ToolResult("1", (Text(""),))),
        Message("assistant", (Text("c"),), extra=Extra(CHAT, {"content": "", "more": 1})),
        user(),
    ),
    "thoughts": request(
        user(Text("a")),
        assistant(
            Reasoning("plain"),
            Reasoning("claude's", CLAUDE),
            Reasoning("mine", MINE),
            Reasoning("", CLAUDE),
            Reasoning("", CLAUDE, redacted=True),
            Reasoning("", MINE, redacted=True),
            Text("b"),
        ),
        user(Text("c")),
        assistant(
            Reasoning("written here", minter=Origin(CHAT, PROVIDER)),
            Reasoning("written elsewhere", minter=Origin(CHAT, "other")),
            Reasoning("in its field", extra=Extra(CHAT, form={"field": "reasoning"})),
            Reasoning("in another field", extra=Extra(CHAT, {"more": 1}, {"field": "reasoning_content"})),
            Reasoning("raw", extra=Extra(RESPONSES, form={"source": "content"})),
            Reasoning(
                "raw of here", extra=Extra(RESPONSES, form={"source": "content"}), minter=Origin(RESPONSES)
            ),
            Reasoning("summary", extra=Extra(RESPONSES, {"more": 1}, {"source": "summary"})),
            Text("d"),
        ),
        user(Text("e")),
    ),
    "signed calls": calls(
        signed_call("1", GEMINI),
        signed_call("2", MINE),
        signed_call("3", HOSTED),
        signed_call("4", GEMINI, extra=CARRIED),
        signed_call("5", CLAUDE),
        signed_call("6", Signature("x", Origin("gemini", "other"))),
        ToolCall("7", "f", "{}"),
    ),
    "calls of several steps": request(
        user(Text("go")),
        assistant(Text("so"), ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}")),
        user(ToolResult("1"), ToolResult("2")),
        assistant(signed_call("3", GEMINI)),
        user(ToolResult("3")),
        assistant(signed_call("4", CLAUDE)),
        user(ToolResult("4")),
        assistant(ToolCall("5", "f", "{}", extra=Extra("gemini", form={"thoughtSignature": "skip"}))),
        user(ToolResult("5")),
        assistant(Reasoning("hm"), ToolCall("6", "f", "{}")),
        user(ToolResult("6")),
    ),
    "a running loop that thinks": request(
        user(Text("go")),
        assistant(ToolCall("1", "f", "{}")),
        user(ToolResult("1")),
        thinking=Thinking("auto", "high", extra=Extra(MESSAGES, {"more": 1})),
    ),
    "a running loop with its thoughts": request(
        user(Text("go")),
        assistant(Reasoning("hm", CLAUDE), ToolCall("1", "f", "{}")),
        user(ToolResult("1"), Text("quick")),
        thinking=Thinking("auto"),
    ),
    "a loop that has ended": request(
        assistant(ToolCall("1", "f", "{}")),
        user(ToolResult("1")),
        assistant(Text("b")),
        user(Text("more")),
        thinking=Thinking("auto"),
    ),
    "a loop that does not think": request(
        assistant(ToolCall("1", "f", "{}")), user(ToolResult("1")), thinking=Thinking("off")
    ),
    "media": request(
        user(
            PICTURE,
            Media("image", url="http://a.example/a.png", cache=mark()),
            Media("image", url="https://a.example/a.png"),
            Media("document", url="gs://a/a.pdf"),
            Media("image", file_id="file-1"),
            PDF,
            Media("document", text="plain", name="a.txt", cache=mark("long")),
            Media("document", text="nameless"),
            Media("audio", "audio/wav", "UklGRg=="),
            Media("video", url="https://a.example/a.mp4"),
        )
    ),
    "results with media": request(
        user(Text("go")),
        assistant(ToolCall("1", "f", "{}"), ToolCall("2", "f", "{}"), ToolCall("3", "f", "{}")),
        user(
            ToolResult("1", (Text("a"), PICTURE, PDF, STRANGE)),
            ToolResult("2", (Media("document", text="plain", name="a.txt", cache=mark()), Text("b"))),
            ToolResult(
                "3", (PICTURE, Media("image", url="https://a.example/b.png"), Media("audio", data="UklG"))
            ),
            Text("so?"),
        ),
        assistant(Text("well")),
        user(ToolResult("9", (PICTURE,)), Text("more")),
    ),
    "names": request(
        Message("user", (Text("a"),), "ann"), Message("assistant", (Text("b"),), "bob", OWN), user(Text("c"))
    ),
    "foreign parts": request(
        user(Text("a"), TELLING, STRANGE, Foreign(CHAT, "own", {}, "own words")),
        assistant(ToolCall("1", "f", "{}")),
        user(
            ToolResult(  # parts of their own: places are distinguished by identity
                "1",
                (copy(TELLING), Text("b"), copy(STRANGE), Foreign(CHAT, "own", {}, "own words")),
            )
        ),
    ),
    "foreign parts alone": request(user(STRANGE), assistant(Text("b")), user(TELLING)),
    # --- state
    "state held elsewhere": request(
        user(Text("a")),
        extra=Extra(
            RESPONSES,
            {
                "previous_response_id": "r",
                "conversation": "c",
                "prompt": {"id": "p"},
                "cachedContent": "g",
                "thread": "t",
                "continuationToken": "k",
                "store": True,
            },
            {"order": 1},
        ),
    ),
    "state that is named and empty": request(
        user(Text("a")), extra=Extra(RESPONSES, {"previous_response_id": None, "conversation": ""})
    ),
    "items held elsewhere": request(
        user(Foreign(RESPONSES, "item_reference", {"id": "i"}), Text("a")),
        assistant(Foreign(RESPONSES, "item_reference", {"id": "j"})),
        user(Text("b")),
    ),
    "nothing but items held elsewhere": request(
        system(), user(Foreign(RESPONSES, "item_reference", {"id": "i"}))
    ),
    "nothing but state held elsewhere": request(
        user(Text("")), extra=Extra(RESPONSES, {"previous_response_id": "r"})
    ),
    "nothing but a stray result": request(system(), user(ToolResult("9"))),
    "switches that are off": request(
        Message("user", (Text("a", extra=Extra("acme", {"a": False})),), extra=Extra("acme", {"b": 0})),
        assistant(ToolCall("1", "f", "{}", extra=Extra("acme", {"c": "", "content": "", "thought": False}))),
        user(
            ToolResult(
                "1", (Text("b", extra=Extra("acme", {"d": False})),), extra=Extra("acme", {"e": False})
            )
        ),
        tools=(Tool("f", extra=Extra("acme", {"f": False, "g": None, "h": [], "i": {}, "j": True})),),
        tool_choice=ToolChoice("auto", extra=Extra("acme", {"k": False})),
        thinking=Thinking("on", extra=Extra("acme", {"l": False})),
        output=OutputFormat("json", extra=Extra("acme", {"m": False})),
        extra=Extra("acme", {"n": False}),
    ),
    # --- tools
    "tools": Request("m", (*HISTORY[:2], RESULTS), TOOLS),
    "calls of tools that are not offered": Request("m", (*HISTORY[:2], RESULTS)),
    **{
        f"a choice: {choice.mode} {' '.join(choice.only)} of {len(tools)}{' that thinks' if thinking.mode else ''}": (
            request(tools=tools, tool_choice=choice, thinking=thinking)
        )
        for choice in (
            ToolChoice("auto", extra=OWN),
            ToolChoice("none"),
            ToolChoice("required"),
            ToolChoice("required", ("a",)),
            ToolChoice("required", ("c.d",)),
            ToolChoice("required", ("a", "c.d")),
            ToolChoice("auto", ("a",)),
        )
        for tools in ((Tool("a"),), SIMPLE)
        for thinking in (Thinking(), Thinking("off"))
    },
    "a choice without tools": request(tool_choice=ToolChoice("required"), parallel_tools=False),
    "no choice without tools": request(tool_choice=ToolChoice("none"), parallel_tools=True),
    "a choice of a hosted tool": request(
        tools=(SEARCH, Tool("a")),
        tool_choice=ToolChoice("required", hosted=(HostedChoice("web_search"),)),
    ),
    "a choice of several hosted tools": request(
        tools=(SEARCH, Tool("a")),
        tool_choice=ToolChoice("auto", hosted=(HostedChoice("web_search"), HostedChoice("code_execution"))),
    ),
    "a choice beside a hosted tool": request(
        tools=(SEARCH, Tool("a"), Tool("b")), tool_choice=ToolChoice("required", ("a", "web_search"))
    ),
    "a choice of tools beside a hosted one": request(
        tools=(SEARCH, Tool("a")),
        tool_choice=ToolChoice("required", ("a",), extra=Extra(RESPONSES, {"more": 1})),
    ),
    "a choice of none beside a hosted tool": request(
        tools=(SEARCH, Tool("a")), tool_choice=ToolChoice("none")
    ),
    "a choice of a hosted tool alone": request(tools=(SEARCH,), tool_choice=ToolChoice("required")),
    "one call at a time": request(tools=SIMPLE, parallel_tools=False),
    "several calls at a time": request(tools=SIMPLE, parallel_tools=True),
    "tools declared on the way": request(
        system(Text("be good"), Foreign(CHAT, TOOLS_PART, {MIDWAY: 0}), name="boss", extra=OWN),
        user(Text("a")),
        system(Foreign(CHAT, TOOLS_PART, {MIDWAY: 1})),
        system(Foreign(CHAT, TOOLS_PART, {"tools": "unreadable"})),
        user(Text("b")),
        tools=(
            Tool("a", extra=Extra(CHAT, form={MIDWAY: 0})),
            Tool("b", extra=Extra(CHAT, {"more": 1}, {MIDWAY: 1, "order": 2})),
            Tool("c", extra=OWN),
            Tool("d"),
            SEARCH,
        ),
    ),
    "ids": calls(
        ToolCall("call", "f", "{}"),
        ToolCall("call_1", "g", "{}"),
        ToolCall("nineteen-letters-xx", "f", "{}"),
        ToolCall("much-longer-than-twenty-letters", "f", "{}"),
        ToolCall("functions.f:4", "f", "{}"),
    ),
    # --- markers
    "markers": request(
        system(Text("be good", cache=mark()), Text("be quick")),
        user(Text("a", cache=mark("long")), Media("image", data="aGk=", cache=mark())),
        assistant(Reasoning("hm"), STRANGE, ToolCall("1", "f", "{}", cache=mark("short"))),
        user(ToolResult("1", cache=mark()), Text("b")),
        tools=(Tool("f", cache=mark()), SEARCH, Tool("g", cache=mark("long")), Tool("h")),
        cache=mark(),
    ),
    "two markers": request(user(Text("a", cache=mark()), Text("b")), tools=(Tool("f", cache=mark()),)),
    "an automatic marker": request(cache=mark(), tools=(Tool("f"),)),
    "markers as Chat spells them": request(
        user(
            Text(
                "a", cache=CacheMark("long", Extra(CHAT, {}, {"key": "cache_control", "raw": {"type": "x"}}))
            ),
            Text("b", cache=CacheMark("long", Extra(CHAT, {}, {"key": "prompt_cache_breakpoint"}))),
        ),
        user(Text("c")),
    ),
    # --- spelling
    "names of Chat": request(
        Message("system", (Text("s"),), extra=Extra(CHAT, {"more": 1}, {"role": "developer"})),
        Message("system", (Text("t"),), extra=Extra(CHAT, {}, {"role": "developer"})),
        Message("system", (Text("u"),), extra=Extra(CHAT, {}, {"role": "developer", "order": 1})),
        system(Text("v")),
        user(Text("a")),
        max_tokens=77,
        sampling=Sampling(seed=5),
        user="ann",
        extra=Extra(CHAT, {"tools": [], "more": 1}, {"max_tokens": 5, "order": 1}),
    ),
    "names of others": request(max_tokens=77, sampling=Sampling(seed=5), user="ann", extra=OTHERS),
    "no fields but empty tools": request(extra=Extra(CHAT, {"tools": []})),
    "lists of texts": request(
        system(Text("a"), Text("b")), user(Text("c"), Text("d")), assistant(Text("e")), user(Text("f"))
    ),
    "a list of texts of the user": request(user(Text("c"), Text("d"))),
    "a list of texts and a picture": request(user(Text("c"), Text("d"), PICTURE)),
    "a list of texts and something else": request(user(Text("c"), Text("d"), STRANGE)),
    "a list of one text": request(Message("user", (Text("a"),), extra=Extra(CHAT, {}, {"content": "parts"}))),
    "a result of several texts": Request(
        "m", (assistant(ToolCall("1", "f", "{}")), user(ToolResult("1", (Text("a"), Text("b")))))
    ),
    "a result that is a list": Request(
        "m",
        (
            assistant(ToolCall("1", "f", "{}")),
            user(ToolResult("1", (Text("a"),), extra=Extra(CHAT, {}, {"content": "parts"}))),
        ),
    ),
    "ids that the client left empty": request(
        assistant(
            ToolCall("1", "f", "{}", extra=Extra(CHAT, {"id": ""}, {"order": 1})),
            ToolCall("2", "f", "{}", extra=Extra(CHAT, {}, {"no_id": True})),
            ToolCall("3", "f", "{}", extra=Extra(CHAT, {"more": 1}, {"id": None})),
            ToolCall("4", "f", "{}", extra=Extra(CHAT, {}, {"no_id": True, "legacy": True})),
            ToolCall("5", "f", "{}", extra=Extra("acme", {"id": ""})),
            ToolCall("6", "f", "{}"),
        ),
        user(
            ToolResult("1", extra=Extra(CHAT, {"tool_call_id": "", "more": 1}, {"no_id": True})),
            *(ToolResult(id) for id in "23456"),
            Text("so", extra=Extra(CHAT, {"id": ""})),
        ),
        user(Text("more")),
    ),
    # --- settings
    "settings": request(
        verbosity="low", service_tier="flex", metadata={"a": "b"}, user="ann", cache_key="k", max_tokens=100
    ),
    "much": request(max_tokens=101, stop=("a", " ", "éé", "long one", "b")),
    "few stops": request(stop=("a", "bcde")),
    "sampling": request(
        sampling=Sampling(0.3, 0.4, 5, 0.5, 0.6, 7, 2, True, 3),
    ),
    "sampling by default": request(sampling=Sampling(1, 1, None, 0, 0, None, 1, False)),
    "sampling as it is fixed": request(sampling=Sampling(temperature=0.5, top_p=1)),
    "hot": request(sampling=Sampling(temperature=1.5, top_p=0.5)),
    "hottest": request(sampling=Sampling(temperature=1)),
    # --- output
    **{
        f"an answer of {name}": request(system(), system(Text("s")), user(Text("a")), output=output)
        for name, output in {
            "text": OutputFormat("text"),
            "json": OutputFormat("json", extra=OWN),
            "a schema": OutputFormat("schema", SCHEMA, "n", "d", False, OWN),
            "a strict schema": OutputFormat("schema", SCHEMA, strict=True),
            "a schema that all take": OutputFormat("schema", STRICT_SCHEMA, strict=True),
            "a list": OutputFormat("schema", {"type": "array", "items": {"type": "string"}}),
            "no schema": OutputFormat("schema"),
        }.items()
    },
    # --- pieces
    "pieces": request(
        user(Text("a"), Text("b")),
        assistant(
            Reasoning("think"),
            Reasoning("ing", extra=OTHERS),
            Reasoning("", GEMINI),
            Reasoning("more"),
            Reasoning("", CLAUDE),
            Reasoning("", redacted=True),
            Reasoning("secret", redacted=True),
            Reasoning("open"),
            Text("so"),
            Text("me", extra=Extra("gemini", {"thought": False})),
            Text("", signature=GEMINI),
            Text("words"),
            Text("refused", refusal=True),
            Text("words"),
            Text("cited", citations=(Citation("https://a.example"),)),
            Text("likely", logprobs=(TokenLogprob("likely", -1),)),
            Text("marked", cache=mark()),
            Text("telling", extra=OTHERS),
            Text("last"),
            Text(" one"),
            ToolCall("1", "f", "{}"),
            ToolCall("2", "f", "{}"),
        ),
        user(ToolResult("1"), ToolResult("2")),
        assistant(Text("a"), Text("b")),
        assistant(Reasoning("c"), Reasoning("d")),
    ),
}
