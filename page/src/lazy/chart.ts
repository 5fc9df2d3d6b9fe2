// Charts by uPlot, loaded with the dashboards. Colours come of the page's own, for light and dark.
import uPlot from "uplot";

export interface Series {
  name: string;
  values: (number | null)[];
}

export type Show = "lines" | "bars";

const DASHES: number[][] = [[], [6, 4], [2, 3], [10, 3, 2, 3], [1, 5], [14, 4]];

/** Colours that stay apart for colour-blind eyes (Okabe and Ito), told apart by dashes as well. */
function palette(): string[] {
  const style = getComputedStyle(document.documentElement);
  return [1, 2, 3, 4, 5, 6].map((index) => style.getPropertyValue(`--series-${index}`).trim());
}

function moment(at: number, span: number): string {
  const date = new Date(at * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  if (span < 600) return `${clock}:${two(date.getSeconds())}`;
  return span < 86_400 ? clock : span < 4 * 86_400 && clock !== "00:00" ? `${day} ${clock}` : day;
}

export function draw(host: HTMLElement, times: number[], series: Series[], show: Show, format: (value: number) => string, whole: boolean): () => void {
  const colours = palette();
  const style = getComputedStyle(document.documentElement);
  const faint = style.getPropertyValue("--soft").trim();
  const line = style.getPropertyValue("--line").trim();
  const first = times[0] ?? 0;
  const last = times.at(-1) ?? first + 1;
  const step = (times[1] ?? first + 60) - first;
  const axis = { stroke: faint, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui" };
  const chart = new uPlot(
    {
      width: Math.max(200, host.clientWidth),
      height: 200,
      legend: { show: false },
      cursor: { points: { size: 6 } },
      scales: { x: { time: true, range: () => [first - step / 2, last + step / 2] }, y: { range: (_chart, _low, high) => [0, Math.max(1e-9, high * 1.1)] } },
      axes: [
        { ...axis, values: (_chart, ticks) => ticks.map((tick) => moment(tick, (times.at(-1) ?? 0) - (times[0] ?? 0))) },
        { ...axis, size: 64, values: (_chart, ticks) => ticks.map(format), ...(whole ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7, 1e8, 1e9] } : {}) },
      ],
      series: [
        {},
        ...series.map((each, index): uPlot.Series => {
          const stroke = colours[index % colours.length] ?? faint;
          const base: uPlot.Series = { label: each.name, stroke, width: 2, spanGaps: true, dash: DASHES[index % DASHES.length] ?? [], points: { show: each.values.filter((value) => value !== null && value !== undefined).length < 40, size: 5, fill: stroke } };
          const bars = uPlot.paths.bars;
          return show === "bars" && bars ? { ...base, dash: [], fill: stroke, width: 0, paths: bars({ size: [0.7, 40] }), points: { show: false } } : base;
        }),
      ],
    },
    [times, ...series.map((each) => each.values)] as uPlot.AlignedData,
    host,
  );
  const observer = new ResizeObserver(() => chart.setSize({ width: Math.max(200, host.clientWidth), height: 200 }));
  observer.observe(host);
  return () => {
    observer.disconnect();
    chart.destroy();
  };
}
