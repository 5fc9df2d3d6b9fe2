// The small things that every view is made of.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { lossesOf, purposeOf, waitWord, waitsFor, worstGrade } from "../format";
import type { LossCounts, Row } from "../types";

/** Each grade has its colour, and always its sign and its word. */
export const GRADE_SIGN: Record<string, string> = { serious: "✕", degraded: "≈", harmless: "·" };
export const GRADE_WORDS: Record<string, string> = {
  serious: "the model misses something, or the caller gets other than it counts on",
  degraded: "the answer may be different or worse",
  harmless: "the answer is the same, or as good",
};

export function Grade({ grade, children }: { grade: string; children?: ComponentChildren }) {
  return (
    <span class={`grade grade-${grade}`} title={GRADE_WORDS[grade]}>
      <span aria-hidden="true">{GRADE_SIGN[grade] ?? "·"}</span> {children ?? grade}
    </span>
  );
}

export function Losses({ losses }: { losses: LossCounts | null | undefined }) {
  const total = lossesOf(losses);
  if (!losses) return <span class="faint">–</span>;
  if (!total)
    return (
      <span class="grade grade-kept" title="nothing was lost">
        <span aria-hidden="true">✓</span> none
      </span>
    );
  const worst = worstGrade(losses);
  const words = (["serious", "degraded", "harmless"] as const).filter((each) => losses[each]).map((each) => `${losses[each]} ${each}`);
  return (
    <span class={`grade grade-${worst}`} title={words.join(", ")}>
      <span aria-hidden="true">{GRADE_SIGN[worst]}</span> {losses[worst as keyof LossCounts]} <span class="grade-word">{worst}</span>{total > (losses[worst as keyof LossCounts] ?? 0) ? <span class="grade-rest"> +{total - (losses[worst as keyof LossCounts] ?? 0)}</span> : null}
    </span>
  );
}

export function Purpose({ row }: { row: Row }) {
  const reported = purposeOf(row);
  if (!reported) return null;
  const more = [
    `purpose: ${row.purpose || "unknown"}${row.purpose_word && row.purpose_word !== row.purpose ? ` (${row.purpose_word})` : ""}`,
    row.agent_name ? `agent: ${row.agent_name}` : "",
    row.agent_id ? `agent id: ${row.agent_id}` : "",
    row.parent_agent_id ? `started by: ${row.parent_agent_id}` : "",
  ];
  return <span class={`tag purpose purpose-${row.purpose || "unknown"}`} title={more.filter(Boolean).join("\n")}>{reported}</span>;
}

export function Status({ row }: { row: Row }) {
  const state = row.state ?? "running";
  if (state === "running")
    return (
      <span class="status status-running" title={waitsFor(row, Date.now() / 1000) || undefined}>
        <span class="pulse" aria-hidden="true" /> {waitWord(row)}
      </span>
    );
  if (state === "left")
    return (
      <span class="status status-left" title="the client went before its answer was whole">
        <span aria-hidden="true">↯</span> client disconnected
      </span>
    );
  const bad = state === "failed" || (row.status ?? 0) >= 400;
  return (
    <span class={`status ${bad ? "status-bad" : "status-good"}`}>
      <span aria-hidden="true">{bad ? "✕" : "✓"}</span> {row.status || state}
      {bad && row.status && row.status < 400 ? " broken" : ""}
    </span>
  );
}

export function Copy({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  const [done, setDone] = useState("");
  return (
    <>
    <button
      type="button"
      class="quiet copy"
      onClick={async () => {
        try {
          await navigator.clipboard.writeText(typeof text === "string" ? text : text());
          setDone("Copied");
        } catch {
          setDone("The browser does not allow it");
        }
        setTimeout(() => setDone(""), 1600);
      }}
    >
      {done || label}
    </button>
    <span role="status" class="unseen">{done}</span>
    </>
  );
}

export function Problem({ children }: { children: ComponentChildren }) {
  return (
    <p class="problem" role="alert">
      <span aria-hidden="true">✕</span> {children}
    </p>
  );
}

export function Waiting({ what = "Loading" }: { what?: string }) {
  return (
    <p class="waiting" role="status">
      <span class="pulse" aria-hidden="true" /> {what} …
    </p>
  );
}

/** Brings one of several next to each other into sight, without moving the page. */
export function scrollTo(one: HTMLElement | null | undefined): void {
  const box = one?.parentElement;
  if (!one || !box) return;
  const [inner, outer] = [one.getBoundingClientRect(), box.getBoundingClientRect()];
  box.scrollLeft += Math.max(0, inner.right - outer.right) - Math.max(0, outer.left - inner.left);
}

interface TabsProps {
  label: string;
  tabs: { id: string; name: ComponentChildren }[];
  chosen: string;
  choose: (id: string) => void;
  panel: string;
}

export function Tabs({ label, tabs, chosen, choose, panel }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => scrollTo(list.current?.querySelector<HTMLElement>("[aria-selected=true]")), [chosen]);
  const move = (by: number) => {
    const at = tabs.findIndex((tab) => tab.id === chosen);
    const tab = tabs[(at + by + tabs.length) % tabs.length];
    if (!tab) return;
    choose(tab.id);
    queueMicrotask(() => list.current?.querySelector<HTMLElement>(`[data-tab="${tab.id}"]`)?.focus());
  };
  return (
    <div
      ref={list}
      class="tabs"
      role="tablist"
      aria-label={label}
      onKeyDown={(event) => {
        if (event.key === "ArrowRight") move(1);
        else if (event.key === "ArrowLeft") move(-1);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      {tabs.map((tab) => (
        <button
          key={tab.id}
          type="button"
          role="tab"
          id={`${panel}-tab-${tab.id}`}
          data-tab={tab.id}
          aria-selected={tab.id === chosen}
          aria-controls={panel}
          tabIndex={tab.id === chosen ? 0 : -1}
          onClick={() => choose(tab.id)}
        >
          {tab.name}
        </button>
      ))}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  options: [string, string][];
  value: string;
  choose: (value: string) => void;
}

/** A few choices of which one holds, as one row of buttons. */
export function Choice({ label, options, value, choose }: ChoiceProps) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([id, name]) => (
        <button key={id} type="button" aria-pressed={id === value} onClick={() => choose(id)}>
          {name}
        </button>
      ))}
    </div>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Wireglot inspector` : "Wireglot inspector";
  }, [title]);
}

/** Saves a text as a file, made here: nothing is sent. */
export function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A button that asks before it does what cannot be taken back. */
export function Sure({ label, what, ask, act }: { label: string; what: string; ask: string; act: () => Promise<void> }) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button type="button" class="quiet" onClick={() => dialog.current?.showModal()}>
        {label}
        <span class="unseen"> {what}</span>
      </button>
      <dialog ref={dialog} class="sure">
        <p>{ask}</p>
        <form method="dialog" class="actions">
          <button type="submit">Cancel</button>
          <button type="submit" class="main" onClick={() => void act()}>
            {label}
          </button>
        </form>
      </dialog>
    </>
  );
}
