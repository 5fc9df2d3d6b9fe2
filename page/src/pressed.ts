// What is pressed stays where it is until it is released: a browser drops the click when the line under the pointer has
// moved, or was replaced, since the button went down.
import { options } from "preact";

/** What a click is for. All else is drawn while a button is down: what scrolls, slides, or is typed into. */
const CLICKED = "a, button, summary, label, .part, [role=row], [role=option], [role=treeitem]";
const FIELDS = "input:not([type=checkbox]), select, textarea";
/** A finger is lifted some time before its click; a pointer that leaves what it pressed makes none. */
const CLICK_MS = 50;

/** Draws nothing from the moment something is pressed until its click was handled. */
export function drawNothingWhilePressed(page: Pick<EventTarget, "addEventListener">): void {
  let isPressed = false;
  let draw: (() => void) | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  options.debounceRendering = (process) => {
    if (isPressed) draw = process;
    else queueMicrotask(process);
  };
  const release = () => {
    clearTimeout(timer);
    timer = undefined;
    isPressed = false;
    const process = draw;
    draw = null;
    process?.();
  };
  const press = (event: Event) => {
    release();
    const target = event.target as Element;
    isPressed = (event as PointerEvent).button === 0 && target.closest(CLICKED) !== null && !target.closest(FIELDS);
  };
  const releaseSoon = () => {
    timer ??= setTimeout(release, CLICK_MS);
  };
  page.addEventListener("pointerdown", press, true);
  page.addEventListener("click", release);
  for (const name of ["pointerup", "pointercancel", "contextmenu", "dragstart"]) page.addEventListener(name, releaseSoon, true);
  // Of a button that goes up outside of the window not every browser reports it.
  page.addEventListener("pointermove", (event) => {
    if (isPressed && !(event as PointerEvent).buttons) releaseSoon();
  }, true);
}
