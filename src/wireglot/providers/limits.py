"""What an endpoint or a model refuses, as data. `fit` bends a request to it; nothing else asks who it is."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from wireglot.dialects.registry import surface
from wireglot.ir.leaked_calls import LEAK_FAMILIES, LeakFamily
from wireglot.ir.request import EFFORTS, Effort, Sampling

ThinkingStyle = Literal["adaptive", "budget", "effort", "level", "toggle", "fixed", "none"]
"""How thinking is asked for.

adaptive: on/off plus effort (Claude from 4.6). budget: tokens (older Claude, Gemini 2.5).
effort: one word (OpenAI, Kimi K3). level: one word (Gemini 3+). toggle: on or off (Kimi K2.x).
fixed: always on, no field accepted. none: a model that does not think.
"""

ThinkingSwitch = Literal["", "thinking", "enable_thinking", "reasoning"]
"""The field of Chat endpoints that switches thinking: `thinking: {type}` (Kimi, DeepSeek, GLM),
`enable_thinking` (Qwen) or `reasoning: {enabled}` (OpenRouter, Together)."""

ReasoningReplay = Literal["signed", "own", "text", "drop"]
"""Which earlier reasoning goes back up: only what this upstream signed; what it wrote itself, signed or not,
as it came; the plain text of anybody; or nothing."""

SchemaForm = Literal[
    "json-schema", "gemini-json", "gemini-openapi", "openai", "anthropic", "moonshot", "ollama"
]

ALL_SAMPLING = tuple(name for name in Sampling.__struct_fields__ if name != "top_logprobs")
"""The number of log probabilities is taken where they are."""
DEFAULT_SAMPLING: dict[str, float] = {
    "temperature": 1,
    "top_p": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "candidates": 1,
    "logprobs": False,
    "top_logprobs": 0,
}
"""What every API does unasked: anyone who says it loses nothing where it cannot be said."""

MediaKind = Literal["image", "document", "audio", "video"]
ALL_MEDIA: tuple[MediaKind, ...] = get_args(MediaKind)

SettingName = Literal["verbosity", "service_tier", "metadata", "user", "cache_key"]
ALL_SETTINGS: tuple[SettingName, ...] = get_args(SettingName)

TextRole = Literal["system", "user", "assistant", "tool"]
ALL_TEXT_ROLES: tuple[TextRole, ...] = get_args(TextRole)

ChoiceName = Literal["auto", "none", "required", "named", "subset"]
ALL_CHOICES: tuple[ChoiceName, ...] = get_args(ChoiceName)


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The defaults refuse nothing."""

    # tools
    tool_name: str = ""
    """Pattern a tool name must match; others are renamed, reversibly."""
    tool_name_max: int = 128
    call_id: str = ""
    """Pattern a call id must match; others are rewritten."""
    call_id_max: int = 0
    call_ids: Literal["keep", "positional", "kimi"] = "keep"
    """positional: ids are not sent, order pairs. kimi: `functions.{name}:{n}`, n counting up."""
    custom_tools: bool = True
    namespaces: bool = True
    strict_tools: bool = True
    hosted_tools: bool = True
    tool_schema: SchemaForm = "json-schema"
    tool_choices: tuple[ChoiceName, ...] = ALL_CHOICES
    tool_choices_thinking: tuple[ChoiceName, ...] | None = None
    """The choices while the model thinks, where that narrows them."""
    hosted_choice: bool = True
    """Whether a choice holds for hosted tools too; else those that it does not allow are left out."""
    forced_choice: Literal["weaken", "stop_thinking"] = "weaken"
    """A forced choice that the model refuses while it thinks: the choice gives way, or the thinking of this
    turn, where it can be switched off."""
    midway_tools: bool = False
    """Whether a message may declare tools (Kimi K3); else they join all others."""
    parallel_switch: bool = True
    leaks_calls: tuple[LeakFamily, ...] = ()
    """The tokens in which answers may hold calls in their text. These are read (`ir/leaked_calls.py`), so
    this needs a report of such answers. A table may say `true` for all that are known."""
    tool_result_media: Literal["inside", "beside"] = "inside"

    # the conversation
    system_midway: Literal["anywhere", "after-user", "no"] = "anywhere"
    starts_with_user: bool = False
    blank_text: bool = True
    prefill: bool = True
    continues: bool = True
    """Whether a last answer is continued. Elsewhere the model begins a new one: anyone who counts on it,
    coming from another dialect, has it asked for in words."""
    prefill_field: Literal["", "partial", "prefix"] = ""
    """The mark without which a Chat endpoint does not continue a last answer."""
    audio: tuple[str, ...] = ()
    """The media types of sound that are taken; empty: any."""
    prefill_json: bool = True
    """Whether it continues one while JSON is asked for."""
    media: tuple[MediaKind, ...] = ALL_MEDIA
    media_urls: bool = True
    file_ids: bool = True
    """Whether a client of another dialect may name files of the dialect's vendor by their ids here."""
    file_addresses: tuple[str, ...] | None = None
    """How addresses of files begin that only hosts of this vendor open; None: unknown whose host it is."""
    text_parts: tuple[TextRole, ...] = ALL_TEXT_ROLES
    """Whose messages may hold a list of texts on Chat. Those of others are one string: texts are joined by a
    blank line, unless a cache marker that is read stands among them."""
    cache_markers: int = 1000
    marker_field: Literal["", "cache_control"] = ""
    """How a marker is spelled toward a Chat endpoint that reads Anthropic's."""
    cache: Literal["", "marked", "automatic"] = ""
    """How prompts are cached. marked: up to a `cache_control`, and only so. automatic: any beginning that
    comes again. No request depends on it: it explains what came from a cache (`traces/cache_truth.py`)."""
    cache_min: int = 0
    """Tokens below which nothing is cached; 0 is unknown."""
    cache_step: int = 0
    """Tokens in which a cache counts; 0 is unknown, or one by one."""
    message_names: bool = True
    developer_role: bool = True
    """Whether Chat's newer name for the system is known; else it goes by the old one."""

    # reasoning
    thinking: ThinkingStyle | None = None
    thinking_own: Literal["fit", "guess", "keep", "switch"] = "fit"
    """What a client of this very dialect says about thinking. fit: put into the form above, as any other's.
    guess: left alone, since the form is only the dialect's usual one; a file that states the model's form
    makes it `fit`. keep: left alone, since the endpoint reads it all; only an off it cannot do is bent.
    switch: the same for Chat's `thinking` object alone (Kimi); a plain effort is put into the form above."""
    thinks_by_default: bool = False
    efforts: tuple[Effort, ...] = EFFORTS
    """The steps this model has, `none` among them where that is how it is switched off."""
    budget_min: int = 0
    budget_max: int = 0
    thinking_off: bool = True
    """Whether it can be switched off."""
    between_tools: bool = False
    """Whether Anthropic's `between_tools` is taken, which is off for a model that refuses `disabled`."""
    thinking_switch: ThinkingSwitch = ""
    """An endpoint with efforts that is switched off by this and not by the effort `none`; on Chat, also the
    switch of one that only has that."""
    thinking_in_loop: bool = False
    """Thinking goes on in a tool loop only if the loop's own thinking comes back, signed."""
    reasoning: ReasoningReplay = "text"
    reasoning_field: Literal["", "reasoning", "content"] = ""
    """Where a Chat endpoint reads it: in this field only, or (`content`) as a chunk of the content."""
    reasoning_required: bool = False
    """Every assistant turn with calls must say its reasoning, be it empty."""
    call_signatures: bool = False
    """The first call of each step of the current turn must be signed; the documented bypass stands in."""

    # generation
    settings: tuple[SettingName, ...] = ALL_SETTINGS
    service_tiers: tuple[str, ...] | None = None
    """The tiers this model has, where that is known: another one is not sent."""
    user_field: Literal["", "user"] = ""
    """How the end user is named toward a Chat endpoint that does not know the newer name."""
    user_max: int = 0
    """The maximum length of the end user's id. A longer one of another dialect is sent as its SHA-256, in 64
    characters; 0: no bound."""
    max_tokens: int = 0
    """The most a model gives; 0 is unknown."""
    max_tokens_min: int = 0
    """The least that is taken: a smaller limit of another dialect is raised to it."""
    max_tokens_default: int = 0
    """Sent when the client names none and the dialect demands one; 0 sends nothing."""
    max_tokens_field: Literal["", "max_tokens"] = ""
    """How the limit is spelled toward an endpoint that refuses or ignores its dialect's newer name."""
    seed_field: Literal["", "random_seed"] = ""
    sampling: tuple[str, ...] = ALL_SAMPLING
    """What may be set freely."""
    fixed: dict[str, float] = {}
    """Sampling that the model fixes: this value is taken, and no other."""
    temperature_max: float = 0
    """0: no bound of its own."""
    stop_sequences: bool = True
    """Whether stop sequences are taken at all."""
    stop_max: int = 0
    """The most stop sequences; 0 is unbounded."""
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
    call_signatures=False,  # thoughts are signed, and one that is missing is simply not there
)
BASE["ollama-generate"] = BASE["ollama"]
BASE["code-assist"] = BASE["gemini"]
BASE["gemini-simple"] = BASE["gemini"]
BASE["anthropic-vertex"] = BASE["anthropic-bedrock"] = BASE["anthropic"]
"""What each dialect's own wire demands of any model. A provider's file narrows or widens it."""


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
"""Laid over a vendor's own limits toward anybody else who serves its models in its dialect."""

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
"""Toward the one that speaks another vendor's dialect with models of its own: what every server of the
dialect is known to take, and no more. It holds for requests that are translated. Who speaks the dialect
itself knows the server, and only refusals that it documents are kept from it. A file says what its provider
takes beyond."""


_FORM_OF_THINKING = frozenset(
    {"thinking", "efforts", "thinking_off", "between_tools", "thinking_switch", "budget_min", "budget_max"}
)


def base_limits(dialect: str) -> Limits:
    """Of any model of a dialect. Those that others register tell their own, or are like their family."""
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
    """`limits` with the fields of a catalog table put over it; a wrong field or type is an error."""
    if not overrides:
        return limits
    overrides = spelled_out(overrides)
    values = {name: getattr(limits, name) for name in limits.__struct_fields__}
    if limits.thinking_own == "guess" and not _FORM_OF_THINKING.isdisjoint(overrides):
        values["thinking_own"] = "fit"
    return msgspec.convert({**values, **overrides}, Limits)


def spelled_out(overrides: dict[str, Any]) -> dict[str, Any]:
    """A table of limits with `leaks_calls = true` or `false` as the list that it means."""
    said = overrides.get("leaks_calls")
    if type(said) is not bool:
        return overrides
    return {**overrides, "leaks_calls": LEAK_FAMILIES if said else ()}
