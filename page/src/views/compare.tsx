// Answers side by side, with what differs from one of them marked.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, message } from "../api";
import { type Piece, alike, diff } from "../diff";
import { duration, lossesTold, money, moment, target, whole } from "../format";
import { parse } from "../json/parse";
import { onRow } from "../live";
import { ChooseExchanges } from "../parts/choosing";
import { Choice, Losses, Problem, Status, Waiting, useTitle } from "../parts/small";
import { type Part, readAnswer } from "../reading";
import { A, param, setQuery, to } from "../route";
import { eventsOf, foldEvents, settled } from "../stream";
import type { Message, Row, Trace } from "../types";

export const MOST_COMPARED = 20;

function useTraces(ids: string[]): [Map<string, Trace>, Map<string, string>] {
  const [found, setFound] = useState(new Map<string, Trace>());
  const [problems, setProblems] = useState(new Map<string, string>());
  const named = ids.join(" ");
  useEffect(() => {
    const stop = new AbortController();
    const load = (id: string) =>
      get<Trace>(`/exchanges/${encodeURIComponent(id)}`, {}, stop.signal)
        .then((trace) => setFound((before) => new Map(before).set(id, trace)))
        .catch((caught: unknown) => {
          if (!stop.signal.aborted) setProblems((before) => new Map(before).set(id, message(caught)));
        });
    for (const id of ids) void load(id);
    const leave = onRow((row) => {
      if (ids.includes(row.id) && (row.state ?? "running") !== "running") void load(row.id);
    });
    return () => {
      stop.abort();
      leave();
    };
  }, [named]);
  return [found, problems];
}

function partsOf(answer: Message | undefined): Part[] {
  if (!answer) return [];
  if (answer.folded) {
    const folded = parse(answer.folded);
    if (folded.value !== undefined) return readAnswer(folded.value);
  }
  if (answer.frames?.length) return foldEvents(eventsOf(answer.frames)).map(settled);
  const parsed = parse(answer.body ?? "");
  return parsed.value === undefined ? (answer.body ? [{ pointer: "", role: "", kind: "other", text: answer.body }] : []) : readAnswer(parsed.value);
}

const KINDS: [Part["kind"], string][] = [["reasoning", "Reasoning"], ["text", "Text"], ["call", "Tool calls"], ["refusal", "Refusal"], ["error", "Error"], ["other", "Other"]];

const textOf = (parts: Part[], kind: Part["kind"]) =>
  parts
    .filter((part) => part.kind === kind)
    .map((part) => (part.name ? `${part.name}\n${part.text}` : part.text))
    .join("\n\n");

/** A text as it differs from another: what only that one says is struck through, what only this one says underlined. */
function Marked({ pieces }: { pieces: Piece[] }) {
  return (
    <div class="words">
      {pieces.map((piece, index) => (piece.kind === "same" ? piece.text : piece.kind === "left" ? <del key={index}>{piece.text}</del> : <ins key={index}>{piece.text}</ins>))}
    </div>
  );
}

const FACTS: [string, (row: Row) => string, ((row: Row) => number | null | undefined) | null][] = [
  ["Answered by", target, null],
  ["Status", (row) => String(row.status ?? ""), null],
  ["Stop", (row) => row.stop ?? "", null],
  ["First byte", (row) => duration(row.first_ms), (row) => row.first_ms],
  ["Total", (row) => duration(row.total_ms), (row) => row.total_ms],
  ["Tokens in", (row) => (row.tokens ? whole(row.tokens.input ?? 0) : ""), (row) => row.tokens?.input],
  ["Tokens out", (row) => (row.tokens ? whole(row.tokens.output ?? 0) : ""), (row) => row.tokens?.output],
  ["Cost", (row) => money(row.cost), (row) => row.cost],
];

/** How a figure differs from that of the one that all are compared with. */
export function changeOf(from: number | null | undefined, value: number | null | undefined): string {
  if (typeof from !== "number" || typeof value !== "number" || from <= 0 || from === value) return "";
  const percent = Math.abs(Math.round((value / from - 1) * 100));
  return percent ? `${value >= from ? "+" : "−"}${percent} %` : "";
}

function bodyOf(trace: Trace): string {
  const parsed = parse(trace.request?.body ?? "");
  return parsed.value === undefined ? (trace.request?.body ?? "") : JSON.stringify(parsed.value, null, 2);
}

interface Compared {
  name: string;
  texts: string[];
}

function sectionsOf(traces: Trace[], mode: string): Compared[] {
  if (mode === "request") return [{ name: "Request", texts: traces.map(bodyOf) }];
  const answers = traces.map((trace) => partsOf(trace.answer));
  return KINDS.map(([kind, name]) => ({ name, texts: answers.map((parts) => textOf(parts, kind)) })).filter((each) => each.texts.some(Boolean));
}

export function Compare({ ids }: { ids: string[] }) {
  useTitle("Compare");
  const chosen = [...new Set(ids)].slice(0, MOST_COMPARED);
  const [found, problems] = useTraces(chosen);
  const mode = param("what") || "answer";
  const traces = chosen.flatMap((id) => found.get(id) ?? []);
  const against = Math.max(0, chosen.indexOf(param("against")));
  const sections = useMemo(() => (traces.length === chosen.length ? sectionsOf(traces, mode) : []), [found, mode, chosen.join(" ")]);
  if (chosen.length < 2 || param("add")) return <ChooseExchanges key={chosen.join(" ")} ids={chosen} most={MOST_COMPARED} />;
  const missing = chosen.filter((id) => !found.has(id));
  const bad = missing.find((id) => problems.has(id));
  const base = traces[against];
  if (missing.length || !base) return bad ? <section class="prose"><h1>Compare</h1><Problem>{problems.get(bad)}</Problem></section> : <Waiting />;
  const running = traces.some(({ row }) => (row.state ?? "running") === "running");
  const without = (id: string) => to(["compare", ...chosen.filter((each) => each !== id)], { what: param("what") });
  const others = chosen.filter((id) => id !== base.row.id);
  return (
    <section class="compare">
      <header class="bar">
        <h1>Compare</h1>
        <Choice label="What is compared" options={[["answer", "Answers"], ["request", "Requests"]]} value={mode} choose={(each) => setQuery({ what: each === "answer" ? "" : each }, true)} />
        <div class="actions">
          {chosen.length < MOST_COMPARED ? <A class="button" href={to(["compare", ...chosen], { add: "1" })}>Add others …</A> : null}
          {chosen.length < MOST_COMPARED ? <A class="button" href={to(["replay", base.row.id], { with: others.join(",") })}>Replay again …</A> : null}
        </div>
      </header>
      <div class="card scroll-x" tabIndex={0} role="group" aria-label="Figures of all">
        <table class={`facts-table of-${chosen.length}`}>
          <thead>
            <tr>
              <th><span class="unseen">What</span></th>
              {traces.map(({ row }, index) => (
                <th key={row.id} scope="col">
                  <A href={to(["x", row.id])}>{index + 1}: {row.asked || row.id}</A> <span class="faint">{moment(row.at)}</span>
                  <div class="compared-with">
                    {index === against ? <span class="tag accent">compared with</span> : <button type="button" class="quiet" onClick={() => setQuery({ against: row.id }, true)}>Compare with {index + 1}</button>}
                    {chosen.length > 2 ? <A href={without(row.id)} aria-label={`Leave out ${index + 1}`}>×</A> : null}
                  </div>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {FACTS.map(([name, show, value]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {traces.map(({ row }, index) => (
                  <td key={row.id}>
                    {name === "Status" ? <Status row={row} /> : show(row)}
                    {index !== against ? <span class="faint"> {changeOf(value?.(base.row), value?.(row)) || (value === null && show(row) !== show(base.row) ? "differs" : "")}</span> : null}
                  </td>
                ))}
              </tr>
            ))}
            <tr>
              <th scope="row">Losses</th>
              {traces.map(({ row }) => <td key={row.id}><Losses losses={lossesTold(row)} /></td>)}
            </tr>
          </tbody>
        </table>
      </div>
      {sections.map((each) => <Section key={each.name} {...each} traces={traces} against={against} mono={mode === "request"} />)}
      {!sections.length ? <p class="faint">{traces.every((trace) => trace.answer) ? "All answers are empty." : "The bodies of one of them were not recorded."}</p> : null}
      <p class="faint">Struck through: only {against + 1} says it. Underlined: {against + 1} does not.</p>
      {running ? <Waiting what="Some are still running" /> : null}
    </section>
  );
}

function Section({ name, texts, traces, against, mono }: Compared & { traces: Trace[]; against: number; mono: boolean }) {
  const base = texts[against] ?? "";
  const compared = useMemo(() => texts.map((text) => diff(base, text)), [base, ...texts]);
  const same = texts.every((text) => text === base);
  return (
    <section class="compared card">
      <header>
        <h2>{name}</h2>
        {same ? <span class="faint">the same</span> : null}
      </header>
      <div class={`sides of-${texts.length}${mono ? " mono" : ""}`}>
        {traces.map(({ row }, index) => (
          <div key={row.id} class="side" aria-label={`${name} ${index + 1}: ${target(row)}`} role="group" tabIndex={0}>
            <p class="faint">{index + 1} {index === against ? "" : `· ${Math.round(alike(compared[index] ?? []) * 100)} % alike`}</p>
            {index === against ? <div class="words">{base}</div> : <Marked pieces={compared[index] ?? []} />}
          </div>
        ))}
      </div>
    </section>
  );
}
