import assert from "node:assert/strict";
import { test } from "node:test";
import { type Shape, above, broken, find, linesOf } from "../src/json/lines";
import { at, escapeToken, parse, parseAside, within } from "../src/json/parse";

const shape = (more: Partial<Shape> = {}): Shape => ({ chosen: new Map(), columns: 80, losses: new Map(), forced: new Set(), ...more });
const texts = (value: Parameters<typeof linesOf>[0], more: Partial<Shape> = {}) => linesOf(value, shape(more)).map((line) => `${"  ".repeat(line.depth)}${line.name === undefined ? "" : `${line.name}: `}${line.text}${line.comma ? "," : ""}`);

test("a value is laid out in lines", () => {
  assert.deepEqual(texts({ model: "m", n: 1, list: [true, null], none: {} }), [
    "{",
    '  model: "m",',
    "  n: 1,",
    "  list: [",
    "    true,",
    "    null",
    "  ],",
    "  none: {}",
    "}",
  ]);
});

test("schemas of tools are folded, messages are not", () => {
  const found = texts({ tools: [{ name: "read" }], messages: [{ role: "user", content: "hi" }] });
  assert(found.includes("  tools: [ 1 item ],"), found.join("\n"));
  assert(found.includes('      content: "hi"'), found.join("\n"));
});

test("what was folded or unfolded by hand stays so, and what must be seen is unfolded", () => {
  const value = { tools: [{ name: "read" }], messages: [{ role: "user" }] };
  assert(texts(value, { chosen: new Map([["/messages", false]]) }).includes("  messages: [ 1 item ]"));
  assert(texts(value, { forced: new Set(["/tools", "/tools/0"]) }).includes('      name: "read"'));
  assert(texts(value, { chosen: new Map([["/tools", false]]), forced: new Set(["/tools"]) }).includes("  tools: [ 1 item ],"));
});

test("a long text is cut until it is unfolded, and then broken into lines that lose nothing", () => {
  const text = "word ".repeat(100).trim();
  const cut = linesOf({ text }, shape({ columns: 40 }));
  assert.deepEqual(cut.map((line) => line.kind), ["open", "folded", "close"]);
  const open = linesOf({ text }, shape({ columns: 40, chosen: new Map([["/text", true]]) })).filter((line) => line.kind === "text");
  assert.equal(open.map((line) => line.text).join(" "), text);
  assert(open.every((line) => line.text.length <= 40));
});

test("losses are lines at their places, also at what is folded", () => {
  const loss = { feature: "cache", action: "dropped", grade: "harmless", document: "request", path: "$.tools", detail: "no place" };
  const lines = linesOf({ tools: [{ name: "read" }] }, shape({ losses: new Map([["/tools", [loss]]]) }));
  assert.deepEqual(lines.map((line) => line.kind), ["open", "folded", "loss", "close"]);
  assert.equal(lines[2]?.text, "no place");
});

test("a text is broken where it breaks itself", () => {
  assert.deepEqual(broken("a\n\nb", 10), ["a", "", "b"]);
  assert.deepEqual(broken("one two three", 8), ["one two", "three"]);
  assert.deepEqual(broken("abcdefghij", 4), ["abcd", "efgh", "ij"]);
});

test("names and values are found, each at its pointer", () => {
  const value = { model: "Kimi", messages: [{ content: "about kimi" }, { kimi: 1 }], "a/b": "kimi" };
  assert.deepEqual(find(value, "kimi"), ["/model", "/messages/0/content", "/messages/1/kimi", "/a~1b"]);
  assert.deepEqual(find(value, "kimi", 2), ["/model", "/messages/0/content"]);
  assert.deepEqual(find(value, "nothing"), []);
});

test("the pointers above one lead to it", () => {
  assert.deepEqual(above("/messages/0/content"), ["", "/messages", "/messages/0"]);
  assert.deepEqual(above("/model"), [""]);
});

test("a pointer finds its value, escaped names too, and no inherited ones", () => {
  const value = { "a/b": { "c~d": [1, 2] } };
  assert.equal(at(value, `/${escapeToken("a/b")}/${escapeToken("c~d")}/1`), 2);
  assert.equal(at(value, ""), value);
  assert.equal(at(value, "/missing/more"), undefined);
  assert.equal(at(value, "/constructor"), undefined);
});

test("a pointer is within those above it, and in none that only begins alike", () => {
  assert(within("/messages/1", "/messages"));
  assert(within("/messages", "/messages"));
  assert(!within("/messages/10", "/messages/1"));
});

test("what is no JSON says so", async () => {
  assert.deepEqual(parse("[1]"), { value: [1] });
  assert(parse("{").problem);
  // Without workers, as here, a large text is parsed in place.
  assert.deepEqual(await parseAside(`["${"x".repeat(2_000_001)}"]`).then((found) => Array.isArray(found.value)), true);
});
