// One exchange: both sides of both directions, what became of what, and what was lost on the way.
import { useEffect, useMemo, useState } from "preact/hooks";
import { address, get, message } from "../api";
import { curlOf } from "../curl";
import { duration, lossesTold, moment, money, plural, target, whole } from "../format";
import { within } from "../json/parse";
import { onRow, rows } from "../live";
import { LossMark } from "../parts/partcard";
import { type ChosenEvent, Pane } from "../parts/pane";
import { Copy, Grade, Losses, Problem, Purpose, Status, Tabs, Waiting, useTitle } from "../parts/small";
import { RecordingButton } from "../parts/recording";
import { Timeline } from "../parts/timeline";
import { A, go, param, setQuery, to } from "../route";
import { type EventLinks, type StreamEvent, eventLinks, eventsOf } from "../stream";
import type { Attempt, Link, Message, Row, Trace, TracedLoss } from "../types";
import { exportAddress } from "./list";
import { openInPlayground } from "./play";

/** Partners of a part: the closest link that holds it, or all links within it. */
export function partners(links: Link[], side: "client" | "upstream", pointer: string): string[] {
  const other = side === "client" ? "upstream" : "client";
  let best = -1;
  let found: string[] = [];
  for (const link of links) {
    if (!within(pointer, link[side]) || link[side].length < best) continue;
    if (link[side].length > best) found = [];
    best = link[side].length;
    found.push(link[other]);
  }
  if (!found.length) found = links.filter((link) => within(link[side], pointer)).map((link) => link[other]);
  return found;
}

type Document = "request" | "answer";
type Side = "client" | "upstream";

const NAMES: Record<`${Side}-${Document}`, string> = {
  "client-request": "Client request",
  "upstream-request": "Upstream request",
  "upstream-answer": "Upstream answer",
  "client-answer": "Client answer",
};

const ORDER: [Side, Document][] = [
  ["client", "request"],
  ["upstream", "request"],
  ["client", "answer"],
  ["upstream", "answer"],
];

export function ExchangeView({ id }: { id: string }) {
  const [trace, setTrace] = useState<Trace | null>(null);
  const [problem, setProblem] = useState("");
  const [live, setLive] = useState<Row | null>(null);
  useTitle(`Exchange ${id}`);
  useEffect(() => {
    const stop = new AbortController();
    const where = `/exchanges/${encodeURIComponent(id)}`;
    // What was recorded at once, its links when they are made out: those take as long as translating it did.
    const load = () =>
      get<Trace>(where, { only: "recorded" }, stop.signal)
        .then(async (found) => {
          setTrace(found);
          setProblem("");
          if (!found.request) return;
          try {
            setTrace(withAnalysis(found, await get<Trace>(where, { only: "told" }, stop.signal)));
          } catch (caught) {
            if (!stop.signal.aborted) setTrace({ ...found, notes: [...(found.notes ?? []), `No links between both sides: ${message(caught)}`] });
          }
        })
        .catch((caught: unknown) => {
          if (!stop.signal.aborted) setProblem(message(caught));
        });
    void load();
    const leave = onRow((row) => {
      if (row.id !== id) return;
      setLive(row);
      if ((row.state ?? "running") !== "running") void load();
    });
    return () => {
      stop.abort();
      leave();
    };
  }, [id]);
  useEffect(() => {
    // To its neighbours in the list one came from. Trees and events have these keys for themselves.
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !/^[jk]$/.test(event.key)) return;
      if (/^(input|textarea|select)$/i.test((event.target as HTMLElement).tagName)) return;
      const here = rows.value.findIndex((row) => row.id === id);
      const next = here < 0 ? undefined : rows.value[here + (event.key === "j" ? 1 : -1)];
      if (!next) return;
      event.preventDefault();
      go(to(["x", next.id]), true);
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [id]);
  if (problem && !trace)
    return (
      <section class="prose">
        <h1>No such exchange</h1>
        <Problem>{problem}</Problem>
        <p>
          The gateway keeps a limited number of them, and shows only those of your key. <A href={to([])}>The list</A> has all that are kept.
        </p>
      </section>
    );
  if (!trace) return <Waiting />;
  const row = live && (trace.row.state ?? "running") === "running" ? live : trace.row;
  return <Exchange trace={trace} row={row} />;
}

function answerWithAnalysis(recorded: Message | null | undefined, reported: Message | null | undefined): Message | undefined {
  if (!recorded) return undefined;
  const frames = recorded.frames?.map((frame, index) => {
    const causes = reported?.frames?.[index]?.causes;
    return causes ? { ...frame, causes } : frame;
  });
  return { ...recorded, ...(frames ? { frames } : {}), ...(reported?.folded ? { folded: reported.folded } : {}), ...(reported?.stops ? { stops: reported.stops } : {}), ...(reported?.caused_by ? { caused_by: reported.caused_by } : {}) };
}

/** The bodies that are here, with the links that came after them. */
export function withAnalysis(trace: Trace, reported: Trace): Trace {
  if (!reported.request) return trace; // gone meanwhile
  const answer = answerWithAnalysis(trace.answer, reported.answer);
  return {
    ...trace,
    ...(answer ? { answer } : {}),
    attempts: (trace.attempts ?? []).map((attempt, index) => {
      const more = reported.attempts?.[index];
      return more ? { ...more, request: attempt.request ?? null, answer: answerWithAnalysis(attempt.answer, more.answer) ?? null } : attempt;
    }),
    losses: reported.losses ?? trace.losses ?? [],
    notes: reported.notes ?? [],
  };
}

interface InFocus {
  side: Side;
  index: number;
  /** By hand; else it is the one at which the time stands. */
  chosen: boolean;
}

function eventInFocus(asked: string, at: number | null, client: StreamEvent[], upstream: StreamEvent[]): InFocus | null {
  const [side, number] = asked.split(":");
  const index = Number(number);
  const events = side === "client" ? client : upstream;
  if ((side === "client" || side === "upstream") && Number.isInteger(index) && index >= 0 && index < events.length) return { side, index, chosen: true };
  if (at === null) return null;
  const last = (of: StreamEvent[]) => of.findLastIndex((event) => event.ms <= at);
  const [mine, theirs] = [last(client), last(upstream)];
  if (mine < 0 && theirs < 0) return null;
  // At the same moment it is what the client got: that has causes to show.
  return (client[mine]?.ms ?? -1) >= (upstream[theirs]?.ms ?? -1) ? { side: "client", index: mine, chosen: false } : { side: "upstream", index: theirs, chosen: false };
}

function litTicks(focus: InFocus | null, partners: number[], client: StreamEvent[], upstream: StreamEvent[]): { client: number[]; upstream: number[] } {
  const times = (events: StreamEvent[], indexes: number[]) => indexes.flatMap((index) => events[index]?.ms ?? []);
  if (!focus) return { client: [], upstream: [] };
  return focus.side === "client"
    ? { client: times(client, [focus.index]), upstream: times(upstream, partners) }
    : { client: times(client, partners), upstream: times(upstream, [focus.index]) };
}

const PARTNERS_TOLD = 8;

function EventPartners({ side, links, found, show }: { side: Side; links: EventLinks | null; found: number[]; show: (index: number) => void }) {
  if (!links) return <span class="faint">How the events of these streams correspond is not known.</span>;
  if (!found.length) return <span class="faint">{side === "client" ? "Created by the gateway, not by the provider." : "The client got nothing."}</span>;
  return (
    <>
      {side === "client" ? "Made from the provider's" : "Translated to the client's"} {found.length === 1 ? "event" : "events"}{" "}
      {found.slice(0, PARTNERS_TOLD).map((index) => (
        <button key={index} type="button" class="quiet" onClick={() => show(index)}>
          {index + 1}
        </button>
      ))}
      {found.length > PARTNERS_TOLD ? ` and ${found.length - PARTNERS_TOLD} more` : ""}
      {links.by === "times" ? <span class="faint"> (by their times)</span> : null}
    </>
  );
}

function aboutSide(text: string | undefined, mess: Message | null | undefined): string {
  return [text, mess?.method, mess?.status ? String(mess.status) : ""].filter(Boolean).join(" · ");
}

function Exchange({ trace, row }: { trace: Trace; row: Row }) {
  const attempts = trace.attempts ?? [];
  const asked = param("try");
  const attempt: Attempt | undefined = attempts[asked === "" ? attempts.length - 1 : Number(asked)] ?? attempts.at(-1);
  const losses = trace.losses ?? attempt?.losses ?? [];
  const recorded = Boolean(trace.request);
  const running = (row.state ?? "running") === "running";
  const clientEvents = useMemo(() => eventsOf(trace.answer?.frames ?? []), [trace.answer]);
  const upstreamEvents = useMemo(() => eventsOf(attempt?.answer?.frames ?? []), [attempt]);
  const streams = useMemo(() => (attempt === attempts.at(-1) ? eventLinks(trace.answer, clientEvents, upstreamEvents) : null), [trace.answer, clientEvents, upstreamEvents, attempt]);
  const time = param("t");
  const at = time === "" ? null : Number(time);
  const [reveal, setReveal] = useState(0);
  const shownPane = param("pane") || "client-request";

  const selected = param("sel");
  const [chosenPane, pointer] = useMemo((): [string, string] => {
    const cut = selected.indexOf(":");
    return cut < 0 ? ["", ""] : [selected.slice(0, cut), selected.slice(cut + 1)];
  }, [selected]);
  const chosenSide = chosenPane.split("-")[0] as Side;
  const chosenDocument = chosenPane.split("-")[1] as Document;
  const linksOf = (document: Document): Link[] => (document === "request" ? attempt?.links : attempt?.answer_links) ?? [];
  const counterparts = useMemo(() => (chosenPane ? partners(linksOf(chosenDocument), chosenSide, pointer) : []), [chosenPane, pointer, attempt]);
  const linkedSets = useMemo(() => {
    const sets: Record<string, Set<string>> = {};
    for (const [side, document] of ORDER) sets[`${side}-${document}`] = new Set(linksOf(document).map((link) => link[side]));
    return sets;
  }, [attempt]);

  const lossesOf = useMemo(() => {
    const of = (document: Document) => losses.filter((loss) => (loss.document === "request") === (document === "request"));
    return { request: of("request"), answer: of("answer") };
  }, [losses]);

  const inFocus = eventInFocus(param("ev"), at, clientEvents, upstreamEvents);
  const partnerEvents = inFocus && streams ? ((inFocus.side === "client" ? streams.causes : streams.effects)[inFocus.index] ?? []) : [];
  const eventsFor = (side: Side): ChosenEvent => {
    const here = inFocus?.side === side;
    const modeOfOther = `m-${side === "client" ? "upstream" : "client"}-answer`;
    const other: Side = side === "client" ? "upstream" : "client";
    return {
      chosen: here && inFocus.chosen ? inFocus.index : -1,
      lit: here ? (inFocus.chosen ? [] : [inFocus.index]) : partnerEvents,
      choose: (index) => setQuery({ ev: index < 0 ? "" : `${side}:${index}` }, true),
      partners: here ? (
        <EventPartners side={side} links={streams} found={partnerEvents} show={(index) => setQuery({ [modeOfOther]: "events", ev: `${other}:${index}`, pane: `${other}-answer` }, true)} />
      ) : null,
    };
  };

  const pane = (side: Side, document: Document) => {
    const name = `${side}-${document}` as const;
    const mess = side === "client" ? (document === "request" ? trace.request : trace.answer) : document === "request" ? attempt?.request : attempt?.answer;
    const chosenHere = chosenPane === name;
    const lit = chosenHere ? [pointer] : chosenDocument === document && chosenPane ? counterparts : [];
    const dialect = side === "client" ? row.dialect : attempt?.dialect;
    return (
      <Pane
        key={name}
        name={NAMES[name]}
        about={aboutSide(dialect, mess)}
        message={mess}
        what={document}
        events={document === "request" ? [] : side === "client" ? clientEvents : upstreamEvents}
        at={at}
        losses={lossesOf[document]}
        placeOf={side === "client" ? (loss) => loss.pointer : (loss) => loss.upstream}
        linked={linkedSets[name] ?? new Set()}
        lit={lit}
        chosenHere={chosenHere}
        reveal={reveal}
        choose={(where) => {
          setQuery({ sel: `${name}:${where}` }, true);
          setReveal((old) => old + 1);
        }}
        picture={(where) => address(`/exchanges/${encodeURIComponent(row.id)}/image`, { part: side, pointer: where })}
        event={eventsFor(side)}
        mode={param(`m-${name}`) || "read"}
        setMode={(mode) => setQuery({ [`m-${name}`]: mode === "read" ? "" : mode }, true)}
        missing={running ? "Not yet available." : side === "upstream" && !attempt ? "No provider was called." : "There was none, or it was not recorded."}
      />
    );
  };

  return (
    <article class="exchange">
      <header class="exchange-head">
        <div class="exchange-title">
          <h1>
            <span class="faint">{trace.request?.method ?? "POST"}</span> {row.path || row.operation || "exchange"}
          </h1>
          <div class="exchange-actions">
            {recorded && row.operation !== "embed" ? <A class="button main" href={to(["replay", row.id])}>Replay …</A> : null}
            {recorded ? <a class="button" href={exportAddress(row.id)} download="">Export</a> : null}
            {trace.request?.body && !trace.request.truncated && row.dialect && row.operation !== "count" && row.operation !== "embed" ? (
              <button type="button" onClick={() => openInPlayground(row.dialect ?? "", trace.request?.body ?? "")}>Playground</button>
            ) : null}
            {trace.request ? <Copy label="Copy as curl" text={() => curlOf(trace.request ?? {}, location.origin, row.path ?? "/")} /> : null}
          </div>
        </div>
        <p class="facts">
          <Status row={row} />
          <span title={row.agent}>{row.client || "unknown client"}{row.dialect ? <span class="tag">{row.dialect}</span> : null}<Purpose row={row} /></span>
          {row.asked && row.asked !== target(row) ? <span title="the requested model">{row.asked}</span> : null}
          <span class="arrow" aria-label="to">→</span>
          <span>{target(row) || "no provider"}{attempt?.dialect || row.upstream_dialect ? <span class="tag">{attempt?.dialect ?? row.upstream_dialect}</span> : null}{row.passthrough ? <span class="tag">pass-through</span> : null}</span>
          <Losses losses={lossesTold(row)} />
          <span>{duration(row.total_ms)}{row.first_ms ? <span class="faint"> (first byte {duration(row.first_ms)})</span> : null}</span>
          {row.tokens ? <span>{whole(row.tokens.input ?? 0)} in, {whole(row.tokens.output ?? 0)} out</span> : null}
          {row.cost !== null && row.cost !== undefined ? <span>{money(row.cost)}</span> : null}
          <span class="faint" title={row.worker ? `answered by ${row.worker}` : undefined}>{moment(row.at)}</span>
          {row.session ? <A href={to([], { session: row.session })}>conversation</A> : null}
          {row.belongs_to ? <A href={to(["x", row.belongs_to])}>part of another exchange</A> : null}
        </p>
        {row.error ? <Problem>{row.error}</Problem> : null}
        {(trace.notes ?? []).map((note) => <p key={note} class="note">{note}</p>)}
      </header>
      {recorded ? (
        <>
          <Timeline steps={trace.steps ?? []} total={row.total_ms ?? 0} client={clientEvents} upstream={upstreamEvents} at={at} lit={litTicks(inFocus, partnerEvents, clientEvents, upstreamEvents)} />
          {chosenPane ? (
            <p class="chosen" role="status">
              <code>{pointer || "the whole document"}</code>
              {counterparts.length ? <> ⇄ {counterparts.slice(0, 3).map((each) => <code key={each}>{each || "the whole document"}</code>)}{counterparts.length > 3 ? ` and ${counterparts.length - 3} more` : ""}</> : <span class="faint"> has no counterpart on the other side</span>}
              <button type="button" class="quiet" onClick={() => setQuery({ sel: "" }, true)}>Clear</button>
            </p>
          ) : null}
          <div class="pane-choice">
            <Tabs label="Sides of the exchange" panel="panes" chosen={shownPane} choose={(each) => setQuery({ pane: each === "client-request" ? "" : each }, true)} tabs={ORDER.map(([side, document]) => ({ id: `${side}-${document}`, name: NAMES[`${side}-${document}`] }))} />
          </div>
          <div class={`panes show-${shownPane}`} id="panes">
            {ORDER.map(([side, document]) => pane(side, document))}
          </div>
        </>
      ) : (
        <div class="card empty">
          {running ? (
            <>
              <h2>It is still running</h2>
              <p>What is recorded of it is shown here when it ends.</p>
            </>
          ) : (
            <>
              <h2>{trace.why ? "Bodies cannot be shown here" : "No bodies of this exchange"}</h2>
              {trace.why ? <p>They were {trace.why}.</p> : null}
              <p>
                Its row, times, usage and losses are known without them. To see both sides of what comes next, have bodies recorded for some minutes,
                or start the gateway with <code>wireglot serve --trace</code>.
              </p>
            </>
          )}
          <RecordingButton />
        </div>
      )}
      <Details trace={trace} row={row} losses={losses} attempt={attempt} recorded={recorded} />
    </article>
  );
}

function Details({ trace, row, losses, attempt, recorded }: { trace: Trace; row: Row; losses: TracedLoss[]; attempt: Attempt | undefined; recorded: boolean }) {
  const attempts = trace.attempts ?? [];
  const tabs = [
    { id: "losses", name: losses.length || lossesTold(row) ? `Losses ${losses.length}` : "Losses" },
    ...(attempts.length ? [{ id: "attempts", name: `Attempts ${attempts.length}` }] : []),
    { id: "usage", name: "Usage and cost" },
    ...(recorded ? [{ id: "headers", name: "Headers" }, { id: "summary", name: "Summary" }] : []),
    { id: "raw", name: "Raw" },
  ];
  const wanted = param("tab") || "losses";
  const chosen = tabs.some((tab) => tab.id === wanted) ? wanted : "losses";
  return (
    <section class="details card" aria-label="Details">
      <Tabs label="Details" panel="details-panel" tabs={tabs} chosen={chosen} choose={(tab) => setQuery({ tab: tab === "losses" ? "" : tab }, true)} />
      <div id="details-panel" role="tabpanel" aria-labelledby={`details-panel-tab-${chosen}`} tabIndex={0}>
        {chosen === "losses" ? <LossTable losses={losses} row={row} recorded={recorded} /> : null}
        {chosen === "attempts" ? <Attempts attempts={attempts} shown={attempt} /> : null}
        {chosen === "usage" ? <Usage row={row} /> : null}
        {chosen === "headers" ? <Headers trace={trace} attempt={attempt} /> : null}
        {chosen === "summary" ? <Summary attempt={attempt} /> : null}
        {chosen === "raw" ? (
          <>
            <Copy text={() => JSON.stringify(trace, null, 2)} />
            <pre class="raw" tabIndex={0}>{clipped(JSON.stringify(trace, null, 2))}</pre>
          </>
        ) : null}
      </div>
    </section>
  );
}

const clipped = (text: string) => (text.length > 100_000 ? text.slice(0, 100_000) + "\n… (Export has all of it)" : text);

function LossTable({ losses, row, recorded }: { losses: TracedLoss[]; row: Row; recorded: boolean }) {
  if (!losses.length && !lossesTold(row)) return <p class="faint">{(row.state ?? "running") === "running" ? "Losses are shown when it ends." : "It ended before anything could be lost."}</p>;
  if (!losses.length)
    return (
      <p>
        <span class="grade grade-kept">✓ nothing was lost</span>
      </p>
    );
  return (
    <div class="scroll-x" tabIndex={0} role="group" aria-label="Losses">
    <table>
      <thead>
        <tr>
          <th>Grade</th>
          <th>Feature</th>
          <th>What happened</th>
          <th>Where</th>
          <th>Why</th>
        </tr>
      </thead>
      <tbody>
        {losses.map((loss, index) => (
          <tr key={index}>
            <td><Grade grade={loss.grade} /></td>
            <td>{loss.feature}</td>
            <td>{loss.action}</td>
            <td>
              {loss.pointer && recorded ? (
                <button type="button" class="quiet path" onClick={() => setQuery({ sel: `client-${loss.document === "request" ? "request" : "answer"}:${loss.pointer}`, pane: "" })}>
                  {loss.path}
                </button>
              ) : (
                <code>{loss.path}</code>
              )}
              {loss.document === "request" ? "" : " of the answer"}
            </td>
            <td>{loss.detail}</td>
          </tr>
        ))}
      </tbody>
    </table>
    </div>
  );
}

function Attempts({ attempts, shown }: { attempts: Attempt[]; shown: Attempt | undefined }) {
  return (
    <ol class="attempts">
      {attempts.map((attempt, index) => (
        <li key={index} aria-current={attempt === shown ? "true" : undefined}>
          <strong>{attempt.provider}/{attempt.model}</strong> <span class="tag">{attempt.dialect}</span>{" "}
          {attempt.answer?.status ? (
            <span class={attempt.answer.status < 400 ? "status status-good" : "status status-bad"}>{attempt.answer.status < 400 ? "✓" : "✕"} {attempt.answer.status}</span>
          ) : null}{" "}
          <span class="faint">began at {duration(attempt.began_ms ?? 0)}</span> {attempt.error ? <span class="status status-bad">✕ {attempt.error}</span> : null}{" "}
          {attempt === shown ? <span class="faint">shown above</span> : (
            <button type="button" class="quiet" onClick={() => setQuery({ try: String(index), sel: "" })}>Show above</button>
          )}
          {(attempt.losses ?? []).map((loss, at) => <LossMark key={at} loss={loss} />)}
        </li>
      ))}
    </ol>
  );
}

function Usage({ row }: { row: Row }) {
  const tokens = row.tokens;
  if (!tokens) return <p class="faint">No usage is known.</p>;
  const lines: [string, string][] = [
    ["Input", whole(tokens.input ?? 0)],
    ["of which from a cache", whole(tokens.cached ?? 0)],
    ["written to a cache", whole(tokens.cache_written ?? 0)],
    ["Output", whole(tokens.output ?? 0)],
    ["of which reasoning", whole(tokens.reasoning ?? 0)],
    ["Cost", row.cost === null || row.cost === undefined ? "not known" : money(row.cost)],
    ["Metric", { provider: "the provider", partial: "the provider, in part", estimated: "us, an estimate" }[tokens.source ?? ""] ?? tokens.source ?? "the provider"],
    ["Stop", row.stop ?? ""],
  ];
  const input = Math.max(1, (tokens.input ?? 0) + (tokens.output ?? 0));
  return (
    <div class="usage">
      <svg class="usage-bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={`${tokens.input ?? 0} tokens in, ${tokens.output ?? 0} out`}>
        <rect class="usage-input" width={((tokens.input ?? 0) / input) * 100} height="6" />
        <rect class="usage-cached" width={((tokens.cached ?? 0) / input) * 100} height="6" />
        <rect class="usage-output" x={((tokens.input ?? 0) / input) * 100} width={((tokens.output ?? 0) / input) * 100} height="6" />
      </svg>
      <dl class="pairs">
        {lines.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Headers({ trace, attempt }: { trace: Trace; attempt: Attempt | undefined }) {
  const sides: [string, Message | null | undefined][] = [
    ["Client request", trace.request],
    ["Upstream request", attempt?.request],
    ["Client answer", trace.answer],
    ["Upstream answer", attempt?.answer],
  ];
  return (
    <div class="headers">
      {sides.map(([name, side]) => (
        <div key={name}>
          <h3>{name}</h3>
          {side?.url ? <p class="mono">{side.method} {side.url}</p> : side?.status ? <p class="mono">{side.status}</p> : null}
          {side?.headers?.length ? (
            <dl class="pairs mono">
              {side.headers.map(([header, value], index) => (
                <div key={index}>
                  <dt>{header}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
          ) : (
            <p class="faint">none recorded</p>
          )}
        </div>
      ))}
    </div>
  );
}

/** What is counted once, not on both sides. */
const LONE = / (losses|rewritten)$/;

function Summary({ attempt }: { attempt: Attempt | undefined }) {
  const lines = attempt?.summary ?? [];
  if (attempt?.passthrough && !lines.length) return <p>Client and provider speak the same dialect: the bytes passed unchanged.</p>;
  if (!lines.length) return <p class="faint">The changes are not known.</p>;
  return (
    <table class="summary">
      <thead>
        <tr>
          <th>What</th>
          <th>Client</th>
          <th><span class="unseen">became</span></th>
          <th>Upstream</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => LONE.test(line.what) ? (
          <tr key={line.what}>
            <td>{line.what}</td>
            <td colSpan={3}>{line.client}</td>
          </tr>
        ) : (
          <tr key={line.what} class={line.client === line.upstream ? "" : "changed"}>
            <td>{line.what}</td>
            <td>{line.client}</td>
            <td aria-hidden="true">→</td>
            <td>{line.upstream}{line.client === line.upstream ? "" : <span class="faint"> ({line.client < line.upstream ? "more" : "fewer"})</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function plainLosses(losses: TracedLoss[]): string {
  return plural(losses.length, "loss", "losses");
}
