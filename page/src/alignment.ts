// Streams next to each other: for each event of the source, the events that it became in every other dialect.
import { type StreamEvent, eventsOf } from "./stream";

export interface AlignedRow {
  /** null: what a dialect adds when the stream has ended. */
  source: StreamEvent | null;
  /** In the order of the columns. */
  became: StreamEvent[][];
}

/** The events that a piece of a stream holds: server-sent ones, or one on each line. */
export function eventsIn(piece: string): StreamEvent[] {
  if (/^(?:data|event|id|retry):|^:/m.test(piece)) return eventsOf([{ ms: 0, data: piece }]);
  return eventsOf(piece.split("\n").filter((line) => line.trim()).map((data) => ({ ms: 0, data })));
}

/** `source`: each event of the stream. `columns`: of each dialect, what came of each event, and of the stream's end. */
export function align(source: readonly string[], columns: readonly (readonly string[])[]): AlignedRow[] {
  const rows: AlignedRow[] = source.map((piece, index) => ({ source: eventsIn(piece)[0] ?? null, became: columns.map((pieces) => eventsIn(pieces[index] ?? "")) }));
  const end = columns.map((pieces) => pieces.slice(source.length).flatMap(eventsIn));
  if (end.some((events) => events.length)) rows.push({ source: null, became: end });
  return rows.filter((row) => row.source || row.became.some((events) => events.length));
}
