// Every exchange as it happens.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { address } from "../api";
import { clock, count, day, duration, lossesTold, moment, money, target, tokensOf } from "../format";
import { type Filter, FILTERS, type Filters, connection, dropped, failed, loading, more, next, paused, rows, seen, setPaused, show, unread, waiting } from "../live";
import { Losses, Problem, Purpose, Status, Waiting, save, useTitle } from "../parts/small";
import { RecordingButton } from "../parts/recording";
import { Virtual } from "../parts/virtual";
import { go, param, setQuery, to } from "../route";
import type { Row } from "../types";
import { FirstSteps } from "./setup";

const MENUS: [Filter, string, [string, string][]][] = [
  ["client", "Client", []],
  ["dialect", "Dialect", []],
  ["model", "Model", []],
  ["provider", "Provider", []],
  ["status", "Status", [["running", "running"], ["2xx", "2xx, successful"], ["4xx", "4xx, rejected"], ["5xx", "5xx, failed"], ["failed", "failed"], ["left", "client disconnected"]]],
  ["loss", "Losses", [["serious", "✕ serious"], ["degraded", "≈ degraded"], ["harmless", "· harmless"]]],
  ["key", "Key", []],
  ["purpose", "Purpose", []],
  ["agent", "Agent", []],
];

function filtersOf(): Filters {
  const found: Filters = {};
  for (const name of FILTERS) {
    const value = param(name);
    if (value) found[name] = value;
  }
  return found;
}

const COLUMNS = ["Time", "Client", "Requested", "Answered by", "Status", "First", "Total", "Tokens", "Cost", "Losses"];

/** A row's cells are made once: it is drawn again whenever another one comes. */
const made = new WeakMap<Row, { narrow: boolean; cells: ComponentChildren }>();

function cellsOf(row: Row, narrow: boolean): ComponentChildren {
  const found = made.get(row);
  if (found?.narrow === narrow) return found.cells;
  const tokens = tokensOf(row.tokens);
  const cells = [
    <time dateTime={new Date(row.at * 1000).toISOString()} title={moment(row.at)}>{clock(row.at)}</time>,
    <span title={row.agent}>{row.client || "unknown"}<Purpose row={row} /></span>,
    <span title={row.asked}>{row.asked || row.path}</span>,
    <span title={target(row)}>{target(row) || <span class="faint">–</span>}{row.passthrough ? <span class="tag" title="client and provider speak the same dialect: the bytes pass through">pass-through</span> : null}</span>,
    <Status row={row} />,
    <span>{duration(row.first_ms)}</span>,
    <span>{duration(row.total_ms)}</span>,
    <span title={row.tokens ? `${row.tokens.input ?? 0} in, ${row.tokens.output ?? 0} out` : ""}>{count(tokens)}</span>,
    <span>{money(row.cost)}</span>,
    <Losses losses={lossesTold(row)} />,
  ];
  const reported = (narrow ? [0, 1, 4, 2, 3, 9, 6, 7, 5, 8] : cells.map((_, at) => at)).map((at) => (
    <span key={at} role="gridcell" aria-colindex={at + 1} class={`cell cell-${at}`}>
      {cells[at]}
    </span>
  ));
  made.set(row, { narrow, cells: reported });
  return reported;
}

function Line({ row, index, active, narrow }: { row: Row; index: number; active: boolean; narrow: boolean }) {
  return (
    <div
      key={row.id}
      id={`row-${row.id}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={active}
      class={`line${active ? " active" : ""}${row.recorded ? " recorded" : ""}`}
      onClick={() => go(to(["x", row.id]))}
    >
      {cellsOf(row, narrow)}
    </div>
  );
}

function narrowNow(): boolean {
  return matchMedia("(max-width: 760px)").matches;
}

function csv(all: Row[]): string {
  const quote = (value: unknown) => {
    const text = value === null || value === undefined ? "" : String(value);
    // A leading sign would be read as a formula by a spreadsheet.
    return `"${(/^[=+\-@\t\r]/.test(text) ? "'" + text : text).replaceAll('"', '""')}"`;
  };
  const head = ["id", "at", "state", "client", "purpose", "agent", "dialect", "key", "session", "asked", "provider", "model", "upstream_dialect", "status", "first_ms", "total_ms", "input", "output", "cost", "losses"];
  const lines = all.map((row) =>
    [row.id, new Date(row.at * 1000).toISOString(), row.state ?? "running", row.client, row.purpose, row.agent_name, row.dialect, row.key, row.session, row.asked, row.provider, row.model,
      row.upstream_dialect, row.status, row.first_ms, row.total_ms, row.tokens?.input, row.tokens?.output, row.cost, (row.features ?? []).join(" ")].map(quote).join(","));
  return [head.join(","), ...lines].join("\r\n") + "\r\n";
}

export function LiveList() {
  useTitle("Live");
  const search = useRef<HTMLInputElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const typed = useRef(0);
  const query = FILTERS.map(param).join("\u0000");
  const selected = param("at");
  useEffect(() => void show(filtersOf()), [query]);
  // Before the next key is read: "/" pressed at once must not lose the search to the list.
  useLayoutEffect(() => {
    if (param("find")) {
      setQuery({ find: "" }, true);
      search.current?.focus();
    } else grid.current?.focus({ preventScroll: true });
  }, []);
  const all = rows.value;
  const active = all.findIndex((row) => row.id === selected);
  const filtered = FILTERS.some((name) => param(name));
  const narrow = narrowNow();

  // By what holds when a key is pressed: several may be before the page is drawn again.
  const here = () => rows.value.findIndex((row) => row.id === param("at"));
  const move = (by: number) => {
    const now = here();
    const row = rows.value[Math.max(0, Math.min(rows.value.length - 1, now < 0 ? (by > 1 ? by : 0) : now + by))];
    if (row) setQuery({ at: row.id }, true);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement;
    if (/^(input|select|textarea)$/i.test(target.tagName)) return;
    const page = 20;
    const moves: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    const by = moves[event.key];
    if (by !== undefined) move(by);
    else if (event.key === "Enter" && here() >= 0 && !/^(button|a)$/i.test(target.tagName)) go(to(["x", param("at")]));
    else if (event.key === "p") setPaused(!paused.value);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });

  return (
    <section class="list" aria-label="Live exchanges">
      <h1 class="unseen">Live exchanges</h1>
      <div class="bar">
        <div class="search">
          <label class="unseen" for="search">Search exchanges</label>
          <input
            id="search"
            ref={search}
            data-search
            type="search"
            placeholder="Search  ( / )"
            title="Rows, and bodies where they are recorded"
            value={param("q")}
            onInput={(event) => {
              const text = event.currentTarget.value;
              clearTimeout(typed.current);
              typed.current = window.setTimeout(() => setQuery({ q: text }, true), 250);
            }}
          />
        </div>
        <div class="filters">
          {MENUS.map(([name, label, fixed]) => {
            const value = param(name);
            const known = [...fixed, ...(seen.value[name] ?? []).filter((each) => !fixed.some(([id]) => id === each)).map((each) => [each, each] as [string, string])];
            if (value && !known.some(([id]) => id === value)) known.push([value, value]);
            if (!known.length) return null;
            return (
              <span key={name} class={value ? "filter on" : "filter"}>
                <select aria-label={label} value={value} onChange={(event) => setQuery({ [name]: event.currentTarget.value })}>
                  <option value="">{value ? `${label}: all` : label}</option>
                  {known.map(([id, text]) => (
                    <option key={id} value={id}>
                      {label}: {text}
                    </option>
                  ))}
                </select>
              </span>
            );
          })}
          {param("session") ? (
            <span class="filter on tag">
              one conversation <button type="button" class="quiet" aria-label="All conversations" onClick={() => setQuery({ session: "" })}>×</button>
            </span>
          ) : null}
          {filtered ? (
            <button type="button" class="quiet" onClick={() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>
              Clear
            </button>
          ) : null}
        </div>
        <div class="actions">
          <span class={`connection connection-${connection.value}`} role="status">
            <span class="dot" aria-hidden="true" />
            {connection.value === "open" ? (paused.value ? `Paused${waiting.value ? `, ${waiting.value} new` : ""}` : "Live") : connection.value === "lost" ? "Not connected" : "Connecting"}
          </span>
          <RecordingButton />
          <button type="button" aria-pressed={paused.value} onClick={() => setPaused(!paused.value)} title="p">
            {paused.value ? "Go on" : "Pause"}
          </button>
          <button type="button" disabled={!all.length} onClick={() => save("wireglot-exchanges.csv", "text/csv", csv(all))}>
            Export
          </button>
        </div>
      </div>
      {failed.value ? <Problem>{failed.value}</Problem> : null}
      {dropped.value ? <p class="note" role="status">{dropped.value} changes were skipped while the page was slow; reload to see all.</p> : null}
      {!all.length && !loading.value && !failed.value ? (
        filtered ? (
          <div class="empty card">
            <h2>{next.value ? "Nothing yet" : "Nothing matches"}</h2>
            {next.value ? (
              <p>The newest exchanges do not match these filters. <button type="button" onClick={() => void more()}>Load older</button></p>
            ) : (
              <p>No exchange matches these filters.</p>
            )}
            {unread.value ? <Unread /> : null}
            <button type="button" onClick={() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>Clear the filters</button>
          </div>
        ) : (
          <FirstSteps />
        )
      ) : null}
      {all.length ? (
        <>
          <div class="table" role="presentation">
            <div id="columns" class="head line" role="row" aria-rowindex={1}>
              {COLUMNS.map((name, at) => (
                <span key={name} role="columnheader" aria-colindex={at + 1} class={`cell cell-${at}`}>
                  {name}
                </span>
              ))}
            </div>
            <Virtual
              box={grid}
              class="rows"
              role="grid"
              label={`Exchanges of ${day(all[0]?.at ?? 0)}, newest first`}
              owns="columns"
              columnCount={COLUMNS.length}
              total={all.length}
              height={narrow ? 76 : 34}
              rowCount={next.value ? -1 : all.length + 1}
              active={active}
              activeId={active >= 0 ? `row-${selected}` : undefined}
              keyOf={(index) => all[index]?.id}
              onNearEnd={() => void more()}
              render={(index) => {
                const row = all[index];
                return row ? <Line key={row.id} row={row} index={index} active={index === active} narrow={narrow} /> : null;
              }}
            />
          </div>
          <p class="foot faint" role="status">
            {all.length.toLocaleString("en")} exchange{all.length === 1 ? "" : "s"}
            {next.value && !param("q") ? ", more as you scroll" : ""}
            {loading.value ? " …" : ""}
            {next.value && param("q") && !loading.value ? <> · <button type="button" class="quiet" onClick={() => void more()}>Load older</button></> : null}
          </p>
          {unread.value ? <Unread /> : null}
        </>
      ) : loading.value ? (
        <Waiting />
      ) : null}
    </section>
  );
}

function Unread() {
  return <p class="note" role="status">{unread.value} recording{unread.value === 1 ? "" : "s"} of other machines could not be searched here.</p>;
}

export function exportAddress(id: string): string {
  return address(`/exchanges/${encodeURIComponent(id)}/export`);
}
