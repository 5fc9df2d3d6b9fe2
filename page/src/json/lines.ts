// A value as lines of one height: only what is unfolded makes lines, and long strings are broken by the pane's width.
import { type Json, escapeToken } from "./parse";
import type { TracedLoss } from "../types";

export interface Line {
  pointer: string;
  depth: number;
  kind: "open" | "folded" | "close" | "leaf" | "more" | "text" | "loss";
  name?: string | undefined;
  text: string;
  type?: "string" | "number" | "boolean" | "null";
  loss?: TracedLoss;
  comma: boolean;
}

export interface Shape {
  /** What the reader folded or unfolded by hand. */
  chosen: ReadonlyMap<string, boolean>;
  columns: number;
  losses: ReadonlyMap<string, TracedLoss[]>;
  /** Unfolded because something in it is to be seen. */
  forced: ReadonlySet<string>;
}

const LONG_LIST = 60;

/** What is unfolded before anybody asks: the way to the messages, and no schemas of tools. */
function openAtFirst(pointer: string, depth: number, size: number): boolean {
  if (depth === 0) return true;
  if (size === 0) return false;
  if (/^\/(tools|functions)\b/.test(pointer) || /\/(input_schema|parameters|schema|properties)(\/|$)/.test(pointer)) return false;
  if (size > LONG_LIST) return depth < 2;
  return depth < 5;
}

export function unfolded(shape: Shape, pointer: string, depth: number, size: number): boolean {
  const chosen = shape.chosen.get(pointer);
  if (chosen !== undefined) return chosen;
  if (shape.forced.has(pointer)) return true;
  return openAtFirst(pointer, depth, size);
}

function quoted(text: string): string {
  return JSON.stringify(text);
}


export function linesOf(value: Json, shape: Shape): Line[] {
  const lines: Line[] = [];

  const reported = (pointer: string, depth: number) => {
    for (const loss of shape.losses.get(pointer) ?? [])
      lines.push({ pointer, depth, kind: "loss", text: loss.detail ?? "", loss, comma: false });
  };

  const walk = (each: Json, pointer: string, name: string | undefined, depth: number, comma: boolean) => {
    if (each !== null && typeof each === "object") {
      const isList = Array.isArray(each);
      const entries: [string, Json][] = isList ? each.map((item, index) => [String(index), item]) : Object.entries(each);
      const size = entries.length;
      const [left, right] = isList ? ["[", "]"] : ["{", "}"];
      if (!size) {
        lines.push({ pointer, depth, kind: "leaf", name, text: left + right, comma });
        reported(pointer, depth);
        return;
      }
      if (!unfolded(shape, pointer, depth, size)) {
        lines.push({ pointer, depth, kind: "folded", name, text: `${left} ${glance(each)} ${right}`, comma });
        reported(pointer, depth);
        return;
      }
      lines.push({ pointer, depth, kind: "open", name, text: left, comma: false });
      reported(pointer, depth + 1);
      entries.forEach(([key, item], index) => walk(item, `${pointer}/${escapeToken(key)}`, isList ? undefined : key, depth + 1, index < size - 1));
      lines.push({ pointer, depth, kind: "close", text: right, comma });
      return;
    }
    if (typeof each === "string") {
      const all = quoted(each);
      const room = Math.max(16, shape.columns - depth * 2 - (name ? name.length + 4 : 0) - 4);
      if (all.length <= room) {
        lines.push({ pointer, depth, kind: "leaf", name, text: all, type: "string", comma });
      } else if (shape.chosen.get(pointer) === true || (shape.chosen.get(pointer) === undefined && shape.forced.has(pointer))) {
        lines.push({ pointer, depth, kind: "open", name, text: '"', type: "string", comma: false });
        for (const text of broken(each, Math.max(16, shape.columns - depth * 2 - 4))) lines.push({ pointer, depth: depth + 1, kind: "text", text, type: "string", comma: false });
        lines.push({ pointer, depth, kind: "close", text: '"', type: "string", comma });
      } else {
        lines.push({ pointer, depth, kind: "folded", name, text: all.slice(0, room) + "…", type: "string", comma });
      }
    } else {
      const type = each === null ? "null" : typeof each === "number" ? "number" : "boolean";
      lines.push({ pointer, depth, kind: "leaf", name, text: String(each), type, comma });
    }
    reported(pointer, depth);
  };

  walk(value, "", undefined, 0, false);
  return lines;
}

/** A string as it reads, broken where it breaks itself, and where the pane ends. */
export function broken(text: string, columns: number): string[] {
  const result: string[] = [];
  for (const line of text.split("\n")) {
    let rest = line;
    while (rest.length > columns) {
      let cut = rest.lastIndexOf(" ", columns);
      if (cut < columns / 2) cut = columns;
      result.push(rest.slice(0, cut));
      rest = rest.slice(cut).replace(/^ /, "");
    }
    result.push(rest);
  }
  return result;
}

/** What is in a folded value, in a few words. */
function glance(value: Json): string {
  if (Array.isArray(value)) return `${value.length} ${value.length === 1 ? "item" : "items"}`;
  const object = value as { [name: string]: Json };
  const words: string[] = [];
  for (const name of ["type", "role", "name", "id", "tool_use_id", "call_id", "text"]) {
    const found = Object.hasOwn(object, name) ? object[name] : undefined;
    if (typeof found === "string" && found) words.push(`${name}: ${found.length > 28 ? found.slice(0, 28) + "…" : found}`);
    if (words.length >= 3) break;
  }
  return words.length ? words.join(", ") : Object.keys(object).slice(0, 4).join(", ") + (Object.keys(object).length > 4 ? ", …" : "");
}


/** The pointers above one, so that it can be unfolded to. */
export function above(pointer: string): string[] {
  const result: string[] = [""];
  for (let index = pointer.indexOf("/", 1); index > 0; index = pointer.indexOf("/", index + 1)) result.push(pointer.slice(0, index));
  return result;
}

/** Deeper values are not searched: a megabyte of brackets would be a stack of a million calls. */
const MAX_DEPTH = 500;

/** Pointers of values and names that hold a text, in the order of the document. */
export function find(value: Json, words: string, most = 500): string[] {
  const found: string[] = [];
  const wanted = words.toLowerCase();
  const walk = (each: Json, pointer: string, depth: number): void => {
    if (found.length >= most || depth > MAX_DEPTH) return;
    if (each !== null && typeof each === "object") {
      for (const [key, item] of Object.entries(each)) {
        const there = `${pointer}/${escapeToken(key)}`;
        if (!Array.isArray(each) && key.toLowerCase().includes(wanted)) found.push(there);
        else walk(item, there, depth + 1);
      }
    } else if (String(each).toLowerCase().includes(wanted)) found.push(pointer);
  };
  walk(value, "", 0);
  return found;
}
