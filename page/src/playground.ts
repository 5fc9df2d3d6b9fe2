// What the playground thinks: what was translated, where each loss is in what was typed, and what a text could be.
import { Fault } from "./curl";
import { titleOf } from "./dialects";
import type { Mark, Problem as Place } from "./lazy/editor";
import { type Recognised, recognise } from "./recognise";
import type { TracedLoss } from "./types";

export interface Unread extends Place {
  path?: string;
  pointer?: string;
}

export type PlayLoss = TracedLoss & { reason?: string; line?: number };

/** Where a loss is in what was typed: of a stream, the event that brought it. */
export function placeIn(kind: string, loss: PlayLoss): string {
  if (kind === "stream") return loss.line ? `#${loss.line}` : "";
  return loss.pointer ?? "";
}

export interface Translation {
  text: string;
  losses: PlayLoss[];
  more_losses?: number;
  error?: Unread;
  broken?: boolean;
  events?: string[];
}

export interface Translated {
  problem: Unread | null;
  dialects: Record<string, Translation>;
  events?: string[];
}

/** What is translated: where its address names the model, or says whether it streams, its text does not. */
export interface Source {
  dialect: string;
  text: string;
  model?: string;
  stream?: boolean;
  /** Whether any of it was typed or pasted here. */
  typed?: boolean;
}

const SEVERITY: Record<string, Mark["severity"]> = { serious: "error", degraded: "warning", harmless: "info" };

/** What the others could not carry, at its place in the text that contains it. */
export function marksOf(result: Translated, kind: string): Mark[] {
  if (result.problem) return result.problem.pointer ? [{ pointer: result.problem.pointer, severity: "error", message: result.problem.message }] : [];
  const found = new Map<string, Mark>();
  for (const [name, side] of Object.entries(result.dialects)) {
    for (const loss of side.losses) {
      const pointer = placeIn(kind, loss);
      if (!pointer) continue;
      const message = `${titleOf(name)}: ${loss.feature} ${loss.action} (${loss.grade})`;
      const severity = SEVERITY[loss.grade] ?? "info";
      const known = found.get(pointer);
      const order = ["error", "warning", "info"];
      if (!known) found.set(pointer, { pointer, severity, message });
      else found.set(pointer, { ...known, message: `${known.message}\n${message}`, severity: order.indexOf(severity) < order.indexOf(known.severity) ? severity : known.severity });
    }
  }
  return [...found.values()];
}

/** Line and column of a place in a text, both from 1. */
function lineOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}

export function read(text: string): { found: Recognised | null; fault: Unread | null } {
  try {
    return { found: recognise(text), fault: null };
  } catch (caught) {
    if (!(caught instanceof Fault)) throw caught;
    return { found: null, fault: { message: caught.message, offset: caught.offset, ...lineOf(text, caught.offset) } };
  }
}

export const describe = (found: Recognised) => `${titleOf(found.dialect)} ${found.kind}`;

/** What it could be in place of what it is taken for; null: it is that. */
export function otherwise(found: Recognised | null, taken: { dialect: string; kind: string; text: string }): Recognised | null {
  return found && (found.dialect !== taken.dialect || found.kind !== taken.kind || found.text.trim() !== taken.text.trim()) ? found : null;
}
