import assert from "node:assert/strict";
import { test } from "node:test";
import { listOptions, matching, namesOf } from "../src/options";
import { optionsOf } from "../src/targets";

const ids = (typed: string, names: string[]) => matching(names.map((id) => ({ id })), typed).map((each) => each.id);

test("options have all words that are typed, and those that begin with them are first", () => {
  const names = ["openai/gpt-5.5", "demo/demo-gemini", "gemini/gemini-3-pro"];
  assert.deepEqual(ids("", names), names);
  assert.deepEqual(ids("gemini", names), ["gemini/gemini-3-pro", "demo/demo-gemini"]);
  assert.deepEqual(ids("PRO gemini", names), ["gemini/gemini-3-pro"]);
  assert.deepEqual(ids("nothing", names), []);
});

test("a list of names goes on with its last one, and names none twice", () => {
  assert.deepEqual(namesOf(" a/b ,, c "), ["a/b", "c"]);
  const options = (text: string) => listOptions(text, ["a/b", "c/d"]).map((each) => each.id);
  assert.deepEqual(options(""), ["a/b", "c/d"]);
  assert.deepEqual(options("a"), ["a/b", "c/d"]);
  assert.deepEqual(options("a/b, c"), ["a/b, c/d"]);
  assert.deepEqual(matching(listOptions("a/b, c", ["a/b", "c/d"]), "a/b, c").map((each) => each.id), ["a/b, c/d"]);
});

test("a model says its context, or that it cannot be sent to", () => {
  const targets = [{ id: "demo/demo", on: true, context: 200_000 }, { id: "openai/gpt", on: false }, { id: "mine/x", on: true }];
  assert.deepEqual(optionsOf(targets, true), [{ id: "demo/demo", note: "200k context" }, { id: "openai/gpt", note: "not configured" }, { id: "mine/x", note: "" }]);
  assert.deepEqual(optionsOf(targets, false).map((each) => each.id), ["demo/demo", "mine/x"]);
});
