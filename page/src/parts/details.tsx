// What is known of an exchange apart from its bodies: losses, attempts, usage, headers, what changed, and all of it as JSON.
import type { Exchange } from "../exchange";
import { duration, lossesTold, money, whole } from "../format";
import { param, setQuery } from "../route";
import type { Attempt, Message, Row, Trace } from "../types";
import { CacheOfExchange } from "./cachetruth";
import { LossTable } from "./losses";
import { LossMark } from "./partcard";
import { Copy, Tabs } from "./small";

export function Details({ exchange, trace, row }: { exchange: Exchange; trace: Trace; row: Row }) {
  const attempts = exchange.attempts.value;
  const attempt = exchange.attempt.value;
  const losses = exchange.losses.value;
  const recorded = exchange.recorded.value;
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
        {chosen === "usage" ? <><Usage row={row} /><CacheOfExchange exchange={exchange} /></> : null}
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
    ["Counted by", { provider: "the provider", partial: "the provider, in part", estimated: "us, an estimate" }[tokens.source ?? ""] ?? tokens.source ?? "the provider"],
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
