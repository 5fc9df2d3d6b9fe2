"""What a provider's cache should have had of a turn, and what broke the rest."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from msgspec.structs import replace

from tests.tiers import rows
from wireglot_core.traces.cache_truth import CacheTruth, conversation_cache, exchange_cache
from wireglot_core.traces.trace import Attempt, Row, Tokens, Trace, TraceMessage

MARK = {"type": "ephemeral"}
LONG = "word " * 4000
"""About 4,000 tokens of a request that is reported to have 5,000."""


def anthropic(*said: str, system: str = LONG, tools: tuple[str, ...] = ("read", "write")) -> dict[str, Any]:
    """As Claude Code sends it: marks behind the system text and behind what was said last."""
    messages: list[dict[str, Any]] = [
        {"role": "assistant" if number % 2 else "user", "content": [{"type": "text", "text": text}]}
        for number, text in enumerate(said)
    ]
    messages[-1]["content"][-1]["cache_control"] = MARK
    return {
        "model": "claude-sonnet-4-5",
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in tools],
        "system": [{"type": "text", "text": system, "cache_control": MARK}],
        "messages": messages,
    }


def chat(*said: str, system: str = LONG) -> dict[str, Any]:
    messages = [
        {"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(said)
    ]
    return {"model": "gpt-5.5", "messages": [{"role": "system", "content": system}, *messages]}


class Talk:
    """A conversation with a provider, turn by turn."""

    def __init__(
        self, provider: str = "anthropic", model: str = "claude-sonnet-4-5", dialect: str = "anthropic"
    ) -> None:
        self.provider, self.model, self.dialect = provider, model, dialect
        self.traces: dict[str, Trace] = {}

    def turn(
        self, body: dict[str, Any], cached: int = 0, *, after: float = 20.0, tokens: int = 5000, **row: Any
    ) -> None:
        at = max((trace.row.at for trace in self.traces.values()), default=1000.0) + after
        usage = (
            {"cache_read_input_tokens": cached} if self.dialect == "anthropic" else {"cached_tokens": cached}
        )
        used = row.pop("tokens_of", Tokens(input=tokens, output=9, cached=cached, source="provider"))
        known = {"provider": self.provider, "model": self.model, "session": "s", "first_ms": 400.0, **row}
        made = Row(id=f"x{len(self.traces)}", at=at, state="done", tokens=used, recorded=True, **known)
        request = TraceMessage(body=json.dumps(body), bytes=len(json.dumps(body)))
        attempt = Attempt(
            provider=made.provider,
            model=made.model,
            dialect=self.dialect,
            request=request,
            answer=TraceMessage(status=200, body=json.dumps({"usage": usage})),
        )
        self.traces[made.id] = Trace(row=made, request=request, answer=TraceMessage(), attempts=[attempt])

    def truths(self) -> list[CacheTruth]:
        return conversation_cache([trace.row for trace in self.traces.values()], self.traces.get)

    def last(self) -> CacheTruth:
        truth = self.truths()[-1]
        *_, row = (trace.row for trace in self.traces.values())
        every = [trace.row for trace in self.traces.values()]
        assert exchange_cache(row, every, self.traces.get) == truth, "one turn is told as in its conversation"
        return truth


def test_a_conversation_that_only_grows_should_hit_all_of_the_turn_before():
    talk = Talk()
    talk.turn(anthropic("a"))
    talk.turn(anthropic("a", "b", "c"), cached=5000, tokens=5200)
    first, second = talk.truths()
    assert (first.verdict, first.expected) == ("first", None)
    assert (second.verdict, second.expected, second.cached, second.broken) == ("hit", 5000, 5000, None)
    assert (second.previous, second.same, second.blocks) == ("x0", 4, 4)


def test_a_text_and_a_list_of_that_text_are_the_same():
    talk = Talk()
    talk.turn(anthropic("a"))
    body = anthropic("a", "b", "c")
    body["messages"][0]["content"] = "a"
    talk.turn(body, cached=5000)
    assert talk.last().verdict == "hit"


def changed_system(body: dict[str, Any]) -> None:
    body["system"][0]["text"] = LONG[:-10] + "different"


def dated(body: dict[str, Any]) -> None:
    body["system"][0]["text"] = "Today is 2026-11-18. " + LONG


def other_order(body: dict[str, Any]) -> None:
    body["tools"].reverse()


def one_tool_more(body: dict[str, Any]) -> None:
    body["tools"].insert(1, {"name": "search", "input_schema": {}})


def changed_tool(body: dict[str, Any]) -> None:
    body["tools"][1]["input_schema"]["type"] = "string"


def fields_in_another_order(body: dict[str, Any]) -> None:
    body["tools"][0] = dict(reversed(body["tools"][0].items()))


def rewritten(body: dict[str, Any]) -> None:
    body["messages"][0]["content"][0]["text"] = "rewritten"


def thinking(body: dict[str, Any]) -> None:
    body["thinking"] = {"type": "adaptive"}


BROKEN = {
    "the system text": (changed_system, "/system/0/text", "the system text changed", 0),
    "a date": (dated, "/system/0/text", "a date or time in the system text changed", 0),
    "the order of tools": (other_order, "/tools/0", "the tools are in another order", 0),
    "one tool more": (one_tool_more, "/tools/1", "tools changed: added search", 0),
    "a tool": (changed_tool, "/tools/1/input_schema/type", "the tool write changed", 0),
    "fields of a tool": (
        fields_in_another_order,
        "/tools/0",
        "the tool read has its fields in another order",
        0,
    ),
    # What is behind the mark of the system text is lost, and what is before it stays.
    "a message": (rewritten, "/messages/0/content/0/text", "an earlier message changed", 4994),
    "thinking": (thinking, "/thinking", "thinking was added", 4994),
}


@rows("case", BROKEN)
def test_the_first_place_that_differs_is_what_broke_it(case):
    change, place, reason, expected = BROKEN[case]
    talk = Talk()
    first = anthropic("a")
    if case == "a date":
        first["system"][0]["text"] = "Today is 2026-11-17. " + LONG
    talk.turn(first)
    body = anthropic("a", "b", "c")
    change(body)
    talk.turn(body, cached=expected)
    truth = talk.last()
    assert truth.broken is not None
    assert truth.broken.pointer == place
    assert truth.broken.reason == reason
    assert truth.expected is not None
    assert abs(truth.expected - expected) <= 20
    assert truth.verdict == ("hit" if expected else "none")


def test_both_values_are_shown_near_where_they_part():
    talk = Talk()
    talk.turn(anthropic("a", system=f"{LONG}It is 10:15 now. {LONG}"))
    talk.turn(anthropic("a", system=f"{LONG}It is 10:16 now. {LONG}"))
    broken = talk.last().broken
    assert broken is not None
    assert "It is 10:15 now" in broken.before
    assert "It is 10:16 now" in broken.after
    assert len(broken.before) < 100
    assert broken.before.startswith("…")
    assert broken.before.endswith("…")


def test_without_marks_an_anthropic_request_reads_nothing_from_the_cache():
    talk = Talk()
    talk.turn(anthropic("a"))
    bare = anthropic("a", "b", "c")
    del bare["system"][0]["cache_control"], bare["messages"][-1]["content"][-1]["cache_control"]
    talk.turn(bare)
    truth = talk.last()
    assert (truth.verdict, truth.expected) == ("none", 0)
    assert truth.broken is not None
    assert truth.broken.reason.startswith("cache_control is gone")
    assert truth.broken.pointer == "/messages/0/content/0/cache_control"
    talk.turn(anthropic("a", "b", "c", "d", "e"), cached=0)
    # The turn before wrote nothing, but the one before that did, and has a mark that is found.
    assert talk.last().previous in ("x0", "x1")


def test_a_mark_at_the_top_is_one_behind_the_last_block():
    talk = Talk()
    for said in (("a",), ("a", "b", "c")):
        body = anthropic(*said)
        del body["system"][0]["cache_control"], body["messages"][-1]["content"][-1]["cache_control"]
        talk.turn({**body, "cache_control": MARK}, cached=5000)
    assert talk.last().expected == 5000


def test_an_entry_whose_time_has_passed_is_gone():
    talk = Talk()
    talk.turn(anthropic("a"))
    talk.turn(anthropic("a", "b", "c"), after=600)
    truth = talk.last()
    assert (truth.verdict, truth.expected) == ("none", 0)
    assert truth.broken is not None
    assert truth.broken.reason == "its time passed: kept for 5 min, used again after 10 min"
    talk = Talk()
    hour = anthropic("a")
    hour["system"][0]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    talk.turn(hour)
    talk.turn(anthropic("a", "b", "c"), after=600, cached=4990)
    assert talk.last().verdict == "hit"


def test_a_mark_too_far_behind_the_last_entry_does_not_find_it():
    talk = Talk()
    first = anthropic("a")
    del first["system"][0]["cache_control"]
    talk.turn(first)
    body = anthropic("a", *(str(number) for number in range(30)))
    del body["system"][0]["cache_control"]
    talk.turn(body)
    truth = talk.last()
    assert (truth.expected, truth.broken) == (0, None)
    assert "20 blocks" in truth.note


def test_less_than_the_model_caches_is_not_expected():
    talk = Talk()
    talk.turn(anthropic("a", system="short"), tokens=300)
    talk.turn(anthropic("a", "b", "c", system="short"), tokens=320)
    truth = talk.last()
    assert (truth.verdict, truth.expected) == ("none", 0)
    assert "1,024" in truth.note


def test_another_model_or_provider_has_a_cache_of_its_own():
    talk = Talk()
    talk.turn(anthropic("a"))
    talk.turn(anthropic("a", "b", "c"), model="claude-opus-4-8")
    truth = talk.last()
    assert (truth.verdict, truth.expected) == ("none", 0)
    assert truth.broken is not None
    assert truth.broken.reason.startswith("another model")
    assert (truth.broken.before, truth.broken.after) == (
        "anthropic/claude-sonnet-4-5",
        "anthropic/claude-opus-4-8",
    )
    talk.turn(anthropic("a", "b", "c", "d", "e"), cached=5000)  # back again, to what is still kept
    assert (talk.last().verdict, talk.last().previous) == ("hit", "x0")


def test_agents_and_side_requests_are_conversations_of_their_own():
    talk = Talk()
    talk.turn(anthropic("a"), purpose="main")
    talk.turn(anthropic("title?", system="Give it a title"), purpose="background")
    talk.turn(anthropic("look", system="You are a sub-agent"), purpose="subagent", agent_id="1")
    talk.turn(anthropic("a", "b", "c"), cached=5000, purpose="main")
    assert [truth.verdict for truth in talk.truths()] == ["first", "first", "first", "hit"]


def test_a_cache_of_its_own_accord_counts_from_the_beginning_in_steps():
    talk = Talk("openai", "gpt-5.5", "openai-chat")
    talk.turn(chat("a"))
    talk.turn(chat("a", "b", "c"), cached=4992)
    assert (talk.last().verdict, talk.last().expected) == ("hit", 4992)
    talk.turn(chat("a", "b", "c", system=LONG[: len(LONG) // 2] + "x" + LONG), cached=1280)
    truth = talk.last()
    assert truth.verdict == "partly"
    assert truth.expected is not None
    assert truth.expected % 128 == 0
    assert 2300 < truth.expected < 2600


def test_a_miss_that_nothing_explains_says_so():
    talk = Talk("openai", "gpt-5.5", "openai-chat")
    talk.turn(chat("a"))
    talk.turn(chat("a", "b", "c"), cached=0)
    assert (talk.last().verdict, talk.last().note.startswith("nothing in the requests explains it")) == (
        "missed",
        True,
    )
    talk.turn(chat("a", "b", "c", "d", "e"), cached=0, after=900)
    assert talk.last().note.startswith("15 min passed")
    talk.turn(chat("a", "b", "c", "d", "e", "f", "g"), cached=0, after=0.1)
    assert "had not begun to answer" in talk.last().note


def test_what_cannot_be_known_is_unknown():
    talk = Talk()
    talk.turn(anthropic("a"))
    talk.turn(anthropic("a", "b", "c"), tokens_of=None)
    assert (talk.last().verdict, talk.last().note, talk.last().expected) == (
        "unknown",
        "no usage is known",
        5000,
    )
    silent = Talk("kimi", "kimi-k3", "openai-chat")
    silent.turn(chat("a"))
    silent.turn(chat("a", "b", "c"))
    trace = silent.traces["x1"]
    attempt = trace.attempts[0]
    bare = replace(attempt, answer=TraceMessage(status=200, body='{"usage": {"prompt_tokens": 5000}}'))
    silent.traces["x1"] = replace(trace, attempts=[bare])
    assert (silent.last().cached, silent.last().verdict) == (None, "unknown")
    assert "reports no tokens" in silent.last().note
    cut = Talk()
    cut.turn(anthropic("a"))
    cut.turn(anthropic("a", "b", "c"))
    whole = cut.traces["x0"]
    short = replace(whole.attempts[0], request=TraceMessage(body='{"mod', truncated=True, bytes=9))
    cut.traces["x0"] = replace(whole, attempts=[short])
    first, second = cut.truths()
    assert (first.verdict, second.verdict) == ("unknown", "unknown")
    assert "of the turn before" in second.note
    assert "only the beginning" in second.note
    assert (
        exchange_cache(Row(id="y", at=1.0), [], lambda _: None).note
        == "its bodies were not recorded, or are not on this machine"
    )


ODD: dict[str, Any] = {
    "numbers": {"messages": 7, "tools": 3, "system": 1},
    "nothing": {},
    "texts": {"messages": ["a", None, 3], "input": "words", "tools": ["x"]},
    "wrong contents": {"contents": [{"parts": "x"}, {"parts": [1, None]}], "systemInstruction": {"parts": 7}},
    "a mark that is none": {
        "messages": [{"role": "user", "content": [{"cache_control": "x", "type": "text"}]}]
    },
    "a time that is none": {"cache_control": {"ttl": 7}, "messages": [{"role": "user", "content": "a"}]},
}


@rows("case", ODD)
def test_odd_bodies_are_compared_all_the_same(case):
    talk = Talk()
    talk.turn(ODD[case])
    talk.turn(deepcopy(ODD[case]))
    talk.turn(anthropic("a"))
    assert [truth.id for truth in talk.truths()] == ["x0", "x1", "x2"]


def test_gemini_and_responses_are_read_in_their_own_forms():
    gemini = Talk("gemini", "gemini-3-pro", "gemini")
    said = [{"role": "user", "parts": [{"text": "a"}]}]
    body = {"systemInstruction": {"parts": [{"text": LONG}]}, "contents": said}
    gemini.turn(body)
    gemini.turn({**body, "contents": [*said, {"role": "model", "parts": [{"text": "b"}]}]}, cached=4000)
    assert (gemini.last().verdict, gemini.last().expected, gemini.last().same) == ("partly", 5000, 2)
    responses = Talk("openai", "gpt-5.5", "openai-responses")
    items = [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}]
    responses.turn({"instructions": LONG, "input": items})
    call = {"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}
    responses.turn({"instructions": LONG, "input": [*items, call]}, cached=4992)
    assert (responses.last().verdict, responses.last().blocks) == ("hit", 2)
