import assert from "node:assert/strict";
import { test } from "node:test";
import { type PlayLoss, type Translated, describe, marksOf, otherwise, placeIn, read } from "../src/playground";
import { recognise } from "../src/recognise";

const loss = (more: Partial<PlayLoss>): PlayLoss => ({ path: "$", feature: "seed", action: "dropped", detail: "", grade: "harmless", document: "request", ...more });
const result = (dialects: Translated["dialects"]): Translated => ({ problem: null, dialects });

test("a place has one mark with all that is lost there, as bad as the worst", () => {
  const marks = marksOf(
    result({
      gemini: { text: "", losses: [loss({ pointer: "/seed" }), loss({ pointer: "", feature: "nowhere" })] },
      anthropic: { text: "", losses: [loss({ pointer: "/seed", grade: "serious" }), loss({ pointer: "/top_k", grade: "degraded" })] },
    }),
    "request",
  );
  assert.deepEqual(marks, [
    { pointer: "/seed", severity: "error", message: "Gemini: seed dropped (harmless)\nAnthropic Messages: seed dropped (serious)" },
    { pointer: "/top_k", severity: "warning", message: "Anthropic Messages: seed dropped (degraded)" },
  ]);
});

test("what cannot be read has its own mark alone, where its place is known", () => {
  const problem = { message: "expected a list", pointer: "/messages" };
  assert.deepEqual(marksOf({ problem, dialects: { gemini: { text: "", losses: [loss({ pointer: "/x" })] } } }, "request"), [{ pointer: "/messages", severity: "error", message: "expected a list" }]);
  assert.deepEqual(marksOf({ problem: { message: "no" }, dialects: {} }, "request"), []);
});

test("a loss of a stream is at the line of its event", () => {
  assert.equal(placeIn("stream", loss({ line: 12, pointer: "/x" })), "#12");
  assert.equal(placeIn("stream", loss({ pointer: "/x" })), "");
  assert.equal(placeIn("answer", loss({ pointer: "/x" })), "/x");
});

test("what is wrong with a command has its line and column", () => {
  const { found, fault } = read("curl https://h/v1/messages \\\n -d '{}");
  assert.equal(found, null);
  assert.deepEqual([fault?.line, fault?.column, fault?.message], [2, 5, "the quote that opens here is never closed: expected another '"]);
  assert.equal(read('{"contents": []}').found?.dialect, "gemini");
});

test("a text that is what it is taken for is nothing else", () => {
  const found = recognise('{"contents": []}');
  assert.equal(otherwise(found, { dialect: "gemini", kind: "request", text: ' {"contents": []}\n' }), null);
  assert.equal(otherwise(found, { dialect: "anthropic", kind: "request", text: '{"contents": []}' }), found);
  assert.equal(found && describe(found), "Gemini request");
  assert.equal(otherwise(null, { dialect: "gemini", kind: "request", text: "" }), null);
});
