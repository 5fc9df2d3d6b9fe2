import { takeVisited } from "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { flush, go, param, place, setQuery, to, view } from "../src/route";

test("addresses escape what they are made of, and leave out what is empty", () => {
  assert.equal(to([]), "/inspector");
  assert.equal(to(["x", "a/b ?"]), "/inspector/x/a%2Fb%20%3F");
  assert.equal(to([], { q: "a&b", client: "" }), "/inspector?q=a%26b");
});

test("an address leads back to what it was made of", () => {
  go(to(["x", "a/b ?"], { q: "a&b=c" }));
  assert.deepEqual(place.value.path, ["x", "a/b ?"]);
  assert.equal(view.value, "x");
  assert.equal(param("q"), "a&b=c");
  assert.equal(param("none"), "");
});

test("an address that was typed wrong is still an address", () => {
  go("/inspector/x/%E0%A4%A");
  assert.deepEqual(place.value.path, ["x", "%E0%A4%A"]);
});

test("a change of a filter is a step to go back to, a scrub is not", () => {
  go(to(["x", "1"]));
  takeVisited();
  setQuery({ client: "codex" });
  assert.deepEqual(takeVisited(), ["push /inspector/x/1?client=codex"]);
  for (const t of ["1", "2", "3"]) setQuery({ t }, true);
  assert.equal(param("t"), "3"); // the place at once, its address soon after
  assert.deepEqual(takeVisited(), []);
  flush();
  assert.deepEqual(takeVisited(), ["replace /inspector/x/1?client=codex&t=3"]);
  setQuery({ t: "" });
  assert.deepEqual(takeVisited(), ["push /inspector/x/1?client=codex"]);
});

test("a scrub that is pending is written before the next step", () => {
  go(to(["x", "1"]));
  takeVisited();
  setQuery({ t: "5" }, true);
  go(to(["x", "2"]));
  assert.deepEqual(takeVisited(), ["replace /inspector/x/1?t=5", "push /inspector/x/2"]);
});
