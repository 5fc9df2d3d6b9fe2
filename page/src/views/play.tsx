// The playground: a document in any dialect, in others at once, and as the gateway would send it to a provider.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { message, send } from "../api";
import { isCurl } from "../curl";
import { draft, setDraft, useDraft } from "../drafts";
import { DIALECTS, TITLES, titleOf } from "../dialects";
import { plural } from "../format";
import { EditorBox } from "../parts/editorbox";
import { Menu } from "../parts/menu";
import { LossMark } from "../parts/partcard";
import { Choice, Copy, GRADE_SIGN, Problem, Tabs, scrollTo, useTitle } from "../parts/small";
import { type Source, type Translated, type Translation, describe, marksOf, otherwise, placeIn, read } from "../playground";
import type { Kind, Recognised } from "../recognise";
import { flush, go, param, setQuery, to } from "../route";
import { Aligned } from "./aligned";
import { EXAMPLES } from "./examples";
import { Sending } from "./sending";

const FIRST = DIALECTS.slice(0, 4);
const last = new Map<string, string>();
const nameOf = (kind: string) => `play ${kind}`;
const keep = (kind: string, source: Source) => setDraft(nameOf(kind), source, source.typed === true);
const REPLACED = "play replaced";
/** The text of the last link that was opened: coming back to its address shows what has become of it. */
let opened = "";

/** Shows a recorded request in all dialects. What was typed before can be taken back. */
export function openInPlayground(dialect: string, text: string): void {
  const before = draft<Source>(nameOf("request"));
  if (before?.typed) setDraft(REPLACED, before);
  let pretty = text;
  try {
    pretty = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Its problem is reported there.
  }
  keep("request", { dialect, text: pretty });
  go(to(["play"]));
}

function start(kind: string): Source {
  const hash = location.hash.slice(1);
  if (hash && hash !== opened) {
    opened = hash;
    const given = new URLSearchParams(hash);
    const text = given.get("text");
    if (text !== null) return { dialect: param("dialect") || "anthropic", text };
  }
  return draft<Source>(nameOf(kind)) ?? { dialect: "anthropic", text: EXAMPLES[kind] ?? "" };
}

/** Which columns there are: those of the address, and always that of the text. */
function useColumns(dialect: string): [string[], (names: string[]) => void] {
  const wanted = param("cols").split(",").filter((name) => name in TITLES);
  const chosen = wanted.length ? wanted : FIRST;
  const all = Object.keys(TITLES);
  const names = [...new Set([...chosen, dialect])].sort((one, other) => all.indexOf(one) - all.indexOf(other));
  return [names, (next) => setQuery({ cols: next.join(",") === FIRST.join(",") ? "" : next.join(",") }, true)];
}

function ColumnChoice({ dialect, names, choose }: { dialect: string; names: string[]; choose: (names: string[]) => void }) {
  return (
    <Menu label={<>Columns <span class="faint">{names.length}</span></>} name="Dialects that are shown">
      {() =>
        Object.keys(TITLES).map((name) => (
          <label key={name} class="check">
            <input type="checkbox" checked={names.includes(name)} disabled={name === dialect} onChange={(event) => choose(event.currentTarget.checked ? [...names, name] : names.filter((each) => each !== name))} />
            {titleOf(name)}
          </label>
        ))
      }
    </Menu>
  );
}

export function Playground() {
  useTitle("Playground");
  const kind = (param("kind") || "request") as Kind;
  const [source, setSource] = useState(() => start(kind));
  const { dialect, text, model = "" } = source;
  const [result, setResult] = useState<Translated | null>(null);
  const [problem, setProblem] = useState("");
  const [replaced, setReplaced] = useDraft<Source>(REPLACED);
  const [note, setNote] = useState<{ found: Recognised; before: Source; kind: Kind } | null>(null);
  const [shownPlace, setShownPlace] = useState<{ dialect: string; pointer: string } | null>(null);
  const shownKind = useRef(kind);
  const [names, chooseColumns] = useColumns(dialect);
  const aligned = kind === "stream" && param("view") === "events";
  const shown = names.includes(param("show")) ? param("show") : dialect;
  const only = names.filter((name) => name !== dialect).join(",");
  const reading = useMemo(() => read(text), [text]);
  const command = isCurl(text);

  useEffect(() => {
    if (shownKind.current === kind) return;
    shownKind.current = kind;
    setResult(null);
    setSource(draft<Source>(nameOf(kind)) ?? { dialect: "anthropic", text: EXAMPLES[kind] ?? "" });
  }, [kind]);

  // A place that was shown once is not shown again when one comes back to its column.
  useEffect(() => setShownPlace(null), [dialect, text, kind]);

  useEffect(() => {
    keep(kind, source);
    const stop = new AbortController();
    const timer = setTimeout(() => {
      if (!text.trim() || command) {
        setResult({ problem: null, dialects: {} });
        return;
      }
      send<Translated>("POST", "/translate", { dialect, kind, text, model, only: only ? only.split(",") : [], aligned }, stop.signal)
        .then((found) => {
          if (found.events) for (const side of Object.values(found.dialects)) side.text = (side.events ?? []).join("");
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
  }, [source, kind, only, aligned]);

  useEffect(() => {
    // After the editor has brought into sight what was pasted, which may be in another column.
    const timer = setTimeout(() => scrollTo(document.querySelector<HTMLElement>(".column.source")), 100);
    return () => clearTimeout(timer);
  }, [dialect, names.length]);

  const marks = useMemo(() => (result ? marksOf(result, kind) : []), [result, kind]);

  const write = (next: Source, nextKind: Kind) => {
    setSource(next);
    if (nextKind === kind) return;
    keep(nextKind, next);
    setQuery({ kind: nextKind === "request" ? "" : nextKind });
  };
  /** Reads the text as what it was recognised as. */
  const adopt = (found: Recognised, before: Source) => {
    setNote({ found, before, kind });
    write({ dialect: found.dialect, text: found.text, typed: true, ...(found.model ? { model: found.model } : {}), ...(found.stream !== undefined ? { stream: found.stream } : {}) }, found.kind);
  };
  const typed = (name: string, next: string, pasted: boolean) => {
    const written = { ...(name === dialect ? source : {}), dialect: name, text: next, typed: true };
    setNote(null);
    const { found } = pasted ? read(next) : { found: null };
    const other = otherwise(found, { dialect: name, kind, text: next });
    if (other && (!other.unsure || other.text !== next)) adopt(other, written);
    else setSource(written);
  };
  const format = () => {
    try {
      setSource({ ...source, text: JSON.stringify(JSON.parse(text), null, 2) });
    } catch {
      // Its problem is shown next to it.
    }
  };
  const link = () => {
    flush();
    const url = new URL(location.href);
    url.searchParams.set("dialect", dialect);
    url.hash = new URLSearchParams({ text }).toString();
    return url.toString();
  };
  const fault = command ? reading.fault : (result?.problem ?? null);
  const hint = command || result?.problem ? otherwise(reading.found, { dialect, kind, text }) : null;

  return (
    <section class="play">
      <header class="bar">
        <h1>Playground</h1>
        <Choice label="What is translated" options={[["request", "Request"], ["answer", "Answer"], ["stream", "Stream"]]} value={kind} choose={(each) => setQuery({ kind: each === "request" ? "" : each })} />
        <span class="written-in">
          <label for="written-in">Written in</label>
          <select id="written-in" value={dialect} onChange={(event) => setSource({ ...source, dialect: event.currentTarget.value })}>
            {Object.keys(TITLES).map((name) => <option key={name} value={name}>{titleOf(name)}</option>)}
          </select>
        </span>
        <div class="actions">
          {kind === "stream" ? <Choice label="How streams are shown" options={[["", "Text"], ["events", "Events"]]} value={aligned ? "events" : ""} choose={(each) => setQuery({ view: each }, true)} /> : null}
          <ColumnChoice dialect={dialect} names={names} choose={chooseColumns} />
          {kind !== "stream" ? <button type="button" onClick={format}>Format</button> : null}
          <button type="button" onClick={() => { setNote(null); setSource({ dialect: "anthropic", text: EXAMPLES[kind] ?? "" }); }}>Example</button>
          <Copy label="Copy link" text={link} />
        </div>
      </header>
      {problem ? <Problem>{problem}</Problem> : null}
      <p class="recognised" role="status">
        {note ? (
          <>
            Recognised: <strong>{describe(note.found)}</strong>, from {note.found.from}{note.found.model ? `, for ${note.found.model}` : ""}.{" "}
            <button type="button" class="quiet" onClick={() => { write(note.before, note.kind); setNote(null); }}>Undo</button>
          </>
        ) : replaced && kind === "request" ? (
          <>
            The recorded request is shown in place of what you typed.{" "}
            <button type="button" class="quiet" onClick={() => { setSource(replaced); setReplaced(undefined); }}>Take it back</button>{" "}
            <button type="button" class="quiet" onClick={() => setReplaced(undefined)}>Drop it</button>
          </>
        ) : hint ? (
          <>
            This looks like <strong>{describe(hint)}</strong> ({hint.from}).{" "}
            <button type="button" class="quiet" onClick={() => adopt(hint, source)}>Read it so</button>
          </>
        ) : (
          <span class="faint">Type in any column, or paste JSON, events, JSON lines or a curl command: its dialect is recognised.</span>
        )}
      </p>
      {!aligned ? (
        <div class="play-choice">
          <Tabs label="Dialects" panel="columns" chosen={shown} choose={(each) => setQuery({ show: each }, true)} tabs={names.map((each) => ({ id: each, name: titleOf(each) }))} />
        </div>
      ) : null}
      {aligned ? (
        <Aligned dialect={dialect} names={names.filter((name) => name !== dialect)} result={result} />
      ) : (
        <div class={`columns of-${names.length}`} id="columns">
          {names.map((name) => {
            const isSource = name === dialect;
            const side = result?.dialects[name];
            const broken = isSource ? fault : side?.error;
            const earlier = !isSource && result?.problem ? last.get(`${kind}-${name}`) : undefined;
            const written = isSource ? text : result?.problem ? (earlier ?? "") : (side?.text ?? "");
            return (
              <section key={name} class={`column${isSource ? " source" : ""}${name === shown ? " shown" : ""}${earlier ? " stale" : ""}`} aria-label={titleOf(name)}>
                <header>
                  <h2>{titleOf(name)}</h2>
                  {isSource ? <span class="tag accent">source</span> : side && !side.error ? <LossCount side={side} /> : null}
                  <Copy text={written} />
                </header>
                <EditorBox
                  label={`${titleOf(name)}, ${kind}`}
                  json={kind !== "stream" && !(isSource && command)}
                  text={written}
                  problem={isSource && broken ? broken : null}
                  {...(isSource ? { marks, show: shownPlace?.dialect === name ? shownPlace : null } : {})}
                  changed={(next, pasted) => typed(name, next, pasted)}
                />
                <footer tabIndex={0} role="group" aria-label={`What ${titleOf(name)} could not carry`}>
                  {broken ? (
                    <Problem>
                      {broken.message}
                      {broken.line ? ` (line ${broken.line}, column ${broken.column ?? 1})` : broken.path && broken.path !== "$" ? ` (${broken.path})` : ""}
                    </Problem>
                  ) : null}
                  {earlier ? <p class="faint">Of the last valid text.</p> : null}
                  {side?.broken ? <Problem>The stream breaks off.</Problem> : null}
                  {isSource && !broken && result && text.trim() && !command ? <p class="grade grade-kept">✓ understood{model ? ` · for ${model}` : ""}</p> : null}
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
      )}
      {kind === "request" ? <Sending source={source} ready={Boolean(result && !result.problem && text.trim() && !command)} show={(pointer) => setShownPlace({ dialect, pointer })} /> : null}
    </section>
  );
}

function LossCount({ side }: { side: Translation }) {
  const worst = side.losses[0]?.grade ?? "";
  return (
    <span class={`grade grade-${side.losses.length ? worst || "harmless" : "kept"}`}>
      {side.losses.length ? `${GRADE_SIGN[worst] ?? "·"} ${plural(side.losses.length + (side.more_losses ?? 0), "loss", "losses")}` : "✓ nothing lost"}
    </span>
  );
}
