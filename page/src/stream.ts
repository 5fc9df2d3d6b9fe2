// A recorded stream: its pieces cut into events, each with the time of its last byte, and what they add up to so far.
import { type Json, parse } from "./json/parse";
import { type Part, pretty, readAnswer } from "./reading";
import type { Frame, Message } from "./types";

export class StreamEvent {
  private lines: { name: string; data: string } | null = null;
  private parsed: { value: Json | undefined } | null = null;

  constructor(
    readonly ms: number,
    readonly raw: string,
    /** The recorded piece in which it ended. */
    readonly frame: number,
    private readonly sse: boolean,
  ) {}

  /** Its name and data, cut when they are shown: a stream may have 20,000 of them. */
  private get cut(): { name: string; data: string } {
    if (this.lines) return this.lines;
    if (!this.sse) return (this.lines = { name: "", data: this.raw });
    let name = "";
    const data: string[] = [];
    for (const line of this.raw.split(/\r?\n|\r/)) {
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      else if (line.startsWith("event:")) name = line.slice(6).trim();
    }
    name ||= this.raw.startsWith(":") ? "comment" : data.join("") === "[DONE]" ? "done" : "";
    return (this.lines = { name, data: data.join("\n") });
  }

  get data(): string {
    return this.cut.data;
  }

  /** Also parsed when it is shown. */
  get value(): Json | undefined {
    if (this.parsed) return this.parsed.value;
    const text = this.data.replace(/^[\s,[]+(?=\{)/, "").replace(/(?<=\})[\s,\]]+$/, "");
    return (this.parsed = { value: text && text !== "[DONE]" ? parse(text).value : undefined }).value;
  }

  get name(): string {
    const { name } = this.cut;
    const value = name ? undefined : this.value;
    return name || (isObj(value) ? str(value["type"]) : "") || "data";
  }
}

type Obj = { [name: string]: Json };
const isObj = (value: Json | undefined): value is Obj => value !== null && typeof value === "object" && !Array.isArray(value);
const str = (value: Json | undefined): string => (typeof value === "string" ? value : "");
const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);

/** Characters of what is between two events that a piece may end with. */
const BOUNDARY = 3;

/** Server-sent events of the pieces, the first of which has this number; what is none (a JSON array, lines, bytes) is one event a piece. */
export function eventsOf(frames: Frame[], first = 0): StreamEvent[] {
  const sse = frames.some((frame) => /^(data|event|id|retry):|^:/m.test(frame.data));
  if (!sse) return frames.map((frame, index) => new StreamEvent(frame.ms, frame.data, first + index, false));
  const events: StreamEvent[] = [];
  // An event may be megabytes in thousands of pieces: each piece is looked at once, with the end of the one before it.
  let held: string[] = [];
  let end = "";
  const take = (raw: string, ms: number, index: number) => {
    if (raw.trim()) events.push(new StreamEvent(ms, raw, first + index, true));
  };
  frames.forEach((frame, index) => {
    const pieces = (end + frame.data).split(/\r?\n\r?\n|\r\r/);
    const rest = pieces.pop() ?? "";
    for (const piece of pieces) {
      take(held.join("") + piece, frame.ms, index);
      held = [];
    }
    end = rest.slice(-BOUNDARY);
    held.push(rest.slice(0, rest.length - end.length));
  });
  take(held.join("") + end, frames.at(-1)?.ms ?? 0, frames.length - 1);
  return events;
}

/** Which event comes of which: by their numbers on each side. */
export interface EventLinks {
  /** Of each event to the client: those of the provider that it comes of. */
  causes: number[][];
  /** Of each event of the provider: what the client got of it. */
  effects: number[][];
  by: "events" | "times";
}

export function eventLinks(answer: Message | undefined, client: StreamEvent[], upstream: StreamEvent[]): EventLinks | null {
  const frames = answer?.frames ?? [];
  if (!answer?.caused_by || !client.length || !upstream.length) return null;
  // An event may have come in several pieces: it represents all of them.
  const ofFrame: number[][] = [];
  upstream.forEach((event, index) => (ofFrame[event.frame] ??= []).push(index));
  for (let at = ofFrame.length - 2; at >= 0; at--) ofFrame[at] ??= ofFrame[at + 1] ?? [];
  const held = (frame: number): number[] => ofFrame[frame] ?? [];
  const effects: number[][] = upstream.map(() => []);
  let before = -1;
  const causes = client.map((event, index) => {
    const own = frames.slice(Math.min(before + 1, event.frame), event.frame + 1).flatMap((frame) => frame.causes ?? []);
    before = event.frame;
    const found = [...new Set(own.flatMap(held))].sort((a, b) => a - b);
    for (const each of found) effects[each]?.push(index);
    return found;
  });
  return { causes, effects, by: answer.caused_by };
}

/** A text of server-sent events, as the playground has it. */
export function eventsOfText(text: string): StreamEvent[] {
  return eventsOf([{ ms: 0, data: text + "\n\n" }]);
}

/** Which of the answer's parts an event is about, for the words next to it. */
export function wordsOf(event: StreamEvent): string {
  const value = event.value;
  if (!isObj(value)) return event.data;
  const delta = value["delta"];
  if (typeof delta === "string") return delta;
  if (isObj(delta)) {
    for (const name of ["text", "thinking", "partial_json", "arguments", "stop_reason", "signature"]) if (typeof delta[name] === "string") return delta[name];
    if (isObj(delta["content"])) return str(delta["content"]["text"]);
  }
  if (isObj(value["message"]) && "done" in value) {
    const call = list(value["message"]["tool_calls"])[0];
    const made = isObj(call) && isObj(call["function"]) ? `${str(call["function"]["name"])} ${JSON.stringify(call["function"]["arguments"])}` : "";
    return str(value["message"]["thinking"]) || str(value["message"]["content"]) || made || str(value["done_reason"]);
  }
  const block = value["content_block"];
  if (isObj(block)) return [str(block["type"]), str(block["name"])].filter(Boolean).join(" ");
  const choice = list(value["choices"])[0];
  if (isObj(choice)) {
    const inner = isObj(choice["delta"]) ? choice["delta"] : {};
    for (const name of ["content", "reasoning_content", "reasoning", "refusal"]) if (typeof inner[name] === "string" && inner[name]) return inner[name];
    const call = list(inner["tool_calls"])[0];
    if (isObj(call) && isObj(call["function"])) return str(call["function"]["name"]) + " " + str(call["function"]["arguments"]);
    return str(choice["finish_reason"]);
  }
  const body = isObj(value["response"]) && value["response"]["candidates"] ? value["response"] : value;
  const candidate = list(body["candidates"])[0];
  if (isObj(candidate)) {
    const parts = readAnswer(body);
    return parts.map((part) => part.name ? `${part.name} ${part.text}` : part.text).join(" ") || str(candidate["finishReason"]);
  }
  const item = value["item"] ?? value["part"] ?? value["step"];
  if (isObj(item)) return [str(item["type"]), str(item["name"])].filter(Boolean).join(" ");
  if (isObj(value["error"])) return str(value["error"]["message"]);
  return "";
}

type Grow = (key: string, kind: Part["kind"], text: string, more?: Partial<Part>) => void;

/** An event of Gemini Interactions. */
function growByStep(value: Obj, grow: Grow): void {
  const key = `step-${String(value["index"])}`;
  const step = value["step"];
  const delta = value["delta"];
  if (isObj(step) && str(step["type"]).endsWith("_call")) grow(key, "call", "", { name: str(step["name"]) || str(step["type"]), id: str(step["id"]) });
  if (!isObj(delta)) return;
  const content = isObj(delta["content"]) ? delta["content"] : delta;
  if (delta["type"] === "text") grow(key, "text", str(delta["text"]));
  else if (delta["type"] === "thought_summary") grow(key, "reasoning", str(content["text"]));
  else if (delta["type"] === "arguments_delta") grow(key, "call", str(delta["arguments"]));
}

/** A line of Ollama. */
function growByLine(value: Obj, grow: Grow): void {
  const message = isObj(value["message"]) ? value["message"] : { content: value["response"] ?? "", thinking: value["thinking"] ?? "" };
  if (str(message["thinking"])) grow("thinking", "reasoning", str(message["thinking"]));
  if (str(message["content"])) grow("content", "text", str(message["content"]));
  for (const call of list(message["tool_calls"])) {
    const made = isObj(call) && isObj(call["function"]) ? call["function"] : {};
    grow(`call-${str(isObj(call) ? call["id"] : "") || str(made["name"])}`, "call", pretty(made["arguments"]), { name: str(made["name"]) });
  }
}

/** What the events add up to: the answer as its reader has it after so many of them. */
export function foldEvents(events: readonly StreamEvent[], upTo = events.length): Part[] {
  const parts = new Map<string, Part>();
  const grow = (key: string, kind: Part["kind"], text: string, more: Partial<Part> = {}) => {
    const found = parts.get(key);
    if (found) {
      found.text += text;
      Object.assign(found, more);
    } else parts.set(key, { pointer: key, role: "assistant", kind, text, ...more });
  };
  let lastKind = "";
  let run = 0;
  for (let index = 0; index < upTo; index++) {
    const value = events[index]?.value;
    if (!isObj(value)) continue;
    const type = str(value["type"]);
    const delta = value["delta"];
    if (type === "content_block_start" && isObj(value["content_block"])) {
      const block = value["content_block"];
      const key = `block-${String(value["index"])}`;
      const kind = { text: "text", thinking: "reasoning", redacted_thinking: "reasoning", tool_use: "call", server_tool_use: "call" }[str(block["type"])] ?? "other";
      grow(key, kind as Part["kind"], str(block["text"]) || str(block["thinking"]), { name: str(block["name"]) || undefined, id: str(block["id"]) || undefined });
    } else if (type === "content_block_delta" && isObj(delta)) {
      const key = `block-${String(value["index"])}`;
      const kind = delta["type"] === "thinking_delta" ? "reasoning" : delta["type"] === "input_json_delta" ? "call" : "text";
      const text = str(delta["text"]) || str(delta["thinking"]) || str(delta["partial_json"]);
      if (text) grow(key, kind, text);
    } else if (type === "response.output_item.added" && isObj(value["item"])) {
      const item = value["item"];
      const kind = str(item["type"]);
      if (/call$/.test(kind)) grow(`item-${String(value["output_index"])}`, "call", "", { name: str(item["name"]) || kind, id: str(item["call_id"]) });
      else if (kind === "reasoning") grow(`item-${String(value["output_index"])}`, "reasoning", "");
    } else if (/^response\.(output_text|refusal|reasoning_text|reasoning_summary_text|function_call_arguments|custom_tool_call_input)\.delta$/.test(type)) {
      const key = `item-${String(value["output_index"])}` + (type.includes("output_text") ? `-${String(value["content_index"] ?? 0)}` : "");
      const kind = type.includes("reasoning") ? "reasoning" : type.includes("call") ? "call" : type.includes("refusal") ? "refusal" : "text";
      grow(key, kind, str(delta));
    } else if (Array.isArray(value["choices"])) {
      for (const choice of value["choices"]) {
        if (!isObj(choice) || !isObj(choice["delta"])) continue;
        const inner = choice["delta"];
        const at = String(choice["index"] ?? 0);
        const reasoning = str(inner["reasoning_content"]) || str(inner["reasoning"]);
        if (reasoning) grow(`reasoning-${at}`, "reasoning", reasoning);
        if (str(inner["content"])) grow(`text-${at}`, "text", str(inner["content"]));
        if (str(inner["refusal"])) grow(`refusal-${at}`, "refusal", str(inner["refusal"]));
        list(inner["tool_calls"]).forEach((call, order) => {
          if (!isObj(call)) return;
          const made = isObj(call["function"]) ? call["function"] : {};
          const more: Partial<Part> = {};
          if (str(made["name"])) more.name = str(made["name"]);
          if (str(call["id"])) more.id = str(call["id"]);
          grow(`call-${at}-${String(call["index"] ?? order)}`, "call", str(made["arguments"]), more);
        });
      }
    } else if (type === "error" || isObj(value["error"])) {
      for (const part of readAnswer(value)) parts.set("error", part);
    } else if (typeof value["event_type"] === "string") {
      growByStep(value, grow);
    } else if ("done" in value) {
      growByLine(value, grow);
    } else {
      const body = isObj(value["response"]) && value["response"]["candidates"] ? value["response"] : value;
      if (!Array.isArray(body["candidates"])) continue;
      for (const part of readAnswer(body)) {
        if (part.kind === "text" || part.kind === "reasoning") {
          if (part.kind !== lastKind) run++;
          lastKind = part.kind;
          grow(`run-${run}`, part.kind, part.text);
        } else {
          run++;
          lastKind = part.kind;
          parts.set(`run-${run}`, { ...part, pointer: `run-${run}` });
        }
      }
    }
  }
  return [...parts.values()].filter((part) => part.text || part.name || part.kind === "call");
}

/** Arguments as they read, where they are whole by now. */
export function settled(part: Part): Part {
  if (part.kind !== "call" || !part.text) return part;
  const parsed = parse(part.text);
  return parsed.value === undefined ? part : { ...part, text: pretty(parsed.value) };
}

export interface Gap {
  from: number;
  to: number;
}

/** Whether an event has nothing of an answer: the gateway writes such ones by itself while a provider is silent. */
export const isKeepAlive = (event: StreamEvent): boolean => event.name === "comment" || event.name === "ping";

/** Stretches in which nothing came, long for this stream. `until`: when a stream without an end was last looked at. */
export function gapsOf(events: readonly StreamEvent[], until?: number): Gap[] {
  const times = events.map((event) => event.ms);
  if (times.length && until !== undefined) times.push(until);
  const waits: number[] = [];
  for (let index = 1; index < times.length; index++) waits.push((times[index] ?? 0) - (times[index - 1] ?? 0));
  const usual = Float64Array.from(waits).sort()[Math.floor((waits.length - 1) * 0.75)] ?? 0;
  const long = Math.max(400, usual * 6);
  const gaps: Gap[] = [];
  waits.forEach((wait, index) => {
    if (wait >= long) gaps.push({ from: times[index] ?? 0, to: times[index + 1] ?? 0 });
  });
  return gaps.sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, 5);
}

/** When the first word of an answer was there; what an error says is none. */
export function firstWord(events: readonly StreamEvent[]): number | null {
  for (let index = 0; index < events.length; index++) {
    const event = events[index];
    if (event && foldEvents([event]).some((part) => part.kind !== "error" && (part.text || part.kind === "call"))) return event.ms;
  }
  return null;
}
