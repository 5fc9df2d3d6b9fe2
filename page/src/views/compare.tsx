// Two answers to one request, side by side, with their differences marked.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, message } from "../api";
import { type Piece, alike, diff } from "../diff";
import { duration, lossesTold, money, moment, target, whole } from "../format";
import { parse } from "../json/parse";
import { onRow } from "../live";
import { Choice, Losses, Problem, Status, Waiting, useTitle } from "../parts/small";
import { type Part, readAnswer } from "../reading";
import { A, param, setQuery, to } from "../route";
import { eventsOf, foldEvents, settled } from "../stream";
import type { Message, Row, Trace } from "../types";

function useTrace(id: string): [Trace | null, string] {
  const [trace, setTrace] = useState<Trace | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const load = () =>
      get<Trace>(`/exchanges/${encodeURIComponent(id)}`, {}, stop.signal)
        .then((found) => {
          setTrace(found);
          setProblem("");
        })
        .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    void load();
    const leave = onRow((row) => {
      if (row.id === id && (row.state ?? "running") !== "running") void load();
    });
    return () => {
      stop.abort();
      leave();
    };
  }, [id]);
  return [trace, problem];
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

function Marked({ pieces, side }: { pieces: Piece[]; side: "left" | "right" }) {
  return (
    <div class="words">
      {pieces.map((piece, index) =>
        piece.kind === "same" ? piece.text : piece.kind === side ? side === "left" ? <del key={index}>{piece.text}</del> : <ins key={index}>{piece.text}</ins> : null,
      )}
    </div>
  );
}

export function Compare({ left, right }: { left: string; right: string }) {
  useTitle("Compare");
  const [a, aProblem] = useTrace(left);
  const [b, bProblem] = useTrace(right);
  const mode = param("what") || "answer";
  const sections = useMemo(() => {
    if (!a || !b) return [];
    if (mode === "request") {
      const body = (trace: Trace) => {
        const parsed = parse(trace.request?.body ?? "");
        return parsed.value === undefined ? (trace.request?.body ?? "") : JSON.stringify(parsed.value, null, 2);
      };
      return [{ name: "Request", pieces: diff(body(a), body(b)) }];
    }
    const one = partsOf(a.answer);
    const two = partsOf(b.answer);
    return KINDS.map(([kind, name]) => ({ name, pieces: diff(textOf(one, kind), textOf(two, kind)) })).filter((each) => each.pieces.length);
  }, [a, b, mode]);
  if (!a || !b) return aProblem || bProblem ? <section class="prose"><h1>Compare</h1><Problem>{aProblem || bProblem}</Problem></section> : <Waiting />;
  const facts: [string, (row: Row) => string, ((row: Row) => number | null | undefined) | null][] = [
    ["Answered by", target, null],
    ["Status", (row) => String(row.status ?? ""), null],
    ["Stop", (row) => row.stop ?? "", null],
    ["First byte", (row) => duration(row.first_ms), (row) => row.first_ms],
    ["Total", (row) => duration(row.total_ms), (row) => row.total_ms],
    ["Tokens in", (row) => (row.tokens ? whole(row.tokens.input ?? 0) : ""), (row) => row.tokens?.input],
    ["Tokens out", (row) => (row.tokens ? whole(row.tokens.output ?? 0) : ""), (row) => row.tokens?.output],
    ["Cost", (row) => money(row.cost), (row) => row.cost],
  ];
  const running = [a.row, b.row].some((row) => (row.state ?? "running") === "running");
  return (
    <section class="compare">
      <header class="bar">
        <h1>Compare</h1>
        <Choice label="What is compared" options={[["answer", "Answers"], ["request", "Requests"]]} value={mode} choose={(each) => setQuery({ what: each === "answer" ? "" : each }, true)} />
        <div class="actions">
          <A class="button" href={to(["compare", right, left])}>Swap</A>
          <A class="button" href={to(["replay", left])}>Replay again …</A>
        </div>
      </header>
      {running ? <Waiting what="One of them is still running" /> : null}
      <div class="card scroll-x" tabIndex={0} role="group" aria-label="Figures of both">
        <table class="facts-table">
          <thead>
            <tr>
              <th><span class="unseen">What</span></th>
              {[a.row, b.row].map((row, index) => (
                <th key={index}>
                  <A href={to(["x", row.id])}>{index ? "right" : "left"}: {row.asked || row.id}</A> <span class="faint">{moment(row.at)}</span>
                </th>
              ))}
              <th>Difference</th>
            </tr>
          </thead>
          <tbody>
            {facts.map(([name, show, value]) => {
              const one = value?.(a.row);
              const two = value?.(b.row);
              const change = typeof one === "number" && typeof two === "number" && one > 0 && one !== two ? `${two >= one ? "+" : "−"}${Math.abs(Math.round((two / one - 1) * 100))} %` : "";
              return (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>{name === "Status" ? <Status row={a.row} /> : show(a.row)}</td>
                  <td>{name === "Status" ? <Status row={b.row} /> : show(b.row)}</td>
                  <td class="faint">{change || (value === null && show(a.row) !== show(b.row) ? "differs" : "")}</td>
                </tr>
              );
            })}
            <tr>
              <th scope="row">Losses</th>
              <td><Losses losses={lossesTold(a.row)} /></td>
              <td><Losses losses={lossesTold(b.row)} /></td>
              <td />
            </tr>
          </tbody>
        </table>
      </div>
      {sections.map((each) => {
        const likeness = alike(each.pieces);
        return (
          <section key={each.name} class="compared card">
            <header>
              <h2>{each.name}</h2>
              <span class="faint">{likeness === 1 ? "the same" : `${Math.round(likeness * 100)} % alike`}</span>
            </header>
            <div class={mode === "request" ? "two mono" : "two"}>
              <div class="side" aria-label={`Left: ${target(a.row)}`} role="group" tabIndex={0}><Marked pieces={each.pieces} side="left" /></div>
              <div class="side" aria-label={`Right: ${target(b.row)}`} role="group" tabIndex={0}><Marked pieces={each.pieces} side="right" /></div>
            </div>
          </section>
        );
      })}
      {!sections.length ? <p class="faint">{a.answer && b.answer ? "Both answers are empty." : "The bodies of one of them were not recorded."}</p> : null}
      <p class="faint">Struck through: only on the left. Underlined: only on the right.</p>
    </section>
  );
}
