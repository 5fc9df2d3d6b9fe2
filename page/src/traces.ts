// Written by tools/generate_docs.py (`make docs`). Do not edit.

export type State = "running" | "done" | "failed" | "left";

export interface Tokens {
  /** All tokens that the model read, including cached ones. */
  input?: number;
  /** All tokens that the model wrote, including its reasoning. */
  output?: number;
  cached?: number;
  cache_written?: number;
  reasoning?: number;
  /** `provider`, `partial` or `estimated`. */
  source?: string;
}

export interface LossCounts {
  serious?: number;
  degraded?: number;
  harmless?: number;
}

/** Hashes of a request's messages, without system messages; "" if there are none. */
export interface TurnHashes {
  /** Of all messages. */
  own: string;
  /** Of those before the last answer in it: the exchange that this one continues had them. */
  before?: string;
  /** Of those up to and including that answer. */
  answered?: string;
  /** Of those up to the first answer. */
  root?: string;
}

/** An entry of the list, known without any body. It is sent again when it changes: the newest counts. */
export interface Row {
  id: string;
  /** When the request came in: seconds since 1970. */
  at: number;
  state?: State;
  /** The process, and in a fleet the machine. */
  worker?: string;
  /** The client program, from its user agent: `claude-code`, `codex`, `gemini-cli`, else the first word. */
  client?: string;
  /** The client's User-Agent. */
  agent?: string;
  /** The purpose that the client states: `main`, `subagent`, `auxiliary`, `background`, `compaction`. */
  purpose?: string;
  /** The client's own word for the purpose. */
  purpose_word?: string;
  /** Name or type of the sub-agent that sends the request. */
  agent_name?: string;
  agent_id?: string;
  parent_agent_id?: string;
  dialect?: string;
  operation?: string;
  path?: string;
  /** The name of the client's key. */
  key?: string;
  /** The conversation it belongs to, if the client names one or it can be derived. */
  session?: string;
  /** The id of the exchange that caused this one, if it was made in the background. */
  belongs_to?: string;
  /** The model name in the client's request. */
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
  /** Milliseconds until the first byte was sent to the client. */
  first_ms?: number | null;
  total_ms?: number | null;
  /** What a running exchange is waiting for: `body` (its own, being read), `store`, `queue`, `provider queue`, `key` (one with an open circuit breaker), `sign-in`, `retry`, `download`, `first byte`, `answer` or `next event`; "": it is being processed. */
  waits_for?: string;
  /** When the wait ends, if known: seconds since 1970. */
  waits_until?: number | null;
  tokens?: Tokens | null;
  /** In millionths of the currency; None: unknown. */
  cost?: number | null;
  losses?: LossCounts | null;
  /** The features among its losses, most serious first. */
  features?: string[];
  /** Whether bodies were recorded: then there is a `Trace`. */
  recorded?: boolean;
  /** Whether the usage ledger has this exchange: a provider was to be called. */
  booked?: boolean;
  /** The last text of its user, if bodies were recorded. */
  title?: string;
  /** Used to join turns if the client names no session; known once it was computed. */
  history?: TurnHashes | null;
}

/** A piece of a stream, and when it was received or sent: milliseconds since the request came in. */
export interface Frame {
  ms: number;
  data: string;
  /** For the client's stream: the numbers (from 0) of the frames of the last attempt's answer that it was made from. None: it is a keep-alive, or the gateway's own. */
  causes?: number[];
}

/** One side of an HTTP exchange. Secrets have been removed. */
export interface Message {
  method?: string;
  url?: string;
  status?: number;
  headers?: [string, string][];
  /** The body as text; "" for a stream, or if there was none. */
  body?: string;
  frames?: Frame[];
  /** Its original size, even if the stored body is shorter. */
  bytes?: number;
  /** It is not all there: cut at its end, or see `shortened`. */
  truncated?: boolean;
  /** This number of long strings in the body were cut: the rest of it is complete, and still JSON. */
  shortened?: number;
  /** The body is not UTF-8, and is stored as base64. */
  base64?: boolean;
  /** The document that a stream adds up to: the answer of its dialect when no stream is requested. Links of answers point into it. For a stream without an end, it is what had arrived. */
  folded?: string;
  /** Why `folded` is not the whole answer, as text for users. */
  stops?: string;
  /** How the `causes` of its frames were determined. `events`: translating the upstream's stream again gives this one. `times`: not for all of it, so some frames have the events of the last read before they were written. */
  caused_by?: "" | "events" | "times";
}

/** A part of the client's document and the upstream part it became: two JSON pointers (RFC 6901). */
export interface Link {
  client: string;
  upstream: string;
}

export interface TracedLoss {
  feature: string;
  action: string;
  grade: string;
  /** `request` or `response`. */
  document: string;
  /** The path as reported to the client (`$.messages[2].content[0]`). */
  path: string;
  /** The same place as a JSON pointer into the client's document, if it exists there. */
  pointer?: string;
  /** Its place in the upstream's document, if it has one. */
  upstream?: string;
  detail?: string;
}

/** A phase of the exchange: `queue`, `store`, `connect`, `first byte`, `events`. Milliseconds since the request came in. */
export interface Step {
  name: string;
  began_ms: number;
  ended_ms: number;
}

/** A line of the transformation's summary: `system blocks` 3 to 1, `tool ids rewritten` 2 to 2. */
export interface Counted {
  what: string;
  client: number;
  upstream: number;
}

/** One call to one provider. Only the last attempt's answer reached the client. */
export interface Attempt {
  provider: string;
  model: string;
  dialect: string;
  began_ms?: number;
  passthrough?: boolean;
  request?: Message | null;
  answer?: Message | null;
  error?: string;
  /** What was known of the model, so that `wireglot.testing.replay` can translate again. */
  limits?: Record<string, unknown>;
  losses?: TracedLoss[];
  /** Links between the requests. */
  links?: Link[];
  /** Links between the answers: their documents, or those that their streams add up to. */
  answer_links?: Link[];
  summary?: Counted[];
}

/** A whole exchange. The format field is always present. */
export interface RecordedTrace {
  format: string;
  /** The version of the program that recorded it. */
  version: string;
  row: Row;
  request: Message;
  answer: Message;
  attempts: Attempt[];
  losses: TracedLoss[];
  steps: Step[];
  notes: string[];
}

/** What is new of a running exchange. */
export interface NewOfTrace {
  row: Row;
  /** To be sent with the next request. */
  cursor: string;
  /** More is available already. */
  more?: boolean;
  /** Since the request came in. */
  now_ms?: number;
  /** The client's request; sent once. */
  request?: Message | null;
  /** The answer to the client, with its new frames. */
  answer?: Message | null;
  /** The number of the first of `attempts`: earlier ones have not changed. */
  first_attempt?: number;
  /** A request is given once; an answer has its new frames. */
  attempts?: Attempt[];
  /** All steps. The last one is in progress. */
  steps?: Step[];
}

/** Why less than the whole turn before can be reused. */
export interface CacheBreak {
  reason: string;
  /** A pointer into this turn's upstream request; for something removed, into that of the turn before. */
  pointer?: string;
  before?: string;
  after?: string;
}

export interface CacheTruth {
  id: string;
  at: number;
  verdict: "first" | "hit" | "partly" | "missed" | "none" | "unknown";
  /** The id of the exchange it is compared with. */
  previous?: string;
  input?: number | null;
  /** An estimate: the common part of both requests, in tokens as the turn before was counted. */
  expected?: number | null;
  /** Cached tokens reported by the provider; None if it reports none. */
  cached?: number | null;
  /** Number of blocks (tools, system texts, parts of messages) that are equal from the beginning. */
  same?: number;
  /** Number of blocks in the turn before. */
  blocks?: number;
  broken?: CacheBreak | null;
  /** Another explanation, or why the result is unknown. */
  note?: string;
}
