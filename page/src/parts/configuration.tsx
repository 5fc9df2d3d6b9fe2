// The configuration file: where models lead, and its text. Every change is shown before it is written.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, message, send } from "../api";
import { useDraft } from "../drafts";
import { listOptions, namesOf } from "../options";
import { Combobox } from "./combobox";
import { Problem, Waiting } from "./small";

export interface ConfigFile {
  path: string;
  exists: boolean;
  why_fixed: string;
  may_change_all: boolean;
  overridden: string[];
  digest: string;
  text: string;
}

interface Checked {
  digest: string;
  text: string;
  difference: string[];
  problems: { path: string; expected: string; found: string }[];
  notes: string[];
}

export interface Rule {
  match: string;
  to: string[];
}

type Change = { path: string[]; value: unknown };

/** What is asked of the gateway: the text as it shall be, or values at paths. */
export type Wanted = { text: string } | { changes: Change[] };

export function useConfigFile(): [ConfigFile | null, string, () => void] {
  const [file, setFile] = useState<ConfigFile | null>(null);
  const [problem, setProblem] = useState("");
  const load = () => {
    get<ConfigFile>("/config")
      .then((found) => {
        setFile(found);
        setProblem("");
      })
      .catch((caught: unknown) => setProblem(message(caught)));
  };
  useEffect(load, []);
  return [file, problem, load];
}

interface DifferenceProps {
  file: ConfigFile;
  wanted: Wanted;
  close: () => void;
  written: () => void;
  /** Loads the file again: another program has changed it. */
  reload: () => void;
}

/** A dialog with the difference, which writes it. */
export function Difference({ file, wanted, close, written, reload }: DifferenceProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [checked, setChecked] = useState<Checked | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [isOld, setOld] = useState(false);
  const [isDone, setDone] = useState(false);
  const failed = (caught: unknown) => {
    setProblem(message(caught));
    setOld(caught instanceof ApiError && caught.code === "file_changed");
  };
  useLayoutEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    if (isDone) return;
    let on = true;
    setProblem("");
    setOld(false);
    send<Checked>("POST", "/config/check", { digest: file.digest, ...wanted })
      .then((found) => on && setChecked(found))
      .catch((caught: unknown) => on && failed(caught));
    return () => {
      on = false;
    };
  }, [file.digest]);
  const write = async () => {
    setBusy(true);
    setProblem("");
    try {
      const { applied } = await send<{ applied: boolean }>("PUT", "/config", { digest: file.digest, ...wanted });
      setDone(true);
      written();
      if (applied) dialog.current?.close();
    } catch (caught) {
      failed(caught);
    } finally {
      setBusy(false);
    }
  };
  const bad = checked?.problems.length ?? 0;
  return (
    <dialog ref={dialog} class="difference" aria-labelledby="difference-title" onClose={close}>
      <h2 id="difference-title">Changes of {file.path}</h2>
      {!checked && !problem ? <Waiting what="Checking" /> : null}
      {checked?.problems.map((each) => (
        <Problem key={each.path + each.expected}>
          <code>{each.path}</code>: expected {each.expected}, found {each.found}
        </Problem>
      ))}
      {checked && !checked.difference.length ? <p>Nothing differs.</p> : null}
      {checked?.difference.length ? (
        <pre class="lines-of-difference" tabIndex={0} aria-label="Difference">
          {checked.difference.map((line, at) => (
            <span key={at} class={line.startsWith("+") ? "line-added" : line.startsWith("-") ? "line-removed" : line.startsWith("@@") ? "faint" : ""}>
              {line + "\n"}
            </span>
          ))}
        </pre>
      ) : null}
      {checked?.notes.map((note) => (
        <p key={note} class="faint">
          {note}
        </p>
      ))}
      {problem ? <Problem>{problem}</Problem> : null}
      {isDone ? <p class="note" role="status">It is written, and takes effect with the next start.</p> : null}
      {isOld && "text" in wanted ? <p class="faint">Your text is kept. Once the file is loaded again, the difference shows what it would undo of the other program's change.</p> : null}
      <div class="actions">
        <button type="button" onClick={() => dialog.current?.close()}>
          {isDone ? "Close" : "Back"}
        </button>
        {isOld ? (
          <button type="button" class="main" onClick={reload}>
            Load it again
          </button>
        ) : isDone ? null : (
          <button type="button" class="main" disabled={busy || !checked || bad > 0 || !checked.difference.length} onClick={() => void write()}>
            {busy ? "Writing …" : "Write it"}
          </button>
        )}
      </div>
    </dialog>
  );
}

export function Rules({ rules, models, file, changed }: { rules: Rule[]; models: string[]; file: ConfigFile | null; changed: () => void }) {
  const [wanted, setWanted] = useState<Wanted | null>(null);
  const [typed, setTyped] = useDraft<{ match: string; to: string }>("rule");
  const { match, to } = typed ?? { match: "", to: "" };
  const set = (next: { match: string; to: string }) => setTyped(next.match || next.to ? next : undefined);
  const may = file !== null && !file.why_fixed;
  const written = () => {
    setTyped(undefined);
    changed();
  };
  return (
    <>
      {rules.length ? (
        <div class="scroll-x" tabIndex={0} role="group" aria-label="Rules">
          <table>
            <thead>
              <tr>
                <th>Requested</th>
                <th>Targets, in order</th>
                {may ? (
                  <th>
                    <span class="unseen">Changes</span>
                  </th>
                ) : null}
              </tr>
            </thead>
            <tbody>
              {rules.map((rule, at) => (
                <tr key={`${rule.match} ${at}`}>
                  <td>
                    <code>{rule.match}</code>
                  </td>
                  <td>{rule.to.join(", then ")}</td>
                  {may ? (
                    <td class="row-actions">
                      <button
                        type="button"
                        class="quiet"
                        onClick={() => setTyped({ match: rule.match, to: rule.to.join(", ") })}
                      >
                        Change<span class="unseen"> {rule.match}</span>
                      </button>
                      <button type="button" class="quiet" onClick={() => setWanted({ changes: [{ path: ["models", rule.match], value: null }] })}>
                        Remove<span class="unseen"> {rule.match}</span>
                      </button>
                    </td>
                  ) : null}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p class="faint">No rules: a model is requested by its provider and name, or by a name that the catalog knows.</p>
      )}
      {may ? (
        <form
          class="ask rule-form"
          onSubmit={(event) => {
            event.preventDefault();
            const targets = namesOf(to);
            setWanted({ changes: [{ path: ["models", match.trim()], value: targets.length === 1 ? targets[0] : targets }] });
          }}
        >
          <label>
            Requested name or pattern
            <input type="text" required placeholder="fast, claude-*, or * for all others" value={match} onInput={(event) => set({ match: event.currentTarget.value, to })} />
          </label>
          <Combobox label="Targets, in order" list="Models" value={to} placeholder="kimi/kimi-k3, openai/gpt-5.5" options={listOptions(to, models.filter((name) => name.includes("/")))} choose={(text) => set({ match, to: text })} />
          <button type="submit" class="main" disabled={!match.trim() || !namesOf(to).length}>
            Show the change
          </button>
        </form>
      ) : null}
      {file && wanted ? <Difference file={file} wanted={wanted} close={() => setWanted(null)} written={written} reload={changed} /> : null}
    </>
  );
}

export function FileEditor({ file, changed }: { file: ConfigFile; changed: () => void }) {
  const [typed, setTyped] = useDraft<{ text: string; digest: string }>("configuration");
  const text = typed?.text ?? null;
  const [wanted, setWanted] = useState<Wanted | null>(null);
  return (
    <>
      <p class="faint">
        <code>{file.path}</code>
        {file.exists ? "" : " is written with the first change."}
      </p>
      {file.why_fixed ? <p class="note">It cannot be changed here: {file.why_fixed}.</p> : null}
      {file.overridden.length ? <p class="note">Set elsewhere, not by the file: {file.overridden.join("; ")}.</p> : null}
      {!file.why_fixed && !file.may_change_all ? (
        <p class="faint">
          Without the admin secret only models, prices, currency and losses can be changed: the rest says where keys and prompts go.
        </p>
      ) : null}
      {file.why_fixed ? null : text === null ? (
        <div class="actions">
          <button type="button" onClick={() => setTyped({ text: file.text, digest: file.digest }, false)}>
            Edit the file
          </button>
        </div>
      ) : (
        <>
          <label>
            <span class="unseen">Text of the configuration file</span>
            <textarea class="config-text" rows={18} spellcheck={false} wrap="off" value={text} onInput={(event) => setTyped({ text: event.currentTarget.value, digest: typed?.digest ?? file.digest }, event.currentTarget.value !== file.text)} />
          </label>
          {typed && typed.digest !== file.digest ? <p class="note">The file has changed since this text was begun: the difference shows what it would undo.</p> : null}
          <p class="faint">Secrets are hidden. A line with [hidden] keeps its value while it is not changed.</p>
          <div class="actions">
            <button type="button" onClick={() => setTyped(undefined)}>
              Cancel
            </button>
            <button type="button" class="main" disabled={text === file.text} onClick={() => setWanted({ text })}>
              Show the difference
            </button>
          </div>
        </>
      )}
      {wanted ? (
        <Difference
          file={file}
          wanted={wanted}
          close={() => setWanted(null)}
          written={() => {
            setTyped(undefined);
            changed();
          }}
          reload={changed}
        />
      ) : null}
    </>
  );
}
