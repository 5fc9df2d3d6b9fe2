// An answer while it comes: sent through the gateway, read as its dialect's client reads it.
import { ApiError, API, message, session } from "./api";
import { eventsIn } from "./alignment";
import { parse } from "./json/parse";
import { type Part, readAnswer } from "./reading";
import { type StreamEvent, foldEvents, settled } from "./stream";

export interface Answer {
  to: string;
  /** Of the exchange, once it is known. */
  id: string;
  state: "running" | "done" | "failed" | "left";
  status: number;
  parts: Part[];
  error: string;
  began: number;
  ended: number;
}

export const began = (to: string): Answer => ({ to, id: "", state: "running", status: 0, parts: [], error: "", began: Date.now(), ended: 0 });

/** What came so far, with every event read once. */
class Coming {
  text = "";
  private read = 0;
  private readonly events: StreamEvent[] = [];

  /** Its parts: of a stream, or of a whole document. */
  parts(): Part[] {
    // Whether it is one document, and there to its end: not by a pattern that starts again at each empty line.
    if (/^\s*\{/.test(this.text) && !/\n[^\S\n]*\{/.test(this.text) && this.text.trimEnd().endsWith("}")) {
      const whole = parse(this.text).value;
      if (whole !== undefined) return readAnswer(whole);
    }
    const end = /^(?:data|event|id|retry|):/.test(this.text) ? this.text.lastIndexOf("\n\n") + 2 : this.text.lastIndexOf("\n") + 1;
    if (end > this.read) {
      this.events.push(...eventsIn(this.text.slice(this.read, end)));
      this.read = end;
    }
    return foldEvents(this.events).map(settled);
  }
}

/** What an error says, in whichever dialect. */
function errorOf(text: string, status: number): string {
  const value = parse(text).value as { error?: { message?: unknown } | string } | undefined;
  const error = value?.error;
  const said = typeof error === "string" ? error : error?.message;
  return typeof said === "string" ? said : `The gateway answered ${status}.`;
}

const DRAW_MS = 80;

/** Sends, and reports the answer each time that more of it is there. It ends when `signal` is aborted. */
export async function answer(body: unknown, first: Answer, report: (answer: Answer) => void, signal: AbortSignal): Promise<void> {
  let now = first;
  const set = (change: Partial<Answer>) => report((now = { ...now, ...change }));
  const coming = new Coming();
  try {
    const response = await fetch(`${API}/replay`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-wireglot-csrf": session.value?.csrf ?? "" },
      credentials: "same-origin",
      cache: "no-store",
      body: JSON.stringify(body),
      signal,
    }).catch((caught: unknown) => {
      if (signal.aborted) throw caught;
      throw new ApiError(0, "The gateway does not answer. Is it still running?");
    });
    set({ id: response.headers.get("x-wireglot-request-id") ?? "", status: response.status });
    const decoder = new TextDecoder();
    let next = 0;
    for (const reader = response.body?.getReader(); reader; ) {
      const { done, value } = await reader.read();
      if (done) break;
      coming.text += decoder.decode(value, { stream: true });
      if (response.ok && Date.now() > next) {
        const before = Date.now();
        set({ parts: coming.parts() });
        // The longer it is, the longer it takes to read: most of the time is for what comes.
        next = Date.now() + Math.max(DRAW_MS, 4 * (Date.now() - before));
      }
    }
    if (!response.ok) set({ state: "failed", error: errorOf(coming.text, response.status), ended: Date.now() });
    else {
      const parts = coming.parts();
      set({ state: parts.some((part) => part.kind === "error") ? "failed" : "done", parts, ended: Date.now() });
    }
  } catch (caught) {
    if (signal.aborted) set({ state: "left", parts: coming.parts(), ended: Date.now() });
    else set({ state: "failed", error: message(caught), parts: coming.parts(), ended: Date.now() });
  }
}
