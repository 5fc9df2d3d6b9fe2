// The menus of the list: time range, losses, columns, saved views, and the file of all that match.
import { useState } from "preact/hooks";
import { address } from "../api";
import { COLUMNS } from "../columns";
import { plural } from "../format";
import { type Habits, lossesByFeature } from "../habits";
import { FILTERS } from "../rows";
import { A, param, setQuery, to } from "../route";
import { DEFAULT_COLUMNS, remember, remembered, withView } from "../saved";
import { Menu } from "./menu";

const RANGES: [string, string][] = [["", "Any time"], ["15m", "Last 15 minutes"], ["1h", "Last hour"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"]];

/** As a field for local times has it, of a time that the address has. */
function localTime(text: string): string {
  const at = new Date(text);
  if (!text || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const universal = (local: string) => (local ? new Date(local).toISOString().slice(0, 16) + "Z" : "");

export function TimeRange() {
  const [since, until] = [param("since"), param("until")];
  const known = RANGES.some(([id]) => id === since) && !until;
  const [custom, setCustom] = useState(!known);
  const on = Boolean(since || until);
  return (
    <span class={on ? "filter time on" : "filter time"}>
      <select
        aria-label="Time"
        value={custom || !known ? "custom" : since}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          setCustom(chosen === "custom");
          if (chosen !== "custom") setQuery({ since: chosen, until: "" });
        }}
      >
        {RANGES.map(([id, name]) => <option key={id} value={id}>{name}</option>)}
        <option value="custom">From … until …</option>
      </select>
      {custom || !known ? (
        <>
          <input type="datetime-local" aria-label="From" value={localTime(since)} onChange={(event) => setQuery({ since: universal(event.currentTarget.value) })} />
          <input type="datetime-local" aria-label="Until" value={localTime(until)} onChange={(event) => setQuery({ until: universal(event.currentTarget.value) })} />
        </>
      ) : null}
    </span>
  );
}

/** Grouped by what was lost: new ones first, and what is usual folded. */
export function LossesMenu({ habits }: { habits: Habits }) {
  const all = lossesByFeature(habits);
  const fresh = all.filter((each) => each.rarity === "new").length;
  const line = (each: (typeof all)[number], close: () => void) => (
    <li key={each.feature}>
      <button type="button" class="quiet" title={each.who.join("\n")} onClick={() => {
          setQuery({ loss: each.feature });
          close();
        }}
      >
        <code>{each.feature}</code>
        {each.rarity === "new" ? <span class="tag accent">new</span> : null}
        <span class="faint">{plural(each.times, "exchange")}</span>
      </button>
    </li>
  );
  return (
    <Menu label={<span class="losses-label">Losses{fresh ? `: ${fresh} new` : <span class="wide-only"> by feature</span>}</span>} name="Losses by feature" disabled={!all.length}>
      {(close) => {
        const usual = all.filter((each) => each.rarity === "usual");
        return (
          <>
            <ul>{all.filter((each) => each.rarity !== "usual").map((each) => line(each, close))}</ul>
            {usual.length ? (
              <details>
                <summary>{usual.length} usual for their client and provider</summary>
                <ul>{usual.map((each) => line(each, close))}</ul>
              </details>
            ) : null}
          </>
        );
      }}
    </Menu>
  );
}

export function ColumnsMenu() {
  const chosen = remembered.value.columns;
  return (
    <Menu label="Columns" name="Columns">
      {() => (
        <>
          {COLUMNS.map((column) => (
            <label key={column.id} class="check">
              <input
                type="checkbox"
                checked={column.id === "time" || chosen.includes(column.id)}
                disabled={column.id === "time"}
                onChange={(event) => {
                  const on = event.currentTarget.checked;
                  remember({ columns: COLUMNS.map((each) => each.id).filter((id) => (id === column.id ? on : chosen.includes(id))) });
                }}
              />
              {column.name}
            </label>
          ))}
          <button type="button" class="quiet" onClick={() => remember({ columns: DEFAULT_COLUMNS })}>As at first</button>
        </>
      )}
    </Menu>
  );
}

export function ViewsMenu({ query }: { query: string }) {
  const [name, setName] = useState("");
  const { views, columns } = remembered.value;
  return (
    <Menu label="Views" name="Saved views">
      {(close) => (
        <>
          {views.length ? (
            <ul>
              {views.map((view) => (
                <li key={view.name} class="view">
                  <span
                    onClick={() => {
                      remember({ columns: view.columns.length ? view.columns : columns });
                      close();
                    }}
                  >
                    <A href={to([], Object.fromEntries(new URLSearchParams(view.query)))}>{view.name}</A>
                  </span>
                  <button type="button" class="quiet" aria-label={`Delete the view ${view.name}`} onClick={() => remember({ views: views.filter((each) => each.name !== view.name) })}>×</button>
                </li>
              ))}
            </ul>
          ) : (
            <p class="faint">A view is the filters, the order and the columns, under a name. It is kept in this browser.</p>
          )}
          <form
            onSubmit={(event) => {
              event.preventDefault();
              if (!name.trim()) return;
              remember({ views: withView(views, { name: name.trim(), query, columns }) });
              setName("");
            }}
          >
            <input type="text" aria-label="Name of this view" placeholder="Name of this view" maxLength={60} value={name} onInput={(event) => setName(event.currentTarget.value)} />
            <button type="submit" disabled={!name.trim()}>Save</button>
          </form>
        </>
      )}
    </Menu>
  );
}

const FORMATS: [string, string][] = [["csv", "Table (CSV)"], ["jsonl", "JSON lines"], ["har", "HAR, with recorded bodies"]];

/** Made by the server, of all that match: not of what happens to be loaded. */
export function ExportMenu({ disabled }: { disabled: boolean }) {
  const query = Object.fromEntries([...FILTERS, "sort"].map((name) => [name, param(name)]));
  return (
    <Menu label="Export" name="Export" disabled={disabled}>
      {(close) => (
        <>
          {FORMATS.map(([format, name]) => (
            <a key={format} href={address("/export", { format, ...query })} download="" onClick={close}>{name}</a>
          ))}
          <p class="faint">All exchanges that match, also those that are not loaded.</p>
        </>
      )}
    </Menu>
  );
}
