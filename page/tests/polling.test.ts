import assert from "node:assert/strict";
import { test } from "node:test";
import { every } from "../src/polling";

test("a tab that is hidden asks for nothing, and at once when it is seen again", () => {
  const document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  let tick: () => void = () => undefined;
  const before = { setInterval, clearInterval };
  Object.assign(globalThis, { document, setInterval: (call: () => void) => { tick = call; }, clearInterval: () => { tick = () => undefined; } });
  const show = (state: string) => {
    document.visibilityState = state;
    document.dispatchEvent(new Event("visibilitychange"));
  };
  let times = 0;
  const leave = every(1000, () => times++);
  tick();
  assert.equal(times, 2);
  show("hidden");
  tick();
  tick();
  assert.equal(times, 2);
  show("visible");
  assert.equal(times, 3);
  show("hidden");
  show("visible"); // nothing was missed
  assert.equal(times, 3);
  leave();
  tick();
  assert.equal(times, 3);
  Object.assign(globalThis, before);
});
