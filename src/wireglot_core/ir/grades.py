"""How bad a loss is for the client: one table by feature and action, with a reason for each.

The grade follows the effect on the answer. What only costs money or time is harmless.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

Grade = Literal["serious", "degraded", "harmless"]
"""Worst first; `GRADE_MEANINGS` explains each."""

GRADE_MEANINGS: dict[Grade, str] = {
    "serious": "the model lacks information, or the caller gets something unexpected",
    "degraded": "the answer may be different or worse",
    "harmless": "the answer is the same or equivalent; it may cost more or take longer",
}


GRADES: dict[tuple[str, str], tuple[Grade, str]] = {
    ("audio", "emulated"): ("harmless", "The gateway downloads it and sends it."),
    ("audio", "dropped"): ("serious", "The model answers without it."),
    ("audio", "approximated"): ("degraded", "It is sent in another form or without its name."),
    ("audio", "invented"): ("harmless", "Only its type was guessed."),
    ("cache_key", "dropped"): (
        "harmless",
        "The answer is the same; there may be fewer cache hits, which costs more.",
    ),
    ("cache_marker", "dropped"): ("harmless", "The answer is the same; the prompt may be charged in full."),
    ("cache_marker", "approximated"): (
        "harmless",
        "The prompt is cached, with another lifetime or at another position.",
    ),
    ("candidates", "emulated"): ("harmless", "All answers are returned; each costs a separate request."),
    ("candidates", "dropped"): ("serious", "One answer is returned where several were requested."),
    ("citations", "dropped"): ("degraded", "The text is returned without its sources."),
    ("citations", "approximated"): ("harmless", "The source is named, in less detail."),
    ("citations", "invented"): ("harmless", "A source is attached to the whole text."),
    ("content.empty", "dropped"): ("harmless", "It was empty."),
    ("content.empty", "approximated"): (
        "degraded",
        "The target takes no empty turn, and without it the other turns would have another meaning. A note "
        'is sent in its place: "[empty message]", or "[message left out: this model cannot take it]" if its '
        'content exists only in the client\'s dialect, or "[tool results moved or left out]" if it had only '
        "results that answer no call before it.",
    ),
    ("content.position", "dropped"): ("serious", "A part of the conversation is missing."),
    ("content.position", "approximated"): ("degraded", "Everything is sent, in another order."),
    ("content.position", "invented"): (
        "degraded",
        'A turn of the user, "Continue.", is added where the target requires one.',
    ),
    ("context", "dropped"): (
        "serious",
        "The server cuts the beginning of a longer prompt without an error: the model does not read it.",
    ),
    ("context_management", "dropped"): (
        "degraded",
        "The model reads the whole conversation, and a long one may no longer fit.",
    ),
    ("conversation_state", "dropped"): ("serious", "The model does not know the earlier turns."),
    ("document", "emulated"): ("harmless", "The gateway downloads it and sends it."),
    ("document", "dropped"): ("serious", "The model answers without having read it."),
    ("document", "approximated"): ("degraded", "It is read as text, or without its title and context."),
    ("document", "invented"): ("harmless", "Only its name or type was generated."),
    ("embedding.task", "dropped"): (
        "degraded",
        "The vector is not optimized for the task: search results may be worse.",
    ),
    ("embedding.title", "dropped"): ("degraded", "The vector is computed from the text only."),
    ("embedding.truncation", "dropped"): (
        "degraded",
        "A text that is too long is rejected or truncated, as is the target's default.",
    ),
    ("error.detail", "dropped"): ("harmless", "The kind of the error and its message are kept."),
    ("error.detail", "approximated"): ("harmless", "The error is reported in terms of the client's dialect."),
    ("file_reference", "dropped"): ("serious", "The model answers without having seen the file."),
    ("file_reference", "approximated"): ("harmless", "The file is sent without its type."),
    ("foreign_event", "dropped"): ("harmless", "The answer is complete without it."),
    ("foreign_part", "dropped"): ("serious", "A part of the conversation is missing."),
    ("foreign_part", "approximated"): ("degraded", "The model reads it as text."),
    ("foreign_part", "emulated"): (
        "harmless",
        "It returns to its provider unchanged, or its content is elsewhere in the request.",
    ),
    ("hosted_tool", "dropped"): ("serious", "The model cannot use the tool."),
    ("hosted_tool", "approximated"): ("degraded", "A tool of the same kind runs, without the options."),
    ("hosted_tool", "emulated"): ("harmless", "It works as the client expects."),
    ("image", "emulated"): ("harmless", "The gateway downloads it and sends it."),
    ("image", "dropped"): ("serious", "The model answers without having seen it."),
    ("image", "approximated"): ("harmless", "It is sent without its name or type."),
    ("image", "invented"): ("harmless", "Only its type was guessed."),
    ("image.detail", "dropped"): (
        "degraded",
        "The target's default detail level is used.",
    ),
    ("image.detail", "approximated"): ("harmless", "The nearest detail level is used."),
    ("logprobs", "dropped"): ("serious", "The caller gets no probabilities."),
    ("logprobs", "approximated"): (
        "harmless",
        "They are reported in another field, or only the default ones.",
    ),
    ("max_tokens", "dropped"): ("degraded", "The answer may be longer than requested, and cost more."),
    ("max_tokens", "approximated"): ("degraded", "The answer may end earlier than requested."),
    ("max_tokens", "invented"): ("harmless", "The caller set no limit, and the target requires one."),
    ("message.name", "dropped"): ("degraded", "Speakers of one role can no longer be distinguished."),
    ("message.phase", "dropped"): (
        "degraded",
        "The model no longer sees which of its earlier texts was the final answer.",
    ),
    ("message.role", "dropped"): ("degraded", "The text is sent without its role."),
    ("message.role", "approximated"): ("degraded", "The text is sent under another role."),
    ("message.role", "invented"): (
        "degraded",
        'A turn of the user, "Begin.", is added before a first answer where the target requires one.',
    ),
    ("metadata", "dropped"): ("harmless", "The answer does not depend on it."),
    ("model", "invented"): ("harmless", "The request names no model, and the target requires one."),
    ("output_format", "dropped"): ("serious", "The model may answer in something other than JSON."),
    ("output_format", "approximated"): ("degraded", "The format is requested, not enforced."),
    ("output_format", "emulated"): ("harmless", "The answer has the requested form."),
    ("output_format.schema", "dropped"): ("serious", "The answer may not follow the schema."),
    ("output_format.schema", "approximated"): ("degraded", "Part of the schema is described, not enforced."),
    ("output_format.schema", "emulated"): ("harmless", "The answer has the requested form."),
    ("output_format.strict", "dropped"): ("degraded", "The schema is a hint."),
    ("output_format.strict", "approximated"): ("harmless", "The schema is stricter than requested."),
    ("parallel_tools", "dropped"): ("degraded", "One turn may contain several calls."),
    ("prefill", "dropped"): ("serious", "The answer does not continue the given text."),
    ("prefill", "approximated"): (
        "degraded",
        'The model is instructed to continue, "Continue from exactly where your last message ended.", and '
        "may start over.",
    ),
    ("reasoning.redacted", "dropped"): ("degraded", "The model no longer sees its earlier thinking."),
    ("reasoning.redacted", "approximated"): (
        "degraded",
        "The model sees that it thought, but not what.",
    ),
    ("reasoning.signature", "dropped"): ("degraded", "The thinking cannot be verified as the model's own."),
    ("reasoning.signature", "approximated"): ("harmless", "The state is sent, attached to another part."),
    ("reasoning.signature", "invented"): (
        "degraded",
        "The target continues without the state that it requires.",
    ),
    ("reasoning.text", "dropped"): ("degraded", "The model no longer sees its earlier thinking."),
    ("reasoning.text", "approximated"): ("degraded", "The thinking is sent as ordinary text."),
    ("reasoning.text", "invented"): ("harmless", "The target requires thinking where the source has none."),
    ("refusal", "approximated"): ("harmless", "The text is kept, the mark is not."),
    ("response.extra", "dropped"): ("harmless", "Clients of this dialect do not use it."),
    ("safeguards", "dropped"): (
        "serious",
        "Tool calls are not checked: a client that waits for the check runs none of them.",
    ),
    ("safeguards", "emulated"): ("harmless", "Another model makes the check."),
    ("sampling.frequency_penalty", "dropped"): ("degraded", "Words may be repeated more often."),
    ("sampling.presence_penalty", "dropped"): ("degraded", "Topics may be repeated more often."),
    ("sampling.seed", "dropped"): ("degraded", "The same request may get a different answer."),
    ("sampling.temperature", "dropped"): (
        "degraded",
        "The target's default randomness applies.",
    ),
    ("sampling.temperature", "approximated"): (
        "harmless",
        "The nearest value that the target accepts is used.",
    ),
    ("sampling.top_k", "dropped"): ("harmless", "Few answers are affected."),
    ("sampling.top_p", "dropped"): ("degraded", "The target's default randomness applies."),
    ("sampling.top_p", "approximated"): ("harmless", "The nearest value that the target accepts is used."),
    ("service_tier", "dropped"): (
        "harmless",
        "The answer is the same; the target's default speed and price apply.",
    ),
    ("service_tier", "approximated"): ("harmless", "The nearest class is requested."),
    ("stop_details", "dropped"): ("harmless", "The stop is reported without its details."),
    ("stop_reason", "emulated"): ("harmless", "The answer is complete: it was continued after the pause."),
    ("stop_reason", "approximated"): (
        "degraded",
        "The client's dialect has no value for the reason.",
    ),
    ("stop_sequence", "dropped"): (
        "harmless",
        "The match of a stop sequence is reported, or follows from the text.",
    ),
    ("stop_sequence", "approximated"): (
        "degraded",
        "An answer ended by a stop sequence looks as if the model had ended it.",
    ),
    ("stop_sequences", "dropped"): ("serious", "The answer continues where it should have stopped."),
    ("stop_sequences", "emulated"): ("harmless", "The answer is cut where it should have stopped."),
    ("stop_sequences", "approximated"): (
        "serious",
        "The answer continues at texts where it should have stopped.",
    ),
    ("storage", "dropped"): (
        "serious",
        "The answer is complete, but cannot be retrieved by its id or continued.",
    ),
    ("system.position", "dropped"): ("degraded", "The instruction is missing at its position."),
    ("system.position", "approximated"): ("degraded", "The instruction is sent in another position."),
    ("thinking.budget", "dropped"): (
        "degraded",
        "The model's effort or default determines how much it thinks.",
    ),
    ("thinking.budget", "approximated"): ("harmless", "The model thinks about the same amount."),
    ("thinking.budget", "invented"): (
        "harmless",
        "The target requires a number; it is derived from the request.",
    ),
    ("thinking.display", "dropped"): (
        "harmless",
        "The answer is the same; its thinking may be shown or not.",
    ),
    ("thinking.display", "approximated"): ("harmless", "It is expressed in another way."),
    ("thinking.effort", "dropped"): ("degraded", "The model's default effort applies."),
    ("thinking.effort", "approximated"): ("harmless", "The nearest effort is requested."),
    ("thinking.effort", "invented"): ("harmless", "It is derived from the request."),
    ("thinking.mode", "dropped"): ("degraded", "The model's default determines whether it thinks."),
    ("thinking.mode", "approximated"): ("degraded", "The nearest supported thinking mode is used."),
    ("thinking.mode", "emulated"): ("harmless", "The effort or the model's default has the same effect."),
    ("thinking.mode", "invented"): ("harmless", "It is derived from the request."),
    ("tool.custom", "dropped"): ("serious", "The model cannot use the tool, or does not know its grammar."),
    ("tool.custom", "approximated"): (
        "harmless",
        "The call and its result are sent as those of a function.",
    ),
    ("tool.custom", "emulated"): ("harmless", "The text is returned in the form that the client expects."),
    ("tool.deferred", "dropped"): ("harmless", "The tool is sent from the beginning; the prompt is longer."),
    ("tool.deferred", "emulated"): ("harmless", "The tool is sent once the client has found it."),
    ("tool.name", "dropped"): ("degraded", "The tool is declared without its name."),
    ("tool.name", "emulated"): ("harmless", "The name is restored in the answer."),
    ("tool.namespace", "dropped"): ("degraded", "Tools of two groups can no longer be distinguished by it."),
    ("tool.namespace", "emulated"): ("harmless", "The name is restored in the answer."),
    ("tool.native", "emulated"): ("harmless", "The model calls a function with the same arguments."),
    ("tool.position", "approximated"): ("harmless", "The tool is sent from the beginning."),
    ("tool.schema", "dropped"): ("degraded", "The model does not know the tool's parameters."),
    ("tool.schema", "approximated"): (
        "degraded",
        "Part of the parameters is described in text, not enforced.",
    ),
    ("tool.schema", "emulated"): ("harmless", "The arguments have the requested form."),
    ("tool.schema.hint", "approximated"): (
        "harmless",
        "The model reads it in the description; it was not enforced before either.",
    ),
    ("tool.strict", "dropped"): ("degraded", "Arguments may not fit the schema."),
    ("tool.strict", "approximated"): ("harmless", "The schema is stricter than requested."),
    ("tool_call.arguments", "dropped"): ("serious", "The model does not see the arguments of the call."),
    ("tool_call.arguments", "approximated"): ("degraded", "The arguments are sent in another form."),
    ("tool_call.arguments", "emulated"): ("harmless", "The arguments are sent in full, inside an object."),
    ("tool_call.arguments", "invented"): ("serious", "A call was parsed from the text of the answer."),
    ("tool_call.id", "dropped"): ("harmless", "Calls and results are paired by their names."),
    ("tool_call.id", "approximated"): ("harmless", "Calls and results are still paired."),
    ("tool_call.id", "emulated"): ("harmless", "The id is restored in the answer."),
    ("tool_call.id", "invented"): ("harmless", "Calls and results are paired by a generated id."),
    ("tool_choice", "dropped"): ("serious", "The model may call a tool, or none, contrary to the request."),
    ("tool_choice", "emulated"): ("harmless", "Only the tools that may be called are sent."),
    ("tool_choice", "approximated"): ("degraded", "The choice is weaker or narrower than requested."),
    ("tool_result.error", "dropped"): ("degraded", "The model does not know that the tool failed."),
    ("tool_result.error", "approximated"): ("harmless", "The failure is stated in the text."),
    ("tool_result.media", "dropped"): ("serious", "The model answers without having seen it."),
    ("tool_result.media", "approximated"): ("harmless", "It is sent after the result."),
    ("tool_result.name", "dropped"): ("harmless", "The id identifies the call."),
    ("tool_result.name", "invented"): (
        "harmless",
        "The target requires a name; the id identifies the call.",
    ),
    ("tool_result.pairing", "dropped"): ("serious", "The model does not get a result."),
    ("tool_result.pairing", "approximated"): ("harmless", "The result is moved to its call."),
    ("tool_result.pairing", "invented"): (
        "degraded",
        "The model reads a call or a result that did not happen.",
    ),
    ("unknown_field", "dropped"): ("degraded", "Its effect is unknown."),
    ("usage.detail", "dropped"): ("harmless", "The totals are correct; one component is missing."),
    ("usage.detail", "invented"): ("harmless", "The counts are estimated: the provider reports none."),
    ("usage.detail", "approximated"): (
        "harmless",
        "The totals are correct; one component is counted with another.",
    ),
    ("user", "dropped"): ("harmless", "The answer does not depend on it."),
    ("user", "approximated"): ("harmless", "The answer does not depend on it."),
    ("verbosity", "dropped"): ("degraded", "The target's default length applies."),
    ("video", "emulated"): ("harmless", "The gateway downloads it and sends it."),
    ("video", "dropped"): ("serious", "The model answers without having seen it."),
    ("video", "approximated"): ("harmless", "It is sent without its name or type."),
    ("video", "invented"): ("harmless", "Only its type was guessed."),
}
"""(feature, action) -> how bad it is for the sender of the request, and why. `docs/reference/losses.md` is
generated from this; every loss declared in the code must be listed (tests/core/ir/test_grades.py)."""


@lru_cache(maxsize=1024)
def grade_of(feature: str, action: str) -> tuple[Grade, str]:
    """The grade of a loss of this feature, and the reason. A feature that only an extension has is graded
    serious."""
    known = GRADES.get((feature, action))
    if known is not None:
        return known
    if action == "emulated":
        return "harmless", "It is turned back on the way home."
    if action == "invented":
        return "harmless", "The source did not say it, and the target demands it."
    return GRADES.get((feature, "dropped"), ("serious", "Its effect is unknown."))
