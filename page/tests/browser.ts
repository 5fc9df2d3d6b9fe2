// What modules of the page touch of a browser when they are loaded: import it before them.
const visited: string[] = [];

function put(kind: string, url: string): void {
  const found = new URL(url, "http://gateway.test");
  Object.assign(globalThis.location, { pathname: found.pathname, search: found.search });
  visited.push(`${kind} ${url}`);
}

Object.assign(globalThis, {
  location: { origin: "http://gateway.test", pathname: "/inspector", search: "" },
  history: { pushState: (_: unknown, __: string, url: string) => put("push", url), replaceState: (_: unknown, __: string, url: string) => put("replace", url) },
  addEventListener: () => undefined,
  scrollTo: () => undefined,
  window: { setTimeout: () => 1 },
});

/** The addresses that the page went to since the last call, each with how. */
export const takeVisited = (): string[] => visited.splice(0);
