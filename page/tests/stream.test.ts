import assert from "node:assert/strict";
import { test } from "node:test";
import { eventLinks, eventsOf, eventsOfText, firstWord, foldEvents, gapsOf, settled, wordsOf } from "../src/stream";
import type { Frame } from "../src/types";

const sse = (...documents: unknown[]) => documents.map((each) => `data: ${typeof each === "string" ? each : JSON.stringify(each)}\n\n`).join("");
const folded = (...documents: unknown[]) => foldEvents(eventsOfText(sse(...documents))).map(({ kind, text, name, id }) => ({ kind, text, ...(name ? { name } : {}), ...(id ? { id } : {}) }));

test("events are cut from the pieces they came in, each with the time of its last byte", () => {
  const whole = 'event: a\ndata: {"n":1}\n\ndata: [DONE]\n\n: ping\n\n';
  for (let cut = 0; cut <= whole.length; cut++) {
    const events = eventsOf([{ ms: 1, data: whole.slice(0, cut) }, { ms: 2, data: whole.slice(cut) }].filter((frame) => frame.data));
    assert.deepEqual(events.map((event) => event.name), ["a", "done", "comment"], `cut at ${cut}`);
    assert.deepEqual(events[0]?.value, { n: 1 });
  }
  const late = eventsOf([{ ms: 1, data: "data: {" }, { ms: 5, data: "}\n\n" }]);
  assert.deepEqual(late.map((event) => event.ms), [5]);
});

test("line ends of all kinds separate events, and data of several lines is one text", () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const events = eventsOf([{ ms: 0, data: `data: one${end}data: two${end}${end}data: 3${end}${end}` }]);
    assert.deepEqual(events.map((event) => event.data), ["one\ntwo", "3"]);
  }
});

test("pieces that are no server-sent events are one event each, also of a JSON array", () => {
  const events = eventsOf([{ ms: 0, data: '[{"a":1}' }, { ms: 1, data: ',{"a":2}]' }]);
  assert.deepEqual(events.map((event) => event.value), [{ a: 1 }, { a: 2 }]);
});

test("what a stream adds up to is read in every dialect", () => {
  assert.deepEqual(
    folded(
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "he" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "llo" } },
      { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: "t1", name: "read" } },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"a":1}' } },
    ),
    [{ kind: "reasoning", text: "hm" }, { kind: "text", text: "hello" }, { kind: "call", text: '{"a":1}', name: "read", id: "t1" }],
  );
  assert.deepEqual(
    folded(
      { choices: [{ index: 0, delta: { reasoning_content: "hm" } }] },
      { choices: [{ index: 0, delta: { content: "he" } }] },
      { choices: [{ index: 0, delta: { content: "llo" } }] },
      { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "t1", function: { name: "read", arguments: '{"a"' } }] } }] },
      { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] } }] },
      "[DONE]",
    ),
    [{ kind: "reasoning", text: "hm" }, { kind: "text", text: "hello" }, { kind: "call", text: '{"a":1}', name: "read", id: "t1" }],
  );
  assert.deepEqual(
    folded(
      { type: "response.output_item.added", output_index: 0, item: { type: "message" } },
      { type: "response.output_text.delta", output_index: 0, delta: "he" },
      { type: "response.output_text.delta", output_index: 0, delta: "llo" },
      { type: "response.output_item.added", output_index: 1, item: { type: "function_call", name: "read", call_id: "t1" } },
      { type: "response.function_call_arguments.delta", output_index: 1, delta: "{}" },
    ),
    [{ kind: "text", text: "hello" }, { kind: "call", text: "{}", name: "read", id: "t1" }],
  );
  assert.deepEqual(
    folded(
      { candidates: [{ content: { parts: [{ text: "hm", thought: true }] } }] },
      { candidates: [{ content: { parts: [{ text: "he" }] } }] },
      { candidates: [{ content: { parts: [{ text: "llo" }] } }] },
    ),
    [{ kind: "reasoning", text: "hm" }, { kind: "text", text: "hello" }],
  );
});

test("only so many events are added up as are asked for, and an error is a part", () => {
  const events = eventsOfText(sse({ choices: [{ delta: { content: "a" } }] }, { choices: [{ delta: { content: "b" } }] }, { error: { type: "overloaded", message: "busy" } }));
  assert.deepEqual(foldEvents(events, 1).map((part) => part.text), ["a"]);
  assert.deepEqual(foldEvents(events).map((part) => [part.kind, part.text]), [["text", "ab"], ["error", "busy"]]);
});

test("an event says its words in one line", () => {
  const words = (document: unknown) => wordsOf(eventsOfText(sse(document))[0] as ReturnType<typeof eventsOf>[number]);
  assert.equal(words({ type: "content_block_delta", delta: { type: "text_delta", text: "hi" } }), "hi");
  assert.equal(words({ choices: [{ delta: { content: "hi" } }] }), "hi");
  assert.equal(words({ choices: [{ delta: {}, finish_reason: "stop" }] }), "stop");
  assert.equal(words({ type: "response.output_text.delta", delta: "hi" }), "hi");
  assert.equal(words({ candidates: [{ content: { parts: [{ text: "hi" }] } }] }), "hi");
  assert.equal(words("[DONE]"), "[DONE]");
});

test("causes go from frames to events, in both directions", () => {
  const upstreamFrames: Frame[] = [{ ms: 0, data: "data: 1\n\ndata: 2\n\n" }, { ms: 1, data: "data: 3" }, { ms: 2, data: "\n\n" }];
  const clientFrames: Frame[] = [{ ms: 1, data: "data: a\n\n", causes: [0] }, { ms: 3, data: "data: b\n\n", causes: [1] }, { ms: 4, data: "data: c\n\n" }];
  const links = eventLinks({ frames: clientFrames, caused_by: "events" }, eventsOf(clientFrames), eventsOf(upstreamFrames));
  assert.deepEqual(links?.causes, [[0, 1], [2], []]);
  assert.deepEqual(links?.effects, [[0], [0], [1]]);
  assert.equal(eventLinks({ frames: clientFrames }, eventsOf(clientFrames), eventsOf(upstreamFrames)), null);
});

test("arguments are indented when they are whole", () => {
  assert.equal(settled({ pointer: "", role: "", kind: "call", text: '{"a":1}' }).text, '{\n  "a": 1\n}');
  assert.equal(settled({ pointer: "", role: "", kind: "call", text: '{"a":' }).text, '{"a":');
});

test("long waits are gaps, the longest first, and the first word has its time", () => {
  const frames = [0, 10, 20, 30, 1030, 1040, 1050, 1060, 4060, 4070].map((ms, index) => ({ ms, data: sse({ choices: [{ delta: index < 2 ? {} : { content: "x" } }] }) }));
  const events = eventsOf(frames);
  assert.deepEqual(gapsOf(events), [{ from: 1060, to: 4060 }, { from: 30, to: 1030 }]);
  assert.equal(firstWord(events), 20);
  assert.equal(firstWord([]), null);
});

test("what an error says is no first word, and a stream without an end has the gap since its last event", () => {
  const [said, error] = [{ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } }, { type: "error", error: { type: "overloaded_error", message: "busy" } }];
  assert.equal(firstWord(eventsOf([{ ms: 7, data: sse(error) }])), null);
  assert.equal(firstWord(eventsOf([{ ms: 7, data: sse(error) }, { ms: 9, data: sse(said) }])), 9);
  const events = eventsOf([{ ms: 10, data: sse(said) }, { ms: 20, data: sse(said) }]);
  assert.deepEqual(gapsOf(events, 45_020), [{ from: 20, to: 45_020 }]);
  assert.deepEqual(gapsOf([], 45_020), []);
});

test("an event in many pieces is put together in one pass, whatever separates it from the next", () => {
  for (const separator of ["\n\n", "\r\n\r\n", "\r\r", "\n\r\n"]) {
    const text = `data: ${"x".repeat(7)}${separator}data: y${separator}`;
    for (let size = 1; size < 6; size++) {
      const frames: Frame[] = [];
      for (let at = 0; at < text.length; at += size) frames.push({ ms: at, data: text.slice(at, at + size) });
      // The first piece says what kind of stream it is, as a recorded one does.
      frames.splice(0, Math.ceil(6 / size), { ms: 0, data: text.slice(0, Math.ceil(6 / size) * size) });
      assert.deepEqual(eventsOf(frames).map((event) => event.data), ["xxxxxxx", "y"], `${JSON.stringify(separator)} by ${size}`);
    }
  }
  // 80 MB, were each piece put together with all before it, are 800 GB.
  const pieces = [{ ms: 0, data: "data: " }, ...Array.from({ length: 20_000 }, (_, ms) => ({ ms, data: "x".repeat(4000) })), { ms: 1, data: "\n\n" }];
  assert.equal(eventsOf(pieces)[0]?.data.length, 80_000_000);
});

test("each event of a stream with many events finds its partner in one step", () => {
  const frames = Array.from({ length: 40_000 }, (_, index) => ({ ms: index, data: index ? "x" : "data: x", causes: [0] }));
  frames.push({ ms: 40_000, data: "\n\n", causes: [0] });
  const client = Array.from({ length: 40_000 }, (_, index) => ({ ms: index, data: "data: 1\n\n", causes: [0] }));
  const links = eventLinks({ frames: client, caused_by: "events" }, eventsOf(client), eventsOf(frames));
  assert.deepEqual(links?.causes.at(-1), [0]);
  assert.equal(links?.effects[0]?.length, 40_000);
});
