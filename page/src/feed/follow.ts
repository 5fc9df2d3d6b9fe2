// Follows the gateway's rows: over the worker that all tabs share, or, where a browser has none, over the tab that holds
// a lock and informs the others. Closed while the tab is hidden.
import { policed } from "../json/parse";
import { type News, Source } from "./source";
import type { Said } from "./worker";

const WORKER = "/inspector/assets/feed.js";
const NAME = "wireglot-feed";
const HERE_MS = 10_000;

type Leave = () => void;
type Tell = (news: News) => void;

/** `whose`: the session it is followed with. Call what it returns to follow no more. */
export function follow(whose: string, tell: Tell): Leave {
  let leave: Leave | null = null;
  const look = () => {
    if (document.visibilityState === "hidden") {
      leave?.();
      leave = null;
      tell({ state: "lost" }); // what comes meanwhile is not heard of
    } else leave ??= join(whose, tell);
  };
  const gone = () => {
    leave?.();
    leave = null;
  };
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", gone);
  addEventListener("pageshow", look);
  look();
  return () => {
    document.removeEventListener("visibilitychange", look);
    removeEventListener("pagehide", gone);
    removeEventListener("pageshow", look);
    gone();
  };
}

function join(whose: string, tell: Tell): Leave {
  if (typeof SharedWorker !== "undefined") {
    try {
      return overWorker(whose, tell);
    } catch {
      // It may not be had here: on without it.
    }
  }
  return "locks" in navigator && typeof BroadcastChannel !== "undefined" ? overChannel(whose, tell) : alone(tell);
}

let port: MessagePort | null = null;

function overWorker(whose: string, tell: Tell): Leave {
  port ??= new SharedWorker(policed(WORKER), { type: "module", name: NAME }).port;
  const to = port;
  const say = (said: Said) => to.postMessage(said);
  to.onmessage = ({ data }: MessageEvent<News>) => tell(data);
  say({ follow: whose });
  const timer = setInterval(() => say({ follow: whose, still: true }), HERE_MS);
  return () => {
    clearInterval(timer);
    to.onmessage = null;
    say({ leave: true });
  };
}

function overChannel(whose: string, tell: Tell): Leave {
  const name = `${NAME} ${whose}`;
  const channel = new BroadcastChannel(name);
  const stop = new AbortController();
  channel.onmessage = ({ data }: MessageEvent<News | "state?">) => {
    if (data !== "state?") tell(data);
  };
  channel.postMessage("state?");
  void navigator.locks
    .request(name, { signal: stop.signal }, async () => {
      const source = new Source((news) => {
        channel.postMessage(news);
        tell(news);
      });
      channel.onmessage = ({ data }: MessageEvent<News | "state?">) => {
        if (data === "state?") channel.postMessage({ state: source.state } satisfies News);
      };
      source.open();
      await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
      source.close();
    })
    .catch(() => undefined) // it left before its turn came
    .finally(() => channel.close());
  return () => stop.abort();
}

function alone(tell: Tell): Leave {
  const source = new Source(tell);
  source.open();
  return () => source.close();
}
