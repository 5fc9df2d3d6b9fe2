// One exchange as its view has it: what was recorded, what is chosen in it, and its four sides. All of it are signals, so
// that a part of the view redraws with what it shows and with nothing else.
import { type ReadonlySignal, computed, signal } from "@preact/signals";
import { address, get, message } from "./api";
import type { Json } from "./json/parse";
import { type Side, otherSide, partners, withAnalysis } from "./links";
import { onRow } from "./live";
import { param, setQuery } from "./route";
import { type EventLinks, type StreamEvent, eventLinks, eventsOf, isKeepAlive } from "./stream";
import type { Attempt, CacheTruth, Frame, GrowingTrace, Link, Message, Row, Trace, TracedLoss } from "./types";

export type Document = "request" | "answer";
export type SideName = `${Side}-${Document}`;

const NAMES: Record<SideName, string> = {
  "client-request": "Client request",
  "upstream-request": "Upstream request",
  "upstream-answer": "Upstream answer",
  "client-answer": "Client answer",
};

export interface InFocus {
  side: Side;
  index: number;
  /** By hand; otherwise the one at the current time. */
  chosen: boolean;
}

export function eventInFocus(asked: string, at: number | null, client: StreamEvent[], upstream: StreamEvent[]): InFocus | null {
  const [side, number] = asked.split(":");
  const index = Number(number);
  const events = side === "client" ? client : upstream;
  if ((side === "client" || side === "upstream") && Number.isInteger(index) && index >= 0 && index < events.length) return { side, index, chosen: true };
  if (at === null) return null;
  const last = (of: StreamEvent[]) => of.findLastIndex((event) => event.ms <= at);
  const [mine, theirs] = [last(client), last(upstream)];
  if (mine < 0 && theirs < 0) return null;
  // At the same moment it is what the client got: that has causes to show.
  return (client[mine]?.ms ?? -1) >= (upstream[theirs]?.ms ?? -1) ? { side: "client", index: mine, chosen: false } : { side: "upstream", index: theirs, chosen: false };
}

const NO_EVENTS: StreamEvent[] = [];
/** Between two looks at what a running exchange has come to. */
const LOOK_MS = 400;

/** Events of a stream that grows, or whose links came after it: only what is new of it is read. */
export function growingEvents(): (frames: Frame[]) => StreamEvent[] {
  let known: Frame[] = [];
  let events = NO_EVENTS;
  return (frames) => {
    const grows = known.length > 0 && known.every(({ ms, data }, index) => frames[index]?.ms === ms && frames[index].data === data);
    if (!grows) events = frames.length ? eventsOf(frames) : NO_EVENTS;
    else if (frames.length > known.length) events = [...events, ...eventsOf(frames.slice(known.length), known.length)];
    known = frames;
    return events;
  };
}

/** What was known of an exchange that runs, with what is new. */
export function grown(old: Trace | null, news: GrowingTrace): Trace {
  const joined = (before: Message | null | undefined, now: Message | null | undefined) =>
    now ? { ...now, frames: [...(before?.frames ?? []), ...(now.frames ?? [])] } : (before ?? undefined);
  const first = news.first_attempt ?? 0;
  const attempts = [...(old?.attempts ?? []).slice(0, first)];
  for (const [index, attempt] of (news.attempts ?? []).entries()) {
    const before = old?.attempts?.[first + index];
    attempts.push({ ...attempt, request: attempt.request ?? before?.request ?? null, answer: joined(before?.answer, attempt.answer) ?? null });
  }
  const trace: Trace = { row: news.row, attempts, steps: news.steps ?? [] };
  const request = news.request ?? old?.request;
  const answer = joined(old?.answer, news.answer);
  if (request) trace.request = request;
  if (answer) trace.answer = answer;
  if (news.now_ms !== undefined) trace.now_ms = news.now_ms;
  if (news.why) trace.why = news.why;
  return trace;
}

/** A computed list that stays the same object while its items do: what reads it is not redrawn for nothing. */
function steady<T>(make: () => T[]): ReadonlySignal<T[]> {
  let last: T[] = [];
  return computed(() => {
    const next = make();
    if (next.length !== last.length || next.some((each, index) => each !== last[index])) last = next;
    return last;
  });
}

export class Exchange {
  readonly trace = signal<Trace | null>(null);
  /** What the provider's cache should have had of it; null while that is not known. */
  readonly cache = signal<CacheTruth | null>(null);
  readonly problem = signal("");
  /** What is searched for in it. */
  readonly words = computed<string>(() => param("find").trim());
  readonly playing = signal(false);
  readonly speed = signal(1);
  private readonly newest = signal<Row | null>(null);
  /** Counts up when the chosen part is to be brought into sight. */
  readonly reveal = signal(0);
  /** Counts up when a place that was found is chosen. */
  readonly sought = signal(0);

  constructor(readonly id: string) {}

  readonly row = computed<Row | null>(() => {
    const trace = this.trace.value;
    return this.newest.value && trace && isRunning(trace.row) ? this.newest.value : (trace?.row ?? null);
  });
  readonly running = computed(() => this.row.value !== null && isRunning(this.row.value));
  readonly recorded = computed(() => Boolean(this.trace.value?.request));
  readonly attempts = computed<Attempt[]>(() => this.trace.value?.attempts ?? []);
  /** The one that is shown: the last, or the one that the address names. */
  readonly attempt = computed<Attempt | undefined>(() => {
    const asked = param("try");
    return (asked === "" ? undefined : this.attempts.value[Number(asked)]) ?? this.attempts.value.at(-1);
  });
  readonly losses = computed<TracedLoss[]>(() => this.trace.value?.losses ?? this.attempt.value?.losses ?? []);

  /** Milliseconds of the stream that are shown, or null for all of it. */
  readonly at = computed<number | null>(() => (param("t") === "" ? null : Number(param("t"))));
  private readonly clientEventsOf = growingEvents();
  private readonly upstreamEventsOf = growingEvents();
  readonly clientEvents = computed<StreamEvent[]>(() => this.clientEventsOf(this.trace.value?.answer?.frames ?? []));
  readonly upstreamEvents = computed<StreamEvent[]>(() => this.upstreamEventsOf(this.attempt.value?.answer?.frames ?? []));
  readonly eventLinks = computed<EventLinks | null>(() =>
    this.attempt.value === this.attempts.value.at(-1) ? eventLinks(this.trace.value?.answer, this.clientEvents.value, this.upstreamEvents.value) : null,
  );
  /** By which a provider's silence is measured: its own events, or where none of them are known, what came of them. */
  readonly pace = computed<StreamEvent[]>(() => (this.upstreamEvents.value.length || this.attempt.value ? this.upstreamEvents.value : this.clientEvents.value.filter((event) => !isKeepAlive(event))));
  /** Until when nothing has come since, of a stream that did not end. */
  readonly hungUntil = computed<number | undefined>(() =>
    this.running.value ? this.trace.value?.now_ms : this.row.value?.state === "failed" || this.row.value?.state === "left" ? (this.row.value.total_ms ?? undefined) : undefined,
  );
  /** When the wait of one that runs began: what the client is sent meanwhile does not end it. */
  readonly waitsSince = computed<number>(() => {
    const provider = this.attempts.value.at(-1)?.answer?.frames?.at(-1)?.ms ?? 0;
    return Math.max(provider, this.trace.value?.steps?.at(-1)?.began_ms ?? 0);
  });
  /** When the last of it came. */
  readonly end = computed<number>(() => Math.max(this.row.value?.total_ms ?? 0, this.trace.value?.steps?.at(-1)?.ended_ms ?? 0, this.clientEvents.value.at(-1)?.ms ?? 0, this.upstreamEvents.value.at(-1)?.ms ?? 0, 1));
  readonly focus = computed<InFocus | null>(() => eventInFocus(param("ev"), this.at.value, this.clientEvents.value, this.upstreamEvents.value));
  readonly focusPartners = steady<number>(() => {
    const focus = this.focus.value;
    const links = this.eventLinks.value;
    return focus && links ? ((focus.side === "client" ? links.causes : links.effects)[focus.index] ?? []) : [];
  });

  /** The chosen part: its side and document, and its place there. */
  readonly chosen = computed<{ side: Side; document: Document; pointer: string } | null>(() => {
    const [, side, document, pointer] = /^(client|upstream)-(request|answer):(.*)$/s.exec(param("sel")) ?? [];
    return side ? { side: side as Side, document: document as Document, pointer: pointer ?? "" } : null;
  });
  readonly counterparts = steady<string>(() => {
    const chosen = this.chosen.value;
    return chosen ? partners(this.linksOf(chosen.document), chosen.side, chosen.pointer) : [];
  });

  readonly sides: ExchangeSide[] = [
    new ExchangeSide(this, "client", "request"),
    new ExchangeSide(this, "upstream", "request"),
    new ExchangeSide(this, "client", "answer"),
    new ExchangeSide(this, "upstream", "answer"),
  ];

  /** Shows the streams as they were at a moment; null for all of them. */
  scrub(ms: number | null): void {
    setQuery({ t: ms === null || ms >= this.end.value ? "" : String(Math.round(ms * 10) / 10) }, true);
  }

  linksOf(document: Document): Link[] {
    return (document === "request" ? this.attempt.value?.links : this.attempt.value?.answer_links) ?? [];
  }

  eventsOf(side: Side): StreamEvent[] {
    return side === "client" ? this.clientEvents.value : this.upstreamEvents.value;
  }

  /** Shows it as it grows, until it is over. */
  private async follow(where: string, signal: AbortSignal, over: () => Promise<void>): Promise<void> {
    let cursor = "";
    let trace: Trace | null = null;
    while (!signal.aborted) {
      let news: GrowingTrace;
      try {
        news = await get<GrowingTrace>(`${where}/running`, { cursor }, signal);
      } catch (caught) {
        if (signal.aborted) return;
        this.problem.value = message(caught);
        await pause(5 * LOOK_MS, signal);
        if (this.newest.value && !isRunning(this.newest.value)) return over();
        continue;
      }
      if (!isRunning(news.row)) return over();
      trace = grown(cursor ? trace : null, news);
      this.trace.value = trace;
      this.problem.value = "";
      cursor = news.cursor ?? "";
      if (!news.more) await pause(cursor ? LOOK_MS : 2 * LOOK_MS, signal);
      await seen();
    }
  }

  /** Loads it, and again when it ends; the result stops that. */
  open(): () => void {
    const stop = new AbortController();
    const where = `/exchanges/${encodeURIComponent(this.id)}`;
    // What was recorded at once, its links when they are made out: those take as long as translating it did.
    const load = async () => {
      try {
        const found = await get<Trace>(where, { only: "recorded" }, stop.signal);
        if (!isRunning(found.row) || !this.trace.value) this.trace.value = found;
        if (isRunning(found.row)) return await this.follow(where, stop.signal, load);
        this.problem.value = "";
        leave();
        if (!found.request) return;
        const cache = get<{ turns: CacheTruth[] }>(`${where}/cache`, {}, stop.signal);
        // In addition to what is shown: the exchange is complete without it.
        void cache.then(({ turns }) => { this.cache.value = turns[0] ?? null; }, () => undefined);
        try {
          this.trace.value = withAnalysis(found, await get<Trace>(where, { only: "told" }, stop.signal));
        } catch (caught) {
          if (!stop.signal.aborted) this.trace.value = { ...found, notes: [...(found.notes ?? []), `No links between both sides: ${message(caught)}`] };
        }
      } catch (caught) {
        if (!stop.signal.aborted) this.problem.value = message(caught);
      }
    };
    const leave = onRow((row) => {
      if (row.id === this.id) this.newest.value = row;
    });
    void load();
    return () => {
      stop.abort();
      leave();
    };
  }
}

const pause = (ms: number, signal: AbortSignal) => new Promise<void>((resolve) => {
  const done = () => resolve();
  setTimeout(done, ms);
  signal.addEventListener("abort", done, { once: true });
});

/** Until the tab is in sight. */
const seen = () => new Promise<void>((resolve) => {
  if (document.visibilityState !== "hidden") return resolve();
  document.addEventListener("visibilitychange", () => resolve(), { once: true });
});

const isRunning = (row: Row) => (row.state ?? "running") === "running";

/** One of the four sides: the client's or the upstream's, of the request or of the answer. */
export class ExchangeSide {
  readonly name: SideName;
  readonly title: string;

  constructor(
    readonly exchange: Exchange,
    readonly side: Side,
    readonly document: Document,
  ) {
    this.name = `${side}-${document}`;
    this.title = NAMES[this.name];
  }

  readonly message = computed<Message | null | undefined>(() => {
    const from = this.side === "client" ? { request: this.exchange.trace.value?.request, answer: this.exchange.trace.value?.answer } : this.exchange.attempt.value;
    return from?.[this.document];
  });
  /** Its document, once its pane has parsed it. */
  readonly value = signal<Json | undefined>(undefined);
  readonly events = computed<StreamEvent[]>(() => (this.document === "request" ? NO_EVENTS : this.exchange.eventsOf(this.side)));
  /** How many of its events have come by the time that is shown. */
  readonly visible = computed<number>(() => {
    const at = this.document === "request" ? null : this.exchange.at.value;
    const events = this.events.value;
    return at === null ? events.length : events.findLastIndex((event) => event.ms <= at) + 1;
  });
  readonly about = computed<string>(() => {
    const dialect = this.side === "client" ? this.exchange.row.value?.dialect : this.exchange.attempt.value?.dialect;
    const { method, status } = this.message.value ?? {};
    return [dialect, method, status ? String(status) : ""].filter(Boolean).join(" · ");
  });
  readonly missing = computed<string>(() => {
    if (this.exchange.running.value) return "Not yet available.";
    return this.side === "upstream" && !this.exchange.attempt.value ? "No provider was called." : "There was none, or it was not recorded.";
  });
  /** How it is shown: read, json, whole (a stream's document), events or raw. */
  readonly mode = computed<string>(() => param(`m-${this.name}`) || "read");

  readonly linked = computed<ReadonlySet<string>>(() => new Set(this.exchange.linksOf(this.document).map((link) => link[this.side])));
  readonly isChosen = computed<boolean>(() => {
    const chosen = this.exchange.chosen.value;
    return chosen?.side === this.side && chosen.document === this.document;
  });
  /** What is marked: the part that was chosen here, or the partners of the one that was chosen on the other side. */
  readonly lit = steady<string>(() => {
    const chosen = this.exchange.chosen.value;
    if (chosen?.document !== this.document) return [];
    return chosen.side === this.side ? [chosen.pointer] : this.exchange.counterparts.value;
  });
  /** Its losses by the places where they happened, as far as those are on this side. */
  readonly losses = computed<ReadonlyMap<string, TracedLoss[]>>(() => {
    const map = new Map<string, TracedLoss[]>();
    for (const loss of this.exchange.losses.value) {
      const pointer = this.side === "client" ? loss.pointer : loss.upstream;
      if (!pointer || (loss.document === "request") !== (this.document === "request")) continue;
      const here = map.get(pointer);
      if (here) here.push(loss);
      else map.set(pointer, [loss]);
    }
    return map;
  });

  /** The same document on the other side. */
  get partner(): ExchangeSide | undefined {
    return this.exchange.sides.find((each) => each.document === this.document && each.side !== this.side);
  }

  /** The event that is chosen here; -1 for none. */
  readonly chosenEvent = computed<number>(() => {
    const focus = this.exchange.focus.value;
    return focus?.side === this.side && focus.chosen ? focus.index : -1;
  });
  /** The events that are marked here: the newest while time runs, or the partners of the other side's. */
  readonly litEvents = steady<number>(() => {
    const focus = this.exchange.focus.value;
    if (focus?.side !== this.side) return this.exchange.focusPartners.value;
    return focus.chosen ? [] : [focus.index];
  });

  readonly choose = (pointer: string): void => {
    setQuery({ sel: `${this.name}:${pointer}` }, true);
    this.exchange.reveal.value += 1;
  };

  readonly chooseEvent = (index: number): void => setQuery({ ev: index < 0 ? "" : `${this.side}:${index}` }, true);

  /** Shows an event of the other side. */
  readonly showPartner = (index: number): void => {
    const other = otherSide(this.side);
    setQuery({ [`m-${other}-answer`]: "events", ev: `${other}:${index}`, pane: `${other}-answer` }, true);
  };

  readonly setMode = (mode: string): void => setQuery({ [`m-${this.name}`]: mode === "read" ? "" : mode }, true);

  /** Where the picture of a part is, on this gateway. */
  readonly picture = (pointer: string): string => address(`/exchanges/${encodeURIComponent(this.exchange.id)}/image`, { part: this.side, pointer });
}
