// Texts that differ from their partners on the other side in nothing but white space, which nobody sees.
import { diff } from "./diff";
import { type Json, at } from "./json/parse";
import { type Side, otherSide } from "./links";
import type { Link } from "./types";

const bare = (text: string) => text.replaceAll(/\s+/g, "");

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
    // Most that differ are texts of another kind: their lengths without white space say so sooner than a comparison.
    if (bare(text) === bare(partner)) found.set(link[side], partner);
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
