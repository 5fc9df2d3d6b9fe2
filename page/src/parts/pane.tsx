// One of the four sides of an exchange: as people read it, as JSON or events, or as it was.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration, plural, size } from "../format";
import { above } from "../json/lines";
import { useParsed, within } from "../json/parse";
import { JsonTree } from "../json/tree";
import { type Part, readAnswer, readRequest, settingsOf } from "../reading";
import { type StreamEvent, foldEvents, settled, wordsOf } from "../stream";
import type { Message, TracedLoss } from "../types";
import { LossMark, PartCard } from "./partcard";
import { Choice, Copy, GRADE_SIGN } from "./small";
import { Virtual } from "./virtual";

export interface ChosenEvent {
  chosen: number;
  lit: readonly number[];
  choose: (index: number) => void;
  /** Of the one that is chosen here: its partners on the other side, in words. */
  partners: ComponentChildren;
}

interface Props {
  name: string;
  about: ComponentChildren;
  message: Message | null | undefined;
  what: "request" | "answer";
  events: StreamEvent[];
  at: number | null;
  losses: TracedLoss[];
  placeOf: (loss: TracedLoss) => string | undefined;
  linked: ReadonlySet<string>;
  lit: readonly string[];
  chosenHere: boolean;
  reveal: number;
  choose: (pointer: string) => void;
  picture: (pointer: string) => string;
  mode: string;
  setMode: (mode: string) => void;
  /** The event that is chosen on this side, its partners here, and what they are to one another. */
  event: ChosenEvent;
  growing?: boolean;
  missing: string;
}

/** False for the first frame: what stands below may wait for what is seen first. */
function usePainted(): boolean {
  const [painted, setPainted] = useState(false);
  useEffect(() => {
    let timer = 0;
    const frame = requestAnimationFrame(() => {
      timer = window.setTimeout(() => setPainted(true));
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, []);
  return painted;
}

const SEEK_FRAMES = 90;
const CALM_FRAMES = 8;

/** Scrolls the pane, and not the page around it. How high parts are that were never in sight is only guessed: once they
 * are, it may stand elsewhere, and is sought again until it stays. */
function bringIntoSight(card: HTMLElement | null | undefined): void {
  const box = card?.closest<HTMLElement>(".reading");
  if (!card || !box) return;
  let calm = 0;
  let frames = 0;
  const seek = () => {
    const top = card.getBoundingClientRect().top - box.getBoundingClientRect().top;
    if (top >= 0 && top + Math.min(card.offsetHeight, 120) <= box.clientHeight) calm += 1;
    else {
      calm = 0;
      box.scrollTop += top - box.clientHeight / 3;
    }
    if (calm < CALM_FRAMES && frames++ < SEEK_FRAMES) requestAnimationFrame(seek);
  };
  seek();
}

const RAW_AT_FIRST = 200_000;

export function Pane(props: Props) {
  const { message, events, at, what, lit, linked } = props;
  const [search, setSearch] = useState("");
  const [finding, setFinding] = useState(false);
  const [allRaw, setAllRaw] = useState(false);
  const streamed = events.length > 0;
  const document = streamed ? message?.folded || undefined : message?.body || undefined;
  const parsed = useParsed(message?.base64 ? undefined : document);
  const body = useRef<HTMLDivElement>(null);
  const shownOnce = useRef(false);
  const painted = usePainted();
  const later = !painted && what === "answer";
  const visible = useMemo(() => {
    if (at === null) return events.length;
    let last = events.length;
    while (last > 0 && (events[last - 1]?.ms ?? 0) > at) last--;
    return last;
  }, [events, at]);
  // Once a stream is whole it is the document that it amounts to: that one has links and losses.
  const settledDown = streamed && visible === events.length && parsed?.value !== undefined;
  const mode = streamed && props.mode === "json" ? "events" : props.mode === "whole" && !(streamed && parsed) ? "json" : props.mode;
  const parts: Part[] = useMemo(() => {
    if (later) return [];
    if (streamed && !settledDown) return foldEvents(events, visible).map(settled);
    if (!parsed || parsed.value === undefined) return [];
    return what === "request" ? readRequest(parsed.value) : readAnswer(parsed.value);
  }, [parsed, streamed, settledDown, events, visible, what, later]);
  const placed = useMemo(() => {
    const map = new Map<string, TracedLoss[]>();
    for (const loss of props.losses) {
      const pointer = props.placeOf(loss);
      if (pointer) map.set(pointer, [...(map.get(pointer) ?? []), loss]);
    }
    return map;
  }, [props.losses]);

  useEffect(() => {
    if (mode !== "read" || !lit.length) return;
    const first = !shownOnce.current;
    shownOnce.current = parts.length > 0;
    // Who clicks a part sees it already; who comes by a link does not.
    if (props.chosenHere && !first) return;
    const show = (): boolean => {
      for (const card of body.current?.querySelectorAll<HTMLElement>("[data-pointer]") ?? []) {
        const pointer = card.dataset["pointer"] ?? "";
        if (lit.some((each) => within(pointer, each) || within(each, pointer))) {
          bringIntoSight(card);
          return true;
        }
      }
      return false;
    };
    if (show()) return;
    // It stands in what is folded, and is unfolded now.
    const frame = requestAnimationFrame(() => requestAnimationFrame(show));
    return () => cancelAnimationFrame(frame);
  }, [props.reveal, lit.join("\n"), parts.length > 0]);

  const jump = (part: Part) => {
    if (!part.id || (part.kind !== "call" && part.kind !== "result")) return undefined;
    const partner = parts.find((each) => each.id === part.id && each.kind === (part.kind === "call" ? "result" : "call"));
    if (!partner) return undefined;
    return () => {
      props.choose(partner.pointer);
      bringIntoSight(body.current?.querySelector<HTMLElement>(`[data-pointer="${CSS.escape(partner.pointer)}"]`));
    };
  };

  const [cards, beside] = useMemo(() => {
    // A loss or a link of a whole message, or of a field beside its content, stands at its first part; of a setting, at none.
    // By their places and not by comparing each with each: a conversation has hundreds of parts, and as many links.
    const here = new Map<string, Part>();
    const first = new Map<string, Part>();
    for (const part of parts) {
      if (!here.has(part.pointer)) here.set(part.pointer, part);
      for (const place of above(part.pointer)) if (!first.has(place)) first.set(place, part);
    }
    const owner = (pointer: string): Part | undefined => {
      const exact = here.get(pointer);
      if (exact) return exact;
      const places = above(pointer);
      for (let index = places.length - 1; index >= 0; index--) {
        const part = here.get(places[index] ?? "");
        if (part) return part;
      }
      for (const place of [pointer, ...places.reverse()]) {
        const part = place.split("/").length > 2 ? first.get(place) : undefined;
        if (part) return part;
      }
      return undefined;
    };
    const lost = new Map<Part, TracedLoss[]>();
    const rest: TracedLoss[] = [];
    for (const [pointer, losses] of placed) {
      const part = owner(pointer);
      if (part) lost.set(part, [...(lost.get(part) ?? []), ...losses]);
      else rest.push(...losses);
    }
    const joined = new Set<Part>();
    for (const pointer of linked) {
      const part = owner(pointer);
      if (part) joined.add(part);
    }
    return [{ lost, joined }, rest] as const;
  }, [placed, parts, linked]);

  const modes: [string, string][] = streamed
    ? [["read", "Read"], ["events", "Events"], ...(parsed ? [["whole", "JSON"] as [string, string]] : []), ["raw", "Raw"]]
    : [["read", "Read"], ["json", "JSON"], ["raw", "Raw"]];
  const asTree = mode === "json" || mode === "whole";
  const raw = () => (streamed ? events.slice(0, visible).map((event) => event.raw).join("\n\n") : (message?.body ?? ""));
  const isEmpty = !message || (!streamed && !message.body);
  const settings = parsed?.value !== undefined && !streamed ? settingsOf(parsed.value) : [];
  const isLit = (part: Part) => lit.some((each) => within(part.pointer, each) || (each !== "" && above(each).includes(part.pointer)) || each === part.pointer);

  return (
    <section class={`pane pane-${what}`} aria-label={props.name}>
      <header class="pane-head">
        <h2>{props.name}</h2>
        <span class="faint clip">{props.about}</span>
        <span class="pane-tools">
          {message?.truncated ? <span class="grade grade-degraded" title="only the beginning was kept">≈ cut, was {size(message.bytes)}</span> : null}
          {message?.stops && visible === events.length ? <span class="grade grade-degraded" title={message.stops}>≈ stops before its end</span> : null}
          {!isEmpty ? (
            <>
              {asTree ? (
                <button type="button" class="quiet" aria-pressed={finding} aria-label={`Find in ${props.name}`} title="Find" onClick={() => setFinding(!finding)}>
                  ⌕
                </button>
              ) : null}
              <Choice label={`How to show the ${props.name}`} options={modes} value={mode} choose={props.setMode} />
              <Copy text={raw} />
            </>
          ) : null}
        </span>
      </header>
      {finding && asTree ? (
        <div class="find">
          <input type="search" aria-label={`Find in ${props.name}`} placeholder="Find names and values" value={search} onInput={(event) => setSearch(event.currentTarget.value)} autoFocus />
        </div>
      ) : null}
      <div class="pane-body" ref={body}>
        {isEmpty ? (
          <p class="faint nothing">{props.missing}</p>
        ) : mode === "raw" ? (
          <RawText text={raw()} all={allRaw} showAll={() => setAllRaw(true)} name={props.name} />
        ) : mode === "events" ? (
          <Events events={events} visible={visible} name={props.name} {...props.event} />
        ) : !streamed && parsed === null ? (
          <p class="waiting">{message.base64 ? "No text: it is shown as Raw, in base64." : "Parsing …"}</p>
        ) : !streamed && parsed?.problem ? (
          <>
            <p class="note">This is no JSON ({parsed.problem}).</p>
            <RawText text={raw()} all={allRaw} showAll={() => setAllRaw(true)} name={props.name} />
          </>
        ) : asTree && parsed?.value !== undefined ? (
          <JsonTree
            value={parsed.value}
            label={props.name}
            losses={placed}
            linked={linked}
            lit={lit}
            reveal={props.chosenHere ? 0 : props.reveal}
            choose={props.choose}
            search={finding ? search : ""}
          />
        ) : (
          <div class="reading" tabIndex={0} role="group" aria-label={`${props.name}, part by part`}>
            {settings.length && what === "request" ? (
              <dl class="settings">
                {settings.slice(0, 24).map(([name, value]) => {
                  const pointer = "/" + name.replaceAll("~", "~0").replaceAll("/", "~1");
                  const lost = [...placed].filter(([each]) => within(each, pointer)).flatMap(([, losses]) => losses);
                  return (
                    <div key={name} class={`${lit.some((each) => within(each, pointer)) ? "lit " : ""}${linked.has(pointer) ? "linked " : ""}${lost.length || value.length > 30 ? "wide" : ""}`} onClick={() => props.choose(pointer)}>
                      <dt>{name}</dt>
                      <dd>
                        {value.length > 160 ? value.slice(0, 160) + "…" : value}
                        {lost.map((loss, index) => (
                          <LossMark key={index} loss={loss} />
                        ))}
                      </dd>
                    </div>
                  );
                })}
              </dl>
            ) : null}
            {beside.filter((loss) => !settings.some(([name]) => within(props.placeOf(loss) ?? "", "/" + name))).map((loss, index) => (
              <LossMark key={index} loss={loss} />
            ))}
            <Parts
              parts={parts}
              wanted={isLit}
              lost={cards.lost}
              some={!painted && !lit.length}
              render={(part, index) => (
                <PartCard
                  key={part.pointer + index}
                  part={part}
                  lit={isLit(part)}
                  linked={cards.joined.has(part)}
                  losses={cards.lost.get(part) ?? []}
                  choose={props.choose}
                  picture={props.picture}
                  jump={jump(part)}
                  growing={at !== null && visible < events.length && index === parts.length - 1}
                />
              )}
            />
            {streamed && !parts.length && !later ? <p class="faint nothing">{visible ? "No text yet." : "Nothing yet."}</p> : null}
            {!streamed && !parts.length && parsed && !later ? <p class="faint nothing">No messages in it: see JSON.</p> : null}
          </div>
        )}
      </div>
      {streamed ? (
        <footer class="pane-foot faint">
          {visible === events.length ? plural(events.length, "event") : `${visible} of ${plural(events.length, "event")}`}
          {visible ? `, last at ${duration(events[visible - 1]?.ms)}` : ""}
        </footer>
      ) : null}
    </section>
  );
}

const PARTS_AT_FIRST = 40;
const PARTS_IN_SIGHT = 6;

interface PartsProps {
  parts: Part[];
  /** What must be seen, wherever it stands. */
  wanted: (part: Part) => boolean;
  /** Only as many as are in sight, for the first frame. */
  some: boolean;
  /** A loss must not hide in what is folded. */
  lost: ReadonlyMap<Part, TracedLoss[]>;
  render: (part: Part, index: number) => ComponentChildren;
}

function Parts({ parts, wanted, some, lost, render }: PartsProps) {
  const [all, setAll] = useState(false);
  const [tools, setTools] = useState(false);
  const declared = parts.filter((part) => part.kind === "tool");
  const spoken = parts.filter((part) => part.kind !== "tool");
  const hidden = all || spoken.slice(0, -PARTS_AT_FIRST).some(wanted) ? 0 : Math.max(0, spoken.length - PARTS_AT_FIRST);
  const wantsTool = declared.some(wanted);
  const losses = declared.flatMap((part) => lost.get(part) ?? []);
  const worst = (["serious", "degraded", "harmless"] as const).find((grade) => losses.some((loss) => loss.grade === grade));
  useEffect(() => {
    if (!hidden) setAll(true);
  }, [hidden]);
  useEffect(() => {
    if (wantsTool) setTools(true);
  }, [wantsTool]);
  return (
    <>
      {declared.length ? (
        <details class="declared" open={tools} onToggle={(event) => setTools(event.currentTarget.open)}>
          <summary>
            {plural(declared.length, "tool")}: {declared.slice(0, 6).map((part) => part.name).join(", ")}
            {declared.length > 6 ? ", …" : ""}
            {worst ? <span class={`grade grade-${worst} fold-losses`}>{GRADE_SIGN[worst]} {plural(losses.length, "loss", "losses")}</span> : null}
          </summary>
          {tools ? declared.map(render) : null}
        </details>
      ) : null}
      {hidden ? (
        <button type="button" class="quiet more" onClick={() => setAll(true)}>
          Show {hidden} earlier parts
        </button>
      ) : null}
      {spoken.slice(hidden, some ? hidden + PARTS_IN_SIGHT : undefined).map((part, index) => render(part, index + hidden))}
    </>
  );
}

function RawText({ text, all, showAll, name }: { text: string; all: boolean; showAll: () => void; name: string }) {
  const long = text.length > RAW_AT_FIRST && !all;
  return (
    <>
      <pre class="raw" tabIndex={0} aria-label={`${name}, raw`}>
        {long ? text.slice(0, RAW_AT_FIRST) : text}
      </pre>
      {long ? (
        <button type="button" class="quiet more" onClick={showAll}>
          Show all {size(text.length)}
        </button>
      ) : null}
    </>
  );
}

function Events({ events, visible, name, chosen, lit, choose, partners }: { events: StreamEvent[]; visible: number; name: string } & ChosenEvent) {
  const event = chosen < visible ? events[chosen] : undefined;
  const marked = useMemo(() => new Set(lit), [lit]);
  const keys = (pressed: KeyboardEvent) => {
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey) return;
    const moves: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 12, PageUp: -12, Home: -1e9, End: 1e9 };
    const by = moves[pressed.key];
    if (by === undefined) return;
    choose(Math.max(0, Math.min(visible - 1, chosen < 0 && by > 0 ? by - 1 : chosen + by)));
    pressed.preventDefault();
    pressed.stopPropagation();
  };
  return (
    <>
      <Virtual
        class="events"
        role="list"
        label={`${name}, event by event: arrows choose one`}
        total={visible}
        height={24}
        active={chosen >= 0 ? chosen : (lit.at(-1) ?? (visible < events.length ? visible - 1 : -1))}
        onKeyDown={keys}
        render={(index) => {
          const each = events[index];
          if (!each) return null;
          const wait = index ? each.ms - (events[index - 1]?.ms ?? 0) : each.ms;
          return (
            <div key={index} role="listitem" class={`event${index === chosen ? " active" : ""}${marked.has(index) ? " lit" : ""}`}>
              <button type="button" tabIndex={-1} aria-expanded={index === chosen} onClick={() => choose(index === chosen ? -1 : index)}>
                <span class="event-number">{index + 1}</span>
                <span class="event-time">{duration(each.ms)}</span>
                <span class={`event-wait${wait >= 400 ? " long" : ""}`}>{index ? `+${duration(wait)}` : ""}</span>
                <span class="event-name">{each.name}</span>
                <span class="event-words">
                  {marked.has(index) ? <span class="unseen">partner of the chosen event: </span> : null}
                  {wordsOf(each)}
                </span>
              </button>
            </div>
          );
        }}
      />
      {event ? (
        <div class="event-open">
          <p class="event-partners" role="status">
            <span class="unseen">
              Event {chosen + 1} of {visible}, {event.name}.{" "}
            </span>
            {partners}
          </p>
          {event.value !== undefined ? <JsonTree value={event.value} label={`${name}, event ${chosen + 1}`} /> : <pre class="raw" tabIndex={0}>{event.raw}</pre>}
        </div>
      ) : null}
    </>
  );
}
