// What happens now: one stream of rows as they come and change.
import { signal } from "@preact/signals";
import { session } from "./api";
import { follow } from "./feed/follow";
import type { Row } from "./types";

export const connection = signal<"connecting" | "open" | "lost">("connecting");
export const dropped = signal(0);

let leave: (() => void) | null = null;
const listeners = new Set<(row: Row) => void>();

/** Calls for every row that is reported, whatever the list's filters are. */
export function onRow(listener: (row: Row) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Follows what happens, as long as the tab is in sight: one connection for all tabs. */
export function connect(): void {
  if (leave) return;
  const { access, key, csrf } = session.value ?? {};
  leave = follow([access, key, csrf].join(" "), (news) => {
    if ("row" in news) {
      const row = JSON.parse(news.row) as Row;
      for (const listener of listeners) listener(row);
    } else if ("dropped" in news) dropped.value += news.dropped;
    else connection.value = news.state;
  });
}

export function disconnect(): void {
  leave?.();
  leave = null;
}
