// A message's part as people read it: words, a folded thought, a tool's call and its result, a picture after a click.
import { useMemo, useState } from "preact/hooks";
import { plural } from "../format";
import type { Part } from "../reading";
import { marked } from "../search";
import type { TracedLoss } from "../types";
import { signsOf, spotsOf } from "../whitespace";
import { GRADE_SIGN } from "./small";

const CLIP = 1200;
const CLIP_LINES = 24;

/** How much of a text is shown at first: so many characters, and so many lines. */
function clipOf(text: string, most: number): number {
  let end = -1;
  for (let lines = 0; lines < CLIP_LINES; lines++) {
    end = text.indexOf("\n", end + 1);
    if (end < 0 || end >= most) return most;
  }
  return end;
}

interface WordsProps {
  text: string;
  mono?: boolean;
  most?: number;
  /** Words that are searched for. */
  marks?: string;
}

export function Words({ text, mono = false, most = CLIP, marks = "" }: WordsProps) {
  const [all, setAll] = useState(false);
  const clip = clipOf(text, most);
  const long = text.length > clip * 1.2;
  // What is searched for must not be in what is folded.
  const open = all || (long && marks.length > 1 && text.toLowerCase().indexOf(marks.toLowerCase()) >= clip - marks.length);
  const shown = long && !open ? text.slice(0, clip) + "…" : text;
  return (
    <>
      <div class={mono ? "words mono" : "words"}>{marks ? marked(shown, marks).map((piece, index) => (index % 2 ? <mark key={index}>{piece}</mark> : piece)) : shown}</div>
      {long ? (
        <button
          type="button"
          class="quiet more"
          onClick={(event) => {
            event.stopPropagation();
            setAll(!open);
          }}
        >
          {open ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}
        </button>
      ) : null}
    </>
  );
}

export function LossMark({ loss, show }: { loss: TracedLoss; show?: (() => void) | undefined }) {
  return (
    <p class={`loss-mark grade grade-${loss.grade}`}>
      <span aria-hidden="true">{GRADE_SIGN[loss.grade] ?? "·"}</span> <strong>{loss.feature}</strong> {loss.action} ({loss.grade})
      {loss.detail ? <>: {loss.detail}</> : null}
      {show ? (
        <button type="button" class="quiet" aria-label={`Show the place of ${loss.feature}`} onClick={show}>
          show
        </button>
      ) : null}
    </p>
  );
}

/** Where both sides differ in white space, which is drawn as signs. */
function Spaced({ mine, theirs }: { mine: string; theirs: string }) {
  const { spots, total } = useMemo(() => spotsOf(mine, theirs), [mine, theirs]);
  return (
    <details class="spaced" onClick={(event) => event.stopPropagation()}>
      <summary>
        <span class="grade grade-harmless">␣ White space differs from the other side</span> in {plural(total, "place")}
      </summary>
      <ul>
        {spots.map((spot, index) => (
          <li key={index} class="mono">
            <span class="faint">{signed(spot.before)}</span>
            {spot.mine ? <del><span class="unseen">here: </span>{signsOf(spot.mine)}</del> : null}
            {spot.theirs ? <ins><span class="unseen">on the other side: </span>{signsOf(spot.theirs)}</ins> : null}
            <span class="faint">{signed(spot.after)}</span>
          </li>
        ))}
        {total > spots.length ? <li class="faint">and {total - spots.length} more</li> : null}
      </ul>
    </details>
  );
}

const signed = (text: string) => text.replaceAll(/[\n\t\r]/g, (space) => signsOf(space));

/** What is known of a part next to its other side. */
export interface PartState {
  lit?: boolean;
  linked?: boolean;
  growing?: boolean;
  losses?: TracedLoss[];
  /** To the partner of a call or a result, if it is in the same pane. */
  jump?: (() => void) | undefined;
  /** The text of its partner, where that differs in white space alone. */
  spaced?: string | undefined;
}

interface Props {
  part: Part;
  state?: PartState;
  choose?: (pointer: string) => void;
  /** Where a picture of this part is, on this gateway. */
  picture?: ((pointer: string) => string) | undefined;
  /** Words that are searched for. */
  marks?: string;
}

const NAMES: Record<string, string> = {
  system: "system",
  text: "",
  reasoning: "reasoning",
  call: "calls",
  result: "result of",
  image: "picture",
  file: "file",
  tool: "tool",
  refusal: "refusal",
  error: "error",
  other: "",
};

export function PartCard({ part, state = {}, choose, picture, marks = "" }: Props) {
  const { lit, linked, growing, losses = [], jump, spaced } = state;
  const [shown, setShown] = useState<"" | "yes" | "failed">("");
  const classes = ["part", `part-${part.kind}`, `by-${part.role || "none"}`];
  if (lit) classes.push("lit");
  if (linked) classes.push("linked");
  if (part.failed) classes.push("part-failed");
  if (growing) classes.push("growing");
  return (
    <div
      class={classes.join(" ")}
      data-pointer={part.pointer}
      onClick={choose ? () => choose(part.pointer) : undefined}
    >
      <div class="part-head">
        <span class="role">{part.role === "tools" ? "tool" : part.kind === "result" ? "tool" : part.role || "part"}</span>
        {part.kind !== "text" && part.kind !== "tool" && NAMES[part.kind] && NAMES[part.kind] !== part.role ? <span class="faint">{NAMES[part.kind]}</span> : null}
        {part.name ? <span class="part-name">{part.name}</span> : null}
        {part.id && part.id !== part.name ? <code class="part-id">{part.id}</code> : null}
        {part.failed ? <span class="grade grade-serious">✕ failed</span> : null}
        {jump ? (
          <button
            type="button"
            class="quiet"
            onClick={(event) => {
              event.stopPropagation();
              jump();
            }}
          >
            {part.kind === "call" ? "its result ↓" : "its call ↑"}
          </button>
        ) : null}
        {linked && choose ? (
          <button
            type="button"
            class="quiet link-sign"
            aria-label="Show its counterpart on the other side"
            title="Show its counterpart on the other side"
            onClick={(event) => {
              event.stopPropagation();
              choose(part.pointer);
            }}
          >
            ⇄
          </button>
        ) : null}
      </div>
      {part.kind === "reasoning" ? (
        part.text ? (
          <details open={growing ?? false} onClick={(event) => event.stopPropagation()}>
            <summary>
              Reasoning, {part.text.length.toLocaleString("en")} characters
            </summary>
            <Words text={part.text} marks={marks} />
          </details>
        ) : part.note ? (
          <p class="faint part-note">
            {part.note}
            {part.goesBack && !losses.length ? " It goes back to the provider unchanged with the next turn, so that the model can go on from it." : ""}
          </p>
        ) : null
      ) : part.kind === "image" ? (
        part.data && picture ? (
          shown === "yes" ? (
            <img class="picture" src={picture(part.data)} alt={`Part of the exchange, ${part.name ?? ""}`} onError={() => setShown("failed")} />
          ) : shown === "failed" ? (
            <p class="faint">The gateway has no picture of a kind that is shown here (PNG, JPEG, GIF, WebP).</p>
          ) : (
            <button
              type="button"
              onClick={(event) => {
                event.stopPropagation();
                setShown("yes");
              }}
            >
              Show the picture
            </button>
          )
        ) : part.text ? (
          <p class="faint">
            At an address, which is not loaded: <code>{part.text}</code>
          </p>
        ) : null
      ) : part.text ? (
        <Words text={part.text} marks={marks} mono={part.kind === "call" || part.kind === "result" || part.kind === "other"} most={part.kind === "system" ? 400 : CLIP} />
      ) : part.kind === "text" ? (
        <span class="faint">empty</span>
      ) : null}
      {spaced !== undefined ? <Spaced mine={part.text} theirs={spaced} /> : null}
      {losses.map((loss, index) => (
        <LossMark key={index} loss={loss} />
      ))}
    </div>
  );
}
