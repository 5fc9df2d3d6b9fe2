// A stream in several dialects, event by event: what each event of the source became.
import { useMemo, useState } from "preact/hooks";
import { align } from "../alignment";
import { titleOf } from "../dialects";
import { Problem } from "../parts/small";
import { type StreamEvent, wordsOf } from "../stream";
import type { Translated } from "../playground";

const SOME = 300;

export function Aligned({ dialect, names, result }: { dialect: string; names: string[]; result: Translated | null }) {
  const [most, setMost] = useState(SOME);
  const shown = names.filter((name) => result?.dialects[name]);
  const rows = useMemo(() => align(result?.events ?? [], shown.map((name) => result?.dialects[name]?.events ?? [])), [result, shown.join(" ")]);
  if (result?.problem) return <Problem>{result.problem.message}{result.problem.line ? ` (line ${result.problem.line}, column ${result.problem.column ?? 1})` : ""}</Problem>;
  return (
    <div class="aligned card scroll-x" tabIndex={0} role="group" aria-label="Events next to what they became">
      <table>
        <thead>
          <tr>
            <th scope="col">#</th>
            <th scope="col">{titleOf(dialect)} <span class="tag accent">source</span></th>
            {shown.map((name) => <th key={name} scope="col">{titleOf(name)}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row, index) => (
            <tr key={index}>
              <th scope="row">{row.source ? index + 1 : "end"}</th>
              <td>{row.source ? <OneEvent event={row.source} /> : <span class="faint">the stream has ended</span>}</td>
              {row.became.map((events, column) => <td key={column}>{events.length ? events.map((event, place) => <OneEvent key={place} event={event} />) : <span class="faint">–</span>}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most ? <button type="button" onClick={() => setMost(most * 4)}>Show more of {rows.length} events</button> : null}
      {!rows.length ? <p class="faint nothing">No events yet.</p> : null}
    </div>
  );
}

function OneEvent({ event }: { event: StreamEvent }) {
  const value = event.value;
  return (
    <details class="aligned-event">
      <summary><code>{event.name}</code> <span class="event-words">{wordsOf(event).slice(0, 200)}</span></summary>
      <pre>{value === undefined ? event.raw.trim() : JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}
