// The same request to another provider, model or dialect, changed before it goes if one likes; it says who pays.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, message, send } from "../api";
import { DIALECTS, titleOf } from "../dialects";
import { useDraft } from "../drafts";
import { target } from "../format";
import { Combobox } from "../parts/combobox";
import { EditorBox } from "../parts/editorbox";
import { Pays } from "../parts/pays";
import { Problem, Waiting, useTitle } from "../parts/small";
import { A, go, param, setQuery, to } from "../route";
import { type Preview, optionsOf, useTargets } from "../targets";
import type { Trace } from "../types";
import type { Translated } from "../playground";
import { MOST_COMPARED } from "./compare";

export function Replay({ id }: { id: string }) {
  useTitle("Replay");
  const [trace, setTrace] = useState<Trace | null>(null);
  const targets = useTargets();
  const [reported, setDry] = useState<(Preview & { of: string }) | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [translation, setTranslation] = useState<{ of: string; text: string } | null>(null);
  useEffect(() => {
    get<Trace>(`/exchanges/${encodeURIComponent(id)}`)
      .then((found) => {
        setTrace(found);
      })
      .catch((caught: unknown) => setProblem(message(caught)));
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
  const [typed, setBody] = useDraft<string>(`replay ${id} ${spoken}`);
  const body = typed ?? null;
  // What the gateway would make of it: where that is not known, it goes without having been seen.
  const unchanged = translated ? (translation?.of === spoken ? translation.text : null) : pretty;
  const changed = unchanged !== null && body !== null && body !== unchanged;
  useEffect(() => {
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
      send<Preview>("POST", "/replay", { ...question(), dry: true }, stop.signal)
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
  if (!trace.request || trace.request.truncated)
    return (
      <section class="prose">
        <h1>Replay</h1>
        <Problem>The body of this exchange was not recorded, or not completely, so it cannot be sent again.</Problem>
        <p><A href={to(["x", id])}>Back to the exchange</A></p>
      </section>
    );
  const others = param("with").split(",").filter(Boolean);
  return (
    <section class="replay">
      <header class="bar">
        <h1>Replay</h1>
        <p class="faint">
          The request of <A href={to(["x", id])}>{trace.row.client || "a client"}, {trace.row.asked}</A>, sent again. You can change it first.
        </p>
      </header>
      <div class="replay-form card">
        <Combobox label="Send it to" list="Models" value={wanted} placeholder="provider/model" options={optionsOf(targets, false)} choose={(each) => setQuery({ to: each }, true)} />
        <label>
          Speaking
          <select value={spoken} onChange={(event) => setQuery({ dialect: event.currentTarget.value === dialect ? "" : event.currentTarget.value }, true)}>
            {[...new Set([dialect, ...DIALECTS])].map((name) => (
              <option key={name} value={name}>
                {titleOf(name)}{name === dialect ? ", as it was" : ""}
              </option>
            ))}
          </select>
        </label>
        <div class="pays" role="status">
          {dry ? (
            <Pays preview={dry} />
          ) : wanted && !problem ? (
            <Waiting what="Estimating the cost" />
          ) : null}
        </div>
        <button
          type="button"
          class="main"
          disabled={busy || !dry || dry.sends === false || Boolean(broken)}
          onClick={async () => {
            setBusy(true);
            setProblem("");
            try {
              const { id: made } = await send<{ id: string }>("POST", "/replay", { ...question(), dry: false });
              setBody(body ?? undefined, false); // it was sent: it would not be lost
              go(to(["compare", id, ...others.filter((each) => each !== id).slice(2 - MOST_COMPARED), made]));
            } catch (caught) {
              setProblem(message(caught));
            } finally {
              setBusy(false);
            }
          }}
        >
          {busy ? "Sending …" : dry || problem || broken ? "Send it and compare" : "Estimating …"}
        </button>
      </div>
      {problem ? <Problem>{problem}</Problem> : null}
      {broken ? <Problem>The changed body is no JSON: {broken}</Problem> : null}
      <section class="card replay-body" aria-label="The body">
        <header>
          <h2>Body <span class="tag">{spoken}</span></h2>
          {changed ? <span class="grade grade-degraded">≈ changed</span> : <span class="faint">{translated ? "translated" : "as it was"}</span>}
          {changed ? <button type="button" class="quiet" onClick={() => setBody(undefined)}>{translated ? "Translated" : "Original"}</button> : null}
        </header>
        {unchanged === null ? (
          <p class="nothing faint">It is translated to {titleOf(spoken)} before it is sent.</p>
        ) : (
          <EditorBox label="The body that is sent" json text={body ?? unchanged} changed={(next) => setBody(next === unchanged ? undefined : next)} />
        )}
      </section>
    </section>
  );
}
