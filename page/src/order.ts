// The order of rows, as the server has it (src/wireglot/gateway/trace/wanted.py): where a row that changed belongs.
import { lossesOf, target, tokensOf } from "./format";
import type { Row } from "./types";

type Value = number | string | null | undefined;

const VALUES: Record<string, (row: Row) => Value> = {
  time: (row) => row.at,
  client: (row) => (row.client ?? "").toLowerCase(),
  asked: (row) => (row.asked ?? "").toLowerCase(),
  target: (row) => target(row).toLowerCase(),
  status: (row) => row.status || null,
  first: (row) => row.first_ms,
  total: (row) => row.total_ms,
  tokens: (row) => tokensOf(row.tokens),
  cached: (row) => (row.tokens ? (row.tokens.cached ?? 0) : null),
  cost: (row) => row.cost,
  losses: (row) => lossesOf(row.losses),
  attempts: (row) => row.attempts ?? 0,
  dialect: (row) => (row.dialect ?? "").toLowerCase(),
  key: (row) => (row.key ?? "").toLowerCase(),
  stop: (row) => (row.stop ?? "").toLowerCase(),
  session: (row) => (row.session ?? "").toLowerCase(),
};

/** The columns by which the server sorts. */
export const SORTS = Object.keys(VALUES);

export type Compare = (a: Row, b: Row) => number;

function side(a: Value, b: Value): number {
  const nothing = (value: Value) => value === null || value === undefined || value === "";
  if (nothing(a) || nothing(b)) return Number(nothing(a)) - Number(nothing(b));
  return a === b ? 0 : (a as number | string) < (b as number | string) ? -1 : 1;
}

/** By a column, `-` before it: the largest first. "" is the newest first. What has no value comes last. */
export function compareBy(sort: string): Compare {
  const descending = !sort || sort.startsWith("-");
  const value = VALUES[sort.replace("-", "")] ?? ((row: Row) => row.at);
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const [mine, theirs] = [value(a), value(b)];
    const first = side(mine, theirs);
    const known = mine !== null && mine !== undefined && mine !== "" && theirs !== null && theirs !== undefined && theirs !== "";
    if (first) return known ? first * sign : first;
    return sign * (a.at - b.at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
  };
}

/** The list with its changes (null: it left), without sorting thousands of rows for a few. */
export function merged(old: Row[], changes: ReadonlyMap<string, Row | null>, compare: Compare): Row[] {
  const stayed = new Set<string>();
  const all: Row[] = [];
  for (const row of old) {
    const change = changes.get(row.id);
    if (change === undefined) all.push(row);
    else if (change !== null && compare(change, row) === 0) {
      all.push(change);
      stayed.add(row.id);
    }
  }
  const added = [...changes].flatMap(([id, row]) => (row && !stayed.has(id) ? [row] : [])).sort(compare);
  if (!added.length) return all;
  const result: Row[] = [];
  let next = 0;
  for (const row of all) {
    while (next < added.length && compare(added[next] as Row, row) < 0) result.push(added[next++] as Row);
    result.push(row);
  }
  return result.concat(added.slice(next));
}
