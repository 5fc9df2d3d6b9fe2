// Keys and budgets, with the admin secret.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, message, send, session } from "../api";
import { count, inCurrency, moment, whole } from "../format";
import { Copy, Problem, Sure, Waiting, useTitle } from "../parts/small";
import { SignInForm } from "./signin";
import { A, to } from "../route";

type Limit = "requests_per_minute" | "tokens_per_minute" | "concurrent" | "searches_per_day" | "tokens_per_day" | "tokens_per_month" | "cost_per_day" | "cost_per_month";

interface Key extends Partial<Record<Limit, number | null>> {
  name: string;
  prefix?: string;
  state: string;
  created?: number | string | null;
  models?: string[];
  losses?: string | null;
  expires?: number | string | null;
  group?: string | null;
  owner?: string | null;
  stored?: boolean;
  used?: Partial<Record<Limit, number>>;
  key?: string;
}

/** Who has called without a key since yesterday. */
interface Keyless {
  client: string;
  requests: number;
  last: number;
}

interface KeysPage {
  data: Key[];
  currency?: string;
  groups?: string[];
  /** Whether callers need a key now. */
  required?: boolean;
  keyless?: Keyless[];
}

const LIMITS: [Limit, string][] = [
  ["cost_per_day", "Cost a day"],
  ["cost_per_month", "Cost a month"],
  ["tokens_per_day", "Tokens a day"],
  ["tokens_per_month", "Tokens a month"],
  ["requests_per_minute", "Requests a minute"],
  ["tokens_per_minute", "Tokens a minute"],
  ["concurrent", "Concurrency"],
  ["searches_per_day", "Searches a day"],
];

function when(value: number | string | null | undefined): string {
  if (value === null || value === undefined || value === "") return "";
  return typeof value === "number" ? moment(value > 1e11 ? value / 1000 : value) : value;
}

function Budget({ used, limit, what, currency }: { used: number | undefined; limit: number | null | undefined; what: Limit; currency: string }) {
  const show = (value: number) => (what.startsWith("cost") ? inCurrency(value, currency || "USD") : count(value));
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
  const [made, setMade] = useState<Key | null>(null);
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
        <p>The admin secret is required to view and change them.</p>
        <p class="note">{problem}</p>
        {session.value?.admin ? <SignInForm /> : <p>This gateway has none: set <code>server.admin_secret</code>, and keys can be made here and with <code>wireglot keys</code>.</p>}
      </section>
    );
  const currency = page?.currency ?? "";
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
      {made?.key ? (
        <div class="card made" role="status">
          <h2>The key of {made.name}, shown this once</h2>
          <p>
            <code class="secret">{made.key}</code> <Copy text={made.key} />
          </p>
          <button type="button" class="quiet" onClick={() => setMade(null)}>
            Done
          </button>
        </div>
      ) : null}
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
                      <Budget used={key.used?.[what]} limit={key[what]} what={what} currency={currency} />
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
                        <button type="button" class="quiet" onClick={() => setEdited(key)}>Change</button>
                        {key.state === "active" ? (
                          <>
                            <Sure label="Renew" what={key.name} ask={`A new secret for ${key.name}; the old one holds for another hour.`} act={() => act(async () => setMade(await send<Key>("POST", `/keys/${encodeURIComponent(key.name)}/rotate`, { overlap: 3600 })))} />
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
            if (edited === "new") setMade(await send<Key>("POST", "/keys", body));
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

/** What the first key does to those that have none. */
function LocksOut({ clients }: { clients: Keyless[] }) {
  return (
    <div class="note locks-out" role="alert">
      <p>
        <strong>This is the first key: from then on every request needs one.</strong>{" "}
        {clients.length ? "These clients have called without a key in the last day, and will be refused:" : "No client has called without a key in the last day."}
      </p>
      {clients.length ? (
        <ul>
          {clients.map((each) => (
            <li key={each.client}>
              {each.client || "a client without a name"}: {whole(each.requests)} {each.requests === 1 ? "request" : "requests"}, last {moment(each.last)}
            </li>
          ))}
        </ul>
      ) : null}
      <p>
        Give each a key, or <code>wireglot keys off</code> opens the gateway again. This page then asks for the admin secret.
      </p>
    </div>
  );
}

interface KeyFormProps {
  of: Key | "new";
  groups: string[];
  /** Of the first key: who is locked out. */
  locksOut: Keyless[] | null;
  close: () => void;
  save: (body: Record<string, unknown>) => Promise<void>;
}

function KeyForm({ of, groups, locksOut, close, save }: KeyFormProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState("");
  const [name, setName] = useState("");
  const [agreed, setAgreed] = useState(false);
  const [models, setModels] = useState(of === "new" ? "" : (of.models ?? []).join(", "));
  const [group, setGroup] = useState(of === "new" ? "" : (of.group ?? ""));
  const [owner, setOwner] = useState(of === "new" ? "" : (of.owner ?? ""));
  const [expires, setExpires] = useState(of === "new" || typeof of.expires !== "string" ? "" : of.expires.slice(0, 10));
  const [limits, setLimits] = useState<Partial<Record<Limit, string>>>(() =>
    of === "new" ? {} : Object.fromEntries(LIMITS.map(([limit]) => [limit, of[limit] === null || of[limit] === undefined ? "" : String(of[limit])])),
  );
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="key-form" aria-labelledby="key-form-title" onClose={close}>
      <form
        onSubmit={async (event) => {
          event.preventDefault();
          const body: Record<string, unknown> = of === "new" ? { name } : { name: of.name };
          for (const [limit] of LIMITS) {
            const text = limits[limit] ?? "";
            if (text !== "") body[limit] = Number(text);
            else if (of !== "new" && of[limit] !== null && of[limit] !== undefined) body[limit] = null;
          }
          const named = models.split(",").map((each) => each.trim()).filter(Boolean);
          const before = of === "new" ? null : of;
          if (named.join() !== (before?.models ?? []).join()) body["models"] = named.length ? named : null;
          if (group !== (before?.group ?? "")) body["group"] = group || null;
          if (owner.trim() !== (before?.owner ?? "")) body["owner"] = owner.trim() || null;
          if (expires !== (typeof before?.expires === "string" ? before.expires.slice(0, 10) : "")) body["expires"] = expires || null;
          try {
            await save(body);
          } catch (caught) {
            setProblem(message(caught));
          }
        }}
      >
        <h2 id="key-form-title">{of === "new" ? "New key" : `Limits of ${of.name}`}</h2>
        {of === "new" ? (
          <label>
            Name
            <input type="text" required value={name} maxLength={64} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
        ) : null}
        {locksOut ? <LocksOut clients={locksOut} /> : null}
        <div class="limits">
          <label>
            Models
            <input type="text" placeholder="all" value={models} onInput={(event) => setModels(event.currentTarget.value)} />
          </label>
          <label>
            Expires
            <input type="date" value={expires} onInput={(event) => setExpires(event.currentTarget.value)} />
          </label>
          <label>
            Group
            <select value={group} onChange={(event) => setGroup(event.currentTarget.value)}>
              <option value="">none</option>
              {(group && !groups.includes(group) ? [...groups, group] : groups).map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
          <label>
            Owner
            <input type="text" maxLength={200} placeholder="for reports" value={owner} onInput={(event) => setOwner(event.currentTarget.value)} />
          </label>
          {LIMITS.map(([limit, title]) => (
            <label key={limit}>
              {title}
              <input
                type="number"
                min="0"
                step={limit.startsWith("cost") ? "any" : "1"}
                placeholder="no limit"
                value={limits[limit] ?? ""}
                onInput={(event) => setLimits({ ...limits, [limit]: event.currentTarget.value })}
              />
            </label>
          ))}
        </div>
        {locksOut?.length ? (
          <label class="agreed">
            <input type="checkbox" checked={agreed} onChange={(event) => setAgreed(event.currentTarget.checked)} />
            Lock them out until they have a key
          </label>
        ) : null}
        {problem ? <Problem>{problem}</Problem> : null}
        <div class="actions">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={Boolean(locksOut?.length) && !agreed}>
            {of === "new" ? "Create" : "Change"}
          </button>
        </div>
      </form>
    </dialog>
  );
}
