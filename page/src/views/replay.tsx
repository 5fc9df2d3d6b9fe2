// The same request to another provider, model or dialect, changed before it goes if one likes; it says who pays.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, message, send } from "../api";
import { count, money, target } from "../format";
import { EditorBox } from "../parts/editorbox";
import { Problem, Waiting, useTitle } from "../parts/small";
import { A, go, param, setQuery, to } from "../route";
import type { Trace } from "../types";
import { DIALECTS, TITLES } from "./play";
import type { Translated } from "./play";
import type { SetupPage } from "./setup";

interface Dry {
  model?: string;
  provider?: string;
  pays?: string;
  key?: string;
  dialect?: string;
  estimate?: { input?: number | null; output_most?: number | null; cost?: number | null } | null;
}

export function Replay({ id }: { id: string }) {
  useTitle("Replay");
  const [trace, setTrace] = useState<Trace | null>(null);
  const [setup, setSetup] = useState<SetupPage | null>(null);
  const [body, setBody] = useState<string | null>(null);
  const [reported, setDry] = useState<(Dry & { of: string }) | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState<string | null>(null);
  const [translation, setTranslation] = useState<{ of: string; text: string } | null>(null);
  useEffect(() => {
    get<Trace>(`/exchanges/${encodeURIComponent(id)}`)
      .then((found) => {
        setTrace(found);
      })
      .catch((caught: unknown) => setProblem(message(caught)));
    get<SetupPage>("/setup").then(setSetup).catch(() => undefined);
  }, [id]);

  // As it was, until another is named: nothing writes into the field behind who types in it.
  const wanted = param("to") || (trace ? target(trace.row) || trace.row.asked || "" : "");
  const original = trace?.request?.body ?? "";
  const pretty = useMemo(() => {
    try {
      return JSON.stringify(JSON.parse(original), null, 2);
    } catch {
      return original;
    }
  }, [original]);
  const dialect = trace?.row.dialect ?? "";
  const spoken = param("dialect") || dialect;
  const translated = spoken !== dialect;
  // What the gateway would make of it: where that is not known, it goes without having been seen.
  const unchanged = translated ? (translation?.of === spoken ? translation.text : null) : pretty;
  const changed = unchanged !== null && body !== null && body !== unchanged;
  useEffect(() => {
    setBody(null);
    if (!translated || !original) return;
    const stop = new AbortController();
    send<Translated>("POST", "/translate", { dialect, kind: "request", text: original }, stop.signal)
      .then((found) => {
        const side = found.dialects[spoken];
        if (side && !side.error) setTranslation({ of: spoken, text: side.text });
      })
      .catch(() => undefined);
    return () => stop.abort();
  }, [translated, original, spoken]);
  let broken = "";
  if (changed) {
    try {
      JSON.parse(body ?? "");
    } catch (caught) {
      broken = message(caught);
    }
  }
  // What was reported of another target says nothing of this one.
  const dry = reported?.of === `${wanted} ${spoken}` ? reported : null;
  const question = () => ({ id, to: wanted, ...(translated ? { dialect: spoken } : {}), ...(changed ? { body: JSON.parse(body ?? "") as unknown } : {}) });

  useEffect(() => {
    if (!trace || !wanted || broken) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      send<Dry>("POST", "/replay", { ...question(), dry: true }, stop.signal)
        .then((found) => {
          setDry({ ...found, of: `${wanted} ${spoken}` });
          setProblem("");
        })
        .catch((caught: unknown) => {
          if (stop.signal.aborted) return;
          setDry(null);
          setProblem(message(caught));
        });
    }, 300);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [trace, wanted, body, spoken]);

  if (!trace) return problem ? <section class="prose"><Problem>{problem}</Problem></section> : <Waiting />;
  if (!trace.request)
    return (
      <section class="prose">
        <h1>Replay</h1>
        <Problem>The body of this exchange was not recorded, so it cannot be sent again.</Problem>
        <p><A href={to(["x", id])}>Back to the exchange</A></p>
      </section>
    );
  const names = [...new Set([...(setup?.models ?? []), target(trace.row)].filter(Boolean))];
  const estimate = dry?.estimate;
  return (
    <section class="replay">
      <header class="bar">
        <h1>Replay</h1>
        <p class="faint">
          The request of <A href={to(["x", id])}>{trace.row.client || "a client"}, {trace.row.asked}</A>, sent again. You can change it first.
        </p>
      </header>
      <div class="replay-form card">
        <label>
          Send it to
          <input type="text" list="models" value={typed ?? wanted} placeholder="provider/model" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} onChange={(event) => {
            setTyped(null);
            setQuery({ to: event.currentTarget.value }, true);
          }} />
          <datalist id="models">
            {names.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </label>
        <label>
          Speaking
          <select value={spoken} onChange={(event) => setQuery({ dialect: event.currentTarget.value === dialect ? "" : event.currentTarget.value }, true)}>
            {[...new Set([dialect, ...DIALECTS])].map((name) => (
              <option key={name} value={name}>
                {TITLES[name] ?? name}{name === dialect ? ", as it was" : ""}
              </option>
            ))}
          </select>
        </label>
        <div class="pays" role="status">
          {dry ? (
            <>
              <p>
                Goes to <strong>{[dry.provider, dry.model].filter(Boolean).join("/")}</strong>. {dry.pays ? <>It is paid with the key {dry.pays === "config" ? "in the configuration" : <>of <strong>{dry.pays}</strong></>}</> : "No provider key needed"}{dry.key ? <>, and is counted for <strong>{dry.key}</strong></> : ""}.
              </p>
              <p class="faint">
                {estimate?.input ? `About ${count(estimate.input)} tokens in` : "How many tokens go in is not known"}
                {estimate?.output_most ? `, at most ${count(estimate.output_most)} out` : ""}
                {estimate?.cost !== null && estimate?.cost !== undefined ? <>: it may cost up to <strong>{money(estimate.cost)}</strong>.</> : "; its price is not known."}
              </p>
            </>
          ) : wanted && !problem ? (
            <Waiting what="Estimating the cost" />
          ) : null}
        </div>
        <button
          type="button"
          class="main"
          disabled={busy || !dry || Boolean(broken) || (typed !== null && typed !== wanted)}
          onClick={async () => {
            setBusy(true);
            setProblem("");
            try {
              const { id: made } = await send<{ id: string }>("POST", "/replay", { ...question(), dry: false });
              go(to(["compare", id, made]));
            } catch (caught) {
              setProblem(message(caught));
            } finally {
              setBusy(false);
            }
          }}
        >
          {busy ? "Sending …" : "Send it and compare"}
        </button>
      </div>
      {problem ? <Problem>{problem}</Problem> : null}
      {broken ? <Problem>The changed body is no JSON: {broken}</Problem> : null}
      <section class="card replay-body" aria-label="The body">
        <header>
          <h2>Body <span class="tag">{spoken}</span></h2>
          {changed ? <span class="grade grade-degraded">≈ changed</span> : <span class="faint">{translated ? "translated" : "as it was"}</span>}
          {changed ? <button type="button" class="quiet" onClick={() => setBody(unchanged)}>{translated ? "Translated" : "Original"}</button> : null}
        </header>
        {unchanged === null ? (
          <p class="nothing faint">It is translated to {TITLES[spoken] ?? spoken} before it is sent.</p>
        ) : (
          <EditorBox label="The body that is sent" json text={body ?? unchanged} changed={setBody} />
        )}
      </section>
    </section>
  );
}
