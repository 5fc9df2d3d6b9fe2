// A request for providers and models: what the gateway would really send to each, and their answers next to each other.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Answer, answer, began } from "../answering";
import { API, get, message, send } from "../api";
import { count, duration, money, plural, target, whole } from "../format";
import { onRow } from "../live";
import { Combobox } from "../parts/combobox";
import { LossMark } from "../parts/partcard";
import { Pays } from "../parts/pays";
import { Copy, GRADE_SIGN, Losses, Problem, Waiting, save } from "../parts/small";
import { A, param, setQuery, to } from "../route";
import { nameOf, testOf } from "../saving";
import { type Preview, optionsOf, useTargets } from "../targets";
import type { Row, Trace } from "../types";
import { MOST_COMPARED } from "./compare";
import { titleOf } from "../dialects";
import type { Source } from "../playground";

interface Previewed {
  of: string;
  preview?: Preview;
  problem?: string;
}

/** What names model and stream in its path is streamed, unless its address said otherwise; Bedrock's streams are binary. */
const STREAMED = ["gemini", "code-assist", "anthropic-vertex"];

function question(source: Source, model: string) {
  const stream = source.dialect === "anthropic-bedrock" ? false : (source.stream ?? (STREAMED.includes(source.dialect) || undefined));
  return { to: model, dialect: source.dialect, body: source.text, ...(stream === undefined ? {} : { stream }) };
}

export function Sending({ source, ready, show }: { source: Source; ready: boolean; show: (pointer: string) => void }) {
  const targets = useTargets();
  const chosen = [...new Set(param("to").split(",").filter(Boolean))].slice(0, MOST_COMPARED);
  const set = (next: string[]) => setQuery({ to: next.join(",") }, true);
  const [previews, setPreviews] = useState<Record<string, Previewed>>({});
  const [answers, setAnswers] = useState<Answer[]>([]);
  const running = useRef<AbortController | null>(null);
  const section = useRef<HTMLElement>(null);
  const asked = JSON.stringify(question(source, ""));

  useEffect(() => {
    if (!ready || !chosen.length) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      for (const model of chosen)
        send<Preview>("POST", "/replay", { ...question(source, model), dry: true, show: true }, stop.signal)
          .then((preview) => setPreviews((before) => ({ ...before, [model]: { of: asked, preview } })))
          .catch((caught: unknown) => {
            if (!stop.signal.aborted) setPreviews((before) => ({ ...before, [model]: { of: asked, problem: message(caught) } }));
          });
    }, 300);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [asked, ready, chosen.join(",")]);
  // Who leaves the page waits for no answer.
  useEffect(() => () => running.current?.abort(), []);

  const sendable = chosen.filter((model) => previews[model]?.of === asked && previews[model]?.preview?.sends);
  const costs = sendable.map((model) => previews[model]?.preview?.estimate?.cost);
  const known = costs.filter((cost): cost is number => typeof cost === "number");
  const busy = answers.some((each) => each.state === "running");
  // Once they are drawn: the answers are below what is sent, and may be below the screen.
  const sent = answers.length > 0 && answers.every((each) => each.state === "running");
  useEffect(() => {
    if (sent) section.current?.scrollIntoView({ block: "start" });
  }, [sent]);
  const start = () => {
    const stop = (running.current = new AbortController());
    setAnswers(sendable.map(began));
    sendable.forEach((model, place) => {
      const report = (now: Answer) => setAnswers((before) => (running.current === stop ? before.map((each, index) => (index === place ? now : each)) : before));
      void answer({ ...question(source, model), answer: true }, began(model), report, stop.signal);
    });
  };
  return (
    <section ref={section} class="sending" aria-label="Send it">
      <div class="sending-bar card">
        <Combobox label="As the gateway would send it to" list="Models" value="" keeps={false} placeholder="add a provider/model" options={optionsOf(targets, true)} choose={(each) => set([...chosen, each])} />
        <div class="pays" role="status">
          {sendable.length ? (
            <p>
              {known.length === costs.length ? <>At most <strong>{money(known.reduce((sum, cost) => sum + cost, 0))}</strong> for {plural(sendable.length, "request")}.</> : "The price of some is not known."}{" "}
              <span class="faint">Whose key pays is below each.</span>
            </p>
          ) : (
            <p class="faint">{chosen.length ? (ready ? "" : "The request cannot be read yet.") : "Choose one or more: configured ones can be sent to, those of the catalog are translated for."}</p>
          )}
        </div>
        {busy ? (
          <button type="button" onClick={() => running.current?.abort()}>Stop</button>
        ) : (
          <button type="button" class="main" disabled={!sendable.length || !ready} onClick={start}>
            {sendable.length > 1 ? `Send to ${sendable.length} models` : "Send"}
          </button>
        )}
      </div>
      {answers.length ? <Answers answers={answers} /> : null}
      {chosen.length ? (
        <div class="sent-columns">
          {chosen.map((model) => <WouldSend key={model} model={model} found={ready ? previews[model] : undefined} stale={previews[model]?.of !== asked} show={show} remove={() => set(chosen.filter((each) => each !== model))} />)}
        </div>
      ) : null}
    </section>
  );
}

function WouldSend({ model, found, stale, show, remove }: { model: string; found: Previewed | undefined; stale: boolean; show: (pointer: string) => void; remove: () => void }) {
  const preview = found?.preview;
  const attempt = preview?.would?.attempts?.[0];
  const sent = attempt?.request;
  const losses = attempt?.losses ?? [];
  const worst = losses[0]?.grade ?? "";
  const body = pretty(sent?.body ?? "");
  return (
    <section class={`column would${stale && found ? " stale" : ""}`} aria-label={model}>
      <header>
        <h2>{model}</h2>
        {attempt ? <span class={`grade grade-${losses.length ? worst : "kept"}`}>{losses.length ? `${GRADE_SIGN[worst] ?? "·"} ${plural(losses.length, "loss", "losses")}` : "✓ nothing lost"}</span> : null}
        <button type="button" class="quiet" aria-label={`Remove ${model}`} onClick={remove}>×</button>
      </header>
      <div class="would-body">
        {found?.problem ? <Problem>{found.problem}</Problem> : !preview ? <Waiting what="Translating" /> : null}
        {preview ? (
          <>
            <p>
              <span class="tag">{titleOf(preview.dialect)}</span> {attempt?.passthrough ? <span class="tag">forwarded unchanged</span> : null}
              <span class="faint"> {[preview.context ? `${count(preview.context)} context` : "", preview.output ? `${count(preview.output)} output` : ""].filter(Boolean).join(", ")}</span>
            </p>
            {preview.why ? <Problem>{preview.why}</Problem> : null}
            {sent ? (
              <>
                <p class="mono would-url">{sent.method} {sent.url}</p>
                <details>
                  <summary>{plural(sent.headers?.length ?? 0, "header")}</summary>
                  <dl class="pairs">{(sent.headers ?? []).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
                </details>
                <pre class="raw" tabIndex={0} aria-label={`Body for ${model}`}>{body}</pre>
              </>
            ) : null}
            {losses.map((loss, index) => <LossMark key={index} loss={loss} show={loss.pointer ? () => show(loss.pointer ?? "") : undefined} />)}
            <Pays preview={preview} />
            {preview.would && attempt ? (
              <p class="actions">
                <Copy text={body} label="Copy body" />
                <Saving name={`${nameOf(preview.would)}.wgtrace.json`} trace={async () => preview.would as Trace} />
              </p>
            ) : null}
          </>
        ) : null}
      </div>
    </section>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** As a trace, or as a test that replays it. */
function Saving({ name, trace }: { name: string; trace: () => Promise<Trace> }) {
  const [problem, setProblem] = useState("");
  const saved = (write: (trace: Trace) => void) => () => {
    setProblem("");
    trace().then(write).catch((caught: unknown) => setProblem(message(caught)));
  };
  return (
    <>
      <button type="button" class="quiet" onClick={saved((found) => save(name, "application/json", JSON.stringify(found, null, 1) + "\n"))}>Save trace</button>
      <button type="button" class="quiet" onClick={saved((found) => save(`test_${nameOf(found)}.py`, "text/x-python", testOf(found)))}>Save test</button>
      {problem ? <Problem>{problem}</Problem> : null}
    </>
  );
}

function Answers({ answers }: { answers: Answer[] }) {
  const [rows, setRows] = useState<Record<string, Row>>({});
  const ids = answers.map((each) => each.id).filter(Boolean);
  useEffect(() => onRow((row) => ids.includes(row.id) && setRows((before) => ({ ...before, [row.id]: row }))), [ids.join(" ")]);
  const over = answers.filter((each) => each.id && each.state !== "running").map((each) => each.id);
  // The figures are there a moment after the last byte; the live list may not be connected.
  useEffect(() => {
    const stop = new AbortController();
    for (const id of over)
      get<Trace>(`/exchanges/${encodeURIComponent(id)}`, {}, stop.signal)
        .then(({ row }) => setRows((before) => ((before[id]?.state ?? "running") === "running" ? { ...before, [id]: row } : before)))
        .catch(() => undefined);
    return () => stop.abort();
  }, [over.join(" ")]);
  return (
    <section aria-label="Answers">
      <header class="bar">
        <h2>Answers</h2>
        {over.length > 1 ? <A class="button" href={to(["compare", ...over])}>Compare {over.length} answers</A> : null}
      </header>
      <div class="sent-columns">
        {answers.map((each) => <OneAnswer key={each.to} answer={each} row={rows[each.id]} />)}
      </div>
    </section>
  );
}

function OneAnswer({ answer, row }: { answer: Answer; row: Row | undefined }) {
  const { state, status, parts, error, id } = answer;
  return (
    <section class="column answered" aria-label={`Answer of ${answer.to}`}>
      <header>
        <h2>{row ? target(row) || answer.to : answer.to}</h2>
        <span class={`status ${state === "failed" ? "status-bad" : state === "running" ? "status-running" : state === "left" ? "status-left" : "status-good"}`} role="status">
          {state === "running" ? (parts.length ? "streaming" : "waiting") : state === "left" ? "↯ stopped" : state === "failed" ? `✕ ${status || "failed"}` : `✓ ${status}`}
        </span>
      </header>
      <div class="would-body" tabIndex={0} role="group" aria-label={`What ${answer.to} says`}>
        {error ? <Problem>{error}</Problem> : null}
        {parts.map((part, index) => (
          <div key={index} class={`said said-${part.kind}`}>
            {part.kind !== "text" ? <p class="faint">{part.kind}{part.name ? ` ${part.name}` : ""}</p> : null}
            <div class="words">{part.text}</div>
          </div>
        ))}
        {state === "done" && !parts.length ? <p class="faint">The answer is empty.</p> : null}
      </div>
      <footer>
        <p class="faint">
          {[row?.first_ms ? `first byte ${duration(row.first_ms)}` : "", duration(row?.total_ms ?? (answer.ended ? answer.ended - answer.began : null)), row?.tokens ? `${whole(row.tokens.input ?? 0)} in, ${whole(row.tokens.output ?? 0)} out` : "", money(row?.cost)].filter(Boolean).join(" · ")}{" "}
          {row && state !== "running" ? <Losses losses={row.losses ?? {}} /> : null}
        </p>
        {id && state !== "running" ? (
          <p class="actions">
            <A class="button" href={to(["x", id])}>Open</A>
            {row?.recorded ? <Saving name={`${id}.wgtrace.json`} trace={() => exported(id)} /> : row ? <span class="faint">Its bodies are not recorded: what was sent can be saved above.</span> : null}
          </p>
        ) : null}
      </footer>
    </section>
  );
}

/** The file that `wireglot trace` reads. */
async function exported(id: string): Promise<Trace> {
  const response = await fetch(`${API}/exchanges/${encodeURIComponent(id)}/export`, { credentials: "same-origin", cache: "no-store" });
  if (!response.ok) throw new Error("The recording is not there any more.");
  return (await response.json()) as Trace;
}
