// Every exchange as it happens, and on a wide screen the chosen one next to them.
import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Column, fitting, phoneColumns, rowTitle, template } from "../columns";
import { clock, day, moment, plural, whole } from "../format";
import type { Habits } from "../habits";
import { connection, dropped } from "../live";
import { FilterBox } from "../parts/filterbox";
import { ColumnsMenu, ExportMenu, LossesMenu, TimeRange, ViewsMenu } from "../parts/listmenus";
import { useHabits } from "../parts/losses";
import { Neighbours } from "../parts/neighbours";
import { RecordingButton } from "../parts/recording";
import { Problem, Waiting, useTitle } from "../parts/small";
import { Virtual } from "../parts/virtual";
import { go, listAddress, param, rememberList, setQuery, to } from "../route";
import { type Filter, FILTERS, type Filters, MAX_ROWS, failed, loading, matching, more, next, paused, rows, seen, setPaused, show, skipped, titled, unread, waiting } from "../rows";
import { remember, remembered } from "../saved";
import type { Row } from "../types";
import { ExchangeView } from "./exchange";
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
const OF_LIST = [...FILTERS, "sort"] as const;
/** Of the exchange that is shown next to the list: another one begins without them. */
const OF_DETAIL = { try: "", t: "", sel: "", ev: "", find: "" };
const BESIDE_PIXELS = 1400;
const LEAST_BESIDE_PIXELS = 1100;
const DETAIL_MS = 120;

function filtersOf(): Filters {
  const found: Filters = {};
  for (const name of OF_LIST) {
    const value = param(name);
    if (value) found[name] = value;
  }
  return found;
}

interface CellsProps {
  row: Row;
  columns: Column[];
  habits: Habits;
}

/** A row's cells: left as they are while the list around them is drawn again, as it is whenever a row comes. */
class Cells extends Component<CellsProps> {
  // Their vnodes are not cached: each has a pointer to the tree that it was first part of, with all rows that were drawn.
  override shouldComponentUpdate(next: CellsProps): boolean {
    return next.row !== this.props.row || next.columns !== this.props.columns || next.habits !== this.props.habits;
  }

  override render({ row, columns, habits }: CellsProps): ComponentChildren {
    return columns.map((column, at) => (
      <span key={column.id} role="gridcell" aria-colindex={at + 1} class={`cell cell-${column.id}`}>
        {column.id === "time" ? (
          <a class="over" href={to(["x", row.id])} tabIndex={-1} title={`${moment(row.at)}\n${rowTitle(row, habits)}`} aria-label={`Exchange of ${clock(row.at)}, ${row.client || "unknown"}`}>
            {column.cell(row, habits)}
          </a>
        ) : (
          column.cell(row, habits)
        )}
      </span>
    ));
  }
}

interface LineProps {
  row: Row;
  index: number;
  active: boolean;
  columns: Column[];
  habits: Habits;
  open: (id: string) => void;
}

function Line({ row, index, active, columns, habits, open }: LineProps) {
  return (
    <div
      id={`row-${row.id}`}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={active}
      class={`line${active ? " active" : ""}${row.recorded ? " recorded" : ""}`}
      onClick={(event) => {
        // With a key held it is the browser's: a new tab, or a new window.
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return;
        event.preventDefault();
        open(row.id);
      }}
    >
      <Cells row={row} columns={columns} habits={habits} />
    </div>
  );
}

/** Whether a media query holds, as it changes. */
function useMedia(query: string): boolean {
  const media = useMemo(() => matchMedia(query), [query]);
  const [matches, setMatches] = useState(media.matches);
  useEffect(() => {
    const change = () => setMatches(media.matches);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, [media]);
  return matches;
}

/** What it is; while it changes fast, what it was: a key that is held loads no exchange of those it passes. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  const changed = useRef(0);
  useLayoutEffect(() => {
    const before = changed.current;
    changed.current = performance.now();
    if (changed.current - before > DETAIL_MS) return setSettled(value);
    const timer = setTimeout(() => setSettled(value), DETAIL_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

export function LiveList() {
  useTitle("Live");
  const search = useRef<HTMLInputElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const query = OF_LIST.map(param).join("\u0000");
  const ofList = new URLSearchParams(OF_LIST.flatMap((name) => (param(name) ? [[name, param(name)]] : []))).toString();
  const selected = param("at");
  const narrow = useMedia("(max-width: 760px)");
  const roomy = useMedia(`(min-width: ${BESIDE_PIXELS}px)`);
  const mayBeside = useMedia(`(min-width: ${LEAST_BESIDE_PIXELS}px)`);
  const isBeside = mayBeside && (remembered.value.beside ?? roomy);
  const detail = useSettled(isBeside && param("open") ? selected : "");
  const habits = useHabits();
  const [width, setWidth] = useState(innerWidth);
  const chosen = remembered.value.columns;
  const columns = useMemo(() => (narrow ? phoneColumns(titled.value) : fitting(titled.value ? chosen : chosen.filter((id) => id !== "title"), width)), [chosen, width, narrow, titled.value]);
  useEffect(() => {
    rememberList(ofList);
    void show(filtersOf());
  }, [query]);
  useLayoutEffect(() => {
    if (!param("focus")) grid.current?.focus({ preventScroll: true });
  }, []);
  // Before the next key is read: "/" pressed at once must not lose the search to the list.
  useLayoutEffect(() => {
    if (!param("focus")) return;
    setQuery({ focus: "" }, true);
    search.current?.focus();
  }, [param("focus")]);
  const all = rows.value;
  const active = all.findIndex((row) => row.id === selected);
  const filtered = FILTERS.some((name) => param(name));
  const clear = () => setQuery(Object.fromEntries(FILTERS.map((name) => [name, ""])));

  const open = (id: string) => {
    if (!isBeside) go(to(["x", id]));
    else setQuery({ at: id, open: "1", ...(id === param("at") ? {} : OF_DETAIL) }, Boolean(param("open")));
  };
  const close = () => {
    setQuery({ open: "", ...OF_DETAIL });
    grid.current?.focus({ preventScroll: true });
  };
  // By what holds when a key is pressed: several may be before the page is drawn again.
  const here = () => rows.value.findIndex((row) => row.id === param("at"));
  const move = (by: number) => {
    const now = here();
    const row = rows.value[Math.max(0, Math.min(rows.value.length - 1, now < 0 ? (by > 1 ? by : 0) : now + by))];
    if (row) setQuery({ at: row.id, ...(row.id === param("at") ? {} : OF_DETAIL) }, true);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement;
    if (/^(input|select|textarea)$/i.test(target.tagName)) return;
    // Next to the list an exchange has arrows, pages and Enter for itself.
    const inDetail = Boolean(target.closest?.(".detail"));
    const page = 20;
    const moves: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    const by = inDetail && event.key.length > 1 ? undefined : moves[event.key];
    if (by !== undefined) move(by);
    else if (event.key === "Enter" && here() >= 0 && !inDetail && !/^(button|a|summary)$/i.test(target.tagName)) open(param("at"));
    else if (event.key === "Escape" && param("open") && !document.querySelector("dialog[open]")) close();
    else if (event.key === "p" && !detail) setPaused(!paused.value);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  });
  const sort = param("sort") || "-time";
  const sorted = (column: Column) => (sort.replace("-", "") === column.sort ? (sort.startsWith("-") ? "descending" : "ascending") : undefined);
  const resort = (column: Column) => {
    const [falling, rising] = [`-${column.sort}`, column.sort ?? ""];
    const [first, second] = column.ascends ? [rising, falling] : [falling, rising];
    const wanted = sort === first ? second : first;
    setQuery({ sort: wanted === "-time" ? "" : wanted });
  };

  return (
    <section class={detail ? "list beside" : "list"} aria-label="Live exchanges">
      <h1 class="unseen">Live exchanges</h1>
      <div class="list-side">
        <div class="bar">
          <FilterBox field={search} value={param("q")} apply={(text) => setQuery({ q: text.trim() }, true)} />
          <div class="filters">
            <TimeRange />
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
              <button type="button" class="quiet" onClick={clear}>
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
            <LossesMenu habits={habits} />
            <ViewsMenu query={ofList} />
            {narrow ? null : <ColumnsMenu />}
            {mayBeside ? (
              <button type="button" aria-pressed={isBeside} title="Show the chosen exchange next to the list" onClick={() => {
                  remember({ beside: !isBeside });
                  setQuery({ open: "" }, true);
                }}
              >
                Side by side
              </button>
            ) : null}
            <ExportMenu disabled={!all.length} />
          </div>
        </div>
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
              <button type="button" onClick={clear}>Clear the filters</button>
            </div>
          ) : (
            <FirstSteps />
          )
        ) : null}
        {all.length ? (
          <>
            <div class="table" role="presentation" style={{ "--columns": template(columns) }}>
              <div id="columns" class="head line" role="row" aria-rowindex={1}>
                {columns.map((column, at) => (
                  <span key={column.id} role="columnheader" aria-colindex={at + 1} aria-sort={sorted(column)} class={`cell cell-${column.id}`}>
                    {column.sort ? (
                      <button type="button" class="quiet" onClick={() => resort(column)}>
                        {column.name}
                        {param("sort") && sorted(column) ? <span aria-hidden="true">{sort.startsWith("-") ? " ↓" : " ↑"}</span> : null}
                      </button>
                    ) : (
                      column.name
                    )}
                  </span>
                ))}
              </div>
              <Virtual
                box={grid}
                class="rows"
                role="grid"
                label={`Exchanges of ${day(all[0]?.at ?? 0)}, ${param("sort") ? `sorted by ${sort.replace("-", "")}` : "newest first"}`}
                owns="columns"
                columnCount={columns.length}
                total={all.length}
                height={narrow ? 76 : 34}
                rowCount={next.value ? -1 : all.length + 1}
                active={active}
                activeId={active >= 0 ? `row-${selected}` : undefined}
                keyOf={(index) => all[index]?.id}
                onNearEnd={() => void more()}
                onWidth={setWidth}
                render={(index) => {
                  const row = all[index];
                  return row ? <Line key={row.id} row={row} index={index} active={index === active} columns={columns} habits={habits} open={open} /> : null;
                }}
              />
            </div>
            <p class="foot faint" role="status">
              {filtered && next.value && matching.value ? `${matching.value.more ? "at least " : ""}${plural(Math.max(matching.value.count, all.length), "exchange matches", "exchanges match")}, ${whole(all.length)} loaded` : plural(all.length, "exchange")}
              {next.value && all.length >= MAX_ROWS ? ", as many as this page keeps: a filter finds others" : next.value && !param("q") ? ", more as you scroll" : ""}
              {loading.value ? " …" : ""}
              {next.value && param("q") && !loading.value && all.length < MAX_ROWS ? <> · <button type="button" class="quiet" onClick={() => void more()}>Load older</button></> : null}
            </p>
            {unread.value ? <Unread /> : null}
          </>
        ) : loading.value ? (
          <Waiting what={filtered ? "Searching" : "Loading"} />
        ) : null}
        {failed.value ? <Problem>{failed.value}</Problem> : null}
        {dropped.value + skipped.value ? <p class="note" role="status">{dropped.value + skipped.value} changes were skipped while the page was slow; reload to see all.</p> : null}
      </div>
      {detail ? (
        <div class="detail" aria-label="Chosen exchange" role="region">
          <div class="detail-bar">
            <Neighbours id={selected} hasKeys={false} addressOf={(id) => listAddress({ at: id, open: "1" })} />
            <button type="button" class="quiet" title="Esc" onClick={close}>Close</button>
          </div>
          <ExchangeView key={detail} id={detail} />
        </div>
      ) : null}
    </section>
  );
}

function Unread() {
  return <p class="note" role="status">{unread.value} recording{unread.value === 1 ? "" : "s"} of other machines could not be searched here.</p>;
}
