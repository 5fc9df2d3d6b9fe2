"""How bad a loss is for the client: one table by feature and action, with a reason for each.

The grade follows the effect on the answer. What only costs money or time is harmless.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

Grade = Literal["serious", "degraded", "harmless"]
"""Worst first; `GRADE_MEANINGS` explains each."""

GRADE_MEANINGS: dict[Grade, str] = {
    "serious": "the model misses information, or the caller gets something unexpected",
    "degraded": "the answer may be different or worse",
    "harmless": "the answer is the same, or as good; it may cost more or take longer",
}


GRADES: dict[tuple[str, str], tuple[Grade, str]] = {
    ("audio", "emulated"): ("harmless", "The gateway downloads it and sends it."),
    ("audio", "dropped"): ("serious", "The model answers without it."),
    ("audio", "approximated"): ("degraded", "It is sent in another form or without its name."),
    ("audio", "invented"): ("harmless", "Only its type was guessed."),
    ("cache_key", "dropped"): (
        "harmless",
        "The answer is the same; fewer prompts may be found in the cache, which costs money.",
    ),
    ("cache_marker", "dropped"): ("harmless", "The answer is the same; the prompt may be paid for in full."),
    ("cache_marker", "approximated"): (
        "harmless",
        "The prompt is cached, for another time or in another place.",
    ),
    ("candidates", "emulated"): ("harmless", "Every answer is there; each costs a request of its own."),
    ("candidates", "dropped"): ("serious", "One answer is returned where several were requested."),
    ("citations", "dropped"): ("degraded", "The text is returned without its sources."),
    ("citations", "approximated"): ("harmless", "The source is named, in less detail."),
    ("citations", "invented"): ("harmless", "The whole text is named as what a source is about."),
    ("content.empty", "dropped"): ("harmless", "It was empty."),
    ("content.position", "dropped"): ("serious", "A part of the conversation is missing."),
    ("content.position", "approximated"): ("degraded", "Everything is sent, in another order."),
    ("content.position", "invented"): (
        "harmless",
        "An empty turn is added where the target requires one.",
    ),
    ("context_management", "dropped"): (
        "degraded",
        "The model reads the whole conversation, and a long one may no longer fit.",
    ),
    ("conversation_state", "dropped"): ("serious", "The model does not know the earlier turns."),
    ("document", "emulated"): ("harmless", "The gateway downloads it and sends it."),
    ("document", "dropped"): ("serious", "The model answers without having read it."),
    ("document", "approximated"): ("degraded", "It is read as text, or without what was said about it."),
    ("document", "invented"): ("harmless", "Only its name or type was made up."),
    ("embedding.task", "dropped"): (
        "degraded",
        "The vector is made for no task in particular: searches may find less.",
    ),
    ("embedding.title", "dropped"): ("degraded", "The vector is made of the text alone."),
    ("embedding.truncation", "dropped"): (
        "degraded",
        "A text that is too long is refused or cut, as the target does by itself.",
    ),
    ("error.detail", "dropped"): ("harmless", "The kind of the error and its message are there."),
    ("error.detail", "approximated"): ("harmless", "The error is reported in terms of the client's dialect."),
    ("file_reference", "dropped"): ("serious", "The model answers without having seen the file."),
    ("file_reference", "approximated"): ("harmless", "The file is sent without its type."),
    ("foreign_event", "dropped"): ("harmless", "The answer is whole without it."),
    ("foreign_part", "dropped"): ("serious", "A part of the conversation is missing."),
    ("foreign_part", "approximated"): ("degraded", "The model reads it as text."),
    ("foreign_part", "emulated"): (
        "harmless",
        "It returns to its provider unchanged, or its content is in another place of the request.",
    ),
    ("hosted_tool", "dropped"): ("serious", "The model cannot use the tool."),
    ("hosted_tool", "approximated"): ("degraded", "A tool of the same kind runs, without the options."),
    ("hosted_tool", "emulated"): ("harmless", "It works as the client knows it."),
    ("image", "emulated"): ("harmless", "The gateway downloads it and sends it."),
    ("image", "dropped"): ("serious", "The model answers without having seen it."),
    ("image", "approximated"): ("harmless", "It is sent without its name or type."),
    ("image", "invented"): ("harmless", "Only its type was guessed."),
    ("image.detail", "dropped"): (
        "degraded",
        "The picture is looked at as closely as the target does by itself.",
    ),
    ("image.detail", "approximated"): ("harmless", "The picture is looked at nearly as closely."),
    ("logprobs", "dropped"): ("serious", "A caller that counts on probabilities gets none."),
    ("logprobs", "approximated"): ("harmless", "They are reported in another place or by default."),
    ("max_tokens", "dropped"): ("degraded", "The answer may be longer than wanted, and cost more."),
    ("max_tokens", "approximated"): ("degraded", "The answer may end earlier than wanted."),
    ("max_tokens", "invented"): ("harmless", "The caller set no limit, the target demands one."),
    ("message.name", "dropped"): ("degraded", "Speakers of one role can no longer be distinguished."),
    ("message.phase", "dropped"): (
        "degraded",
        "The model no longer knows which of its words were the answer.",
    ),
    ("message.role", "dropped"): ("degraded", "The text is sent without its speaker."),
    ("message.role", "approximated"): ("degraded", "The text is sent under another role."),
    ("message.role", "invented"): ("harmless", "A turn is added where the target requires one."),
    ("metadata", "dropped"): ("harmless", "The answer does not depend on it."),
    ("model", "invented"): ("harmless", "No model was named, and the target demands one."),
    ("output_format", "dropped"): ("serious", "Nothing makes the model answer in JSON."),
    ("output_format", "approximated"): ("degraded", "The format is requested, not enforced."),
    ("output_format", "emulated"): ("harmless", "The answer has the requested form."),
    ("output_format.schema", "dropped"): ("serious", "Nothing makes the answer follow the schema."),
    ("output_format.schema", "approximated"): ("degraded", "Part of the schema is described, not enforced."),
    ("output_format.schema", "emulated"): ("harmless", "The answer has the requested form."),
    ("output_format.strict", "dropped"): ("degraded", "The schema is a hint."),
    ("output_format.strict", "approximated"): ("harmless", "The schema is stricter than requested."),
    ("parallel_tools", "dropped"): ("degraded", "Several calls may come in one turn."),
    ("prefill", "dropped"): ("serious", "The answer does not continue the words it was given."),
    ("prefill", "approximated"): ("degraded", "The model is instructed to continue, and may start over."),
    ("reasoning.redacted", "dropped"): ("degraded", "The model no longer knows what it thought."),
    ("reasoning.redacted", "approximated"): (
        "degraded",
        "The fact that it thought is sent, the thought is not.",
    ),
    ("reasoning.signature", "dropped"): ("degraded", "The thinking cannot be verified as the model's own."),
    ("reasoning.signature", "approximated"): ("harmless", "The state is sent, attached to another part."),
    ("reasoning.signature", "invented"): (
        "degraded",
        "The target continues without the state that it requires.",
    ),
    ("reasoning.text", "dropped"): ("degraded", "The model no longer knows what it thought."),
    ("reasoning.text", "approximated"): ("degraded", "The thinking is sent as ordinary text."),
    ("reasoning.text", "invented"): ("harmless", "The target demands thinking where the source has none."),
    ("refusal", "approximated"): ("harmless", "The words are there, the mark is not."),
    ("response.extra", "dropped"): ("harmless", "A client of this dialect does not look for it."),
    ("safeguards", "dropped"): (
        "serious",
        "Tool calls are not checked: a client that waits for the check runs none of them.",
    ),
    ("safeguards", "emulated"): ("harmless", "Another model makes the check."),
    ("sampling.frequency_penalty", "dropped"): ("degraded", "Words may come again more often."),
    ("sampling.presence_penalty", "dropped"): ("degraded", "Subjects may come again more often."),
    ("sampling.seed", "dropped"): ("degraded", "The same request may be answered otherwise."),
    ("sampling.temperature", "dropped"): (
        "degraded",
        "The answer is as varied as the target has it by itself.",
    ),
    ("sampling.temperature", "approximated"): ("harmless", "The nearest that the target takes is used."),
    ("sampling.top_k", "dropped"): ("harmless", "Few answers change by it."),
    ("sampling.top_p", "dropped"): ("degraded", "The answer is as varied as the target has it by itself."),
    ("sampling.top_p", "approximated"): ("harmless", "The nearest that the target takes is used."),
    ("service_tier", "dropped"): (
        "harmless",
        "The answer is the same; speed and price are the target's own.",
    ),
    ("service_tier", "approximated"): ("harmless", "The nearest class is requested."),
    ("stop_details", "dropped"): ("harmless", "The stop is reported without its details."),
    ("stop_reason", "emulated"): ("harmless", "The answer is whole: it was continued where it paused."),
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
        "An answer that a stop sequence ended looks as if the model had ended it.",
    ),
    ("stop_sequences", "dropped"): ("serious", "The answer continues where it should have stopped."),
    ("stop_sequences", "emulated"): ("harmless", "The answer is cut where it should have stopped."),
    ("stop_sequences", "approximated"): (
        "serious",
        "The answer continues at texts where it should have stopped.",
    ),
    ("storage", "dropped"): (
        "serious",
        "The answer is whole, and neither found by its id nor gone on with.",
    ),
    ("system.position", "dropped"): ("degraded", "The instruction is missing at its position."),
    ("system.position", "approximated"): ("degraded", "The instruction is sent in another position."),
    ("thinking.budget", "dropped"): ("degraded", "The model thinks as much as its effort or default says."),
    ("thinking.budget", "approximated"): ("harmless", "The model thinks about as much."),
    ("thinking.budget", "invented"): (
        "harmless",
        "The target requires a number; it follows from the request.",
    ),
    ("thinking.display", "dropped"): (
        "harmless",
        "The answer is the same; its thinking may be shown or not.",
    ),
    ("thinking.display", "approximated"): ("harmless", "It is expressed in another way."),
    ("thinking.effort", "dropped"): ("degraded", "The model thinks as hard as it does by itself."),
    ("thinking.effort", "approximated"): ("harmless", "The nearest effort is requested."),
    ("thinking.effort", "invented"): ("harmless", "It follows from the request."),
    ("thinking.mode", "dropped"): ("degraded", "The model thinks, or not, as it does by itself."),
    ("thinking.mode", "approximated"): ("degraded", "The model thinks as close to the request as it can."),
    ("thinking.mode", "emulated"): ("harmless", "The effort or the model's default says the same."),
    ("thinking.mode", "invented"): ("harmless", "It follows from the request."),
    ("tool.custom", "dropped"): ("serious", "The model cannot use the tool, or does not know its grammar."),
    ("tool.custom", "approximated"): (
        "harmless",
        "The call and its result are there, as those of a function.",
    ),
    ("tool.custom", "emulated"): ("harmless", "The text comes back as the client knows it."),
    ("tool.deferred", "dropped"): ("harmless", "The tool is sent from the beginning; the prompt is longer."),
    ("tool.deferred", "emulated"): ("harmless", "The tool is sent once the client has found it."),
    ("tool.name", "dropped"): ("degraded", "The tool is known without its name."),
    ("tool.name", "emulated"): ("harmless", "The name is turned back."),
    ("tool.namespace", "dropped"): ("degraded", "Tools of two groups can no longer be distinguished by it."),
    ("tool.namespace", "emulated"): ("harmless", "The name is turned back."),
    ("tool.native", "emulated"): ("harmless", "The model calls a function of the same arguments."),
    ("tool.position", "approximated"): ("harmless", "The tool is sent from the beginning."),
    ("tool.schema", "dropped"): ("degraded", "The model does not know the tool's parameters."),
    ("tool.schema", "approximated"): (
        "degraded",
        "Part of the parameters is described in text, not enforced.",
    ),
    ("tool.schema", "emulated"): ("harmless", "The arguments have the requested form."),
    ("tool.schema.hint", "approximated"): (
        "harmless",
        "The model reads it in the description; nothing enforced it before either.",
    ),
    ("tool.strict", "dropped"): ("degraded", "Arguments may not fit the schema."),
    ("tool.strict", "approximated"): ("harmless", "The schema is stricter than requested."),
    ("tool_call.arguments", "dropped"): ("serious", "The model does not know what was called for."),
    ("tool_call.arguments", "approximated"): ("degraded", "The arguments are sent in another form."),
    ("tool_call.arguments", "emulated"): ("harmless", "The arguments are sent in full, inside an object."),
    ("tool_call.arguments", "invented"): ("serious", "A call was read from the text of the answer."),
    ("tool_call.id", "dropped"): ("harmless", "Calls and results are paired by their names."),
    ("tool_call.id", "approximated"): ("harmless", "Calls and results still belong together."),
    ("tool_call.id", "emulated"): ("harmless", "The id is turned back."),
    ("tool_call.id", "invented"): ("harmless", "Calls and results are paired by an id that is made up."),
    ("tool_choice", "dropped"): ("serious", "The model may call a tool, or none, contrary to the request."),
    ("tool_choice", "emulated"): ("harmless", "Only the tools that may be called are sent."),
    ("tool_choice", "approximated"): ("degraded", "The choice is weaker or narrower than requested."),
    ("tool_result.error", "dropped"): ("degraded", "The model does not know that the tool failed."),
    ("tool_result.error", "approximated"): ("harmless", "The failure is stated in the text."),
    ("tool_result.media", "dropped"): ("serious", "The model answers without having seen it."),
    ("tool_result.media", "approximated"): ("harmless", "It is sent after the result."),
    ("tool_result.name", "dropped"): ("harmless", "The id says which call it answers."),
    ("tool_result.name", "invented"): (
        "harmless",
        "The target demands a name; the id says which call it answers.",
    ),
    ("tool_result.pairing", "dropped"): ("serious", "The model does not get a result."),
    ("tool_result.pairing", "approximated"): ("harmless", "The result is moved to its call."),
    ("tool_result.pairing", "invented"): (
        "degraded",
        "The model reads a call or a result that did not happen.",
    ),
    ("unknown_field", "dropped"): ("degraded", "Its effect is unknown."),
    ("usage.detail", "dropped"): ("harmless", "The totals are right; one component is missing."),
    ("usage.detail", "invented"): ("harmless", "The counts are estimated: the provider reports none."),
    ("usage.detail", "approximated"): ("harmless", "The sums are right; one part is counted with another."),
    ("user", "dropped"): ("harmless", "The answer does not depend on it."),
    ("user", "approximated"): ("harmless", "The answer does not depend on it."),
    ("verbosity", "dropped"): ("degraded", "The answer is as long as the target has it by itself."),
    ("video", "emulated"): ("harmless", "The gateway downloads it and sends it."),
    ("video", "dropped"): ("serious", "The model answers without having seen it."),
    ("video", "approximated"): ("harmless", "It is sent without its name or type."),
    ("video", "invented"): ("harmless", "Only its type was guessed."),
}
"""(feature, action) -> how bad it is for the sender of the request, and why. `docs/reference/losses.md` is
generated from this; every loss declared in the code must be listed (tests/ir/test_grades.py)."""


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
