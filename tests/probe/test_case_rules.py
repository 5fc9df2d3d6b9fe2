"""What single cases make of answers: each is given replies, and judges them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot.probe.cases import answers, errors, reasoning, streams, tools
from wireglot.probe.cases.prompts import WORDS
from wireglot.probe.endpoint import Got
from wireglot.probe.question import ProbeCall, ProbeQuestion
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, ProbeReply, ProbeUsage, Thought
from wireglot.probe.run import WIRES
from wireglot.probe.talk import Refused
from wireglot_core.wire.json import decode


class Scripted:
    """A talk whose replies come in their order, whatever is asked."""

    def __init__(self, *replies: Any, kind: str = "", wire: str = "anthropic") -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, ProbeQuestion]] = []
        self.exchanges = [type("Exchange", (), {"kind": kind})()]
        self.wire = WIRES[wire]

    def _next(self, how: str, question: ProbeQuestion) -> Any:
        self.asked.append((how, question))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def ask(self, question: ProbeQuestion) -> Any:
        return self._next("ask", question)

    def stream(self, question: ProbeQuestion) -> Any:
        return self._next("stream", question)

    def think(self, question: ProbeQuestion) -> Any:
        return self._next("think", question)

    def optional(self, question: ProbeQuestion, what: str, value: str = "") -> Any:
        return self._next(f"{what}:{value}", question)

    def send(self, question: ProbeQuestion) -> Any:
        return self._next("send", question)

    def refusal(self, got: Got) -> Refused:
        return Refused(got.status, "k", "m")


def used(given: int = 10, made: int = 5, **more: Any) -> ProbeUsage:
    return ProbeUsage(given, made, **more)


def reply(text: str = "hello", **fields: Any) -> ProbeReply:
    return ProbeReply(**{"texts": [text], "usage": used(), "id": "i", "model": "m", "stop": "end", **fields})


def call(name: str = "get_weather", arguments: str = '{"city": "Paris"}', id: str = "c_1") -> ProbeCall:
    return ProbeCall(id, name, arguments)


def calling(*calls: ProbeCall, **fields: Any) -> ProbeReply:
    return reply("", calls=list(calls or (call(),)), stop="tool", **fields)


def thinking(text: str = "hello", **fields: Any) -> ProbeReply:
    return reply(text, **{"thoughts": [Thought("t")], "states": ["s"], **fields})


def counts(given: int = 10, made: int = 5, text: str = "hello", **more: Any) -> ProbeReply:
    return reply(text, usage=used(given, made, **more))


LONG = "x" * 100
RULES: list[tuple[Any, list[Any], type[Exception] | None, str]] = [
    (answers.shape, [reply()], None, ""),
    (answers.shape, [reply(" ")], Broken, "the answer has no text"),
    (answers.shape, [reply(id="")], Broken, "the answer has no id"),
    (answers.shape, [reply(model="")], Broken, "the answer names no model"),
    (answers.shape, [reply(faults=[("repeated", "r")])], Broken, "r"),
    (answers.content_type, [Got(200, {"content-type": "Application/JSON; x"}, b""), reply()], None, ""),
    (answers.content_type, [Got(200, {"content-type": "text/x"}, b"")], Broken, "found text/x"),
    (answers.content_type, [Got(200, {}, b"")], Broken, "found none"),
    (answers.content_type, [Got(500, {}, b""), reply()], None, ""),
    (answers.ids_differ, [reply(id="a"), reply(id="b")], None, ""),
    (answers.ids_differ, [reply(id="a"), reply(id="a")], Broken, "both answers have the id 'a'"),
    (answers.ids_differ, [reply(id=""), reply(id="a")], NotApplicable, "no id"),
    (answers.ids_differ, [reply(id="a"), reply(id="")], NotApplicable, "no id"),
    (answers.obeys, [reply(f"{WORDS}!")], None, ""),
    (answers.obeys, [reply(WORDS.replace(" ", "\n"))], None, ""),
    (answers.obeys, [reply("no")], Inconclusive, "the model said 'no'"),
    (answers.obeys, [reply(f"{WORDS} {WORDS}")], Broken, "the words came 2 times"),
    (answers.end, [reply()], None, ""),
    (answers.end, [reply(stop="length")], Inconclusive, "the model did not finish"),
    (answers.end, [reply(stop="other", stop_word="w")], Broken, "the stop reason is 'w'"),
    (answers.request_id, [Got(200, {"x-request-id": "1"}, b"")], None, ""),
    (answers.request_id, [Got(200, {"x-amzn-requestid": "1"}, b"")], None, ""),
    (answers.request_id, [Got(200, {"b": "1", "a": "1"}, b"")], Broken, "no such header among a, b"),
    (answers.positive, [counts(1, 1)], None, ""),
    (answers.positive, [counts(0, 1)], Broken, "input 0, output 1"),
    (answers.positive, [counts(1, 0)], Broken, "input 1, output 0"),
    (answers.positive, [reply(usage=None)], Broken, "no usage was reported"),
    (answers.total, [counts(3, 4, total=7), counts(3, 4, total=7)], None, ""),
    (answers.total, [counts(3, 4, total=7), counts(3, 4, total=8)], Broken, "but total 8"),
    (answers.stream_equals_whole, [counts(3, 4), counts(3, 4)], None, ""),
    (answers.stream_equals_whole, [counts(3, 4), counts(2, 4)], Broken, "input tokens: 3 whole, 2 streamed"),
    (answers.stream_equals_whole, [counts(3, 4), counts(3, 5)], Broken, "4 whole, 5 streamed"),
    (answers.stream_equals_whole, [counts(3, 4, "a"), counts(3, 5, "b")], None, ""),
    (answers.stream_equals_whole, [counts(3, 4, reasoning=1), counts(3, 5)], None, ""),
    (answers.stream_equals_whole, [counts(3, 4), counts(3, 5, reasoning=1)], None, ""),
    (answers.grows, [counts(10), counts(60)], None, ""),
    (answers.grows, [counts(10), counts(59)], Broken, "10 tokens alone, 59 with"),
    (answers.output_follows, [counts(1, 16, "ab"), counts(1, 17, "abcdef")], None, ""),
    (answers.output_follows, [counts(1, 17, "ab"), counts(1, 18, "abcdef")], Broken, "17 output tokens of at most 16"),
    (answers.output_follows, [counts(1, 16, "ab"), counts(1, 16, "abcdef")], Broken, "16 tokens, and 16 for"),
    (answers.output_follows, [counts(1, 16, "ab"), counts(1, 17, "abcde")], Inconclusive, "only 5 characters"),
    (answers.output_follows, [counts(1, 16, ""), counts(1, 17, "ab")], Inconclusive, "only 2 characters"),
    (answers.tools, [counts(10), counts(11)], None, ""),
    (answers.tools, [counts(10), counts(10)], Broken, "10 without, 10 with"),
    (answers.reasoning, [counts(3, 4, reasoning=4, total=7)], None, ""),
    (answers.reasoning, [counts(3, 4, reasoning=4)], None, ""),
    (answers.reasoning, [counts(3, 4)], NotApplicable, "reports no reasoning tokens"),
    (answers.reasoning, [counts(3, 4, reasoning=5)], Broken, "5 of reasoning in 4 of output"),
    (answers.reasoning, [counts(3, 4, reasoning=1, total=8)], Broken, "but total 8"),
    (answers.parts, [counts(10), counts(25)], None, ""),
    (answers.parts, [counts(10), counts(24)], Broken, "10 input tokens without, 24 with it"),
    (answers.system, [counts(10), counts(18)], None, ""),
    (answers.system, [counts(10), counts(17)], Broken, "it did not reach the model"),
    (answers.system_parts, [counts(10), counts(26)], None, ""),
    (answers.system_parts, [counts(10), counts(25)], Broken, "it did not reach the model"),
    (answers.developer, [counts(10), counts(18)], None, ""),
    (answers.developer, [counts(10), counts(17)], Broken, "it did not reach the model"),
    (answers.history, [counts(10), counts(50)], None, ""),
    (answers.history, [counts(10), counts(49)], Broken, "it did not reach the model"),
    (answers.two_users, [counts(10), counts(25)], None, ""),
    (answers.two_users, [counts(10), counts(24)], Broken, "it did not reach the model"),
    (answers.system_stream, [counts(10), counts(10)], None, ""),
    (answers.system_stream, [counts(10), counts(11)], Broken, "10 input tokens whole, 11 streamed"),
    (answers.plain, [reply(f"a {WORDS}")], None, ""),
    (answers.plain, [reply("no")], Broken, "the answer is 'no', expected"),
    (answers.letters, [reply(answers._LETTERS), reply(answers._LETTERS)], None, ""),
    (answers.letters, [reply(answers._LETTERS), reply("Gr\ufffd")], Broken, "characters were corrupted"),
    *((answers.letters, [reply(text)] * 2, Broken, "characters were corrupted") for text in ("\\u00fc", "Ã¼", "&lt;d")),
    (answers.letters, [reply("Gr")] * 2, Broken, "characters are missing"),
    (answers.letters, [reply("Gr naïve")] * 2, Inconclusive, "the model said"),
    (answers.letters, [reply("Gr 東京")] * 2, Inconclusive, "the model said"),
    (answers.letters, [reply("no")] * 2, Inconclusive, "the model said 'no'"),
    (answers.length, [reply("x" * 400, stop="length")], None, ""),
    (answers.length, [reply("x" * 401, stop="length")], Broken, "401 characters were returned"),
    (answers.length, [reply(stop="end", stop_word="w")], Broken, "the stop reason is 'w'"),
    (answers.length_stream, [reply(stop="length", faults=[("order", "o")])], Broken, "o"),
    (answers.length_stream, [reply(stop="length")], None, ""),
    (answers.several_sequences, [reply("red")], None, ""),
    (answers.several_sequences, [reply("red yellow")], Broken, "the third of four"),
    (answers.which_sequence, [reply("red", stop_word="stop_sequence", sequence="yellow")] * 2, None, ""),
    (answers.which_sequence, [reply("blue")] * 2, Inconclusive, "the model said 'blue'"),
    (answers.which_sequence, [reply("red", stop_word="end_turn")] * 2, NotApplicable, "does not report"),
    (answers.which_sequence, [reply("red yellow", stop_word="end_turn")] * 2, Broken, "stop_reason 'end_turn'"),
    (answers.which_sequence, [reply("red", stop_word="stop_sequence")] * 2, Broken, "stop_sequence None"),
    (answers.which_sequence, [reply("red", stop_word="end_turn", sequence="yellow")] * 2, Broken, "'end_turn' with"),
    # reasoning
    (reasoning.whole, [thinking()], None, ""),
    (reasoning.whole, [thinking(thoughts=[])], None, ""),
    (reasoning.whole, [thinking(states=[])], None, ""),
    (reasoning.whole, [reply()], NotApplicable, "no thoughts are returned"),
    (reasoning.whole, [thinking(" ")], Broken, "thoughts without an answer"),
    (reasoning.whole, [thinking("<think>x")], Broken, "the text contains <think>"),
    (reasoning.stream, [thinking()], None, ""),
    (reasoning.stream, [thinking(" ")], Broken, "thoughts without an answer"),
    (reasoning.stream, [reply()], NotApplicable, "no thoughts are returned"),
    (reasoning.stream, [thinking(faults=[("thoughts", "f")])], Broken, "f"),
    (reasoning.state, [thinking(calls=[call()])] * 2, None, ""),
    (reasoning.state, [thinking(calls=[call()], states=[])], Broken, "whole: thoughts without"),
    (reasoning.state, [thinking(calls=[call()]), thinking(calls=[call()], states=[])], Broken, "streamed: thoughts"),
    (reasoning.state, [thinking()], Inconclusive, "did not call the tool"),
    (reasoning.returned, [thinking(calls=[call()]), reply()], None, ""),
    (reasoning.changed, [thinking(calls=[call()]), Got(200, {}, b"")], None, ""),
    (reasoning.changed, [thinking(calls=[call()]), Got(400, {}, b"")], None, ""),
    (reasoning.changed, [thinking(calls=[call()]), Got(499, {}, b"")], None, ""),
    (reasoning.changed, [thinking(calls=[call()]), Got(500, {}, b"")], Broken, "status 500"),
    (reasoning.changed, [thinking(calls=[call()], states=[])], NotApplicable, "no state to change"),
    (reasoning.absent, [thinking(), reply()], None, ""),
    # streams
    (streams.text, [reply(WORDS), reply(f" {WORDS}\n")], None, ""),
    (streams.text, [reply(WORDS.split()[0]), reply(WORDS)], Broken, "the deltas join to"),
    (streams.text, [reply("other"), reply(WORDS)], Inconclusive, "the model said 'other'"),
    (streams.text, [reply("same"), reply("same")], Inconclusive, "the model said 'same'"),
    (streams.text, [reply(WORDS, faults=[("order", "o")]), reply(WORDS)], Broken, "o"),
    (streams.pieces, [reply(LONG, pieces=2)], None, ""),
    (streams.pieces, [reply(LONG, pieces=1)], Broken, "100 characters arrived in 1 piece"),
    (streams.pieces, [reply(LONG[1:], pieces=1)], Inconclusive, "the model said only"),
    (streams.call, [calling()], None, ""),
    (streams.call, [calling(call(arguments="{}"))], Broken, "the arguments have no city"),
    (streams.call, [calling(faults=[("calls", "f")])], Broken, "f"),
    (streams.call_grammar, [calling()], None, ""),
    (streams.call_grammar, [reply("", calls=[call()], stop="end", stop_word="w")],
     Broken, "the stop reason is 'w'"),
    (streams.usage, [reply()], None, ""),
    (streams.usage, [reply(usage=None)], Broken, "no usage was reported"),
    (streams.usage, [reply(faults=[("usage", "f")])], Broken, "f"),
    (streams.usage_unasked, [reply(faults=[("usage", "f")])], Broken, "f"),
    # tools
    (tools.call, [calling()], None, ""),
    (tools.call, [calling(call("other"))], Broken, "called 'other', which was not offered"),
    (tools.call, [calling(call(arguments="{}"))], Broken, "the arguments have no city"),
    (tools.call, [reply("", calls=[call()], stop_word="w")], Broken, "the stop reason is 'w'"),
    *((tools.call_id, [calling(call(id=name))], None, "") for name in ("a_b-c.d:1", "x" * 64)),
    *((tools.call_id, [calling(call(id=name))], Broken, "the id is") for name in ("", "_", "a b", "ä", "x" * 65)),
    (tools.required, [calling()], None, ""),
    (tools.required, [reply("no")], Broken, "no call, but 'no'"),
    (tools.named, [calling(call("get_time"))], None, ""),
    (tools.named, [reply()], Broken, "expected a call of get_time, found none"),
    (tools.named, [calling(call("get_time"), call())], Broken, "expected a call of get_time"),
    (tools.none, [reply()], None, ""),
    (tools.none, [calling()], Broken, "it called get_weather"),
    (tools.parallel_off, [calling()], None, ""),
    (tools.parallel_off, [calling(call(), call())], Broken, "it made 2 calls"),
    (tools.no_arguments, [calling(), calling(call("get_time", ""))], None, ""),
    (tools.no_arguments, [calling(), calling(call("get_time", "[]"))], Broken, "the arguments are not an object"),
    (tools.no_arguments, [calling(), calling()], Broken, "the model called 'get_weather'"),
    (tools.no_arguments, [NotApplicable("x"), reply()], Inconclusive, "did not call the tool"),
    (tools.no_arguments, [calling(), reply(faults=[("usage", "u")])], Broken, "u"),
    (tools.strict, [calling()], None, ""),
    (tools.strict, [calling(call(arguments='{"city": 1, "x": 2}'))], Broken, "do not match the schema"),
    (tools.strict, [reply()], Inconclusive, "did not call the tool"),
    (tools.result, [calling(), reply("It has 17.3 degrees")], None, ""),
    (tools.result, [calling(), reply("rain")], Inconclusive, "does not mention"),
    (tools.orphan, [Got(200, {}, b"")], None, ""),
    (tools.orphan, [Got(400, {}, b"")], None, ""),
    (tools.orphan, [Got(500, {}, b"")], Broken, "status 500"),
]  # fmt: skip


@rows(("check", "replies", "kind", "words"), RULES)
def test_a_case_judges_what_it_is_given(
    check: Any, replies: list[Any], kind: type[Exception] | None, words: str
) -> None:
    talk: Any = Scripted(*replies)
    if kind is None:
        check(talk)
    else:
        with pytest.raises(kind) as caught:
            check(talk)
        assert words in str(caught.value)
        assert type(caught.value) is kind
    assert talk.replies == [], "all that was to be asked was asked"


def test_a_stream_must_say_what_it_is() -> None:
    for kind, words in (("Text/Event-Stream; x", ""), ("a/b", "found a/b"), ("", "found none")):
        talk: Any = Scripted(reply(), kind=kind)
        if words:
            with pytest.raises(Broken, match=words):
                streams.content_type(talk)
        else:
            streams.content_type(talk)


def test_several_results_are_given_in_another_order_where_ids_pair_them() -> None:
    for wire, first in (("anthropic", "24.8"), ("gemini", "17.3")):
        calls = calling(call(id="a"), call(arguments='{"city": "Rome"}', id="b"))
        talk: Any = Scripted(calls, reply("17.3 and 24.8"), wire=wire)
        tools.several(talk)
        results = talk.asked[1][1].turns[-1].results
        assert results[0].text.startswith(first)
    one: Any = Scripted(calling(call(id="a"), call(id="b")), reply("17.3"))
    with pytest.raises(Broken, match="mentions one result but not"):
        tools.several(one)


def test_a_state_is_forged_wherever_it_is() -> None:
    forged = "Zm9yZ2VkIHN0YXRlIG9mIHRoZSBwcm9iZQ=="
    assert reasoning._forged(
        [{"signature": "a", "x": [{"encrypted_content": "b"}], "thoughtSignature": "", "text": "t"}, 5]
    ) == [{"signature": forged, "x": [{"encrypted_content": forged}], "thoughtSignature": "", "text": "t"}, 5]
    assert reasoning._forged({"thoughtSignature": "c"}) == {"thoughtSignature": forged}


@rows(("check", "counted", "used", "words"), [
    (errors.count, [1], 0, ""),
    (errors.count, [0], 0, "0 tokens"),
    (errors.count_grows, [3, 4], 0, ""),
    (errors.count_grows, [3, 3], 0, "3 for a short prompt, 3 for a long one"),
    (errors.count_agrees, [42], 100, ""),
    (errors.count_agrees, [41], 100, "counted 41, used 100"),
    (errors.count_agrees, [158], 100, ""),
    (errors.count_agrees, [159], 100, "counted 159, used 100"),
])  # fmt: skip
def test_counts_grow_and_agree_with_what_was_used(
    check: Any, counted: list[int], used: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(counted)
    monkeypatch.setattr(errors, "_count", lambda *_: left.pop(0))
    talk: Any = Scripted(counts(used))
    if words:
        with pytest.raises(Broken, match=words):
            check(talk)
    else:
        check(talk)
    assert left == []


class Posting(Scripted):
    """The same over bytes: every request is answered with the next status and document."""

    model = "models/mine"

    def __init__(self, *answers: tuple[int, str], wire: str = "openai-chat") -> None:
        super().__init__()
        self.wire = WIRES[wire]
        self.answers = list(answers)
        self.posted: list[tuple[str, bytes, str | None]] = []
        self.learned: list[tuple[str, str, bool]] = []

    def path(self, operation: str, model: str | None = None) -> str:
        return f"/{operation}/{model or ''}"

    def post(self, body: bytes, path: str, *, key: str | None = None, method: str = "POST") -> Got:
        self.posted.append((path, body, key))
        status, answer = self.answers.pop(0)
        self.exchanges = [type("Exchange", (), {"answer": answer, "kind": ""})()]
        return Got(status, {}, answer.encode())

    def get(self, path: str) -> Got:
        return self.post(b"", path)

    def document(self, got: Got) -> Any:
        return decode(got.body)

    def refusal(self, got: Got) -> Refused:
        return Refused(got.status, "k", got.body.decode())

    def refuses(self, got: Got, *statuses: int) -> Refused:
        if got.status not in statuses:
            raise Broken(f"expected {statuses}, found {got.status}")
        return self.refusal(got)

    def learn(self, what: str, value: str, taken: bool, how: str) -> None:
        self.learned.append((what, value, taken))


REFUSALS: list[tuple[Any, str, list[tuple[int, str]], type[Exception] | None]] = [
    (errors.missing_key, "openai-chat", [(401, "")], None),
    (errors.missing_key, "openai-chat", [(403, "")], None),
    (errors.missing_key, "openai-chat", [(400, "")], Broken),
    (errors.missing_key, "gemini", [(400, "")], None),
    (errors.missing_key, "openai-chat", [(200, "{}")], NotApplicable),
    (errors.wrong_key, "openai-chat", [(401, "no")], None),
    (errors.wrong_key, "openai-chat", [(401, "sk-wireglot-probe-0000000000000000")], Broken),
    *((errors.unknown_model, "openai-chat", [(status, "no-such-model-of-the-probe")], None) for status in (400, 403, 404)),
    (errors.unknown_model, "openai-chat", [(404, "no")], Broken),
    (errors.unknown_model, "openai-chat", [(500, "no-such-model-of-the-probe")], Broken),
    (errors.unknown_model, "openai-chat", [(200, "{}")], NotApplicable),
    *((errors.bad_json, "openai-chat", [(status, "")], None) for status in (400, 422)),
    (errors.bad_json, "openai-chat", [(200, "")], Broken),
    (errors.missing_field, "openai-chat", [(400, "messages")], None),
    (errors.missing_field, "openai-chat", [(422, "something")], Broken),
    (errors.wrong_type, "openai-chat", [(400, "")], None),
    (errors.wrong_type, "openai-chat", [(200, "")], Broken),
    (errors.wrong_limit, "openai-chat", [(422, "")], None),
    (errors.huge_limit, "openai-chat", [(400, "")], None),
    (errors.huge_limit, "openai-chat", [(500, "")], Broken),
    (errors.unknown_path, "openai-chat", [(404, "")], None),
    (errors.unknown_path, "openai-chat", [(405, "")], None),
    (errors.unknown_path, "openai-chat", [(400, "")], Broken),
    *((errors.too_large, "openai-chat", [(status, "")], None) for status in (200, 400, 413)),
    (errors.too_large, "openai-chat", [(500, "")], Broken),
    (errors.models, "openai-chat", [(200, '{"object": "list", "data": []}')], Broken),
    (errors.models, "openai-chat", [(500, "")], Broken),
    *((errors.models, "openai-chat", [(status, "")], NotApplicable) for status in (404, 405, 501)),
]  # fmt: skip


@rows(("check", "wire", "answers_", "kind"), REFUSALS)
def test_a_refusal_has_its_status_and_names_what_is_wrong(
    check: Any,
    wire: str,
    answers_: list[tuple[int, str]],
    kind: type[Exception] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(errors, "_MUCH", 7000)  # 36 MiB take a moment
    talk: Any = Posting(*answers_, wire=wire)
    if kind is None:
        check(talk)
    else:
        with pytest.raises(kind):
            check(talk)
    assert talk.answers == []


def test_what_is_sent_to_be_refused_is_wrong_in_one_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(check: Any, status: int = 400, text: str = "messages no-such-model-of-the-probe") -> Any:
        talk: Any = Posting((status, text))
        check(talk)
        return talk.posted[0]

    assert sent(errors.missing_key, 401)[2] == ""
    assert sent(errors.wrong_key, 401)[2] == "sk-wireglot-probe-0000000000000000"
    path, body, _ = sent(errors.unknown_model)
    assert path == "/generate/no-such-model-of-the-probe"
    assert decode(body)["model"] == "no-such-model-of-the-probe"
    assert sent(errors.bad_json)[1] == b'{"model": '
    assert "messages" not in decode(sent(errors.missing_field)[1])
    assert decode(sent(errors.wrong_type)[1])["messages"] == 17
    assert "many" in decode(sent(errors.wrong_limit)[1]).values()
    assert 1_000_000_000 in decode(sent(errors.huge_limit)[1]).values()
    assert sent(errors.unknown_path, 404)[0] == "/models/-nowhere"
    assert errors._MUCH == 36 * 2**20
    monkeypatch.setattr(errors, "_MUCH", 7000)
    assert b"rivers " * 1000 in sent(errors.too_large)[1]


def test_a_model_may_be_on_any_page_of_a_list() -> None:
    def page(names: list[str], token: str = "") -> tuple[int, str]:
        models = ", ".join(
            f'{{"name": "models/{name}", "supportedGenerationMethods": ["generateContent"]}}'
            for name in names
        )
        return 200, f'{{"models": [{models}], "nextPageToken": "{token}"}}'

    talk: Any = Posting(page(["a"], "2"), page(["mine"]), wire="gemini")
    errors.listed(talk)
    assert len(talk.posted) == 2
    for answers_ in ([page(["a"])], [page(["a"], "2"), page(["a"], "3")]):
        missing: Any = Posting(*answers_, wire="gemini")
        with pytest.raises(Broken, match="models/mine is not one of the 1 listed models"):
            errors.listed(missing)
