// The turns of one session belong together.
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Agent, agentTree } from "../agents";
import { address, get, message } from "../api";
import { clock, count, day, duration, lossesTold, money, moment, plural, target, tokensOf } from "../format";
import { useParsed } from "../json/parse";
import { onRow } from "../live";
import { CacheMark, CacheOfConversation, useCacheOfTurns } from "../parts/cachetruth";
import { PartCard } from "../parts/partcard";
import { MoreParts } from "../parts/reading";
import { Losses, Problem, Purpose, Status, Waiting, useTitle } from "../parts/small";
import { every } from "../polling";
import { type Part, readAnswer, readRequest } from "../reading";
import { A, param, setQuery, to } from "../route";
import { eventsOf, foldEvents, settled } from "../stream";
import type { CacheTruth, Conversation, Row, Trace } from "../types";

export function Conversations() {
  useTitle("Conversations");
  const [all, setAll] = useState<Conversation[] | null>(null);
  const [older, setOlder] = useState(0);
  const [problem, setProblem] = useState("");
  const [words, setWords] = useState("");
  const opened = param("session");
  useEffect(() => {
    const stop = new AbortController();
    const load = () =>
      get<{ conversations: Conversation[]; count?: number }>("/conversations", {}, stop.signal)
        .then((found) => {
          setAll(found.conversations);
          setOlder((found.count ?? 0) - found.conversations.length);
        })
        .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    const leave = every(10_000, load);
    return () => {
      leave();
      stop.abort();
    };
  }, []);
  const shown = (all ?? []).filter((each) => !words || `${each.session} ${each.client ?? ""} ${each.title ?? ""} ${each.model ?? ""}`.toLowerCase().includes(words.toLowerCase()));
  return (
    <section class="conversations">
      <header class="bar">
        <h1>Conversations</h1>
        <div class="search">
          <input data-search type="search" aria-label="Search conversations" placeholder="Name, client, model or session  ( / )" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </div>
      </header>
      {problem ? <Problem>{problem}</Problem> : null}
      {all && words ? (
        <p class="searched faint" role="status">
          Found by name, client, model or session: {shown.length} of {plural(all.length, "conversation")}{older > 0 ? `; ${plural(older, "older one")} not searched` : ""}.{" "}
          <A href={to([], { q: words })}>Search the texts of all exchanges</A>
        </p>
      ) : older > 0 ? (
        <p class="searched faint">The newest {plural(all?.length ?? 0, "conversation")}; {plural(older, "older one")} not shown.</p>
      ) : null}
      {!all && !problem ? <Waiting /> : null}
      {all && !all.length ? (
        <div class="card empty">
          <h2>No conversations yet</h2>
          <p>Exchanges with a known session are grouped here, turn by turn.</p>
        </div>
      ) : null}
      <ul class="conversation-list">
        {shown.map((each) => {
          const open = each.session === opened;
          const tokens = typeof each.tokens === "number" ? each.tokens : tokensOf(each.tokens);
          return (
            <li key={each.session} class="card">
              <button type="button" class="conversation" aria-expanded={open} onClick={() => setQuery({ session: open ? "" : each.session, read: "", agent: "" })}>
                <span class="fold" aria-hidden="true">{open ? "▾" : "▸"}</span>
                {each.title ? <span class="title clip">{each.title}</span> : null}
                <strong>{each.client || "unknown client"}</strong>
                {each.model ? <span class="faint">{each.model}</span> : null}
                <span>{plural(each.turns, "turn")}</span>
                {each.failed ? <span class="status status-bad">✕ {each.failed} failed</span> : null}
                <span class="faint">
                  {day(each.first_at)} {clock(each.first_at)} to {clock(each.last_at)}
                </span>
                {tokens ? <span>{count(tokens)} tokens</span> : null}
                {each.cost ? <span>{money(each.cost)}</span> : null}
                <Losses losses={{ serious: each.serious ?? 0, degraded: each.degraded ?? 0, harmless: each.harmless ?? 0 }} />
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
  const reads = param("read") === "1";
  const chosen = param("agent");
  const main = useMemo(() => agentTree(rows ?? []), [rows]);
  useEffect(() => {
    const stop = new AbortController();
    const load = () =>
      get<{ rows: Row[] }>("/exchanges", { session, limit: 100 }, stop.signal)
        .then((found) => setRows([...found.rows].sort((a, b) => a.at - b.at)))
        .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    void load();
    let timer = 0;
    const leave = onRow((row) => {
      if ((row.state ?? "running") === "running" || timer) return;
      // Which conversation a turn continues is known to the gateway, where the client does not name one.
      if (row.session === session) void load();
      else if (!row.session && session.startsWith("turns-"))
        timer = window.setTimeout(() => {
          timer = 0;
          void load();
        }, 2000);
    });
    return () => {
      clearTimeout(timer);
      leave();
      stop.abort();
    };
  }, [session]);
  // The last turn has all before it: a client sends the whole conversation each time, and an agent its own.
  const last = rows?.findLast((row) => row.recorded && (row.state ?? "running") !== "running" && (row.agent_id || MAIN) === (chosen || MAIN) && row.purpose !== "background");
  const cache = useCacheOfTurns(last?.id ?? "");
  const truths = new Map(cache.turns.map((truth) => [truth.id, truth]));
  if (problem) return <Problem>{problem}</Problem>;
  if (!rows) return <Waiting />;
  const shown = chosen ? rows.filter((row) => (row.agent_id || MAIN) === chosen) : rows;
  const most = Math.max(1, ...shown.map((row) => tokensOf(row.tokens) ?? 0));
  return (
    <div class="turns">
      {main.agents.length ? (
        <ul class="agents" aria-label="Agents">
          <AgentBranch agent={main} chosen={chosen} />
        </ul>
      ) : null}
      <ol class={last ? "has-cache" : undefined}>
        {shown.map((row) => (
          <li key={row.id}>
            <A href={to(["x", row.id])} class="turn">
              <time title={moment(row.at)}>{clock(row.at)}</time>
              <Status row={row} />
              <span class="clip">
                {row.title ? <span class="title">{row.title} </span> : null}
                <span class={row.title ? "faint" : undefined}>{row.asked} → {target(row) || "no provider"}</span>
                <Purpose row={row} />
              </span>
              <span>{duration(row.total_ms)}</span>
              <span class="turn-tokens">
                <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="usage-input" width={((row.tokens?.input ?? 0) / most) * 100} height="6" />
                  <rect class="usage-output" x={((row.tokens?.input ?? 0) / most) * 100} width={((row.tokens?.output ?? 0) / most) * 100} height="6" />
                </svg>
                {count(tokensOf(row.tokens))}
              </span>
              <Losses losses={lossesTold(row)} />
              {last ? <TurnCache truth={truths.get(row.id)} /> : null}
            </A>
          </li>
        ))}
      </ol>
      {last ? (
        <>
          <button type="button" class="quiet" aria-expanded={reads} onClick={() => setQuery({ read: reads ? "" : "1" }, true)}>
            {reads ? "Hide the words" : "Read the conversation"}
          </button>
          <CacheOfConversation {...cache} />
          {reads ? <Spoken key={last.id} row={last} /> : null}
        </>
      ) : (
        <p class="faint">Its text was not recorded.</p>
      )}
    </div>
  );
}

/** What of a turn came from the provider's cache. Of a first one nothing could, and of some nothing is known. Its place is
 *  there before it: it is known later than the turn. */
function TurnCache({ truth }: { truth: CacheTruth | undefined }) {
  const says = truth && truth.verdict !== "first" && (truth.verdict !== "unknown" || typeof truth.expected === "number");
  return <span class="turn-cache">{says ? <CacheMark truth={truth} /> : null}</span>;
}

const MAIN = "main";

/** One agent and those that it started; choosing one shows its turns alone. */
function AgentBranch({ agent, chosen }: { agent: Agent; chosen: string }) {
  const id = agent.id || MAIN;
  return (
    <li>
      <button type="button" class="quiet agent" aria-pressed={chosen === id} title={agent.id} onClick={() => setQuery({ agent: chosen === id ? "" : id }, true)}>
        <strong>{agent.name}</strong>
        <span>{plural(agent.turns, "turn")}</span>
        {agent.tokens ? <span>{count(agent.tokens)} tokens</span> : null}
        {agent.cost ? <span>{money(agent.cost)}</span> : null}
      </button>
      {agent.agents.length ? <ul>{agent.agents.map((each) => <AgentBranch key={each.id} agent={each} chosen={chosen} />)}</ul> : null}
    </li>
  );
}

const SPOKEN_AT_FIRST = 30;

/** What was said, from the last turn: its request, and the answer to it. */
function Spoken({ row }: { row: Row }) {
  const [trace, setTrace] = useState<Trace | null>(null);
  const [problem, setProblem] = useState("");
  const [shown, setShown] = useState(SPOKEN_AT_FIRST);
  useEffect(() => {
    const stop = new AbortController();
    get<Trace>(`/exchanges/${encodeURIComponent(row.id)}`, { only: "recorded" }, stop.signal)
      .then(setTrace)
      .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    return () => stop.abort();
  }, [row.id]);
  const asked = useParsed(trace?.request?.body);
  const answered = useParsed(trace?.answer?.body || undefined);
  const parts = useMemo((): Part[] => {
    const before = asked?.value === undefined ? [] : readRequest(asked.value).filter((part) => part.kind !== "tool");
    const frames = trace?.answer?.frames ?? [];
    const after = frames.length ? foldEvents(eventsOf(frames)).map(settled) : answered?.value === undefined ? [] : readAnswer(answered.value);
    return [...before, ...after];
  }, [trace, asked, answered]);
  if (problem) return <Problem>{problem}</Problem>;
  if (!trace || (trace.request?.body && !asked)) return <Waiting />;
  const hidden = Math.max(0, parts.length - shown);
  return (
    <div class="spoken">
      {hidden ? <MoreParts hidden={hidden} which="earlier" show={(more) => setShown(shown + more)} /> : null}
      {parts.slice(hidden).map((part, index) => (
        <PartCard key={index + hidden} part={part} picture={(pointer) => address(`/exchanges/${encodeURIComponent(row.id)}/image`, { part: "client", pointer })} />
      ))}
      {!parts.length ? <p class="faint">No text is known.</p> : null}
    </div>
  );
}
