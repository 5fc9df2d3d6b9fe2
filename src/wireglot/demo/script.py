"""The demo model's answer to a conversation. Pure: the same request and seed give the same script."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from wireglot.demo import words
from wireglot.demo.conversation import (
    CALLS_MAX,
    DemoTurn,
    Directives,
    calls_of,
    message_tokens,
    parse_directives,
    part_text,
    result_text,
    tool_tokens,
    user_texts,
)
from wireglot.demo.fill import Hints, filled
from wireglot.demo.safety_checks import safety_answer
from wireglot.demo.tools import (
    arguments_for,
    callable_tools,
    closing_tools,
    hints_of,
    ordered_tools,
    places_in,
    reading_tools,
    suitable_tools,
    weather_tools,
)
from wireglot_core.dialects.faults import kind_of_status
from wireglot_core.ir.content import (
    Extra,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Stop, Usage
from wireglot_core.ir.request import Request, Tool
from wireglot_core.providers.fit.parts import SKIP_SIGNATURE
from wireglot_core.wire.json import BadJson, decode, encode_text

SIGNERS: Final = {
    "anthropic": "anthropic",
    "openai-responses": "openai-responses",
    "gemini": "gemini",
    "code-assist": "gemini",
    "gemini-interactions": "gemini-interactions",
}
"""Dialects that sign reasoning, and the minter's name. Chat does not."""
_MARK: Final = "wireglot-demo-1"
_DIGEST_BYTES: Final = 12
_DIGEST_LETTERS: Final = 2 * _DIGEST_BYTES


def wants_state(request: Request) -> bool:
    """Whether a Responses client asked for the encrypted reasoning."""
    extra = request.extra
    include: Any = None
    if extra is not None:
        include = extra.fields.get("include", extra.form.get("include"))
    return isinstance(include, list) and "reasoning.encrypted_content" in include


def digest(*material: str) -> str:
    return hashlib.blake2b(
        "\x1f".join(material).encode("utf-8", "replace"), digest_size=_DIGEST_BYTES
    ).hexdigest()


def seal(text: str, salt: str = "") -> str:
    """The signature of a text: `[[demo:strict]]` detects a change of either.

    Base64 of hexadecimal digits in whole groups: clients that decode it and encode it again, in whichever
    alphabet and padding, send back the same. The salt, in whole groups too, distinguishes equal texts of two
    answers; older signatures have none.
    """
    return b64encode(f"{_MARK}{salt}{digest('signature', text, *filter(None, (salt,)))}".encode()).decode()


def salt_of(seed: str) -> str:
    return digest("salt", seed)[:6]


def _is_seal_of(text: str, signature: str) -> bool:
    try:
        inside = b64decode(signature, validate=True).decode()
    except ValueError:
        return False
    return signature == seal(text, inside[len(_MARK) : -_DIGEST_LETTERS])


def signed_text(part: ToolCall | Text) -> str:
    return part.name if isinstance(part, ToolCall) else part.text


def changed_signature(messages: Sequence[Message]) -> ApiError | None:
    for number, message in enumerate(messages):
        for position, part in enumerate(message.content):
            if message.role != "assistant" or not isinstance(part, Reasoning | ToolCall | Text):
                continue
            if part.signature is None or part.signature.data == SKIP_SIGNATURE:
                continue  # Google's documented replacement for a lost signature
            signed = part.text if isinstance(part, Reasoning) else signed_text(part)
            if not _is_seal_of(signed, part.signature.data):
                place = f"messages.{number}.content.{position}"
                return ApiError("invalid_request", f"{place}: Invalid `signature` in `thinking` block", 400)
    return None


Ending = Literal["complete", "fail", "cut", "hang", "silent"]
"""fail, cut, hang: half way, with an error event, without any event, in silence. silent: no answer at all."""

_MARKER: Final = re.compile(r"\[\[marker-file:([^\[\]\s\"\\]+)\]\]")
_NONCE: Final = re.compile(r"NONCE-[0-9a-f]{6,64}")
_EXACTLY: Final = re.compile(r"^Reply with exactly this and nothing else: (.+)\Z", re.DOTALL)
_READ_TRIES = 3

_REFUSAL: Final = "I am sorry, but the demo model was instructed to refuse this."
_BROKEN: Final = ApiError(
    "overloaded", "The demo model was instructed to fail in the middle of its answer.", status=529
)


class Script(msgspec.Struct, frozen=True):
    """An answer, or the error instead of it, and how it is delivered. `gap` in seconds."""

    content: tuple[Part, ...] = ()
    stop: Stop = Stop("end")
    usage: Usage = Usage()
    error: ApiError | None = None
    ending: Ending = "complete"
    gap: float = 0.0

    @property
    def failure(self) -> ApiError:
        """The error of a script that fails half way."""
        return _BROKEN


class _Reading(msgspec.Struct, frozen=True):
    """The files that the conversation last asked for, the number of results since, and their nonce."""

    files: tuple[str, ...] = ()
    results: int = 0
    nonce: str = ""
    thinks: bool = False
    """Whether it was asked to think where the files were named: it does so until all are read."""

    @property
    def next(self) -> str:
        return self.files[min(self.results, len(self.files) - 1)] if self.files else ""


def answer(request: Request, *, seed: str = "", dialect: str = "") -> Script:
    """`dialect`: of the answer; it decides who signs the reasoning and the form of ids."""
    return _Author(request, seed, dialect).script()


def count(request: Request) -> int:
    """Tokens of a request, at about four bytes each."""
    return sum(map(message_tokens, request.messages)) + tool_tokens(request)


class _Author:
    def __init__(self, request: Request, seed: str, dialect: str) -> None:
        self.request = request
        self.dialect = dialect
        self.turn = DemoTurn(request.messages)
        self.directives: Directives = parse_directives(self.turn.text)
        self.seed = f"{seed}\x1f{len(request.messages)}\x1f{self.turn.text}"
        self.asked = "\n".join(user_texts(request.messages))
        self.reading = _reading(request.messages)
        self.marker, self.nonce = self.reading.next, self.reading.nonce

    def script(self) -> Script:
        checked = safety_answer(self.request, self.turn)
        if checked is not None:  # a conversation quoted in it is not addressed to this model
            offered = callable_tools(self.request.tools, self.request.tool_choice)
            said: list[Part] = [self._call(offered[0], 0, checked)] if offered else [Text(checked)]
            content, stop = self._limited(said, Stop("tool_calls" if offered else "end"))
            return Script(content, stop, self._usage(content))
        directives = self.directives
        if directives.fail:
            message = f"The demo model was instructed to fail with status {directives.fail}."
            return Script(
                error=ApiError(
                    kind_of_status(directives.fail),
                    message,
                    directives.fail,
                    retry_after=directives.retry_after,
                )
            )
        if "[[demo:strict]]" in self.asked and (changed := changed_signature(self.request.messages)):
            return Script(error=changed)
        limited, stop = self._limited(*self._content())
        content = self._signed(limited)
        ending: Ending = "complete"
        if directives.hang:
            ending = "silent"
        elif directives.hang_midstream:
            ending = "hang"
        elif directives.cut:
            ending = "cut"
        elif directives.fail_midstream:
            ending = "fail"
        return Script(content, stop, self._usage(content), ending=ending, gap=directives.gap)

    def _content(self) -> tuple[list[Part], Stop]:
        directives = self.directives
        if directives.refuse:
            return [Text(_REFUSAL, refusal=True)], Stop("refused")
        calls = self._calls()
        thought = self._thought()
        if calls:
            saying: list[Part] = [Text(f"Let me use {calls[0].name}.")] if not self._must_call else []
            return [*thought, *saying, *calls], Stop("tool_calls")
        return [*thought, Text(self._text())], Stop("end")

    # Text

    def _text(self) -> str:
        directives, output = self.directives, self.request.output
        if output is not None and output.kind == "schema":
            value = filled(output.schema, self._hints())
            return value if output.bare and type(value) is str else encode_text(value)
        if output is not None and output.kind == "json":
            return encode_text({"answer": words.greeting(self.turn.prompt, self.request.model)})
        if directives.words:
            return words.prose(directives.words)
        if directives.echo:
            return self.turn.prompt
        if (asked := _EXACTLY.search(self.turn.prompt)) and not self.turn.results:
            return asked[1]
        if self.nonce:
            return f"FINAL-OK {self.nonce}"
        if self.turn.results:
            return words.quotation([result_text(result) for result in self.turn.results])
        return words.greeting(self.turn.prompt, self.request.model)

    # Thoughts

    def _thought(self) -> list[Part]:
        if not self._thinks:
            return []
        hidden = self.request.thinking.display == "omitted"
        text = "" if hidden else words.thought(self.turn.prompt, self.reading.results)
        signer = SIGNERS.get(self.dialect)
        if signer is None or signer == "gemini":
            return [Reasoning(text)] if text else []
        # For reading files it is sent without being requested, as OpenAI does by now.
        asked = wants_state(self.request) or self.reading.thinks
        if signer == "openai-responses" and not asked:
            return [Reasoning(text)] if text else []
        if signer != "openai-responses":
            return [Reasoning(text, Signature(seal(text, self._salt), Origin(signer)))]
        identifier = f"rs_{digest(self.seed, 'reasoning')}"
        # In the form too: a stream announces the item, with its id, before the signature.
        form = Extra(signer, form={"id": identifier, "source": "summary"})
        return [Reasoning(text, Signature(seal(text, self._salt), Origin(signer), identifier), extra=form)]

    def _signed(self, content: tuple[Part, ...]) -> tuple[Part, ...]:
        """Gemini signs the first call of a turn with thoughts, else its text."""
        if SIGNERS.get(self.dialect) != "gemini" or not content or not self._thinks:
            return content
        signed = list(content)
        place = next((n for n, part in enumerate(content) if isinstance(part, ToolCall)), len(content) - 1)
        part = content[place]
        if isinstance(part, ToolCall | Text):
            signature = Signature(seal(signed_text(part), self._salt), Origin("gemini"))
            signed[place] = msgspec.structs.replace(part, signature=signature)
        return tuple(signed)

    @property
    def _salt(self) -> str:
        """No two turns that read files have the same signature, though they call the same tool."""
        return salt_of(self.seed) if self.reading.results else ""

    @property
    def _thinks(self) -> bool:
        asked = self.request.thinking
        wants = (
            asked.mode in ("on", "auto") or asked.effort not in (None, "none") or asked.display == "summary"
        )
        return self.directives.think or self.reading.thinks or (wants and asked.mode != "off")

    # Calls

    @property
    def _must_call(self) -> bool:
        choice = self.request.tool_choice
        return choice is not None and choice.mode == "required"

    def _calls(self) -> list[ToolCall]:
        offered = callable_tools(self.request.tools, self.request.tool_choice)
        if not offered:
            return []
        chosen = self._chosen(offered)
        if not chosen:
            return []
        hints = self._hints()
        number = max(1, self.directives.calls) if self.request.parallel_tools is not False else 1
        made = [chosen[n % len(chosen)] for n in range(number)]
        if number == 1 and (places := self._places(made[0])):
            each = [msgspec.structs.replace(hints, place=place) for place in places]
            return [self._call(made[0], n, arguments_for(made[0], hint)) for n, hint in enumerate(each)]
        given = self.directives.arguments if made[0].name == self.directives.tool else ""
        return [self._call(tool, n, given or arguments_for(tool, hints)) for n, tool in enumerate(made)]

    def _places(self, tool: Tool) -> list[str]:
        """Several places that a question about the weather names: one call for each."""
        if self.request.parallel_tools is False or self.directives.tool or self.directives.calls:
            return []
        places = places_in(self.turn.prompt)[:CALLS_MAX]
        return places if len(places) > 1 and weather_tools([tool], self.turn.prompt) else []

    def _hints(self) -> Hints:
        return hints_of(self.turn.prompt, self.marker, f"FINAL-OK {self.nonce}" if self.nonce else "")

    def _chosen(self, offered: list[Tool]) -> list[Tool]:
        """Tools to call now, in order; none if it should answer with text."""
        named = [tool for tool in offered if tool.name == self.directives.tool]
        if named and not self.turn.results:
            return named
        used = {call.name for call in calls_of(self.turn.before)}
        if closing := self._closing(offered, used):
            return closing
        if self.nonce and not self._must_call:
            return []
        if self.marker and (self.turn.results or _MARKER.search(self.turn.text)):
            return self._readers(offered)
        if not self.turn.results:
            return self._suitable(offered)
        if not self._must_call:
            return []
        return [tool for tool in offered if tool.name not in used] or offered

    def _closing(self, offered: list[Tool], used: set[str]) -> list[Tool]:
        """The tool that ends the work, once there is a result to end it with."""
        if not self.turn.results or (self.marker and not self.nonce):
            return []
        return [tool for tool in closing_tools(offered) if tool.name not in used][:1]

    def _suitable(self, offered: list[Tool]) -> list[Tool]:
        """A question is not an order: tools are called only if a directive, the tool choice or an order
        demands it."""
        if self.directives.calls or self._must_call:
            return suitable_tools(offered, self.turn.prompt)
        if not self.turn.said:
            return []
        return weather_tools(offered, self.turn.prompt) or ordered_tools(offered, self.turn.prompt)

    def _readers(self, offered: list[Tool]) -> list[Tool]:
        """Tools to read a file with, the next one first: one that returned no nonce is not called again."""
        ranked = reading_tools(offered)
        if self.reading.results < len(self.reading.files) - 1:
            return ranked
        made = [call.name for call in calls_of(self.turn.before)] if self.turn.results else []
        used = made[: max(0, len(made) - len(self.reading.files) + 1)]  # the newest come first
        if len(used) >= _READ_TRIES and not self._must_call:
            return []
        left = [tool for tool in ranked if tool.name not in used]
        return left or (ranked if self._must_call or not used else [])

    def _call(self, tool: Tool, number: int, arguments: str) -> ToolCall:
        prefix = "toolu_demo" if self.dialect == "anthropic" else "call_demo"
        identifier = prefix + digest(self.seed, "call", str(number))
        if tool.kind == "function" and not _is_object(arguments):
            arguments = arguments_for(tool, hints_of(self.turn.prompt))
        return ToolCall(identifier, tool.name, arguments, tool.kind, tool.namespace)

    # Usage and limits

    def _limited(self, content: list[Part], stop: Stop) -> tuple[tuple[Part, ...], Stop]:
        """Cut at the first stop sequence and at the limit. A call that does not fit is not begun."""
        left = self.request.max_tokens if self.request.max_tokens is not None else 1 << 30
        kept: list[Part] = []
        for part in content:
            said = part_text(part)
            matched = self._stopped(said) if isinstance(part, Text) else None
            if matched is not None:
                said = said[: said.index(matched)]
                stop = Stop("stop_sequence", sequence=matched)
            if words.tokens(said) > left:
                if isinstance(part, ToolCall):
                    return tuple(kept), Stop("length")
                kept.append(msgspec.structs.replace(part, text=words.first_tokens(said, left)))
                return tuple(kept), Stop("length")
            left -= words.tokens(said)
            kept.append(msgspec.structs.replace(part, text=said) if matched is not None else part)
            if matched is not None:
                break
        return tuple(kept), stop

    def _stopped(self, text: str) -> str | None:
        found = [word for word in self.request.stop if word and word in text]
        return min(found, key=text.index) if found else None

    def _usage(self, content: tuple[Part, ...]) -> Usage:
        """Everything before the model's last turn counts as cached."""
        cached = sum(map(message_tokens, self.turn.before))
        thought = [part for part in content if isinstance(part, Reasoning)]
        reasoning = sum(max(1, words.tokens(part.text)) for part in thought)
        output = sum(words.tokens(part_text(part)) for part in content if not isinstance(part, Reasoning))
        return Usage(
            input=max(1, count(self.request) - cached),
            cache_read=cached,
            output=max(1, output),
            reasoning=reasoning if thought or self.dialect != "anthropic" else None,
        )


def _reading(messages: Sequence[Message]) -> _Reading:
    """The prompt itself proves nothing: the nonce must come from a tool."""
    nonce, results = "", 0
    for message in reversed(messages):
        for part in message.content:
            if isinstance(part, ToolResult):
                results += 1
                if not nonce and (shown := _NONCE.search(result_text(part))):
                    nonce = shown[0]
        for text in user_texts((message,)):
            if found := _MARKER.findall(text):
                return _Reading(tuple(found), results, nonce, parse_directives(text).think)
    return _Reading()


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(decode(arguments), dict)
    except BadJson:
        return False
