import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { groupLosses, habitOf, habitsOf, lossesByFeature, lossesByRarity, rarityOf } from "../src/habits";
import { COLUMNS, fitting } from "../src/columns";
import { SORTS, compareBy, merged } from "../src/order";
import { DEFAULT_COLUMNS, readRemembered, withView } from "../src/saved";
import { isUnfinished, suggestions } from "../src/suggest";
import type { Row } from "../src/types";

const row = (id: string, at: number, more: Partial<Row> = {}): Row => ({ id, at, ...more });
const ids = (rows: Row[]) => rows.map((each) => each.id).join("");

test("rows are in the order of a column, and what has no value comes last either way", () => {
  const rows = [row("a", 1, { cost: 5 }), row("b", 2), row("c", 3, { cost: 0 }), row("d", 4, { cost: 5 })];
  assert.equal(ids([...rows].sort(compareBy(""))), "dcba");
  assert.equal(ids([...rows].sort(compareBy("time"))), "abcd");
  assert.equal(ids([...rows].sort(compareBy("-cost"))), "dacb");
  assert.equal(ids([...rows].sort(compareBy("cost"))), "cadb");
  const named = [row("a", 1, { client: "b" }), row("b", 2, { client: "" }), row("c", 3, { client: "A" })];
  assert.equal(ids([...named].sort(compareBy("client"))), "cab");
  assert.equal(ids([...named].sort(compareBy("-client"))), "acb");
});

test("every column but the last words is one to sort by", () => {
  assert.deepEqual(COLUMNS.flatMap((column) => (column.sort ? [] : [column.id])), ["title"]);
  assert.deepEqual(COLUMNS.flatMap((column) => column.sort ?? []).sort(), [...SORTS].sort());
});

test("changes are merged into a list where they belong", () => {
  const compare = compareBy("");
  const old = [row("d", 4), row("c", 3), row("a", 1)];
  const changed = row("c", 3, { status: 200 });
  const result = merged(old, new Map<string, Row | null>([["c", changed], ["b", row("b", 2)], ["e", row("e", 5)], ["d", null]]), compare);
  assert.equal(ids(result), "ecba");
  assert.equal(result[1], changed);
  const moved = merged([row("b", 2, { cost: 9 }), row("a", 1, { cost: 5 })], new Map([["a", row("a", 1, { cost: 10 })]]), compareBy("-cost"));
  assert.equal(ids(moved), "ab");
});

const FIELDS = [
  { name: "client", about: "program" },
  { name: "cost", about: "amount" },
  { name: "status", about: "number", values: ["2xx", ">=400", "failed"] },
];
const SEEN = { client: ["claude-code", "codex", "a tool"] };

function offered(text: string, caret = text.length): string[] {
  return suggestions(text, caret, FIELDS, SEEN).options.map((each) => each.text);
}

test("fields and seen values are suggested for the word at the caret", () => {
  assert.deepEqual(offered(""), ["client:", "cost:", "status:"]);
  assert.deepEqual(offered("is:x -c"), ["-client:", "-cost:"]);
  assert.deepEqual(offered("client:c"), ["client:claude-code", "client:codex"]);
  assert.deepEqual(offered("client:code"), ["client:codex", "client:claude-code"]);
  assert.deepEqual(offered("client:codex,cl"), ["client:codex,claude-code"]);
  assert.deepEqual(offered("client:~co"), ["client:~codex", "client:~claude-code"]);
  assert.deepEqual(offered("client:tool"), ['client:"a tool"']);
  assert.deepEqual(offered('client:"a t'), ['client:"a tool"']);
  assert.deepEqual(offered("status:"), ["status:2xx", "status:>=400", "status:failed"]);
  assert.deepEqual(offered("client:codex"), []);
  assert.deepEqual(offered("nothing:"), []);
  assert.deepEqual(offered("$x"), []);
  assert.deepEqual(suggestions("status:2 rest", 8, FIELDS, SEEN), { from: 0, to: 8, options: [{ text: "status:2xx", note: "" }] });
  assert.deepEqual(suggestions('"some words" st', 15, FIELDS, SEEN).from, 13);
});

test("a term whose value is still to come is not sent", () => {
  for (const text of ["status:", "a -client:", "cost:>", "cost:>=", 'client:"', 'client:"a to', "model:~"]) assert(isUnfinished(text), text);
  for (const text of ["", "status", "status:2", "client: ", 'client:"a"', "cost:>1", "http://x"]) assert(!isUnfinished(text), text);
});

test("losses that are usual for a client and a provider are distinguished from new ones", () => {
  const habits = habitsOf([
    { client: "c", provider: "p", exchanges: 100, features: { always: 90, rare: 1, some: 10 } },
    { client: "c", provider: "q", exchanges: 4, features: { always: 1 } },
  ]);
  const found = lossesByRarity(row("a", 1, { client: "c", provider: "p", features: ["always", "rare", "some", "unseen"] }), habits);
  assert.deepEqual(found, { fresh: ["rare", "unseen"], usual: ["always"], other: ["some"] });
  assert.equal(rarityOf(habits.get("c\u0000q"), "always"), ""); // too little is known
  assert.equal(rarityOf(undefined, "always"), "");
  assert.deepEqual(lossesByFeature(habits).map((each) => [each.feature, each.rarity, each.times]), [["rare", "new", 1], ["always", "", 91], ["some", "", 10]]);
});

test("the losses of one exchange are grouped: new features first, then the worst, usual ones last", () => {
  const habits = habitsOf([{ client: "c", provider: "p", exchanges: 100, features: { always: 90, rare: 1, some: 10, other: 10 } }]);
  const loss = (feature: string, grade: string) => ({ feature, grade, action: "dropped", document: "request", path: "$" });
  const losses = [loss("always", "harmless"), loss("some", "harmless"), loss("other", "harmless"), loss("other", "serious"), loss("rare", "harmless"), loss("always", "degraded")];
  const groups = groupLosses(losses, habitOf(habits, row("a", 1, { client: "c", provider: "p" })));
  assert.deepEqual(groups.map((each) => [each.feature, each.rarity, each.grade, each.losses.length]), [
    ["rare", "new", "harmless", 1],
    ["other", "", "serious", 2],
    ["some", "", "harmless", 1],
    ["always", "usual", "degraded", 2],
  ]);
  assert.deepEqual(groupLosses(losses, undefined).map((each) => each.rarity), ["", "", "", ""]);
});

test("what a browser remembers is read whatever it is", () => {
  const nothing = { columns: DEFAULT_COLUMNS, views: [], beside: null };
  for (const text of [null, "", "{", "[]", "null", "5", '{"columns": 5, "views": [null, {"name": 1}], "beside": "x"}']) assert.deepEqual(readRemembered(text), nothing, text ?? "null");
  const view = { name: "mine", query: "client=codex", columns: ["time"] };
  assert.deepEqual(readRemembered(JSON.stringify({ columns: ["time"], views: [view], beside: true })), { columns: ["time"], views: [view], beside: true });
  assert.deepEqual(withView([view, { ...view, name: "z" }], { ...view, query: "q=a" }), [{ ...view, query: "q=a" }, { ...view, name: "z" }]);
});

test("columns give way where there is no room for all, the least needed first", () => {
  const all = DEFAULT_COLUMNS;
  assert.deepEqual(fitting(all, 2000).map((each) => each.id), all);
  const few = fitting(all, 520).map((each) => each.id);
  assert(few.includes("time") && few.includes("status") && !few.includes("cost"), few.join());
  assert.deepEqual(few, all.filter((each) => few.includes(each)));
  assert.deepEqual(fitting(["nonsense", "cost"], 2000).map((each) => each.id), ["time", "cost"]);
});
