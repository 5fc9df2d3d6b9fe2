// Below the charts of the dashboards: what is left of budgets, what was lost, and how the providers are.
import { count, duration, inCurrency, moment, plural, whole } from "../format";
import { type Dashboard, type Health, gradeOf } from "../figures";
import { A, to } from "../route";
import { Grade, Problem } from "./small";

export function Figure({ name, value, about, change = "", bad = false }: { name: string; value: string; about?: string; change?: string; bad?: boolean }) {
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

export function Budgets({ page }: { page: Dashboard }) {
  const budgets = page.budgets;
  if (budgets === null) return <section class="card"><h2>Budgets</h2><Problem>Budgets cannot be read now.</Problem></section>;
  if (!budgets?.length) return null;
  const show = (value: number, unit: string) => (unit === "cost" ? inCurrency(value) : `${count(value)} tokens`);
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

const MOST_FEATURES = 14;

export function LossTable({ page }: { page: Dashboard }) {
  const losses = page.losses ?? [];
  const most = Math.max(1, ...losses.map((each) => each.requests));
  const graded = page.graded ?? page.total.requests;
  const bars = (some: typeof losses) => (
    <ul class="bars">
      {some.map((each) => (
        <li key={each.feature}>
          <A href={to([], { loss: each.feature })}>{each.feature}</A>
          <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect class={`fill-${gradeOf(page, each.feature) || "unknown"}`} width={(each.requests / most) * 100} height="8" rx="1" />
          </svg>
          <span class="num">{plural(each.requests, "request")}</span>
        </li>
      ))}
    </ul>
  );
  return (
    <section class="card">
      <h2>Losses</h2>
      {losses.length && graded && Object.keys(page.grades ?? {}).length ? (
        <p class="grades">
          {["serious", "degraded", "harmless"].map((grade) => (
            <Grade key={grade} grade={grade}>
              {whole(page.grades?.[grade] ?? 0)} {grade}
            </Grade>
          ))}
          {graded < page.total.requests ? <span class="faint">in the newest {plural(graded, "exchange")}, which are still in the list</span> : null}
        </p>
      ) : null}
      {losses.length ? bars(losses.slice(0, MOST_FEATURES)) : <p class="grade grade-kept">✓ nothing was lost in this time</p>}
      {losses.length > MOST_FEATURES ? (
        <details>
          <summary>{plural(losses.length - MOST_FEATURES, "more feature")}</summary>
          {bars(losses.slice(MOST_FEATURES))}
        </details>
      ) : null}
    </section>
  );
}

export function HealthNow({ health }: { health: Health }) {
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
