// Numbers and times as people read them.
import { signal } from "@preact/signals";
import type { LossCounts, Row, Tokens } from "./types";

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "";
  if (ms <= 0) return "0 ms";
  if (ms < 1) return "<1 ms";
  // Up to where it would round to the next unit: there are no 1000 ms, and no 60 s.
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (value < 1000) return String(Math.round(value));
  if (value < 10_000) return `${(value / 1000).toFixed(1)}k`;
  if (value < 1_000_000) return `${Math.round(value / 1000)}k`;
  return value < 999_950_000 ? `${(value / 1_000_000).toFixed(1)}M` : `${(value / 1e9).toFixed(1)}B`;
}

export function whole(value: number | null | undefined): string {
  return value === null || value === undefined ? "" : value.toLocaleString("en");
}

/** Of all amounts in rows and traces, as the gateway reports it with the session. */
export const currencyInUse = signal("USD");

/** Millionths of that currency, as the price lists have it. */
export function money(millionths: number | null | undefined): string {
  if (millionths === null || millionths === undefined) return "";
  const value = millionths / 1_000_000;
  if (value > 0 && value < 0.0001) return `<${formatted(0.0001, currencyInUse.value, { maximumFractionDigits: 4 })}`;
  const digits = value === 0 ? 0 : value < 0.01 ? 4 : value < 1 ? 3 : 2;
  return formatted(value, currencyInUse.value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function size(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "";
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

const WAITS: Record<string, string> = {
  body: "its own body to be read",
  store: "the store",
  queue: "a place in the queue",
  "provider queue": "a place at the provider",
  key: "a provider key in cooldown",
  "sign-in": "the provider's sign-in",
  retry: "the next attempt",
  download: "a download",
  "first byte": "the first byte of the answer",
  answer: "the rest of the answer",
  "next event": "the next event",
};

/** In the room that a list has: what is not the provider's answer, which most wait for. */
const WAIT_WORDS: Record<string, string> = {
  body: "reading it",
  store: "store",
  queue: "queue",
  "provider queue": "queue",
  key: "key cooldown",
  "sign-in": "sign-in",
  retry: "retry wait",
  download: "download",
};

export const waitWord = (row: Row): string => WAIT_WORDS[row.waits_for ?? ""] ?? (row.first_ms ? "streaming" : "waiting");

/** What an exchange that runs waits for. `now`: unix seconds. */
export function waitsFor(row: Row, now: number): string {
  const what = WAITS[row.waits_for ?? ""];
  if (!what) return "";
  const left = (row.waits_until ?? 0) - now;
  const from = row.waits_for === "first byte" && target(row) ? ` of ${target(row)}` : "";
  return `waits for ${what}${from}${left > 0 ? `, in ${duration(left * 1000)}` : ""}`;
}

const two = (value: number) => String(value).padStart(2, "0");

export function clock(at: number): string {
  const date = new Date(at * 1000);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function day(at: number): string {
  const date = new Date(at * 1000);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function moment(at: number): string {
  return `${day(at)} ${clock(at)}`;
}

export function tokensOf(tokens: Tokens | null | undefined): number | null {
  return tokens ? (tokens.input ?? 0) + (tokens.output ?? 0) : null;
}

export function lossesOf(losses: LossCounts | null | undefined): number {
  return losses ? (losses.serious ?? 0) + (losses.degraded ?? 0) + (losses.harmless ?? 0) : 0;
}

export function worstGrade(losses: LossCounts | null | undefined): string {
  if (!losses) return "";
  return losses.serious ? "serious" : losses.degraded ? "degraded" : losses.harmless ? "harmless" : "";
}

/** What is known of a row's losses: that there are none only when it came to its end. */
export function lossesTold(row: Row): LossCounts | null {
  if ((row.state ?? "running") === "running") return lossesOf(row.losses) ? (row.losses ?? null) : null;
  return row.losses ?? (row.state === "done" ? {} : null);
}

export function target(row: Row): string {
  return row.provider ? `${row.provider}/${row.model ?? ""}` : (row.model ?? "");
}

const PURPOSES: Record<string, string> = { subagent: "sub-agent", auxiliary: "auxiliary", background: "background", compaction: "compaction" };

/** What a request is for; "" for the main conversation, or where the client does not say. */
export function purposeOf(row: Row): string {
  return (row.purpose !== "compaction" && row.agent_name) || PURPOSES[row.purpose ?? ""] || "";
}

export function plural(number: number, one: string, many = one + "s"): string {
  return `${whole(number)} ${number === 1 ? one : many}`;
}

/** Units of that currency, not millionths. */
export function inCurrency(value: number, currency = currencyInUse.value): string {
  return formatted(value, currency, value === 0 || Math.abs(value) >= 1 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumSignificantDigits: 2 });
}

/** A list has hundreds of amounts, and a format is slow to make. */
const formats = new Map<string, Intl.NumberFormat | null>();

/** A unit that the browser does not know is put after the number. */
function formatted(value: number, currency: string, digits: Intl.NumberFormatOptions): string {
  const name = JSON.stringify([currency, digits]);
  let format = formats.get(name);
  if (format === undefined) {
    try {
      format = new Intl.NumberFormat("en", { style: "currency", currency, currencyDisplay: "narrowSymbol", ...digits });
    } catch {
      format = null;
    }
    formats.set(name, format);
  }
  return format ? format.format(value) : `${value.toLocaleString("en", digits)} ${currency}`;
}

/** From a number of before to that of now; less than `least` percent is none. "" where there is nothing to compare. */
export function change(now: number | null | undefined, before: number | null | undefined, least = 1): string {
  if (now === null || now === undefined || before === null || before === undefined) return "";
  if (now === before) return now ? "= as before" : "";
  if (!before) return "▲ none before";
  const part = Math.round((now / before - 1) * 100);
  return Math.abs(part) >= least ? `${part > 0 ? "▲" : "▼"} ${Math.abs(part)} % vs. before` : "≈ as before";
}
