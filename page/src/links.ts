// Which part became which: the partners of a place on the other side, the parts that losses and links belong to, and the
// analysis that comes after the bodies.
import { above } from "./json/lines";
import { within } from "./json/parse";
import type { Part } from "./reading";
import type { Link, Message, Trace, TracedLoss } from "./types";

export type Side = "client" | "upstream";

export const otherSide = (side: Side): Side => (side === "client" ? "upstream" : "client");

/** Partners of a part: the closest link that holds it, or all links within it. */
export function partners(links: Link[], side: Side, pointer: string): string[] {
  const other = otherSide(side);
  let best = -1;
  let found: string[] = [];
  for (const link of links) {
    if (!within(pointer, link[side]) || link[side].length < best) continue;
    if (link[side].length > best) found = [];
    best = link[side].length;
    found.push(link[other]);
  }
  if (!found.length) found = links.filter((link) => within(link[side], pointer)).map((link) => link[other]);
  return found;
}

function answerWithAnalysis(recorded: Message | null | undefined, reported: Message | null | undefined): Message | undefined {
  if (!recorded) return undefined;
  const frames = recorded.frames?.map((frame, index) => {
    const causes = reported?.frames?.[index]?.causes;
    return causes ? { ...frame, causes } : frame;
  });
  return { ...recorded, ...(frames ? { frames } : {}), ...(reported?.folded ? { folded: reported.folded } : {}), ...(reported?.stops ? { stops: reported.stops } : {}), ...(reported?.caused_by ? { caused_by: reported.caused_by } : {}) };
}

/** The bodies that are here, with the links that came after them. */
export function withAnalysis(trace: Trace, reported: Trace): Trace {
  if (!reported.request) return trace; // gone meanwhile
  const answer = answerWithAnalysis(trace.answer, reported.answer);
  return {
    ...trace,
    ...(answer ? { answer } : {}),
    attempts: (trace.attempts ?? []).map((attempt, index) => {
      const more = reported.attempts?.[index];
      return more ? { ...more, request: attempt.request ?? null, answer: answerWithAnalysis(attempt.answer, more.answer) ?? null } : attempt;
    }),
    losses: reported.losses ?? trace.losses ?? [],
    notes: reported.notes ?? [],
  };
}

export interface PlacedParts {
  lost: ReadonlyMap<Part, TracedLoss[]>;
  joined: ReadonlySet<Part>;
  /** Losses of what is no part, as settings are, by their places. */
  beside: ReadonlyMap<string, TracedLoss[]>;
}

/** A loss or a link of a whole message, or of a field next to its content, is at its first part; of a setting, at none.
 * By their places and not by comparing each with each: a conversation has hundreds of parts, and as many links. */
export function placeParts(parts: Part[], losses: ReadonlyMap<string, TracedLoss[]>, linked: ReadonlySet<string>): PlacedParts {
  const here = new Map<string, Part>();
  for (const part of losses.size || linked.size ? parts : []) if (!here.has(part.pointer)) here.set(part.pointer, part);
  // Made when it is needed: most losses and links are at parts themselves.
  let first: Map<string, Part> | undefined;
  const firstIn = (pointer: string): Part | undefined => {
    if (!first) {
      first = new Map();
      for (const part of parts) for (const place of above(part.pointer)) if (!first.has(place)) first.set(place, part);
    }
    return first.get(pointer);
  };
  const owner = (pointer: string): Part | undefined => {
    const exact = here.get(pointer);
    if (exact) return exact;
    const places = above(pointer);
    for (let index = places.length - 1; index >= 0; index--) {
      const part = here.get(places[index] ?? "");
      if (part) return part;
    }
    for (const place of [pointer, ...places.reverse()]) {
      const part = place.split("/").length > 2 ? firstIn(place) : undefined;
      if (part) return part;
    }
    return undefined;
  };
  const lost = new Map<Part, TracedLoss[]>();
  const beside = new Map<string, TracedLoss[]>();
  for (const [pointer, found] of losses) {
    const part = owner(pointer);
    const here = part && lost.get(part);
    if (here) for (const loss of found) here.push(loss);
    else if (part) lost.set(part, [...found]);
    else beside.set(pointer, found);
  }
  const joined = new Set<Part>();
  for (const pointer of linked) {
    const part = owner(pointer);
    if (part) joined.add(part);
  }
  return { lost, joined, beside };
}
