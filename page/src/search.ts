// A search through all four sides of an exchange: each place that has the words, with what is around them.
import { at } from "./json/parse";
import { find } from "./json/lines";
import type { ExchangeSide, SideName } from "./exchange";
import { wordsOf } from "./stream";

export interface Hit {
  side: SideName;
  title: string;
  /** A place in its document, or an event of its stream. */
  pointer?: string;
  event?: number;
  before: string;
  found: string;
  after: string;
}

const CONTEXT = 48;
const MOST_OF_A_SIDE = 40;
/** Places that are marked in one text: each is an element. */
const MAX_MARKS = 1000;
export const LEAST = 2;

/** The words with what is around them; the whole beginning where they are in a name. */
export function snippet(text: string, words: string): { before: string; found: string; after: string } | null {
  const place = text.toLowerCase().indexOf(words.toLowerCase());
  if (place < 0) return null;
  const start = Math.max(0, place - CONTEXT);
  const end = place + words.length;
  return {
    before: (start ? "…" : "") + text.slice(start, place),
    found: text.slice(place, end),
    after: text.slice(end, end + CONTEXT) + (text.length > end + CONTEXT ? "…" : ""),
  };
}

export function searchSide(side: ExchangeSide, words: string): Hit[] {
  if (words.length < LEAST) return [];
  const about = { side: side.name, title: side.title };
  const value = side.value.value;
  if (value !== undefined)
    return find(value, words, MOST_OF_A_SIDE).flatMap((pointer) => {
      const there = at(value, pointer);
      const name = pointer.slice(pointer.lastIndexOf("/") + 1).replaceAll("~1", "/").replaceAll("~0", "~");
      const piece = (there !== null && typeof there === "object" ? null : snippet(String(there), words)) ?? snippet(name, words);
      return piece ? [{ ...about, pointer, ...piece }] : [];
    });
  const hits: Hit[] = [];
  const events = side.events.value;
  for (let index = 0; index < events.length && hits.length < MOST_OF_A_SIDE; index++) {
    const event = events[index];
    const piece = event ? (snippet(wordsOf(event), words) ?? snippet(event.raw, words)) : null;
    if (piece) hits.push({ ...about, event: index, ...piece });
  }
  if (!events.length) {
    const piece = snippet(side.message.value?.body ?? "", words);
    if (piece) hits.push({ ...about, pointer: "", ...piece });
  }
  return hits;
}

/** A text cut where it has the words: every second piece is one of them. */
export function marked(text: string, words: string): string[] {
  if (words.length < LEAST) return [text];
  const pieces: string[] = [];
  const low = text.toLowerCase();
  // Characters whose lower-case form is longer would shift all that follows: then nothing is marked.
  if (low.length !== text.length) return [text];
  let from = 0;
  const wanted = words.toLowerCase();
  for (let place = low.indexOf(wanted); place >= 0 && pieces.length < 2 * MAX_MARKS; place = low.indexOf(wanted, from)) {
    pieces.push(text.slice(from, place), text.slice(place, place + words.length));
    from = place + words.length;
  }
  return [...pieces, text.slice(from)];
}
