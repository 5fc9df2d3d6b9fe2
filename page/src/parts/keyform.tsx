// A client key's limits as a form, and whom the first key locks out.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { message } from "../api";
import { useDraft } from "../drafts";
import { currencyInUse, moment, whole } from "../format";
import { listOptions, namesOf } from "../options";
import { useTargets } from "../targets";
import { Combobox } from "./combobox";
import { Problem } from "./small";

export type Limit = "requests_per_minute" | "tokens_per_minute" | "concurrent" | "searches_per_day" | "tokens_per_day" | "tokens_per_month" | "cost_per_day" | "cost_per_month";

export interface Key extends Partial<Record<Limit, number | null>> {
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
export interface Keyless {
  client: string;
  requests: number;
  last: number;
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
        Give each a key, or <code>wireglot keys off</code> deletes all keys and opens the gateway again. From the first key on this page wants a sign-in.
      </p>
    </div>
  );
}

/** What is in the fields. */
interface Fields {
  name: string;
  models: string;
  group: string;
  owner: string;
  expires: string;
  limits: Partial<Record<Limit, string>>;
}

function fieldsOf(key: Key | "new"): Fields {
  if (key === "new") return { name: "", models: "", group: "", owner: "", expires: "", limits: {} };
  return {
    name: key.name,
    models: (key.models ?? []).join(", "),
    group: key.group ?? "",
    owner: key.owner ?? "",
    expires: typeof key.expires === "string" ? key.expires.slice(0, 10) : "",
    limits: Object.fromEntries(LIMITS.map(([limit]) => [limit, key[limit] === null || key[limit] === undefined ? "" : String(key[limit])])),
  };
}

interface KeyFormProps {
  of: Key | "new";
  groups: string[];
  /** Of the first key: who is locked out. */
  locksOut: Keyless[] | null;
  close: () => void;
  save: (body: Record<string, unknown>) => Promise<void>;
}

export function KeyForm({ of, groups, locksOut, close, save }: KeyFormProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState("");
  const targets = useTargets();
  const [agreed, setAgreed] = useState(false);
  const [typed, setTyped] = useDraft<Fields>(of === "new" ? "new key" : `key ${of.name}`);
  const { name, models, group, owner, expires, limits } = typed ?? fieldsOf(of);
  const set = (change: Partial<Fields>) => setTyped({ ...(typed ?? fieldsOf(of)), ...change });
  useLayoutEffect(() => dialog.current?.showModal(), []);
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
          const named = namesOf(models);
          const before = of === "new" ? null : of;
          if (named.join() !== (before?.models ?? []).join()) body["models"] = named.length ? named : null;
          if (group !== (before?.group ?? "")) body["group"] = group || null;
          if (owner.trim() !== (before?.owner ?? "")) body["owner"] = owner.trim() || null;
          if (expires !== (typeof before?.expires === "string" ? before.expires.slice(0, 10) : "")) body["expires"] = expires || null;
          try {
            await save(body);
            setTyped(undefined);
          } catch (caught) {
            setProblem(message(caught));
          }
        }}
      >
        <h2 id="key-form-title">{of === "new" ? "New key" : `Limits of ${of.name}`}</h2>
        {of === "new" ? (
          <label>
            Name
            <input type="text" required value={name} maxLength={64} onInput={(event) => set({ name: event.currentTarget.value })} />
          </label>
        ) : null}
        {locksOut ? <LocksOut clients={locksOut} /> : null}
        <div class="limits">
          <Combobox label="Models" list="Models" placeholder="all" value={models} options={listOptions(models, targets.filter((each) => each.on).map((each) => each.id))} choose={(text) => set({ models: text })} />
          <label>
            Expires
            <input type="date" value={expires} onInput={(event) => set({ expires: event.currentTarget.value })} />
          </label>
          <label>
            Group
            <select value={group} onChange={(event) => set({ group: event.currentTarget.value })}>
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
            <input type="text" maxLength={200} placeholder="for reports" value={owner} onInput={(event) => set({ owner: event.currentTarget.value })} />
          </label>
          {LIMITS.map(([limit, title]) => (
            <label key={limit}>
              {title}{limit.startsWith("cost") ? `, ${currencyInUse.value}` : ""}
              <input
                type="number"
                min="0"
                step={limit.startsWith("cost") ? "any" : "1"}
                placeholder="no limit"
                value={limits[limit] ?? ""}
                onInput={(event) => set({ limits: { ...limits, [limit]: event.currentTarget.value } })}
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
          <button
            type="button"
            onClick={() => {
              setTyped(undefined);
              dialog.current?.close();
            }}
          >
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
