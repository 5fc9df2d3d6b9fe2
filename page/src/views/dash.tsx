// What happened over time: requests, errors, latency, tokens, cost, losses, budgets, and how the providers are.
import { useEffect, useMemo, useState } from "preact/hooks";
import { address, get, message } from "../api";
import { type Dashboard, isPriced, seriesOf, spanOf, tokensIn } from "../figures";
import { change, count, currencyInUse, duration, inCurrency, plural, whole } from "../format";
import { Chart } from "../parts/chart";
import { Budgets, Figure, HealthNow, LossTable } from "../parts/figures";
import { Choice, Problem, Waiting, useTitle } from "../parts/small";
import { every } from "../polling";
import { A, param, setQuery, to } from "../route";

const RANGES: [string, string][] = [["15m", "15 min"], ["1h", "1 h"], ["6h", "6 h"], ["24h", "1 d"], ["7d", "7 d"], ["30d", "30 d"], ["90d", "90 d"], ["365d", "1 y"], ["all", "All"]];
const GROUPS: [string, string][] = [["model", "Model"], ["provider", "Provider"], ["key", "Key"], ["group", "Group"], ["client", "Client"], ["agent", "Agent"]];
/** Those by which the list of exchanges can be filtered, too. */
const LISTED = new Set(["model", "provider", "key", "client", "agent"]);

export function Dashboards() {
  useTitle("Dashboards");
  const range = param("range");
  const by = param("by") || "model";
  const from = param("from");
  const until = param("to");
  const [found, setFound] = useState<{ of: string; page: Dashboard } | null>(null);
  const [problem, setProblem] = useState("");
  const filters = Object.fromEntries(GROUPS.map(([name]) => [name, param(name)]));
  const query = { ...spanOf(range, from, until), by, ...filters };
  const asked = JSON.stringify(query);
  useEffect(() => {
    const stop = new AbortController();
    const load = () =>
      get<Dashboard>("/dashboard", query, stop.signal)
        .then((page) => {
          setFound({ of: asked, page });
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
        <Choice label="Time range" options={RANGES} value={from || until ? "" : range || "1h"} choose={(each) => setQuery({ range: each === "1h" ? "" : each, from: "", to: "" })} />
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
      {found?.of !== asked && !problem ? <Waiting what="Adding up" /> : null}
      {found ? (
        <div class={found.of === asked ? "" : "stale"}>
          <Charts page={found.page} range={{ range, from, to: until }} />
        </div>
      ) : null}
    </section>
  );
}

function Charts({ page, range }: { page: Dashboard; range: Record<string, string> }) {
  const total = page.total;
  const before = page.previous;
  const since = (now: number | null | undefined, then: number | null | undefined) => (before ? change(now, then) : "");
  // Percentiles of sums say nothing of smaller differences.
  const slower = (now: number | null | undefined, then: number | null | undefined) => (before ? change(now, then, page.durations === "within_5_percent" ? 11 : 1) : "");
  const sets = useMemo(() => seriesOf(page), [page]);
  const cost = total.cost;
  return (
    <>
      <dl class="figures">
        <Figure name="Requests" value={whole(total.requests)} about={total.open ? `${whole(total.open)} running` : ""} change={since(total.requests, before?.requests)} />
        <Figure name="Failed" value={whole(total.errors)} about={total.requests ? `${((total.errors / total.requests) * 100).toFixed(1)} %` : ""} bad={total.errors > 0} change={since(total.errors, before?.errors)} />
        <Figure name="Total, median" value={duration(total.latency_ms?.p50) || "–"} about={total.latency_ms?.p95 ? `p95 ${duration(total.latency_ms.p95)}` : ""} change={slower(total.latency_ms?.p50, before?.latency_ms?.p50)} />
        <Figure name="First token, median" value={duration(total.first_ms?.p50) || "–"} about={total.first_ms?.p95 ? `p95 ${duration(total.first_ms.p95)}` : ""} change={slower(total.first_ms?.p50, before?.first_ms?.p50)} />
        <Figure name="Tokens" value={count(tokensIn(total))} about={`${count(total.input_tokens ?? 0)} in, ${count(total.output_tokens ?? 0)} out`} change={since(tokensIn(total), before ? tokensIn(before) : null)} />
        <Figure name={`Cost, ${currencyInUse.value}`} value={!total.requests ? "–" : cost === null || cost === undefined || !isPriced(total) ? "not known" : inCurrency(cost)} about={isPriced(total) && total.unpriced ? `${whole(total.unpriced)} without a price` : ""} change={isPriced(total) ? since(cost, before?.cost) : ""} />
      </dl>
      {page.durations === "within_5_percent" && total.requests ? <p class="faint about-times">Medians and percentiles come from hourly sums and are within 5 % of the measured values. All other numbers are exact.{page.step >= 86_400 ? " Days are UTC." : ""}</p> : null}
      {page.rejected ? (
        <p class="note" role="status">
          <span class="status status-bad">✕ {plural(page.rejected, "more request")}</span> failed before a provider was called{(page.graded ?? 0) < page.rejected + total.requests ? `, of the newest ${whole(page.graded ?? 0)} exchanges` : ""}: they are not in these figures. <A href={to([], { q: "status:failed -provider:*" })}>Show them</A>
        </p>
      ) : null}
      {total.requests ? (
        <div class="charts">
          <Chart title="Requests" times={page.times} series={sets.requests} show="stack" format={count} whole />
          <Chart title="Failed" times={page.times} series={sets.errors} show="stack" format={count} whole nothing="✓ None failed in this time." />
          <Chart title="Time to the last byte" times={page.times} series={sets.latency} format={duration} nothing="No request ended in this time." />
          <Chart title="Time to the first token" times={page.times} series={sets.first} format={duration} nothing="Nothing was streamed in this time." />
          <Chart title="Tokens" times={page.times} series={sets.tokens} show="stack" format={count} whole nothing="No usage in this time." />
          <Chart title="Cost" times={page.times} series={sets.cost} show="stack" format={inCurrency} nothing={!isPriced(total) ? "No prices are known for these requests." : total.unpriced ? "Priced requests cost nothing in this time." : "It cost nothing in this time."} />
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
                    <td class="num">{count(tokensIn(group.total))}</td>
                    <td class="num">{group.total.cost === null || group.total.cost === undefined || !isPriced(group.total) ? <span class="faint">no price</span> : inCurrency(group.total.cost)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {page.more_groups ? <p class="faint">and {page.more_groups} more: the files have all of them.</p> : null}
        </section> : null}
        <Budgets page={page} />
        <LossTable page={page} />
        {page.health ? <HealthNow health={page.health} /> : null}
      </div>
    </>
  );
}

/** What is worth seeing of one group: the models of a key, the keys of a model. */
const nextGroup = (by: string) => (by === "model" ? "key" : "");
