// What the gateway reports, as defined in src/wireglot_core/traces/trace.py. A field that has its default is left out there.

export type State = "running" | "done" | "failed" | "left";

export interface Tokens {
  input?: number;
  output?: number;
  cached?: number;
  cache_written?: number;
  reasoning?: number;
  source?: string;
}

export interface LossCounts {
  serious?: number;
  degraded?: number;
  harmless?: number;
}

export interface Row {
  id: string;
  at: number;
  state?: State;
  worker?: string;
  client?: string;
  /** The client's User-Agent. */
  agent?: string;
  purpose?: string;
  /** The client's own word for it. */
  purpose_word?: string;
  agent_name?: string;
  agent_id?: string;
  parent_agent_id?: string;
  dialect?: string;
  operation?: string;
  path?: string;
  key?: string;
  session?: string;
  /** The exchange that requested it, if it was made in the background. */
  belongs_to?: string;
  asked?: string;
  provider?: string;
  model?: string;
  upstream_dialect?: string;
  stream?: boolean;
  passthrough?: boolean;
  status?: number;
  stop?: string;
  error?: string;
  attempts?: number;
  /** Of one that runs: what it waits for, and until when (unix seconds) where that is known. */
  waits_for?: string;
  waits_until?: number | null;
  first_ms?: number | null;
  total_ms?: number | null;
  tokens?: Tokens | null;
  cost?: number | null;
  losses?: LossCounts | null;
  features?: string[];
  recorded?: boolean;
  /** The last words of its user, where bodies were recorded. */
  title?: string;
}

export interface Frame {
  ms: number;
  data: string;
  /** Of the client's stream: which of the upstream's frames it comes of. */
  causes?: number[];
}

export interface Message {
  method?: string;
  url?: string;
  status?: number;
  headers?: [string, string][];
  body?: string;
  frames?: Frame[];
  bytes?: number;
  truncated?: boolean;
  /** So many long strings of the body were cut, and nothing else of it. */
  shortened?: number;
  base64?: boolean;
  /** What a stream amounts to, as a whole answer of its dialect. */
  folded?: string;
  /** Of `folded`: why it is not the whole answer. */
  stops?: string;
  /** How the causes of its frames are known: by translating again, or by the clock. */
  caused_by?: "events" | "times";
}

export interface Link {
  client: string;
  upstream: string;
}

export interface TracedLoss {
  feature: string;
  action: string;
  grade: string;
  document: string;
  path: string;
  pointer?: string;
  upstream?: string;
  detail?: string;
}

export interface Step {
  name: string;
  began_ms: number;
  ended_ms: number;
}

export interface Counted {
  what: string;
  client: number;
  upstream: number;
}

export interface Attempt {
  provider: string;
  model: string;
  dialect: string;
  began_ms?: number;
  passthrough?: boolean;
  request?: Message | null;
  answer?: Message | null;
  error?: string;
  limits?: Record<string, unknown>;
  losses?: TracedLoss[];
  links?: Link[];
  answer_links?: Link[];
  summary?: Counted[];
}

export interface Trace {
  format?: string;
  version?: string;
  row: Row;
  request?: Message;
  answer?: Message;
  attempts?: Attempt[];
  losses?: TracedLoss[];
  steps?: Step[];
  notes?: string[];
  /** Why bodies that were recorded cannot be shown here. */
  why?: string;
  /** Of one that runs: since it came in. */
  now_ms?: number;
}

/** What is new of an exchange that runs. Without a cursor nothing of it may be shown. */
export interface GrowingTrace {
  row: Row;
  cursor?: string;
  /** There is more already. */
  more?: boolean;
  now_ms?: number;
  /** Once. */
  request?: Message | null;
  answer?: Message | null;
  /** The number of the first of `attempts`: those before it have not changed. */
  first_attempt?: number;
  attempts?: Attempt[];
  steps?: Step[];
  why?: string;
}

/** What a provider's prompt cache should have had of a turn, and what it had. */
export interface CacheTruth {
  id: string;
  at: number;
  verdict: "first" | "hit" | "partly" | "missed" | "none" | "unknown";
  previous?: string;
  input?: number | null;
  /** An estimate. */
  expected?: number | null;
  cached?: number | null;
  /** Blocks that are equal from the beginning, of those that the turn before has. */
  same?: number;
  blocks?: number;
  broken?: CacheBreak | null;
  note?: string;
}

export interface CacheBreak {
  reason: string;
  pointer?: string;
  before?: string;
  after?: string;
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
