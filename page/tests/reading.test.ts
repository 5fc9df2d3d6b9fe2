import assert from "node:assert/strict";
import { test } from "node:test";
import { at, type Json } from "../src/json/parse";
import { type Part, partsInView, pointerOf, readAnswer, readRequest, settingsOf } from "../src/reading";

const brief = (parts: Part[]) => parts.map((part) => [part.role, part.kind, part.name ?? "", part.text].filter(Boolean).join("|"));

const REQUESTS: Record<string, Json> = {
  anthropic: {
    model: "m",
    system: [{ type: "text", text: "be kind" }],
    tools: [{ name: "read", description: "reads", input_schema: {} }],
    messages: [
      { role: "user", content: "hello" },
      { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "s" }, { type: "tool_use", id: "t1", name: "read", input: { a: 1 } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "done", is_error: true }] },
    ],
  },
  chat: {
    model: "m",
    tools: [{ type: "function", function: { name: "read", description: "reads" } }],
    messages: [
      { role: "system", content: "be kind" },
      { role: "user", content: "hello" },
      { role: "assistant", reasoning_content: "hm", content: null, tool_calls: [{ id: "t1", function: { name: "read", arguments: '{"a":1}' } }] },
      { role: "tool", tool_call_id: "t1", content: "done" },
    ],
  },
  responses: {
    model: "m",
    instructions: "be kind",
    tools: [{ type: "function", name: "read", description: "reads" }],
    input: [
      { role: "user", content: [{ type: "input_text", text: "hello" }] },
      { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] },
      { type: "function_call", name: "read", call_id: "t1", arguments: '{"a":1}' },
      { type: "function_call_output", call_id: "t1", output: "done" },
    ],
  },
  gemini: {
    systemInstruction: { parts: [{ text: "be kind" }] },
    tools: [{ functionDeclarations: [{ name: "read", description: "reads" }] }],
    contents: [
      { role: "user", parts: [{ text: "hello" }] },
      { role: "model", parts: [{ text: "hm", thought: true }, { functionCall: { name: "read", args: { a: 1 } } }] },
      { role: "user", parts: [{ functionResponse: { name: "read", response: { out: "done" } } }] },
    ],
  },
};

test("a conversation reads alike in every dialect", () => {
  for (const [dialect, request] of Object.entries(REQUESTS)) {
    const parts = readRequest(request);
    const kinds = parts.map((part) => part.kind).sort();
    assert.deepEqual(kinds, ["call", "reasoning", "result", "system", "text", "tool"], dialect);
    const text = (kind: string) => parts.find((part) => part.kind === kind)?.text;
    assert.equal(text("system"), "be kind", dialect);
    assert.equal(text("text"), "hello", dialect);
    assert.equal(text("reasoning"), "hm", dialect);
    assert.equal(text("call"), '{\n  "a": 1\n}', dialect);
    assert(text("result")?.includes("done"), dialect);
    assert.equal(parts.find((part) => part.kind === "call")?.id, parts.find((part) => part.kind === "result")?.id, dialect);
  }
});

test("every part is at a place that the document has", () => {
  for (const [dialect, request] of Object.entries(REQUESTS))
    for (const part of readRequest(request)) assert(at(request, part.pointer) !== undefined, `${dialect}: ${part.pointer}`);
});

test("answers are read in every dialect", () => {
  assert.deepEqual(brief(readAnswer({ content: [{ type: "text", text: "hi" }] })), ["assistant|text|hi"]);
  assert.deepEqual(brief(readAnswer({ choices: [{ message: { role: "assistant", content: "hi" } }] })), ["assistant|text|hi"]);
  assert.deepEqual(brief(readAnswer({ output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "hi" }] }] })), ["assistant|text|hi"]);
  assert.deepEqual(brief(readAnswer({ response: { candidates: [{ content: { parts: [{ text: "hi" }] } }] } })), ["assistant|text|hi"]);
  assert.deepEqual(brief(readAnswer({ error: { type: "overloaded", message: "busy" } })), ["error|error|overloaded|busy"]);
});

test("pictures are named by their places and never carried along", () => {
  const [picture] = readRequest({ messages: [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } }] }] });
  assert.deepEqual(picture, { pointer: "/messages/0/content/0", role: "user", kind: "image", text: "", name: "image/png", data: "/messages/0/content/0/source/data" });
});

test("odd documents are shown as they are", () => {
  for (const odd of [null, 1, "text", [], {}, { messages: "no list" }, { contents: [null] }] as Json[]) {
    readRequest(odd);
    readAnswer(odd);
  }
  assert.deepEqual(brief(readRequest({ messages: [7, { role: "user", content: [{ type: "new_kind", x: 1 }] }] })), ["other|7", 'user|other|new_kind|{\n  "type": "new_kind",\n  "x": 1\n}']);
});

test("what is beside the conversation are settings", () => {
  assert.deepEqual(settingsOf({ model: "m", max_tokens: 9, messages: [], stop: ["x"] }), [["model", "m"], ["max_tokens", "9"], ["stop", '["x"]']]);
  assert.equal(pointerOf("a/b", 0), "/a~1b/0");
});

test("reasoning without text says why, in every dialect", () => {
  const note = (request: Json) => readRequest(request).map((part) => [part.kind, part.name, part.note?.split(" ").slice(0, 4).join(" ")]);
  const turn = (block: Json): Json => ({ messages: [{ role: "assistant", content: [block] }] });
  assert.deepEqual(note(turn({ type: "thinking", thinking: "", signature: "x".repeat(1200) })), [["reasoning", "signature only", "A signature of 1,200"]]);
  assert.deepEqual(note(turn({ type: "redacted_thinking", data: "x".repeat(40) })), [["reasoning", "encrypted", "40 characters that only"]]);
  assert.deepEqual(note(turn({ type: "thinking", thinking: "" })), [["reasoning", "empty", "The provider says that"]]);
  assert.deepEqual(note(turn({ type: "thinking", thinking: "hm", signature: "x" })), [["reasoning", undefined, undefined]]);
  assert.deepEqual(note({ input: [{ type: "reasoning", summary: [], encrypted_content: "xyz" }] }), [["reasoning", "encrypted", "3 characters that only"]]);
  assert.deepEqual(note({ contents: [{ role: "model", parts: [{ text: "", thoughtSignature: "abc" }] }] }), [["reasoning", "signature only", "A signature of 3"]]);
});

test("of thousands of parts a few are drawn: the last, those asked for, or those around one that must be seen", () => {
  assert.deepEqual(partsInView(12, null, null, -1), { from: 0, to: 12 });
  assert.deepEqual(partsInView(2400, null, null, -1), { from: 2360, to: 2400 });
  assert.deepEqual(partsInView(2400, null, null, 2390), { from: 2360, to: 2400 });
  assert.deepEqual(partsInView(2400, 2260, null, 2300), { from: 2260, to: 2400 });
  assert.deepEqual(partsInView(2400, null, null, 1000), { from: 980, to: 1020 });
  assert.deepEqual(partsInView(2400, 980, 1020, 1010), { from: 980, to: 1020 });
  assert.deepEqual(partsInView(2400, 980, 1020, 5), { from: 0, to: 40 });
  assert.deepEqual(partsInView(2400, 980, 1020, 2399), { from: 2379, to: 2400 });
  assert.deepEqual(partsInView(3, 980, 1020, -1), { from: 0, to: 3 });
});
