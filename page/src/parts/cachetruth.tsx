// What the provider's prompt cache should have had, what it had, and what broke it: of a turn, and of a conversation.
import { useEffect, useState } from "preact/hooks";
import { get, message } from "../api";
import { CACHE_GRADE, CACHE_SIGN, cacheTotals, cacheWords, totalsWords } from "../cache";
import type { Exchange } from "../exchange";
import { clock, whole } from "../format";
import { A, setQuery, to } from "../route";
import type { CacheBreak, CacheTruth } from "../types";

export function CacheMark({ truth }: { truth: CacheTruth }) {
  return (
    <span class={`grade grade-${CACHE_GRADE[truth.verdict]}`} title={truth.broken?.reason ?? truth.note}>
      <span aria-hidden="true">{CACHE_SIGN[truth.verdict]}</span> {cacheWords(truth)}
    </span>
  );
}

function Break({ broken, show }: { broken: CacheBreak; show?: (() => void) | undefined }) {
  return (
    <div class="cache-break">
      <p>
        <strong>{broken.reason}</strong>
        {broken.pointer ? (
          <>
            {" "}at {show ? <button type="button" class="quiet path" onClick={show}>{broken.pointer}</button> : <code>{broken.pointer}</code>}
          </>
        ) : null}
      </p>
      {broken.before || broken.after ? (
        <pre class="cache-values">
          <del><span class="unseen">before: </span>{broken.before}</del>{"\n"}
          <ins><span class="unseen">now: </span>{broken.after}</ins>
        </pre>
      ) : null}
    </div>
  );
}

/** Of the exchange that is shown, with the place that broke it. */
export function CacheOfExchange({ exchange }: { exchange: Exchange }) {
  const truth = exchange.cache.value;
  if (!truth) return null;
  const { broken } = truth;
  // What is gone is a place of the turn before, which this request may not have.
  const show = () => {
    setQuery({ sel: `upstream-request:${broken?.pointer ?? ""}`, "m-upstream-request": "json", pane: "upstream-request" });
    requestAnimationFrame(() => document.querySelector('[data-side="upstream-request"]')?.scrollIntoView({ block: "center" }));
  };
  return (
    <section class="cache-truth" aria-label="Prompt cache">
      <h3>Prompt cache</h3>
      <p>
        <CacheMark truth={truth} />
        {truth.blocks ? <span class="faint"> {whole(truth.same ?? 0)} of {whole(truth.blocks)} blocks of the turn before come first again, unchanged</span> : null}
        {truth.previous ? <> <A href={to(["x", truth.previous])}>the turn before</A></> : null}
      </p>
      {truth.note ? <p class="faint">{truth.note}</p> : null}
      {broken ? <Break broken={broken} show={broken.after === "absent" ? undefined : show} /> : null}
      {truth.expected ? <p class="faint">What was expected is an estimate: the common part of both requests, counted as the turn before was.</p> : null}
    </section>
  );
}

export interface CacheOfTurns {
  turns: CacheTruth[];
  problem: string;
}

/** Of all turns of the conversation that an exchange belongs to; "": of none. */
export function useCacheOfTurns(id: string): CacheOfTurns {
  const [found, setFound] = useState<CacheOfTurns>({ turns: [], problem: "" });
  useEffect(() => {
    if (!id) return;
    const stop = new AbortController();
    get<{ turns: CacheTruth[] }>(`/exchanges/${encodeURIComponent(id)}/cache`, { all: 1 }, stop.signal)
      .then(({ turns }) => setFound({ turns, problem: "" }))
      .catch((caught: unknown) => !stop.signal.aborted && setFound({ turns: [], problem: message(caught) }));
    return () => stop.abort();
  }, [id]);
  return found;
}

/** The sum of a conversation, and the turns that broke it. */
export function CacheOfConversation({ turns, problem }: CacheOfTurns) {
  if (problem) return <p class="faint">The prompt cache: {problem}</p>;
  if (!turns.length) return null;
  const totals = cacheTotals(turns);
  return (
    <div class="cache-truth" role="group" aria-label="Prompt cache">
      <p>
        <strong>Prompt cache</strong> {totalsWords(totals)}
      </p>
      {totals.broken.length ? (
        <ul>
          {totals.broken.map((truth) => (
            <li key={truth.id}>
              <A href={to(["x", truth.id], { tab: "usage" })}>{clock(truth.at)}</A> <CacheMark truth={truth} />
              {truth.broken ? <Break broken={truth.broken} /> : <p class="faint">{truth.note}</p>}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
