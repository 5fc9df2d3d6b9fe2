// Texts that differ from their partners on the other side in nothing but white space, which is invisible.
import { diff } from "./diff";
import { type Json, at } from "./json/parse";
import { type Side, otherSide } from "./links";
import type { Link } from "./types";

const isSpace = (code: number) => code === 32 || (code >= 9 && code <= 13) || code === 160 || (code > 160 && /\s/.test(String.fromCharCode(code)));

/** Whether two texts are the same but for white space: without making others of them, and no further than the first difference. */
function isSameBare(one: string, other: string): boolean {
  let at = 0;
  let there = 0;
  for (;;) {
    while (at < one.length && isSpace(one.charCodeAt(at))) at++;
    while (there < other.length && isSpace(other.charCodeAt(there))) there++;
    if (at === one.length || there === other.length) return at === one.length && there === other.length;
    if (one.charCodeAt(at++) !== other.charCodeAt(there++)) return false;
  }
}

/** What is at a place as text: a string, or a block that holds one. */
function textAt(value: Json | undefined, pointer: string): string | undefined {
  const found = at(value, pointer);
  if (typeof found === "string") return found;
  if (found === null || typeof found !== "object" || Array.isArray(found)) return undefined;
  for (const name of ["text", "content"]) if (typeof found[name] === "string") return found[name];
  return undefined;
}

/** By the places on this side: the texts of the other side that differ in white space alone. */
export function spacedOtherwise(links: Link[], side: Side, mine: Json | undefined, theirs: Json | undefined): Map<string, string> {
  const found = new Map<string, string>();
  if (mine === undefined || theirs === undefined) return found;
  const other = otherSide(side);
  for (const link of links) {
    const text = textAt(mine, link[side]);
    const partner = text === undefined ? undefined : textAt(theirs, link[other]);
    if (text === undefined || partner === undefined || text === partner) continue;
    if (isSameBare(text, partner)) found.set(link[side], partner);
  }
  return found;
}

const SLICE_LINKS = 20;
const SLICE_MS = 10;

/** The same, a little at a time: a long conversation has thousands of links, and megabytes behind them. */
export async function spacedAside(links: Link[], side: Side, mine: Json | undefined, theirs: Json | undefined, isWanted: () => boolean): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  let until = performance.now() + SLICE_MS;
  for (let from = 0; from < links.length && isWanted(); from += SLICE_LINKS) {
    for (const [pointer, text] of spacedOtherwise(links.slice(from, from + SLICE_LINKS), side, mine, theirs)) found.set(pointer, text);
    if (performance.now() < until) continue;
    await new Promise((next) => setTimeout(next));
    until = performance.now() + SLICE_MS;
  }
  return found;
}

export interface Spot {
  before: string;
  /** White space that only this side has, and that only the other has, as signs. */
  mine: string;
  theirs: string;
  after: string;
}

const CONTEXT = 18;
const MOST_SPOTS = 8;
const SIGNS: Record<string, string> = { " ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "⍽" };

/** White space as signs; what has none of its own by its number. */
export function signsOf(space: string): string {
  return [...space].map((each) => SIGNS[each] ?? `U+${(each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`).join("");
}

/** Where two texts differ in white space, each with the words around it, and how many such places there are. */
export function spotsOf(mine: string, theirs: string): { spots: Spot[]; total: number } {
  const pieces = diff(mine, theirs);
  const spots: Spot[] = [];
  let total = 0;
  for (let index = 0; index < pieces.length; index++) {
    if (pieces[index]?.kind === "same") continue;
    const spot: Spot = { before: pieces[index - 1]?.text.slice(-CONTEXT) ?? "", mine: "", theirs: "", after: "" };
    let [left, right] = ["", ""];
    for (; index < pieces.length && pieces[index]?.kind !== "same"; index++) {
      if (pieces[index]?.kind === "left") left += pieces[index]?.text;
      else right += pieces[index]?.text;
    }
    total += 1;
    // Compared line by line, what differs holds the words too: only where they part is shown.
    let start = 0;
    while (start < Math.min(left.length, right.length) && left[start] === right[start]) start++;
    let end = 0;
    while (end < Math.min(left.length, right.length) - start && left.at(-1 - end) === right.at(-1 - end)) end++;
    spot.before = (spot.before + left.slice(0, start)).slice(-CONTEXT);
    spot.after = (left.slice(left.length - end, left.length) + (pieces[index]?.text ?? "")).slice(0, CONTEXT);
    spot.mine = left.slice(start, left.length - end).slice(0, CONTEXT);
    spot.theirs = right.slice(start, right.length - end).slice(0, CONTEXT);
    if (spots.length < MOST_SPOTS) spots.push(spot);
  }
  return { spots, total };
}
