// Providers, and what can be done about the key of each: kept, tried, removed.
import { useState } from "preact/hooks";
import { message, send } from "../api";
import { plural } from "../format";
import { type ConfigFile, Difference, type Wanted } from "./configuration";
import { Problem, Sure } from "./small";

export interface Provider {
  name: string;
  title?: string;
  on?: boolean;
  why?: string;
  variables?: string[];
  dialects?: string[];
  host?: string;
  models?: number;
  /** Where its key comes from. */
  key?: "environment" | "file" | "keyring" | "configuration" | "login" | "unneeded" | "missing";
  /** The variable of a key that is kept for it. */
  kept?: string;
  keeps_as?: string;
  /** How it is signed in to without a key. */
  instead?: string;
}

interface Tried {
  verdict?: "good" | "refused" | "unknown";
  sentence: string;
  models?: number;
  kept?: boolean;
  applied?: boolean;
  /** Providers that are on no longer. */
  off?: string[];
}

interface ProvidersProps {
  all: Provider[];
  /** Some of them, to be looked at. */
  short?: boolean;
  /** The file that turns them on; null: nothing can be changed. */
  file?: ConfigFile | null;
  changed?: () => void;
}

export function Providers({ all, short = false, file = null, changed }: ProvidersProps) {
  const on = all.filter((each) => each.on);
  const off = all.filter((each) => !each.on);
  const shown = short ? [...on, ...off].slice(0, 6) : [...on, ...off];
  return (
    <ul class="providers">
      {shown.map((each) => (
        <li key={each.name}>
          <span class={each.on ? "grade grade-kept" : "grade grade-harmless"}>{each.on ? "✓ on" : "– off"}</span>
          <strong>{each.title ?? each.name}</strong>
          <span class="why">
            {each.why}
            {!short && each.dialects?.length ? <span class="faint"> · {each.dialects.join(", ")}</span> : null}
          </span>
          {!short && changed && each.key ? <ProviderKey of={each} only={on.length === 1 ? on[0]?.name : undefined} file={file} changed={changed} /> : null}
        </li>
      ))}
      {short && all.length > shown.length ? <li class="faint">and {all.length - shown.length} more</li> : null}
    </ul>
  );
}

/** The demo is on by itself while it is the only one: it stays. */
export function turningOn(name: string, only: string | undefined): Wanted {
  return { changes: [...(only === "demo" ? [only] : []), name].map((each) => ({ path: ["providers", each], value: {} })) };
}

/** What can be done about one that is on, or could be. */
function ProviderKey({ of, only, file, changed }: { of: Provider; only: string | undefined; file: ConfigFile | null; changed: () => void }) {
  const [turnsOn, setTurnsOn] = useState(false);
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Tried | null>(null);
  const [problem, setProblem] = useState("");
  const path = `/providers/${encodeURIComponent(of.name)}`;
  const title = of.title ?? of.name;
  const work = async (ask: () => Promise<Tried>) => {
    setBusy(true);
    setProblem("");
    setOutcome(null);
    try {
      const found = await ask();
      setOutcome(found);
      return found;
    } catch (caught) {
      setProblem(message(caught));
      return null;
    } finally {
      setBusy(false);
    }
  };
  const takesKey = Boolean(of.keeps_as) && of.key !== "configuration" && of.key !== "unneeded";
  return (
    <div class="provider-key">
      <div class="actions">
        {takesKey ? (
          <button type="button" class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {of.kept ? "Replace key" : "Add key"}
            <span class="unseen"> of {title}</span>
          </button>
        ) : null}
        {!of.on && of.key !== "missing" && file && !file.why_fixed ? (
          <button type="button" class="quiet" onClick={() => setTurnsOn(true)}>
            Turn on
            <span class="unseen"> {title}</span>
          </button>
        ) : null}
        {of.on && of.host ? (
          <button type="button" class="quiet" disabled={busy} onClick={() => work(() => send<Tried>("POST", `${path}/try`, {}))}>
            {busy && !open ? "Trying …" : "Try"}
            <span class="unseen"> {title}</span>
          </button>
        ) : null}
        {of.kept ? (
          <Sure
            label="Remove key"
            what={title}
            ask={`The key of ${title} is forgotten. Models of it stop answering, unless the environment has another.`}
            act={async () => {
              if (await work(async () => ({ ...(await send<Tried>("DELETE", `${path}/key`)), sentence: "The key is forgotten." }))) changed();
            }}
          />
        ) : null}
      </div>
      {open ? (
        <KeyField
          of={of}
          busy={busy}
          untried={outcome?.verdict === "unknown"}
          keep={async (key, unchecked) => {
            const found = await work(() => send<Tried>("PUT", `${path}/key`, { key, unchecked }));
            if (!found?.kept) return;
            setOpen(false);
            changed();
          }}
        />
      ) : null}
      {outcome ? (
        <p role="status" class={outcome.verdict === "good" || outcome.kept ? "grade grade-kept" : "note"}>
          {outcome.sentence}
          {outcome.verdict === "good" && outcome.models ? `, and lists ${plural(outcome.models, "model")}` : ""}
          {outcome.kept ? ". Where models go, below, sends requests to it." : ""}
          {outcome.off?.length ? ` ${outcome.off.join(", ")} is on no longer: it was, as long as there was no other provider.` : ""}
          {outcome.kept && !outcome.applied ? " It takes effect with the next start." : ""}
        </p>
      ) : null}
      {problem ? <Problem>{problem}</Problem> : null}
      {turnsOn && file ? <Difference file={file} wanted={turningOn(of.name, only)} close={() => setTurnsOn(false)} written={changed} reload={changed} /> : null}
    </div>
  );
}

function KeyField({ of, busy, untried, keep }: { of: Provider; busy: boolean; untried: boolean; keep: (key: string, unchecked: boolean) => Promise<void> }) {
  const [key, setKey] = useState("");
  return (
    <form
      class="ask"
      onSubmit={(event) => {
        event.preventDefault();
        void keep(key, false);
      }}
    >
      {of.instead ? <p class="faint">Without a key: {of.instead}.</p> : null}
      {of.key === "environment" ? <p class="note">The environment has a key of it, which is used instead of one that is kept.</p> : null}
      <label>
        <span class="unseen">Key of {of.title ?? of.name}</span>
        <input type="password" autocomplete="off" spellcheck={false} required placeholder="its key, which is never shown again" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
      </label>
      <button type="submit" class="main" disabled={busy || !key.trim()}>
        {busy ? "Trying …" : "Try and keep"}
      </button>
      {untried ? (
        <button type="button" disabled={busy} onClick={() => void keep(key, true)}>
          Keep it untried
        </button>
      ) : null}
    </form>
  );
}
