// What a prompt cache should have had of turns, in words and sums.
import { plural, whole } from "./format";
import type { CacheTruth } from "./types";

/** A grade of the page's own for each verdict: colour is never the only sign. */
export const CACHE_GRADE: Record<CacheTruth["verdict"], string> = {
  hit: "kept",
  partly: "degraded",
  missed: "serious",
  none: "harmless",
  first: "harmless",
  unknown: "harmless",
};

export const CACHE_SIGN: Record<CacheTruth["verdict"], string> = { hit: "✓", partly: "≈", missed: "✕", none: "·", first: "·", unknown: "?" };

/** In a few words, for a line of many. */
export function cacheWords(truth: CacheTruth): string {
  const { cached, expected } = truth;
  if (truth.verdict === "first") return "first turn";
  const got = cached === null || cached === undefined ? "?" : whole(cached);
  if (expected === null || expected === undefined) return `${got} cached`;
  return expected ? `${got} of ≈${whole(expected)} cached` : `${got} cached, none expected`;
}

/** Whether there is something to look at: less came than could have, or the beginning was not kept. */
export function isBroken(truth: CacheTruth): boolean {
  return Boolean(truth.broken) || truth.verdict === "missed" || truth.verdict === "partly";
}

export interface CacheTotals {
  expected: number;
  cached: number;
  /** Turns of which both are known. */
  known: number;
  unknown: number;
  broken: CacheTruth[];
}

/** More from the cache than expected does not make up for a miss elsewhere: it counts as expected. */
export function cacheTotals(turns: CacheTruth[]): CacheTotals {
  const totals: CacheTotals = { expected: 0, cached: 0, known: 0, unknown: 0, broken: turns.filter(isBroken) };
  for (const { verdict, expected, cached } of turns) {
    if (verdict === "unknown") totals.unknown += 1;
    if (verdict === "unknown" || typeof expected !== "number" || typeof cached !== "number") continue;
    totals.known += 1;
    totals.expected += expected;
    totals.cached += Math.min(cached, expected);
  }
  return totals;
}

export function totalsWords({ expected, cached, known, unknown }: CacheTotals): string {
  const rest = unknown ? `; ${plural(unknown, "turn")} cannot be judged` : "";
  if (!known) return `How much should have come from the cache is not known${rest}.`;
  if (!expected) return `Nothing could have come from the cache${rest}.`;
  return `${whole(cached)} of about ${whole(expected)} tokens that could come from the cache did (${Math.round((cached / expected) * 100)} %)${rest}.`;
}
