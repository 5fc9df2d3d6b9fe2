// Where an exchange is in the list one came from, and those next to it.
import { useEffect } from "preact/hooks";
import { FILTERS, type Filters, loading, more, next, rows, show } from "../rows";
import { A, go, listAddress, to } from "../route";

function filtersOf(query: URLSearchParams): Filters {
  return Object.fromEntries([...FILTERS, "sort" as const].flatMap((name) => (query.get(name) ? [[name, query.get(name) as string]] : [])));
}

interface Props {
  id: string;
  /** The address of an exchange, as this view shows it. */
  addressOf?: (id: string) => string;
  /** Whether j and k are its own: next to the list they are the list's. */
  hasKeys?: boolean;
}

export function Neighbours({ id, addressOf = (each) => to(["x", each]), hasKeys = true }: Props) {
  const all = rows.value;
  const here = all.findIndex((row) => row.id === id);
  const around = { previous: all[here - 1]?.id, next: here < 0 ? undefined : all[here + 1]?.id };
  useEffect(() => {
    // After a reload the list is not there yet.
    if (!rows.value.length) void show(filtersOf(new URL(listAddress(), location.origin).searchParams));
  }, []);
  useEffect(() => {
    if (here >= 0 && here === all.length - 1 && next.value && !loading.value) void more();
  }, [here, all.length]);
  useEffect(() => {
    if (!hasKeys) return;
    // Trees and events have these keys for themselves.
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !/^[jk]$/.test(event.key)) return;
      if (/^(input|textarea|select)$/i.test((event.target as HTMLElement).tagName)) return;
      const chosen = event.key === "j" ? around.next : around.previous;
      if (!chosen) return;
      event.preventDefault();
      go(addressOf(chosen), true);
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });
  return (
    <nav class="neighbours" aria-label="Neighbours in the list">
      <A href={listAddress({ at: id })}>← List</A>
      {here >= 0 ? (
        <>
          {around.previous ? <A href={addressOf(around.previous)} aria-label="Previous exchange">‹ Previous</A> : <span class="faint">‹ Previous</span>}
          <span class="at">{(here + 1).toLocaleString("en")} of {all.length.toLocaleString("en")}{next.value ? "+" : ""}</span>
          {around.next ? <A href={addressOf(around.next)} aria-label="Next exchange">Next ›</A> : <span class="faint">Next ›</span>}
        </>
      ) : null}
    </nav>
  );
}
