import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { STEPS, axisWidth, moment } from "../src/axis";
import { type Dashboard, gradeOf, grouped, isPriced, seriesOf, spanOf } from "../src/figures";

const total = { requests: 6, errors: 0 };
const group = (name: string, ...requests: number[]) => ({ name, total, series: { requests } });
const page = (more: Partial<Dashboard>): Dashboard => ({ from: 0, to: 2, step: 1, by: "model", times: [0, 1], total, series: { requests: [9, null] }, groups: [], ...more });

test("groups that are not drawn are one line, so that all lines together are all requests", () => {
  assert.deepEqual(grouped(page({}), "requests"), [{ name: "all", values: [9, null] }]);
  const groups = ["a", "", "c", "d", "e", "f"].map((name) => group(name, 1, 0));
  const lines = grouped(page({ groups }), "requests");
  assert.deepEqual(lines.map((each) => each.name), ["a", "none", "c", "d", "e", "all others"]);
  assert.deepEqual(lines.at(-1)?.values, [4, 0]);
  assert.equal(grouped(page({ groups: groups.slice(0, 5) }), "requests").length, 5);
  assert.equal(grouped(page({ groups: groups.slice(0, 5), more_groups: 3 }), "requests").at(-1)?.name, "all others");
});

test("tokens of a cache are drawn apart from the other input", () => {
  const { tokens, latency } = seriesOf(page({ series: { input_tokens: [10, 5], cached_tokens: [4, null], output_tokens: [1, 2], latency_p95: [7, 8] } }));
  assert.deepEqual(tokens.map((each) => each.values), [[6, 5], [4, null], [1, 2]]);
  assert.deepEqual(latency.map((each) => [each.name, each.values]), [["p50", []], ["p95", [7, 8]], ["p99", []]]);
});

test("a range has days, one of which may be open, or ends now", () => {
  assert.deepEqual(spanOf("", "", ""), { from: "1h" });
  assert.deepEqual(spanOf("30d", "", ""), { from: "30d" });
  assert.deepEqual(spanOf("30d", "2026-11-01", ""), { from: "2026-11-01", to: "" });
  assert.deepEqual(spanOf("", "", "2026-11-03"), { from: "all", to: "2026-11-03" });
});

test("a loss has the one grade of its feature, the worst that was counted, or none", () => {
  const losses = [{ feature: "seed", requests: 1, grade: "degraded" }, { feature: "image", requests: 1 }, { feature: "old", requests: 1 }];
  const counted = [{ feature: "image", grade: "harmless", requests: 2 }, { feature: "image", grade: "serious", requests: 1 }];
  const all = page({ losses, health: { providers: [], losses: counted } });
  assert.deepEqual(losses.map((each) => gradeOf(all, each.feature)), ["degraded", "serious", ""]);
  assert.equal(gradeOf(page({ losses }), "image"), "");
});

test("a price is known of what ended, or of nothing", () => {
  assert.equal(isPriced({ ...total, unpriced: 5 }), true);
  assert.equal(isPriced({ ...total, unpriced: 5, open: 1 }), false);
});

test("an axis has steps for any number, and room for its labels", () => {
  for (let power = 1; power < 14; power++) assert(STEPS.includes(2 * 10 ** power) && STEPS.includes(5 * 10 ** power), `10^${power}`);
  assert(axisWidth(["1 min 0 s"]) > axisWidth(["20.0 s"]));
  assert(axisWidth(null) > 30);
  const at = new Date(2026, 10, 19, 0, 0, 0).getTime() / 1000;
  assert.deepEqual([60, 3600, 2 * 86_400, 90 * 86_400].map((span) => moment(at, span)), ["00:00:00", "00:00", "11-19", "11-19"]);
});
