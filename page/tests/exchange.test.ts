import "./browser";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Exchange, eventInFocus, grown, growingEvents } from "../src/exchange";
import { waitWord, waitsFor } from "../src/format";
import { partners, placeParts, withAnalysis } from "../src/links";
import { readRequest } from "../src/reading";
import { go, to } from "../src/route";
import { eventsOf } from "../src/stream";
import type { Frame, Link, Trace, TracedLoss } from "../src/types";

const LINKS: Link[] = [
  { client: "", upstream: "" },
  { client: "/system/0", upstream: "/messages/0" },
  { client: "/system/1", upstream: "/messages/0" },
  { client: "/messages/0/content", upstream: "/messages/1/content" },
  { client: "/messages/0/content", upstream: "/messages/1/name" },
];

test("partners are those of the closest link that holds a part", () => {
  assert.deepEqual(partners(LINKS, "client", "/messages/0/content/3/text"), ["/messages/1/content", "/messages/1/name"]);
  assert.deepEqual(partners(LINKS, "upstream", "/messages/0"), ["/system/0", "/system/1"]);
  assert.deepEqual(partners(LINKS, "client", "/model"), [""]);
  assert.deepEqual(partners(LINKS.slice(1), "client", "/system"), ["/messages/0", "/messages/0"]); // what is in it
  assert.deepEqual(partners([], "client", "/model"), []);
});

const loss = (more: Partial<TracedLoss>): TracedLoss => ({ feature: "f", action: "dropped", grade: "harmless", document: "request", path: "$", ...more });

test("losses and links belong to the closest part, those of a message to its first, those of a setting to none", () => {
  const parts = readRequest({ tools: [{ name: "t" }], messages: [{ role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] }] });
  const [tool, a, b] = parts;
  assert(tool && a && b);
  const within = loss({ pointer: "/messages/0/content/1/cache_control" });
  const message = loss({ pointer: "/messages/0/name" });
  const setting = loss({ pointer: "/top_k" });
  const placed = placeParts(parts, new Map([within, message, setting].map((each) => [each.pointer ?? "", [each]])), new Set(["/tools/0", "/messages/0"]));
  assert.deepEqual(placed.lost.get(b), [within]);
  assert.deepEqual(placed.lost.get(a), [message]);
  assert.deepEqual([...placed.beside], [["/top_k", [setting]]]);
  assert.deepEqual([...placed.joined], [tool, a]);
});

const TRACE: Trace = {
  row: { id: "x1", at: 0, state: "done", dialect: "anthropic" },
  request: { method: "POST", body: "{}" },
  answer: { status: 200, frames: [{ ms: 10, data: "data: 1\n\n" }, { ms: 30, data: "data: 2\n\n" }] },
  attempts: [
    { provider: "p", model: "one", dialect: "openai-chat", answer: { status: 503, body: "{}" } },
    { provider: "p", model: "two", dialect: "gemini", request: { body: "[]" }, answer: { status: 200, frames: [{ ms: 5, data: "data: a\n\n" }, { ms: 20, data: "data: b\n\n" }] } },
  ],
};

const REPORTED: Trace = {
  row: TRACE.row,
  request: {},
  answer: { folded: "{}", caused_by: "events", frames: [{ ms: 0, data: "", causes: [0] }, { ms: 0, data: "", causes: [1] }] },
  attempts: [
    { provider: "p", model: "one", dialect: "openai-chat" },
    { provider: "p", model: "two", dialect: "gemini", links: LINKS },
  ],
  losses: [loss({ pointer: "/system/0", upstream: "/messages/0" }), loss({ document: "answer", pointer: "/usage" })],
};

test("the analysis joins the bodies, and leaves them where the exchange is gone", () => {
  const whole = withAnalysis(TRACE, REPORTED);
  assert.equal(whole.request?.body, "{}");
  assert.equal(whole.answer?.folded, "{}");
  assert.deepEqual(whole.answer?.frames?.map((frame) => [frame.data, frame.causes]), [["data: 1\n\n", [0]], ["data: 2\n\n", [1]]]);
  assert.equal(whole.attempts?.[1]?.request?.body, "[]");
  assert.equal(whole.attempts?.[1]?.links, LINKS);
  assert.equal(withAnalysis(TRACE, { row: TRACE.row }), TRACE);
});

function shown(query: Record<string, string>): Exchange {
  go(to(["x", "x1"], query));
  const exchange = new Exchange("x1");
  exchange.trace.value = withAnalysis(TRACE, REPORTED);
  return exchange;
}

const side = (exchange: Exchange, name: string) => {
  const found = exchange.sides.find((each) => each.name === name);
  assert(found);
  return found;
};

test("the last attempt is shown, or the one that the address names", () => {
  assert.equal(shown({}).attempt.value?.model, "two");
  assert.equal(shown({ try: "0" }).attempt.value?.model, "one");
  assert.equal(shown({ try: "7" }).attempt.value?.model, "two");
  assert.equal(side(shown({}), "upstream-answer").about.value, "gemini · 200");
});

test("a chosen part marks its partners on the other side and nothing of the other document", () => {
  const exchange = shown({ sel: "client-request:/system/1" });
  assert.deepEqual(side(exchange, "client-request").lit.value, ["/system/1"]);
  assert.deepEqual(side(exchange, "upstream-request").lit.value, ["/messages/0"]);
  assert.deepEqual(side(exchange, "upstream-answer").lit.value, []);
  assert(side(exchange, "client-request").isChosen.value && !side(exchange, "upstream-request").isChosen.value);
  assert.equal(shown({ sel: "nonsense" }).chosen.value, null);
});

test("losses are at their places on each side", () => {
  const exchange = shown({});
  assert.deepEqual([...side(exchange, "client-request").losses.value.keys()], ["/system/0"]);
  assert.deepEqual([...side(exchange, "upstream-request").losses.value.keys()], ["/messages/0"]);
  assert.deepEqual([...side(exchange, "client-answer").losses.value.keys()], ["/usage"]);
  assert.deepEqual([...side(exchange, "upstream-answer").losses.value.keys()], []);
});

test("a moment shows the events that had come by then, and marks the newest with its partner", () => {
  const exchange = shown({ t: "12" });
  assert.equal(side(exchange, "client-answer").visible.value, 1);
  assert.equal(side(exchange, "upstream-answer").visible.value, 1);
  assert.equal(side(exchange, "client-request").visible.value, 0);
  assert.deepEqual(exchange.focus.value, { side: "client", index: 0, chosen: false });
  assert.deepEqual(side(exchange, "client-answer").litEvents.value, [0]);
  assert.deepEqual(side(exchange, "upstream-answer").litEvents.value, [0]);
  assert.equal(side(exchange, "client-answer").chosenEvent.value, -1);
});

test("an event that is chosen by hand is in focus, unless there is none of that number", () => {
  const [client, upstream] = [eventsOf(TRACE.answer?.frames ?? []), eventsOf(TRACE.attempts?.[1]?.answer?.frames ?? [])];
  assert.deepEqual(eventInFocus("upstream:1", null, client, upstream), { side: "upstream", index: 1, chosen: true });
  assert.equal(eventInFocus("upstream:9", null, client, upstream), null);
  assert.equal(eventInFocus("other:0", null, client, upstream), null);
  assert.equal(eventInFocus("", 1, client, upstream), null);
  assert.deepEqual(eventInFocus("", 6, client, upstream), { side: "upstream", index: 0, chosen: false });
});

test("a stream that grows is read once, and numbers its events on", () => {
  const events = growingEvents();
  const frame = (ms: number): Frame => ({ ms, data: `data: {"n":${ms}}\n\n` });
  const first = [frame(1), frame(2)];
  const before = events(first);
  const more = [...first, frame(3)];
  const after = events(more);
  assert.deepEqual(after.map((each) => each.frame), [0, 1, 2]);
  assert.equal(after[0], before[0]);
  assert.equal(events(more), after);
  assert.equal(events(more.map((each) => ({ ...each, causes: [0] }))), after); // links that come later
  const other = [frame(1), { ms: 2, data: "data: [DONE]\n\n" }, frame(3)]; // of another attempt
  assert.equal(events(other)[1]?.data, "[DONE]");
  assert.deepEqual(events([frame(9)]).map((each) => each.ms), [9]);
});

test("what is new of a running exchange joins what was known", () => {
  const row = { id: "x", at: 0 };
  const frame = (ms: number): Frame => ({ ms, data: "data: {}\n\n" });
  const first = grown(null, {
    row,
    request: { body: "{}" },
    attempts: [{ provider: "a", model: "m", dialect: "d", request: { body: "asked" }, answer: { status: 200, frames: [frame(1)] } }],
    answer: { status: 200, frames: [frame(2)] },
  });
  const second = grown(first, {
    row,
    first_attempt: 0,
    attempts: [
      { provider: "a", model: "m", dialect: "d", error: "broke", answer: { status: 200, frames: [frame(3)] } },
      { provider: "b", model: "m", dialect: "d", request: { body: "again" } },
    ],
    answer: { status: 200, frames: [] },
  });
  assert.equal(second.request?.body, "{}");
  assert.deepEqual(second.answer?.frames?.map((each) => each.ms), [2]);
  assert.deepEqual(second.attempts?.map((each) => each.request?.body), ["asked", "again"]);
  assert.deepEqual(second.attempts?.[0]?.answer?.frames?.map((each) => each.ms), [1, 3]);
  assert.equal(second.attempts?.[0]?.error, "broke");
});

test("one that hangs says what it waits for", () => {
  const row = { id: "x", at: 0, provider: "kimi", model: "k3" };
  assert.equal(waitsFor({ ...row, waits_for: "first byte" }, 0), "waits for the first byte of the answer of kimi/k3");
  assert.equal(waitsFor({ ...row, waits_for: "retry", waits_until: 102 }, 100), "waits for the next attempt, in 2.00 s");
  assert.equal(waitsFor({ ...row, waits_for: "retry", waits_until: 90 }, 100), "waits for the next attempt");
  assert.equal(waitsFor(row, 0), "");
  const words = ["store", "retry", "first byte", ""].map((each) => waitWord({ ...row, waits_for: each }));
  assert.deepEqual(words, ["store", "retry wait", "waiting", "waiting"]);
  assert.equal(waitWord({ ...row, first_ms: 5, waits_for: "next event" }), "streaming");
});

test("a provider's silence is measured by its own events, whatever the client is sent meanwhile", () => {
  const pings = [15_000, 30_000, 45_000].map((ms) => ({ ms, data: 'event: ping\ndata: {"type": "ping"}\n\n' }));
  const hung = (attempts: Trace["attempts"]): Exchange => {
    go(to(["x", "x1"]));
    const exchange = new Exchange("x1");
    exchange.trace.value = {
      row: { id: "x1", at: 0, state: "running", waits_for: "next event" },
      request: {},
      answer: { frames: [{ ms: 210, data: 'event: content\ndata: {"type": "content"}\n\n' }, ...pings] },
      attempts: attempts ?? [],
      steps: [{ name: "events", began_ms: 100, ended_ms: 50_000 }],
      now_ms: 50_000,
    };
    return exchange;
  };
  const asked = hung([{ provider: "p", model: "m", dialect: "d", answer: { status: 200, frames: [{ ms: 200, data: "data: {}\n\n" }] } }]);
  assert.equal(asked.waitsSince.value, 200);
  assert.deepEqual(asked.pace.value.map((event) => event.ms), [200]);
  assert.equal(asked.hungUntil.value, 50_000);
  // Nothing of it yet: what the gateway wrote by itself is no event of the provider.
  const silent = hung([{ provider: "p", model: "m", dialect: "d" }]);
  assert.equal(silent.waitsSince.value, 100);
  assert.deepEqual(silent.pace.value, []);
  assert.deepEqual(hung([]).pace.value.map((event) => event.ms), [210]);
});
