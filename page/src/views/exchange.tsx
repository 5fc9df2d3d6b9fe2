// One exchange: both sides of both directions, what became of what, and what was lost on the way.
import { useLayoutEffect, useMemo } from "preact/hooks";
import { address } from "../api";
import { curlOf } from "../curl";
import { Exchange } from "../exchange";
import { session } from "../api";
import { duration, lossesTold, moment, money, target, waitsFor, whole } from "../format";
import { CacheMark } from "../parts/cachetruth";
import { Details } from "../parts/details";
import { Pane } from "../parts/pane";
import { Player } from "../parts/player";
import { RecordingButton } from "../parts/recording";
import { ExchangeSearch, FoundInExchange } from "../parts/search";
import { Copy, Losses, Problem, Purpose, Status, Tabs, Waiting, useTitle } from "../parts/small";
import { Timeline } from "../parts/timeline";
import { A, param, setQuery, to } from "../route";
import type { Row, Trace } from "../types";
import { openInPlayground } from "./play";

export function ExchangeView({ id }: { id: string }) {
  const exchange = useMemo(() => new Exchange(id), [id]);
  // Asked for before the first paint and not after it.
  useLayoutEffect(() => exchange.open(), [exchange]);
  const trace = exchange.trace.value;
  const row = exchange.row.value;
  // By which one of many tabs is found again.
  useTitle(row ? [row.title || row.asked || row.path, row.client].filter(Boolean).join(" · ") : `Exchange ${id}`);
  if (exchange.problem.value && !trace)
    return (
      <section class="prose">
        <h1>No such exchange</h1>
        <Problem>{exchange.problem.value}</Problem>
        <p>
          The gateway keeps a limited number of them, and shows only those of your key. <A href={to([])}>The list</A> has all that are kept.
        </p>
      </section>
    );
  if (!trace || !row) return <Waiting />;
  return (
    <article class="exchange">
      <Head exchange={exchange} trace={trace} row={row} />
      {exchange.recorded.value ? (
        <>
          {exchange.running.value ? <Now exchange={exchange} /> : null}
          <Timeline exchange={exchange} />
          <FoundInExchange exchange={exchange} />
          <Chosen exchange={exchange} />
          <Panes exchange={exchange} />
        </>
      ) : (
        <NoBodies running={exchange.running.value} why={trace.why} />
      )}
      <Details exchange={exchange} trace={trace} row={row} />
    </article>
  );
}

function Head({ exchange, trace, row }: { exchange: Exchange; trace: Trace; row: Row }) {
  const attempt = exchange.attempt.value;
  const cache = exchange.cache.value;
  const asked = `${trace.request?.method ?? "POST"} ${row.path || row.operation || ""}`;
  return (
    <header class="exchange-head">
      <div class="exchange-title">
        <h1 class={row.title ? "words" : undefined} title={row.title}>{row.title || asked}</h1>
        <div class="exchange-actions">
          {trace.request ? <ExchangeSearch exchange={exchange} /> : null}
          {trace.request && !trace.request.truncated && row.operation !== "embed" ? <A class="button main" href={to(["replay", row.id])}>Replay …</A> : null}
          {trace.request && !exchange.running.value ? <A class="button" href={to(["compare", row.id])}>Compare …</A> : null}
          {trace.request ? <a class="button" href={address(`/exchanges/${encodeURIComponent(row.id)}/export`)} download="">Export</a> : null}
          {trace.request?.body && !trace.request.truncated && row.dialect && row.operation !== "count" && row.operation !== "embed" ? (
            <button type="button" onClick={() => openInPlayground(row.dialect ?? "", trace.request?.body ?? "")}>Playground</button>
          ) : null}
          {trace.request && !trace.request.truncated ? <Copy label="Copy as curl" text={() => curlOf(trace.request ?? {}, location.origin, row.path ?? "/")} /> : null}
        </div>
      </div>
      <p class="facts">
        <Status row={row} />
        {row.title ? <code>{asked}</code> : null}
        <span title={row.agent}>{row.client || "unknown client"}{row.dialect ? <span class="tag">{row.dialect}</span> : null}<Purpose row={row} /></span>
        {row.asked && row.asked !== target(row) ? <span title="the requested model">{row.asked}</span> : null}
        <span class="arrow" aria-label="to">→</span>
        <span>{target(row) || "no provider"}{attempt?.dialect || row.upstream_dialect ? <span class="tag">{attempt?.dialect ?? row.upstream_dialect}</span> : null}{row.passthrough ? <span class="tag">pass-through</span> : null}</span>
        <Losses losses={lossesTold(row)} />
        <span>{duration(row.total_ms)}{row.first_ms ? <span class="faint"> (first byte {duration(row.first_ms)})</span> : null}</span>
        {row.tokens ? <span>{whole(row.tokens.input ?? 0)} in, {whole(row.tokens.output ?? 0)} out</span> : null}
        {row.cost !== null && row.cost !== undefined ? <span>{money(row.cost)}</span> : null}
        <span class="faint" title={row.worker ? `answered by ${row.worker}` : undefined}>{moment(row.at)}</span>
        <A href={to([], { session: row.session || `turns-${row.id}` })}>conversation</A>
        {row.belongs_to ? <A href={to(["x", row.belongs_to])}>part of another exchange</A> : null}
        {trace.request && !exchange.running.value ? ( // known later than the rest, which it must not move
          <span class="of-cache">
            {cache && cache.verdict !== "first" && cache.verdict !== "unknown" ? (
              <button type="button" class="quiet" title="What the provider's cache should have had" onClick={() => setQuery({ tab: "usage" })}>
                <CacheMark truth={cache} />
              </button>
            ) : null}
          </span>
        ) : null}
      </p>
      {row.error ? <Problem>{row.error}</Problem> : null}
      {(trace.notes ?? []).map((note) => <p key={note} class="note">{note}</p>)}
    </header>
  );
}

/** What one that runs does now. */
function Now({ exchange }: { exchange: Exchange }) {
  const [trace, row] = [exchange.trace.value, exchange.row.value];
  if (!trace || !row) return null;
  return (
    <p class="note" role="status">
      <span class="pulse" aria-hidden="true" /> It runs, and {waitsFor(row, Date.now() / 1000) || "is worked on"}
      {trace.now_ms !== undefined ? <span class="faint"> · for {duration(trace.now_ms - exchange.waitsSince.value)}</span> : null}
      {row.worker && (session.value?.workers ?? 1) > 1 ? <span class="faint"> · in {row.worker}</span> : null}
    </p>
  );
}

/** The part that is chosen, and what it became on the other side. */
function Chosen({ exchange }: { exchange: Exchange }) {
  const chosen = exchange.chosen.value;
  const counterparts = exchange.counterparts.value;
  if (!chosen) return null;
  return (
    <p class="chosen" role="status">
      <code>{chosen.pointer || "the whole document"}</code>
      {counterparts.length ? <> ⇄ {counterparts.slice(0, 3).map((each) => <code key={each}>{each || "the whole document"}</code>)}{counterparts.length > 3 ? ` and ${counterparts.length - 3} more` : ""}</> : <span class="faint"> has no counterpart on the other side</span>}
      <button type="button" class="quiet" onClick={() => setQuery({ sel: "" }, true)}>Clear</button>
    </p>
  );
}

function Panes({ exchange }: { exchange: Exchange }) {
  const shown = param("pane") || "client-request";
  const streams = exchange.clientEvents.value.length > 0 || exchange.upstreamEvents.value.length > 0;
  return (
    <>
      <div class="pane-choice">
        <Tabs label="Sides of the exchange" panel="panes" chosen={shown} choose={(each) => setQuery({ pane: each === "client-request" ? "" : each }, true)} tabs={exchange.sides.map((side) => ({ id: side.name, name: side.title }))} />
      </div>
      <div class={`panes show-${shown}`} id="panes">
        {exchange.sides.map((side) => <Pane key={side.name} side={side} />)}
        {streams ? <Player exchange={exchange} /> : null}
      </div>
    </>
  );
}

function NoBodies({ running, why }: { running: boolean; why: string | undefined }) {
  return (
    <div class="card empty">
      {running ? (
        <>
          <h2>It is still running{why ? "" : ", and not recorded"}</h2>
          <p>{why ? `Its bodies cannot be shown here: ${why}.` : "Its row, times and losses are known without its bodies. Those of the next ones can be recorded."}</p>
        </>
      ) : (
        <>
          <h2>{why ? "Bodies cannot be shown here" : "No bodies of this exchange"}</h2>
          {why ? <p>They were {why}.</p> : null}
          <p>
            Its row, times, usage and losses are known without them. To see both sides of what comes next, have bodies recorded for some minutes,
            or start the gateway with <code>wireglot serve --trace</code>.
          </p>
        </>
      )}
      <RecordingButton />
    </div>
  );
}
