import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { options } from "preact";
import { drawNothingWhilePressed } from "../src/pressed";

let page: EventTarget;
let drawings = 0;

/** Something that is in elements which these selectors match. */
const inside = (...selectors: string[]) => ({ closest: (list: string) => (list.split(", ").some((each) => selectors.includes(each)) ? {} : null) });

function happen(type: string, target: object = inside("a"), fields: object = {}): void {
  const event = Object.assign(new Event(type), { button: 0, buttons: 1, ...fields });
  Object.defineProperty(event, "target", { value: target });
  page.dispatchEvent(event);
}

/** As Preact does when something changed. */
const change = () => options.debounceRendering?.(() => drawings++);
const settled = () => Promise.resolve();

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  page = new EventTarget();
  drawings = 0;
  drawNothingWhilePressed(page);
});

afterEach(() => mock.timers.reset());

test("what changes while nothing is pressed is drawn", async () => {
  change();
  await settled();
  assert.equal(drawings, 1);
});

test("what changes while something is pressed is drawn once its click was handled", async () => {
  happen("pointerdown");
  change();
  await settled();
  happen("pointerup");
  assert.equal(drawings, 0);
  happen("click");
  assert.equal(drawings, 1);
});

test("a press without a click ends soon after it, however the pointer moves", () => {
  for (const end of ["pointerup", "pointercancel", "contextmenu", "dragstart", "pointermove"]) {
    drawings = 0;
    happen("pointerdown");
    change();
    happen("pointermove");
    mock.timers.tick(1000);
    assert.equal(drawings, 0);
    happen(end, inside("a"), { buttons: 0 });
    mock.timers.tick(30);
    happen("pointermove", inside("a"), { buttons: 0 });
    assert.equal(drawings, 0);
    mock.timers.tick(30);
    assert.equal(drawings, 1, end);
  }
});

test("the end of one press does not end the next", () => {
  happen("pointerdown");
  happen("pointerup");
  mock.timers.tick(30);
  happen("pointerdown");
  change();
  mock.timers.tick(30);
  assert.equal(drawings, 0);
  happen("click");
  assert.equal(drawings, 1);
});

test("what slides, scrolls or is typed into is drawn while it is held, and so is all under another button", async () => {
  happen("pointerdown", inside("label", "input:not([type=checkbox])"));
  change();
  happen("pointerdown", inside());
  change();
  happen("pointerdown", inside("button"), { button: 2 });
  change();
  await settled();
  assert.equal(drawings, 3);
});
