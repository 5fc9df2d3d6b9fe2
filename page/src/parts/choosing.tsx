// Exchanges to compare, chosen from the newest that have bodies.
import { useEffect, useState } from "preact/hooks";
import { get, message } from "../api";
import { clock, duration, moment, plural, target } from "../format";
import { A, go, to } from "../route";
import type { Row } from "../types";
import { Problem, Status, Waiting } from "./small";

const SHOWN = 60;
const SOON_MS = 300;

interface Props {
  /** Those that are chosen already. */
  ids: string[];
  most: number;
}

export function ChooseExchanges({ ids, most }: Props) {
  const [chosen, setChosen] = useState(ids);
  const [words, setWords] = useState("");
  const [rows, setRows] = useState<Row[] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      get<{ rows: Row[] }>("/exchanges", { q: words.trim(), limit: SHOWN * 2 }, stop.signal)
        .then((found) => {
          setRows(found.rows.filter((row) => row.recorded).slice(0, SHOWN));
          setProblem("");
        })
        .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    }, rows ? SOON_MS : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [words]);
  const listed = new Set((rows ?? []).map((row) => row.id));
  const unlisted = chosen.filter((id) => rows && !listed.has(id));
  const enough = chosen.length >= 2;
  return (
    <section class="choosing">
      <header class="bar">
        <h1>Compare</h1>
        <div class="search">
          <input data-search type="search" aria-label="Search exchanges to compare" placeholder="Filter: client:codex, or words  ( / )" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </div>
        <div class="actions">
          <button type="button" class="main" disabled={!enough} onClick={() => go(to(["compare", ...chosen]))}>
            {enough ? `Compare ${chosen.length}` : "Choose two or more"}
          </button>
        </div>
      </header>
      <p class="faint">Two to {most} exchanges whose bodies are known, the newest first{unlisted.length ? `; ${plural(unlisted.length, "more is", "more are")} chosen that this list does not have` : ""}.</p>
      {problem ? <Problem>{problem}</Problem> : null}
      {!rows && !problem ? <Waiting /> : null}
      {rows && !rows.length ? <p class="faint">No exchange with bodies matches.</p> : null}
      <ul class="card">
        {(rows ?? []).map((row) => {
          const on = chosen.includes(row.id);
          return (
            <li key={row.id} class={on ? "on" : undefined}>
              <label>
                <input type="checkbox" checked={on} disabled={!on && chosen.length >= most} onChange={() => setChosen(on ? chosen.filter((id) => id !== row.id) : [...chosen, row.id])} />
                <time title={moment(row.at)}>{clock(row.at)}</time>
                <span class="clip">
                  {row.client || "unknown"} <span class="faint">{row.title}</span>
                </span>
                <span class="clip">{row.asked || row.path} → {target(row) || "no provider"}</span>
                <Status row={row} />
                <span>{duration(row.total_ms)}</span>
              </label>
              <A href={to(["x", row.id])} aria-label={`Open the exchange of ${clock(row.at)}`}>open</A>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
