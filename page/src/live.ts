// What happens now: one stream of rows as they come and change.
import { signal } from "@preact/signals";
import { address, session } from "./api";
import type { Row } from "./types";

export const connection = signal<"connecting" | "open" | "lost">("connecting");
export const dropped = signal(0);

let source: EventSource | null = null;
const listeners = new Set<(row: Row) => void>();

/** Calls for every row that is reported, whatever the list's filters are. */
export function onRow(listener: (row: Row) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let retry = 0;

export function connect(): void {
  if (source) return;
  connection.value = "connecting";
  const opened = new EventSource(address("/live"));
  source = opened;
  let wasOpen = false;
  opened.onopen = () => {
    wasOpen = true;
    connection.value = "open";
  };
  opened.onerror = () => {
    connection.value = "lost";
    // The browser tries again by itself after a cut; after a refusal it does not.
    if (opened.readyState === EventSource.CLOSED) {
      source = null;
      clearTimeout(retry);
      if (session.value && session.value.access !== "none") retry = window.setTimeout(connect, wasOpen ? 1000 : 5000);
    }
  };
  opened.addEventListener("row", (event) => {
    const row = JSON.parse((event as MessageEvent<string>).data) as Row;
    for (const listener of listeners) listener(row);
  });
  opened.addEventListener("dropped", (event) => {
    const { count } = JSON.parse((event as MessageEvent<string>).data) as { count?: number };
    dropped.value += count ?? 0;
  });
}

export function disconnect(): void {
  clearTimeout(retry);
  source?.close();
  source = null;
}
