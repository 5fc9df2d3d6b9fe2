import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheTotals, cacheWords, isBroken, totalsWords } from "../src/cache";
import type { CacheTruth } from "../src/types";

const turn = (verdict: CacheTruth["verdict"], more: Partial<CacheTruth> = {}): CacheTruth => ({ id: verdict, at: 0, verdict, ...more });

test("a turn says what came from the cache and what could have", () => {
  assert.equal(cacheWords(turn("first")), "first turn");
  assert.equal(cacheWords(turn("hit", { cached: 4992, expected: 5000 })), "4,992 of ≈5,000 cached");
  assert.equal(cacheWords(turn("none", { cached: 0, expected: 0 })), "0 cached, none expected");
  assert.equal(cacheWords(turn("unknown", { expected: 5000 })), "? of ≈5,000 cached");
  assert.equal(cacheWords(turn("unknown")), "? cached");
});

test("a conversation adds up what is known, and names the turns that broke it", () => {
  const totals = cacheTotals([
    turn("first"),
    turn("hit", { cached: 6000, expected: 5000 }), // another conversation had warmed it
    turn("missed", { cached: 0, expected: 5000 }),
    turn("none", { cached: 0, expected: 0, broken: { reason: "another model" } }),
    turn("unknown", { expected: 5000 }),
  ]);
  assert.deepEqual([totals.cached, totals.expected, totals.known, totals.unknown], [5000, 10000, 3, 1]);
  assert.deepEqual(totals.broken.map((each) => each.id), ["missed", "none"]);
  assert.equal(totalsWords(totals), "5,000 of about 10,000 tokens that could come from the cache did (50 %); 1 turn cannot be judged.");
  assert(!isBroken(turn("hit")));
});

test("what is not known is not called zero", () => {
  assert.equal(totalsWords(cacheTotals([turn("unknown"), turn("first")])), "How much should have come from the cache is not known; 1 turn cannot be judged.");
  assert.equal(totalsWords(cacheTotals([turn("none", { expected: 0, cached: 0 })])), "Nothing could have come from the cache.");
});
