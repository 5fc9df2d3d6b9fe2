"""Limits of endpoints and models, as data. `fit` adapts requests to them; no other code depends on which
provider it is."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from wireglot_core.dialects.registry import surface
from wireglot_core.ir.leaked_calls import LEAK_FAMILIES, LeakFamily
from wireglot_core.ir.request import EFFORTS, Effort, Sampling

ThinkingStyle = Literal["adaptive", "budget", "effort", "level", "toggle", "fixed", "none"]
"""How thinking is requested.

adaptive: on/off plus effort (Claude from 4.6). budget: tokens (older Claude, Gemini 2.5). effort: one word
(OpenAI, Kimi K3). level: one word (Gemini 3+). toggle: on or off (Kimi K2.x). fixed: always on, no field
accepted. none: a model that does not think.
"""

ThinkingSwitch = Literal["", "thinking", "enable_thinking", "reasoning"]
"""The field of Chat endpoints that switches thinking: `thinking: {type}` (Kimi, DeepSeek, GLM),
`enable_thinking` (Qwen) or `reasoning: {enabled}` (OpenRouter, Together)."""

ReasoningReplay = Literal["signed", "own", "text", "drop"]
"""Which earlier reasoning is sent back to the upstream: only what this upstream signed; what it wrote itself,
signed or not, as it came; the plain text of anybody; or nothing."""

SchemaForm = Literal[
    "json-schema", "gemini-json", "gemini-openapi", "openai", "anthropic", "moonshot", "ollama"
]

ALL_SAMPLING = tuple(name for name in Sampling.__struct_fields__ if name != "top_logprobs")
"""The number of log probabilities is accepted where log probabilities are."""
DEFAULT_SAMPLING: dict[str, float] = {
    "temperature": 1,
    "top_p": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "candidates": 1,
    "logprobs": False,
    "top_logprobs": 0,
}
"""What every API does by default: a client that requests it loses nothing if it cannot be expressed."""

MediaKind = Literal["image", "document", "audio", "video"]
ALL_MEDIA: tuple[MediaKind, ...] = get_args(MediaKind)

SettingName = Literal["verbosity", "service_tier", "metadata", "user", "cache_key"]
ALL_SETTINGS: tuple[SettingName, ...] = get_args(SettingName)

TextRole = Literal["system", "user", "assistant", "tool"]
ALL_TEXT_ROLES: tuple[TextRole, ...] = get_args(TextRole)

ChoiceName = Literal["auto", "none", "required", "named", "subset"]
ALL_CHOICES: tuple[ChoiceName, ...] = get_args(ChoiceName)


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The default values impose no limits."""

    # tools
    tool_name: str = ""
    """Pattern a tool name must match; others are renamed, reversibly."""
    tool_name_max: int = 128
    call_id: str = ""
    """Pattern a call id must match; others are rewritten."""
    call_id_max: int = 0
    call_ids: Literal["keep", "positional", "kimi"] = "keep"
    """positional: ids are not sent, calls and results are paired by order. kimi: `functions.{name}:{n}`, n
    counting up."""
    custom_tools: bool = True
    namespaces: bool = True
    strict_tools: bool = True
    hosted_tools: bool = True
    tool_schema: SchemaForm = "json-schema"
    tool_choices: tuple[ChoiceName, ...] = ALL_CHOICES
    tool_choices_thinking: tuple[ChoiceName, ...] | None = None
    """The choices accepted while the model thinks, if there are fewer."""
    hosted_choice: bool = True
    """Whether a choice applies to hosted tools too; otherwise hosted tools that it does not allow are left
    out."""
    forced_choice: Literal["weaken", "stop_thinking", "format"] = "weaken"
    """What to do about a forced choice that the model refuses while it thinks: weaken the choice, or turn off
    the thinking of this turn if possible. format: the endpoint has no choice of tools, but enforces schemas;
    one forced tool is requested as the format of the answer, which is returned as its call."""
    midway_tools: bool = False
    """Whether a message may declare tools (Kimi K3); otherwise they are added to the request's tools."""
    parallel_switch: bool = True
    leaks_calls: tuple[LeakFamily, ...] = ()
    """The token families that calls in the text of answers may be written in. Such calls are parsed
    (`ir/leaked_calls.py`), so setting this needs a report of such answers. A table may say `true` for all
    known families."""
    tool_result_media: Literal["inside", "beside"] = "inside"

    # the conversation
    system_midway: Literal["anywhere", "after-user", "no"] = "anywhere"
    starts_with_user: bool = False
    blank_text: bool = True
    prefill: bool = True
    continues: bool = True
    """Whether the model continues a last assistant message. Elsewhere it begins a new one; for a client of
    another dialect that relies on it, the continuation is requested in words."""
    prefill_field: Literal["", "partial", "prefix"] = ""
    """The field without which a Chat endpoint does not continue a last assistant message."""
    audio: tuple[str, ...] = ()
    """The accepted audio media types; empty: any."""
    prefill_json: bool = True
    """Whether a last assistant message is continued when JSON output is requested."""
    media: tuple[MediaKind, ...] = ALL_MEDIA
    media_urls: bool = True
    file_ids: bool = True
    """Whether clients of another dialect may refer to files of the dialect's vendor by id here."""
    file_addresses: tuple[str, ...] | None = None
    """Prefixes of file addresses that only hosts of this vendor can open; None: the vendor is unknown."""
    text_parts: tuple[TextRole, ...] = ALL_TEXT_ROLES
    """Roles whose Chat messages may have a list of text parts. Messages of other roles are one string: texts
    are joined by a blank line, unless there is a cache marker among them that is read."""
    cache_markers: int = 1000
    marker_field: Literal["", "cache_control"] = ""
    """The field for a cache marker on a Chat endpoint that reads Anthropic's."""
    cache: Literal["", "marked", "automatic"] = ""
    """How prompts are cached. marked: only up to a `cache_control`. automatic: any repeated beginning. No
    request depends on it: it explains cache hits (`traces/cache_truth.py`)."""
    cache_min: int = 0
    """Minimum tokens for a prompt to be cached; 0: unknown."""
    cache_step: int = 0
    """Granularity of the cache in tokens; 0: unknown, or single tokens."""
    message_names: bool = True
    developer_role: bool = True
    """Whether Chat's newer role name `developer` is known; otherwise `system` is sent."""

    # reasoning
    thinking: ThinkingStyle | None = None
    thinking_own: Literal["fit", "guess", "keep", "switch"] = "fit"
    """What to do with the thinking settings of a client of this very dialect. fit: converted to the form
    above, like any other client's. guess: left alone, since the form is only the dialect's usual one; a file
    that states the model's form makes it `fit`. keep: left alone, since the endpoint reads it all; only an
    off it cannot do is bent. switch: the same for Chat's `thinking` object alone (Kimi); a plain effort is
    put into the form above."""
    thinks_by_default: bool = False
    efforts: tuple[Effort, ...] = EFFORTS
    """The effort levels of this model, including `none` if that is how thinking is switched off."""
    budget_min: int = 0
    budget_max: int = 0
    thinking_off: bool = True
    """Whether thinking can be switched off."""
    between_tools: bool = False
    """Whether Anthropic's `between_tools` is accepted; it means off for a model that refuses `disabled`."""
    thinking_switch: ThinkingSwitch = ""
    """How an endpoint with efforts is switched off, if not by the effort `none`; on Chat, also the switch of
    an endpoint without efforts."""
    thinking_in_loop: bool = False
    """Thinking continues in a tool loop only if the loop's own thinking is sent back, signed."""
    reasoning: ReasoningReplay = "text"
    reasoning_field: Literal["", "reasoning", "content"] = ""
    """Where a Chat endpoint reads reasoning: only in this field, or (`content`) as a chunk of the content."""
    reasoning_required: bool = False
    """Every assistant turn with calls must have the reasoning field, even if empty."""
    call_signatures: bool = False
    """The first call of each step of the current turn must be signed; the documented bypass value is used if
    the signature is missing."""

    # generation
    settings: tuple[SettingName, ...] = ALL_SETTINGS
    service_tiers: tuple[str, ...] | None = None
    """The tiers of this model, if known: others are not sent."""
    user_field: Literal["", "user"] = ""
    """The field for the end user on a Chat endpoint that does not know the newer name."""
    user_max: int = 0
    """The maximum length of the end user's id. A longer one of another dialect is sent as its SHA-256, in 64
    characters; 0: no limit."""
    max_tokens: int = 0
    """Maximum output tokens of a model; 0: unknown."""
    max_tokens_min: int = 0
    """The minimum accepted: a smaller limit from another dialect is raised to it."""
    max_tokens_default: int = 0
    """Sent if the client sets none and the dialect requires one; 0 sends nothing."""
    max_tokens_field: Literal["", "max_tokens"] = ""
    """The field for the output limit on an endpoint that refuses or ignores its dialect's newer name."""
    seed_field: Literal["", "random_seed"] = ""
    sampling: tuple[str, ...] = ALL_SAMPLING
    """Sampling settings that may be set freely."""
    fixed: dict[str, float] = {}
    """Sampling settings that the model fixes: only this value is accepted."""
    temperature_max: float = 0
    """Maximum temperature; 0: no limit beyond that of the dialect."""
    stop_sequences: bool = True
    """Whether stop sequences are accepted at all."""
    stop_max: int = 0
    """Maximum number of stop sequences; 0: unlimited."""
    stop_bytes: int = 0
    output_formats: tuple[Literal["json", "schema"], ...] = ("json", "schema")
    output_schema: SchemaForm = "json-schema"


_OPENAI_AUDIO = ("audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/mpeg", "audio/mp3")
"""openai-python 3.51.0, `ChatCompletionContentPartInputAudioParam`: wav and mp3, read 2026-11-17."""

_OPENAI_USER = 64
"""`safety_identifier` in OpenAI's OpenAPI document of 2026-08-21; openai-python 3.51.0 says 128."""

BASE: dict[str, Limits] = {
    "anthropic": Limits(
        tool_name=r"[A-Za-z0-9_-]+",
        call_id=r"[A-Za-z0-9_-]+",
        custom_tools=False,
        namespaces=False,
        tool_schema="anthropic",
        system_midway="after-user",
        starts_with_user=True,
        blank_text=False,
        media=("image", "document"),
        cache_markers=4,
        thinking="adaptive",
        thinking_own="guess",
        efforts=("low", "medium", "high", "xhigh", "max"),
        reasoning="signed",
        max_tokens_default=32_000,
        temperature_max=1,
        output_formats=("schema",),
        output_schema="anthropic",
    ),
    "openai-chat": Limits(
        tool_name=r"[A-Za-z0-9_-]+",
        tool_name_max=64,
        call_id_max=64,
        namespaces=False,
        hosted_tools=False,
        hosted_choice=False,
        tool_schema="openai",
        tool_result_media="beside",
        media=("image", "document", "audio"),
        audio=_OPENAI_AUDIO,
        thinking="effort",
        thinking_own="guess",
        reasoning="own",
        cache_markers=4,
        continues=False,
        user_max=_OPENAI_USER,
        stop_max=4,
        output_schema="openai",
    ),
    "openai-responses": Limits(
        tool_name=r"[A-Za-z0-9_-]+",
        tool_name_max=64,
        call_id_max=64,
        tool_schema="openai",
        media=("image", "document", "audio"),
        audio=_OPENAI_AUDIO,
        thinking="effort",
        thinking_own="guess",
        reasoning="signed",
        user_max=_OPENAI_USER,
        max_tokens_min=16,
        stop_sequences=False,
        cache_markers=4,
        continues=False,
        output_schema="openai",
    ),
    "gemini": Limits(
        tool_name=r"[A-Za-z_][A-Za-z0-9_.:-]*",
        custom_tools=False,
        namespaces=False,
        hosted_choice=False,
        tool_schema="gemini-json",
        system_midway="no",
        starts_with_user=True,
        blank_text=False,
        thinking="level",
        thinking_own="guess",
        efforts=("minimal", "low", "medium", "high"),
        reasoning="signed",
        call_signatures=True,
        stop_max=5,
        output_schema="gemini-json",
        media_urls=False,
    ),
    # `api.ChatRequest` of github.com/ollama/ollama, read 2026-08-21.
    "ollama": Limits(
        custom_tools=False,
        namespaces=False,
        strict_tools=False,
        hosted_tools=False,
        hosted_choice=False,
        tool_schema="ollama",
        tool_choices=("auto", "none"),
        forced_choice="format",
        parallel_switch=False,
        media=("image",),
        media_urls=False,
        file_ids=False,
        message_names=False,
        cache_markers=0,
        settings=(),
        thinking="effort",
        thinking_own="keep",
        efforts=("none", "low", "medium", "high", "max"),
        reasoning="own",
        sampling=tuple(name for name in ALL_SAMPLING if name != "candidates"),
    ),
}
BASE["gemini-interactions"] = msgspec.structs.replace(
    BASE["gemini"],
    efforts=("minimal", "low", "medium", "high", "xhigh"),
    thinking_off=False,
    call_signatures=False,  # thoughts are signed, and a missing signature is accepted
)
BASE["ollama-generate"] = BASE["ollama"]
BASE["code-assist"] = BASE["gemini"]
BASE["gemini-simple"] = BASE["gemini"]
BASE["anthropic-vertex"] = BASE["anthropic-bedrock"] = BASE["anthropic"]
"""What each dialect requires of any model. A provider's file narrows or widens it."""


PROXY: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "custom_tools": False,
        "cache_markers": 0,
        "settings": ("user",),
        "user_field": "user",
        "text_parts": (),
        "file_ids": False,
    },
    "openai-responses": {
        "custom_tools": False,
        "namespaces": False,
        "hosted_tools": False,
        "cache_markers": 0,
        "settings": (),
        "file_ids": False,
    },
}
"""Applied over a vendor's own limits for any other provider that serves its models in its dialect."""

CLONE: dict[str, dict[str, Any]] = {
    "openai-chat": {
        **PROXY["openai-chat"],
        "strict_tools": False,
        "tool_choices": ("auto", "none", "required", "named"),
        "developer_role": False,
        "max_tokens_field": "max_tokens",
        "media": ("image",),
    },
    "openai-responses": {
        **PROXY["openai-responses"],
        "strict_tools": False,
        "tool_choices": ("auto", "none", "required", "named"),
        "media": ("image",),
    },
    "anthropic": {
        "hosted_tools": False,
        "strict_tools": False,
        "system_midway": "no",
        "thinking": "budget",
        "budget_min": 1024,
        "media": ("image",),
    },
}
"""Toward a server that speaks another vendor's dialect with its own models: what every server of the dialect
is known to accept, and no more. It applies to translated requests. Clients of the dialect itself know the
server, so only refusals that it documents are avoided for them. A catalog file lists what its provider
accepts beyond this."""


_FORM_OF_THINKING = frozenset(
    {"thinking", "efforts", "thinking_off", "between_tools", "thinking_switch", "budget_min", "budget_max"}
)


def base_limits(dialect: str) -> Limits:
    """The limits of any model of a dialect. Dialects registered by plugins define their own, or use those of
    their family."""
    found = BASE.get(dialect)
    if found is not None:
        return found
    about = surface(dialect)
    demands = about.upstream.limits if about.upstream is not None else {}
    if not demands and about.family != dialect:
        return base_limits(about.family)
    return narrowed(Limits(), dict(demands))


# Built here: msgspec 0.22 lets one thread use a type that another has only begun to build.
msgspec.json.Decoder(Limits)


def narrowed(limits: Limits, overrides: dict[str, Any]) -> Limits:
    """`limits` with the fields of a catalog table applied; an unknown field or a wrong type is an error."""
    if not overrides:
        return limits
    overrides = spelled_out(overrides)
    values = {name: getattr(limits, name) for name in limits.__struct_fields__}
    if limits.thinking_own == "guess" and not _FORM_OF_THINKING.isdisjoint(overrides):
        values["thinking_own"] = "fit"
    return msgspec.convert({**values, **overrides}, Limits)


def spelled_out(overrides: dict[str, Any]) -> dict[str, Any]:
    """A table of limits with `leaks_calls = true` or `false` replaced by the list that it means."""
    said = overrides.get("leaks_calls")
    if type(said) is not bool:
        return overrides
    return {**overrides, "leaks_calls": LEAK_FAMILIES if said else ()}


UNLISTED: dict[str, dict[str, Any]] = {
    "openai-responses": {"custom_tools": False, "namespaces": False},
}
"""Toward a server that no catalog file lists, also for clients of its dialect: Codex sends these tools to any
server, and others than OpenAI's refuse the whole request for them."""
