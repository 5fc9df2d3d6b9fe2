// Charts by uPlot, loaded with the dashboards. Colours come of the page's own, for light and dark.
import uPlot from "uplot";
import { STEPS, axisWidth, moment } from "../axis";

export interface Series {
  name: string;
  values: (number | null)[];
}

/** Lines for what is measured, bars on top of one another for what is counted. */
export type Show = "lines" | "stack";

export interface Drawn {
  times: number[];
  series: Series[];
  show: Show;
  format: (value: number) => string;
  /** Things that are counted: no half of one on the axis. */
  whole: boolean;
  /** The moment under the pointer; null: none. */
  point: (index: number | null) => void;
}

const HEIGHT = 190;
const DASHES: number[][] = [[], [6, 4], [2, 3], [10, 3, 2, 3], [1, 5], [14, 4]];
/** More points than this are a line, and need no dots. */
const DOTS_MOST = 40;

/** Colours that stay apart for colour-blind eyes (Okabe and Ito), distinguished by dashes as well. */
function palette(style: CSSStyleDeclaration): string[] {
  return [1, 2, 3, 4, 5, 6].map((index) => style.getPropertyValue(`--series-${index}`).trim());
}

const there = (value: number | null | undefined): value is number => value !== null && value !== undefined;

/** All points of a short line; of a long one those that no line reaches. */
function dots(values: (number | null)[]): number[] {
  const known = values.flatMap((value, index) => (there(value) ? [index] : []));
  return known.length < DOTS_MOST ? known : known.filter((index) => !there(values[index - 1]) && !there(values[index + 1]));
}

export function draw(host: HTMLElement, { times, series, show, format, whole, point }: Drawn): () => void {
  const style = getComputedStyle(document.documentElement);
  const colours = palette(style);
  const faint = style.getPropertyValue("--soft").trim();
  const line = style.getPropertyValue("--line").trim();
  const sheet = style.getPropertyValue("--sheet").trim();
  const first = times[0] ?? 0;
  const last = times.at(-1) ?? first + 1;
  const step = (times[1] ?? first + 60) - first;
  const axis = { stroke: faint, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, font: "12px system-ui" };
  const of = (index: number) => colours[index % colours.length] ?? faint;
  const stacked = show === "stack";
  // The tallest bar is drawn first, each of the others before it: what is seen of a bar is its own share.
  const order = series.map((_, index) => (stacked ? series.length - 1 - index : index));
  const heights = new Map<number, (number | null)[]>();
  const sums = times.map(() => 0);
  series.forEach((each, index) => heights.set(index, stacked ? times.map((_, at) => (sums[at] = (sums[at] ?? 0) + (each.values[at] ?? 0)) || null) : each.values));
  const bars = uPlot.paths.bars?.({ size: [0.72, 36, 2] });

  const seriesOf = (index: number): uPlot.Series => {
    const stroke = of(index);
    if (stacked && bars) return { stroke: sheet, fill: stroke, width: 0.5, paths: bars, points: { show: false } };
    const marked = dots(heights.get(index) ?? []);
    return {
      stroke,
      width: 2,
      spanGaps: false,
      dash: DASHES[index % DASHES.length] ?? [],
      points: { show: marked.length > 0, size: 7, width: 0, fill: stroke, filter: () => marked },
    };
  };

  const chart = new uPlot(
    {
      width: Math.max(200, host.clientWidth),
      height: HEIGHT,
      padding: [10, 8, 0, 0],
      legend: { show: false },
      cursor: { points: { show: !stacked, size: 8 }, drag: { x: false, y: false }, y: false },
      hooks: { setCursor: [(self: uPlot) => point(self.cursor.left !== undefined && self.cursor.left >= 0 ? (self.cursor.idx ?? null) : null)] },
      scales: { x: { time: true, range: () => [first - step / 2, last + step / 2] }, y: { range: (_chart, _low, high) => [0, Math.max(whole ? 1 : 1e-9, high * 1.08)] } },
      axes: [
        { ...axis, size: 30, values: (_chart, ticks) => ticks.map((tick) => moment(tick, last - first)) },
        { ...axis, size: (_chart, labels) => axisWidth(labels), values: (_chart, ticks) => ticks.map((tick) => format(tick)), ...(whole ? { incrs: STEPS } : {}) },
      ],
      series: [{}, ...order.map(seriesOf)],
    },
    [times, ...order.map((index) => heights.get(index) ?? [])] as uPlot.AlignedData,
    host,
  );
  const observer = new ResizeObserver(() => chart.setSize({ width: Math.max(200, host.clientWidth), height: HEIGHT }));
  observer.observe(host);
  return () => {
    observer.disconnect();
    chart.destroy();
  };
}
