// What the gateway says of a stretch of time, and what the charts draw of it.
import type { Series } from "./lazy/chart";

export type Values = (number | null)[];
export type Percentiles = { p50: number | null; p95: number | null; p99: number | null };

export interface Total {
  requests: number;
  errors: number;
  left?: number;
  open?: number;
  latency_ms?: Percentiles;
  first_ms?: Percentiles;
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cost?: number | null;
  unpriced?: number;
  lossy?: number;
}

export interface BudgetLeft {
  of: "key" | "group";
  name: string;
  unit: "tokens" | "cost";
  period: "day" | "month";
  limit: number;
  used: number;
  left: number;
  resets: number;
}

export interface Health {
  providers: {
    name: string;
    breakers?: string[];
    cooling?: { model?: string; account?: string; seconds: number }[];
    rejected?: { account?: string; seconds: number }[];
    errors?: Record<string, number>;
  }[];
  queue?: number;
  in_flight?: number;
  store_down?: boolean;
  losses?: { feature: string; grade: string; requests: number }[];
}

export interface Dashboard {
  from: number;
  to: number;
  step: number;
  by: string;
  /** Whether percentiles are values that were measured, or of hourly sums. */
  durations?: "measured" | "within_5_percent";
  /** Of the stretch of the same length before. */
  previous?: Total | null;
  budgets?: BudgetLeft[] | null;
  times: number[];
  total: Total;
  series: Record<string, Values>;
  groups: { name: string; total: Total; series: Record<string, Values> }[];
  more_groups?: number;
  /** `grade` where there is only one for the feature. */
  losses?: { feature: string; requests: number; grade?: string }[];
  /** Of so many exchanges, the newest that are still in the list. */
  grades?: Record<string, number>;
  graded?: number;
  /** Of the same: those that failed before a provider was called, which are in no other figure. */
  rejected?: number;
  health?: Health;
}

const MOST_LINES = 5;

/** The largest groups, and all others as one: together they are all. */
export function grouped(page: Dashboard, name: string): Series[] {
  const all = page.series[name] ?? [];
  if (!page.groups.length) return [{ name: "all", values: all }];
  const largest = page.groups.slice(0, MOST_LINES).map((group) => ({ name: group.name || "none", values: group.series[name] ?? [] }));
  if (page.groups.length <= MOST_LINES && !page.more_groups) return largest;
  const rest = all.map((sum, at) => Math.max(0, (sum ?? 0) - largest.reduce((known, each) => known + (each.values[at] ?? 0), 0)));
  return [...largest, { name: "all others", values: rest }];
}

export type ChartName = "requests" | "errors" | "latency" | "first" | "tokens" | "cost";

export function seriesOf(page: Dashboard): Record<ChartName, Series[]> {
  const one = (name: string) => page.series[name] ?? [];
  const percentiles = (name: string) => ["p50", "p95", "p99"].map((each) => ({ name: each, values: one(`${name}_${each}`) }));
  const cached = one("cached_tokens");
  return {
    requests: grouped(page, "requests"),
    errors: grouped(page, "errors"),
    latency: percentiles("latency"),
    first: percentiles("first"),
    tokens: [
      { name: "input", values: one("input_tokens").map((all, at) => Math.max(0, (all ?? 0) - (cached[at] ?? 0))) },
      { name: "input from a cache", values: cached },
      { name: "output", values: one("output_tokens") },
    ],
    cost: grouped(page, "cost"),
  };
}

/** Whether the price of anything that ended is known. */
export const isPriced = (total: Total) => total.requests - (total.open ?? 0) > (total.unpriced ?? 0);

export const tokensIn = (total: Total) => (total.input_tokens ?? 0) + (total.output_tokens ?? 0);

const WORST = ["serious", "degraded", "harmless"];

/** The grade of a feature's losses: its only one, or the worst that was counted since the start; "": not known. */
export function gradeOf(page: Dashboard, feature: string): string {
  const counted = (page.health?.losses ?? []).filter((each) => each.feature === feature).map((each) => each.grade);
  return page.losses?.find((each) => each.feature === feature)?.grade ?? WORST.find((grade) => counted.includes(grade)) ?? "";
}

/** As the gateway is asked for it: days that were chosen, one end of them may be open, or up to now. */
export function spanOf(range: string, from: string, until: string): Record<string, string> {
  return from || until ? { from: from || "all", to: until } : { from: range || "1h" };
}
