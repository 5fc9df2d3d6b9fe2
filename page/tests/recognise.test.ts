import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { dialectOfPath, recognise } from "../src/recognise";

const FIXTURES = "../tests/fixtures";
const FOLDERS = { request: "requests", answer: "responses", stream: "streams" } as const;
/** Dialects whose documents are those of another: what tells them apart is the address. */
const SAME: Record<string, string[]> = { "gemini-simple": ["gemini"], "anthropic-vertex": ["anthropic"], "anthropic-bedrock": ["anthropic"] };
const DIALECTS = ["anthropic", "openai-chat", "openai-responses", "gemini", "gemini-interactions", "ollama", "ollama-generate", "code-assist", "gemini-simple", "anthropic-vertex", "anthropic-bedrock"];

function files(dialect: string, folder: string): string[] {
  try {
    return readdirSync(`${FIXTURES}/${dialect}/${folder}`).filter((name) => !name.startsWith("."));
  } catch {
    return [];
  }
}

for (const dialect of DIALECTS)
  for (const [kind, folder] of Object.entries(FOLDERS))
    test(`every ${kind} of ${dialect} among the fixtures is recognised, or said to be unsure`, () => {
      const wrong: string[] = [];
      for (const name of files(dialect, folder)) {
        if (name === "minimal.json" && dialect === "gemini-interactions") continue; // `{"status": "completed"}` could be anything
        const found = recognise(readFileSync(`${FIXTURES}/${dialect}/${folder}/${name}`, "utf8"));
        const expected = [dialect, ...(kind === "request" ? [] : (SAME[dialect] ?? []))];
        if (found?.unsure && kind === "request") continue;
        if (!found || !expected.includes(found.dialect) || found.kind !== kind) wrong.push(`${name}: ${found?.dialect ?? "nothing"} ${found?.kind ?? ""}`);
      }
      assert.deepEqual(wrong, []);
    });

test("a command is recognised by its address, and brings its body, model and stream", () => {
  const found = recognise(`curl "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse&key=$KEY" -d '{"contents": []}'`);
  assert.deepEqual(found, { dialect: "gemini", kind: "request", text: '{\n  "contents": []\n}', from: "a curl command", model: "gemini-3-pro", stream: true });
  assert.equal(recognise(`curl http://localhost:8484/v1/chat/completions -d '{"messages": []}'`)?.dialect, "openai-chat");
  assert.equal(recognise(`curl http://h/x -d '{"model": "m", "input": "Hi", "instructions": "Be brief."}'`)?.dialect, "openai-responses");
});

test("a command whose body is broken keeps it as it is written", () => {
  assert.equal(recognise(`curl https://h/v1/messages -d '{"model": }'`)?.text, '{"model": }');
});

test("paths of every dialect are known", () => {
  const known: [string, string][] = [
    ["/v1/messages?beta=true", "anthropic"], ["https://api.openai.com/v1/responses", "openai-responses"], ["/api/chat", "ollama"], ["/api/generate", "ollama-generate"],
    ["/v1beta/interactions", "gemini-interactions"], ["/v1internal:streamGenerateContent?alt=sse", "code-assist"], ["/v1/gemini", "gemini-simple"],
    ["/model/anthropic.claude-3/invoke", "anthropic-bedrock"], ["/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict", "anthropic-vertex"],
  ];
  for (const [path, dialect] of known) assert.equal(dialectOfPath(path)?.dialect, dialect, path);
  assert.equal(dialectOfPath("/v1/models"), null);
});

test("a fenced block, JSON lines, a trace and an array of answers are read", () => {
  assert.equal(recognise('```json\n{"contents": []}\n```')?.dialect, "gemini");
  const lines = recognise('{"type":"message_start","message":{}}\n{"type":"message_stop"}');
  assert.deepEqual([lines?.dialect, lines?.kind, lines?.from], ["anthropic", "stream", "JSON lines"]);
  assert.equal(lines?.text, 'data: {"type":"message_start","message":{}}\n\ndata: {"type":"message_stop"}\n\n');
  const trace = { format: "wireglot-trace/1", row: { dialect: "openai-chat" }, request: { body: '{"model":"m"}' } };
  assert.deepEqual([recognise(JSON.stringify(trace))?.dialect, recognise(JSON.stringify(trace))?.text], ["openai-chat", '{\n  "model": "m"\n}']);
  assert.deepEqual([recognise('[{"candidates":[]}]')?.kind, recognise('[{"candidates":[]}]')?.text], ["stream", 'data: {"candidates":[]}\n\n']);
});

test("what is no document of any dialect is nothing", () => {
  for (const text of ["", "hello", "3", "[]", "{}", "null", '{"a": 1}', "data: x", "data: 5\n\n", '"text"', "{", '{"messages": 3}']) assert.equal(recognise(text), null, text);
});

test("messages that every dialect writes alike are unsure", () => {
  const found = recognise('{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}');
  assert.deepEqual([found?.dialect, found?.unsure], ["openai-chat", true]);
});
