// A side of an exchange as people read it: its settings, its messages part by part, and at each what was lost.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ExchangeSide } from "../exchange";
import { plural } from "../format";
import { above } from "../json/lines";
import { type Json, within } from "../json/parse";
import { placeParts } from "../links";
import { type Part, partsInView, pointerOf, readAnswer, readRequest, settingsOf } from "../reading";
import { foldEvents, settled } from "../stream";
import type { TracedLoss } from "../types";
import { spacedAside } from "../whitespace";
import { LossMark, PartCard } from "./partcard";
import { GRADE_SIGN } from "./small";

/** False for the first frame: what is below may wait for what is seen first. */
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
/** What a pane was last asked to show. */
const soughtIn = new WeakMap<HTMLElement, HTMLElement>();

/** Scrolls the pane, and not the page around it. How high parts are that were never in sight is only guessed: once they
 * are, it may stand elsewhere, and is sought again until it stays. */
function bringIntoSight(card: HTMLElement | null | undefined): void {
  const box = card?.closest<HTMLElement>(".reading");
  if (!card || !box) return;
  soughtIn.set(box, card);
  let calm = 0;
  let frames = 0;
  const seek = () => {
    if (soughtIn.get(box) !== card || !card.isConnected) return; // another one is, or it is drawn no more
    const top = card.getBoundingClientRect().top - box.getBoundingClientRect().top;
    // A third of the way down; higher where the whole of it would not fit below that.
    const height = box.clientHeight;
    const wanted = card.offsetHeight <= height ? card.offsetHeight : height / 1.5;
    if (top >= 0 && top + wanted <= height) calm += 1;
    else {
      calm = 0;
      box.scrollTop += top - Math.min(height / 3, height - wanted);
    }
    if (calm < CALM_FRAMES && frames++ < SEEK_FRAMES) requestAnimationFrame(seek);
  };
  seek();
}

interface Props {
  side: ExchangeSide;
  /** Its document, once it is parsed. */
  value: Json | undefined;
}

const NONE: ReadonlyMap<string, string> = new Map();

export function Reading({ side, value }: Props) {
  const body = useRef<HTMLDivElement>(null);
  const shownOnce = useRef(false);
  /** Whether the user has navigated in it: from then on nothing moves by itself. */
  const touched = useRef(false);
  const touch = () => {
    touched.current = true;
    if (body.current) soughtIn.delete(body.current); // what is under the pointer stays there
  };
  const painted = usePainted();
  const later = !painted && side.document === "answer";
  const events = side.events.value;
  const visible = side.visible.value;
  const streamed = events.length > 0;
  // Once a stream is whole it is the document that it amounts to: that one has links and losses.
  const folding = streamed && (visible < events.length || value === undefined);
  const parts: Part[] = useMemo(() => {
    if (later) return [];
    if (folding) return foldEvents(events, visible).map(settled);
    if (value === undefined) return [];
    return side.document === "request" ? readRequest(value) : readAnswer(value);
  }, [value, folding, events, folding ? visible : 0, later]);
  const losses = side.losses.value;
  const linked = side.linked.value;
  const lit = side.lit.value;
  const reveal = side.exchange.reveal.value;
  const sought = side.exchange.sought.value;
  const soughtBefore = useRef(sought);
  const placed = useMemo(() => placeParts(parts, losses, linked), [parts, losses, linked]);

  useEffect(() => {
    if (!lit.length) return;
    const first = !shownOnce.current;
    shownOnce.current = parts.length > 0;
    const isSought = soughtBefore.current !== sought;
    soughtBefore.current = sought;
    // Who clicks a part sees it already; who comes by a link or from what was found does not.
    if (side.isChosen.value && !first && !isSought) return;
    const show = (): boolean => {
      for (const card of body.current?.querySelectorAll<HTMLElement>("[data-pointer]") ?? []) {
        const pointer = card.dataset["pointer"] ?? "";
        if (lit.some((each) => within(pointer, each) || within(each, pointer))) {
          bringIntoSight((isSought && card.querySelector<HTMLElement>("mark")) || card);
          return true;
        }
      }
      return false;
    };
    if (show()) return;
    // It is inside a folded part, which is unfolded now.
    const frame = requestAnimationFrame(() => requestAnimationFrame(show));
    return () => cancelAnimationFrame(frame);
  }, [reveal, sought, lit.join("\n"), parts.length > 0]);

  const jump = (part: Part) => {
    if (!part.id || (part.kind !== "call" && part.kind !== "result")) return undefined;
    const partner = parts.find((each) => each.id === part.id && each.kind === (part.kind === "call" ? "result" : "call"));
    if (!partner) return undefined;
    return () => {
      side.choose(partner.pointer);
      // It may not be drawn yet.
      requestAnimationFrame(() => bringIntoSight(body.current?.querySelector<HTMLElement>(`[data-pointer="${CSS.escape(partner.pointer)}"]`)));
    };
  };

  // The last words first: a request ends with what is new in it. Those who came by a link see what it names.
  useEffect(() => {
    if (!painted || touched.current || lit.length || side.document !== "request") return;
    bringIntoSight([...(body.current?.querySelectorAll<HTMLElement>(":scope > [data-pointer]") ?? [])].at(-1));
  }, [painted, placed]);

  // The newest words of an answer that comes, or is played.
  const grows = streamed && (visible < events.length || side.exchange.running.value);
  useLayoutEffect(() => {
    const box = body.current;
    if (grows && box && !touched.current && !lit.length) box.scrollTop = box.scrollHeight;
  }, [grows, parts]);

  const links = side.exchange.linksOf(side.document);
  const theirs = side.partner?.value.value;
  const [spaced, setSpaced] = useState(NONE);
  useEffect(() => {
    if (!painted || folding || value === undefined || theirs === undefined) return;
    let on = true;
    void spacedAside(links, side.side, value, theirs, () => on).then((found) => on && setSpaced(found.size ? found : NONE));
    return () => {
      on = false;
    };
  }, [painted, folding, links, value, theirs]);
  const isLit = (part: Part) => lit.some((each) => within(part.pointer, each) || (each !== "" && above(each).includes(part.pointer)) || each === part.pointer);

  const settings = value !== undefined && !streamed && side.document === "request" ? settingsOf(value) : [];
  const isSetting = (pointer: string) => settings.some(([name]) => within(pointer, pointerOf(name)));

  return (
    <div class="reading" ref={body} onWheel={touch} onPointerDown={touch} onKeyDown={touch} tabIndex={0} role="group" aria-label={`${side.title}, part by part`}>
      {settings.length ? <Settings side={side} settings={settings} /> : null}
      {[...placed.beside].flatMap(([pointer, found]) => (isSetting(pointer) ? [] : found)).map((loss, index) => (
        <LossMark key={index} loss={loss} />
      ))}
      <Parts
        parts={parts}
        wanted={isLit}
        lost={placed.lost}
        some={!painted && !lit.length}
        render={(part, index) => (
          <PartCard
            key={part.pointer + index}
            part={part}
            state={{
              lit: isLit(part),
              linked: placed.joined.has(part),
              growing: grows && index === parts.length - 1,
              losses: placed.lost.get(part) ?? [],
              jump: jump(part),
              spaced: spaced.size ? (spaced.get(part.pointer) ?? spaced.get(`${part.pointer}/text`)) : undefined,
            }}
            choose={side.choose}
            picture={side.picture}
            marks={side.exchange.words.value}
          />
        )}
      />
      {!parts.length && !later ? <p class="faint nothing">{!streamed ? "No messages in it: see JSON." : visible ? "No text yet." : "Nothing yet."}</p> : null}
    </div>
  );
}

const SETTINGS_SHOWN = 24;
const SETTING_CLIP = 160;
const SETTING_WIDE = 30;

function Settings({ side, settings }: { side: ExchangeSide; settings: [string, string][] }) {
  const losses = side.losses.value;
  const linked = side.linked.value;
  const lit = side.lit.value;
  return (
    <dl class="settings">
      {settings.slice(0, SETTINGS_SHOWN).map(([name, value]) => {
        const pointer = pointerOf(name);
        const lost = [...losses].filter(([each]) => within(each, pointer)).flatMap(([, found]) => found);
        const classes = [lit.some((each) => within(each, pointer)) ? "lit" : "", linked.has(pointer) ? "linked" : "", lost.length || value.length > SETTING_WIDE ? "wide" : ""];
        return (
          <div key={name} class={classes.filter(Boolean).join(" ")} onClick={() => side.choose(pointer)}>
            <dt>{name}</dt>
            <dd>
              {value.length > SETTING_CLIP ? value.slice(0, SETTING_CLIP) + "…" : value}
              {lost.map((loss, index) => (
                <LossMark key={index} loss={loss} />
              ))}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** With each click on "earlier" or "later": to draw thousands at once would stop the page for seconds. */
const MORE_PARTS = 100;
const PARTS_IN_SIGHT = 6;

export function MoreParts({ hidden, which, show }: { hidden: number; which: "earlier" | "later"; show: (more: number) => void }) {
  const more = Math.min(hidden, MORE_PARTS);
  return (
    <button type="button" class="quiet more" onClick={() => show(more)}>
      Show {more < hidden ? `${more} of ` : ""}{plural(hidden, `${which} part`)}
    </button>
  );
}

interface PartsProps {
  parts: Part[];
  /** What must be visible, wherever it is. */
  wanted: (part: Part) => boolean;
  /** Only as many as are in sight, for the first frame. */
  some: boolean;
  /** A loss must not hide in what is folded. */
  lost: ReadonlyMap<Part, TracedLoss[]>;
  render: (part: Part, index: number) => ComponentChildren;
}

function Parts({ parts, wanted, some, lost, render }: PartsProps) {
  /** The first that is drawn, and behind the last: those of the end while null. */
  const [first, setFirst] = useState<number | null>(null);
  const [last, setLast] = useState<number | null>(null);
  const [tools, setTools] = useState(false);
  const declared = parts.filter((part) => part.kind === "tool");
  const spoken = parts.filter((part) => part.kind !== "tool");
  const asked = spoken.findIndex(wanted);
  const { from, to } = partsInView(spoken.length, first, last, asked);
  const wantsTool = declared.some(wanted);
  const losses = declared.flatMap((part) => lost.get(part) ?? []);
  const worst = (["serious", "degraded", "harmless"] as const).find((grade) => losses.some((loss) => loss.grade === grade));
  useEffect(() => {
    if (asked < 0) return;
    setFirst(from);
    setLast(to < spoken.length ? to : null);
  }, [asked]);
  // All of a few stay, however many follow.
  useEffect(() => {
    if (spoken.length && !from) setFirst(0);
  }, [spoken.length > 0, from]);
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
      {from ? <MoreParts hidden={from} which="earlier" show={(more) => setFirst(from - more)} /> : null}
      {spoken.slice(some ? Math.max(from, to - PARTS_IN_SIGHT) : from, to).map((part, index, shown) => render(part, index + to - shown.length))}
      {to < spoken.length ? <MoreParts hidden={spoken.length - to} which="later" show={(more) => setLast(to + more < spoken.length ? to + more : null)} /> : null}
    </>
  );
}
