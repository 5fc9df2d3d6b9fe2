// Every view is an address: path and query are the state, so a link can be sent and the back button works.
import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

export const BASE = "/inspector";

export interface Place {
  path: string[];
  query: URLSearchParams;
}

function read(): Place {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : "";
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { path: parts, query: new URLSearchParams(location.search) };
}

export const place = signal<Place>(read());
export const view = computed(() => place.value.path[0] ?? "");

addEventListener("popstate", () => {
  place.value = read();
});

export function to(path: string[], query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const text = search.toString();
  return [BASE, ...path.map(encodeURIComponent)].join("/") + (text ? "?" + text : "");
}

export function go(url: string, replace = false): void {
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  place.value = read();
  if (!replace) scrollTo(0, 0);
}

/** Sets names of the query in place: "" takes one away. A change of a filter is a step to go back to, a scrub is not. */
export function setQuery(change: Record<string, string>, replace = false): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(change))
    if (value === "") query.delete(name);
    else query.set(name, value);
  const text = query.toString();
  const url = location.pathname + (text ? "?" + text : "");
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  place.value = read();
}

export function param(name: string): string {
  return place.value.query.get(name) ?? "";
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
