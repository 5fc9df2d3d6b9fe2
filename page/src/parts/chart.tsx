// A chart with its words: a heading, a legend with the same signs, and the numbers as a table for who cannot see it.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Series, Show } from "../lazy/chart";

interface Props {
  title: string;
  times: number[];
  series: Series[];
  show?: Show;
  format: (value: number) => string;
  /** Things that are counted: no half of one on the axis. */
  whole?: boolean;
}

export function Chart({ title, times, series, show = "lines", format, whole = false }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const [dark, setDark] = useState(matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const listen = () => setDark(query.matches);
    query.addEventListener("change", listen);
    return () => query.removeEventListener("change", listen);
  }, []);
  const nothing = !series.some((each) => each.values.some((value) => value));
  useEffect(() => {
    if (nothing) return;
    let on = true;
    let end: (() => void) | undefined;
    void import("../lazy/chart").then(({ draw }) => {
      if (on && host.current) end = draw(host.current, times, series, show, format, whole);
    });
    return () => {
      on = false;
      end?.();
    };
  }, [times, series, show, dark, nothing]);
  return (
    <figure class="chart card">
      <figcaption>
        <h2>{title}</h2>
      </figcaption>
      {nothing ? <p class="faint nothing">Nothing in this time.</p> : <div class="plot" ref={host} role="img" aria-label={`${title}: ${series.map((each) => `${each.name}, last ${format(lastOf(each.values))}`).join("; ")}`} />}
      {!nothing ? (
        <ul class="chart-legend">
          {series.map((each, index) => (
            <li key={each.name} class={`mark mark-${(index % 6) + 1}`}>
              {each.name}
            </li>
          ))}
        </ul>
      ) : null}
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
