// The playground: a document in any dialect, and in all others at once, with what was lost. Nothing is sent to a provider.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { message, send } from "../api";
import { plural } from "../format";
import type { Mark } from "../lazy/editor";
import { EditorBox } from "../parts/editorbox";
import { LossMark } from "../parts/partcard";
import { Choice, Copy, GRADE_SIGN, Problem, Tabs, useTitle } from "../parts/small";
import { flush, go, param, setQuery, to } from "../route";
import type { TracedLoss } from "../types";
import { EXAMPLES } from "./examples";

export const DIALECTS = ["anthropic", "openai-chat", "openai-responses", "gemini"];
export const TITLES: Record<string, string> = {
  anthropic: "Anthropic Messages",
  "openai-chat": "OpenAI Chat",
  "openai-responses": "OpenAI Responses",
  gemini: "Gemini",
  "gemini-interactions": "Gemini Interactions",
  "code-assist": "Gemini Code Assist",
  "gemini-simple": "Gemini, simple",
  ollama: "Ollama",
  "ollama-generate": "Ollama, one prompt",
};

interface Fault {
  message: string;
  path?: string;
  pointer?: string;
  line?: number;
  column?: number;
  offset?: number | null;
}

type PlayLoss = TracedLoss & { reason?: string; line?: number };

/** Where a loss stands in what was typed: of a stream, the event that brought it. */
function placeIn(kind: string, loss: PlayLoss): string {
  if (kind === "stream") return loss.line ? `#${loss.line}` : "";
  return loss.pointer ?? "";
}

export interface Translated {
  problem: Fault | null;
  dialects: Record<string, { text: string; losses: PlayLoss[]; more_losses?: number; error?: Fault; broken?: boolean }>;
}

const rank = (name: string) => (DIALECTS.includes(name) ? DIALECTS.indexOf(name) : 99);

const last = new Map<string, string>();
const kept = new Map<string, { dialect: string; text: string }>();

/** Shows a request that somebody sent, in all dialects. */
export function openInPlayground(dialect: string, text: string): void {
  let pretty = text;
  try {
    pretty = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Its problem is reported there.
  }
  kept.set("request", { dialect, text: pretty });
  go(to(["play"]));
}

function start(kind: string): { dialect: string; text: string } {
  const hash = location.hash.slice(1);
  if (hash) {
    const given = new URLSearchParams(hash);
    const text = given.get("text");
    if (text !== null) return { dialect: param("dialect") || "anthropic", text };
  }
  return kept.get(kind) ?? { dialect: "anthropic", text: EXAMPLES[kind] ?? "" };
}

const SEVERITY: Record<string, Mark["severity"]> = { serious: "error", degraded: "warning", harmless: "info" };

/** What the others could not carry, at its place in the text it stands in. */
function marksOf(result: Translated, kind: string): Mark[] {
  const found = new Map<string, Mark>();
  for (const [name, side] of Object.entries(result.dialects)) {
    if (!DIALECTS.includes(name)) continue;
    for (const loss of side.losses) {
      const pointer = placeIn(kind, loss);
      if (!pointer) continue;
      const message = `${TITLES[name] ?? name}: ${loss.feature} ${loss.action} (${loss.grade})`;
      const severity = SEVERITY[loss.grade] ?? "info";
      const known = found.get(pointer);
      const order = ["error", "warning", "info"];
      if (!known) found.set(pointer, { pointer, severity, message });
      else found.set(pointer, { ...known, message: `${known.message}\n${message}`, severity: order.indexOf(severity) < order.indexOf(known.severity) ? severity : known.severity });
    }
  }
  return [...found.values()];
}

export function Playground() {
  useTitle("Playground");
  const kind = param("kind") || "request";
  const [{ dialect, text }, setSource] = useState(() => start(kind));
  const [result, setResult] = useState<Translated | null>(null);
  const [problem, setProblem] = useState("");
  const [shownPlace, setShownPlace] = useState<{ dialect: string; pointer: string } | null>(null);
  const shownKind = useRef(kind);
  const shown = param("show") || dialect;
  const everything = param("all") === "1" || !DIALECTS.includes(dialect);
  const names = everything ? [...DIALECTS, ...new Set([...Object.keys(result?.dialects ?? {}), dialect].filter((each) => !DIALECTS.includes(each)))].sort((a, b) => rank(a) - rank(b)) : DIALECTS;

  useEffect(() => {
    if (shownKind.current === kind) return;
    shownKind.current = kind;
    setResult(null);
    setSource(kept.get(kind) ?? { dialect: "anthropic", text: EXAMPLES[kind] ?? "" });
  }, [kind]);

  // A place that was shown once is not shown again when one comes back to its column.
  useEffect(() => setShownPlace(null), [dialect, text, kind]);

  useEffect(() => {
    kept.set(kind, { dialect, text });
    const stop = new AbortController();
    const timer = setTimeout(() => {
      if (!text.trim()) {
        setResult({ problem: null, dialects: {} });
        return;
      }
      send<Translated>("POST", "/translate", { dialect, kind, text }, stop.signal)
        .then((found) => {
          setResult(found);
          setProblem("");
          // While the text is broken, the others keep what they had.
          for (const [name, side] of Object.entries(found.dialects)) last.set(`${kind}-${name}`, side.text);
        })
        .catch((caught: unknown) => {
          if (!stop.signal.aborted) setProblem(message(caught));
        });
    }, 150);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [dialect, text, kind]);

  const marks = useMemo(() => (result && !result.problem ? marksOf(result, kind) : []), [result, kind]);

  const format = () => {
    try {
      setSource({ dialect, text: JSON.stringify(JSON.parse(text), null, 2) });
    } catch {
      // Its problem is reported beside it.
    }
  };
  const link = () => {
    flush();
    const url = new URL(location.href);
    url.searchParams.set("dialect", dialect);
    url.hash = new URLSearchParams({ text }).toString();
    return url.toString();
  };

  return (
    <section class="play">
      <header class="bar">
        <h1>Playground</h1>
        <Choice label="What is translated" options={[["request", "Request"], ["answer", "Answer"], ["stream", "Stream"]]} value={kind} choose={(each) => setQuery({ kind: each === "request" ? "" : each })} />
        <p class="faint wide-only">Type in any column, the others follow. Nothing is sent.</p>
        <div class="actions">
          <button type="button" aria-pressed={everything} onClick={() => setQuery({ all: everything ? "" : "1" })}>All dialects</button>
          {kind !== "stream" ? <button type="button" onClick={format}>Format</button> : null}
          <button type="button" onClick={() => setSource({ dialect: "anthropic", text: EXAMPLES[kind] ?? "" })}>Example</button>
          <Copy label="Copy link" text={link} />
        </div>
      </header>
      {problem ? <Problem>{problem}</Problem> : null}
      <div class="play-choice">
        <Tabs label="Dialects" panel="columns" chosen={shown} choose={(each) => setQuery({ show: each }, true)} tabs={names.map((each) => ({ id: each, name: TITLES[each] ?? each }))} />
      </div>
      <div class={`columns of-${names.length}`} id="columns">
        {names.map((name) => {
          const isSource = name === dialect;
          const side = result?.dialects[name];
          const fault = isSource ? result?.problem : side?.error;
          const earlier = !isSource && result?.problem ? last.get(`${kind}-${name}`) : undefined;
          const written = isSource ? text : result?.problem ? (earlier ?? "") : (side?.text ?? "");
          return (
            <section key={name} class={`column${isSource ? " source" : ""}${name === shown ? " shown" : ""}${earlier ? " stale" : ""}`} aria-label={TITLES[name] ?? name}>
              <header>
                <h2>{TITLES[name] ?? name}</h2>
                {isSource ? <span class="tag accent">source</span> : side && !side.error ? (
                  <span class={side.losses.length ? `grade grade-${side.losses[0]?.grade ?? "harmless"}` : "grade grade-kept"}>
                    {side.losses.length ? `${GRADE_SIGN[side.losses[0]?.grade ?? ""] ?? "·"} ${plural(side.losses.length + (side.more_losses ?? 0), "loss", "losses")}` : "✓ nothing lost"}
                  </span>
                ) : null}
                <Copy text={written} />
              </header>
              <EditorBox
                label={`${TITLES[name] ?? name}, ${kind}`}
                json={kind !== "stream"}
                text={written}
                problem={isSource && fault ? fault : null}
                {...(isSource ? { marks, show: shownPlace?.dialect === name ? shownPlace : null } : {})}
                changed={(next) => setSource({ dialect: name, text: next })}
              />
              <footer tabIndex={0} role="group" aria-label={`What ${TITLES[name] ?? name} could not carry`}>
                {fault ? (
                  <Problem>
                    {fault.message}
                    {fault.line ? ` (line ${fault.line}, column ${fault.column ?? 1})` : fault.path && fault.path !== "$" ? ` (${fault.path})` : ""}
                  </Problem>
                ) : null}
                {earlier ? <p class="faint">Of the last valid text.</p> : null}
                {side?.broken ? <Problem>The stream breaks off.</Problem> : null}
                {isSource && !fault && result ? <p class="grade grade-kept">✓ understood</p> : null}
                {(side?.losses ?? []).map((loss, index) => (
                  <LossMark
                    key={index}
                    show={
                      placeIn(kind, loss)
                        ? () => {
                            setQuery({ show: dialect }, true);
                            setShownPlace({ dialect, pointer: placeIn(kind, loss) });
                          }
                        : undefined
                    }
                    loss={{ ...loss, detail: [loss.path, loss.reason ?? loss.detail].filter(Boolean).join(" · ") }}
                  />
                ))}
                {side?.more_losses ? <p class="faint">and {side.more_losses} more</p> : null}
              </footer>
            </section>
          );
        })}
      </div>
    </section>
  );
}
