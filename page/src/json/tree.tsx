// A JSON document as a folded tree, of which only the lines in sight are drawn.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { GRADE_SIGN } from "../parts/small";
import { Virtual } from "../parts/virtual";
import type { TracedLoss } from "../types";
import { type Line, above, find, linesOf } from "./lines";
import { type Json, within } from "./parse";

export const LINE = 20;
const NOTHING: ReadonlySet<string> = new Set();

interface Props {
  value: Json;
  label: string;
  losses?: ReadonlyMap<string, TracedLoss[]>;
  /** Parts that have a partner on the other side. */
  linked?: ReadonlySet<string>;
  /** What is lit: the part that was chosen, or its partners. */
  lit?: readonly string[];
  /** Counts up when the lit part is to be brought into sight. */
  reveal?: number;
  choose?: (pointer: string) => void;
  search?: string;
}

export function JsonTree({ value, label, losses, linked, lit = [], reveal = 0, choose, search = "" }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [columns, setColumns] = useState(80);
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [active, setActive] = useState(-1);
  const [hit, setHit] = useState(0);
  const hits = useMemo(() => (search.length > 1 ? find(value, search) : []), [value, search]);
  useEffect(() => setHit(0), [search]);
  const hitPointer = hits[hit];
  const forced = useMemo(() => {
    if (!lit.length && !hitPointer && !losses?.size) return NOTHING;
    const all = new Set<string>();
    for (const pointer of [...lit, ...(hitPointer ? [hitPointer] : [])]) for (const each of above(pointer)) all.add(each);
    for (const pointer of losses?.keys() ?? []) for (const each of above(pointer)) if (!/^\/tools\//.test(each)) all.add(each);
    if (hitPointer) all.add(hitPointer);
    return all;
  }, [lit.join("\n"), hitPointer, losses]);
  const lines = useMemo(() => linesOf(value, { chosen, columns, losses: losses ?? new Map(), forced }), [value, chosen, columns, losses, forced]);

  const show = (pointer: string) => {
    const index = lines.findIndex((line) => line.pointer === pointer);
    const element = box.current;
    if (index < 0 || !element) return;
    const top = index * LINE;
    if (top < element.scrollTop || top > element.scrollTop + element.clientHeight - LINE * 3)
      element.scrollTop = Math.max(0, top - element.clientHeight / 3);
  };
  useEffect(() => {
    if (lit[0] !== undefined) show(lit[0]);
  }, [reveal, lit.join("\n")]);
  useEffect(() => {
    if (hitPointer !== undefined) show(hitPointer);
  }, [hitPointer]);

  const fold = (line: Line, open: boolean) => {
    const next = new Map(chosen);
    next.set(line.pointer, open);
    setChosen(next);
  };

  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const line = lines[active];
    switch (event.key) {
      case "ArrowDown":
      case "j":
        setActive(Math.min(lines.length - 1, active + 1));
        break;
      case "ArrowUp":
      case "k":
        setActive(Math.max(0, active - 1));
        break;
      case "Home":
        setActive(0);
        break;
      case "End":
        setActive(lines.length - 1);
        break;
      case "ArrowRight":
        if (line?.kind === "folded") fold(line, true);
        break;
      case "ArrowLeft":
        if (line?.kind === "open") fold(line, false);
        else if (line) {
          const parent = line.pointer.slice(0, Math.max(0, line.pointer.lastIndexOf("/")));
          setActive(lines.findIndex((each) => each.pointer === parent && each.kind === "open"));
        }
        break;
      case "Enter":
      case " ":
        if (line) choose?.(line.pointer);
        break;
      case "n":
        if (hits.length) setHit((hit + 1) % hits.length);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const id = `tree-${label.replaceAll(/\W+/g, "-")}`;
  return (
    <>
      {search.length > 1 ? (
        <p class="hits" role="status">
          {hits.length ? `${hit + 1} of ${hits.length}${hits.length === 500 ? " or more" : ""}` : "not found"}
          {hits.length > 1 ? (
            <>
              <button type="button" class="quiet" aria-label="Previous" onClick={() => setHit((hit - 1 + hits.length) % hits.length)}>↑</button>
              <button type="button" class="quiet" aria-label="Next" onClick={() => setHit((hit + 1) % hits.length)}>↓</button>
            </>
          ) : null}
        </p>
      ) : null}
      <Virtual
        box={box}
        class="json"
        role="tree"
        label={label}
        total={lines.length}
        height={LINE}
        active={active}
        activeId={active >= 0 ? `${id}-${active}` : undefined}
        onKeyDown={keys}
        onWidth={(width) => setColumns(Math.max(24, Math.floor((width - 40) / 7.25)))}
        render={(index) => {
          const line = lines[index];
          if (!line) return null;
          const isLit = lit.some((pointer) => within(line.pointer, pointer));
          const folds = line.kind === "open" || line.kind === "folded";
          const classes = ["jl", `jl-${line.kind}`];
          if (isLit) classes.push("lit");
          if (index === active) classes.push("active");
          if (linked?.has(line.pointer) && line.kind !== "close" && line.kind !== "text" && line.kind !== "loss") classes.push("linked");
          if (line.pointer === hitPointer) classes.push("hit");
          return (
            <div
              key={index}
              id={`${id}-${index}`}
              role="treeitem"
              aria-level={line.depth + 1}
              aria-expanded={folds ? line.kind === "open" : undefined}
              aria-selected={isLit}
              class={classes.join(" ")}
              style={{ paddingLeft: `${22 + line.depth * 14}px` }}
              onClick={() => {
                setActive(index);
                choose?.(line.pointer);
              }}
            >
              {folds ? (
                <span
                  class="fold"
                  aria-hidden="true"
                  onClick={(event) => {
                    event.stopPropagation();
                    fold(line, line.kind === "folded");
                  }}
                >
                  {line.kind === "open" ? "▾" : "▸"}
                </span>
              ) : null}
              {line.kind === "loss" && line.loss ? (
                <span class={`grade grade-${line.loss.grade}`} title={line.loss.detail}>
                  <span aria-hidden="true">{GRADE_SIGN[line.loss.grade]}</span> {line.loss.feature} {line.loss.action}
                  {line.loss.detail ? <span class="loss-detail">: {line.loss.detail}</span> : null}
                </span>
              ) : (
                <>
                  {line.name !== undefined ? <span class="jk">{line.name}: </span> : null}
                  <span
                    class={line.type ? `jv jv-${line.type}` : "jp"}
                    onClick={line.kind === "folded" && line.type === "string" ? () => fold(line, true) : undefined}
                  >
                    {line.text}
                  </span>
                  {line.comma ? <span class="jp">,</span> : null}
                </>
              )}
            </div>
          );
        }}
      />
    </>
  );
}
