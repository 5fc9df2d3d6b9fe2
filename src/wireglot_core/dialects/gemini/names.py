"""Proto-JSON: the names of Gemini's fields, and the spellings that are accepted.

Google's servers take camelCase and snake_case for every field, enums in any case or as numbers, 64-bit
integers as strings, a single object in place of a list. All of it is parsed; camelCase, upper-case enum
names, numbers and lists are written by default. Another legal spelling of a client or provider is restored in
its own dialect, except for snake_case, which becomes camelCase, and for bare strings in place of a content or
part, which SDKs take and servers refuse: they become objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.json_path import snake_case
from wireglot_core.dialects.unknown_fields import UnknownFields
from wireglot_core.ir.errors import WireglotError

OWN = "gemini"

put_back = UnknownFields(OWN).put_back

GENERATION_FIELD = "generationConfig."
TOOL_CONFIG_FIELD = "toolConfig."
CALLING_FIELD = "toolConfig.functionCallingConfig."
"""Prefixes of the unknown fields of these objects in the request's extra: their paths."""


def unfolded(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields to put back in a request, nested ones in their object again."""
    out: dict[str, Any] = {}
    for key, item in fields.items():
        prefixes = (CALLING_FIELD, TOOL_CONFIG_FIELD, GENERATION_FIELD)
        prefix = next((each for each in prefixes if key.startswith(each)), "")
        place = out
        for step in prefix.split(".")[:-1]:
            place = place.setdefault(step, {})
        place[key.removeprefix(prefix)] = item
    return out


class Names:
    """The known fields of one message type, and their snake_case spellings."""

    __slots__ = ("known", "spellings")

    def __init__(self, *names: str) -> None:
        self.known = frozenset(names)
        self.spellings = {snake: name for name in names if (snake := snake_case(name)) != name}

    def read(self, value: Any, path: str, fault: type[WireglotError]) -> Fields:
        """The object under camelCase names; it must be one."""
        return Fields(self.camel(value) if type(value) is dict else value, path, fault)

    def camel(self, value: dict[str, Any]) -> dict[str, Any]:
        """The object with camelCase names. A snake_case field whose camelCase form is present too stays
        unknown."""
        spellings = self.spellings
        if spellings.keys().isdisjoint(value):
            return value
        return {
            spellings[key] if key in spellings and spellings[key] not in value else key: item
            for key, item in value.items()
        }

    def child(self, fields: Fields, key: str) -> Fields:
        """The object in a field; it must be one."""
        return self.read(fields.value.get(key), f"{fields.path}.{key}", fields.fault)


REQUEST = Names(
    "model",
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "labels",
    "serviceTier",
    "store",
    "continuationToken",
    "modelArmorConfig",
    "generationOutputConfig",
)
CONTENT = Names("role", "parts")
PART = Names(
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "videoMetadata",
    "mediaResolution",
    "mediaProcessing",
    "speechMetadata",
    "partMetadata",
)
BLOB = Names("mimeType", "data", "displayName")
FILE = Names("mimeType", "fileUri", "displayName")
FUNCTION_CALL = Names("id", "name", "args", "partialArgs", "willContinue")
PARTIAL_ARG = Names("jsonPath", "stringValue", "numberValue", "boolValue", "nullValue", "willContinue")
FUNCTION_RESPONSE = Names("id", "name", "response", "parts", "willContinue", "scheduling")
TOOL = Names(
    "functionDeclarations",
    "googleSearch",
    "googleSearchRetrieval",
    "googleMaps",
    "codeExecution",
    "urlContext",
    "fileSearch",
    "computerUse",
    "mcpServers",
    "retrieval",
    "enterpriseWebSearch",
    "parallelAiSearch",
    "exaAiSearch",
)
DECLARATION = Names(
    "name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"
)
TOOL_CONFIG = Names("functionCallingConfig", "includeServerSideToolInvocations", "retrievalConfig")
CALLING_CONFIG = Names("mode", "allowedFunctionNames", "streamFunctionCallArguments")
THINKING = Names("includeThoughts", "thinkingBudget", "thinkingLevel")
RESPONSE = Names(
    "candidates",
    "promptFeedback",
    "usageMetadata",
    "modelVersion",
    "responseId",
    "createTime",
    "modelStatus",
    "automaticFunctionCallingHistory",
    "turnToken",
)
CANDIDATE = Names(
    "content",
    "finishReason",
    "finishMessage",
    "index",
    "safetyRatings",
    "citationMetadata",
    "groundingMetadata",
    "urlContextMetadata",
    "avgLogprobs",
    "logprobsResult",
    "tokenCount",
    "continuationToken",
)
FEEDBACK = Names("blockReason", "blockReasonMessage", "safetyRatings")
GROUNDING = Names(
    "groundingChunks", "groundingSupports", "webSearchQueries", "searchEntryPoint", "retrievalMetadata"
)
SUPPORT = Names("segment", "groundingChunkIndices", "confidenceScores")
SEGMENT = Names("partIndex", "startIndex", "endIndex", "text")
CITATIONS = Names("citations", "citationSources")
CITATION = Names("startIndex", "endIndex", "uri", "title", "license", "publicationDate")
LOGPROBS = Names("topCandidates", "chosenCandidates", "logProbabilitySum")
LOGPROB = Names("token", "tokenId", "logProbability")


def integer(fields: Fields, key: str) -> int | None:
    """An integer, which proto-JSON may write as a string."""
    value = fields.value.get(key)
    if type(value) is str:
        text = value.strip()
        if re.fullmatch(r"[+-]?[0-9]{1,20}", text):
            return int(text)
        raise fields.wrong(key, "an integer")
    return fields.integer(key)


def count(value: Any) -> int:
    """A token count from a provider's usage; anything other than a sensible number counts as 0."""
    if type(value) is int:
        return max(value, 0)
    if type(value) is float and value.is_integer():
        return max(int(value), 0)
    if type(value) is str and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    return 0


def enum_name(value: Any, numbers: tuple[str, ...] = ()) -> str:
    """An enum's name, written in any case or as its number. Unknown values keep their text."""
    if type(value) is str:
        return value.upper()
    if type(value) is int:
        return numbers[value] if 0 <= value < len(numbers) else str(value)
    return ""


def listed(value: Any) -> list[Any]:
    """A list; a single value becomes a list of one."""
    if value is None:
        return []
    return value if type(value) is list else [value]
