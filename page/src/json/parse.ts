// JSON text to values: most at once, very large ones in a worker.
import { useEffect, useMemo, useState } from "preact/hooks";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export type Parsed = { value: Json; problem?: undefined } | { value?: undefined; problem: string };

/** Characters that are parsed faster here (10 ms) than they are sent to a worker and their value back (60 ms and more). */
const SMALL = 2_000_000;
const WORKER = "/inspector/assets/worker.js";

export function parse(text: string): Parsed {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (problem) {
    return { problem: problem instanceof Error ? problem.message : String(problem) };
  }
}

let worker: Worker | null | undefined;
let count = 0;
const open = new Map<number, { text: string; tell: (parsed: Parsed) => void }>();

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): unknown };
}

let policy: { createScriptURL(url: string): unknown } | undefined;

/** The address of a worker, by the one policy of the page: there are two. */
export function policed(url: string): string {
  const factory = (window as { trustedTypes?: PolicyFactory }).trustedTypes;
  policy ??= factory?.createPolicy("wireglot", {
    createScriptURL: (asked) => {
      if (asked !== WORKER && asked !== "/inspector/assets/feed.js") throw new TypeError("only the page's own workers");
      return asked;
    },
  });
  return (policy ? policy.createScriptURL(url) : url) as string;
}

function start(): Worker | null {
  if (worker !== undefined) return worker;
  try {
    const made = new Worker(policed(WORKER), { type: "module" });
    made.onmessage = (event: MessageEvent<{ id: number } & Parsed>) => {
      const waiting = open.get(event.data.id);
      open.delete(event.data.id);
      waiting?.tell(event.data);
    };
    made.onerror = () => {
      worker = null;
      for (const waiting of open.values()) waiting.tell(parse(waiting.text));
      open.clear();
    };
    worker = made;
  } catch {
    worker = null;
  }
  return worker;
}

export function parseAside(text: string): Promise<Parsed> {
  const aside = text.length > SMALL ? start() : null;
  if (!aside) return Promise.resolve(parse(text));
  const id = ++count;
  return new Promise((tell) => {
    open.set(id, { text, tell });
    aside.postMessage({ id, text });
  });
}

/** The value of a text, or null while it is parsed. */
export function useParsed(text: string | undefined): Parsed | null {
  const small = text !== undefined && text.length <= SMALL;
  const now = useMemo(() => (small ? parse(text) : null), [text]);
  const [result, setResult] = useState<{ text: string; parsed: Parsed } | null>(null);
  useEffect(() => {
    if (text === undefined || small) return;
    let on = true;
    void parseAside(text).then((parsed) => on && setResult({ text, parsed }));
    return () => {
      on = false;
    };
  }, [text]);
  return now ?? (result && result.text === text ? result.parsed : null);
}

export function escapeToken(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}

export function at(value: Json | undefined, pointer: string): Json | undefined {
  let found: Json | undefined = value;
  for (const token of pointer.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(found)) found = found[Number(name)];
    else if (found !== null && typeof found === "object") found = Object.hasOwn(found, name) ? found[name] : undefined;
    else return undefined;
  }
  return found;
}

export function within(pointer: string, whole: string): boolean {
  return pointer === whole || pointer.startsWith(whole + "/");
}
