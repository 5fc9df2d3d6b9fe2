// Keys and budgets, with the admin secret.
import { useEffect, useState } from "preact/hooks";
import { ApiError, get, message, send, session } from "../api";
import { draft, useDraft } from "../drafts";
import { count, inCurrency, moment, whole } from "../format";
import { type Key, KeyForm, type Keyless, type Limit } from "../parts/keyform";
import { Copy, Problem, Sure, Waiting, useTitle } from "../parts/small";
import { SignInForm } from "./signin";
import { A, to } from "../route";

interface KeysPage {
  data: Key[];
  groups?: string[];
  /** Whether callers need a key now. */
  required?: boolean;
  keyless?: Keyless[];
}

function when(value: number | string | null | undefined): string {
  if (value === null || value === undefined || value === "") return "";
  return typeof value === "number" ? moment(value > 1e11 ? value / 1000 : value) : value;
}

function Budget({ used, limit, what }: { used: number | undefined; limit: number | null | undefined; what: Limit }) {
  const show = what.startsWith("cost") ? (value: number) => inCurrency(value) : count;
  if (limit === null || limit === undefined) return used ? <span class="faint">{show(used)}</span> : <span class="faint">–</span>;
  if (used === undefined) return <span>{show(limit)}</span>;
  const part = limit > 0 ? Math.min(1, used / limit) : 1;
  const state = part >= 1 ? "serious" : part >= 0.8 ? "degraded" : "kept";
  return (
    <span class="budget">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect class="usage-rest" width="100" height="6" />
        <rect class={`fill-${state}`} width={part * 100} height="6" />
      </svg>
      <span class={`grade grade-${state}`}>
        {part >= 1 ? "✕ " : part >= 0.8 ? "≈ " : ""}
        {show(used)} of {show(limit)}
      </span>
      <span class="faint">{part >= 1 ? "nothing left" : `${show(limit - used)} left`}</span>
    </span>
  );
}

export function Keys() {
  useTitle("Keys");
  const [page, setPage] = useState<KeysPage | null>(null);
  const [problem, setProblem] = useState("");
  const [refused, setRefused] = useState(false);
  const [made, setMade] = useDraft<Key[]>("made keys");
  // By what there is when it was made: another may be made before the first was read.
  const show = (key: Key) => setMade([...(draft<Key[]>("made keys") ?? []), key]);
  const done = (key: Key) => {
    const rest = (made ?? []).filter((each) => each !== key);
    setMade(rest.length ? rest : undefined);
  };
  const [edited, setEdited] = useState<Key | "new" | null>(null);
  const load = () =>
    get<KeysPage>("/keys")
      .then((found) => {
        setPage(found);
        setRefused(false);
        setProblem("");
      })
      .catch((caught: unknown) => {
        if (caught instanceof ApiError && caught.status === 403) setRefused(true);
        setProblem(message(caught));
      });
  useEffect(() => void load(), [session.value?.access]);
  const act = async (work: () => Promise<unknown>) => {
    try {
      setProblem("");
      await work();
      await load();
    } catch (caught) {
      setProblem(message(caught));
    }
  };
  if (refused)
    return (
      <section class="prose">
        <h1>Keys and budgets</h1>
        <p>Only an administrator can view and change them.</p>
        <p>The user who runs this gateway needs none: <code>wireglot inspect --admin</code> <Copy text="wireglot inspect --admin" /> in a terminal opens this page as the administrator.</p>
        {session.value?.admin ? <SignInForm /> : <p>For others, set <code>server.admin_secret</code>. <code>wireglot keys</code> makes keys, too.</p>}
      </section>
    );
  return (
    <section class="keys">
      <header class="bar">
        <h1>Keys and budgets</h1>
        <div class="actions">
          <button type="button" class="main" onClick={() => setEdited("new")}>
            New key
          </button>
        </div>
      </header>
      {problem ? <Problem>{problem}</Problem> : null}
      {(made ?? []).map((key) => (
        <div key={key.key} class="card made" role="status">
          <h2>The key of {key.name}, shown this once</h2>
          <p>
            <code class="secret">{key.key}</code> <Copy text={key.key ?? ""} />
          </p>
          <button type="button" class="quiet" onClick={() => done(key)}>
            Done<span class="unseen"> with the key of {key.name}</span>
          </button>
        </div>
      ))}
      {!page && !problem ? <Waiting /> : null}
      {page && !page.data.length ? (
        <div class="card empty">
          <h2>No keys</h2>
          <p>Without keys, everyone who can reach this gateway may use it. A key has a name, budgets and limits.</p>
        </div>
      ) : null}
      {page?.data.length ? (
        <div class="card scroll-x" tabIndex={0} role="group" aria-label="Keys">
          <table class="key-table">
            <thead>
              <tr>
                <th>Key</th>
                <th>State</th>
                <th>Cost, day</th>
                <th>Cost, month</th>
                <th>Tokens, day</th>
                <th>Tokens, month</th>
                <th>Limits</th>
                <th><span class="unseen">Changes</span></th>
              </tr>
            </thead>
            <tbody>
              {page.data.map((key) => (
                <tr key={key.name}>
                  <td>
                    <A href={to([], { key: key.name })}>{key.name}</A> {key.prefix ? <code class="faint">{key.prefix}…</code> : null}
                    {key.models?.length ? <div class="faint">only {key.models.join(", ")}</div> : null}
                    {key.group || key.owner ? <div class="faint">{[key.group ? `group ${key.group}` : "", key.owner ? `of ${key.owner}` : ""].filter(Boolean).join(", ")}</div> : null}
                  </td>
                  <td>
                    <span class={key.state === "active" ? "grade grade-kept" : "grade grade-serious"}>{key.state === "active" ? "✓" : "✕"} {key.state}</span>
                    {key.expires ? <div class="faint">until {when(key.expires)}</div> : null}
                  </td>
                  {(["cost_per_day", "cost_per_month", "tokens_per_day", "tokens_per_month"] as const).map((what) => (
                    <td key={what}>
                      <Budget used={key.used?.[what]} limit={key[what]} what={what} />
                    </td>
                  ))}
                  <td class="faint">
                    {[key.requests_per_minute ? `${whole(key.requests_per_minute)} requests/min` : "", key.tokens_per_minute ? `${count(key.tokens_per_minute)} tokens/min` : "", key.concurrent ? `${key.concurrent} at once` : "", key.searches_per_day ? `${whole(key.searches_per_day)} searches/day` : ""].filter(Boolean).join(", ") || "none"}
                  </td>
                  <td class="row-actions">
                    {key.stored === false ? (
                      <span class="faint" title="defined in the configuration file">in the configuration</span>
                    ) : (
                      <>
                        {key.state === "revoked" ? (
                          <Sure label="Delete" what={key.name} ask={`${key.name} is deleted, with all that its caller has stored. Its name is free again.`} act={() => act(() => send("POST", `/keys/${encodeURIComponent(key.name)}/delete`, {}))} />
                        ) : (
                          <button type="button" class="quiet" onClick={() => setEdited(key)}>Change</button>
                        )}
                        {key.state === "active" ? (
                          <>
                            <Sure label="Renew" what={key.name} ask={`A new secret for ${key.name}; the old one holds for another hour.`} act={() => act(async () => show(await send<Key>("POST", `/keys/${encodeURIComponent(key.name)}/rotate`, { overlap: 3600 })))} />
                            <Sure label="Revoke" what={key.name} ask={`${key.name} stops working at once.`} act={() => act(() => send("DELETE", `/keys/${encodeURIComponent(key.name)}`))} />
                          </>
                        ) : null}
                      </>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {edited ? (
        <KeyForm
          of={edited}
          groups={page?.groups ?? []}
          locksOut={edited === "new" && page?.required === false ? (page.keyless ?? []) : null}
          close={() => setEdited(null)}
          save={async (body) => {
            if (edited === "new") show(await send<Key>("POST", "/keys", body));
            else {
              const { name: _name, ...limits } = body;
              await send("PATCH", `/keys/${encodeURIComponent(edited.name)}`, limits);
            }
            setEdited(null);
            await load();
          }}
        />
      ) : null}
    </section>
  );
}
