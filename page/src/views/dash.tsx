// What happened over time: requests, errors, latency, tokens, cost, losses, budgets, and how the providers are.
import { useEffect, useMemo, useState } from "preact/hooks";
import { address, get, message } from "../api";
import { change, count, duration, inCurrency, moment, plural, whole } from "../format";
import type { Series } from "../lazy/chart";
import { Chart } from "../parts/chart";
import { Choice, Grade, Problem, Waiting, useTitle } from "../parts/small";
import { every } from "../polling";
import { A, param, setQuery, to } from "../route";

type Values = (number | null)[];
type Percentiles = { p50: number | null; p95: number | null; p99: number | null };

interface Total {
  requests: number;
  errors: number;
  left?: number;
  open?: number;
  latency_ms?: Percentiles;
  first_ms?: Percentiles;
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cost?: number | null;
  unpriced?: number;
  lossy?: number;
}

interface BudgetLeft {
  of: "key" | "group";
  name: string;
  unit: "tokens" | "cost";
  period: "day" | "month";
  limit: number;
  used: number;
  left: number;
  resets: number;
}

interface Dashboard {
  from: number;
  to: number;
  step: number;
  by: string;
  currency?: string;
  /** Whether percentiles are values that were measured, or of hourly sums. */
  durations?: "measured" | "within_5_percent";
  /** Of the stretch of the same length before. */
  previous?: Total | null;
  budgets?: BudgetLeft[] | null;
  times: number[];
  total: Total;
  series: Record<string, Values>;
  groups: { name: string; total: Total; series: Record<string, Values> }[];
  more_groups?: number;
  losses?: { feature: string; requests: number }[];
  grades?: Record<string, number>;
  health?: {
    providers: {
      name: string;
      breakers?: string[];
      cooling?: { model?: string; account?: string; seconds: number }[];
      rejected?: { account?: string; seconds: number }[];
      errors?: Record<string, number>;
    }[];
    queue?: number;
    in_flight?: number;
    store_down?: boolean;
    losses?: { feature: string; grade: string; requests: number }[];
  };
}

const RANGES: [string, string][] = [["15m", "15 min"], ["1h", "1 h"], ["6h", "6 h"], ["24h", "1 d"], ["7d", "7 d"], ["30d", "30 d"], ["90d", "90 d"], ["365d", "1 y"], ["all", "All"]];
const GROUPS: [string, string][] = [["model", "Model"], ["provider", "Provider"], ["key", "Key"], ["group", "Group"], ["client", "Client"], ["agent", "Agent"]];
/** Those by which the list of exchanges can be filtered, too. */
const LISTED = new Set(["model", "provider", "key"]);
const MOST_LINES = 5;

/** Whether the price of anything that ended is known. */
const priced = (total: Total) => total.requests - (total.open ?? 0) > (total.unpriced ?? 0);

export function Dashboards() {
  useTitle("Dashboards");
  const range = param("range") || "1h";
  const by = param("by") || "model";
  const from = param("from");
  const until = param("to");
  const [found, setFound] = useState<Dashboard | null>(null);
  const [problem, setProblem] = useState("");
  const filters = Object.fromEntries(GROUPS.map(([name]) => [name, param(name)]));
  const times = from ? { from, to: until } : { from: range };
  const query = { ...times, by, ...filters };
  const asked = JSON.stringify(query);
  useEffect(() => {
    const stop = new AbortController();
    const load = () =>
      get<Dashboard>("/dashboard", query, stop.signal)
        .then((page) => {
          setFound(page);
          setProblem("");
        })
        .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    const leave = every(30_000, load);
    return () => {
      leave();
      stop.abort();
    };
  }, [asked]);
  return (
    <section class="dash">
      <header class="bar">
        <h1>Dashboards</h1>
        <Choice label="Time range" options={RANGES} value={from ? "" : range} choose={(each) => setQuery({ range: each === "1h" ? "" : each, from: "", to: "" })} />
        <label class="when">
          from <input type="date" value={from} onChange={(event) => setQuery({ from: event.currentTarget.value })} />
        </label>
        <label class="when">
          to <input type="date" value={until} onChange={(event) => setQuery({ to: event.currentTarget.value })} />
        </label>
        <Choice label="Grouped by" options={GROUPS} value={by} choose={(each) => setQuery({ by: each === "model" ? "" : each })} />
        <div class="actions">
          {["csv", "json"].map((format) => (
            <a key={format} class="button" href={address("/dashboard", { ...query, format })} download="">
              {format.toUpperCase()}
            </a>
          ))}
        </div>
      </header>
      {GROUPS.some(([name]) => filters[name]) ? (
        <p class="only">
          Only{" "}
          {GROUPS.filter(([name]) => filters[name]).map(([name, title]) => (
            <button key={name} type="button" onClick={() => setQuery({ [name]: "" })} aria-label={`Remove the filter: ${title} ${filters[name] ?? ""}`}>
              {title}: {filters[name]} <span aria-hidden="true">×</span>
            </button>
          ))}
        </p>
      ) : null}
      {problem ? <Problem>{problem}</Problem> : null}
      {!found && !problem ? <Waiting /> : null}
      {found ? <Charts page={found} range={from ? { from, to: until } : { range }} /> : null}
    </section>
  );
}

function Charts({ page, range }: { page: Dashboard; range: Record<string, string> }) {
  const price = (value: number) => inCurrency(value, page.currency ?? "USD");
  const total = page.total;
  const before = page.previous;
  const since = (now: number | null | undefined, then: number | null | undefined) => (before ? change(now, then) : "");
  // Percentiles of sums say nothing of smaller differences.
  const slower = (now: number | null | undefined, then: number | null | undefined) => (before ? change(now, then, page.durations === "within_5_percent" ? 11 : 1) : "");
  const grouped = useMemo(
    () => (name: string): Series[] => {
      if (!page.groups.length) return [{ name: "all", values: page.series[name] ?? [] }];
      const reported = page.groups.slice(0, MOST_LINES).map((group) => ({ name: group.name || "none", values: group.series[name] ?? [] }));
      if (page.groups.length <= MOST_LINES && !page.more_groups) return reported;
      const rest = (page.series[name] ?? []).map((all, at) => Math.max(0, (all ?? 0) - reported.reduce((sum, each) => sum + (each.values[at] ?? 0), 0)));
      return [...reported, { name: "all others", values: rest }];
    },
    [page],
  );
  const sets = useMemo(
    () => ({
      requests: grouped("requests"),
      errors: grouped("errors"),
      latency: ["p50", "p95", "p99"].map((each) => ({ name: each, values: page.series[`latency_${each}`] ?? [] })),
      first: ["p50", "p95", "p99"].map((each) => ({ name: each, values: page.series[`first_${each}`] ?? [] })),
      tokens: [
        { name: "input", values: (page.series["input_tokens"] ?? []).map((all, at) => Math.max(0, (all ?? 0) - (page.series["cached_tokens"]?.[at] ?? 0))) },
        { name: "input from a cache", values: page.series["cached_tokens"] ?? [] },
        { name: "output", values: page.series["output_tokens"] ?? [] },
      ],
      cost: grouped("cost"),
      lossy: grouped("lossy"),
    }),
    [page],
  );
  const cost = total.cost;
  return (
    <>
      <dl class="figures">
        <Figure name="Requests" value={whole(total.requests)} about={total.open ? `${total.open} running` : ""} change={since(total.requests, before?.requests)} />
        <Figure name="Failed" value={whole(total.errors)} about={total.requests ? `${((total.errors / total.requests) * 100).toFixed(1)} %` : ""} bad={total.errors > 0} change={since(total.errors, before?.errors)} />
        <Figure name="Total, median" value={duration(total.latency_ms?.p50) || "–"} about={total.latency_ms?.p95 ? `p95 ${duration(total.latency_ms.p95)}` : ""} change={slower(total.latency_ms?.p50, before?.latency_ms?.p50)} />
        <Figure name="First token, median" value={duration(total.first_ms?.p50) || "–"} about={total.first_ms?.p95 ? `p95 ${duration(total.first_ms.p95)}` : ""} change={slower(total.first_ms?.p50, before?.first_ms?.p50)} />
        <Figure name="Tokens" value={count(tokens(total))} about={`${count(total.input_tokens ?? 0)} in, ${count(total.output_tokens ?? 0)} out`} change={since(tokens(total), before ? tokens(before) : null)} />
        <Figure name={`Cost, ${page.currency ?? "USD"}`} value={!total.requests ? "–" : cost === null || cost === undefined || !priced(total) ? "not known" : price(cost)} about={priced(total) && total.unpriced ? `${total.unpriced} without a price` : ""} change={priced(total) ? since(cost, before?.cost) : ""} />
      </dl>
      {page.durations === "within_5_percent" && total.requests ? <p class="faint about-times">Medians and percentiles come from hourly sums and are within 5 % of the measured values. All other numbers are exact.{page.step >= 86_400 ? " Days are UTC." : ""}</p> : null}
      {total.requests ? (
        <div class="charts">
          <Chart title="Requests" times={page.times} series={sets.requests} show="stack" format={count} whole />
          <Chart title="Failed" times={page.times} series={sets.errors} show="stack" format={count} whole nothing="✓ None failed in this time." />
          <Chart title="Time to the last byte" times={page.times} series={sets.latency} format={duration} nothing="No request ended in this time." />
          <Chart title="Time to the first token" times={page.times} series={sets.first} format={duration} nothing="Nothing was streamed in this time." />
          <Chart title="Tokens" times={page.times} series={sets.tokens} show="stack" format={count} whole nothing="No usage in this time." />
          <Chart title="Cost" times={page.times} series={sets.cost} show="stack" format={price} nothing={!priced(total) ? "No prices are known for these requests." : total.unpriced ? "Priced requests cost nothing in this time." : "It cost nothing in this time."} />
        </div>
      ) : (
        <div class="card empty">
          <h2>No requests in this time</h2>
          <p>
            Choose a longer time above, or send some: <A href={to(["setup"])}>Set-up</A> has the settings of each client, and a button that asks the demo model.
          </p>
        </div>
      )}
      <div class="tables">
        {page.groups.length ? <section class="card">
          <h2>By {page.by}</h2>
          <div class="scroll-x" tabIndex={0} role="group" aria-label={`By ${page.by}`}>
            <table>
              <thead>
                <tr>
                  <th>{page.by.replace(/^./, (letter) => letter.toUpperCase())}</th>
                  <th class="num">Requests</th>
                  <th class="num">Failed</th>
                  <th class="num">p50</th>
                  <th class="num">p95</th>
                  <th class="num">First p50</th>
                  <th class="num">Tokens</th>
                  <th class="num">Cost</th>
                </tr>
              </thead>
              <tbody>
                {page.groups.map((group) => (
                  <tr key={group.name}>
                    <td>
                      {group.name ? <A href={to(["dash"], { ...range, by: nextGroup(page.by), [page.by]: group.name })} aria-label={`Only ${page.by} ${group.name}`}>{group.name}</A> : "none"}
                      {group.name && LISTED.has(page.by) ? <> <A class="faint list-link" href={to([], { [page.by]: group.name })} aria-label={`Exchanges of ${group.name}`}>exchanges</A></> : null}
                    </td>
                    <td class="num">{whole(group.total.requests)}</td>
                    <td class="num">{group.total.errors ? <span class="status status-bad">✕ {whole(group.total.errors)}</span> : "0"}</td>
                    <td class="num">{duration(group.total.latency_ms?.p50)}</td>
                    <td class="num">{duration(group.total.latency_ms?.p95)}</td>
                    <td class="num">{duration(group.total.first_ms?.p50)}</td>
                    <td class="num">{count(tokens(group.total))}</td>
                    <td class="num">{group.total.cost === null || group.total.cost === undefined || !priced(group.total) ? "" : price(group.total.cost)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {page.more_groups ? <p class="faint">and {page.more_groups} more: the files have all of them.</p> : null}
        </section> : null}
        <Budgets page={page} price={price} />
        <LossTable page={page} />
        {page.health ? <Health health={page.health} /> : null}
      </div>
    </>
  );
}

const tokens = (total: Total) => (total.input_tokens ?? 0) + (total.output_tokens ?? 0);

/** What is worth seeing of one group: the models of a key, the keys of a model. */
const nextGroup = (by: string) => (by === "model" ? "key" : "");

function Figure({ name, value, about, change = "", bad = false }: { name: string; value: string; about?: string; change?: string; bad?: boolean }) {
  return (
    <div class={`figure card${bad ? " bad" : ""}`}>
      <dt>{name}</dt>
      <dd>
        {value} {about ? <small>{about}</small> : null}
        {change ? <small title="compared with the time of the same length before">{change}</small> : null}
      </dd>
    </div>
  );
}

function Budgets({ page, price }: { page: Dashboard; price: (value: number) => string }) {
  const budgets = page.budgets;
  if (budgets === null) return <section class="card"><h2>Budgets</h2><Problem>Budgets cannot be read now.</Problem></section>;
  if (!budgets?.length) return null;
  const show = (value: number, unit: string) => (unit === "cost" ? price(value) : `${count(value)} tokens`);
  const rows = [...budgets].sort((one, other) => other.used / other.limit - one.used / one.limit);
  return (
    <section class="card">
      <h2>Budgets</h2>
      <div class="scroll-x" tabIndex={0} role="group" aria-label="Budgets">
        <table>
          <thead>
            <tr>
              <th>Key or group</th>
              <th>Budget</th>
              <th class="num">Used</th>
              <th class="num">Left</th>
              <th>Resets</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((each) => (
              <tr key={`${each.of} ${each.name} ${each.unit} ${each.period}`}>
                <td>
                  {each.name} {each.of === "group" ? <span class="tag">group</span> : null}
                </td>
                <td class="num-left">
                  {show(each.limit, each.unit)} a {each.period}
                  <svg class="left-bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                    <rect class={each.left > 0 ? "fill-harmless" : "fill-serious"} width={Math.min(100, (each.used / each.limit) * 100)} height="6" rx="1" />
                  </svg>
                </td>
                <td class="num">
                  {show(each.used, each.unit)} <span class="faint">{Math.round((each.used / each.limit) * 100)} %</span>
                </td>
                <td class="num">{each.left > 0 ? show(each.left, each.unit) : <span class="status status-bad">✕ used up</span>}</td>
                <td class="resets">{moment(each.resets).slice(0, 16)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function LossTable({ page }: { page: Dashboard }) {
  const losses = page.losses ?? [];
  const grades = new Map((page.health?.losses ?? []).map((each) => [each.feature, each.grade]));
  const most = Math.max(1, ...losses.map((each) => each.requests));
  return (
    <section class="card">
      <h2>Losses</h2>
      {Object.keys(page.grades ?? {}).length ? (
        <p class="grades">
          {["serious", "degraded", "harmless"].map((grade) => (
            <Grade key={grade} grade={grade}>
              {page.grades?.[grade] ?? 0} {grade}
            </Grade>
          ))}
        </p>
      ) : null}
      {losses.length ? (
        <ul class="bars">
          {losses.slice(0, 14).map((each) => (
            <li key={each.feature}>
              <A href={to([], { loss: each.feature })}>{each.feature}</A>
              <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                <rect class={`fill-${grades.get(each.feature) ?? "harmless"}`} width={(each.requests / most) * 100} height="8" rx="1" />
              </svg>
              <span class="num">{plural(each.requests, "request")}</span>
            </li>
          ))}
        </ul>
      ) : (
        <p class="grade grade-kept">✓ nothing was lost in this time</p>
      )}
    </section>
  );
}

function Health({ health }: { health: NonNullable<Dashboard["health"]> }) {
  return (
    <section class="card">
      <h2>Health, now</h2>
      <p>
        {plural(health.in_flight ?? 0, "request")} in flight, {health.queue ?? 0} waiting.{" "}
        {health.store_down ? <span class="status status-bad">✕ the store does not answer</span> : <span class="status status-good">✓ the store answers</span>}
      </p>
      <ul class="providers health">
        {health.providers.map((each) => {
          const cooling = each.cooling ?? [];
          const broken = each.breakers ?? [];
          const rejected = each.rejected ?? [];
          const fine = !cooling.length && !broken.length && !rejected.length;
          return (
            <li key={each.name}>
              <span class={fine ? "grade grade-kept" : broken.length ? "grade grade-serious" : "grade grade-degraded"}>{fine ? "✓ Healthy" : broken.length ? "✕ breaker open" : rejected.length ? "✕ key refused" : "≈ cools down"}</span>
              <strong>{each.name}</strong>
              <span class="why">
                {[...broken.map((route) => `breaker of ${route} is open`), ...cooling.map((one) => `${one.model ?? one.account ?? ""} for ${duration(one.seconds * 1000)}`), ...rejected.map((one) => `key ${one.account ?? ""} was refused, next try in ${duration(one.seconds * 1000)}`),
                  ...Object.entries(each.errors ?? {}).map(([kind, number]) => `${number} × ${kind}`)].join("; ")}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
