// The columns of the list: what each shows of a row, and which of them there is room for.
import type { ComponentChildren } from "preact";
import { clock, count, duration, lossesTold, money, target, tokensOf } from "./format";
import { type Habits, lossesByRarity } from "./habits";
import { Grade, Losses, Purpose, Status } from "./parts/small";
import { DEFAULT_COLUMNS } from "./saved";
import type { Row } from "./types";

export interface Column {
  id: string;
  name: string;
  /** Pixels. */
  least: number;
  /** Its share of what is left over. */
  grows: number;
  /** The lower, the longer it stays where there is little room. */
  rank: number;
  sort?: string;
  /** Whether its first sort begins with the smallest. */
  ascends?: boolean;
  cell: (row: Row, habits: Habits) => ComponentChildren;
}

const text = (value: string | undefined) => <span>{value}</span>;

export const COLUMNS: Column[] = [
  { id: "time", name: "Time", least: 72, grows: 0, rank: 0, sort: "time", cell: (row) => <time dateTime={new Date(row.at * 1000).toISOString()}>{clock(row.at)}</time> },
  { id: "client", name: "Client", least: 100, grows: 1.75, rank: 2, sort: "client", ascends: true, cell: (row) => <span><span class="clip">{row.client || "unknown"}</span><Purpose row={row} /></span> },
  { id: "title", name: "Last words", least: 150, grows: 3, rank: 3, cell: (row) => text(row.title) },
  { id: "asked", name: "Requested", least: 100, grows: 1.35, rank: 6, sort: "asked", ascends: true, cell: (row) => text(row.asked || row.path) },
  {
    id: "target", name: "Answered by", least: 120, grows: 1.8, rank: 4, sort: "target", ascends: true,
    cell: (row) => <span>{target(row) || <span class="faint">–</span>}{row.passthrough ? <span class="tag">pass-through</span> : null}</span>,
  },
  { id: "status", name: "Status", least: 98, grows: 0, rank: 1, sort: "status", cell: (row) => <Status row={row} /> },
  { id: "first", name: "First", least: 66, grows: 0, rank: 8, sort: "first", cell: (row) => text(duration(row.first_ms)) },
  { id: "total", name: "Total", least: 66, grows: 0, rank: 7, sort: "total", cell: (row) => text(duration(row.total_ms)) },
  { id: "tokens", name: "Tokens", least: 60, grows: 0, rank: 9, sort: "tokens", cell: (row) => text(count(tokensOf(row.tokens))) },
  { id: "cached", sort: "cached", name: "Cached", least: 60, grows: 0, rank: 11, cell: (row) => text(count(row.tokens?.cached)) },
  { id: "cost", name: "Cost", least: 66, grows: 0, rank: 10, sort: "cost", cell: (row) => text(money(row.cost)) },
  { id: "losses", name: "Losses", least: 144, grows: 0, rank: 5, sort: "losses", cell: (row, habits) => <LossCell row={row} habits={habits} /> },
  { id: "dialect", sort: "dialect", ascends: true, name: "Dialect", least: 110, grows: 0, rank: 12, cell: (row) => text(row.dialect) },
  { id: "key", sort: "key", ascends: true, name: "Key", least: 80, grows: 0.6, rank: 13, cell: (row) => text(row.key) },
  { id: "attempts", sort: "attempts", name: "Attempts", least: 66, grows: 0, rank: 14, cell: (row) => text(row.attempts ? String(row.attempts) : "") },
  { id: "stop", sort: "stop", ascends: true, name: "Stop", least: 90, grows: 0.4, rank: 15, cell: (row) => text(row.stop) },
  { id: "session", sort: "session", ascends: true, name: "Session", least: 100, grows: 0.6, rank: 16, cell: (row) => text(row.session) },
];

const BY_ID = new Map(COLUMNS.map((column) => [column.id, column]));
const GAP = 14;
const PADDING = 32;

/** The columns of these names, with the time; where there is too little room, without those that are needed least. */
export function fitting(ids: readonly string[], width: number): Column[] {
  const wanted = new Set(["time", ...ids]);
  const columns = COLUMNS.filter((column) => wanted.has(column.id));
  const needs = () => columns.reduce((sum, column) => sum + column.least + GAP, PADDING - GAP);
  while (needs() > width && columns.length > 2) columns.splice(columns.indexOf(columns.reduce((a, b) => (b.rank > a.rank ? b : a))), 1);
  return columns;
}

/** As CSS has it. */
export function template(columns: readonly Column[]): string {
  return columns.map((column) => (column.grows ? `minmax(${column.least}px, ${column.grows}fr)` : `${column.least}px`)).join(" ");
}

const PHONE = ["time", "client", "status", "asked", "target", "losses", "first", "total", "tokens", "cost"];

/** In the order in which a narrow row has them. Where last words are known they are more than the model asked for. */
export function phoneColumns(titled: boolean): Column[] {
  return PHONE.flatMap((id) => BY_ID.get(id) ?? []).map((column) =>
    titled && column.id === "asked" ? { ...column, id: "title", name: "Last words", cell: (row: Row) => text(row.title || row.asked || row.path) } : column,
  );
}

export const isDefault = (ids: readonly string[]) => ids.join() === DEFAULT_COLUMNS.join();

/** Usual losses are folded into a word, new ones are marked. */
function LossCell({ row, habits }: { row: Row; habits: Habits }) {
  const losses = lossesTold(row);
  const { fresh, usual, other } = lossesByRarity(row, habits);
  // A serious one is worth a sign, however usual it is.
  if (usual.length && !fresh.length && !other.length) return losses?.serious ? <Grade grade="serious">{usual.length} usual</Grade> : <span class="faint">{usual.length} usual</span>;
  return (
    <>
      {fresh.length ? <span class="tag accent">new</span> : null}
      <Losses losses={losses} />
    </>
  );
}

/** What the cells of a row have no room for. */
export function rowTitle(row: Row, habits: Habits): string {
  const { fresh, usual, other } = lossesByRarity(row, habits);
  return [
    row.title ?? "",
    [row.asked || row.path, target(row)].filter(Boolean).join(" → "),
    row.agent ?? "",
    row.tokens ? `${row.tokens.input ?? 0} tokens in, ${row.tokens.output ?? 0} out` : "",
    row.passthrough ? "pass-through: client and provider speak the same dialect" : "",
    fresh.length ? `new losses for this client and provider: ${fresh.join(", ")}` : "",
    other.length ? `losses: ${other.join(", ")}` : "",
    usual.length ? `usual losses: ${usual.join(", ")}` : "",
    row.error ?? "",
  ].filter(Boolean).join("\n");
}
