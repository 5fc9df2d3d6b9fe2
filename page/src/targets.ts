// Models that a request can be sent to, and those of the catalog that it can be translated for.
import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { count } from "./format";
import type { Option } from "./options";
import type { Trace } from "./types";

export interface Target {
  id: string;
  on: boolean;
  context?: number;
  output?: number;
}

/** What the gateway would send for a request, and what it may cost (`POST /replay` with `dry`). */
export interface Preview {
  model: string;
  provider: string;
  dialect: string;
  pays?: string;
  key?: string;
  context?: number;
  output?: number;
  /** Whether it can be sent: a provider that only the catalog knows has no key. */
  sends?: boolean;
  estimate?: { input?: number | null; max_output?: number | null; cost?: number | null } | null;
  /** As an exchange whose answer is still to come. */
  would?: Trace;
  /** Why that cannot be shown. */
  why?: string;
}

export function useTargets(): readonly Target[] {
  const [found, setFound] = useState<readonly Target[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    // Without the list any name can still be typed.
    get<{ targets: Target[] }>("/targets", {}, stop.signal).then((page) => setFound(page.targets)).catch(() => undefined);
    return () => stop.abort();
  }, []);
  return found;
}

export function optionsOf(targets: readonly Target[], others: boolean): Option[] {
  return targets
    .filter((each) => others || each.on)
    .map((each) => ({ id: each.id, note: each.on ? (each.context ? `${count(each.context)} context` : "") : "not configured" }));
}
