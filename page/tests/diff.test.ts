import assert from "node:assert/strict";
import { test } from "node:test";
import { type Piece, alike, diff } from "../src/diff";

const side = (pieces: Piece[], kind: "left" | "right") => pieces.filter((piece) => piece.kind === "same" || piece.kind === kind).map((piece) => piece.text).join("");
const shown = (pieces: Piece[]) => pieces.map((piece) => ({ same: " ", left: "-", right: "+" })[piece.kind] + piece.text);

test("a difference is found word by word", () => {
  assert.deepEqual(shown(diff("the quick fox", "the slow fox")), [" the ", "-quick", "+slow", "  fox"]);
});

test("equal texts are one piece, and nothing is none", () => {
  assert.deepEqual(diff("same", "same"), [{ kind: "same", text: "same" }]);
  assert.deepEqual(diff("", ""), []);
});

test("a text that was added or taken away whole is one piece", () => {
  assert.deepEqual(diff("", "new"), [{ kind: "right", text: "new" }]);
  assert.deepEqual(diff("old", ""), [{ kind: "left", text: "old" }]);
});

test("both texts can be put together again from the pieces", () => {
  const words = ["one", " ", "two", "\n", "three", ", ", "four", "\t", "é", "日本"];
  // A generator with a fixed seed: the same texts at every run.
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % below;
  };
  for (let run = 0; run < 200; run++) {
    const make = () => Array.from({ length: next(12) }, () => words[next(words.length)]).join("");
    const [left, right] = [make(), make()];
    const pieces = diff(left, right);
    assert.equal(side(pieces, "left"), left);
    assert.equal(side(pieces, "right"), right);
  }
});

test("texts that are too different for a word-by-word comparison still come out whole", () => {
  const left = Array.from({ length: 3000 }, (_, index) => `a${index}`).join(" ");
  const right = Array.from({ length: 3000 }, (_, index) => `b${index}`).join(" ");
  const pieces = diff(left, right);
  assert.equal(side(pieces, "left"), left);
  assert.equal(side(pieces, "right"), right);
});

test("long texts are compared line by line", () => {
  const lines = Array.from({ length: 2000 }, (_, index) => `line ${index} with some words`);
  const changed = lines.map((line, index) => (index === 1000 ? "another line" : line));
  const pieces = diff(lines.join("\n"), changed.join("\n"));
  assert.deepEqual(shown(pieces).filter((text) => !text.startsWith(" ")), ["-line 1000 with some words\n", "+another line\n"]);
});

test("how alike two texts are is between 0 and 1", () => {
  assert.equal(alike(diff("abc", "abc")), 1);
  assert.equal(alike(diff("abc", "xyz")), 0);
  const half = alike(diff("one two", "one three"));
  assert(half > 0.3 && half < 0.8, String(half));
  assert.equal(alike([]), 1);
});
