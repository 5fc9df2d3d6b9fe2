// What was typed, or is shown only once, and is kept nowhere else: it survives a closed dialog and other views, and
// leaving the page with it asks first.
import { signal } from "@preact/signals";

interface Draft {
  value: unknown;
  /** Whether it would be lost with the page. */
  unsaved: boolean;
}

const drafts = signal<ReadonlyMap<string, Draft>>(new Map());

export function draft<T>(name: string): T | undefined {
  return drafts.value.get(name)?.value as T | undefined;
}

/** `undefined`: there is none any more. */
export function setDraft<T>(name: string, value: T | undefined, unsaved = true): void {
  const next = new Map(drafts.peek());
  if (value === undefined) next.delete(name);
  else next.set(name, { value, unsaved });
  drafts.value = next;
}

/** Kept under a name, for as long as the page is open. */
export function useDraft<T>(name: string): [T | undefined, (value: T | undefined, unsaved?: boolean) => void] {
  return [draft<T>(name), (value, unsaved) => setDraft(name, value, unsaved)];
}

/** The next user of this tab gets none of them. */
export function forgetDrafts(): void {
  drafts.value = new Map();
}

addEventListener("beforeunload", (event) => {
  if ([...drafts.peek().values()].some((each) => each.unsaved)) event.preventDefault();
});
