// The page: who is looking, which view, and the keys that work everywhere.
import "../styles/page.css";
import { effect } from "@preact/signals";
import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { loadSession, send, session, sessionError } from "./api";
import { forgetDrafts } from "./drafts";
import { connect, disconnect } from "./live";
import type { Session } from "./types";
import { A, go, listAddress, place, to, view } from "./route";
import { Neighbours } from "./parts/neighbours";
import { Problem, Waiting } from "./parts/small";
import { drawNothingWhilePressed } from "./pressed";
import { Compare } from "./views/compare";
import { Conversations } from "./views/conversations";
import { Dashboards } from "./views/dash";
import { ExchangeView } from "./views/exchange";
import { Keys } from "./views/keys";
import { LiveList } from "./views/list";
import { Playground } from "./views/play";
import { Replay } from "./views/replay";
import { Setup } from "./views/setup";
import { SignIn } from "./views/signin";

const VIEWS: [string, string][] = [
  ["", "Live"],
  ["conversations", "Conversations"],
  ["dash", "Dashboards"],
  ["play", "Playground"],
  ["setup", "Set-up"],
  ["keys", "Keys"],
];

const KEYS: [string, string][] = [
  ["j  ↓", "next exchange, next line"],
  ["k  ↑", "the one before"],
  ["Enter", "open"],
  ["→  ←", "unfold, fold"],
  ["Esc", "close what is on top: a menu, a dialog, the exchange next to the list"],
  ["/", "search"],
  ["p", "pause the list; play the stream"],
  ["[  ]", "one event back, one event on"],
  ["g l  g c  g d  g p  g s  g k", "go to Live, Conversations, Dashboards, Playground, Set-up, Keys"],
  ["?", "this list"],
];

function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split("  ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h3>Signs</h3>
      <ul class="signs">
        <li class="grade grade-kept">✓ kept, or successful</li>
        <li class="grade grade-harmless">· harmless: the answer is the same, or as good</li>
        <li class="grade grade-degraded">≈ degraded: the answer may be different or worse</li>
        <li class="grade grade-serious">✕ serious, or failed</li>
      </ul>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

function current(): preact.ComponentChild {
  const [name, first, ...rest] = place.value.path;
  switch (name ?? "") {
    case "":
      return <LiveList />;
    case "x":
      return (
        <>
          <Neighbours id={first ?? ""} />
          <ExchangeView key={first} id={first ?? ""} />
        </>
      );
    case "conversations":
      return <Conversations />;
    case "dash":
      return <Dashboards />;
    case "play":
      return <Playground />;
    case "setup":
      return <Setup />;
    case "keys":
      return <Keys />;
    case "replay":
      return <Replay key={first} id={first ?? ""} />;
    case "compare":
      return <Compare ids={[first ?? "", ...rest].filter(Boolean)} />;
    default:
      return (
        <section class="prose">
          <h1>There is no such view</h1>
          <p>
            <A href={to([])}>The live list</A> is a good place to go on.
          </p>
        </section>
      );
  }
}

const GOES: Record<string, string> = { l: "", c: "conversations", d: "dash", p: "play", s: "setup", k: "keys" };

function Page() {
  const [help, setHelp] = useState(false);
  const views = useRef<HTMLElement>(null);
  // On a narrow screen not all of them are in sight: the one that is shown is.
  useEffect(() => views.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [view.value, session.value?.access]);
  useEffect(() => {
    let went = 0;
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const element = event.composedPath()[0] as HTMLElement;
      const typing = element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName ?? "");
      if (event.key === "Escape") {
        // What is open closes by itself. Nothing else: no view is left, and nothing that was typed is lost.
        if (typing) element.blur();
        return;
      }
      if (typing && !(element instanceof HTMLInputElement && element.type === "range")) return;
      const goes = GOES[event.key];
      if (Date.now() - went < 1000 && goes !== undefined) {
        event.preventDefault();
        go(goes ? to([goes]) : listAddress(view.value === "x" ? { at: place.value.path[1] ?? "" } : {}));
      } else if (event.key === "g") went = Date.now();
      else if (event.key === "?") setHelp(true);
      else if (event.key === "/") {
        event.preventDefault();
        const field = document.querySelector<HTMLInputElement>("[data-search]");
        if (field) field.focus();
        else go(listAddress({ focus: "1" }));
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);

  const who = session.value;
  if (!who) return sessionError.value ? <main class="alone"><Problem>{sessionError.value}</Problem></main> : <Waiting />;
  if (who.access === "none") return <SignIn />;
  const name = view.value;
  const at = name === "x" || name === "replay" || name === "compare" ? "" : name;
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      <header class="top">
        <A href={to([])} class="brand" aria-label="Wireglot, to the live list">
          <img src="/inspector/assets/icon.svg" alt="" width="20" height="20" />
          <span>Wireglot</span>
        </A>
        <nav aria-label="Views" ref={views}>
          {VIEWS.map(([path, title]) => (
            <A key={path} href={path ? to([path]) : listAddress()} aria-current={path === at ? "page" : undefined}>
              {title}
            </A>
          ))}
        </nav>
        <div class="who">
          {who.access === "key" ? <span class="faint">key {who.key}</span> : null}
          {who.access === "admin" ? <span class="faint">administrator</span> : null}
          {who.access === "admin" || who.access === "key" ? (
            <button
              type="button"
              class="quiet"
              onClick={async () => {
                await send("DELETE", "/session").catch(() => undefined);
                disconnect();
                forgetDrafts();
                await loadSession();
              }}
            >
              Sign out
            </button>
          ) : null}
          <button type="button" class="quiet" aria-label="Keys and signs" title="Keys and signs (?)" onClick={() => setHelp(true)}>
            ?
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1} class={`view-${at || (name === "" ? "list" : name)}`}>
        {current()}
      </main>
      {help ? <Help close={() => setHelp(false)} /> : null}
    </>
  );
}

/** Views that show what happens. The others need no connection. */
const FOLLOWING = new Set(["", "x", "conversations", "compare"]);

effect(() => {
  const access = session.value?.access;
  if (access && access !== "none" && FOLLOWING.has(view.value)) connect();
  else disconnect();
});

// One whose session has ended finds what was typed when signed in again; another user does not.
let user: Session | null = null;
effect(() => {
  const now = session.value;
  if (!now || now.access === "none") return;
  if (user && user.access !== "open" && (user.access !== now.access || user.key !== now.key)) forgetDrafts();
  user = now;
});

drawNothingWhilePressed(window);
void loadSession();
const root = document.getElementById("page");
if (root) {
  root.textContent = "";
  render(<Page />, root);
}
