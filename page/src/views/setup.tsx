// A fresh start: which providers are on and why not, what to set in each client, and a button that asks the demo model.
import { useEffect, useState } from "preact/hooks";
import { get, loadSession, message, send, session } from "../api";
import { FileEditor, type Rule, Rules, useConfigFile } from "../parts/configuration";
import { type Provider, Providers } from "../parts/providers";
import { Copy, Problem, Waiting, useTitle } from "../parts/small";
import { A, go, param, setQuery, to } from "../route";

export interface SetupPage {
  base_url?: string;
  version?: string;
  needs_key?: boolean;
  demo?: boolean;
  models?: string[];
  model_count?: number;
  config?: string;
  clients?: { name: string; title?: string; kind?: string; text: string; run?: string; page?: string }[];
  providers?: Provider[];
  rules?: Rule[];
}

function useSetup(): [SetupPage | null, string, () => void] {
  const [found, setFound] = useState<SetupPage | null>(null);
  const [problem, setProblem] = useState("");
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    get<SetupPage>("/setup", {}, stop.signal)
      .then(setFound)
      .catch((caught: unknown) => !stop.signal.aborted && setProblem(message(caught)));
    return () => stop.abort();
  }, [turn]);
  return [found, problem, () => setTurn((before) => before + 1)];
}

export function AskDemo({ models, demo }: { models: string[]; demo: boolean }) {
  const [text, setText] = useState("What is the weather in Paris?");
  const [model, setModel] = useState(demo ? "" : (models[0] ?? ""));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  return (
    <form
      class="ask"
      onSubmit={async (event) => {
        event.preventDefault();
        setBusy(true);
        setProblem("");
        try {
          // An exchange that failed is one to look at, too.
          const { id } = await send<{ id: string }>("POST", "/ask", model ? { text, model } : { text });
          go(to(["x", id]));
        } catch (caught) {
          setProblem(message(caught));
        } finally {
          setBusy(false);
        }
      }}
    >
      <label>
        <span class="unseen">Question</span>
        <input type="text" value={text} maxLength={2000} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {models.length ? (
        <label>
          <span class="unseen">Model</span>
          <select value={model} onChange={(event) => setModel(event.currentTarget.value)}>
            {demo ? <option value="">the demo model, free</option> : null}
            {models.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <button type="submit" class="main" disabled={busy || !text.trim()}>
        {busy ? "Sending …" : model ? "Ask it" : "Ask the demo model"}
      </button>
      {problem ? <Problem>{problem}</Problem> : null}
    </form>
  );
}

function ClientSettings({ setup }: { setup: SetupPage }) {
  const clients = setup.clients ?? [];
  const chosen = clients.find((each) => each.name === param("client-settings")) ?? clients[0];
  if (!chosen) return null;
  return (
    <div class="client-settings">
      <div class="choice wrap" role="group" aria-label="Client">
        {clients.map((each) => (
          <button key={each.name} type="button" aria-pressed={each === chosen} onClick={() => setQuery({ "client-settings": each.name }, true)}>
            {each.title ?? each.name}
          </button>
        ))}
      </div>
      <figure class="block">
        <figcaption>
          <span>{chosen.kind === "toml" ? "Its configuration file" : chosen.kind === "python" ? "Python" : chosen.kind === "json" ? "Its settings" : "In a terminal"}</span>
          <Copy text={chosen.text} />
        </figcaption>
        <pre tabIndex={0} aria-label={`Settings of ${chosen.title ?? chosen.name}`}>{chosen.text}</pre>
      </figure>
      {chosen.run ? (
        <p class="faint">
          Or let Wireglot set it and start it: <code>{chosen.run}</code> <Copy text={chosen.run} />
        </p>
      ) : null}
    </div>
  );
}

/** The list when it is empty: it explains itself. */
export function FirstSteps() {
  const [setup, problem] = useSetup();
  return (
    <div class="first-steps">
      <h2>No requests yet</h2>
      <p class="lead">
        Point a client at <code>{setup?.base_url ?? location.origin}</code>, and every exchange shows up here as it happens: what the client said, what the
        provider was sent, and what was lost between them.
      </p>
      {problem ? <Problem>{problem}</Problem> : null}
      {setup ? (
        <div class="steps">
          <section class="card">
            <h3>1. Try it, without any account</h3>
            {setup.demo === false ? (
              <p class="faint">This configuration has no demo model.</p>
            ) : (
              <>
                <p>The demo model answers here, on this machine. It costs nothing.</p>
                <AskDemo models={[]} demo />
              </>
            )}
            <p>
              Or open the <A href={to(["play"])}>playground</A>: a request in one dialect, translated to all others.
            </p>
          </section>
          <section class="card">
            <h3>2. Point a client here</h3>
            <ClientSettings setup={setup} />
          </section>
          <section class="card">
            <h3>3. Add a provider</h3>
            <Providers all={setup.providers ?? []} short />
            <p>
              <A href={to(["setup"])}>Complete setup</A>
            </p>
          </section>
        </div>
      ) : problem ? null : (
        <Waiting />
      )}
    </div>
  );
}

export function Setup() {
  useTitle("Set-up");
  const [setup, problem, reload] = useSetup();
  return (
    <section class="setup prose-wide">
      <h1>Set-up</h1>
      {problem ? <Problem>{problem}</Problem> : null}
      {!setup && !problem ? <Waiting /> : null}
      {setup ? (
        <>
          <p class="lead">
            This gateway listens on <code>{setup.base_url ?? location.origin}</code> <Copy text={setup.base_url ?? location.origin} />
            <span class="faint"> · version {session.value?.version ?? ""}{(session.value?.workers ?? 1) > 1 ? `, ${session.value?.workers} workers` : ""}</span>
          </p>
          {setup.demo !== false || setup.models?.length ? (
            <section class="card">
              <h2>Send a request</h2>
              <p>{setup.demo !== false ? "The demo model answers without any account, on this machine. " : ""}You are shown the exchange. A provider's model costs what it costs.</p>
              <AskDemo models={setup.models ?? []} demo={setup.demo !== false} />
            </section>
          ) : null}
          <section class="card">
            <h2>Settings for each client</h2>
            <ClientSettings setup={setup} />
          </section>
          {setup.providers ? <Changes setup={setup} reload={reload} /> : null}
          {setup.models?.length ? (
            <section class="card">
              <h2>Available models</h2>
              <p class="names">
                {setup.models.map((name) => (
                  <code key={name}>{name}</code>
                ))}
                {(setup.model_count ?? 0) > setup.models.length ? <span class="faint">and {(setup.model_count ?? 0) - setup.models.length} more</span> : null}
              </p>
            </section>
          ) : null}
        </>
      ) : null}
    </section>
  );
}

/** What may be changed here, by those who see all. */
function Changes({ setup, reload }: { setup: SetupPage; reload: () => void }) {
  const [file, problem, reloadFile] = useConfigFile();
  // What can be done about a provider is known from the file: with it all of it is drawn at once.
  if (!file && !problem) return <Waiting />;
  const changed = () => {
    reload();
    reloadFile();
    void loadSession(); // the currency may be another
  };
  return (
    <>
      <section class="card">
        <h2>Providers</h2>
        <p class="faint">{setup.config ? <>From <code>{setup.config}</code>, and keys that were found or kept.</> : "Found by their keys in the environment, and by those that were kept; there is no configuration file."}</p>
        <Providers all={setup.providers ?? []} file={file} changed={changed} />
      </section>
      <section class="card">
        <h2>Where models go</h2>
        <Rules rules={setup.rules ?? []} models={setup.models ?? []} file={file} changed={changed} />
      </section>
      <section class="card">
        <h2>Configuration file</h2>
        {problem ? <Problem>{problem}</Problem> : null}
        {file ? <FileEditor file={file} changed={changed} /> : null}
      </section>
    </>
  );
}
