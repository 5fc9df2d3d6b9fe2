import assert from "node:assert/strict";
import { test } from "node:test";
import { signsOf, spacedOtherwise, spotsOf } from "../src/whitespace";

test("texts that differ in white space alone are found by their places", () => {
  const mine = { system: "be  kind", messages: [{ content: [{ type: "text", text: "a\nb" }] }, { content: "same" }, { content: "words" }] };
  const theirs = { messages: [{ content: "be kind\n" }, { content: "a b" }, { content: "same" }, { content: "others" }] };
  const links = [
    { client: "/system", upstream: "/messages/0/content" },
    { client: "/messages/0/content/0", upstream: "/messages/1" },
    { client: "/messages/1/content", upstream: "/messages/2/content" },
    { client: "/messages/2/content", upstream: "/messages/3/content" },
    { client: "/gone", upstream: "/messages/0" },
  ];
  assert.deepEqual([...spacedOtherwise(links, "client", mine, theirs)], [["/system", "be kind\n"], ["/messages/0/content/0", "a b"]]);
  assert.deepEqual([...spacedOtherwise(links, "upstream", theirs, mine).keys()], ["/messages/0/content", "/messages/1"]);
  assert.equal(spacedOtherwise(links, "client", mine, undefined).size, 0);
});

test("each place is shown with the words around it", () => {
  assert.deepEqual(spotsOf("one  two\nthree", "one two\nthree\n"), {
    spots: [
      { before: "one ", mine: " ", theirs: "", after: "two\nthree" },
      { before: "two\nthree", mine: "", theirs: "\n", after: "" },
    ],
    total: 2,
  });
});

test("places in long texts, compared line by line, are narrowed to where they part", () => {
  const lines = Array.from({ length: 1500 }, (_, index) => `line ${index} with some words`);
  const { spots, total } = spotsOf(lines.join("\n"), lines.map((line, index) => (index === 700 ? line.replace("with ", "with\t") : line)).join("\n"));
  assert.equal(total, 1);
  assert.deepEqual(spots, [{ before: "ords\nline 700 with", mine: " ", theirs: "\t", after: "some words\nline 70".slice(0, 18) }]);
});

test("many places are counted and some are shown", () => {
  const found = spotsOf(Array(50).fill("a  b.").join(""), Array(50).fill("a b.").join(""));
  assert.deepEqual([found.spots.length, found.total], [8, 50]);
});

test("white space has signs, and what has none its number", () => {
  assert.equal(signsOf(" \n\t\r\u00a0\u2003"), "␣⏎⇥␍⍽U+2003");
});
