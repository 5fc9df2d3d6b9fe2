// The list of exchanges: pages of what was, and what happens meanwhile, in one order. What a filter means is known to the
// server alone: with one, it is asked which of the exchanges that changed are among those wanted.
import { effect, signal } from "@preact/signals";
import { type Query, get, message } from "./api";
import { connection, onRow } from "./live";
import { type Compare, compareBy, merged } from "./order";
import type { Row } from "./types";

export const FILTERS = ["q", "client", "dialect", "model", "provider", "status", "loss", "key", "purpose", "agent", "session", "since", "until"] as const;
export type Filter = (typeof FILTERS)[number];
export type Filters = Partial<Record<Filter | "sort", string>>;

/** Rows that are kept: a tab may be open for days. Older ones are found with a filter. */
export const MAX_ROWS = 10_000;
/** Values of a filter that its menu has: names of models, agents and clients are whatever clients say. */
const MAX_SEEN = 300;

export const rows = signal<Row[]>([]);
export const loading = signal(true); // until it is known what there is
export const failed = signal("");
export const next = signal<string | null>(null);
export const unread = signal(0); // recordings that a search could not look into
export const waiting = signal(0); // rows that came while the list is paused
export const paused = signal(false);
/** How many a filter matches; null: it is not known. */
export const matching = signal<{ count: number; more: boolean } | null>(null);
/** Changes that were not looked at: there were too many. */
export const skipped = signal(0);
/** What was seen of each filter's values, for the menus. */
export const seen = signal<Partial<Record<Filter, string[]>>>({});

/** Whether any row has one: only those whose bodies were recorded do. */
export const titled = signal(false);

const byId = new Map<string, Row>();
const held = new Map<string, Row>();
let filters: Filters = {};
let isFiltered = false;
let compare: Compare = compareBy("");
let generation = 0;
/** What is reported while a list is fetched: newer than what it will say. */
let fresh: Map<string, Row> | null = null;
let drawing = 0;

interface Page {
  rows: Row[];
  next: string | null;
  unread?: number;
}

/** No one reads faster, and a busy gateway reports hundreds of changes a second. */
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
    const all = merged(rows.value, changes, compare);
    if (all.length > MAX_ROWS) {
      for (const row of all.splice(MAX_ROWS)) byId.delete(row.id);
      next.value = all[MAX_ROWS - 1]?.id ?? null;
    }
    remember([...changes.values()]);
    changes.clear();
    rows.value = all;
  }, Math.max(0, drawn + DRAW_MS - performance.now()));
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
    if (!value) return;
    const values = (found[name] ??= new Set(seen.value[name] ?? []));
    if (values.size < MAX_SEEN) values.add(value);
  };
  for (const row of all) {
    if (!row) continue;
    if (row.title) titled.value = true;
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

/** Keeps one for later; the first of too many is skipped. */
function put(kept: Map<string, Row>, row: Row): void {
  kept.set(row.id, row);
  if (kept.size <= MAX_ROWS) return;
  kept.delete(kept.keys().next().value as string);
  skipped.value++;
}

/** A row that is wanted. One behind all that were fetched comes with its own page. */
function take(row: Row): void {
  if (!byId.has(row.id)) {
    const last = rows.value.at(-1);
    if (next.value && last && compare(row, last) > 0) return;
    if (paused.value) {
      put(held, row);
      waiting.value = held.size;
      return;
    }
  }
  if (!byId.has(row.id)) countOne(1);
  byId.set(row.id, row);
  publish(row.id, row);
}

function drop(id: string): void {
  if (held.delete(id)) waiting.value = held.size;
  if (!byId.delete(id)) return;
  countOne(-1);
  publish(id, null);
}

function countOne(by: 1 | -1): void {
  if (matching.value) matching.value = { ...matching.value, count: matching.value.count + by };
}

const ASK_MS = 500;
const MOST_ASKED = 250;
const MOST_PENDING = 2000;
/** What changed, and the server was not asked about yet: the oldest first. */
const pending = new Set<string>();
let asking = 0;

function askSoon(id: string): void {
  pending.delete(id);
  pending.add(id);
  if (pending.size > MOST_PENDING) {
    pending.delete(pending.values().next().value as string);
    skipped.value++;
  }
  if (!asking) asking = window.setTimeout(() => void askPending(), ASK_MS);
}

async function askPending(): Promise<void> {
  const mine = generation;
  const ids = [...pending].slice(0, MOST_ASKED);
  for (const id of ids) pending.delete(id);
  try {
    const page = await get<Page>("/exchanges", { ...query(), limit: MOST_ASKED, ids: ids.join() });
    if (mine !== generation) return;
    const found = new Set(page.rows.map((row) => row.id));
    for (const id of ids) if (!found.has(id)) drop(id);
    page.rows.forEach(take);
  } catch {
    // The list was fetched with the same filter: what is wrong with it was said. What runs changes again.
  } finally {
    if (mine === generation) asking = pending.size ? window.setTimeout(() => void askPending(), ASK_MS) : 0;
  }
}

const query = (): Query => ({ ...filters });

/** Free words are searched in bodies, a part at a time: how many there are is known at the end. */
async function count(mine: number): Promise<void> {
  try {
    const found = await get<{ count: number; more: boolean }>("/exchanges", { ...query(), count: 1 });
    if (mine === generation) matching.value = found;
  } catch {
    // The list says what is wrong with its filter.
  }
}

export async function show(wanted: Filters): Promise<void> {
  const mine = ++generation;
  // Rows of another filter are no answer to this one, neither while it is looked for nor when it is invalid.
  if (FILTERS.some((name) => wanted[name] !== filters[name])) {
    byId.clear();
    next.value = null;
    replaceAll([]);
  }
  filters = wanted;
  matching.value = null;
  isFiltered = FILTERS.some((name) => wanted[name]);
  compare = compareBy(wanted.sort ?? "");
  loading.value = true;
  failed.value = "";
  held.clear();
  waiting.value = 0;
  pending.clear();
  clearTimeout(asking);
  asking = 0;
  const meanwhile = new Map<string, Row>();
  fresh = meanwhile;
  try {
    const page = await get<Page>("/exchanges", { limit: 100, ...query() });
    if (mine !== generation) return;
    byId.clear();
    for (const row of page.rows) byId.set(row.id, row);
    next.value = page.next ?? null;
    unread.value = page.unread ?? 0;
    if (!isFiltered) for (const row of meanwhile.values()) byId.set(row.id, row);
    else for (const id of meanwhile.keys()) askSoon(id);
    replaceAll([...byId.values()].sort(compare));
    if (isFiltered && next.value) void count(mine);
  } catch (problem) {
    if (mine !== generation) return;
    failed.value = message(problem);
  } finally {
    if (mine === generation) {
      loading.value = false;
      fresh = null;
    }
  }
}

export async function more(): Promise<void> {
  if (loading.value || !next.value || rows.value.length >= MAX_ROWS) return;
  const mine = generation;
  loading.value = true;
  try {
    const page = await get<Page>("/exchanges", { limit: 100, before: next.value, ...query() });
    if (mine !== generation) return;
    next.value = page.next ?? null;
    unread.value += page.unread ?? 0;
    for (const row of page.rows) {
      if (byId.has(row.id)) continue;
      byId.set(row.id, row);
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

onRow((row) => {
  if (fresh) return put(fresh, row); // what is fetched is of another filter, or of nothing yet
  if (isFiltered) askSoon(row.id);
  else take(row);
});

let wasLost = false;
effect(() => {
  if (connection.value === "lost") wasLost = true;
  else if (connection.value === "open" && wasLost) {
    wasLost = false;
    void show(filters);
  }
});
