// What the gateway reports to the page. What it reports about exchanges is in traces.ts, which is generated.
import type { NewOfTrace, RecordedTrace, Row, Tokens } from "./traces";

export type * from "./traces";

/** An exchange, as far as it is known and may be shown. */
export interface Trace extends Partial<RecordedTrace> {
  row: Row;
  /** Why bodies that were recorded cannot be shown here. */
  why?: string;
  /** Of one that runs: since it came in. */
  now_ms?: number;
}

/** What is new of an exchange that runs. Without a cursor nothing of it may be shown. */
export interface GrowingTrace extends Partial<NewOfTrace> {
  row: Row;
  why?: string;
}

export interface Session {
  access: "open" | "admin" | "key" | "none";
  key?: string;
  csrf?: string;
  version?: string;
  workers?: number;
  /** Of all amounts. */
  currency?: string;
  until?: number | null;
  admin?: boolean;
  sign_in?: boolean;
  provider?: string;
  why?: string;
}

export interface Recording {
  mode: "off" | "errors" | "all";
  until: number | null;
  dropped: number;
  kept_bytes: number;
  /** The last bodies, which are in memory anyway; null: they are not. */
  memory?: { exchanges: number; bytes: number; most_bytes: number } | null;
  /** Why the other machines do not record yet. */
  unreached?: string;
  fleet?: Fleet | null;
}

/** The machines that share a store. */
export interface Fleet {
  machines: number;
  trouble: string | null;
  /** Exchanges that the others could not report, and recordings that only their machines can show. */
  unreported: number;
  unshared: number;
}

export interface Conversation {
  session: string;
  client?: string;
  /** The last words of its user, where bodies were recorded. */
  title?: string;
  failed?: number;
  turns: number;
  first_at: number;
  last_at: number;
  tokens?: number | Tokens | null;
  cost?: number | null;
  /** All of them, and by their grades. */
  losses?: number;
  serious?: number;
  degraded?: number;
  harmless?: number;
  model?: string;
}
