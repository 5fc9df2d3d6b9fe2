// The turns of one session belong together.
import { useEffect, useState } from "preact/hooks";
import { get, message } from "../api";
import { clock, count, day, duration, lossesOf, money, moment, plural, tokensOf } from "../format";
import { Losses, Problem, Status, Waiting, useTitle } from "../parts/small";
import { A, param, setQuery, to } from "../route";
import type { Conversation, Row } from "../types";

export function Conversations() {
  useTitle("Conversations");
  const [all, setAll] = useState<Conversation[] | null>(null);
  const [problem, setProblem] = useState("");
  const [words, setWords] = useState("");
  const opened = param("session");
  useEffect(() => {
    const stop = new AbortController();
    const load = () =>
      get<{ conversations: Conversation[] }>("/conversations", {}, stop.signal)
        .then((found) => setAll(found.conversations))
        .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    void load();
    const timer = setInterval(load, 10_000);
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, []);
  const shown = (all ?? []).filter((each) => !words || `${each.session} ${each.client ?? ""}`.toLowerCase().includes(words.toLowerCase()));
  return (
    <section class="conversations">
      <header class="bar">
        <h1>Conversations</h1>
        <div class="search">
          <input data-search type="search" aria-label="Search conversations" placeholder="Client or session  ( / )" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </div>
      </header>
      {problem ? <Problem>{problem}</Problem> : null}
      {!all && !problem ? <Waiting /> : null}
      {all && !all.length ? (
        <div class="card empty">
          <h2>No conversations yet</h2>
          <p>Exchanges whose client names its session, or where it can be told, are grouped here, turn by turn.</p>
        </div>
      ) : null}
      <ul class="conversation-list">
        {shown.map((each) => {
          const open = each.session === opened;
          const tokens = typeof each.tokens === "number" ? each.tokens : tokensOf(each.tokens);
          const losses = typeof each.losses === "number" ? each.losses : lossesOf(each.losses);
          return (
            <li key={each.session} class="card">
              <button type="button" class="conversation" aria-expanded={open} onClick={() => setQuery({ session: open ? "" : each.session })}>
                <span class="fold" aria-hidden="true">{open ? "▾" : "▸"}</span>
                <strong>{each.client || "unknown client"}</strong>
                {each.model ? <span class="faint">{each.model}</span> : null}
                <span>{plural(each.turns, "turn")}</span>
                <span class="faint">
                  {day(each.first_at)} {clock(each.first_at)} to {clock(each.last_at)}
                </span>
                {tokens ? <span>{count(tokens)} tokens</span> : null}
                {each.cost ? <span>{money(each.cost)}</span> : null}
                {each.serious ? <span class="grade grade-serious">✕ {each.serious} serious of {plural(losses, "loss", "losses")}</span> : losses ? <span class="grade grade-degraded">≈ {plural(losses, "loss", "losses")}</span> : <span class="grade grade-kept">✓ nothing lost</span>}
                <code class="clip">{each.session}</code>
              </button>
              {open ? <Turns session={each.session} /> : null}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function Turns({ session }: { session: string }) {
  const [rows, setRows] = useState<Row[] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    get<{ rows: Row[] }>("/exchanges", { session, limit: 100 }, stop.signal)
      .then((found) => setRows([...found.rows].sort((a, b) => a.at - b.at)))
      .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    return () => stop.abort();
  }, [session]);
  if (problem) return <Problem>{problem}</Problem>;
  if (!rows) return <Waiting />;
  const most = Math.max(1, ...rows.map((row) => tokensOf(row.tokens) ?? 0));
  return (
    <ol class="turns">
      {rows.map((row) => (
        <li key={row.id}>
          <A href={to(["x", row.id])} class="turn">
            <time title={moment(row.at)}>{clock(row.at)}</time>
            <Status row={row} />
            <span class="clip">{row.asked} → {row.provider}/{row.model}</span>
            <span>{duration(row.total_ms)}</span>
            <span class="turn-tokens">
              <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                <rect class="usage-input" width={((row.tokens?.input ?? 0) / most) * 100} height="6" />
                <rect class="usage-output" x={((row.tokens?.input ?? 0) / most) * 100} width={((row.tokens?.output ?? 0) / most) * 100} height="6" />
              </svg>
              {count(tokensOf(row.tokens))}
            </span>
            <Losses losses={row.losses ?? (row.state === "done" ? {} : null)} />
          </A>
        </li>
      ))}
    </ol>
  );
}
