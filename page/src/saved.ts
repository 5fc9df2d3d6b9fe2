// What this browser remembers of the list: its columns, views with a name, and whether the detail is next to it.
import { signal } from "@preact/signals";

export interface SavedView {
  name: string;
  /** Of the address: filters and order. */
  query: string;
  columns: string[];
}

const KEY = "wireglot.list";
const MOST_VIEWS = 50;

interface Remembered {
  columns: string[];
  views: SavedView[];
  /** null: as there is room. */
  beside: boolean | null;
}

export const DEFAULT_COLUMNS = ["time", "client", "title", "asked", "target", "status", "first", "total", "tokens", "cost", "losses"];

const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((each): each is string => typeof each === "string") : []);

/** What is stored may come from another version, or be invalid. */
export function readRemembered(text: string | null): Remembered {
  let found: Partial<Record<keyof Remembered, unknown>> = {};
  try {
    const read: unknown = JSON.parse(text ?? "{}");
    if (read && typeof read === "object") found = read;
  } catch {
    // as if there were nothing
  }
  const columns = texts(found.columns);
  const views = Array.isArray(found.views) ? (found.views as Partial<SavedView>[]) : [];
  return {
    columns: columns.length ? columns : DEFAULT_COLUMNS,
    views: views.flatMap((each) => (each && typeof each.name === "string" && typeof each.query === "string" ? [{ name: each.name, query: each.query, columns: texts(each.columns) }] : [])).slice(0, MOST_VIEWS),
    beside: typeof found.beside === "boolean" ? found.beside : null,
  };
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // a browser may forbid it
  }
}

export const remembered = signal<Remembered>(readRemembered(stored()));

export function remember(change: Partial<Remembered>): void {
  remembered.value = { ...remembered.value, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(remembered.value));
  } catch {
    // it holds until the page is left
  }
}

/** A view of the same name is replaced. */
export function withView(views: readonly SavedView[], view: SavedView): SavedView[] {
  return [...views.filter((each) => each.name !== view.name), view].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MOST_VIEWS);
}
