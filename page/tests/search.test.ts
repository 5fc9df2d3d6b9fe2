import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Exchange } from "../src/exchange";
import { find } from "../src/json/lines";
import { type Json, parse } from "../src/json/parse";
import { pretty } from "../src/reading";
import { marked, searchSide, snippet } from "../src/search";

test("a hit is shown with what is around it", () => {
  assert.deepEqual(snippet("about Kimi, the model", "kimi"), { before: "about ", found: "Kimi", after: ", the model" });
  const long = snippet(`${"a".repeat(100)}HIT${"b".repeat(100)}`, "hit");
  assert(long?.before.startsWith("…") && long.after.endsWith("…") && long.before.length < 60);
  assert.equal(snippet("nothing", "kimi"), null);
});

test("a text is cut where it has the words, and put together again it is the same", () => {
  assert.deepEqual(marked("a Cat, a cat", "cat"), ["a ", "Cat", ", a ", "cat", ""]);
  assert.deepEqual(marked("no", "cat"), ["no"]);
  assert.deepEqual(marked("a", "a"), ["a"]); // one letter is everywhere
  assert.deepEqual(marked("İ cat", "cat"), ["İ cat"]); // its small form is longer: places would be wrong
});

test("values, names, events and plain bodies are searched", () => {
  const exchange = new Exchange("x");
  exchange.trace.value = {
    row: { id: "x", at: 0, state: "done" },
    request: { body: "not JSON, but a needle" },
    answer: { frames: [{ ms: 1, data: 'data: {"choices":[{"delta":{"content":"a needle too"}}]}\n\n' }] },
  };
  const [request, upstream, answer] = exchange.sides;
  assert(request && upstream && answer);
  assert.deepEqual(searchSide(request, "needle").map((hit) => [hit.pointer, hit.before]), [["", "not JSON, but a "]]);
  assert.deepEqual(searchSide(answer, "needle").map((hit) => [hit.event, hit.after]), [[0, " too"]]);
  upstream.value.value = { needle: { deep: 1 }, list: ["x", "my needle"] };
  assert.deepEqual(searchSide(upstream, "Needle").map((hit) => [hit.pointer, hit.found]), [["/needle", "needle"], ["/list/1", "needle"]]);
  assert.deepEqual(searchSide(upstream, "n"), []);
});

test("a text is marked at a thousand places at most, and a nesting without an end is not followed", () => {
  assert.equal(marked("ab".repeat(5000), "ab").length, 2001);
  assert.equal(marked("ab".repeat(5000), "ab").join(""), "ab".repeat(5000));
  const deep = parse("[".repeat(100_000) + '"ab"' + "]".repeat(100_000)).value as Json;
  assert.deepEqual(find(deep, "ab"), []);
  assert(pretty(deep).includes("nested too deeply"));
});
