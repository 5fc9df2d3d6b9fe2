import assert from "node:assert/strict";
import { test } from "node:test";
import { align, eventsIn } from "../src/alignment";
import { foldEvents } from "../src/stream";

const shown = (rows: ReturnType<typeof align>) => rows.map((row) => [row.source?.name ?? "end", ...row.became.map((events) => events.map((event) => event.name).join("+"))]);

test("each event is next to what it became, and what the end adds is last", () => {
  const source = ['data: {"type":"a"}\n\n', ": comment\n\n", 'data: {"type":"b"}\n\n'];
  const one = ['data: {"type":"x"}\n\ndata: {"type":"y"}\n\n', "", "", "data: [DONE]\n\n"];
  const lines = ["", "", '{"type":"l"}\n{"type":"m"}\n', ""];
  assert.deepEqual(shown(align(source, [one, lines])), [["a", "x+y", ""], ["comment", "", ""], ["b", "", "l+m"], ["end", "done", ""]]);
});

test("without anything at the end there is no row for it", () => {
  assert.deepEqual(shown(align(["data: 1\n\n"], [["", ""]])), [["data", ""]]);
  assert.deepEqual(align([], []), []);
});

test("lines of Ollama and steps of Interactions add up to an answer", () => {
  const lines = eventsIn('{"message":{"thinking":"Hm."},"done":false}\n{"message":{"content":"Hel"},"done":false}\n{"message":{"content":"lo"},"done":true}\n');
  assert.deepEqual(foldEvents(lines).map((part) => [part.kind, part.text]), [["reasoning", "Hm."], ["text", "Hello"]]);
  const steps = eventsIn('data: {"event_type":"step.start","index":1,"step":{"type":"function_call","name":"f"}}\n\ndata: {"event_type":"step.delta","index":1,"delta":{"type":"arguments_delta","arguments":"{}"}}\n\ndata: {"event_type":"step.delta","index":2,"delta":{"type":"text","text":"Hi"}}\n\n');
  assert.deepEqual(foldEvents(steps).map((part) => [part.kind, part.name ?? "", part.text]), [["call", "f", "{}"], ["text", "", "Hi"]]);
});
