"""The reasoning vault: what is kept of an answer, and what of it is put back into later requests."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.gateway.state.reasoning_kit import MODELS, SETTINGS, Memory, signed
from wireglot.gateway.settings import Secret, ServerSettings
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Extra, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.outcome import Candidate, Response, Stop
from wireglot_core.providers.limits import base_limits
from wireglot_core.translate import plan

ASKED: dict[str, Any] = {"role": "user", "content": "What is the weather?"}
CALL = ToolCall("8f3a61c2", "look_up", '{"city":"Ulm","days":2}', signature=signed("c2ln"))


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "Be brief."}, *messages]}


def called(*calls: ToolCall, content: str | None = None, **more: Any) -> dict[str, Any]:
    """An answer as a Chat client keeps it that knows OpenAI's own fields only."""
    functions = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": functions, **more}


def result(call: ToolCall) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.id, "content": "rain"}


def last_answer(messages: tuple[Message, ...]) -> tuple[Part, ...]:
    return next(message.content for message in reversed(messages) if message.role == "assistant")


def test_a_signature_comes_back_to_its_call() -> None:
    """R-DA-01, R-DA-02, R-E-04"""
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), CALL)
    job = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert last_answer(job.request().messages) == (CALL,)
    assert job.sealed


def test_the_stream_of_a_model_that_does_not_think_is_not_collected() -> None:
    """Said before its first byte: there is nothing that could have to be kept."""
    job = Memory().ask(chat(ASKED))
    target = job.targets[0]
    plain = msgspec.structs.replace(target.limits, thinking="none", call_signatures=False)
    assert job.ending.holds(target)
    assert not job.ending.holds(msgspec.structs.replace(target, limits=plain))


def test_a_first_question_costs_no_look_into_the_store() -> None:
    memory = Memory()
    job = memory.ask(chat(ASKED))
    assert memory.vault.asked == []
    assert len(job.ending.keepers) == 1


def test_all_turns_of_a_conversation_are_looked_up_at_once() -> None:
    memory = Memory()
    history: list[dict[str, Any]] = [ASKED]
    for number in range(5):
        call = msgspec.structs.replace(CALL, id=f"8f3a61c{number}", signature=signed(f"c2ln{number}"))
        memory.answer(memory.ask(chat(*history)), call)
        history += [called(call), result(call)]
    memory.vault.asked.clear()
    job = memory.ask(chat(*history))
    assert len(memory.vault.asked) == 1
    answers = [message.content for message in job.request().messages if message.role == "assistant"]
    assert [part.signature.data for (part,) in answers if type(part) is ToolCall and part.signature] == [
        f"c2ln{number}" for number in range(5)
    ]


def test_an_answer_without_state_is_not_kept() -> None:
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), Text("Rain."), ToolCall("8f3a61c2", "look_up", "{}"))
    # Nor are thoughts that their model does not take back.
    memory.answer(memory.ask(chat(ASKED)), Reasoning("Hm."), Text("Rain."))
    assert memory.vault.kept == []


@pytest.mark.parametrize(
    ("dialect", "model"),
    [
        ("anthropic", MODELS["anthropic"]),
        ("openai-responses", MODELS["openai"]),
        ("gemini-simple", MODELS["gemini"]),
        ("openai-chat", "kimi/moonshot-v1-8k"),
    ],
)
def test_where_the_client_carries_it_all_or_there_is_nothing_nothing_is_arranged(
    dialect: str, model: str
) -> None:
    body: dict[str, Any] = {"messages": [ASKED], "max_tokens": 9}
    if dialect in ("openai-responses", "gemini-simple"):
        body = {"input": "x"}
    memory = Memory()
    assert not memory.ask(body, dialect, model).ending.keepers


def test_only_the_first_of_parallel_calls_is_signed_and_it_stays_so() -> None:
    """R-DA-02, R-DA-03"""
    memory = Memory()
    second = ToolCall("8f3a61c3", "look_up", '{"city":"Bonn","days":2}')
    memory.answer(memory.ask(chat(ASKED)), CALL, second)
    job = memory.ask(chat(ASKED, called(CALL, second), result(CALL), result(second)))
    assert last_answer(job.request().messages) == (CALL, second)


def test_thinking_returns_to_its_order_with_all_its_blocks() -> None:
    """R-DA-09, R-DA-10: thoughts between texts and calls, one of them withheld."""
    memory = Memory()
    content = (
        Reasoning("First.", signed("s1", "anthropic")),
        Reasoning("", signed("r1", "anthropic"), redacted=True),
        Text("Let me see. "),
        Reasoning("Second.", signed("s2", "anthropic")),
        Text("Now."),
        ToolCall("toolu_01AbCdEfGh", "look_up", "{}"),
    )
    memory.answer(memory.ask(chat(ASKED), model=MODELS["anthropic"]), *content)
    call = content[-1]
    assert type(call) is ToolCall
    # It echoes the reasoning too, as one text: what the model wrote counts.
    echo = called(call, content="Let me see. Now.", reasoning_content="First.\n\nSecond.")
    job = memory.ask(chat(ASKED, echo, result(call)), model=MODELS["anthropic"])
    assert last_answer(job.request().messages) == content


def test_kimis_words_come_back_and_nothing_is_invented() -> None:
    """R-DA-11"""
    memory = Memory()
    call = ToolCall("functions.look_up:0", "look_up", "{}")
    memory.answer(memory.ask(chat(ASKED), model=MODELS["kimi"]), Reasoning("I look."), call)
    job = memory.ask(chat(ASKED, called(call), result(call)), model=MODELS["kimi"])
    assert last_answer(job.request().messages) == (Reasoning("I look."), call)


def test_a_client_that_sends_everything_back_passes_as_it_is() -> None:
    memory = Memory()
    call = ToolCall("functions.look_up:0", "look_up", "{}")
    memory.answer(memory.ask(chat(ASKED), model=MODELS["kimi"]), Reasoning("I look."), call)
    body = chat(ASKED, called(call, reasoning_content="I look."), result(call))
    job = memory.ask(body, model=MODELS["kimi"])
    assert not job.rewritten


def test_a_signature_that_came_without_its_minter_gets_it_back() -> None:
    """R-DA-04: Google's own field for Chat clients holds the signature and nothing else."""
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), CALL)
    echo = called(CALL)
    echo["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "c2ln"}}
    job = memory.ask(chat(ASKED, echo, result(CALL)))
    assert last_answer(job.request().messages) == (CALL,)


def test_the_same_call_id_in_two_conversations_is_two_turns() -> None:
    """C46: Kimi's ids count from the start in every conversation."""
    memory = Memory()
    call = ToolCall("functions.look_up:0", "look_up", "{}")
    questions = [{"role": "user", "content": text} for text in ("Rain?", "Snow?")]
    for asked in questions:
        job = memory.ask(chat(asked), model=MODELS["kimi"])
        memory.answer(job, Reasoning(f"About {asked['content']}"), call)
    for asked in questions:
        job = memory.ask(chat(asked, called(call), result(call)), model=MODELS["kimi"])
        assert last_answer(job.request().messages)[0] == Reasoning(f"About {asked['content']}")
    # And a conversation that begins otherwise gets neither.
    other = memory.ask(
        chat({"role": "user", "content": "Hail?"}, called(call), result(call)), model=MODELS["kimi"]
    )
    assert not other.rewritten


def test_what_a_client_brings_is_not_exchanged_for_what_another_model_left_at_the_same_words() -> None:
    """Two models asked the same may answer the same, and the vault has one name for both: the last one's."""
    words, said = "What is the weather?", Text("It will rain in Ulm today and tomorrow.")
    memory = Memory()
    asked = {"role": "user", "parts": [{"text": words}]}
    another = Reasoning("Ulm, then.", signed("b3RoZXI=", "openai-responses", "openai"))
    memory.answer(memory.ask({"contents": [asked]}, "gemini", MODELS["openai"]), another, said)
    thought = {"text": "It is Ulm.", "thought": True, "thoughtSignature": "b3du"}
    reported = {"role": "model", "parts": [thought, {"text": said.text}]}
    job = memory.ask({"contents": [asked, reported, asked]}, "gemini", MODELS["anthropic"])
    brought, _ = last_answer(job.request().messages)
    assert type(brought) is Reasoning
    assert brought.signature is not None
    assert (brought.text, brought.signature.data) == ("It is Ulm.", "b3du")


def test_a_summary_that_nobody_signed_is_not_kept() -> None:
    """Its minter would refuse it, and that it could not be given back would be reported as a loss."""
    memory = Memory()
    summary = Reasoning("Ulm, then.", extra=Extra("openai-responses", form={"source": "summary"}))
    made = memory.ask(chat(ASKED), model=MODELS["openai"])
    memory.answer(made, summary, Text("It will rain in Ulm today and tomorrow."))
    assert memory.vault.kept == []


def test_the_same_id_twice_in_one_conversation_is_two_turns() -> None:
    """Kimi K3 begins its ids again in every answer."""
    memory = Memory()
    call = ToolCall("look_up:0", "look_up", "{}")
    memory.answer(memory.ask(chat(ASKED), model=MODELS["kimi"]), Reasoning("First."), call)
    once = (ASKED, called(call), result(call))
    memory.answer(memory.ask(chat(*once), model=MODELS["kimi"]), Reasoning("Second."), call)
    job = memory.ask(chat(*once, called(call), result(call)), model=MODELS["kimi"])
    answers = [message.content[0] for message in job.request().messages if message.role == "assistant"]
    assert answers == [Reasoning("First."), Reasoning("Second.")]


def test_nothing_of_one_caller_reaches_another() -> None:
    """C46, THREATS T5"""
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED), caller="one"), CALL)
    job = memory.ask(chat(ASKED, called(CALL), result(CALL)), caller="other")
    assert not job.rewritten


def test_what_clients_change_without_meaning_does_not_matter() -> None:
    """Other spaces and keys in another order, a system text of today, white space at an end."""
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), Text("Let me see.\n"), CALL)
    echo = called(CALL, content="Let me see.")
    echo["tool_calls"][0]["function"]["arguments"] = '{ "days": 2.0, "city": "\\u0055lm" }'
    body = chat(
        {"role": "user", "content": [{"type": "text", "text": "What is the weather? "}]}, echo, result(CALL)
    )
    body["messages"][0]["content"] = "Be brief. It is Monday."
    job = memory.ask(body)
    assert last_answer(job.request().messages) == (Text("Let me see.\n"), CALL)


def test_a_shortened_history_still_finds_its_calls() -> None:
    """R-E-03, C46: the client has put a summary in place of the beginning."""
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), CALL)
    summary = {"role": "user", "content": "Summary: the user asked for the weather."}
    memory.vault.asked.clear()
    job = memory.ask(chat(summary, called(CALL), result(CALL)))
    assert last_answer(job.request().messages) == (CALL,)
    assert len(memory.vault.asked) == 2


def test_in_a_shortened_history_recurring_ids_tell_something_only_within_a_session() -> None:
    """C46"""
    call = ToolCall("functions.look_up:0", "look_up", "{}")
    summary = {"role": "user", "content": "Summary: the user asked for the weather."}
    for session, found in (("", False), ("of-mine", True)):
        memory = Memory()
        job = memory.ask(chat(ASKED), model=MODELS["kimi"], session=session)
        memory.answer(job, Reasoning("I look."), call)
        body = chat(summary, called(call), result(call))
        assert memory.ask(body, model=MODELS["kimi"], session=session).rewritten is found
        assert not memory.ask(body, model=MODELS["kimi"], session="another").rewritten


def test_short_answers_recur_and_are_found_only_in_their_place() -> None:
    memory = Memory()
    done = Text("Done.", signature=signed("ZG9uZQ=="))
    memory.answer(memory.ask(chat(ASKED)), done)
    again = {"role": "user", "content": "Again"}
    reported = {"role": "assistant", "content": "Done."}
    assert not memory.ask(chat({"role": "user", "content": "Other"}, reported, again)).rewritten
    job = memory.ask(chat(ASKED, reported, again))
    assert last_answer(job.request().messages) == (done,)


def test_an_edited_turn_keeps_the_state_of_the_calls_that_are_left() -> None:
    memory = Memory()
    second = ToolCall("8f3a61c3", "look_up", '{"city":"Bonn"}')
    memory.answer(memory.ask(chat(ASKED)), Text("Two things."), CALL, second)
    job = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert last_answer(job.request().messages) == (CALL,)
    # The first call is gone, and with it what was signed.
    job = memory.ask(chat(ASKED, called(second), result(second)))
    assert not job.rewritten


def test_thinking_goes_before_the_call_it_led_to_even_if_the_text_was_edited() -> None:
    memory = Memory()
    call = ToolCall("toolu_01AbCdEfGh", "look_up", "{}")
    thought = Reasoning("First.", signed("s1", "anthropic"))
    memory.answer(memory.ask(chat(ASKED), model=MODELS["anthropic"]), thought, Text("Let me see."), call)
    job = memory.ask(chat(ASKED, called(call, content="Edited."), result(call)), model=MODELS["anthropic"])
    assert last_answer(job.request().messages) == (thought, Text("Edited."), call)


def test_changed_arguments_are_another_call() -> None:
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), CALL)
    changed = msgspec.structs.replace(CALL, arguments='{"city":"Bonn"}')
    assert not memory.ask(chat(ASKED, called(changed), result(changed))).rewritten


def test_an_answer_that_the_client_cut_in_two_is_one_again() -> None:
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), Text("Let me see."), CALL)
    reported = {"role": "assistant", "content": "Let me see."}
    job = memory.ask(chat(ASKED, reported, called(CALL), result(CALL)))
    answers = [message for message in job.request().messages if message.role == "assistant"]
    assert [answer.content for answer in answers] == [(Text("Let me see."), CALL)]


def test_a_clients_cache_marks_stay() -> None:
    memory = Memory()
    text = Text("A rather long answer, so that it is not mistaken.", signature=signed("dGV4dA=="))
    body: dict[str, Any] = {"max_tokens": 9, "messages": [ASKED]}
    memory.answer(memory.ask(body, "anthropic"), text)
    block = {"type": "text", "text": text.text, "cache_control": {"type": "ephemeral"}}
    reported = {"role": "assistant", "content": [block]}
    job = memory.ask({"max_tokens": 9, "messages": [ASKED, reported, ASKED]}, "anthropic")
    (part,) = last_answer(job.request().messages)
    assert type(part) is Text
    assert part.signature == text.signature
    assert part.cache is not None


def test_a_thought_that_geminis_command_line_left_out_comes_back() -> None:
    memory = Memory()
    asked = {"role": "user", "parts": [{"text": "Weather?"}]}
    call = ToolCall("toolu_01AbCdEfGh", "look_up", "{}")
    thought = Reasoning("First.", signed("s1", "anthropic"))
    model = MODELS["anthropic"]
    memory.answer(memory.ask({"contents": [asked]}, "gemini", model), thought, call)
    reported = {"role": "model", "parts": [{"functionCall": {"id": call.id, "name": "look_up", "args": {}}}]}
    answer = {"functionResponse": {"id": call.id, "name": "look_up", "response": {"output": "rain"}}}
    job = memory.ask({"contents": [asked, reported, {"role": "user", "parts": [answer]}]}, "gemini", model)
    assert last_answer(job.request().messages) == (thought, call)


def test_what_google_signed_on_a_chat_endpoint_is_known_as_its_minters() -> None:
    """[X13] Gemini's clients hold a signature bare: who minted it is reported by the vault."""
    memory = Memory()
    asked = {"role": "user", "parts": [{"text": "Weather?"}]}
    call = ToolCall("8f3a61c2", "look_up", "{}", signature=signed("c2ln", "gemini", "kimi"))
    memory.answer(memory.ask({"contents": [asked]}, "gemini", MODELS["kimi"]), call)
    reported: dict[str, Any] = {"functionCall": {"name": "look_up", "args": {}}, "thoughtSignature": "c2ln"}
    answer = {"functionResponse": {"name": "look_up", "response": {"output": "rain"}}}
    contents = [asked, {"role": "model", "parts": [reported]}, {"role": "user", "parts": [answer]}]
    job = memory.ask({"contents": contents}, "gemini", MODELS["kimi"])
    assert last_answer(job.request().messages) == (call,)
    (result,) = job.request().messages[-1].content
    assert type(result) is ToolResult
    assert result.call_id == call.id


def unlisted(reasoning: str = "own", dialect: str = "openai-chat") -> Memory:
    """Kimi as if the catalog knew nothing of it."""
    memory = Memory()
    memory.limits = msgspec.structs.replace(base_limits(dialect), reasoning=reasoning)
    return memory


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_of_a_chat_model_that_nobody_knows_goes_back_to_who_wrote_it(field: str) -> None:
    """[X18] As it came, and to nobody else."""
    memory = unlisted()
    spelled = None if field == "reasoning_content" else Extra("openai-chat", form={"field": field})
    thought, call = Reasoning("I look.", extra=spelled), ToolCall("8f3a61c2", "look_up", "{}")
    body: dict[str, Any] = {"max_tokens": 9, "messages": [ASKED]}
    memory.answer(memory.ask(body, "anthropic", MODELS["kimi"]), thought, call)
    blocks = [
        {"type": "thinking", "thinking": "I look.", "signature": ""},
        {"type": "tool_use", "id": call.id, "name": "look_up", "input": {}},
    ]
    result = [{"type": "tool_result", "tool_use_id": call.id, "content": "rain"}]
    for reported in (blocks, blocks[1:]):
        turns = [ASKED, {"role": "assistant", "content": reported}, {"role": "user", "content": result}]
        job = memory.ask({"max_tokens": 9, "messages": turns}, "anthropic", MODELS["kimi"])
        for provider, sent in (("kimi", {field: "I look."}), ("another", {})):
            planned = plan(
                job.request(),
                source="anthropic",
                target="openai-chat",
                model="kimi-k2.6",
                limits=memory.limits,
                context=Context(provider=provider),
            )
            value = dialect("openai-chat").render_request(planned.upstream, planned.context).value
            (turn,) = [turn for turn in value["messages"] if turn["role"] == "assistant"]
            assert {key: turn[key] for key in ("reasoning_content", "reasoning") if key in turn} == sent


def test_raw_reasoning_of_an_open_model_goes_back_to_its_responses_endpoint() -> None:
    """[X18] gpt-oss: `reasoning_text` in the item's content, and nothing encrypted."""
    memory = unlisted("signed", "openai-responses")
    raw = Reasoning("I look.", extra=Extra("openai-responses", form={"source": "content"}))
    call = ToolCall("8f3a61c2", "look_up", "{}")
    memory.answer(memory.ask(chat(ASKED), model=MODELS["openai"]), raw, call)
    job = memory.ask(chat(ASKED, called(call), result(call)), model=MODELS["openai"])
    for provider, sent in (("openai", ["I look."]), ("another", [])):
        planned = plan(
            job.request(),
            source="openai-chat",
            target="openai-responses",
            model="gpt-5.5",
            limits=memory.limits,
            context=Context(provider=provider),
        )
        value = dialect("openai-responses").render_request(planned.upstream, planned.context).value
        items = [item for item in value["input"] if item["type"] == "reasoning"]
        assert [part["text"] for item in items for part in item["content"]] == sent


def test_a_store_that_is_down_costs_the_reasoning_and_no_answer() -> None:
    memory = Memory()
    memory.vault.down = True
    job = memory.ask(chat(ASKED))
    memory.answer(job, CALL)
    assert job.record.notes == ["reasoning not kept: the store is not available"]
    job = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert not job.rewritten
    assert job.record.notes == ["reasoning not recalled: the store is not available"]


def test_turns_are_found_after_the_secret_was_changed() -> None:
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), CALL)
    server = ServerSettings(
        secret=Secret("of today", "test"), old_secrets=(Secret("of this gateway", "test"),)
    )
    later = Memory(memory.vault, msgspec.structs.replace(SETTINGS, server=server))
    assert later.ask(chat(ASKED, called(CALL), result(CALL))).rewritten


def test_names_tell_nothing_to_who_does_not_have_the_secret() -> None:
    one, other = (
        Memory(),
        Memory(now=msgspec.structs.replace(SETTINGS, server=ServerSettings(secret=Secret("x", "test")))),
    )
    for memory in (one, other):
        memory.answer(memory.ask(chat(ASKED)), CALL)
    assert one.vault.kept[0].isdisjoint(other.vault.kept[0])
    assert {len(name) for name in one.vault.kept[0]} == {32}


def test_pictures_are_not_kept_where_they_are_large() -> None:
    memory = Memory()
    picture = Media("image", "image/png", data="A" * (2 << 20))
    memory.answer(memory.ask(chat(ASKED)), CALL, picture)
    job = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert last_answer(job.request().messages) == (CALL,)


def test_every_one_of_several_answers_is_kept() -> None:
    memory = Memory()
    job = memory.ask(chat(ASKED))
    other = msgspec.structs.replace(CALL, id="77777777", signature=signed("b3RoZXI="))
    response = Response(
        "r", "m", (CALL,), Stop("tool_calls"), others=(Candidate((other,), Stop("tool_calls")),)
    )
    asyncio.run(job.ending.keep(response))
    for call in (CALL, other):
        found = memory.ask(chat(ASKED, called(call), result(call)))
        assert last_answer(found.request().messages) == (call,)


def test_what_was_refused_in_a_shortened_history_is_still_good_in_the_whole_one() -> None:
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), CALL)
    summary = {"role": "user", "content": "Summary: the user asked for the weather."}
    shortened = chat(summary, called(CALL), result(CALL))
    job = memory.ask(shortened)
    assert job.rewritten
    job.attempt.stripped = True
    memory.answer(job, Text("Rain."))
    assert not memory.ask(shortened).rewritten
    assert memory.ask(chat(ASKED, called(CALL), result(CALL))).rewritten
