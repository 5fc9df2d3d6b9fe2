// The list of exchanges: pages of what was, and a stream of what happens, in one order, newest first.
import { effect, signal } from "@preact/signals";
import { get, message, session } from "./api";
import { follow } from "./feed/follow";
import { lossesOf, target } from "./format";
import type { Row } from "./types";

export const FILTERS = ["client", "dialect", "model", "provider", "status", "loss", "key", "purpose", "agent", "session", "q"] as const;
export type Filter = (typeof FILTERS)[number];
export type Filters = Partial<Record<Filter, string>>;

const MOST_ROWS = 20_000;

export const rows = signal<Row[]>([]);
export const loading = signal(true); // until it is known what there is
export const failed = signal("");
export const next = signal<string | null>(null);
export const unread = signal(0); // recordings that a search could not look into
export const waiting = signal(0); // rows that came while the list is paused
export const paused = signal(false);
export const connection = signal<"connecting" | "open" | "lost">("connecting");
export const dropped = signal(0);
/** What was seen of each filter's values, for the menus. */
export const seen = signal<Partial<Record<Filter, string[]>>>({});

const byId = new Map<string, Row>();
const held = new Map<string, Row>();
let filters: Filters = {};
let generation = 0;
/** What is reported while a list is fetched: newer than what it will say. */
let fresh: Map<string, Row> | null = null;
let drawing = 0;

interface Page {
  rows: Row[];
  next: string | null;
  unread?: number;
}

const before = (a: Row, b: Row) => b.at - a.at || (a.id < b.id ? 1 : -1);

function matches(row: Row): boolean {
  const f = filters;
  if (f.client && row.client !== f.client) return false;
  if (f.dialect && row.dialect !== f.dialect) return false;
  if (f.model && row.asked !== f.model && row.model !== f.model) return false;
  if (f.provider && row.provider !== f.provider) return false;
  if (f.key && row.key !== f.key) return false;
  if (f.session && row.session !== f.session) return false;
  if (f.purpose && row.purpose !== f.purpose) return false;
  if (f.agent && row.agent_name !== f.agent && row.agent_id !== f.agent) return false;
  if (f.loss) {
    const grades = row.losses as Record<string, number> | null | undefined;
    if (!(grades?.[f.loss] || (row.features ?? []).includes(f.loss) || (f.loss === "any" && lossesOf(row.losses)))) return false;
  }
  if (f.status) {
    const status = String(row.status ?? 0);
    const sameClass = /^\dxx$/.test(f.status) && status.length === 3 && status[0] === f.status[0];
    if (f.status !== status && !sameClass && f.status !== (row.state ?? "running")) return false;
  }
  if (f.q) {
    const words = f.q.toLowerCase();
    const text = [row.id, row.client, row.agent, row.purpose, row.agent_name, row.agent_id, row.asked, target(row), row.key, row.session, row.path, row.error, row.stop, ...(row.features ?? [])]
      .join("\n")
      .toLowerCase();
    // A row that the gateway found in a body stays, though its own words do not have it.
    if (!text.includes(words) && !byId.has(row.id)) return false;
  }
  return true;
}

/** Nobody reads faster, and a busy gateway tells hundreds of changes a second. */
const DRAW_MS = 200;
let drawn = 0;
/** What changed since the list was drawn: its row, or null where it left. */
const changes = new Map<string, Row | null>();

function publish(id: string, row: Row | null): void {
  changes.set(id, row);
  if (drawing) return;
  drawing = window.setTimeout(() => {
    drawing = 0;
    drawn = performance.now();
    const all = merged(rows.value);
    for (const row of all.length > MOST_ROWS ? all.splice(MOST_ROWS) : []) byId.delete(row.id);
    remember([...changes.values()]);
    changes.clear();
    rows.value = all;
  }, Math.max(0, drawn + DRAW_MS - performance.now()));
}

/** The list with its changes, without sorting thousands of rows for a few. */
function merged(old: Row[]): Row[] {
  const places = new Set<string>();
  const all: Row[] = [];
  for (const row of old) {
    const change = changes.get(row.id);
    if (change === undefined) all.push(row);
    else if (change !== null && change.at === row.at) {
      all.push(change);
      places.add(row.id);
    }
  }
  const added = [...changes].flatMap(([id, row]) => (row && !places.has(id) ? [row] : [])).sort(before);
  if (!added.length) return all;
  const result: Row[] = [];
  let next = 0;
  for (const row of all) {
    while (next < added.length && before(added[next] as Row, row) < 0) result.push(added[next++] as Row);
    result.push(row);
  }
  return result.concat(added.slice(next));
}

function replaceAll(all: Row[]): void {
  clearTimeout(drawing);
  drawing = 0;
  changes.clear();
  rows.value = all;
  remember(all);
}

function remember(all: (Row | null)[]): void {
  const found: Partial<Record<Filter, Set<string>>> = {};
  const add = (name: Filter, value: string | undefined) => {
    if (value) (found[name] ??= new Set(seen.value[name] ?? [])).add(value);
  };
  for (const row of all) {
    if (!row) continue;
    add("client", row.client);
    add("dialect", row.dialect);
    add("model", row.asked);
    add("provider", row.provider);
    add("key", row.key);
    add("purpose", row.purpose);
    add("agent", row.agent_name);
    for (const feature of row.features ?? []) add("loss", feature);
  }
  const result: Partial<Record<Filter, string[]>> = { ...seen.value };
  let changed = false;
  for (const [name, values] of Object.entries(found) as [Filter, Set<string>][]) {
    if (values.size !== (seen.value[name] ?? []).length) changed = true;
    result[name] = [...values].sort();
  }
  if (changed) seen.value = result;
}

function take(row: Row): void {
  if (!matches(row)) {
    if (byId.delete(row.id)) publish(row.id, null);
    return;
  }
  byId.set(row.id, row);
  publish(row.id, row);
}

export async function show(wanted: Filters): Promise<void> {
  const mine = ++generation;
  filters = wanted;
  loading.value = true;
  failed.value = "";
  held.clear();
  waiting.value = 0;
  const meanwhile = new Map<string, Row>();
  fresh = meanwhile;
  try {
    const page = await get<Page>("/exchanges", { limit: 100, ...wanted });
    if (mine !== generation) return;
    byId.clear();
    for (const row of page.rows) byId.set(row.id, row);
    for (const row of meanwhile.values()) if (matches(row)) byId.set(row.id, row);
    next.value = page.next ?? null;
    unread.value = page.unread ?? 0;
    replaceAll([...byId.values()].sort(before));
  } catch (problem) {
    if (mine === generation) failed.value = message(problem);
  } finally {
    if (mine === generation) {
      loading.value = false;
      fresh = null;
    }
  }
}

export async function more(): Promise<void> {
  if (loading.value || !next.value) return;
  const mine = generation;
  loading.value = true;
  try {
    const page = await get<Page>("/exchanges", { limit: 100, before: next.value, ...filters });
    if (mine !== generation) return;
    next.value = page.next ?? null;
    unread.value += page.unread ?? 0;
    for (const row of page.rows) {
      if (byId.has(row.id)) continue;
      byId.set(row.id, row); // its words need not have what its body has
      publish(row.id, row);
    }
  } catch (problem) {
    if (mine === generation) failed.value = message(problem);
  } finally {
    if (mine === generation) loading.value = false;
  }
}

export function setPaused(value: boolean): void {
  paused.value = value;
  if (!value) {
    for (const row of held.values()) take(row);
    held.clear();
    waiting.value = 0;
  }
}

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

onRow((row) => {
  fresh?.set(row.id, row);
  if (paused.value && !byId.has(row.id)) {
    if (!matches(row)) return;
    held.set(row.id, row);
    waiting.value = held.size;
    return;
  }
  take(row);
});

let wasLost = false;
effect(() => {
  if (connection.value === "lost") wasLost = true;
  else if (connection.value === "open" && wasLost) {
    wasLost = false;
    void show(filters);
  }
});
