import assert from "node:assert/strict";
import { test } from "node:test";
import { curlOf } from "../src/curl";
import { change, count, currencyInUse, duration, inCurrency, lossesOf, lossesTold, money, plural, purposeOf, size, target, worstGrade } from "../src/format";

test("times are shown in the unit that people read", () => {
  const shown = [null, 0, 0.4, 12.6, 999, 1000, 9_990, 59_940, 61_000, 3_600_000].map((ms) => duration(ms));
  assert.deepEqual(shown, ["", "0 ms", "<1 ms", "13 ms", "999 ms", "1.00 s", "9.99 s", "59.9 s", "1 min 1 s", "60 min 0 s"]);
});

test("what rounds to the next unit is shown in that unit", () => {
  assert.deepEqual([999.7, 9_996, 59_970, 119_700].map((ms) => duration(ms)), ["1.00 s", "10.0 s", "1 min 0 s", "2 min 0 s"]);
});

test("numbers, sizes and money have few digits", () => {
  assert.deepEqual([null, 7, 1234, 56_789, 2_500_000].map((value) => count(value)), ["", "7", "1.2k", "57k", "2.5M"]);
  assert.deepEqual([0, 1023, 1536, 5 * 1024 * 1024].map((value) => size(value)), ["0 B", "1023 B", "1.5 KB", "5.0 MB"]);
  assert.deepEqual([null, 0, 50, 1234, 50_000, 3_500_000].map((value) => money(value)), ["", "$0", "<$0.0001", "$0.0012", "$0.050", "$3.50"]);
  assert.deepEqual([plural(1, "loss", "losses"), plural(1200, "event")], ["1 loss", "1,200 events"]);
});

test("losses are counted, and their worst grade named", () => {
  assert.equal(lossesOf({ serious: 1, harmless: 2 }), 3);
  assert.equal(worstGrade({ degraded: 1, harmless: 2 }), "degraded");
  assert.equal(worstGrade(null), "");
});

test("that there are no losses is known of what has ended only", () => {
  assert.equal(lossesTold({ id: "a", at: 0 }), null);
  assert.deepEqual(lossesTold({ id: "a", at: 0, state: "done" }), {});
  assert.equal(lossesTold({ id: "a", at: 0, state: "failed" }), null);
});

test("a row says where it went and what it is for", () => {
  assert.equal(target({ id: "a", at: 0, provider: "kimi", model: "k3" }), "kimi/k3");
  assert.equal(target({ id: "a", at: 0, model: "k3" }), "k3");
  assert.equal(purposeOf({ id: "a", at: 0, purpose: "subagent" }), "sub-agent");
  assert.equal(purposeOf({ id: "a", at: 0, purpose: "subagent", agent_name: "Explore" }), "Explore");
});

test("a request as a command is quoted for the shell, without its key", () => {
  const text = curlOf({ method: "POST", headers: [["Authorization", "Bearer sk-secret"], ["x-a", "it's\u0007"], ["host", "h"]], body: "{\"a\":\"it's\"}" }, "http://g", "/v1/x");
  assert(!text.includes("sk-secret") && !text.includes("\u0007") && !text.includes("host"));
  assert(text.includes('-H "Authorization: Bearer $WIREGLOT_KEY"'));
  assert(text.includes(`--data-raw '{"a":"it'\\''s"}'`), text);
});

test("money is shown in its currency, known to the browser or not", () => {
  assert.equal(inCurrency(1234.5, "USD"), "$1,234.50");
  assert.equal(inCurrency(0.001234, "EUR"), "€0.0012");
  assert.equal(inCurrency(0, "USD"), "$0.00");
  assert.equal(inCurrency(2, "credits"), "2.00 credits");
});

test("amounts of rows are in the currency of the gateway", () => {
  currencyInUse.value = "EUR";
  assert.deepEqual([0, 50, 1234, 3_500_000].map((value) => money(value)), ["€0", "<€0.0001", "€0.0012", "€3.50"]);
  currencyInUse.value = "credits";
  assert.deepEqual([50, 2_000_000].map((value) => money(value)), ["<0.0001 credits", "2.00 credits"]);
  currencyInUse.value = "USD";
});

test("a change is shown where there is something to compare", () => {
  assert.equal(change(124, 100), "▲ 24 % vs. before");
  assert.equal(change(50, 100), "▼ 50 % vs. before");
  assert.equal(change(5, 0), "▲ none before");
  assert.equal(change(0, 0), "");
  assert.equal(change(null, 3), "");
  assert.equal(change(3, undefined), "");
  assert.equal(change(100, 100), "= as before");
  assert.equal(change(109, 100, 11), "≈ as before");
});

test("billions are shown as such", () => {
  assert.deepEqual([1_500_000, 999_949_999, 999_950_000, 11_453_900_000].map(count), ["1.5M", "999.9M", "1.0B", "11.5B"]);
});
