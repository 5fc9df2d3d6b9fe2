// Shared by all tabs of a browser: a browser has six connections to a gateway, however many tabs there are.
import { type News, Source } from "./source";

/** What a tab says: whose session it follows with, now and then that it still does, or that it does not any more. */
export type Said = { follow: string; still?: true } | { leave: true };

/** A tab that is closed says nothing: it counts as gone after this time without a message. */
const SILENT_MS = 40_000;

const heard = new Map<MessagePort, number>();
let whose = "";

const source = new Source((news: News) => {
  for (const port of heard.keys()) port.postMessage(news);
});

function drop(port: MessagePort): void {
  heard.delete(port);
  if (!heard.size) source.close();
}

setInterval(() => {
  for (const [port, at] of heard) if (Date.now() - at > SILENT_MS) drop(port);
}, SILENT_MS / 4);

addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  if (!port) return;
  port.onmessage = ({ data }: MessageEvent<Said>) => {
    if ("leave" in data) return drop(port);
    // Another session sees other rows.
    if (data.follow !== whose) source.close();
    whose = data.follow;
    const isNew = !heard.has(port);
    heard.set(port, Date.now());
    if (isNew && data.still) port.postMessage({ state: "lost" } satisfies News); // the machine slept
    if (isNew) port.postMessage({ state: source.state } satisfies News);
    source.open();
  };
  port.start();
});
