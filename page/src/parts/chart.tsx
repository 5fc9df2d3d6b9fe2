// A chart with its words: a heading, a legend with the same signs that shows the numbers at the pointer,
// and all numbers as a table for who cannot see it, or wants them.
import { useEffect, useRef, useState } from "preact/hooks";
import { moment } from "../format";
import type { Series, Show } from "../lazy/chart";

interface Props {
  title: string;
  times: number[];
  series: Series[];
  show?: Show;
  format: (value: number) => string;
  /** Things that are counted: no half of one on the axis. */
  whole?: boolean;
  /** What to say where there is nothing. */
  nothing?: string;
}

export function Chart({ title, times, series, show = "lines", format, whole = false, nothing = "Nothing in this time." }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const [dark, setDark] = useState(matchMedia("(prefers-color-scheme: dark)").matches);
  const [pointed, setPointed] = useState<number | null>(null);
  const [numbers, setNumbers] = useState(false);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const listen = () => setDark(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, []);
  const empty = !series.some((each) => each.values.some((value) => value));
  useEffect(() => {
    if (empty) return;
    let on = true;
    let end: (() => void) | undefined;
    void import("../lazy/chart").then(({ draw }) => {
      if (on && host.current) end = draw(host.current, { times, series, show, format, whole, point: setPointed });
    });
    return () => {
      on = false;
      end?.();
    };
  }, [times, series, show, dark, empty]);
  const at = pointed === null ? undefined : times[pointed];
  const reported = times.map((_, index) => index).filter((index) => series.some((each) => each.values[index]));
  return (
    <figure class="chart card">
      <figcaption>
        <h2>{title}</h2>
        <span class="faint">{at === undefined ? "" : moment(at)}</span>
      </figcaption>
      {empty ? (
        <p class="faint nothing">{nothing}</p>
      ) : (
        <>
          <div class="plot" ref={host} role="img" aria-label={`${title}: ${series.map((each) => `${each.name}, last ${format(lastOf(each.values))}`).join("; ")}`} />
          <ul class={`chart-legend ${show}`}>
            {series.map((each, index) => {
              const value = pointed === null ? undefined : each.values[pointed];
              return (
                <li key={each.name} class={`mark mark-${(index % 6) + 1}`}>
                  {each.name}
                  {pointed === null ? null : <strong> {value === null || value === undefined ? "–" : format(value)}</strong>}
                </li>
              );
            })}
          </ul>
          <details class="numbers" open={numbers} onToggle={(event) => setNumbers(event.currentTarget.open)}>
            <summary>
              Numbers<span class="unseen"> of {title}</span>
            </summary>
            {numbers ? (
              <div class="scroll-x" tabIndex={0} role="group" aria-label={`${title}, numbers`}>
                <table>
                  <thead>
                    <tr>
                      <th>Time</th>
                      {series.map((each) => <th key={each.name} class="num">{each.name}</th>)}
                    </tr>
                  </thead>
                  <tbody>
                    {reported.map((index) => (
                      <tr key={index}>
                        <td>{moment(times[index] ?? 0)}</td>
                        {series.map((each) => {
                          const value = each.values[index];
                          return <td key={each.name} class="num">{value === null || value === undefined ? "" : format(value)}</td>;
                        })}
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            ) : null}
          </details>
        </>
      )}
    </figure>
  );
}

function lastOf(values: (number | null)[]): number {
  for (let index = values.length - 1; index >= 0; index--) {
    const value = values[index];
    if (value !== null && value !== undefined) return value;
  }
  return 0;
}
