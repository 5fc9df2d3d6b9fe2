// Every view is an address: path and query are the state, so a link can be sent and the back button works.
import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

export const BASE = "/inspector";

export interface Place {
  path: string[];
  query: URLSearchParams;
}

function read(pathname = location.pathname, search = location.search): Place {
  const path = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : "";
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { path: parts, query: new URLSearchParams(search) };
}

export const place = signal<Place>(read());
export const view = computed(() => place.value.path[0] ?? "");

// Browsers refuse an address that changes many times a second, as it does while a stream is played or a key is held:
// the place changes at once, its address soon after.
const SOON_MS = 150;
let pending: string | null = null;
let timer = 0;

export function flush(): void {
  clearTimeout(timer);
  timer = 0;
  if (pending !== null) history.replaceState(null, "", pending);
  pending = null;
}

function put(url: string, replace: boolean): void {
  if (replace) {
    pending = url;
    if (!timer) timer = window.setTimeout(flush, SOON_MS);
  } else {
    flush();
    history.pushState(null, "", url);
  }
  const found = new URL(url, location.origin);
  place.value = read(found.pathname, found.search);
}

addEventListener("popstate", () => {
  pending = null;
  place.value = read();
});
addEventListener("pagehide", flush);

export function to(path: string[], query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const text = search.toString();
  return [BASE, ...path.map(encodeURIComponent)].join("/") + (text ? "?" + text : "");
}

export function go(url: string, replace = false): void {
  put(url, replace);
  if (!replace) scrollTo(0, 0);
}

/** Sets names of the query in place: "" takes one away. A change of a filter is a step to go back to, a scrub is not. */
export function setQuery(change: Record<string, string>, replace = false): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(change))
    if (value === "") query.delete(name);
    else query.set(name, value);
  const text = query.toString();
  put([BASE, ...place.value.path.map(encodeURIComponent)].join("/") + (text ? "?" + text : ""), replace);
}

export function param(name: string): string {
  return place.value.query.get(name) ?? "";
}

const OF_LIST = "wireglot.list.query";
const listQuery = signal("");
try {
  listQuery.value = sessionStorage.getItem(OF_LIST) ?? "";
} catch {
  // a browser may forbid it
}

/** The list as it was last seen, with its filters and its order; more in its address. */
export function listAddress(more: Record<string, string> = {}): string {
  return to([], { ...Object.fromEntries(new URLSearchParams(listQuery.value)), ...more });
}

export function rememberList(query: string): void {
  listQuery.value = query;
  try {
    sessionStorage.setItem(OF_LIST, query);
  } catch {
    // it holds until the page is left
  }
}

interface AProps {
  href: string;
  class?: string;
  children?: ComponentChildren;
  "aria-label"?: string;
  "aria-current"?: "page" | undefined;
}

/** A link within the page. */
export function A({ href, children, ...rest }: AProps) {
  return (
    <a
      {...rest}
      href={href}
      onClick={(event: MouseEvent) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        go(href);
      }}
    >
      {children}
    </a>
  );
}
